/*
 * Operators that take integers, in the place of those that stand between DequantizeLinear and QuantizeLinear.
 *
 *   QLinearConv, QLinearMatMul       one scale for the whole weight, the result quantized
 *   ConvInteger, MatMulInteger       other scales, which the sums are multiplied with, or a result that is f32
 *   MaxPool, Concat, Transpose, ...  of the integers themselves, where numbers only change places
 *
 * What ONNX Runtime 1.31 and OpenVINO 2026 both make right of them (test/onnx/quantized.py holds on to it):
 *
 *   operator       activations  weights  scales of the weights
 *   QLinearConv    u8, s8       s8       one: OpenVINO takes a list for one of input channels
 *   QLinearMatMul  u8, s8       s8       one: OpenVINO takes no list
 *   ConvInteger    u8           u8       any; one zero point: ONNX Runtime takes no list, and older ones no s8
 *   MatMulInteger  u8           s8       any
 */
#pragma once

#include "quant/quant_plan.h"

G_BEGIN_DECLS

/* Errors: USAGE for options that do not go together in some runtime, with the nearest that do. */
gboolean hn_quant_check(const HnQuantOptions *o, gboolean dynamic, GError **error);

/* m, as hn_quant_apply() makes it with QuantizeLinear and DequantizeLinear, in integers wherever that gives the same
 * but for rounding. Types are known (hn_graph_infer()); m has to be verified afterwards. Errors: BUDGET. */
gboolean hn_quant_make_integers(HnModel *m, HnBudget *budget, GError **error);

G_END_DECLS
