/*
 * Sums in double for mean.c, at one instruction level.
 */
#include <stdint.h>

#include "cpu/core/cpu_level.h"

/* z = (x[0] + x[1] + ...) * share of n elements; sum: room for them */
static HN_TARGET void HN_V(sum_of_all)(float *z, const float *const *x, int many, double share, double *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = (double)x[0][i];
    for (int k = 1; k < many; k++) {
        const float *from = x[k];
        for (int64_t i = 0; i < n; i++)
            sum[i] += (double)from[i];
    }
    for (int64_t i = 0; i < n; i++)
        z[i] = (float)(sum[i] / share);
}
