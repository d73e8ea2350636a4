/*
 * HnScorer: how far a quantized model's outputs are from those of the model that it was made of.
 *
 * Each output is judged by what it holds (check/output_score.h), and the worst one decides.
 */
#pragma once

#include "base/progress.h"
#include "check/output_score.h"
#include "data/data.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnScorer HnScorer;

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    const HnProgress *progress;
    const HnMetricChoice *choice; /* what the user wants; may be NULL */
} HnScorerOptions;

/* `original`, which is taken, judges others on n >= 1 samples of d from `first` on. The model's inputs are d's, which
 * outlives the scorer. */
HnScorer *hn_scorer_new(HnModel *original, const HnData *d, int64_t first, int64_t n, const HnScorerOptions *o,
                        GError **error);
void hn_scorer_free(HnScorer *s);
/* Bytes of results that one keeps of n samples, with so many bytes each. */
gsize hn_scorer_kept_bytes(int64_t n, gsize results);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnScorer, hn_scorer_free)

/*
 * What is asked for: what the choice says, else of classes and labels top1, of strong scores their change, and of all
 * but labels r2. max_drop NaN: hn_goals_add(). Otherwise it is the limit of the first goal, and of those behind the
 * same part of what they have else, but for scores no less.
 */
void hn_scorer_goals(const HnScorer *s, double max_drop, HnGoals *out);

/* Runs m on the same samples. */
gboolean hn_scorer_run(HnScorer *s, HnModel *m, HnScore *score, GError **error);
/* The same without the program. db: of each sample, of all outputs together, infinite where nothing differs; or NULL.
 */
gboolean hn_scorer_look(HnScorer *s, HnModel *m, double *db, HnScore *score, GError **error);

/* The same, and without[i], of n samples: what m says of all samples but i. */
gboolean hn_scorer_run_without(HnScorer *s, HnModel *m, HnScore *score, HnScore *without, GError **error);

/* Each sample by a model of its own: made without it, say. */
typedef struct {
    HnModel *(*made)(gpointer data, int64_t i, GError **error); /* that the scorer frees; from any thread */
    gpointer data;
    int workers; /* models at a time, each on its part of the threads; 0: 1 */
    double *db;  /* as above */
} HnScorerEach;

gboolean hn_scorer_run_each(HnScorer *s, const HnScorerEach *each, HnScore *score, GError **error);
/* The original held against the labels, or against itself. */
void hn_scorer_original(const HnScorer *s, HnScore *score);
/* How each output did in the last run. */
int hn_scorer_n_outputs(const HnScorer *s);
const char *hn_scorer_output_name(const HnScorer *s, int k);
HnOutputKind hn_scorer_output_kind(const HnScorer *s, int k);
const HnOutputScore *hn_scorer_output(const HnScorer *s, int k);
/* Names of outputs that are empty, or not there, in all samples, and so judged by nothing; freed with the array. */
GPtrArray *hn_scorer_empty(const HnScorer *s);
gint64 hn_scorer_samples(const HnScorer *s);
HnTensor *const *hn_scorer_inputs(const HnScorer *s); /* of the first sample */

G_END_DECLS
