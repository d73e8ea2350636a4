#include "quant/calib_method.h"

#include <float.h>
#include <math.h>

#include "base/error.h"

#define BINS HN_HISTOGRAM_BINS
#define ALL (2 * BINS)

static const char *const names[HN_CALIB_METHODS] = { "minmax", "percentile", "entropy", "mse" };

const char *hn_calib_method_name(HnCalibMethod method)
{
    return names[method];
}

gboolean hn_calib_method_parse(const char *name, HnCalibMethod *method, GError **error)
{
    for (int i = 0; i < HN_CALIB_METHODS; i++)
        if (g_str_equal(name, names[i])) {
            *method = (HnCalibMethod)i;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is none of minmax, percentile, entropy, mse", name);
    return FALSE;
}

HnQuantizer hn_quantizer_of(const HnQuantOptions *o)
{
    return (HnQuantizer){ .bits = 8, .is_signed = o->activations == HN_I8, .symmetric = o->symmetric };
}

gboolean hn_quant_span_fixed(const HnNode *n, HnQuantSpan *span)
{
    if (n->op == NULL || n->op->quant.kind != HN_Q_FIXED_RANGE)
        return FALSE;
    *span = (HnQuantSpan){ (double)n->op->quant.lo, (double)n->op->quant.hi };
    return TRUE;
}

/* --- scale and zero point ---------------------------------------------------------------------------------------- */

/* Integers used, and the scale before it is rounded. */
typedef struct {
    double least, most, zero, scale;
} Step;

static Step step_of(double lo, double hi, const HnQuantizer *q)
{
    const double half = ldexp(1, q->bits - 1);
    Step s = { .least = q->is_signed ? -half : 0, .most = q->is_signed ? half - 1 : 2 * half - 1 };
    lo = fmin(lo, 0);
    hi = fmax(hi, 0);
    if (q->symmetric) {
        s.least += 1;
        s.zero = q->is_signed ? 0 : half;
        s.scale = fmax(-lo, hi) / (half - 1);
    } else {
        s.scale = (hi - lo) / (s.most - s.least);
        s.zero = s.scale > 0 ? fmin(fmax(rint(s.least - lo / s.scale), s.least), s.most) : fmax(s.least, 0);
    }
    return s;
}

void hn_quant_step(const HnQuantSpan *span, const HnQuantizer *q, float *scale, int *zero)
{
    const Step s = step_of(span->lo, span->hi, q);
    *zero = (int)s.zero;
    *scale = s.scale > 0 ? (float)fmin(fmax(s.scale, (double)FLT_MIN), (double)FLT_MAX) : 1;
}

/* --- the bins in a row ------------------------------------------------------------------------------------------- */

/* Counts from the lowest number to the highest, zeros left out; bin i covers [i - BINS, i - BINS + 1) bin widths. */
typedef struct {
    double count[ALL];
    int first, end; /* bins with something in them are in [first, end) */
    double lo, hi;  /* least and largest number, in bin widths */
    /* What the first and the last bin hold more than the ones beside them: most likely numbers that an operator has
     * limited, all of them lo or hi. Folded, too, where they are then magnitudes. */
    double at[2], limited[2];
    int bin[2];
} Row;

static gboolean row_of(const HnHistogram *h, Row *r)
{
    const double width = hn_histogram_width(h);
    *r = (Row){ .first = ALL, .lo = (double)h->min / width, .hi = (double)h->max / width };
    for (int i = 0; i < ALL; i++) {
        const uint64_t *bins = h->bins[i < BINS];
        const int k = i < BINS ? BINS - 1 - i : i - BINS;
        r->count[i] = bins != NULL ? (double)(bins[k] - (i == BINS ? h->n_zero : 0)) : 0;
        if (r->count[i] > 0) {
            r->first = MIN(r->first, i);
            r->end = i + 1;
        }
    }
    for (int k = 0; k < 2 && r->end - r->first > 1; k++) {
        const int bin = k == 0 ? r->first : r->end - 1, beside = k == 0 ? bin + 1 : bin - 1;
        r->bin[k] = bin;
        r->at[k] = k == 0 ? r->lo : r->hi;
        r->limited[k] = fmax(r->count[bin] - r->count[beside], 0);
    }
    return r->end > 0;
}

/* The same of magnitudes, from bin BINS on. */
static void fold(Row *r)
{
    for (int i = 0; i < BINS; i++) {
        r->count[BINS + i] += r->count[BINS - 1 - i];
        r->count[BINS - 1 - i] = 0;
    }
    r->end = MAX(r->end, ALL - r->first);
    r->hi = fmax(fabs(r->lo), fabs(r->hi));
    r->lo = 0;
    for (int k = 0; k < 2; k++) {
        r->at[k] = fabs(r->at[k]);
        r->bin[k] = MAX(r->bin[k], ALL - 1 - r->bin[k]);
    }
    r->first = BINS;
    while (r->count[r->first] <= 0)
        r->first++;
}

/* --- percentile -------------------------------------------------------------------------------------------------- */

/* The place in bin widths with `n` elements on its side, below it or above, evenly spread within a bin. */
static double place_of(const Row *r, double n, gboolean below)
{
    double sum = 0;
    n -= n * 1e-12; /* a share of 99.99 % is none that a double holds */
    for (int i = r->first; i < r->end; i++) {
        const int bin = below ? i : r->first + r->end - 1 - i;
        const double count = r->count[bin];
        if (sum + count >= n && count > 0)
            return bin - BINS + (below ? (n - sum) / count : 1 - (n - sum) / count);
        sum += count;
    }
    return below ? r->hi : r->lo;
}

static void percentile_of(Row *r, const HnHistogram *h, double percentile, gboolean symmetric, double *lo, double *hi)
{
    const double n = (double)h->n, cut = n * (1 - fmin(fmax(percentile, 50), 100) / 100);
    r->count[BINS] += (double)h->n_zero;
    r->first = h->n_zero > 0 ? MIN(r->first, BINS) : r->first;
    r->end = h->n_zero > 0 ? MAX(r->end, BINS + 1) : r->end;
    if (symmetric) {
        fold(r);
        *hi = fmin(place_of(r, n - cut, TRUE), r->hi);
        *lo = -*hi;
        return;
    }
    /* the cut is shared by the sides that there are */
    const gboolean below = h->min<0, above = h->max> 0;
    const double share = below && above ? cut / 2 : cut;
    *lo = below ? fmax(place_of(r, n - share, FALSE), r->lo) : r->lo;
    *hi = above ? fmin(place_of(r, n - share, TRUE), r->hi) : r->hi;
}

/* --- entropy ----------------------------------------------------------------------------------------------------- */

/* Sums over bins before i; counts are whole numbers, so that differences are exact. */
typedef struct {
    double count[ALL + 1], used[ALL + 1], entropy[ALL + 1]; /* elements; bins with some; sum of n log n */
} Sums;

static double n_log_n(double n)
{
    return n > 0 ? n * log(n) : 0;
}

static void sum_up(const Row *r, Sums *s)
{
    s->count[0] = s->used[0] = s->entropy[0] = 0;
    for (int i = 0; i < ALL; i++) {
        s->count[i + 1] = s->count[i] + r->count[i];
        s->used[i + 1] = s->used[i] + (r->count[i] > 0);
        s->entropy[i + 1] = s->entropy[i] + n_log_n(r->count[i]);
    }
}

/*
 * Divergence of the bins [b, e), with what is outside added to the first and the last of them, from what is left when
 * these bins are merged to `levels` and each level's elements are spread over the bins that had some.
 */
static double divergence(const Row *r, const Sums *s, int b, int e, int levels)
{
    const double below = s->count[b], above = s->count[ALL] - s->count[e], all = s->count[ALL];
    const double inside = s->count[e] - s->count[b];
    double sum = s->entropy[e] - s->entropy[b];
    sum += n_log_n(r->count[b] + below) - n_log_n(r->count[b]);
    sum += n_log_n(r->count[e - 1] + above) - n_log_n(r->count[e - 1]);
    for (int k = 0; k < levels; k++) {
        const int from = b + (int)((int64_t)k * (e - b) / levels), to = b + (int)((int64_t)(k + 1) * (e - b) / levels);
        const double elements = s->count[to] - s->count[from];
        double used = s->used[to] - s->used[from], wanted = elements;
        if (k == 0 && below > 0) {
            used += !(r->count[b] > 0);
            wanted += below;
        }
        if (k == levels - 1 && above > 0) {
            used += !(r->count[e - 1] > 0);
            wanted += above;
        }
        if (wanted > 0 && elements <= 0)
            return INFINITY;
        if (wanted > 0)
            sum -= wanted * log(elements / used);
    }
    return sum / all - log(all) + log(inside);
}

/* Bins left by the cut at magnitudes of t bins. */
static void cut_at(const Row *r, int t, int *b, int *e)
{
    *b = MAX(r->first, BINS - t);
    *e = MIN(r->end, BINS + t);
}

static void try_cuts(const Row *r, const Sums *s, int levels, int from, int to, int step, int *best, double *least)
{
    for (int t = from; t < to; t += step) {
        int b, e;
        cut_at(r, t, &b, &e);
        const double d = e - b >= levels ? divergence(r, s, b, e, levels) : INFINITY;
        if (d < *least) {
            *least = d;
            *best = t;
        }
    }
}

static void entropy_of(Row *r, const HnQuantizer *q, double *lo, double *hi)
{
    g_autofree Sums *s = g_new(Sums, 1);
    if (q->symmetric)
        fold(r);
    sum_up(r, s);
    const int levels = MIN(1 << (q->symmetric ? q->bits - 1 : q->bits), BINS);
    const int all = MAX(BINS - r->first, r->end - BINS); /* the cut that keeps everything */
    const int step = MAX(all / 256, 1);
    int best = all;
    double least = INFINITY;
    try_cuts(r, s, levels, MIN(levels / 2, all), all, step, &best, &least);
    try_cuts(r, s, levels, all, all + 1, 1, &best, &least);
    if (isfinite(least))
        try_cuts(r, s, levels, MAX(best - step + 1, 1), MIN(best + step, all), 1, &best, &least);
    *lo = q->symmetric ? -fmin(best, r->hi) : fmax(-best, r->lo);
    *hi = fmin(best, r->hi);
}

/* --- mean square error ------------------------------------------------------------------------------------------- */

/* Integrals over numbers below the edge of bin i, evenly spread within a bin: of 1, x and x^2. */
typedef struct {
    double of[ALL + 1][3];
} Moments;

static void piece(double a, double b, double density, double m[3])
{
    m[0] += density * (b - a);
    m[1] += density * (b * b - a * a) / 2;
    m[2] += density * (b * b * b - a * a * a) / 3;
}

static void moments_of(const Row *r, Moments *m)
{
    m->of[0][0] = m->of[0][1] = m->of[0][2] = 0;
    for (int i = 0; i < ALL; i++) {
        for (int k = 0; k < 3; k++)
            m->of[i + 1][k] = m->of[i][k];
        piece(i - BINS, i - BINS + 1, r->count[i], m->of[i + 1]);
    }
}

/* Limited numbers have a place of their own from now on. */
static void take_limited(Row *r)
{
    for (int k = 0; k < 2; k++)
        r->count[r->bin[k]] -= r->limited[k];
}

static void moments_below(const Row *r, const Moments *m, double x, double out[3])
{
    const double at = fmin(fmax(x + BINS, 0), ALL);
    const int i = MIN((int)at, ALL - 1);
    for (int k = 0; k < 3; k++)
        out[k] = m->of[i][k];
    piece(i - BINS, at - BINS, r->count[i], out);
}

/* Sum of squared errors when the span [lo, hi] is covered; in squared bin widths. */
static double error_of(const Row *r, const Moments *m, const HnQuantizer *q, double lo, double hi)
{
    const Step s = step_of(lo, hi, q);
    if (!(s.scale > 0))
        return INFINITY;
    /* what is below the first number or above the last one has no integer that anything is rounded to */
    const double first = fmin(fmax(floor(r->lo / s.scale) + s.zero, s.least), s.most);
    const double last = fmin(fmax(ceil(r->hi / s.scale) + s.zero, s.least), s.most);
    double before[3] = { 0 }, sum = 0;
    for (double i = first; i <= last; i++) {
        double next[3];
        const double v = (i - s.zero) * s.scale;
        moments_below(r, m, i < last ? v + s.scale / 2 : ALL, next);
        const double n = next[0] - before[0], x = next[1] - before[1], xx = next[2] - before[2];
        sum += fmax(xx - 2 * v * x + v * v * n, 0);
        for (int k = 0; k < 3; k++)
            before[k] = next[k];
    }
    for (int k = 0; k < 2; k++) {
        const double i = fmin(fmax(rint(r->at[k] / s.scale) + s.zero, s.least), s.most);
        const double d = r->at[k] - (i - s.zero) * s.scale;
        sum += r->limited[k] * d * d;
    }
    return sum;
}

typedef struct {
    double lo, hi, error;
} Cut;

static void try_cut(const Row *r, const Moments *m, const HnQuantizer *q, double lo, double hi, Cut *best)
{
    const double e = error_of(r, m, q, lo, hi);
    if (e < best->error)
        *best = (Cut){ lo, hi, e };
}

/* Multiplies the sides by f: of both at first, then of one at a time. */
static void shrink(const Row *r, const Moments *m, const HnQuantizer *q, const Cut *from, double f, int sides,
                   Cut *best)
{
    try_cut(r, m, q, (sides & 1) != 0 ? from->lo * f : from->lo, (sides & 2) != 0 ? from->hi * f : from->hi, best);
}

/* Powers of 2^(-1/8) down to `octaves`, then finer around the best one; not beyond what was seen. */
static void search(const Row *r, const Moments *m, const HnQuantizer *q, int sides, int octaves, Cut *best)
{
    const Cut from = *best;
    for (int i = 1; i <= 8 * octaves; i++)
        shrink(r, m, q, &from, exp2(-i / 8.0), sides, best);
    const Cut coarse = *best;
    for (int i = -7; i <= 7; i++) {
        const double f = exp2(i / 64.0);
        const double lo = (sides & 1) != 0 ? fmax(coarse.lo * f, r->lo) : coarse.lo;
        const double hi = (sides & 2) != 0 ? fmin(coarse.hi * f, r->hi) : coarse.hi;
        try_cut(r, m, q, lo, hi, best);
    }
}

static void mse_of(Row *r, const HnQuantizer *q, double *lo, double *hi)
{
    g_autofree Moments *m = g_new(Moments, 1);
    Cut best = { .error = INFINITY };
    if (q->symmetric)
        fold(r);
    take_limited(r);
    moments_of(r, m);
    try_cut(r, m, q, r->lo, r->hi, &best);
    search(r, m, q, 3, 10, &best);
    for (int i = 0; i < 2 && r->lo < 0 && r->hi > 0; i++) {
        search(r, m, q, 2, 2, &best);
        search(r, m, q, 1, 2, &best);
    }
    *lo = q->symmetric ? -best.hi : best.lo;
    *hi = best.hi;
}

/* ----------------------------------------------------------------------------------------------------------------- */

gboolean hn_quant_span_of(const HnHistogram *h, HnCalibMethod method, double percentile, const HnQuantizer *q,
                          HnQuantSpan *span)
{
    *span = (HnQuantSpan){ 0, 0 };
    if (h->n == 0)
        return FALSE;
    *span = (HnQuantSpan){ (double)h->min, (double)h->max };
    g_autofree Row *r = g_new(Row, 1);
    if (method == HN_CALIB_MINMAX || !row_of(h, r)) /* all that there is are zeros */
        return TRUE;
    double lo = r->lo, hi = r->hi;
    if (method == HN_CALIB_PERCENTILE)
        percentile_of(r, h, percentile, q->symmetric, &lo, &hi);
    else if (method == HN_CALIB_ENTROPY)
        entropy_of(r, q, &lo, &hi);
    else
        mse_of(r, q, &lo, &hi);
    /* not beyond what was seen; back in units of the elements */
    const double width = hn_histogram_width(h);
    span->lo = fmin(fmax(lo * width, (double)h->min), (double)h->max);
    span->hi = fmax(fmin(hi * width, (double)h->max), (double)h->min);
    return TRUE;
}
