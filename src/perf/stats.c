#include "perf/stats.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_ROOM 4096

/* --- times ------------------------------------------------------------------------------------------------------- */

void hn_times_init(HnTimes *t, gsize max)
{
    *t = (HnTimes){ .max = max ? max : HN_TIMES_MAX, .rng = hn_rng(0) };
}

void hn_times_clear(HnTimes *t)
{
    g_clear_pointer(&t->x, g_free);
    t->n = t->room = 0;
}

void hn_times_reserve(HnTimes *t)
{
    if (t->n < t->room || t->room == t->max)
        return;
    t->room = MIN(t->room ? t->room * 2 : FIRST_ROOM, t->max);
    t->x = g_renew(double, t->x, t->room);
}

void hn_times_add(HnTimes *t, double x)
{
    hn_times_reserve(t);
    t->least = t->seen == 0 ? x : MIN(t->least, x);
    t->most = t->seen == 0 ? x : MAX(t->most, x);
    t->seen++;
    t->sum += x;
    if (t->n < t->max) {
        t->x[t->n++] = x;
        return;
    }
    gint64 k = hn_rng_int(&t->rng, 0, (gint64)t->seen - 1);
    if ((guint64)k < t->max)
        t->x[k] = x;
}

/* --- statistics -------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hn_quantile(const double *sorted, gsize n, double q)
{
    if (!n)
        return NAN;
    double at = q * (double)(n - 1);
    gsize i = (gsize)at;
    if (i + 1 >= n)
        return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

double hn_median(double *x, gsize n)
{
    if (n)
        qsort(x, n, sizeof x[0], compare);
    return hn_quantile(x, n, 0.5);
}

/* The 97.5 % quantile of Student's t: exact to 10 degrees of freedom, then by the expansion of Cornish and Fisher (M.
 * Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions", 26.7.5), which is right to three digits there. */
static double student(gsize freedom)
{
    static const double small[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228 };
    const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, n = (double)freedom;
    if (freedom <= G_N_ELEMENTS(small))
        return small[freedom - 1];
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

double hn_student(double z, gsize freedom)
{
    const double z2 = z * z, z3 = z * z2, z5 = z3 * z2, z7 = z5 * z2, n = (double)freedom;
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

void hn_prediction_interval(const double *x, gsize n, double *lo, double *hi)
{
    double mean = 0, squares = 0;
    for (gsize i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (gsize i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    const double half = n >= 2 ? student(n - 1) * sqrt(squares / (double)(n - 1) * (1 + 1 / (double)n)) : INFINITY;
    *lo = n >= 2 ? mean - half : -INFINITY;
    *hi = n >= 2 ? mean + half : INFINITY;
}

gsize hn_median_rank(gsize n, double level)
{
    double tail = 0, most = (1 - level) / 2;
    /* what lies 20 standard deviations (of sqrt(n) / 2) below the mean is nothing: less than e^-200 */
    double start = floor((double)n / 2 - 10 * sqrt((double)n));
    gsize k = start > 0 ? (gsize)start : 0, r = k;
    double log_all = lgamma((double)n + 1) - (double)n * M_LN2;
    for (; k < n; k++) {
        tail += exp(log_all - lgamma((double)k + 1) - lgamma((double)(n - k) + 1)); /* P(B <= k) */
        if (tail > most)
            break;
        r = k + 1;
    }
    return r;
}

void hn_stats(double *x, gsize n, HnStats *stats)
{
    *stats = (HnStats){ .n = n, .mean = NAN, .stddev = NAN, .min = NAN, .max = NAN, .lo = NAN, .hi = NAN };
    stats->p50 = hn_median(x, n);
    stats->p90 = hn_quantile(x, n, 0.90);
    stats->p95 = hn_quantile(x, n, 0.95);
    stats->p99 = hn_quantile(x, n, 0.99);
    if (!n)
        return;
    double sum = 0, squares = 0;
    for (gsize i = 0; i < n; i++)
        sum += x[i];
    stats->mean = sum / (double)n;
    for (gsize i = 0; i < n; i++)
        squares += (x[i] - stats->mean) * (x[i] - stats->mean);
    stats->stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
    stats->min = x[0];
    stats->max = x[n - 1];
    gsize r = hn_median_rank(n, 0.95);
    if (r) {
        stats->lo = x[r - 1];
        stats->hi = x[n - r];
    }
}

/* Evenly from the whole list, since nobody knows whether it was sorted meanwhile. */
double hn_times_usual(const HnTimes *t, gsize n)
{
    n = MIN(t->n, n);
    g_autofree double *x = g_new(double, n + 1);
    for (gsize i = 0; i < n; i++)
        x[i] = t->x[i * t->n / n];
    return hn_median(x, n);
}

void hn_times_stats(HnTimes *t, HnStats *stats)
{
    hn_stats(t->x, t->n, stats);
    if (t->seen == 0)
        return;
    stats->mean = t->sum / (double)t->seen;
    stats->min = t->least;
    stats->max = t->most;
}
