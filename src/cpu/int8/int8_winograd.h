/*
 * Convolutions of bytes with 3x3 kernels and stride 1 in fewer products, exactly: quantconv.c and others list the
 * kernel before the direct one.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

G_BEGIN_DECLS

extern const HnKernel hn_cpu_int8_winograd;
/* How many times as fast as the direct one it computes the step; 1: it does not. */
double hn_int8_winograd_gain(const HnStep *s);

#define HN_INT8_POINTS 36 /* of a tile of 4x4 outputs, which sees 6x6 inputs */

/* Sums at the points of one tile to its 4x4 sums of outputs. */
typedef struct {
    const int32_t *m; /* [points][plane] */
    int64_t plane;
    const int32_t *begin; /* [columns of a panel] is added */
    int32_t *c;           /* [4][line]: 4 rows of a panel each */
    int64_t line;
    gboolean whole; /* more columns than half of a panel */
} HnInt8Outputs;

G_END_DECLS
