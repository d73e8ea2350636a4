/*
 * Runs a model on samples, node by node, and notes how large the elements of every float tensor get, in sub-graphs too,
 * and how large sums inside the nodes get (HnOp.range). A result goes after its last reader: memory does not grow with
 * the number of nodes.
 *
 *     g_autoptr(HnObserver) w = hn_observer_new(m, &hn_backend_cpu, &(HnObserveOptions){ 0 }, &error);
 *     for (each sample of hn_observer_input(w, i)) hn_observer_run(w, in, &error);
 *     hn_convert_precision(copy, &(HnPrecisionOptions){ .to = HN_F16, .ranges = hn_observer_ranges(w) }, ...);
 */
#pragma once

#include "base/progress.h"
#include "op/range.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnObserver HnObserver;

typedef struct {
    int threads; /* 0: hn_cpu_threads() */
    uint64_t seed;
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL; outlives it */
} HnObserveOptions;

/* The model outlives the observer; calls of its functions are inlined in it. Errors: those of hn_session_new(). */
HnObserver *hn_observer_new(HnModel *m, const HnBackend *backend, const HnObserveOptions *o, GError **error);
void hn_observer_free(HnObserver *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnObserver, hn_observer_free)

/* Inputs of the samples, as hn_session_input(). */
int hn_observer_n_inputs(const HnObserver *w);
const HnValue *hn_observer_input(const HnObserver *w, int i);

/* One more sample. Errors: INTERRUPTED, and those of hn_session_run(). */
gboolean hn_observer_run(HnObserver *w, HnTensor *const *in, GError **error);

/* What was seen so far; lives as long as the observer. */
const HnRanges *hn_observer_ranges(const HnObserver *w);

G_END_DECLS
