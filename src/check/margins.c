#include "check/margins.h"

#include <math.h>

#define ONE 1e-3   /* a sum of probabilities is 1 but for that */
#define LEAST 1e-3 /* probability that is told from lower ones */

static gboolean are_probabilities(const double *x, gsize n)
{
    double sum = 0;
    for (gsize i = 0; i < n; i++) {
        if (!(x[i] >= 0))
            return FALSE;
        sum += x[i];
    }
    return fabs(sum - 1) <= ONE;
}

/* Places of the two largest numbers; FALSE: there are no two. */
static gboolean two_largest(const double *x, gsize n, gsize *first, gsize *second)
{
    gsize at[2] = { n, n };
    for (gsize i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        if (at[0] == n || x[i] > x[at[0]]) {
            at[1] = at[0];
            at[0] = i;
        } else if (at[1] == n || x[i] > x[at[1]]) {
            at[1] = i;
        }
    }
    *first = at[0];
    *second = at[1];
    return at[1] < n;
}

/* How far a is above b. */
static double distance(double a, double b, gboolean probabilities)
{
    return probabilities ? log(fmax(a, LEAST)) - log(fmax(b, LEAST)) : a - b;
}

/* Root mean square of what distance() looks at; what is not finite has no part in it. */
static double size_of(const double *x, gsize n, gboolean probabilities)
{
    double squares = 0;
    gsize count = 0;
    for (gsize i = 0; i < n; i++) {
        const double v = probabilities ? log(fmax(x[i], LEAST)) : x[i];
        if (isfinite(v)) {
            squares += v * v;
            count++;
        }
    }
    return sqrt(squares / (double)MAX(count, 1));
}

void hn_margins_add(HnMargins *m, const double *got, const double *want, gsize n)
{
    gsize a, b;
    if (m->n > HN_MOST_MARGINS || !two_largest(want, n, &a, &b) || !isfinite(got[a]) || !isfinite(got[b]))
        return;
    const gboolean probabilities = are_probabilities(want, n);
    if (m->n < HN_MOST_MARGINS) {
        const double margin = distance(want[a], want[b], probabilities);
        m->row[m->n].margin = margin;
        m->row[m->n].change = distance(got[a], got[b], probabilities) - margin;
        m->row[m->n].size = size_of(want, n, probabilities);
    }
    m->n++;
}

static double unit_of(const HnMargins *m, guint i, gboolean by_size)
{
    return by_size ? m->row[i].size : 1;
}

/* Root mean square of the changes, each in units of its row. */
static double mean_error(const HnMargins *m, gboolean by_size)
{
    double squares = 0;
    for (guint i = 0; i < m->n; i++) {
        const double e = m->row[i].change / unit_of(m, i, by_size);
        squares += e * e / m->n;
    }
    return sqrt(squares);
}

/* Part of rows, where errors are in proportion to their units. */
static double expected(const HnMargins *m, gboolean by_size)
{
    const double error = mean_error(m, by_size);
    double sum = 0, mean = 0;
    for (guint i = 0; i < m->n; i++) {
        const double margin = m->row[i].margin / unit_of(m, i, by_size);
        sum += erfc(margin / error * M_SQRT1_2) / 2 / m->n;
        mean += margin / m->n;
    }
    /* E[1 - exp(-e / mean)] of the positive half of normal errors e, for small ones: E[e] / mean */
    const double smooth = mean > 0 ? fmin(error / sqrt(2 * M_PI) / mean, 0.5) : 0.5;
    return fmin(sum, smooth);
}

/* How likely it is, from 0 to 1, that normal errors go by the rows' sizes and are not the same in all. */
static double goes_by_size(const HnMargins *m)
{
    double logs = 0;
    for (guint i = 0; i < m->n; i++) {
        if (!(m->row[i].size > 0))
            return 0;
        logs += log(m->row[i].size);
    }
    return 1 / (1 + exp(m->n * (log(mean_error(m, TRUE)) - log(mean_error(m, FALSE))) + logs));
}

double hn_margins_turned(const HnMargins *m)
{
    if (m->n == 0 || m->n > HN_MOST_MARGINS)
        return NAN;
    if (!(mean_error(m, FALSE) > 0))
        return 0;
    const double part = goes_by_size(m);
    return part > 0 ? part * expected(m, TRUE) + (1 - part) * expected(m, FALSE) : expected(m, FALSE);
}
