/*
 * A plan carried out: QuantizeLinear and DequantizeLinear around what computes with integers.
 */
#pragma once

#include "quant/plan.h"

G_BEGIN_DECLS

typedef struct {
    guint int8, w8, w4; /* nodes with weights of each form */
    guint between;      /* other nodes between integers */
    guint pairs;        /* of QuantizeLinear and DequantizeLinear */
    int64_t reduced;    /* channels with 7-bit weights */
    guint without_bias; /* biases that stay f32 */
} HnQuantLog;

/* The opset that forms of the plan need: 13 for int8 and w8, 21 for w4. */
int64_t hn_quant_opset(const HnQuantPlan *p);

/* Rewrites m, whose types are known (hn_graph_infer()) and whose opset suffices. Weights that several nodes share stay
 * shared, in whichever form. Errors: GRAPH where a span is missing, BUDGET. */
gboolean hn_quant_apply(const HnQuantPlan *p, HnModel *m, HnBudget *budget, HnQuantLog *log, GError **error);

G_END_DECLS
