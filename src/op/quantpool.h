/*
 * hone.QuantAveragePool: AveragePool, or the mean over all spatial axes, of quantized numbers. Lowering makes it of
 * DequantizeLinear, AveragePool or GlobalAveragePool or ReduceMean, Relu or Clip and QuantizeLinear; no file has it.
 *
 * Inputs: x, x_scale, x_zero, y_scale, y_zero. The zero points may be absent.
 *
 *     sum = sum over the window of (x - x_zero), as integers
 *     y_scale absent: y = limited(sum * (x_scale / elements)), f32
 *     else            y = limited(rounded(sum * (x_scale / y_scale / elements))) + y_zero
 *
 * in single precision, each operation rounded, halves to even. lo and hi limit the result as they limit the number that
 * it stands for. A window that holds nothing gives 0.
 */
#pragma once

#include "op/pool.h"

G_BEGIN_DECLS

enum { HN_MEAN_X, HN_MEAN_X_SCALE, HN_MEAN_X_ZERO, HN_MEAN_Y_SCALE, HN_MEAN_Y_ZERO, HN_MEAN_INPUTS };

typedef struct {
    HnPool pool;
    gboolean whole; /* one window, of all spatial axes ... */
    gboolean flat;  /* ... which the result does not have */
    float lo, hi;
} HnQuantPool;

/* As hn_pool_place(); dims have x's rank in any case. */
gboolean hn_quant_pool_place(const HnQuantPool *p, int ndim, const int64_t *x, HnWindowAxis *axes, int64_t *dims,
                             GError **error);

G_END_DECLS
