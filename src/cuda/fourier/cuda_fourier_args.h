#pragma once

#include <stdint.h>

#define HN_CUDA_FOURIER_FACTORS 48

/* Signals of n points. Point j of signal s lies at (s / group) * far + s % group * near + j * step, in numbers of x or
 * y that have `parts` each. */
typedef struct {
    uint64_t x, y, window; /* window: 0 where absent */
    uint64_t from, to;     /* of a launch that is one pass of long signals: float2 [signals][n] */
    int64_t signals, n;
    int64_t points, bins; /* that are given, and wanted */
    int64_t group, x_far, x_near, x_step, y_far, y_near, y_step;
    int32_t x_parts, y_parts;
    int32_t inverse, half;                            /* half: of a spectrum that says the other half, too */
    int32_t factors, factor[HN_CUDA_FOURIER_FACTORS]; /* whose product is n */
    int64_t done;                                     /* of a pass: the product of the factors before it */
    int32_t radix;
} HnCudaFourierArgs;
