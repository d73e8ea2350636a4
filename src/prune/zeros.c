#include "prune/zeros.h"

#include <math.h>
#include <string.h>

#include "prune/layer_sums.h"
#include "prune/widths.h"
#include "prune/zeros_group.h"

#define LEAST_SUM 64 /* products of a sum: fewer weights are not worth an index each */
#define LEAST 0.02   /* of a layer's weights at least stay */
#define AIMS 2       /* times that targets are looked for anew */
#define STEPS 200    /* of what is left of a layer, that are told apart */

gboolean hn_zeros_takes(const HnPruneLayer *l)
{
    return l->free && !l->passes && l->rows.k >= LEAST_SUM && hn_node_in(l->node, l->x)->weight == NULL;
}

static HnZerosGroup group_of(const HnPruneLayer *l, const HnPruneOptions *o, const HnZerosOptions *z)
{
    return (HnZerosGroup){ .rows = z->rows,
                           .of_four = hn_zeros_takes(l) ? z->of_four : 0,
                           .by = o->score,
                           .seed = o->seed,
                           .threads = o->threads,
                           .budget = o->budget };
}

/* --- curves ------------------------------------------------------------------------------------------------------- */

/* explained[i] of a layer by round, with HN_ZEROS_ROUND^i of its weights. */
static gboolean add_curve(const HnPruneLayer *l, const HnPruneOptions *o, const HnZerosOptions *z, const HnGram *gram,
                          GArray *explained, GError **error)
{
    g_autofree double *w0 = hn_prune_weights(l),
                      *w = g_memdup2(w0, (gsize)(gram->groups * gram->k * gram->outs) * sizeof *w);
    for (int64_t at = 0; at < gram->groups; at++) {
        HnZerosGroup g = group_of(l, o, z);
        const gboolean ok = hn_zeros_group_open(&g, l, gram, at, hn_layer_ridge(o), w0, w, error);
        const int64_t all = g.left;
        double left = 1;
        for (guint i = 0; ok && left >= LEAST; i++, left *= HN_ZEROS_ROUND) {
            if (explained->len <= i)
                g_array_set_size(explained, i + 1);
            g_array_index(explained, double, i) +=
                hn_zeros_group_round(&g, (int64_t)(left * HN_ZEROS_ROUND * (double)all));
        }
        hn_zeros_group_close(&g);
        if (!ok)
            return FALSE;
    }
    const double energy = hn_obs_energy(gram, w0), most = explained->len > 0 ? g_array_index(explained, double, 0) : 0;
    for (guint i = 0; i < explained->len; i++) {
        double *e = &g_array_index(explained, double, i);
        *e = energy > 0 ? CLAMP((most - *e) / energy, 0, 1) : 0;
    }
    return TRUE;
}

/* What the layers of a pass take, one after the other. */
static gsize solving_of(const HnLayerSums *p)
{
    gsize most = 0;
    for (guint i = 0; i < p->layers->len; i++) {
        const HnPruneLayer *l = p->map->layers->pdata[g_array_index(p->layers, int, i)];
        most = MAX(most, hn_zeros_group_bytes(&l->rows, l->bias >= 0));
    }
    return most;
}

/* Layers from `from` on that there is memory for together, one at least; *behind: the one behind them. */
static gboolean take_layers(HnLayerSums *p, guint from, guint *behind, GError **error)
{
    for (*behind = from; *behind < p->map->layers->len; (*behind)++) {
        const HnPruneLayer *l = p->map->layers->pdata[*behind];
        gboolean fit;
        if (!hn_zeros_takes(l))
            continue;
        hn_layer_sums_add(p, (int)*behind);
        if (!hn_layer_sums_fit(p, solving_of(p), &fit, error))
            return FALSE;
        if (p->layers->len == 1 || fit)
            continue;
        g_array_set_size(p->layers, p->layers->len - 1);
        break;
    }
    return TRUE;
}

HnZerosCurves *hn_zeros_curves_new(const HnPruneMap *map, const HnPruneOptions *o, const HnZerosOptions *z,
                                   GError **error)
{
    const guint n = map->layers->len;
    g_autoptr(HnZerosCurves) c = g_new(HnZerosCurves, 1);
    *c = (HnZerosCurves){ map, g_new0(GArray *, n + 1u) };
    gboolean ok = TRUE;
    for (guint at = 0; at < n && ok;) {
        HnLayerSums p = hn_layer_sums(map, o);
        hn_progress_tell(o->progress, "worth of weights", at, n);
        ok = take_layers(&p, at, &at, error) && (p.layers->len == 0 || hn_layer_sums_run(&p, NULL, error));
        for (guint i = 0; i < p.layers->len && ok; i++) {
            const int layer = g_array_index(p.layers, int, i);
            if (p.grams[layer]->rows == 0)
                continue;
            c->loss[layer] = g_array_new(FALSE, TRUE, sizeof(double));
            ok = add_curve(map->layers->pdata[layer], o, z, p.grams[layer], c->loss[layer], error);
        }
        hn_layer_sums_clear(&p);
    }
    return ok ? g_steal_pointer(&c) : NULL;
}

void hn_zeros_curves_free(HnZerosCurves *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->map->layers->len; i++)
        if (c->loss[i] != NULL)
            g_array_unref(c->loss[i]);
    g_free(c->loss);
    g_free(c);
}

/* --- how many of each --------------------------------------------------------------------------------------------- */

/* What is lost of what a layer passes on, with LEAST^(step / STEPS) of its weights: -log of what is left, since what
 * layers in a row leave multiplies. Between points the loss is a power of the weights that are left. */
static double loss_at(const GArray *loss, int step)
{
    const double at = step * log(LEAST) / STEPS / log(HN_ZEROS_ROUND);
    const guint i = MIN((guint)at, loss->len - 2);
    const double a = fmax(g_array_index(loss, double, i), 1e-9), b = fmax(g_array_index(loss, double, i + 1), 1e-9);
    const double l = exp(log(a) + (at - i) * (log(b) - log(a)));
    return -log(fmax(1 - l, 1e-6));
}

/* The steps at which loss and price * weights together are least; returns the zeros. */
static double steps_at(const HnPruneMap *map, const HnZerosCurves *c, double through, double price, double *part)
{
    double zeros = 0;
    for (guint i = 0; i < map->layers->len; i++) {
        const HnPruneLayer *l = map->layers->pdata[i];
        double least = INFINITY;
        part[i] = 0;
        if (c->loss[i] == NULL || c->loss[i]->len < 2)
            continue;
        for (int s = 0; s <= STEPS; s++) {
            const double left = pow(LEAST, (double)s / STEPS),
                         sum = left * (double)l->rows.w->n * price +
                               hn_prune_gets_through(map, l->level, through) * loss_at(c->loss[i], s);
            if (sum < least) {
                least = sum;
                part[i] = 1 - left;
            }
        }
        zeros += part[i] * (double)l->rows.w->n;
    }
    return zeros;
}

void hn_zeros_share(const HnPruneMap *map, const HnZerosCurves *c, double all, double through, double *part)
{
    double weights = 0, lo = log(1e-12), hi = log(1e3);
    for (guint i = 0; i < map->layers->len; i++) {
        const HnPruneLayer *l = map->layers->pdata[i];
        part[i] = hn_zeros_takes(l) ? all : 0;
        weights += hn_zeros_takes(l) ? (double)l->rows.w->n : 0;
    }
    if (c == NULL)
        return;
    g_autofree double *few = g_new0(double, map->layers->len + 1u);
    for (int i = 0; i < 60; i++) {
        const double mid = (lo + hi) / 2;
        if (steps_at(map, c, through, exp(mid), part) < all * weights)
            lo = mid;
        else
            hi = mid;
    }
    const double below = steps_at(map, c, through, exp(lo), few), above = steps_at(map, c, through, exp(hi), part);
    const double on = above > below ? CLAMP((all * weights - below) / (above - below), 0, 1) : 1;
    for (guint i = 0; i < map->layers->len; i++)
        part[i] = few[i] + on * (part[i] - few[i]);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnPruned *out;
    const HnPruneOptions *o;
    const HnZerosOptions *z;
    const double *part; /* by layer: of its weights becomes 0 */
    gboolean dirty;
} Run;

/* NULL: no samples say anything of the layer. */
static const HnGram *gram_of(const HnLayerSums *p, int layer)
{
    const HnGram *g = p->grams[layer];
    return g != NULL && g->rows > 0 ? g : NULL;
}

/* The zeros of a group, and the best weights with them. bare, w: of the layer, its own at first. */
static gboolean prune_group(const Run *r, const HnLayerSums *p, HnModel *now, int layer, int64_t at, const double *w0,
                            double *w, double *bare, GError **error)
{
    const HnPruneLayer *l = r->out->map->layers->pdata[layer];
    const double ridge = hn_layer_ridge(r->o);
    const HnGram *gram = gram_of(p, layer);
    const gboolean aims = gram != NULL && gram->groups == 1 && hn_layer_sums_aims(p, layer) && r->o->fit;
    g_autofree double **made = g_new0(double *, p->map->layers->len + 1u);
    gboolean ok = TRUE;
    HnZerosGroup g = group_of(l, r->o, r->z);
    if (!hn_zeros_group_open(&g, l, gram, at, ridge, w0, w, error)) {
        hn_zeros_group_close(&g);
        return FALSE;
    }
    if (hn_zeros_takes(l) && r->part[layer] > 0)
        hn_zeros_group_drop(&g, (int64_t)lround((1 - r->part[layer]) * (double)g.left));
    hn_zeros_group_blank(&g, bare + at * g.k * g.outs);
    if (gram == NULL || !r->o->fit)
        memcpy(g.w, bare + at * g.k * g.outs, (gsize)(g.k * g.outs) * sizeof *w);
    else
        hn_zeros_group_settle(&g);
    made[layer] = w;
    for (int i = 0; i < AIMS && aims && ok; i++) {
        ok = hn_layer_sums_aim(p, now, made, error);
        if (ok)
            hn_zeros_group_aim(&g, gram, at, ridge);
    }
    hn_zeros_group_close(&g);
    return ok;
}

static gboolean prune_layer(Run *r, const HnLayerSums *p, HnModel *now, int layer, GError **error)
{
    const HnPruneLayer *l = r->out->map->layers->pdata[layer];
    const gboolean fits = gram_of(p, layer) != NULL && r->o->fit;
    HnTensor **fit = r->out->fits + 2 * (gsize)layer;
    g_autoptr(HnTensor) bias = NULL;
    const gsize bytes = (gsize)(l->rows.groups * (l->rows.k + (l->bias >= 0)) * l->rows.outs) * sizeof(double);
    g_autofree double *w0 = hn_prune_weights(l), *w = g_memdup2(w0, bytes), *bare = g_memdup2(w0, bytes);
    for (int64_t at = 0; at < l->rows.groups; at++)
        if (!prune_group(r, p, now, layer, at, w0, w, bare, error))
            return FALSE;
    r->out->fitted += fits;
    r->dirty = TRUE;
    if (!hn_prune_tensors(l, bare, r->o->budget, &r->out->bare[layer], &bias, error))
        return FALSE;
    if (fits)
        return hn_prune_tensors(l, w, r->o->budget, &fit[0], &fit[1], error);
    fit[0] = hn_tensor_ref(r->out->bare[layer]);
    return TRUE;
}

/* Layers of this level that lose weights, or that make up for those that others lost. */
static HnLayerSums sums_of_level(const HnPruneMap *map, const HnPruneOptions *o, gboolean dirty, int level)
{
    HnLayerSums p = hn_layer_sums(map, o);
    p.aims = o->fit;
    for (int i = 0; i < (int)map->layers->len; i++) {
        const HnPruneLayer *l = map->layers->pdata[i];
        const gboolean fits =
            dirty && o->fit && o->data != NULL && l->free && hn_node_in(l->node, l->x)->weight == NULL;
        if (l->level == level && (hn_zeros_takes(l) || fits)) {
            hn_layer_sums_add(&p, i);
            p.wanted[i] = 1;
        }
    }
    return p;
}

static gboolean run_level(Run *r, int level, GError **error)
{
    HnLayerSums p = sums_of_level(r->out->map, r->o, r->dirty, level);
    gboolean ok = TRUE;
    g_autoptr(HnModel) now = NULL;
    if (p.layers->len > 0 && r->o->data != NULL) {
        now = r->dirty ? hn_pruned_masked(r->out, error) : NULL;
        ok = (!r->dirty || now != NULL) && hn_layer_sums_run(&p, now, error);
    }
    for (guint i = 0; i < p.layers->len && ok; i++)
        ok = prune_layer(r, &p, now, g_array_index(p.layers, int, i), error);
    hn_layer_sums_clear(&p);
    return ok;
}

HnPruned *hn_prune_zeros(const HnPruneMap *map, const HnPruneOptions *o, const HnZerosOptions *z, const double *part,
                         GError **error)
{
    g_autoptr(HnPruned) p = hn_pruned_new(map, o->budget);
    Run r = { .out = p, .o = o, .z = z, .part = part, .dirty = o->wanted != NULL };
    for (int level = 0; level < map->levels; level++) {
        hn_progress_tell(o->progress, "zeros", (guint64)level, (guint64)map->levels);
        if (hn_progress_stop(o->progress, error) || !run_level(&r, level, error))
            return NULL;
    }
    return g_steal_pointer(&p);
}

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
} Needs;

static HnLayerSums pass_of_level(gconstpointer data, int level, gsize *solving)
{
    const Needs *n = data;
    HnLayerSums p = sums_of_level(n->map, n->o, TRUE, level);
    *solving = solving_of(&p);
    return p;
}

gboolean hn_zeros_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error)
{
    return hn_layer_sums_most(pass_of_level, &(Needs){ map, o }, map->levels, bytes, error);
}
