/*
 * HnScorer: how far a quantized model's outputs are from those of the model that it was made of.
 */
#pragma once

#include "base/progress.h"
#include "data/data.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef enum {
    HN_METRIC_TOP1, /* share of rows of the first output whose largest score is where the original's, or the label, is
                     */
    HN_METRIC_COS,  /* mean cosine of all float outputs over all samples */
    HN_METRIC_SQNR, /* dB, of all float outputs and samples together */
} HnMetric;

gboolean hn_metric_name_parse(const char *name, HnMetric *metric, GError **error); /* "top1", "cos", "sqnr": USAGE */
const char *hn_metric_name(HnMetric metric);

typedef struct {
    double top1; /* NaN: no output holds class scores */
    double cos, sqnr;
    double worst_cos; /* of a single output of a single sample */
} HnScore;

typedef struct HnScorer HnScorer;

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    const HnProgress *progress;
} HnScorerOptions;

/* Runs `original` on samples [first, first + n) of d, and keeps what comes out. The model's inputs are d's. */
HnScorer *hn_scorer_new(HnModel *original, const HnData *d, int64_t first, int64_t n, const HnScorerOptions *o,
                        GError **error);
void hn_scorer_free(HnScorer *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnScorer, hn_scorer_free)

/* Runs m on the same samples. */
gboolean hn_scorer_run(HnScorer *s, HnModel *m, HnScore *score, GError **error);
/* The original held against the labels, or against itself. */
void hn_scorer_original(const HnScorer *s, HnScore *score);
/* The first output holds class scores: [N, C] or [C] with C of 8 and more, or there are labels. */
gboolean hn_scorer_has_classes(const HnScorer *s);
guint hn_scorer_samples(const HnScorer *s);
HnTensor *const *hn_scorer_inputs(const HnScorer *s, guint i);

/* By how much a score is below the original's, as a fraction: of top1, of 1 for the cosine; negative is better. */
double hn_score_drop(HnMetric metric, const HnScore *score, const HnScore *original);

G_END_DECLS
