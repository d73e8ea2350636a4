/*
 * HnCalibrator: histograms of a model's values over a stream of samples, in constant memory.
 *
 *     g_autoptr(HnCalibrator) c = hn_calibrator_new(m, &hn_backend_cpu, &(HnCalibrateOptions){ 0 }, &error);
 *     g_autoptr(HnData) d = hn_data_open("calib/", ..., &error);     inputs of hn_calibrator_input()
 *     g_autoptr(HnDataIter) it = hn_data_iter_new(d, &(HnDataIterOptions){ .threads = 1 });
 *     if (!hn_calibrator_stream(c, it, &error)) ...
 *     hn_quant_span_of(hn_calibrator_get(c, "conv1_out"), HN_CALIB_MSE, 0, &q, &span);
 *
 * The model runs as ever; each value is looked at when it is made, while its elements are in the processor's caches,
 * and is overwritten like in any run. What every method of range.h needs is there after this one pass. Samples may have
 * different shapes. Values are known by name, those of sub-graphs too, after hn_model_name_apart(). A view (Reshape,
 * Flatten) has the histogram of what it looks at.
 */
#pragma once

#include "base/progress.h"
#include "data/data.h"
#include "check/histogram.h"
#include "check/spread.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnCalibrator HnCalibrator;

typedef struct {
    const char *const *values;  /* NULL-terminated names; NULL: all floats that are neither weights nor constants */
    int threads;                /* 0: hn_cpu_threads() */
    uint64_t seed;              /* of random operators */
    gboolean apart;             /* what each sample shows is kept, too: memory grows with them */
    HnBudget *budget;           /* NULL: unlimited */
    const HnProgress *progress; /* may be NULL; outlives the calibrator */
} HnCalibrateOptions;

/* The model outlives the calibrator and is not edited meanwhile; calls of its functions are inlined in it, and its
 * values named apart. Errors: USAGE for a name that is no such value, and those of hn_session_new(). */
HnCalibrator *hn_calibrator_new(HnModel *m, const HnBackend *backend, const HnCalibrateOptions *o, GError **error);
void hn_calibrator_free(HnCalibrator *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnCalibrator, hn_calibrator_free)

/* Inputs of the samples, as hn_session_input(). */
int hn_calibrator_n_inputs(const HnCalibrator *c);
const HnValue *hn_calibrator_input(const HnCalibrator *c, int i);

/* Makes ready for samples like this one, and says what a pass over any number of them needs: *bytes of plans, packed
 * weights and histograms, samples not included (NULL: not asked for). Errors: BUDGET where that is more than the budget
 * has, and those of hn_session_prepare(). */
gboolean hn_calibrator_prepare(HnCalibrator *c, HnTensor *const *in, gsize *bytes, GError **error);

/* One more sample. Errors: INTERRUPTED, BUDGET, and those of hn_session_run(); what has been seen by then counts. */
gboolean hn_calibrator_run(HnCalibrator *c, HnTensor *const *in, GError **error);
/* All that is left of `it`, the first of it prepared for. */
gboolean hn_calibrator_stream(HnCalibrator *c, HnDataIter *it, GError **error);

/* No sample follows: what running them takes is given back, and histograms are what is left, so many bytes. */
void hn_calibrator_end(HnCalibrator *c);
gsize hn_calibrator_bytes(const HnCalibrator *c);

/* What all samples but i of one that keeps them apart have shown, as if it had seen these alone. Errors: BUDGET. */
HnCalibrator *hn_calibrator_without(const HnCalibrator *c, guint64 i, GError **error);

guint64 hn_calibrator_samples(const HnCalibrator *c);
/* NULL: not asked for, or none of the model's float values. Lives as long as the calibrator. */
const HnHistogram *hn_calibrator_get(const HnCalibrator *c, const char *value);
/* The same values: how samples differ. */
const HnSpread *hn_calibrator_spread(const HnCalibrator *c, const char *value);
/* Names asked for, in the order of the model. */
guint hn_calibrator_count(const HnCalibrator *c);
const char *hn_calibrator_name(const HnCalibrator *c, guint i);

G_END_DECLS
