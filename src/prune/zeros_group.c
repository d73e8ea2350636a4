#include "prune/zeros_group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/each.h"
#include "base/rng.h"
#include "prune/spd.h"

#define MOST_WORK \
    2e11            /* multiplications of inverses: beyond that there is one for all outputs, and w is iterated for */
#define STEPS 24    /* of these iterations, */
#define ENOUGH 1e-6 /* fewer where all residuals are such a part of what they were */

gboolean hn_zeros_group_open(HnZerosGroup *g, const HnPruneLayer *l, const HnGram *gram, int64_t at, double ridge,
                             const double *w0, double *w, GError **error)
{
    const int64_t k = l->rows.k + (l->bias >= 0), square = k * k, outs = l->rows.outs;
    g->k = k;
    g->inputs = l->rows.k;
    g->outs = outs;
    g->taps = l->rows.taps;
    g->w0 = w0 + at * k * outs;
    g->w = w + at * k * outs;
    g->strips = (outs + g->rows - 1) / g->rows;
    g->left = g->strips * g->inputs;
    g->gone = g_new0(guint8, (gsize)g->left);
    g->scores = g_new0(double, (gsize)g->left);
    if (gram == NULL)
        return TRUE;
    g->h = hn_budget_alloc_n(g->budget, (gsize)(square + k * outs), sizeof *g->h, error);
    if (g->h == NULL)
        return FALSE;
    g->b = g->h + square;
    hn_obs_system(gram, at, g->w0, ridge, g->h, g->b);
    if (g->by != HN_PRUNE_OBS || (double)square * (double)k * (double)g->strips <= MOST_WORK)
        return TRUE;
    double *all = hn_budget_alloc_n(g->budget, 2 * (gsize)square, sizeof *all, error);
    if (all == NULL)
        return FALSE;
    memcpy(all, g->h, (gsize)square * sizeof *all);
    g->diagonal = g_new(double, (gsize)k);
    const gboolean ok = hn_spd_factor(all, k);
    if (ok)
        hn_spd_invert(all, k, all + square);
    for (int64_t i = 0; i < k; i++)
        g->diagonal[i] = ok ? all[square + i * (k + 1)] : 1;
    hn_budget_free(g->budget, all);
    return TRUE;
}

void hn_zeros_group_close(HnZerosGroup *g)
{
    if (g->h != NULL)
        hn_budget_free(g->budget, g->h);
    g_free(g->diagonal);
    g_free(g->gone);
    g_free(g->scores);
}

/* --- the best weights, strip by strip ----------------------------------------------------------------------------- */

/* The inputs that a strip still reads, and the 1 of a bias: index[n]. */
static int64_t support_of(const HnZerosGroup *g, int64_t strip, int64_t *index)
{
    int64_t n = 0;
    for (int64_t i = 0; i < g->k; i++)
        if (i >= g->inputs || !g->gone[strip * g->inputs + i])
            index[n++] = i;
    return n;
}

static void set_scores(const HnZerosGroup *g, int64_t strip, const int64_t *index, int64_t n, const double *inverse)
{
    const int64_t from = strip * g->rows, to = MIN(from + g->rows, g->outs);
    for (int64_t i = 0; i < n; i++) {
        if (index[i] >= g->inputs)
            continue;
        double sum = 0;
        for (int64_t q = from; q < to; q++)
            sum += g->w[index[i] * g->outs + q] * g->w[index[i] * g->outs + q];
        g->scores[strip * g->inputs + index[i]] = sum / inverse[i * (n + 1)];
    }
}

/* h, inverse: [n, n]; inverse NULL: no scores are wanted. A system without a solution leaves all as it is. */
static void solve_strip(const HnZerosGroup *g, int64_t strip, const int64_t *index, int64_t n, double *h,
                        double *inverse, double *x)
{
    const int64_t from = strip * g->rows, m = MIN(g->rows, g->outs - from);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            h[i * n + j] = g->h[index[i] * g->k + index[j]];
    for (int64_t i = 0; i < n; i++)
        memcpy(x + i * m, g->b + index[i] * g->outs + from, (gsize)m * sizeof *x);
    if (!hn_spd_factor(h, n))
        return;
    hn_spd_solve(h, n, x, m);
    for (int64_t i = 0; i < g->k; i++)
        memset(g->w + i * g->outs + from, 0, (gsize)m * sizeof *g->w);
    for (int64_t i = 0; i < n; i++)
        memcpy(g->w + index[i] * g->outs + from, x + i * m, (gsize)m * sizeof *x);
    if (inverse == NULL)
        return;
    hn_spd_invert(h, n, inverse);
    set_scores(g, strip, index, n, inverse);
}

static void do_strip(const HnZerosGroup *g, int64_t strip, gboolean scores)
{
    g_autofree int64_t *index = g_new(int64_t, (gsize)g->k);
    const int64_t n = support_of(g, strip, index);
    g_autofree double *h = g_try_new(double, (gsize)((scores ? 2 : 1) * n * n)),
                      *x = g_new(double, (gsize)(n * g->rows));
    if (h != NULL)
        solve_strip(g, strip, index, n, h, scores ? h + n * n : NULL, x);
}

static void score_strip(gpointer data, gint64 strip)
{
    do_strip(data, strip, TRUE);
}

static void settle_strip(gpointer data, gint64 strip)
{
    do_strip(data, strip, FALSE);
}

/* --- the best weights, iterated for ------------------------------------------------------------------------------- */

/* Conjugate gradients for all outputs at a time, with the diagonal for preconditioner, on what is left of each. */
typedef struct {
    const HnZerosGroup *g;
    double *residual, *way, *image;        /* [k, outs] */
    double *energy, *before, *step, *size; /* [outs] */
} Iterate;

static gboolean has_gone(const HnZerosGroup *g, int64_t i, int64_t q)
{
    return i < g->inputs && g->gone[q / g->rows * g->inputs + i];
}

#define TALL 16 /* rows of a piece */

/* image = h way */
static void image_of(gpointer data, gint64 piece)
{
    const Iterate *c = data;
    const HnZerosGroup *g = c->g;
    g_autofree double *t = g_new(double, (gsize)g->k);
    for (int64_t i = piece * TALL; i < MIN((piece + 1) * TALL, g->k); i++) {
        for (int64_t j = 0; j < g->k; j++)
            t[j] = j <= i ? -g->h[i * g->k + j] : -g->h[j * g->k + i];
        memset(c->image + i * g->outs, 0, (gsize)g->outs * sizeof *c->image);
        hn_spd_subtract(c->image + i * g->outs, c->way, g->outs, t, g->k, g->outs);
    }
}

/* residual -= step image, w += step way; energy: of the new residual, by the preconditioner. */
static void go(const Iterate *c, gboolean first)
{
    const HnZerosGroup *g = c->g;
    memset(c->energy, 0, (gsize)g->outs * sizeof *c->energy);
    for (int64_t i = 0; i < g->k; i++)
        for (int64_t q = 0; q < g->outs; q++) {
            const int64_t e = i * g->outs + q;
            if (first)
                c->residual[e] = g->b[e] - c->image[e];
            else
                c->residual[e] -= c->step[q] * c->image[e];
            if (!first)
                g->w[e] += c->step[q] * c->way[e];
            if (has_gone(g, i, q))
                c->residual[e] = 0;
            c->energy[q] += c->residual[e] * c->residual[e] / g->h[i * (g->k + 1)];
        }
}

/* way = preconditioned residual + (energy / before) way */
static void turn(const Iterate *c, gboolean first)
{
    const HnZerosGroup *g = c->g;
    for (int64_t i = 0; i < g->k; i++)
        for (int64_t q = 0; q < g->outs; q++) {
            const int64_t e = i * g->outs + q;
            const double on = first || c->before[q] <= 0 ? 0 : c->energy[q] / c->before[q];
            c->way[e] = c->residual[e] / g->h[i * (g->k + 1)] + on * c->way[e];
        }
    memcpy(c->before, c->energy, (gsize)g->outs * sizeof *c->before);
}

static void find_steps(const Iterate *c)
{
    const HnZerosGroup *g = c->g;
    memset(c->size, 0, (gsize)g->outs * sizeof *c->size);
    for (int64_t i = 0; i < g->k; i++)
        for (int64_t q = 0; q < g->outs; q++)
            if (!has_gone(g, i, q))
                c->size[q] += c->way[i * g->outs + q] * c->image[i * g->outs + q];
    for (int64_t q = 0; q < g->outs; q++)
        c->step[q] = c->size[q] > 0 ? c->energy[q] / c->size[q] : 0;
}

static double sum_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static void iterate(HnZerosGroup *g)
{
    const gsize all = (gsize)(g->k * g->outs), pieces = (gsize)((g->k + TALL - 1) / TALL);
    g_autofree double *memory = g_try_new(double, 3 * all + 4 * (gsize)g->outs);
    if (memory == NULL)
        return;
    double *of = memory + 3 * all;
    Iterate c = { g, memory, memory + all, memory + 2 * all, of, of + g->outs, of + 2 * g->outs, of + 3 * g->outs };
    hn_zeros_group_blank(g, g->w);
    memcpy(c.way, g->w, all * sizeof *c.way);
    hn_each((gint64)pieces, g->threads, image_of, &c);
    go(&c, TRUE);
    const double start = sum_of(c.energy, g->outs);
    for (int i = 0; i < STEPS && sum_of(c.energy, g->outs) > ENOUGH * ENOUGH * start; i++) {
        turn(&c, i == 0);
        hn_each((gint64)pieces, g->threads, image_of, &c);
        find_steps(&c);
        go(&c, FALSE);
    }
}

void hn_zeros_group_settle(HnZerosGroup *g)
{
    if (g->diagonal != NULL)
        iterate(g);
    else
        hn_each(g->strips, g->threads, settle_strip, g);
}

void hn_zeros_group_aim(HnZerosGroup *g, const HnGram *gram, int64_t at, double ridge)
{
    hn_obs_system(gram, at, g->w0, ridge, g->h, g->b);
    hn_zeros_group_settle(g);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

static double plain_score(const HnZerosGroup *g, int64_t strip, int64_t input, HnRng *rng)
{
    double sum = 0;
    if (g->by == HN_PRUNE_RANDOM)
        return hn_rng_double(rng);
    for (int64_t q = strip * g->rows; q < MIN((strip + 1) * g->rows, g->outs); q++) {
        const double w = g->w0[input * g->outs + q];
        sum += g->by == HN_PRUNE_L1 ? fabs(w) : w * w;
    }
    return g->by == HN_PRUNE_WANDA && g->h != NULL ? sum * g->h[input * (g->k + 1)] : sum;
}

static void find_plain_scores(HnZerosGroup *g)
{
    HnRng rng = hn_rng(g->seed);
    for (int64_t s = 0; s < g->strips; s++)
        for (int64_t i = 0; i < g->inputs; i++)
            g->scores[s * g->inputs + i] = plain_score(g, s, i, &rng);
}

static void find_scores(HnZerosGroup *g)
{
    if (g->by != HN_PRUNE_OBS || g->h == NULL) {
        find_plain_scores(g);
        return;
    }
    if (g->diagonal == NULL) {
        hn_each(g->strips, g->threads, score_strip, g);
        return;
    }
    iterate(g);
    for (int64_t s = 0; s < g->strips; s++)
        for (int64_t i = 0; i < g->inputs; i++) {
            double sum = 0;
            for (int64_t q = s * g->rows; q < MIN((s + 1) * g->rows, g->outs); q++)
                sum += g->w[i * g->outs + q] * g->w[i * g->outs + q];
            g->scores[s * g->inputs + i] = sum / g->diagonal[i];
        }
}

/* --- what goes ---------------------------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void drop_least(HnZerosGroup *g, int64_t left)
{
    const int64_t all = g->strips * g->inputs;
    int64_t n = 0, go = g->left - left;
    if (go <= 0)
        return;
    g_autofree double *sorted = g_new(double, (gsize)g->left);
    for (int64_t i = 0; i < all; i++)
        if (!g->gone[i])
            sorted[n++] = g->scores[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    const double limit = sorted[go - 1];
    for (int pass = 0; pass < 2; pass++) /* those below first, then of equals as many as it takes */
        for (int64_t i = 0; i < all && go > 0; i++)
            if (!g->gone[i] && (pass == 0 ? g->scores[i] < limit : g->scores[i] == limit)) {
                g->gone[i] = 1;
                go--;
            }
    g->left = left + go;
}

/* Of each four channels in a row, at each place of a window, those with the least scores go. */
static void drop_of_four(HnZerosGroup *g)
{
    const int64_t full = g->inputs / g->taps / 4 * 4 * g->taps;
    for (int64_t s = 0; s < g->strips; s++)
        for (int64_t i = 0; i < full; i++) {
            guint8 *gone = g->gone + s * g->inputs;
            for (int n = g->of_four; i / g->taps % 4 == 0 && n < 4; n++) {
                int64_t least = -1;
                for (int64_t q = i; q < i + 4 * g->taps; q += g->taps)
                    if (!gone[q] && (least < 0 || g->scores[s * g->inputs + q] < g->scores[s * g->inputs + least]))
                        least = q;
                gone[least] = 1;
                g->left--;
            }
        }
}

static double explained(const HnZerosGroup *g)
{
    double sum = 0;
    for (int64_t i = 0; g->h != NULL && i < g->k * g->outs; i++)
        sum += g->w[i] * g->b[i];
    return sum;
}

double hn_zeros_group_round(HnZerosGroup *g, int64_t left)
{
    find_scores(g);
    const double sum = explained(g);
    if (g->of_four > 0)
        drop_of_four(g);
    else
        drop_least(g, left);
    return sum;
}

void hn_zeros_group_drop(HnZerosGroup *g, int64_t left)
{
    if (g->of_four > 0 || g->by != HN_PRUNE_OBS || g->h == NULL) {
        (void)hn_zeros_group_round(g, left);
        return;
    }
    while (g->left > left)
        (void)hn_zeros_group_round(g, MAX((int64_t)(HN_ZEROS_ROUND * (double)g->left), left));
}

void hn_zeros_group_blank(const HnZerosGroup *g, double *w)
{
    for (int64_t i = 0; i < g->inputs; i++)
        for (int64_t q = 0; q < g->outs; q++)
            if (has_gone(g, i, q))
                w[i * g->outs + q] = 0;
}
