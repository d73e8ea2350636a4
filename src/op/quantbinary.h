/*
 * hone.QuantAdd and hone.QuantMul: sums and products of two tensors of quantized numbers, or of one with numbers of
 * f32, which broadcast. Lowering makes them of DequantizeLinear, Add or Sub or Mul, Relu or Clip and QuantizeLinear; no
 * file has them.
 *
 * Inputs: a, b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero. b is of bytes with a scale, or of f32 without.
 *
 *     y_scale is 1 where it is absent, and y is f32 then
 *     QuantAdd: v = (a * A - a_zero * A) + (b * B - b_zero * B), A = a_scale / y_scale, B = b_scale / y_scale;
 *               b of f32: + b * (1 / y_scale). minus_a, minus_b: what is taken instead of added
 *     QuantMul: v = (a - a_zero) * (b * M - b_zero * M), M = a_scale * b_scale / y_scale;
 *               b of f32: (a - a_zero) * (b * (a_scale / y_scale))
 *     y = limited(v), or limited(rounded(v)) + y_zero
 *
 * in single precision, each operation rounded, halves to even. lo and hi limit the result as they limit the number that
 * it stands for.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

enum {
    HN_QUANTBINARY_A,
    HN_QUANTBINARY_B,
    HN_QUANTBINARY_A_SCALE,
    HN_QUANTBINARY_A_ZERO,
    HN_QUANTBINARY_B_SCALE,
    HN_QUANTBINARY_B_ZERO,
    HN_QUANTBINARY_Y_SCALE,
    HN_QUANTBINARY_Y_ZERO,
    HN_QUANTBINARY_INPUTS
};

typedef struct {
    float lo, hi;
    gboolean minus_a, minus_b; /* of QuantAdd */
} HnQuantBinary;

/* v as numbers: (a * a_by + a_plus) + or * (b * b_by + b_plus) */
typedef struct {
    float a_by, a_plus, b_by, b_plus;
} HnQuantBinarySteps;

/* zero points are 0 and b_scale 1 where they are absent */
HnQuantBinarySteps hn_quant_add_steps(const HnQuantBinary *p, float a_scale, int a_zero, float b_scale, int b_zero,
                                      float y_scale);
HnQuantBinarySteps hn_quant_mul_steps(float a_scale, int a_zero, float b_scale, int b_zero, float y_scale);

G_END_DECLS
