/*
 * How long models take, node by node and as wholes.
 */
#pragma once

#include "quant/journal.h"
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

/* Of a node as integers, by what its form is made of: sums in integers (`NAME_sums`) and, where operators are on
 * integers, a quantized result (`NAME_q`) too, which is a conversion otherwise. NaN: not measured. */
double hn_node_integer_ms(const HnNodeTimes *t, const char *name, gboolean operators);

G_END_DECLS
