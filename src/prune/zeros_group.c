#include "prune/zeros_group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "prune/spd.h"

#define STEPS 24 /* of conjugate gradients */

static gboolean no_memory(int64_t k, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no memory for least squares over %" G_GINT64_FORMAT " inputs", k);
    return FALSE;
}

/* The diagonal of the inverse of h; of one that has none, 1. */
static gboolean find_diagonal(HnZerosGroup *g, GError **error)
{
    const int64_t k = g->k, square = k * k;
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

gsize hn_zeros_group_bytes(const HnLinearRows *rows, gboolean constant)
{
    const gsize k = (gsize)(rows->k + constant);
    return k * (3 * k + (gsize)rows->outs) * sizeof(double);
}

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
    g->system = hn_zeros_system_new(g->h, k, outs);
    if (g->system == NULL)
        return no_memory(k, error);
    return g->by != HN_PRUNE_OBS || find_diagonal(g, error);
}

void hn_zeros_group_close(HnZerosGroup *g)
{
    if (g->h != NULL)
        hn_budget_free(g->budget, g->h);
    hn_zeros_system_free(g->system);
    g_free(g->diagonal);
    g_free(g->gone);
    g_free(g->scores);
}

/* --- the best weights --------------------------------------------------------------------------------------------- */

static gboolean has_gone(const HnZerosGroup *g, int64_t i, int64_t q)
{
    return i < g->inputs && g->gone[q / g->rows * g->inputs + i];
}

static void solve(HnZerosGroup *g)
{
    g_autofree guint8 *zero = g_new(guint8, (gsize)(g->k * g->outs));
    for (int64_t i = 0; i < g->k; i++)
        for (int64_t q = 0; q < g->outs; q++)
            zero[i * g->outs + q] = has_gone(g, i, q);
    hn_zeros_system_solve(g->system, g->b, zero, g->w, STEPS, g->threads);
}

void hn_zeros_group_settle(HnZerosGroup *g)
{
    solve(g);
}

void hn_zeros_group_aim(HnZerosGroup *g, const HnGram *gram, int64_t at, double ridge)
{
    hn_obs_system(gram, at, g->w0, ridge, g->h, g->b); /* h is the same */
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
    solve(g);
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
