/*
 * A model made ready for quantization: functions unfolded, halves widened to f32, simplified, tied weights tied again,
 * of an opset that the forms need, and its values named apart (hn_model_name_apart()).
 */
#pragma once

#include "base/progress.h"
#include "ir/graph.h"

G_BEGIN_DECLS

/* m in its new form, m is used up: weights are initializers wherever that is possible, BatchNormalization is part of
 * the convolution before it. opset: at least that. Errors: those of hn_convert_opset(), GRAPH, BUDGET, INTERRUPTED. */
HnModel *hn_quant_prepare(HnModel *m, int64_t opset, HnBudget *budget, const HnProgress *progress, GError **error);

G_END_DECLS
