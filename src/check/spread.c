#include "check/spread.h"

#include <math.h>

#define GUMBEL 0.78 /* its scale, in standard deviations: sqrt(6) / pi */

static void add(HnSpread *s, int side, double x)
{
    const double n = (double)++s->n[side], before = x - s->mean[side];
    s->mean[side] += before / n;
    s->squares[side] += before * (x - s->mean[side]);
    if (s->n[side] == 1 || x > s->most[side]) {
        s->most[side] = x;
        s->same[side] = 0;
    }
    s->same[side] += x >= s->most[side];
}

void hn_spread_add(HnSpread *s, double lo, double hi)
{
    add(s, 0, -lo);
    add(s, 1, hi);
}

static double factor(const HnSpread *s, int side)
{
    const double n = (double)s->n[side];
    if (n < 2 || !(s->most[side] > 0) || s->same[side] > 1)
        return 1;
    const double scale = GUMBEL * sqrt(s->squares[side] / (n - 1));
    return 1 + scale * log1p(1 / n) / s->most[side];
}

void hn_spread_widen(const HnSpread *s, double *lo, double *hi)
{
    if (*lo < 0)
        *lo *= factor(s, 0);
    if (*hi > 0)
        *hi *= factor(s, 1);
}
