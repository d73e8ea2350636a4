/*
 * Sizes for dimensions that a model leaves open and of which nobody said anything: 1 where the model accepts it, else
 * the first of a list of growing sizes.
 */
#pragma once

#include "base/budget.h"
#include "data/input_shapes.h"

G_BEGIN_DECLS

#define HN_OPEN_NAMELESS 3 /* inputs of which both sizes are tried for dimensions without a name */

typedef struct {
    int64_t first, other; /* of open dimensions in front, and of others */
    guint small;          /* bit i: the i-th input with dimensions without a name has `first` for the others too */
} HnOpenSizes;

/* The i-th size to try for `other`, growing from 1; 0: there is none. */
int64_t hn_open_size(int i);

/* Inputs whose file leaves dimensions open without a name, others than the first; at most HN_OPEN_NAMELESS. */
guint hn_open_nameless(const HnValue *const *inputs, int n);

/* Gives every open dimension that s says nothing of its size. FALSE: there is none. */
gboolean hn_open_sizes_fill(HnShapes *s, const HnValue *const *inputs, int n, const HnOpenSizes *z);

/*
 * Gives the open dimensions that s says nothing of the smallest sizes with which the types of all values of the inputs'
 * graph can be inferred and no output is void; 1 mostly, and then s stays as it is. It also stays where no size does:
 * what is wrong shows when the model runs. given: per input its tensor, NULL where it is not known yet. Nodes are
 * bound. Errors: BUDGET, INTERRUPTED.
 */
gboolean hn_open_sizes_fit(HnShapes *s, HnValue *const *inputs, HnTensor *const *given, int n, HnBudget *budget,
                           GError **error);

G_END_DECLS
