/*
 * HnScorer: how far a quantized model's outputs are from those of the model that it was made of.
 *
 * Numbers of different kinds in one output (check/channel_kinds.h) are held apart. Scores, which are all within [0, 1],
 * have a measure of their own beside the cosine: a detector is judged by its strong scores, and these are few.
 */
#pragma once

#include "base/progress.h"
#include "data/data.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef enum {
    HN_METRIC_TOP1,   /* share of rows of the first output whose largest score is where the original's, or the
                         label, is */
    HN_METRIC_COS,    /* the lowest of the outputs' cosines, each the mean over samples and kinds of numbers; scores
                         among other kinds are left out */
    HN_METRIC_SQNR,   /* dB, of all float outputs and samples together */
    HN_METRIC_SCORES, /* change of strong scores, in that output where it is largest: of a channel's best one, in any
                         sample (with many samples: twice the root mean square over them), or half the root mean square
                         over all strong ones (where there are none, over the ten best). Strong is what is
                         HN_STRONG_SCORE at least, before or after; below that a score is a no, however far. Classes'
                         probabilities with one more score beside them count as products with it (check/channel_kinds.h)
                       */
    HN_METRIC_CMD,    /* what a program says of the model's file */
} HnMetric;

#define HN_STRONG_SCORE 0.5

/* "top1", "cos", "sqnr", "scores", "cmd:PROGRAM": USAGE. *command: what is behind "cmd:", in `name`; else NULL. */
gboolean hn_metric_name_parse(const char *name, HnMetric *metric, const char **command, GError **error);
const char *hn_metric_name(HnMetric metric);

typedef struct {
    double top1; /* NaN: no output holds class scores */
    double cos, sqnr;
    double worst_cos; /* of a single kind in a single output of a single sample */
    double scores;    /* change; NaN: no output holds scores */
    double command;   /* NaN: no program was named */
} HnScore;

/* By how much a score is below the original's, as a fraction: of 1 for top1, the cosine and scores, of the original's
 * number for a program, noise over signal for sqnr; negative is better. */
double hn_score_drop(HnMetric metric, const HnScore *score, const HnScore *original);

/* What has to hold: no drop is larger than its `most`. */
#define HN_MAX_GOALS 2
typedef struct {
    int n;
    struct {
        HnMetric metric;
        double most;
    } goal[HN_MAX_GOALS];
} HnGoals;

gboolean hn_goals_met(const HnGoals *g, const HnScore *score, const HnScore *original);
/* The largest drop over its limit: up to 1 the goals are met. */
double hn_goals_part(const HnGoals *g, const HnScore *score, const HnScore *original);
/* One metric alone. */
void hn_goals_one(HnMetric metric, double max_drop, HnGoals *out);
/* Of the goal that is nearest to its limit, or furthest beyond it: the drop; *which may be NULL. */
double hn_goals_drop(const HnGoals *g, const HnScore *score, const HnScore *original, int *which);

typedef struct HnScorer HnScorer;

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    const HnProgress *progress;
    const char
        *command; /* of HN_METRIC_CMD: gets the path of a model, prints a number; larger is better. May be NULL */
} HnScorerOptions;

/* `original`, which is taken, judges others on n >= 1 samples of d from `first` on. The model's inputs are d's, which
 * outlives the scorer. */
HnScorer *hn_scorer_new(HnModel *original, const HnData *d, int64_t first, int64_t n, const HnScorerOptions *o,
                        GError **error);
void hn_scorer_free(HnScorer *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnScorer, hn_scorer_free)

/*
 * What is asked for where nothing else is said: with labels, or an output [N, C] of 8 classes and more, top1 and a
 * cosine that may lose as much; else the cosine, and the scores where there are any. max_drop NaN: 1 %, of a cosine
 * that stands first 0.1 %, of scores 2 %.
 */
void hn_scorer_goals(const HnScorer *s, double max_drop, HnGoals *out);

/* Runs m on the same samples. */
gboolean hn_scorer_run(HnScorer *s, HnModel *m, HnScore *score, GError **error);
/* The original held against the labels, or against itself. */
void hn_scorer_original(const HnScorer *s, HnScore *score);
gint64 hn_scorer_samples(const HnScorer *s);
HnTensor *const *hn_scorer_inputs(const HnScorer *s); /* of the first sample */

G_END_DECLS
