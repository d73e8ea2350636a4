#include "perf/row_times.h"

#include <math.h>
#include <string.h>

#include "perf/stats.h"

#define STUDENT 2.365      /* 95 % of a t distribution of HN_ROWS_PARTS - 1 degrees of freedom */
#define LEVELS 13          /* from HN_ROWS_LOWEST to 0.5; linear in between */
#define MOST_OF_VOTES 0.25 /* of all, that a row has on the pace of a run */
#define SWEEPS 3           /* in which rows and runs are told apart in turn; further ones change 0.1 % at most */

/* Of one row; means over kinds. */
typedef struct {
    double at[LEVELS]; /* at the median pace; all else at that of each run */
    double p10, p25, p75, p90;
    double highest;  /* level that is trusted, from 0 to LEVELS - 1 */
    double variance; /* of ms, in profiled time; NaN: not known */
} Quantiles;

static int by_kind(gconstpointer a, gconstpointer b)
{
    const HnRowRun *x = *(HnRowRun *const *)a, *y = *(HnRowRun *const *)b;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_kind_and_number(gconstpointer a, gconstpointer b)
{
    const HnRowRun *x = *(HnRowRun *const *)a, *y = *(HnRowRun *const *)b;
    return x->kind != y->kind ? by_kind(a, b) : (x->number > y->number) - (x->number < y->number);
}

/* Behind the last of the runs from `from` on that are of its kind. */
static guint end_of_kind(const GPtrArray *runs, guint from)
{
    guint to = from + 1;
    while (to < runs->len && by_kind(&runs->pdata[from], &runs->pdata[to]) == 0)
        to++;
    return to;
}

/* Row `row` of a run; behind the last one: outside. */
static double cell(const HnRowRun *r, guint row, guint n_rows)
{
    return row == n_rows ? r->outside : row < r->n ? (double)r->ms[row] : 0;
}

static double level_of(double k)
{
    return HN_ROWS_LOWEST + (0.5 - HN_ROWS_LOWEST) * k / (LEVELS - 1);
}

/* Of sorted times, of which some may be below 0 by the steps of the clock. */
static double quantile(const double *x, gsize n, double level)
{
    return fmax(0, hn_quantile(x, n, level));
}

/* --- the pace of a run ------------------------------------------------------------------------------------- */

typedef struct {
    double ratio, weight;
} Vote;

static int by_ratio(gconstpointer a, gconstpointer b)
{
    const Vote *x = a, *y = b;
    return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

/* Of votes in their order: the first up to which that part of the weight lies. */
static double weighted_quantile(const Vote *votes, guint n, double all, double level)
{
    double below = 0;
    guint i = 0;
    while (i + 1 < n && below + votes[i].weight < level * all)
        below += votes[i++].weight;
    return votes[i].ratio;
}

/* The weighted median; 1 where less than three quarters are on its side of 1, or where there is none. */
static double elect(Vote *votes, guint n)
{
    double all = 0;
    qsort(votes, n, sizeof *votes, by_ratio);
    for (guint i = 0; i < n; i++)
        all += votes[i].weight;
    if (n == 0 || weighted_quantile(votes, n, all, 0.5) <= 0)
        return 1;
    if (weighted_quantile(votes, n, all, 0.25) <= 1 && weighted_quantile(votes, n, all, 0.75) >= 1)
        return 1;
    return weighted_quantile(votes, n, all, 0.5);
}

/* Of a run, by the usual time of each row [0, n_rows]. */
static double pace_of(const HnRowRun *r, const double *usual, guint n_rows, Vote *votes)
{
    double all = 0;
    guint n = 0;
    for (guint row = 0; row <= n_rows; row++)
        all += usual[row];
    for (guint row = 0; row <= n_rows; row++)
        if (usual[row] > 0)
            votes[n++] = (Vote){ cell(r, row, n_rows) / usual[row], fmin(usual[row], MOST_OF_VOTES * all) };
    return elect(votes, n);
}

/* Times of a row in runs [from, to), each divided by its run's pace if there are some. */
static void get_times(const GPtrArray *runs, guint from, guint to, guint row, guint n_rows, const double *pace,
                      double *x)
{
    for (guint i = from; i < to; i++)
        x[i - from] = cell(runs->pdata[i], row, n_rows) / (pace ? pace[i] : 1);
}

/* Of each row [0, n_rows], its median at the paces as they are known. x: room for as many times */
static void find_usual(const GPtrArray *runs, guint from, guint to, guint n_rows, const double *pace, double *usual,
                       double *x)
{
    for (guint row = 0; row <= n_rows; row++) {
        get_times(runs, from, to, row, n_rows, pace, x);
        usual[row] = hn_median(x, to - from);
    }
}

/* Sets the paces of runs [from, to), which are of one kind; their median is 1. x: gets them, sorted */
static void find_paces(const GPtrArray *runs, guint from, guint to, guint n_rows, double *pace, double *x)
{
    g_autofree double *usual = g_new(double, n_rows + 1);
    g_autofree Vote *votes = g_new(Vote, n_rows + 1);
    for (guint i = from; i < to; i++)
        pace[i] = 1;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        find_usual(runs, from, to, n_rows, pace, usual, x);
        for (guint i = from; i < to; i++)
            pace[i] = pace_of(runs->pdata[i], usual, n_rows, votes);
    }
    memcpy(x, pace + from, (to - from) * sizeof *x);
    const double median = hn_median(x, to - from); /* sorts */
    for (guint i = from; i < to; i++) {
        pace[i] /= median;
        x[i - from] /= median;
    }
}

/* --- quantiles -------------------------------------------------------------------------------------------- */

/* x: times of the runs of one kind, which are the part `weight` of all runs; sorts them. */
static void add_quantiles(Quantiles *q, double *x, gsize n, double weight)
{
    hn_median(x, n); /* sorts */
    q->p10 += weight * quantile(x, n, 0.1);
    q->p25 += weight * quantile(x, n, 0.25);
    q->p75 += weight * quantile(x, n, 0.75);
    q->p90 += weight * quantile(x, n, 0.9);
}

/* The same, of times at the median pace. */
static void add_levels(Quantiles *q, double *x, gsize n, double weight)
{
    hn_median(x, n); /* sorts */
    for (int k = 0; k < LEVELS; k++)
        q->at[k] += weight * quantile(x, n, level_of(k));
}

/* Runs [from, to) are of one kind. x: room for as many times */
static void add_kind(const GPtrArray *runs, guint from, guint to, Quantiles *q, guint n_rows, const double *pace,
                     double *x)
{
    const double weight = (double)(to - from) / runs->len;
    for (guint row = 0; row <= n_rows; row++) {
        get_times(runs, from, to, row, n_rows, NULL, x);
        add_quantiles(&q[row], x, to - from, weight);
        get_times(runs, from, to, row, n_rows, pace, x);
        add_levels(&q[row], x, to - from, weight);
    }
}

static double median_unprofiled(const GPtrArray *runs, guint from, guint to, double *x)
{
    for (guint i = from; i < to; i++)
        x[i - from] = ((const HnRowRun *)runs->pdata[i])->unprofiled;
    return hn_median(x, to - from);
}

/* Quantiles of rows [0, n_rows] go to q, those of paces to pace_at. */
static void add_kinds(GPtrArray *runs, guint n_rows, Quantiles *q, double *pace_at, double *x, HnRowTimes *out)
{
    g_autofree double *pace = g_new(double, runs->len);
    for (guint from = 0, to; from < runs->len; from = to) {
        to = end_of_kind(runs, from);
        find_paces(runs, from, to, n_rows, pace, x);
        for (int k = 0; k < LEVELS; k++)
            pace_at[k] += hn_quantile(x, to - from, level_of(k)) * (double)(to - from) / runs->len;
        add_kind(runs, from, to, q, n_rows, pace, x);
        out->unprofiled += median_unprofiled(runs, from, to, x) * (double)(to - from) / runs->len;
        out->kinds++;
    }
}

static double scale_of(const GPtrArray *runs, double *x)
{
    gsize n = 0;
    for (guint i = 0; i < runs->len; i++) {
        const HnRowRun *r = runs->pdata[i];
        if (r->profiled > 0)
            x[n++] = r->unprofiled / r->profiled;
    }
    return n > 0 ? fmin(1, hn_median(x, n)) : 1;
}

/* Between two of the levels: where the sum, which grows with them, reaches `most`; 0 to LEVELS - 1. */
static double find_level(const double *sum, double most)
{
    int k = 0;
    if (sum[0] >= most)
        return 0;
    while (k < LEVELS - 1 && sum[k + 1] <= most)
        k++;
    return k == LEVELS - 1 ? k : k + (most - sum[k]) / (sum[k + 1] - sum[k]);
}

/* level: 0 to LEVELS - 1 */
static double between(const double *at, double level)
{
    const int k = MIN((int)level, LEVELS - 2);
    return at[k] + (level - k) * (at[k + 1] - at[k]);
}

/* Profiled ms of a row at a level, or at a lower one up to which it is trusted. */
static double time_at(const Quantiles *q, const double *pace_at, double level)
{
    return between(q->at, fmin(level, q->highest)) * between(pace_at, level);
}

/* How high the level of a row may be, by which part its median is above its lowest one. clock: what it is above by the
 * steps of the clock alone, at most */
static double highest_level(const Quantiles *q, double clock)
{
    const double lowest = q->at[0], above = lowest > 0 ? (q->at[LEVELS - 1] - lowest - clock) / lowest : 0;
    return (LEVELS - 1) * CLAMP((3 * HN_ROWS_STEP - above) / (2 * HN_ROWS_STEP), 0, 1);
}

/* Sets lift. Returns the level of the rows that are trusted with it, as find_level() does. */
static double choose(const Quantiles *q, const double *pace_at, guint n_rows, HnRowTimes *out)
{
    double sum[LEVELS] = { 0 };
    for (guint row = 0; row <= n_rows; row++)
        for (int k = 0; k < LEVELS; k++)
            sum[k] += time_at(&q[row], pace_at, k) * out->scale;
    const double median = sum[LEVELS - 1];
    const double missing = median > 0 ? out->unprofiled / median - 1 : 0;
    out->lift = 1 + fmax(0, fmin(missing, 2 * HN_ROWS_LIFT - missing));
    return find_level(sum, out->unprofiled);
}

/* Of the mean of the parts' quantiles at that level; NaN: runs [from, to) are too few. */
static double variance_of(const GPtrArray *runs, guint from, guint to, guint row, guint n_rows, double level, double *x)
{
    const guint n = to - from;
    double mean = 0, squares = 0;
    if (n < 2 * HN_ROWS_PARTS)
        return NAN;
    for (guint part = 0; part < HN_ROWS_PARTS; part++) {
        const guint first = from + n * part / HN_ROWS_PARTS, end = from + n * (part + 1) / HN_ROWS_PARTS;
        get_times(runs, first, end, row, n_rows, NULL, x);
        hn_median(x, end - first); /* sorts */
        const double q = quantile(x, end - first, level), before = q - mean;
        mean += before / (part + 1);
        squares += before * (q - mean);
    }
    return squares / (HN_ROWS_PARTS - 1) / HN_ROWS_PARTS;
}

/* Sets the variances of rows, whose levels are known. */
static void add_variances(const GPtrArray *runs, guint n_rows, Quantiles *q, double level, double *x)
{
    for (guint from = 0, to; from < runs->len; from = to) {
        to = end_of_kind(runs, from);
        const double part = (double)(to - from) / runs->len;
        for (guint row = 0; row <= n_rows; row++)
            q[row].variance +=
                part * part * variance_of(runs, from, to, row, n_rows, level_of(fmin(level, q[row].highest)), x);
    }
}

static void set_interval(const Quantiles *q, double scale, HnRowTime *t)
{
    const double half = fmax(fmax(STUDENT * sqrt(q->variance) * scale, t->spread), HN_ROWS_PLACED * t->ms);
    t->lo = isnan(q->variance) ? fmin(t->p10, t->ms * (1 - HN_ROWS_PLACED)) : fmax(0, t->ms - half);
    t->hi = isnan(q->variance) ? fmax(t->p90, t->ms * (1 + HN_ROWS_PLACED)) : t->ms + half;
}

void hn_row_times(GPtrArray *runs, guint n_rows, double clock, HnRowTimes *out)
{
    g_autofree Quantiles *q = g_new0(Quantiles, n_rows + 1);
    g_autofree double *x = g_new(double, runs->len);
    double pace_at[LEVELS] = { 0 };
    *out = (HnRowTimes){ .rows = g_new0(HnRowTime, n_rows + 1), .scale = scale_of(runs, x) };
    g_ptr_array_sort(runs, by_kind_and_number);
    add_kinds(runs, n_rows, q, pace_at, x, out);
    for (guint row = 0; row <= n_rows; row++)
        q[row].highest = highest_level(&q[row], clock);
    const double level = choose(q, pace_at, n_rows, out);
    add_variances(runs, n_rows, q, level, x);
    for (guint row = 0; row <= n_rows; row++) {
        const double ms = CLAMP(time_at(&q[row], pace_at, level) * out->lift, q[row].p10, q[row].p90);
        out->rows[row] = (HnRowTime){ .ms = ms * out->scale,
                                      .level = level_of(fmin(level, q[row].highest)),
                                      .p10 = q[row].p10 * out->scale,
                                      .p90 = q[row].p90 * out->scale,
                                      .spread = (q[row].p75 - q[row].p25) / 2 * out->scale };
        set_interval(&q[row], out->scale, &out->rows[row]);
        out->total += out->rows[row].ms;
    }
    out->disturbed = fmax(0, out->unprofiled - out->total);
}

void hn_row_times_clear(HnRowTimes *t)
{
    g_clear_pointer(&t->rows, g_free);
}

/* How many of n numbers, which ascend, are below x; or_equal: or x. */
static guint count_below(const double *sorted, guint n, double x, gboolean or_equal)
{
    guint from = 0, to = n;
    while (from < to) {
        const guint middle = from + (to - from) / 2;
        if (sorted[middle] < x || (or_equal && sorted[middle] == x))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void hn_row_places(const double *lo, const double *hi, guint n, HnRowPlaces *out)
{
    g_autofree double *los = g_memdup2(lo, n * sizeof *lo), *his = g_memdup2(hi, n * sizeof *hi);
    if (n == 0)
        return;
    hn_median(los, n); /* sorts */
    hn_median(his, n);
    for (guint i = 0; i < n; i++)
        out[i] = (HnRowPlaces){ n - count_below(los, n, hi[i], TRUE) + 1, n - count_below(his, n, lo[i], FALSE) };
}
