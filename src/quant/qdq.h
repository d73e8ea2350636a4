/*
 * A plan carried out: QuantizeLinear and DequantizeLinear around what computes with integers, or operators on integers.
 */
#pragma once

#include "quant/pack_weights.h"
#include "quant/quant_plan.h"

G_BEGIN_DECLS

typedef struct {
    guint int8, w8, w4, dynamic; /* nodes with weights of each form */
    guint between;               /* other nodes between integers */
    guint pairs;                 /* of QuantizeLinear and DequantizeLinear */
    int64_t reduced;             /* channels with 7-bit weights */
    guint without_bias;          /* biases that stay f32 */
} HnQuantLog;

/* The opset that forms of the plan need: 13 for int8 and w8, 21 for w4. */
int64_t hn_quant_opset(const HnQuantPlan *p);

/* Rewrites m, whose types are known (hn_graph_infer()); its opset is raised where the forms need that. Weights that
 * several nodes share stay shared, in whichever form. Errors: GRAPH where a span is missing, BUDGET. */
gboolean hn_quant_apply(const HnQuantPlan *p, HnModel *m, HnBudget *budget, HnQuantLog *log, GError **error);

/* The integers of weight v as n wants them in its form, each the nearest to its weight. x_scale: of what it is
 * multiplied by, as far as that is integers; else 0. Errors: BUDGET. */
gboolean hn_quant_pack(const HnQuantPlan *p, const HnNode *n, const HnValue *v, float x_scale, HnBudget *budget,
                       HnPacked *k, GError **error);

G_END_DECLS
