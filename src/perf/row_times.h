/*
 * HnRowTimes: the times of a profile's rows from many runs, most of which were disturbed somewhere.
 *
 * Other programs take time slices away and caches change hands. That hits another row in each run, so that no run as a
 * whole is typical; but most times of a row are. The estimate of a row is therefore a quantile of its own times:
 *
 *   - Times of profiled runs are scaled by the median of unprofiled / profiled time over pairs of runs made one after
 *     the other (1 at most): what profiling costs, which slow phases do not change since they meet both.
 *   - Phases in which the whole machine is slower or faster make all rows of a run longer or shorter. The pace of a run
 *     is the median of its times by the usual ones, each row weighing as much as it takes, a quarter of all at most; it
 *     is 1 where not three quarters of the weight are on one side. Times are divided by their run's pace and multiplied
 *     by the median one (J. W. Tukey's median polish, Exploratory Data Analysis, 1977, chapter 11): all rows are told
 *     in one phase, that of the median run.
 *   - The level is the median, of paces as of rows, or the lower one at which the rows add up to the unprofiled
 *     median. Of a row whose median is more than HN_ROWS_STEP above its quantile at HN_ROWS_LOWEST it is lowered
 *     further, to HN_ROWS_LOWEST from three times that on: where a row is slow in about half of the runs, chance
 *     decides of what its median is.
 *   - Medians add up to less than the median of a sum, as delays come on top of a usual time. What is missing is given
 *     to all rows in proportion, but to none beyond its 90 % quantile: up to HN_ROWS_LIFT, less and less where more is
 *     missing, and nothing from twice that on, since such a gap has other reasons.
 *
 * What is still missing to the unprofiled median is in no row's usual time: `disturbed`.
 *
 * How sure a row's time is: runs in their order are cut into HN_ROWS_PARTS parts, whose quantiles of the same level
 * differ by as much as phases of the machine make them. The 95 % interval of their mean is that of the time, but it is
 * no narrower to either side than HN_ROWS_PLACED, by which processes differ whose memory lies elsewhere (up to 3 %
 * among five of squeezenet and ultraface), nor than the row's spread: what takes 90 or 150 us from run to run, as the
 * caches are shared, had a median of 91 us in one process and of 113 in another one.
 *
 * The interval, the quantiles and the spread are of times as they were, paces included.
 *
 * Runs of other kinds (inputs of other shapes, other steps) have other times. Each of the figures is then a mean over
 * kinds, by the number of their runs.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_ROWS_LOWEST 0.2 /* level of a quantile */
#define HN_ROWS_STEP 0.05
#define HN_ROWS_LIFT 0.05
#define HN_ROWS_PARTS 8
#define HN_ROWS_PLACED 0.02

/* A profiled run. */
typedef struct {
    guint64 kind;        /* equal for runs of the same steps on inputs of the same shapes */
    guint64 number;      /* in the order in which they were made */
    double profiled;     /* ms of the whole run */
    double unprofiled;   /* ms of the unprofiled run beside it */
    double outside;      /* ms in no row */
    gboolean by_records; /* rows on a device are by records (run/device_trace.h) */
    guint n;             /* rows known when it was made; it ran none of the later ones */
    float ms[];          /* by row */
} HnRowRun;

typedef struct {
    double ms;       /* per run */
    double p10, p90; /* of all runs */
    double spread;   /* half the distance of the quartiles */
    double lo, hi;   /* 95 % interval of ms; where runs are too few for one: from p10 to p90 */
    double level;    /* of the quantile that ms is: 0.5, or lower where the row is slow in many runs */
} HnRowTime;

typedef struct {
    HnRowTime *rows;   /* n_rows of them, then that of `outside` */
    double scale;      /* what profiled times are multiplied by, up to 1 */
    double lift;       /* what quantiles are multiplied by, from 1 on */
    double unprofiled; /* median */
    double total;      /* of rows and outside */
    double disturbed;  /* by which that is below the median; 0 at least */
    guint kinds;
} HnRowTimes;

/* runs: HnRowRun *, one at least; sorts them. clock: ms by which the clock goes on at a time. Freed by
 * hn_row_times_clear(). */
void hn_row_times(GPtrArray *runs, guint n_rows, double clock, HnRowTimes *out);
void hn_row_times_clear(HnRowTimes *t);

/* Where a row may stand among n rows, the longest being number 1: no other one than those that are surely longer stand
 * before first, and no other one than those that are surely shorter behind last. */
typedef struct {
    guint first, last;
} HnRowPlaces;

void hn_row_places(const double *lo, const double *hi, guint n, HnRowPlaces *out);

G_END_DECLS
