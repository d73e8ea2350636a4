/*
 * Values in the middle of a model, sample by sample, as plain tensors: for what has to know which element is where,
 * unlike a watch (run/session.h). They are the model's only outputs for the time being: what follows them is not run.
 */
#pragma once

#include "base/progress.h"
#include "data/data.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    const HnProgress *progress;
    const HnData *data; /* whose inputs are the model's */
    int64_t first, n;   /* samples of it */
} HnCaptureOptions;

typedef struct HnCapture HnCapture;

/* m, which outlives it, gets the named values of its main graph for outputs for as long as the capture lives.
 * Errors: USAGE for a name that the main graph has not, those of hn_session_new(). */
HnCapture *hn_capture_new(HnModel *m, const GPtrArray *names, const HnCaptureOptions *o, GError **error);
void hn_capture_free(HnCapture *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnCapture, hn_capture_free)

/* values[i], that of names[i], stays until the next call. Errors: those of hn_session_run(), INTERRUPTED. */
gboolean hn_capture_run(HnCapture *t, const HnSample *s, HnTensor **values, GError **error);

/* Told of value i of a sample, whose number counts from the first that is looked at. FALSE with an error ends it. */
typedef gboolean (*HnCaptureFn)(gpointer data, int64_t sample, guint i, const HnTensor *value, GError **error);
/* All samples. */
gboolean hn_capture_all(HnCapture *t, HnCaptureFn fn, gpointer data, GError **error);

G_END_DECLS
