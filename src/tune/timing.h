/*
 * How long models take, node by node and as wholes.
 */
#pragma once

#include "tune/journal.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct {
    const HnBackend *backend;
    int threads;
    HnTensor *const *in; /* one sample */
    double seconds;      /* of runs, of each model */
    HnBudget *budget;
    const HnProgress *progress;
} HnTimingOptions;

/* Own time of each node of m, by the name of its first output; what was computed along with it is its own, and so are
 * reorders of a value that of its name. Errors: those of hn_session_new() and hn_session_run(). */
HnNodeTimes *hn_node_times_measure(HnModel *m, const HnTimingOptions *o, GError **error);

/* NULL: not measured. */
const HnNodeTime *hn_node_time(const HnNodeTimes *t, const char *name);

G_END_DECLS
