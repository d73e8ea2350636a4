#include "cpu/elementwise/short_rows.h"

#include <immintrin.h>

#include "cpu/core/strided_copy.h"
#include "op/types.h"

static void repeat_floats(float *y, const float *x, int64_t rows, int64_t n, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++, x += stride, y += n)
        for (int64_t k = 0; k < n; k += 4)
            _mm_storeu_ps(y + k, _mm_set1_ps(*x));
}

static void repeat(void *to, const void *from, gsize size, int64_t rows, int64_t n, int64_t stride)
{
    if (size == sizeof(float) && n % 4 == 0) {
        repeat_floats(to, from, rows, n, stride);
        return;
    }
#define REPEAT(T)                                           \
    T *y = to;                                              \
    const T *x = from;                                      \
    for (int64_t i = 0; i < rows; i++, x += stride, y += n) \
        for (int64_t k = 0; k < n; k++)                     \
            y[k] = *x;
    HN_FOR_SIZE(size, REPEAT)
#undef REPEAT
}

void hn_short_rows(void *y, const void *x, gsize size, int64_t rows, int64_t n, int64_t stride, int step)
{
    if (step == 0) {
        repeat(y, x, size, rows, n, stride);
        return;
    }
    if (stride == n) {
        hn_copy_bytes(y, x, (gsize)(rows * n) * size);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        hn_copy_bytes((char *)y + (gsize)(i * n) * size, (const char *)x + (gsize)(i * stride) * size, (gsize)n * size);
}
