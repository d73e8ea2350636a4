/*
 * What a model consists of and needs: the two columns of a report on before and after.
 */
#pragma once

#include "data/input_shapes.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct {
    guint nodes;           /* sub-graphs included */
    GHashTable *operators; /* name, with its domain where that is not the default -> GUINT_TO_POINTER(count) */
    guint weights;         /* initializers, and tensors of Constant nodes */
    guint64 weight_bytes;
    guint64 duplicate_bytes; /* of weights that are equal to another one */
    int64_t opset;
    double flops;          /* of one run; NaN: not all shapes are known */
    guint64 planned_bytes; /* of the arena of one run; 0: not known */
} HnFacts;

/* Dimensions that are open are as `shapes` says. A model that cannot be planned, or that has functions,
 * has facts all the same. m stays as it is. */
void hn_facts(HnModel *m, const HnShapes *shapes, HnBudget *budget, HnFacts *facts);
void hn_facts_clear(HnFacts *facts);

/* Bytes in the data files beside a model read from `path` that none of its tensors refers to. */
guint64 hn_orphaned_bytes(const HnModel *m, const char *path);

G_END_DECLS
