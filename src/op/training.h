/*
 * HnTraining: what becomes of a node while the model that it is of is trained (HnOp.train).
 *
 * A record's `train` edits the node, which is of the newest form and bound, or builds others in its place: statistics
 * are those of the batch, elements are dropped. A weight that each step replaces although it has no gradient is named
 * by hn_training_replaces().
 */
#pragma once

#include "ir/build.h"
#include "op/op.h"

G_BEGIN_DECLS

typedef struct HnTraining {
    HnNode *node;
    const void *params;
    const HnBuild *build;     /* in front of the node */
    HnValue *state;           /* i64[2]: a seed, and the number of the step */
    int64_t salt;             /* tells the nodes of a model apart */
    gboolean keep_statistics; /* normalizations go on with the moments that the file holds */
    const HnTensor *(*elements)(const struct HnTraining *t, const HnValue *v); /* of a value; NULL: not known */
    gpointer data;
    GPtrArray *replaced, *next; /* HnValue *: weights, and the values that they become */
} HnTraining;

static inline void hn_training_replaces(HnTraining *t, HnValue *weight, HnValue *next)
{
    g_ptr_array_add(t->replaced, weight);
    g_ptr_array_add(t->next, next);
}

G_END_DECLS
