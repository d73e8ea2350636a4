/*
 * A row of a small product, for sgemm.c at one instruction level. A sum is the same at each: product after product.
 */
#include <stdint.h>

#include "cpu/core/vec.h"

/* y of `vectors` vectors, which is a constant */
static inline __attribute__((always_inline)) HN_TARGET void
HN_V(add_block)(float *y, const float *a, int64_t as, const float *b, int64_t bs, int64_t k, const int vectors)
{
    HN_VEC sum[4];
    HN_UNROLL
    for (int v = 0; v < vectors; v++)
        sum[v] = HN_VLOAD(y + v * HN_LANES);
    for (; k > 0; k--, a += as, b += bs) {
        const HN_VEC by = HN_VSET(*a);
        HN_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] = HN_VADD(sum[v], HN_VMUL(by, HN_VLOAD(b + v * HN_LANES)));
    }
    HN_UNROLL
    for (int v = 0; v < vectors; v++)
        HN_VSTORE(y + v * HN_LANES, sum[v]);
}

/* y[n] += sum over k of a[k * as] * b[k * bs + n] */
static HN_TARGET void HN_V(add_rows)(float *restrict y, const float *a, int64_t as, const float *b, int64_t bs,
                                     int64_t k, int64_t n)
{
    int64_t j = 0;
    for (; j + 4 * HN_LANES <= n; j += 4 * HN_LANES)
        HN_V(add_block)(y + j, a, as, b + j, bs, k, 4);
    for (; j + HN_LANES <= n; j += HN_LANES)
        HN_V(add_block)(y + j, a, as, b + j, bs, k, 1);
    for (int64_t i = 0; i < k && j < n; i++)
        for (int64_t l = j; l < n; l++)
            y[l] += a[i * as] * b[i * bs + l];
}
