/*
 * Sums of columns for sumlike.c, at one instruction level.
 */
#include <glib.h>

#include "cpu/core/cpu_level.h"

/* sum[i] += x of n elements in rows of `width`, the last of which may be shorter; four rows are added up first */
static HN_TARGET void HN_V(column_sums)(float *restrict sum, const float *restrict x, int64_t n, int64_t width)
{
    for (; n >= 4 * width; n -= 4 * width, x += 4 * width) {
        const float *restrict x1 = x + width, *restrict x2 = x1 + width, *restrict x3 = x2 + width;
        for (int64_t i = 0; i < width; i++)
            sum[i] += (x[i] + x1[i]) + (x2[i] + x3[i]);
    }
    for (int64_t m; n > 0; n -= m, x += m) {
        m = MIN(n, width);
        for (int64_t i = 0; i < m; i++)
            sum[i] += x[i];
    }
}
