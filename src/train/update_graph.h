/*
 * The second half of a step whose gradients are sums of micro-batches: a graph that is fed gradients, and replaces
 * weights, which another engine's session reads.
 */
#pragma once

#include "train/step_graph.h"

G_BEGIN_DECLS

#define HN_UPDATE_NAME "update" /* of nodes that belong to updates and are no optimizers */

/* Adds to g what makes the next w, elements `now`, in front of node `before` (NULL: at the end), with the states and
 * averages that the rule keeps: outputs, and HnVariables. w is a value of g that has no elements yet, or has them.
 * `scale`: it is one of integers, whose rate is in units of itself, and which does not decay.
 * Returns the next w; NULL: error. average: the name of the variable that averages w, g_free; NULL where none does. */
HnValue *hn_update_build(HnGraph *g, const HnNode *before, const HnUpdateRule *rule, HnValue *w, const HnTensor *now,
                         gboolean scale, HnValue *gradient, HnValue *numbers, GArray *variables, char **average,
                         GError **error);
/* A node that looks at all gradients: numbers whose factor keeps their norm below rule->clip, and that norm. */
HnValue *hn_update_clip(HnGraph *g, const HnUpdateRule *rule, HnValue *numbers, HnValue *const *gradients, guint n,
                        HnValue **norm);

typedef struct {
    const char *name;   /* of the weight; NULL ends a list */
    HnTensor *elements; /* a variable of the engine that reads it */
    gboolean scale;     /* as hn_update_build() */
    char *average;      /* result: g_free */
} HnUpdatedWeight;

/* Inputs: gradients in the order of the weights, then f32[4] of hn_update_rule_numbers(); result 0 is their norm where
 * the rule clips. variables: of its engine, HnVariable ended by one without a name. */
HnModel *hn_update_graph_new(const HnUpdateRule *rule, HnUpdatedWeight *weights, guint n, HnBudget *budget,
                             GArray **variables, GError **error);

G_END_DECLS
