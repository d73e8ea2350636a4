/*
 * HnScore and HnGoals: how far a model is from the one that it was made of, and how far it may be.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
    HN_METRIC_TOP1,   /* share of rows of an output of classes whose largest score is where the original's, or the
                         label, is; of labels the share that is the same */
    HN_METRIC_COS,    /* the lowest of the outputs' cosines, each the mean over samples and kinds of numbers; scores
                         among other kinds are left out. It does not see magnitude */
    HN_METRIC_SQNR,   /* dB, of all float outputs and samples together; where there are labels alone, of these: 20 dB is
                         one in a hundred that is another one */
    HN_METRIC_SCORES, /* change of strong scores, in that output where it is largest: of a channel's best one, in any
                         sample (with many samples: twice the root mean square over them), or half the root mean square
                         over all strong ones (where there are none, over the ten best). Strong is what is
                         HN_STRONG_SCORE at least, before or after; below that a score is a no, however far. Classes'
                         probabilities with one more score beside them count as products with it (check/channel_kinds.h)
                       */
    HN_METRIC_R2,     /* coefficient of determination: 1 - mean square of the error / size of the numbers^2, of each
                         kind of number in each output; the lowest (check/output_score.h) */
    HN_METRIC_CMD,    /* what a program says of the model's file */
    HN_METRIC_NONE,   /* of an output: it is not judged */
    HN_METRICS
} HnMetric;

#define HN_STRONG_SCORE 0.5

const char *hn_metric_name(HnMetric metric);

/* What the user wants to be judged by. */
typedef struct {
    gboolean given;      /* `all` is */
    HnMetric all;        /* of all outputs that `of` does not name */
    const char *command; /* of HN_METRIC_CMD, in the text that was parsed; else NULL */
    guint n;
    struct {
        HnMetric metric;
        char *output;
    } * of;
} HnMetricChoice;

/* "top1", "cos", "sqnr", "scores", "r2", or "cmd:PROGRAM" alone; or a list of NAME@OUTPUT with commas between, where
 * NAME may also be "none". USAGE. hn_metric_choice_clear(), also of what failed. */
gboolean hn_metric_choice_parse(const char *text, HnMetricChoice *out, GError **error);
void hn_metric_choice_clear(HnMetricChoice *c);

typedef struct {
    double top1; /* NaN: no output holds classes or labels */
    double cos, sqnr;
    double worst_cos;   /* of a single kind in a single output of a single sample */
    double scores;      /* change; NaN: no output holds scores */
    double command;     /* NaN: no program was named */
    double r2;          /* NaN: no output is judged by it */
    int at[HN_METRICS]; /* the output that says so; -1: none by itself */
} HnScore;

/* By how much a score is below the original's, as a fraction: of 1 for top1, the cosine, r2 and scores, of the
 * original's number for a program, noise over signal for sqnr; negative is better. */
double hn_score_drop(HnMetric metric, const HnScore *score, const HnScore *original);

/* What has to hold: no drop is larger than its `most`. */
#define HN_MAX_GOALS HN_METRICS
typedef struct {
    int n;
    struct {
        HnMetric metric;
        double most;
    } goal[HN_MAX_GOALS];
} HnGoals;

/* NaN: 1 %, of a cosine 0.1 %, of r2 0.2 %, of scores 2 %. */
void hn_goals_add(HnGoals *g, HnMetric metric, double most);
gboolean hn_goals_met(const HnGoals *g, const HnScore *score, const HnScore *original);
/* The largest drop over its limit: up to 1 the goals are met. */
double hn_goals_part(const HnGoals *g, const HnScore *score, const HnScore *original);
/* Of the goal that is nearest to its limit, or furthest beyond it: the drop; *which may be NULL. */
double hn_goals_drop(const HnGoals *g, const HnScore *score, const HnScore *original, int *which);

G_END_DECLS
