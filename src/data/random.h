/*
 * Made-up inputs.
 */
#pragma once

#include "base/rng.h"
#include "data/input_shapes.h"

G_BEGIN_DECLS

/*
 * A tensor of the input's type, its dims as shapes says. Floats are normally distributed with deviation 1, u8 covers
 * its range, bools and integers whose name says mask are 0 or 1 with a 1 at the start of each row. Other integers are
 * ids: 0 to 9, and below the length of any table that the model looks them up in; a scalar or one for each sequence
 * whose name says "len" is the second dimension of the first input that has two. Errors as hn_shapes_dims();
 * UNSUPPORTED for types that are not computed with, and for sizes that only the file chose and that nobody would want
 * to have made up; BUDGET, INTERRUPTED.
 */
HnTensor *hn_random_tensor(HnRng rng, const HnValue *input, const HnShapes *shapes, HnBudget *budget, GError **error);

/* Numbers that the model compares a single element of the input with, at once or behind a few nodes that keep values:
 * those that its branches hang on. Up to `max` different ones into x; how many. */
int hn_random_choices(const HnValue *input, double *x, int max);

G_END_DECLS
