/*
 * hone.QuantConv and hone.QuantMatMul: products of 8-bit integers with what belongs to them, from the activation's
 * bytes to those of the result. Lowering makes them of DequantizeLinear, Conv or MatMul or Gemm, Relu or Clip and
 * QuantizeLinear; no file has them.
 *
 * Inputs: x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero. The weights' and the
 * result's zero point and the bias may be absent. Weights have one scale, or one for each output channel. The bias is
 * i32 (in steps of x_scale * w_scale) or f32.
 *
 *     sum = sum over (x - x_zero) * (w - w_zero), plus a bias of i32; in 32 bits that wrap
 *     y_scale absent: y = limited(sum * (x_scale * w_scale) + bias), f32
 *     else            y = limited(rounded(sum * (x_scale * w_scale / y_scale) + bias / y_scale) + y_zero)
 *
 * in single precision, each operation rounded, halves to even. lo and hi limit the result as they limit the number that
 * it stands for.
 */
#pragma once

#include "op/conv.h"

G_BEGIN_DECLS

enum {
    HN_QUANT_X,
    HN_QUANT_X_SCALE,
    HN_QUANT_X_ZERO,
    HN_QUANT_W,
    HN_QUANT_W_SCALE,
    HN_QUANT_W_ZERO,
    HN_QUANT_BIAS,
    HN_QUANT_Y_SCALE,
    HN_QUANT_Y_ZERO,
    HN_QUANT_INPUTS
};

typedef struct {
    HnConv conv; /* of QuantConv */
    float lo, hi;
    gboolean turned; /* of QuantMatMul: w is [N, K] */
} HnQuantProduct;

/* Bounds of a byte before its zero point is added. */
typedef struct {
    float lo, hi;
} HnQuantBounds;

/* Input w, if its shape is known, is a matrix, perhaps with ones behind. */
void hn_infer_matrix(HnInfer *x, int w);
/* Rows along an axis of input `rows` [..., K], times a matrix, input `w` [K, N], or [N, K] where it is turned: output 0
 * and its cost. */
void hn_linear_rows_infer(HnInfer *x, int rows, int64_t axis, int w, gboolean turned, HnDtype result);
void hn_linear_rows_cost(const HnInfer *x, HnCost *c, int w, gboolean turned);

HnQuantBounds hn_quant_bounds(const HnQuantProduct *p, HnDtype dtype, float scale, int zero);

G_END_DECLS
