#include "cpu/core/half_rows.h"

#include "base/half.h"

#define HN_LOOPS "cpu/core/half_rows_loops.h"
#include "base/every_level.h"

#if defined(__x86_64__)
#include <immintrin.h>

static HN_TARGET_avx2 int64_t widen_f16(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    return i;
}

static HN_TARGET_avx2 int64_t narrow_f16(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
    return i;
}
#else
static int64_t widen_f16(float *to, const uint16_t *from, int64_t n)
{
    (void)to, (void)from, (void)n;
    return 0;
}

static int64_t narrow_f16(uint16_t *to, const float *from, int64_t n)
{
    (void)to, (void)from, (void)n;
    return 0;
}
#endif

void hn_cpu_half_to_f32(HnDtype half, float *to, const uint16_t *from, int64_t n)
{
    static void (*const bf16[HN_LEVELS])(float *, const uint16_t *, int64_t) = HN_TABLE_OF_LEVELS(widen_bf16);
    const int level = hn_cpu_level();
    if (half == HN_BF16) {
        bf16[level](to, from, n);
    } else {
        const int64_t done = level > 0 ? widen_f16(to, from, n) : 0;
        hn_f16_to_f32_n(to + done, from + done, (size_t)(n - done));
    }
}

void hn_cpu_half_from_f32(HnDtype half, uint16_t *to, const float *from, int64_t n)
{
    static void (*const bf16[HN_LEVELS])(uint16_t *, const float *, int64_t) = HN_TABLE_OF_LEVELS(narrow_bf16);
    const int level = hn_cpu_level();
    if (half == HN_BF16) {
        bf16[level](to, from, n);
    } else {
        const int64_t done = level > 0 ? narrow_f16(to, from, n) : 0;
        hn_f16_from_f32_n(to + done, from + done, (size_t)(n - done));
    }
}
