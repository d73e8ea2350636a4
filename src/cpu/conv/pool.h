/*
 * The loops of pools, for pool.c at the machine's instruction level.
 */
#pragma once

#include <stdint.h>

#define HN_POOL_SPAN 256 /* channels of a global pool that a thread takes at a time, at most */

typedef struct {
    /* of `pixels` that lie y_step apart, `count` results side by side, each of n elements from[k][i * x_step + c] of
     * pixel i, times scale (sums) */
    void (*of)(float *y, int64_t y_step, const float *const *from, int64_t n, int64_t x_step, int64_t count,
               int64_t pixels, float scale);
    /* the same of x[k * pitch + c] */
    void (*pixels)(float *y, const float *x, int64_t pitch, int64_t n, int64_t count, float scale);
    /* one result of n elements */
    float (*row)(const float *x, int64_t n, float scale);
    /* y[i] of row[i * stride + k * dilation], k < n */
    void (*columns)(float *y, const float *row, int64_t out, int64_t stride, int64_t n, int64_t dilation);
} HnPoolFns;
