/*
 * Rows of one number each at one instruction level, for short_rows.c.
 */
#include "cpu/core/vec.h"

/* y[rows][n] = x[row * stride]. Whole vectors, of which the next rows overwrite the rest, as long as there are such. */
static HN_TARGET void HN_V(repeat_floats)(float *y, const float *x, int64_t rows, int64_t n, int64_t stride)
{
    const float *const end = y + rows * n;
    const int64_t whole = (n + HN_LANES - 1) / HN_LANES * HN_LANES;
    for (; end - y >= whole; y += n, x += stride) {
        const HN_VEC v = HN_VSET(*x);
        for (int64_t k = 0; k < n; k += HN_LANES)
            HN_VSTORE(y + k, v);
    }
    for (; y < end; y += n, x += stride)
        for (int64_t k = 0; k < n; k++)
            y[k] = *x;
}
