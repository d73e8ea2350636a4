/*
 * What a model makes of one sample, kept: a session's own results last until its next run only.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

/* As many tensors as the session has outputs, NULL: absent; hn_outputs_free(). Errors: those of hn_session_run(). */
HnTensor **hn_outputs_run(HnSession *s, HnTensor *const *in, HnBudget *budget, GError **error);
/* Any n tensors in memory of their own; both may be NULL. */
void hn_outputs_free(HnTensor **t, int n);

G_END_DECLS
