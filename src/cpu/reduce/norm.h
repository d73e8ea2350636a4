/*
 * The rows of normalisations, at the machine's instruction level.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

typedef struct {
    float (*sum)(const float *x, int64_t n);
    float (*squares)(const float *x, int64_t n, float mean); /* of the differences */
    /* y = (x - mean) * inv * w + b; b may be NULL */
    void (*scale)(float *y, const float *x, int64_t n, float mean, float inv, const float *w, const float *b);
    /* The three of rows of n < short_norm_end elements; w and b, means and invs (of each row) may be NULL */
    void (*short_norm)(float *y, const float *x, int64_t n, int64_t rows, float epsilon, gboolean centre,
                       const float *w, const float *b, float *means, float *invs);
    int64_t short_norm_end;
    void (*affine)(float *y, const float *x, int64_t n, float a, float b); /* y = x * a + b */
    /* Down the columns of x [n, width]: their sums, those of squared differences, y = x * a + b */
    void (*down_sum)(float *sum, const float *x, int64_t n, int64_t width);
    void (*down_squares)(float *sum, const float *x, int64_t n, int64_t width, const float *mean);
    void (*down_affine)(float *y, const float *x, int64_t n, int64_t width, const float *a, const float *b);
    float (*max)(const float *x, int64_t n);
    float (*exp)(float *y, const float *x, int64_t n, float max); /* y = e^(x - max); their sum */
    float (*exp_sum)(const float *x, int64_t n, float max);       /* the sum alone */
    void (*log_share)(float *y, const float *x, int64_t n, float max, float log_sum);
    /* Softmax or its logarithm down the columns of x [n, inner]; most and sum: `width` places */
    void (*columns)(float *y, const float *x, int64_t n, int64_t inner, int64_t width, float *most, float *sum,
                    gboolean logs);
    /* The same along rows of n <= HN_SHORT elements */
    void (*short_rows)(float *y, const float *x, int64_t n, int64_t rows, gboolean logs);
} HnRowFns;

#define HN_SHORT 16
#define HN_SHORT_ROWS 64

const HnRowFns *hn_cpu_rows(void);

extern const HnKernel hn_cpu_groupnorm_last; /* GroupNormalization and InstanceNormalization, channels last */
