/*
 * What no tool writes: a model that is slower, or larger, than what it was made of, or does not run. That it computes
 * something else is check/verify's to say, that it loses too much check/score's.
 *
 * Errors are GUARD where nothing else is said; `what` begins them: "the quantized model".
 */
#pragma once

#include "perf/contest.h"
#include "run/session.h"

G_BEGIN_DECLS

/* A model may take `most` of the other one's time, by hn_decide(). Errors: GUARD where it takes more, NOISE where that
 * is not known. */
gboolean hn_guard_speed(const HnEffect *e, double most, const char *what, GError **error);

/* As it is read back from what was written (HnOnnxWriteOptions.check): it runs on inputs of the model that it was made
 * of, taken in its own types. in NULL: there are none, and that it could be read is all there is to know. Other errors
 * than GUARD say nothing about the model: IO, BUDGET, INTERRUPTED. */
gboolean hn_guard_runs(HnModel *m, const HnBackend *backend, const HnSessionOptions *o, HnTensor *const *in,
                       const char *what, GError **error);

/* What a file of so many bytes may grow to by the way: a twentieth, or 512 more. */
guint64 hn_guard_room(guint64 bytes);
/* Less than there were. */
gboolean hn_guard_smaller(guint64 now, guint64 before, const char *what, GError **error);
/* At most what `option` says; 0: it says nothing. */
gboolean hn_guard_size(guint64 now, guint64 most, const char *option, const char *what, GError **error);

G_END_DECLS
