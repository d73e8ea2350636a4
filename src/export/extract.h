/*
 * A piece of a model as a model of its own, and inputs with fewer open dimensions.
 */
#pragma once

#include "data/input_shapes.h"
#include "ir/graph.h"

G_BEGIN_DECLS

/* Keeps what computes the values named `out` (NULL-terminated; NULL: the model's outputs) from those named `in` (NULL:
 * the model's inputs); the others go. Values are the main graph's. Inputs that an output does not need go too, unless
 * `in` names them. Errors: USAGE for a name that is none, for a weight as input, and where an output needs an input of
 * the model that `in` leaves out. */
gboolean hn_extract(HnModel *m, const char *const *in, const char *const *out, GError **error);

/* Open dimensions of the inputs become numbers where `s` says so. Errors: USAGE for names that are none, SHAPE where a
 * number contradicts the model's own. */
gboolean hn_fix_shapes(HnModel *m, const HnShapes *s, GError **error);

G_END_DECLS
