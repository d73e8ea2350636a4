#include "cpu/int8/int8_depthwise_kernel.h"

#include "cpu/int8/int8_depthwise_kernel_level.h"

#define NX HN_INT8_DEPTH_NX
#define INLINE static inline __attribute__((always_inline))

void hn_int8_depth_end(HnInt8DepthKernel *t, const HnInt8Out *o)
{
    t->dtype = o->dtype;
    t->plain = hn_int8_only_saturates(o);
    t->zero = (uint16_t)o->zero * 0x10001u;
    t->lo = (uint8_t)((int)o->lo + o->zero) * 0x1010101u;
    t->hi = (uint8_t)((int)o->hi + o->zero) * 0x1010101u;
}

/* Rows that are grouped with others below each other. */
static int64_t rows_below(int each, int64_t rows)
{
    return rows % each == 1 ? rows - 1 : rows;
}

int64_t hn_int8_depth_groups(int each, int64_t rows, int64_t k)
{
    const int64_t below = rows_below(each, rows);
    return (below + each - 1) / each * k + (rows - below) * ((k + each - 1) / each);
}

void hn_int8_depth_group(int each, int64_t rows, int64_t k, int64_t i, int64_t *taps)
{
    const int64_t below = rows_below(each, rows), n = (below + each - 1) / each * k;
    for (int64_t j = 0; j < each; j++) {
        const int64_t row = i < n ? i / k * each + j : rows - 1, column = i < n ? i % k : (i - n) * each + j;
        taps[j] = row < rows && column < k ? row * k + column : -1;
    }
}

/* --- levels --------------------------------------------------------------------------------------------------------
 */

#define PAIR (2 * BLOCK_pair) /* numbers */

INLINE HN_TARGET_pair __m256i pair_of(const uint8_t *a, const uint8_t *b, const gboolean is_signed)
{
    return gather_pair((const uint8_t *const[]){ a, b }, 2, is_signed);
}

/* Any number of taps at any distances: each sum reads its own columns. */
INLINE HN_TARGET_pair void tile_any(const HnInt8DepthKernel *t, int64_t block, int64_t column, uint8_t *y, const int nx,
                                    const gboolean is_signed)
{
    const int64_t at = MIN(block * BLOCK_pair, t->channels - BLOCK_pair);
    const int16_t *weights = (const int16_t *)t->weights + block * t->groups * PAIR;
    __m256i sum[NX];
    const __m256i begin = _mm256_loadu_si256((const __m256i *)(const void *)(t->begin + block * BLOCK_pair));
    HN_UNROLL
    for (int i = 0; i < nx; i++)
        sum[i] = begin;
    for (int r = 0; r + 2 <= t->rows; r += 2) {
        const uint8_t *const *a = t->row[r] + column, *const *b = t->row[r + 1] + column;
        for (int j = 0; j < t->k; j++, weights += PAIR, a += t->dilation, b += t->dilation) {
            const __m256i w = ILOAD_pair(weights);
            HN_UNROLL
            for (int i = 0; i < nx; i++)
                sum[i] = dot_pair(sum[i], pair_of(a[i * t->stride] + at, b[i * t->stride] + at, is_signed), w);
        }
    }
    for (int j = 0; j < t->k && t->rows % 2 != 0; j += 2, weights += PAIR) {
        const __m256i w = ILOAD_pair(weights);
        const uint8_t *const *a = t->row[t->rows - 1] + column + j * t->dilation;
        const uint8_t *const *b = j + 1 < t->k ? a + t->dilation : a;
        HN_UNROLL
        for (int i = 0; i < nx; i++)
            sum[i] = dot_pair(sum[i], pair_of(a[i * t->stride] + at, b[i * t->stride] + at, is_signed), w);
    }
    tile_end_pair(t, block, y, nx, sum);
}

#undef HN_LEVEL
#define HN_LEVEL pair
#include "cpu/int8/int8_depthwise_kernel_loops.h"
EACH_NX(u_any, tile_any, FALSE)
EACH_NX(s_any, tile_any, TRUE)
static const HnInt8DepthFn any[2][NX] = { NAMES(u_any), NAMES(s_any) };
#undef HN_LEVEL

#undef TILE
#undef EACH_NX
#undef NAMES
#undef WINDOW
#undef FNS
#define HN_LEVEL quad
#include "cpu/int8/int8_depthwise_kernel_loops.h"
#undef HN_LEVEL

/* --- which ---------------------------------------------------------------------------------------------------------
 */

static const struct {
    int k, stride;
} windows[] = { { 3, 1 }, { 3, 2 }, { 5, 1 }, { 5, 2 }, { 7, 1 } };

static int find(int64_t rows, int64_t k, int64_t stride, int64_t dilation)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(windows); i++)
        if (windows[i].k == k && windows[i].k == rows && windows[i].stride == stride && dilation == 1)
            return i;
    return -1;
}

gboolean hn_int8_depth_known(int64_t rows, int64_t k, int64_t stride, int64_t dilation)
{
    return find(rows, k, stride, dilation) >= 0;
}

const HnInt8DepthFn *hn_int8_depth_tiles(int each, int64_t rows, int64_t k, int64_t stride, int64_t dilation,
                                         gboolean is_signed)
{
    const int window = find(rows, k, stride, dilation), sign = is_signed ? 1 : 0;
    if (window < 0)
        return any[sign];
    return each == HN_INT8_DEPTH_QUAD ? known_quad[window][sign] : known_pair[window][sign];
}
