/*
 * Running something again and again and keeping the time of each run: warm-up, then measuring.
 *
 * What runs is a function that takes its own two clock stamps, right around the work; everything else happens outside
 * of them. Runs are made in slices of at most half a second. Within a slice there is nothing but runs, their times
 * going into memory reserved before the run; between slices the interval is computed, progress is told, and then one
 * run is made that does not count, since all this has filled the caches with other things (where runs are long enough
 * not to notice, it is left out).
 */
#pragma once

#include "base/progress.h"
#include "perf/outliers.h"
#include "perf/stats.h"

G_BEGIN_DECLS

typedef struct {
    /* Run i of a phase, i counting from 0, with the clock (ns) right before and right after it. */
    gboolean (*run)(gpointer data, guint64 i, guint64 *start, guint64 *end, GError **error);
    gpointer data;
    guint64 period; /* runs after which the same inputs come again, at least 1 */
} HnRunner;

/*
 * AUTO makes blocks of runs: whole periods that take 50 ms or more together, at least one run. It ends when the medians
 * of three blocks in a row lie within 2 % of each other: after 3 runs at the earliest, and after two seconds where the
 * times do not settle (but not before 3 runs).
 */
typedef enum {
    HN_WARMUP_AUTO,
    HN_WARMUP_RUNS, /* so many runs */
    HN_WARMUP_TIME, /* runs until so many seconds have passed */
} HnWarmupKind;

typedef struct {
    HnWarmupKind kind;
    guint64 runs;
    double seconds;
} HnWarmup;

gboolean hn_warmup_parse(const char *text, HnWarmup *warmup, GError **error); /* "auto", "3", "200ms", "0": USAGE */

typedef struct {
    guint64 runs;
    double ms;        /* from the first run's start to the last one's end */
    gboolean steady;  /* the medians agreed; FALSE also where that was not looked at */
    double median_ns; /* of the last block; 0: not looked at */
} HnWarmedUp;

/* Errors are those of run, and INTERRUPTED. */
gboolean hn_warm_up(const HnRunner *runner, const HnWarmup *warmup, const HnProgress *progress, HnWarmedUp *out,
                    GError **error);

/*
 * INTERVAL stops when both ends of the median's 95 % interval are within `precision` of the median, and after `seconds`
 * in any case. It looks after half a second, 10 runs and a whole period, and then whenever the time measured has grown
 * by a quarter: each look is a further chance to stop by luck.
 */
typedef enum {
    HN_UNTIL_INTERVAL,
    HN_UNTIL_RUNS, /* `runs` runs */
    HN_UNTIL_TIME, /* `seconds`, and at least HN_MIN_INTERVAL runs */
} HnUntil;

typedef enum {
    HN_STOP_INTERVAL, /* it is narrow enough */
    HN_STOP_LIMIT,    /* it is not, but the time was over */
    HN_STOP_RUNS,
    HN_STOP_TIME,
    HN_STOP_INTERRUPTED,
} HnStop;

const char *hn_stop_name(HnStop stop); /* "interval", ... */

typedef struct {
    HnUntil until;
    guint64 runs;
    double seconds;
    double precision;     /* 0.01: 1 % */
    gboolean warm;        /* there was a warm-up: caches are warmed again before the first run, too */
    gboolean raw;         /* keep the times */
    HnOutliers *outliers; /* initialised; gets those found, finished. NULL: not looked for */
} HnMeasureOptions;

#define HN_CURVE 101 /* points of HnMeasured.curve */

typedef struct {
    HnStop stop;
    guint64 runs; /* runs 0 to runs - 1 of the measuring phase count; those that warmed caches again do not */
    double busy;  /* seconds, of all runs together */
    double wall;  /* seconds in which they ran: less than busy where several ran at once */
    HnStats ms;   /* of one run, in milliseconds; n is below `runs` where HnTimes made a selection */
    gsize bytes;  /* of memory that measuring took for itself */
    double *raw;  /* where asked for: the `ms.n` times in ms, in their order where none were left out; g_free */
    double curve[HN_CURVE]; /* quantiles 0 %, 1 % ... 100 %, in milliseconds */
} HnMeasured;

/* Of times in nanoseconds, which it sorts. */
void hn_measured_from(HnTimes *times, HnStop stop, HnMeasured *out);

/* Ctrl-C is no error here: it ends measuring, and what was measured until then is in out. Errors are those of run. */
gboolean hn_measure(const HnRunner *runner, const HnMeasureOptions *options, const HnProgress *progress,
                    HnMeasured *out, GError **error);

G_END_DECLS
