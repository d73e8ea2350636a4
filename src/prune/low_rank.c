#include "prune/low_rank.h"

#include <math.h>
#include <string.h>

#include "base/each.h"
#include "ir/build.h"
#include "ir/copy.h"
#include "op/linear.h"
#include "prune/eigen.h"
#include "prune/layer_sums.h"
#include "prune/ready.h"
#include "prune/spd.h"

#define STEP 8            /* ranks are multiples of it, */
#define LEAST 16          /* and of narrower layers there is nothing to win */
#define MOST_OUTS 1024    /* results of a layer: what its eigenvectors take grows with the cube */
#define BLOCK 64          /* rows of a covariance at a time */
#define PAYS 0.9          /* of the operations of the layer as it is */
#define BISECTIONS 60     /* of what an operation is worth, */
#define LEAST_WORTH 1e-12 /* from that ... */
#define MOST_WORTH 1e6    /* ... to that: the loss of a whole layer for all operations of the model */
#define NOTHING 1e-9      /* of what a layer makes */

/* --- one layer ---------------------------------------------------------------------------------------------------- */

static void layer_clear(gpointer data)
{
    HnLowRankLayer *f = data;
    g_free(f->values);
    g_free(f->p);
    g_free(f->mean);
}

static int64_t most_of(const HnLinearRows *r)
{
    return (int64_t)(PAYS * (double)r->k * (double)r->outs / (double)(r->k + r->outs)) / STEP * STEP;
}

static gboolean may_be_two(const HnPruneLayer *l)
{
    const HnLinearRows *r = &l->rows;
    if (!l->free || hn_node_in(l->node, l->x)->weight != NULL || r->groups != 1)
        return FALSE;
    return r->k >= LEAST && r->outs >= LEAST && r->outs <= MOST_OUTS && most_of(r) >= STEP;
}

static double *mean_of(const HnGram *g, int64_t k)
{
    if (!g->constant)
        return NULL;
    double *mean = g_new(double, (gsize)k);
    for (int64_t i = 0; i < k; i++)
        mean[i] = (double)g->h[k * g->k + i] / (double)MAX(g->rows, 1);
    return mean;
}

/* y[m, n] = x[m, k] z[k, n] */
static void multiply(const double *x, const double *z, int64_t m, int64_t k, int64_t n, double *y)
{
    g_autofree double *minus = g_new(double, (gsize)(m * k));
    g_autofree HnSpdRow *row = g_new(HnSpdRow, (gsize)m);
    memset(y, 0, (gsize)(m * n) * sizeof *y);
    for (int64_t i = 0; i < m * k; i++)
        minus[i] = -x[i];
    for (int64_t i = 0; i < m; i++)
        row[i] = (HnSpdRow){ y + i * n, minus + i * k, n };
    hn_spd_subtract_rows(row, m, z, n, k);
}

/* y[k, n] = c z[k, n], c the mean of x x', about the mean of x where that is known: BLOCK rows of it at a time. */
static void multiply_covariance(const HnGram *g, int64_t k, const double *mean, const double *z, int64_t n, double *y)
{
    g_autofree double *minus = g_new(double, (gsize)(BLOCK * k));
    const double rows = (double)MAX(g->rows, 1);
    memset(y, 0, (gsize)(k * n) * sizeof *y);
    for (int64_t from = 0; from < k; from += BLOCK) {
        HnSpdRow row[BLOCK];
        const int64_t m = MIN(BLOCK, k - from);
        for (int64_t r = 0; r < m; r++) {
            const int64_t i = from + r;
            row[r] = (HnSpdRow){ y + i * n, minus + r * k, n };
            for (int64_t j = 0; j < k; j++)
                minus[r * k + j] =
                    (mean != NULL ? mean[i] * mean[j] : 0) - (double)g->h[MAX(i, j) * g->k + MIN(i, j)] / rows;
        }
        hn_spd_subtract_rows(row, m, z, n, k);
    }
}

static double *turned(const double *x, int64_t rows, int64_t columns)
{
    double *t = g_new(double, (gsize)(rows * columns));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            t[j * rows + i] = x[i * columns + j];
    return t;
}

/* FALSE: the numbers are not finite, or all the same. */
static gboolean solve(const HnPruneLayer *l, const HnGram *g, HnLowRankLayer *f)
{
    const int64_t k = l->rows.k, n = l->rows.outs;
    f->mean = mean_of(g, k);
    g_autofree double *w = hn_prune_weights(l), *own = turned(w, k, n); /* w[k, n], and a bias */
    g_autofree double *cw = g_new(double, (gsize)(k * n)), *s = g_new(double, (gsize)(n * n)),
                      *vectors = g_new(double, (gsize)(n * n));
    multiply_covariance(g, k, f->mean, w, n, cw);
    multiply(own, cw, n, k, n, s);
    for (int64_t i = 0; i < n; i++) {
        f->energy += s[i * n + i];
        for (int64_t j = 0; j < i; j++)
            s[i * n + j] = s[j * n + i] = (s[i * n + j] + s[j * n + i]) / 2;
    }
    f->values = g_new(double, (gsize)n);
    if (!(f->energy > 0) || !hn_symmetric_eigen(s, n, f->values, vectors))
        return FALSE;
    f->p = g_memdup2(vectors, (gsize)(f->most * n) * sizeof *vectors);
    return TRUE;
}

/* --- all layers --------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnLayerSums *sums;
    HnLowRankLayer *made; /* by layer of the pass */
    gboolean *usable;     /* the same */
} Solve;

static void solve_one(gpointer data, gint64 i)
{
    const Solve *s = data;
    const HnPruneMap *map = s->sums->map;
    const HnGram *g = s->sums->grams[s->made[i].layer];
    s->usable[i] = g->rows > 0 && solve(map->layers->pdata[s->made[i].layer], g, &s->made[i]);
}

/* Those of one pass over the samples. */
static gboolean add_pass(HnLowRank *f, const HnLayerSums *sums, const HnPruneCosts *costs, GError **error)
{
    const guint n = sums->layers->len;
    g_autofree HnLowRankLayer *made = g_new0(HnLowRankLayer, n + 1);
    g_autofree gboolean *usable = g_new0(gboolean, n + 1);
    if (!hn_layer_sums_run(sums, NULL, error))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        const int at = g_array_index(sums->layers, int, i);
        const HnLinearRows *r = &((const HnPruneLayer *)f->map->layers->pdata[at])->rows;
        made[i] =
            (HnLowRankLayer){ .layer = at, .k = r->k, .outs = r->outs, .most = most_of(r), .flops = costs->layer[at] };
    }
    hn_each(n, f->o->threads, solve_one, &(Solve){ sums, made, usable });
    for (guint i = 0; i < n; i++) {
        if (usable[i]) {
            g_array_append_val(f->items, made[i]);
            f->rest -= made[i].flops;
        } else {
            layer_clear(&made[i]);
        }
    }
    return !hn_progress_stop(f->o->progress, error);
}

/* Passes over the samples that take as many layers as there is memory for. */
static gboolean find_all(HnLowRank *f, const HnPruneCosts *costs, GError **error)
{
    gboolean ok = TRUE;
    for (guint i = 0; i < f->map->layers->len && ok;) {
        HnLayerSums sums = hn_layer_sums(f->map, f->o);
        gboolean fit = TRUE;
        for (; i < f->map->layers->len && ok && fit; i += fit) {
            if (!may_be_two(f->map->layers->pdata[i]))
                continue;
            const guint n = sums.layers->len;
            hn_layer_sums_add(&sums, (int)i);
            ok = hn_layer_sums_fit(&sums, 0, &fit, error);
            if (fit || n == 0)
                fit = TRUE;
            else
                g_array_set_size(sums.layers, n);
        }
        ok = ok && (sums.layers->len == 0 || add_pass(f, &sums, costs, error));
        hn_layer_sums_clear(&sums);
    }
    return ok;
}

HnLowRank *hn_low_rank_new(const HnPruneMap *map, const HnPruneOptions *o, const HnPruneCosts *costs, GError **error)
{
    g_autoptr(HnLowRank) f = g_new0(HnLowRank, 1);
    f->map = map;
    f->o = o;
    f->items = g_array_new(FALSE, FALSE, sizeof(HnLowRankLayer));
    g_array_set_clear_func(f->items, layer_clear);
    f->rest = costs->rest;
    for (guint i = 0; i < map->layers->len; i++)
        f->rest += costs->layer[i];
    for (guint i = 0; i < costs->others->len; i++)
        f->rest += ((const HnPruneOther *)costs->others->pdata[i])->cost;
    return find_all(f, costs, error) ? g_steal_pointer(&f) : NULL;
}

void hn_low_rank_free(HnLowRank *f)
{
    if (f == NULL)
        return;
    g_array_unref(f->items);
    g_free(f);
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static double flops_of(const HnLowRankLayer *f, int64_t rank)
{
    return rank == 0 ? f->flops : f->flops * (double)rank * (double)(f->k + f->outs) / ((double)f->k * (double)f->outs);
}

/* The best rank where `worth` is what all operations of the model are worth, in parts of what a layer makes. */
static int best_rank(const HnLowRankLayer *f, double worth)
{
    double lost = f->energy, best = worth * flops_of(f, 0);
    int rank = 0;
    for (int64_t i = 0; i < f->most; i++) {
        lost -= fmax(f->values[i], 0);
        if ((i + 1) % STEP != 0)
            continue;
        const double cost = fmax(lost, 0) / f->energy + worth * flops_of(f, i + 1);
        if (cost < best) {
            best = cost;
            rank = (int)i + 1;
        }
    }
    return rank;
}

/* Operations with the best ranks. */
static double choose(const HnLowRank *f, double worth, int *rank)
{
    double flops = f->rest;
    for (guint i = 0; i < f->items->len; i++) {
        const HnLowRankLayer *item = &g_array_index(f->items, HnLowRankLayer, i);
        rank[i] = best_rank(item, worth);
        flops += flops_of(item, rank[i]);
    }
    return flops;
}

/* What is left of the goal goes to the ranks that gain most by it: prices meet only budgets that lie on the convex hull
 * of what there is. */
static void fill(const HnLowRank *f, double left, int *rank)
{
    for (int best = 0; best >= 0;) {
        double most = 0;
        best = -1;
        for (guint i = 0; i < f->items->len; i++) {
            const HnLowRankLayer *l = &g_array_index(f->items, HnLowRankLayer, i);
            const double cost = flops_of(l, STEP);
            double gain = 0;
            if (rank[i] == 0 || rank[i] + STEP > l->most || cost > left)
                continue;
            for (int r = rank[i]; r < rank[i] + STEP; r++)
                gain += fmax(l->values[r], 0) / l->energy;
            if (gain > NOTHING && gain / cost > most) {
                most = gain / cost;
                best = (int)i;
            }
        }
        if (best >= 0) {
            left -= flops_of(&g_array_index(f->items, HnLowRankLayer, best), STEP);
            rank[best] += STEP;
        }
    }
}

gboolean hn_low_rank_allocate(const HnLowRank *f, double goal, int *rank)
{
    double all = f->rest, least = LEAST_WORTH, most = MOST_WORTH;
    for (guint i = 0; i < f->items->len; i++)
        all += g_array_index(f->items, HnLowRankLayer, i).flops;
    if (choose(f, most / all, rank) > goal)
        return FALSE;
    for (int i = 0; i < BISECTIONS; i++) {
        const double middle = sqrt(least * most);
        *(choose(f, middle / all, rank) > goal ? &least : &most) = middle;
    }
    fill(f, goal - choose(f, most / all, rank), rank);
    return TRUE;
}

/* --- models ------------------------------------------------------------------------------------------------------- */

/* [rank, k]: what the first of the two multiplies by. */
static double *first_of(const HnLowRankLayer *f, const double *w, int rank)
{
    g_autofree double *own = turned(w, f->k, f->outs);
    double *a = g_new(double, (gsize)(rank * f->k));
    multiply(f->p, own, rank, f->outs, f->k, a);
    return a;
}

/* b' */
static HnTensor *bias_of(const HnLowRankLayer *f, const double *w, const double *a, int rank, HnBudget *budget,
                         GError **error)
{
    HnTensor *t = hn_tensor_new(HN_F32, 1, &f->outs, budget, error);
    g_autofree double *of_mean = g_new(double, (gsize)rank); /* what the first of the two makes of it */
    for (int r = 0; r < rank; r++)
        of_mean[r] = hn_spd_dot(a + r * f->k, f->mean, f->k);
    for (int64_t o = 0; t != NULL && o < f->outs; o++) {
        double sum = w[f->k * f->outs + o];
        for (int64_t i = 0; i < f->k; i++)
            sum += w[i * f->outs + o] * f->mean[i];
        for (int r = 0; r < rank; r++)
            sum -= f->p[r * f->outs + o] * of_mean[r];
        ((float *)t->data)[o] = (float)sum;
    }
    return t;
}

/* A weight like w, with other channels, of x[rows, columns]; `across`: it is stored the other way round. */
static HnTensor *weight_of(const HnTensor *w, const int64_t *dims, const double *x, int64_t rows, int64_t columns,
                           gboolean across, HnBudget *budget, GError **error)
{
    HnTensor *t = hn_tensor_new(HN_F32, w->ndim, dims, budget, error);
    for (int64_t i = 0; t != NULL && i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            ((float *)t->data)[across ? j * rows + i : i * columns + j] = (float)x[i * columns + j];
    return t;
}

/* Its own node makes fewer results, and one behind it all of them. */
static gboolean split(const HnLowRank *f, const HnLowRankLayer *item, int rank, HnModel *m, GError **error)
{
    const HnPruneLayer *l = f->map->layers->pdata[item->layer];
    const HnTensor *w = l->rows.w;
    HnValue *y = g_hash_table_lookup(m->graph->values, hn_node_out(l->node, 0)->name);
    HnNode *n = y->producer;
    HnLinearView v;
    hn_op_linear(l->node, &v);
    g_autofree double *own = hn_prune_weights(l), *a = first_of(item, own, rank);
    int64_t first[HN_MAX_RANK], second[HN_MAX_RANK];
    for (int i = 0; i < w->ndim; i++) {
        first[i] = w->dims[i];
        second[i] = 1; /* of a window */
    }
    first[v.out] = second[v.in] = rank;
    second[v.out] = item->outs;
    const gboolean rows_of_outs = v.window != NULL || v.w_turned;
    g_autoptr(HnTensor) narrow = weight_of(w, first, a, rank, item->k, !rows_of_outs, f->o->budget, error);
    g_autoptr(HnTensor) wide = weight_of(w, second, item->p, rank, item->outs, rows_of_outs, f->o->budget, error);
    g_autoptr(HnTensor) bias = item->mean != NULL ? bias_of(item, own, a, rank, f->o->budget, error) : NULL;
    if (narrow == NULL || wide == NULL || (item->mean != NULL && bias == NULL))
        return FALSE;
    HnGraph *g = m->graph;
    const HnBuild b = { .graph = g };
    const char *stem = hn_node_in(l->node, l->w)->name;
    HnNode *last = hn_graph_add_node(g, (int)hn_graph_index(g, n) + 1, n->op_type, n->domain, NULL);
    HnValue *between = hn_graph_new_value(g, y->name);
    hn_node_set_in(n, l->w, hn_build_constant(&b, stem, g_steal_pointer(&narrow)));
    const HnValue *old = hn_node_in(n, l->bias);
    if (old != NULL)
        hn_node_remove_in(n, l->bias);
    hn_node_add_in(last, between);
    hn_node_add_in(last, hn_build_constant(&b, stem, g_steal_pointer(&wide)));
    if (bias != NULL)
        hn_node_add_in(last, hn_build_constant(&b, old != NULL ? old->name : stem, g_steal_pointer(&bias)));
    hn_node_add_out(last, NULL);
    hn_node_set_out(last, 0, y);
    hn_node_set_out(n, 0, between);
    if (v.window == NULL) {
        hn_node_share_attrs(last, l->node);
        if (v.x_turned)
            hn_node_set_int(last, "transA", 0);
    }
    return TRUE;
}

HnModel *hn_low_rank_model(const HnLowRank *f, const int *rank, GError **error)
{
    g_autoptr(HnModel) m = hn_model_copy(f->map->model);
    for (guint i = 0; i < f->items->len; i++)
        if (rank[i] > 0 && !split(f, &g_array_index(f->items, HnLowRankLayer, i), rank[i], m, error))
            return NULL;
    if (!hn_prune_sweep(m, f->o->budget, error))
        return NULL;
    hn_model_name_apart(m);
    return g_steal_pointer(&m);
}
