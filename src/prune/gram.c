#include "prune/gram.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/team.h"

#define BATCH 8 /* rows of products() */

#define HN_LOOPS "prune/gram_loops.h"
#include "base/every_level.h"

static void (*const products_at[])(float *h, int64_t ld, const float *x, int64_t ldx, const float *z, int64_t ldz,
                                   int64_t from, int64_t to, int64_t n) = HN_TABLE_OF_LEVELS(products);

static void (*const apply_at[])(float *y, int64_t ldy, const float *x, int64_t ldx, const float *w, int64_t ldw,
                                int64_t k, int64_t from, int64_t to) = HN_TABLE_OF_LEVELS(apply);

gsize hn_gram_bytes(const HnLinearRows *rows, gboolean constant, gboolean wanted)
{
    const gsize k = (gsize)(rows->k + constant), groups = (gsize)rows->groups, outs = (gsize)rows->outs;
    return groups * (k * k + BATCH * k + (wanted ? k * outs + BATCH * outs : 0)) * sizeof(float);
}

HnGram *hn_gram_new(const HnLinearRows *rows, gboolean constant, gboolean wanted, HnBudget *budget, GError **error)
{
    HnGram *g = g_new0(HnGram, 1);
    *g = (HnGram){ .k = rows->k + constant,
                   .outs = rows->outs,
                   .groups = rows->groups,
                   .constant = constant,
                   .wanted = wanted,
                   .budget = budget };
    const gsize all = hn_gram_bytes(rows, constant, wanted);
    g->h = hn_budget_alloc0(budget, all, error);
    if (g->h == NULL) {
        g_free(g);
        return NULL;
    }
    g->x = g->h + g->groups * g->k * g->k;
    g->b = g->x + g->groups * BATCH * g->k;
    g->y = wanted ? g->b + g->groups * g->k * g->outs : NULL;
    g->squares = wanted ? g_new0(double, (gsize)(g->groups * g->outs)) : NULL;
    return g;
}

void hn_gram_free(HnGram *g)
{
    if (g == NULL)
        return;
    hn_budget_free(g->budget, g->h);
    hn_budget_free(g->budget, g->kept_x);
    g_free(g->squares);
    g_free(g);
}

typedef struct {
    HnGram *g;
    int n; /* shares */
} Split;

static void add_share(void *data)
{
    const Split *s = data;
    const HnGram *g = s->g;
    const int id = hn_team_share()->id, level = hn_cpu_level();
    for (int64_t i = 0; i < g->groups; i++) {
        const float *x = g->x + i * BATCH * g->k;
        /* shares of a triangle have the same area */
        const int64_t from = (int64_t)((double)g->k * sqrt((double)id / s->n));
        const int64_t to = id + 1 == s->n ? g->k : (int64_t)((double)g->k * sqrt((double)(id + 1) / s->n));
        products_at[level](g->h + i * g->k * g->k, g->k, x, g->k, x, g->k, from, to, 0);
        if (g->wanted)
            products_at[level](g->b + i * g->k * g->outs, g->outs, x, g->k, g->y + i * BATCH * g->outs, g->outs,
                               g->k * id / s->n, g->k * (id + 1) / s->n, g->outs);
    }
}

static void add_held(HnGram *g, int threads)
{
    Split s = { g, g->k >= 64 ? MAX(threads, 1) : 1 };
    HnRegion region = { .fn = add_share, .data = &s, .n = s.n };
    hn_team_run(&region, FALSE);
    g->held = 0;
}

/* Row r of y, [groups * outs]. */
static void get_wanted(const HnLinearRows *rows, const HnTensor *y, int64_t r, float *row)
{
    const float *from = y->data;
    const int64_t all = rows->groups * rows->outs;
    if (!rows->conv) {
        memcpy(row, from + r * all, (gsize)all * sizeof *row);
        return;
    }
    const int64_t plane = rows->plan.y_plane;
    from += r / plane * all * plane + r % plane;
    for (int64_t c = 0; c < all; c++)
        row[c] = from[c * plane];
}

static void hold(HnGram *g, const float *x, const float *y)
{
    const int64_t k = g->k - g->constant;
    for (int64_t i = 0; i < g->groups; i++) {
        float *to = g->x + (i * BATCH + g->held) * g->k;
        memcpy(to, x + i * k, (gsize)k * sizeof *x);
        if (g->constant)
            to[k] = 1;
        if (g->wanted)
            memcpy(g->y + (i * BATCH + g->held) * g->outs, y + i * g->outs, (gsize)g->outs * sizeof *y);
    }
    for (int64_t c = 0; g->wanted && c < g->groups * g->outs; c++)
        g->squares[c] += (double)y[c] * (double)y[c];
    for (int64_t i = 0; i < g->groups && g->kept < g->most; i++) {
        const float *row = g->x + (i * BATCH + g->held) * g->k;
        memcpy(g->kept_x + (i * g->most + g->kept) * g->k, row, (gsize)g->k * sizeof *row);
        memcpy(g->kept_y + (i * g->most + g->kept) * g->outs, y + i * g->outs, (gsize)g->outs * sizeof *y);
    }
    g->kept += g->kept < g->most;
    g->rows++;
    g->held++;
}

static gboolean is_finite(const float *x, int64_t n)
{
    float sum = 0; /* NaN and infinity stay what they are */
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * 0;
    return sum == 0;
}

void hn_gram_add(HnGram *g, const HnLinearRows *of, const HnTensor *x, const HnTensor *y, int64_t most, uint64_t seed,
                 int threads)
{
    HnLinearRows rows = *of;
    const int64_t all = hn_linear_rows_feed(&rows, x), n_x = rows.groups * rows.k, n_y = rows.groups * rows.outs;
    if (all == 0 || (g->wanted && (y == NULL || y->dtype != HN_F32 || y->n != all * n_y)))
        return;
    HnRng rng = hn_rng(seed);
    g_autofree float *row = g_new(float, (gsize)(n_x + n_y));
    const int64_t n = MIN(all, MAX(most, 1));
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = all * i / n, to = all * (i + 1) / n;
        const int64_t at = n == all ? i : hn_rng_int(&rng, from, to - 1);
        hn_linear_rows_get(&rows, at, row);
        if (g->wanted)
            get_wanted(&rows, y, at, row + n_x);
        if (!is_finite(row, g->wanted ? n_x + n_y : n_x))
            continue;
        hold(g, row, row + n_x);
        if (g->held == BATCH)
            add_held(g, threads);
    }
}

void hn_gram_settle(HnGram *g, int threads)
{
    if (g->held == 0)
        return;
    for (int64_t i = 0; i < g->groups; i++) {
        memset(g->x + (i * BATCH + g->held) * g->k, 0, (gsize)((BATCH - g->held) * g->k) * sizeof *g->x);
        if (g->wanted)
            memset(g->y + (i * BATCH + g->held) * g->outs, 0, (gsize)((BATCH - g->held) * g->outs) * sizeof *g->y);
    }
    add_held(g, threads);
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

static int64_t whole_batches(int64_t rows)
{
    return (rows + BATCH - 1) / BATCH * BATCH;
}

gsize hn_gram_kept_bytes(const HnGram *g, int64_t most)
{
    return (gsize)(whole_batches(most) * g->groups * (g->k + g->outs)) * sizeof *g->kept_x;
}

gboolean hn_gram_keep(HnGram *g, int64_t most)
{
    const int64_t n = whole_batches(most);
    if (!g->wanted)
        return FALSE;
    g->kept_x = hn_budget_alloc(g->budget, hn_gram_kept_bytes(g, most), NULL);
    if (g->kept_x == NULL)
        return FALSE;
    g->kept_y = g->kept_x + n * g->groups * g->k;
    g->most = n;
    return TRUE;
}

typedef struct {
    HnGram *g;
    const float *w; /* of one group */
    int64_t group;
    float lo, hi;
    int n; /* shares */
} Aim;

/* Columns of one share, of all rows. */
static void aim_share(void *data)
{
    const Aim *a = data;
    const HnGram *g = a->g;
    const int id = hn_team_share()->id, level = hn_cpu_level();
    const int64_t from = g->outs * id / a->n, to = g->outs * (id + 1) / a->n, n = to - from;
    const float *x = g->kept_x + a->group * g->most * g->k, *y = g->kept_y + a->group * g->most * g->outs;
    float *b = g->b + a->group * g->k * g->outs;
    g_autofree float *t = g_new(float, (gsize)(BATCH * g->outs));
    for (int64_t i = 0; i < g->k; i++)
        memset(b + i * g->outs + from, 0, (gsize)n * sizeof *b);
    for (int64_t r = 0; r < g->kept; r += BATCH) { /* rows behind the last one are 0 */
        apply_at[level](t, g->outs, x + r * g->k, g->k, a->w, g->outs, g->k, from, to);
        for (int64_t q = 0; q < BATCH; q++)
            for (int64_t j = from; j < to; j++) {
                const float want = r + q < g->kept ? y[(r + q) * g->outs + j] : 0;
                float *made = &t[q * g->outs + j];
                *made = want <= a->lo ? MIN(*made, a->lo) : want >= a->hi ? MAX(*made, a->hi) : want;
            }
        products_at[level](b + from, g->outs, x + r * g->k, g->k, t + from, g->outs, 0, g->k, n);
    }
}

gboolean hn_gram_aim(HnGram *g, const double *w, float lo, float hi, int threads)
{
    if (g->kept == 0 || g->kept < g->rows)
        return FALSE;
    const int64_t n = g->k * g->outs;
    g_autofree float *narrow = g_new(float, (gsize)n);
    for (int64_t i = 0; i < g->groups; i++) {
        float *end = g->kept_x + (i * g->most + g->kept) * g->k;
        memset(end, 0, (gsize)((g->kept + BATCH - 1) / BATCH * BATCH - g->kept) * (gsize)g->k * sizeof *end);
        for (int64_t e = 0; e < n; e++)
            narrow[e] = (float)w[i * n + e];
        Aim a = { g, narrow, i, lo, hi, g->outs >= 16 ? MAX(threads, 1) : 1 };
        HnRegion region = { .fn = aim_share, .data = &a, .n = a.n };
        hn_team_run(&region, FALSE);
    }
    return TRUE;
}
