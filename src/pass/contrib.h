/*
 * Operators on integers of ONNX Runtime's own domain, which its quantizer writes beside QLinearConv: QLinearAdd,
 * QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearAveragePool, QLinearGlobalAveragePool, QLinearConcat, QGemm.
 */
#pragma once

#include "ir/graph.h"

/* Spells each such node of the model's graph and sub-graphs out as DequantizeLinear, the operator that it is named
 * after, and QuantizeLinear. A form that these do not have (channels last, parameters that cannot be missing) stays,
 * and is not known then. Errors: BUDGET. */
gboolean hn_spell_out_contrib(HnModel *m, GError **error);
