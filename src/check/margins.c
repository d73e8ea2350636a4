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

void hn_margins_add(HnMargins *m, const double *got, const double *want, gsize n)
{
    gsize a, b;
    if (m->n > HN_MOST_MARGINS || !two_largest(want, n, &a, &b) || !isfinite(got[a]) || !isfinite(got[b]))
        return;
    const gboolean probabilities = are_probabilities(want, n);
    const double margin = distance(want[a], want[b], probabilities);
    const double change = distance(got[a], got[b], probabilities) - margin;
    if (m->n < HN_MOST_MARGINS)
        m->margin[m->n] = margin;
    m->squares += change * change;
    m->n++;
}

double hn_margins_turned(const HnMargins *m)
{
    if (m->n == 0 || m->n > HN_MOST_MARGINS)
        return NAN;
    const double n = m->n, size = sqrt(m->squares / n);
    if (!(size > 0))
        return 0;
    double sum = 0, mean = 0;
    for (guint i = 0; i < m->n; i++) {
        sum += erfc(m->margin[i] / size * M_SQRT1_2) / 2 / n;
        mean += m->margin[i] / n;
    }
    /* E[1 - exp(-e / mean)] of the positive half of normal errors e, for small ones: E[e] / mean */
    const double smooth = mean > 0 ? fmin(size / sqrt(2 * M_PI) / mean, 0.5) : 0.5;
    return fmin(sum, smooth);
}
