/*
 * Comparing things that run: who is faster, by how much, and how sure that is.
 *
 * Two sessions of one model differ in speed, by what memory they happened to get, and stay so for as long as they live;
 * and a machine's speed drifts. Therefore a comparison consists of rounds. In each round every side opens an instance
 * of its own, in changing order, and blocks of runs of the sides take turns there and back (A B B A), each with the
 * same inputs; a round yields one number for each side against the first one, the median over its blocks of the ratio
 * of median times. The rounds' numbers are independent of each other, and of them the effect and its interval are made.
 */
#pragma once

#include "perf/measure.h"
#include "perf/outliers.h"

G_BEGIN_DECLS

#define HN_MAX_SIDES 16
#define HN_MAX_ROUNDS 256

typedef struct {
    int sides;
    gboolean (*open)(gpointer data, int side, GError **error); /* a new instance */
    void (*close)(gpointer data, int side); /* also after an open that failed; nothing to do where there is none */
    /* HnRunner.run of the side's instance */
    gboolean (*run)(gpointer data, int side, guint64 i, guint64 *start, guint64 *end, GError **error);
    gpointer data;
    guint64 period; /* as HnRunner.period */
} HnContest;

/*
 * INTERVAL goes on until every verdict is clear: the interval within the margin or beyond it, and decided about the
 * limit where there is one; at least 8 rounds (6 where that alone is asked), and `seconds` of runs of each side at
 * most. With `precision` it goes on until the intervals are within that of the effects instead. RUNS and TIME are for
 * each side.
 */
typedef struct {
    HnUntil until;
    guint64 runs;
    double seconds;
    double precision; /* 0: until the verdict is clear */
    double margin;    /* 0.02: a difference of 2 % is none */
    double limit;     /* 1.03: whether a side takes more than 1.03 times as long is asked; 0: is not */
    gboolean decide;  /* that is all that is asked: rounds are shorter, and verdicts may stay open */
    double useful;    /* an effect above this is of no use, decided or not: enough is known where the 95 % interval is
                         above it; 0: any is */
    /* In place of verdicts, of the first side's rounds so far, in ms: enough is known. NULL: verdicts decide. */
    gboolean (*known)(const double *ms, guint rounds, gpointer data);
    gpointer known_data;
    guint rounds;                /* that `known` asks for, to tell progress by; 0: nobody knows */
    gboolean raw;                /* keep the times, for HnMeasured.raw */
    guint64 end;                 /* ns of hn_now_ns() at which no round goes on; 0: none */
    HnOutliers *const *outliers; /* one for each side, or NULL: filled in */
} HnContestOptions;

typedef enum {
    HN_VERDICT_NONE,   /* the interval lies within the margin */
    HN_VERDICT_FASTER, /* than the first side: the interval excludes 1, and is not within the margin */
    HN_VERDICT_SLOWER,
    HN_VERDICT_NOISY, /* it holds 1, and reaches beyond the margin */
} HnVerdict;

const char *hn_verdict_name(HnVerdict v); /* "no difference", "faster", "slower", "too noisy" */
HnVerdict hn_verdict(double lo, double hi, double margin);

/*
 * Time of a side divided by that of the first one. [sure_lo, sure_hi] is the interval that decisions are made by: of
 * 99.9 %, since it is looked at again and again until it decides, and wider where rounds are few, or like those right
 * before them, which then are not as many as they seem.
 */
typedef struct {
    double effect, lo, hi; /* NaN for the interval: fewer than HN_MIN_INTERVAL rounds */
    HnVerdict verdict;
    double sure_lo, sure_hi; /* NaN as above */
} HnEffect;

#define HN_SURE 0.999

/*
 * The time of what took b (n_b medians of rounds), divided by that of what took a, when both were not measured in
 * turns: Student's interval of the difference of mean logarithms with one variance for both (M. G. Kendall and A.
 * Stuart, "The Advanced Theory of Statistics", volume 2, section 21.12), wider where rounds are like those before them,
 * and, that of decisions, where they are few. n_a may be 1: then the spread is that of b. NaN for the intervals: fewer
 * than HN_MIN_INTERVAL + 2 rounds.
 */
HnEffect hn_effect_apart(const double *a, gsize n_a, const double *b, gsize n_b, double margin);

typedef enum {
    HN_UNDECIDED, /* whatever the effect itself says */
    HN_WON,       /* it takes no more than the limit */
    HN_LOST,      /* it takes more */
} HnDecision;

/* Lost is what is beyond the limit by two hundredths and more, and by twice what the interval is wide: what one process
 * measures may be off by some of that in all its rounds, by more on a busy machine, which the interval shows, and a
 * second one must not come to the opposite. By seven hundredths none is off in all rounds. */
HnDecision hn_decide(const HnEffect *e, double limit);

typedef struct {
    HnStop stop;
    guint rounds;
    HnMeasured side[HN_MAX_SIDES];
    HnEffect effect[HN_MAX_SIDES];  /* [0] is 1 */
    double ms;                      /* of a run of the first side: the median of its rounds; times an effect it is that
                                       of the other side, by the same estimate */
    double round_ms[HN_MAX_ROUNDS]; /* of the first side, as the rounds came */
} HnContestResult;

/* Ctrl-C is no error, as in hn_measure(). Errors are those of open and run. */
gboolean hn_contest(const HnContest *contest, const HnContestOptions *options, const HnProgress *progress,
                    HnContestResult *out, GError **error);

/*
 * Location of n values that lie symmetrically about it, and its interval of that level: the median of the means of all
 * pairs (J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", 1963), and the interval that
 * inverts Wilcoxon's signed-rank test, with that test's exact distribution. n is HN_MAX_ROUNDS at most; lo and hi are
 * NaN where n is too small for the level: below HN_MIN_INTERVAL for 0.95.
 */
void hn_signed_rank(const double *x, gsize n, double level, double *mid, double *lo, double *hi);

/* How much wider an interval of n values in a row has to be, since each is like the one before: 1 for independent ones.
 * By ranks (R. Bartels, "The rank version of von Neumann's ratio test for randomness", 1982), so that single values
 * that are far off do not count. */
double hn_serial_widening(const double *x, gsize n);

G_END_DECLS
