/*
 * Tensors out of text and plain bytes, for an input whose type is known; of one that is not, f32.
 *
 * Numbers are stored exactly or rounded to the type; an integer's text has no fraction, and lies in its range. Shapes
 * are what text and bytes say, or the input's where that has as many elements: its only free dimension follows from
 * them.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* Lines of numbers, apart by commas, semicolons, blanks or tabs: [lines,numbers], or [lines] of one each. A first line
 * that is no number, and lines that begin with '#', say something else. Errors: FORMAT, with the line; TYPE, BUDGET. */
HnTensor *hn_numbers_text(const char *text, gsize size, const HnValue *input, const char *name, HnBudget *budget,
                          GError **error);

/* "[1,2,3]", "[[1,2],[3,4]]", or a single number, which fills an input whose size is known (free dimensions are 1).
 * Errors: USAGE, TYPE, BUDGET. */
HnTensor *hn_numbers_list(const char *text, const HnValue *input, HnBudget *budget, GError **error);

/* The elements themselves, little-endian. A first dimension that is free, or that they make up more than once, counts
 * rows. Errors: FORMAT: no whole number of elements or rows; TYPE; BUDGET. */
HnTensor *hn_numbers_raw(GBytes *bytes, const HnValue *input, const char *name, HnBudget *budget, GError **error);

/* The input's shape where t has as many elements and its rank is another one; takes t. */
HnTensor *hn_numbers_fit(HnTensor *t, const HnValue *input);

G_END_DECLS
