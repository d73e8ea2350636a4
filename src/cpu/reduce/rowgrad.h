/*
 * The loops of gradients of rows, for rowgrad.c at the machine's instruction level.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    int64_t n;
    const float *scale;    /* [n] */
    float *dscale, *dbias; /* [n] sums over rows */
} HnNormRow;

typedef struct {
    void (*norm_sums)(const HnNormRow *r, const float *dy, const float *x, float mean, float inv, float *g,
                      float *along);
    void (*norm_back)(const HnNormRow *r, float *dx, const float *dy, const float *x, float mean, float inv, float g,
                      float along);
    float (*dot)(const float *a, const float *b, int64_t n);
    void (*soft_back)(float *dx, const float *dy, const float *y, int64_t n, float sum);
    void (*log_back)(float *dx, const float *dy, const float *y, int64_t n, float sum);
    void (*columns_back)(float *dx, const float *dy, const float *y, int64_t n, int64_t inner, int64_t width,
                         float *sum, gboolean logs);
} HnRowGradFns;
