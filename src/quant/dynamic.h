/*
 * Dynamic quantization: products of integers whose activations are quantized in the range that they turn out to have.
 *
 *     q, scale, zero = DynamicQuantizeLinear(x)
 *     y = Cast(MatMulInteger(q, w, zero, w_zero)) * (scale * w_scale) + bias
 */
#pragma once

#include "quant/quant_plan.h"

G_BEGIN_DECLS

/* `nodes` (HnNode *, of m): Conv, MatMul and Gemm whose weights come from DequantizeLinear. What several of them read
 * is quantized once. Types are known (hn_graph_infer()); m has to be verified afterwards. Errors: BUDGET. */
gboolean hn_quant_make_dynamic(HnModel *m, const GPtrArray *nodes, HnBudget *budget, GError **error);

G_END_DECLS
