/*
 * Statistics of measured times: order statistics, since times have a long tail that makes means jump.
 *
 * HnTimes keeps what was measured; beyond its room it holds a random selection (a reservoir) in which
 * each time ever added is equally likely to be, so that memory stays bounded and quantiles stay unbiased. How many
 * there were, their sum and their ends are exact.
 */
#pragma once

#include "base/rng.h"

G_BEGIN_DECLS

#define HN_TIMES_MAX ((gsize)1 << 16) /* kept at most: half a MB, which tells the 99 % quantile of hours */
#define HN_MIN_INTERVAL 6             /* times below which no 95 % interval of the median exists */

typedef struct {
    double *x; /* in no order */
    gsize n;   /* kept */
    gsize room, max;
    guint64 seen; /* added */
    double sum;   /* of all that were added */
    double least, most;
    gboolean raw; /* what is made of them keeps them too, as they came */
    HnRng rng;
} HnTimes;

void hn_times_init(HnTimes *t, gsize max); /* max: kept at most; 0: HN_TIMES_MAX */
void hn_times_clear(HnTimes *t);
void hn_times_reserve(HnTimes *t); /* room for one more, so that the next add allocates nothing */
void hn_times_add(HnTimes *t, double x);
double hn_times_usual(const HnTimes *t, gsize n); /* the median of some n of them; NaN for none */

/* NaN: too few values to say. */
typedef struct {
    gsize n;
    double mean;
    double stddev; /* of a sample: divided by n - 1 */
    double min, p50, p90, p95, p99, max;
    double lo, hi; /* 95 % confidence interval of the median, see hn_median_rank() */
} HnStats;

/* Sorts x. */
void hn_stats(double *x, gsize n, HnStats *stats);
void hn_times_stats(HnTimes *t, HnStats *stats); /* the same; mean and ends are those of all times */
double hn_median(double *x, gsize n);            /* sorts x; NaN for none */

/* The quantile q in [0,1] of sorted values: linear between neighbours, so that q = 0.5 is the usual median (type 7 of
 * Hyndman and Fan, "Sample quantiles in statistical packages", 1996). NaN for none. */
double hn_quantile(const double *sorted, gsize n, double q);

/* Where a further value is, with a probability of 95 %, if n of the same normal distribution are these: mean -+ t s
 * sqrt(1
 * + 1/n), with Student's t of n - 1 degrees of freedom. n < 2: all numbers. See W. Q. Meeker, G. J. Hahn, L. A.
 * Escobar, "Statistical Intervals", 2nd edition 2017, section 4.8. */
void hn_prediction_interval(const double *x, gsize n, double *lo, double *hi);

#define HN_Z_95 1.959964  /* quantiles of the normal distribution: 0.975, ... */
#define HN_Z_999 3.290527 /* ... and 0.9995 */
/* The quantile of Student's t where that of the normal distribution is z, of 6 degrees of freedom or more, within 2 %:
 * by the expansion of Cornish and Fisher (M. Abramowitz and I. A. Stegun, "Handbook of Mathematical
 * Functions", 26.7.5). */
double hn_student(double z, gsize freedom);

/*
 * Rank r, counted from 1, such that the r-th smallest and the r-th largest of n independent values enclose the median
 * of their distribution with at least the probability level, whatever that distribution is: the largest r with 2 P(B <
 * r) <= 1 - level for B binomial (n, 1/2). 0: n is too small. See H. A. David and H. N. Nagaraja, "Order Statistics",
 * 3rd edition 2003, section 7.1.
 */
gsize hn_median_rank(gsize n, double level);

G_END_DECLS
