/*
 * Runs a model on samples, node by node, and notes how large the elements of every float tensor get, in sub-graphs too,
 * and how large sums inside the nodes get (HnOp.range). A result goes after its last reader: memory does not grow with
 * the number of nodes.
 *
 *     g_autoptr(HnRangeProbe) w = hn_range_probe_new(m, &hn_backend_cpu, &(HnRangeProbeOptions){ 0 }, &error);
 *     for (each sample of hn_range_probe_input(w, i)) hn_range_probe_run(w, in, &error);
 *     hn_convert_precision(copy, &(HnPrecisionOptions){ .to = HN_F16, .ranges = hn_range_probe_ranges(w) }, ...);
 */
#pragma once

#include "base/progress.h"
#include "op/range.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnRangeProbe HnRangeProbe;

typedef struct {
    int threads; /* 0: hn_cpu_threads() */
    uint64_t seed;
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL; outlives it */
} HnRangeProbeOptions;

/* The model outlives the probe; calls of its functions are inlined in it. Errors: those of hn_session_new(). */
HnRangeProbe *hn_range_probe_new(HnModel *m, const HnBackend *backend, const HnRangeProbeOptions *o, GError **error);
void hn_range_probe_free(HnRangeProbe *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnRangeProbe, hn_range_probe_free)

/* Inputs of the samples, as hn_session_input(). */
int hn_range_probe_n_inputs(const HnRangeProbe *w);
const HnValue *hn_range_probe_input(const HnRangeProbe *w, int i);

/* One more sample. Errors: INTERRUPTED, and those of hn_session_run(). */
gboolean hn_range_probe_run(HnRangeProbe *w, HnTensor *const *in, GError **error);

/* What was seen so far; lives as long as the probe. */
const HnRanges *hn_range_probe_ranges(const HnRangeProbe *w);

G_END_DECLS
