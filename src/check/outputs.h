/*
 * What goes into a model in its own types, and what it makes of one sample, kept: a session's own results last until
 * its next run only.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

/* A new reference to t, or its elements in another float type; NULL: error. */
HnTensor *hn_input_as(HnTensor *t, HnDtype dtype, HnBudget *budget, GError **error);
/* In the float type that the model's input declares. */
HnTensor *hn_input_for(const HnValue *input, HnTensor *t, HnBudget *budget, GError **error);

/* As many tensors as the session has outputs, NULL: absent; hn_outputs_free(). Errors: those of hn_session_run(). */
HnTensor **hn_outputs_run(HnSession *s, HnTensor *const *in, HnBudget *budget, GError **error);
/* t as one tensor of numbers, labels or text that has its elements, t itself where it is one: a complex number is two
 * along a new last axis; of a sequence, an optional or a map what is a number with a fraction, or else all whole
 * numbers, or else text: [parts, elements] where all parts have as many, else [elements]. A new reference; NULL: error.
 */
HnTensor *hn_output_plain(HnTensor *t, HnBudget *budget, GError **error);
/* Any n tensors in memory of their own; both may be NULL. */
void hn_outputs_free(HnTensor **t, int n);

/* Plans s for inputs of the types of these, without running; NULL: an input of no type. */
gboolean hn_outputs_plan(HnSession *s, HnTensor *const *in, GError **error);

G_END_DECLS
