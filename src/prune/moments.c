#include "prune/moments.h"

#include <math.h>
#include <string.h>

#include "prune/layer_sums.h"

#define MOST_SCALE 4.0    /* of a channel's weights, either way: more is a channel that means nothing any more */
#define LEAST_SPREAD 1e-6 /* of the mean square: less is rounding */

/* What layer i's weights are now: 0 for inputs that are no more. */
static double *weights_now(const HnPruned *p, int i, const HnGram *g)
{
    const HnPruneLayer *l = p->map->layers->pdata[i];
    HnTensor *const *fit = p->fits + 2 * (gsize)i;
    double *w = fit[0] != NULL ? hn_prune_weights_in(l, fit[0], fit[1]) : hn_prune_weights(l);
    g_autofree guint8 *gone = hn_layer_gone_inputs(l, g, p->gone);
    for (int64_t k = 0; k < g->groups * g->k; k++)
        if (gone[k])
            memset(w + k * g->outs, 0, (gsize)g->outs * sizeof *w);
    return w;
}

/* Something goes of what this layer reads, or of its weights, or of what is before it. */
static gboolean is_touched(const HnPruned *p, const HnPruneOptions *o, int level)
{
    for (guint c = 0; c < p->map->classes->len; c++) {
        const HnPruneClass *k = p->map->classes->pdata[c];
        if (p->kept[c] < k->n && (k->level <= level || k->level == G_MAXINT)) /* what reads it is no layer */
            return TRUE;
    }
    for (guint i = 0; i < p->map->layers->len; i++)
        if (p->fits[2 * (gsize)i] != NULL && ((const HnPruneLayer *)p->map->layers->pdata[i])->level <= level)
            return TRUE;
    return o->wanted != NULL;
}

/* Column `o` of a group's w[k, outs]: its mean over rows, and its variance, or (wanted) those of the dense model. */
static void moments_made(const HnGram *g, int64_t group, const double *w, int64_t o, double *mean, double *variance)
{
    const float *h = g->h + group * g->k * g->k;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < g->k; i++) {
        const double a = w[i * g->outs + o];
        sum += a * (double)h[(g->k - 1) * g->k + i];
        for (int64_t j = 0; j <= i && a != 0; j++)
            squares += (i == j ? 1 : 2) * a * w[j * g->outs + o] * (double)h[i * g->k + j];
    }
    *mean = sum / (double)g->rows;
    *variance = squares / (double)g->rows - *mean * *mean;
}

static void moments_wanted(const HnGram *g, int64_t group, int64_t o, double *mean, double *variance)
{
    *mean = (double)g->b[((group + 1) * g->k - 1) * g->outs + o] / (double)g->rows;
    *variance = g->squares[group * g->outs + o] / (double)g->rows - *mean * *mean;
}

static void match(const HnGram *g, double *w, gboolean spreads)
{
    for (int64_t group = 0; group < g->groups; group++)
        for (int64_t o = 0; o < g->outs; o++) {
            double *of = w + group * g->k * g->outs, *bias = of + (g->k - 1) * g->outs + o;
            double made, wanted, v_made, v_wanted, scale = 1;
            moments_made(g, group, of, o, &made, &v_made);
            moments_wanted(g, group, o, &wanted, &v_wanted);
            const gboolean sure = v_made > LEAST_SPREAD * made * made && v_wanted > LEAST_SPREAD * wanted * wanted;
            if (spreads && sure)
                scale = CLAMP(sqrt(v_wanted / v_made), 1 / MOST_SCALE, MOST_SCALE);
            for (int64_t i = 0; i < g->k - 1; i++)
                of[i * g->outs + o] *= scale;
            *bias = wanted - scale * (made - *bias);
        }
}

static HnLayerSums sums_of_level(const HnPruneMap *map, const HnPruneOptions *o, int level)
{
    HnLayerSums s = hn_layer_sums(map, o);
    for (int i = 0; i < (int)map->layers->len; i++) {
        const HnPruneLayer *l = map->layers->pdata[i];
        if (l->level != level || !l->free || l->bias < 0 || hn_node_in(l->node, l->x)->weight != NULL)
            continue;
        hn_layer_sums_add(&s, i);
        s.wanted[i] = 1;
    }
    return s;
}

static gboolean match_level(HnPruned *p, const HnPruneOptions *o, int level, gboolean spreads, GError **error)
{
    HnLayerSums s = sums_of_level(p->map, o, level);
    gboolean ok = TRUE;
    if (s.layers->len > 0 && is_touched(p, o, level)) {
        HnModel *now = hn_pruned_masked(p, error);
        ok = now != NULL && hn_layer_sums_run(&s, now, error);
        hn_model_free(now);
    }
    for (guint i = 0; i < s.layers->len && ok; i++) {
        const int at = g_array_index(s.layers, int, i);
        const HnGram *g = s.grams[at];
        HnTensor **fit = p->fits + 2 * (gsize)at;
        if (g == NULL || g->rows == 0)
            continue;
        g_autofree double *w = weights_now(p, at, g);
        match(g, w, spreads);
        g_clear_pointer(&fit[0], hn_tensor_unref);
        g_clear_pointer(&fit[1], hn_tensor_unref);
        ok = hn_prune_tensors(p->map->layers->pdata[at], w, o->budget, &fit[0], &fit[1], error);
    }
    hn_layer_sums_clear(&s);
    return ok;
}

HnPruned *hn_pruned_matched(const HnPruned *p, const HnPruneOptions *o, gboolean spreads, GError **error)
{
    g_autoptr(HnPruned) q = hn_pruned_copy(p, TRUE);
    for (int level = 0; level < p->map->levels; level++) {
        hn_progress_tell(o->progress, "moments", (guint64)level, (guint64)p->map->levels);
        if (hn_progress_stop(o->progress, error) || !match_level(q, o, level, spreads, error))
            return NULL;
    }
    return g_steal_pointer(&q);
}

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
} Needs;

static HnLayerSums pass_of_level(gconstpointer data, int level, gsize *solving)
{
    const Needs *n = data;
    *solving = 0;
    return sums_of_level(n->map, n->o, level);
}

gboolean hn_moments_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error)
{
    return hn_layer_sums_most(pass_of_level, &(Needs){ map, o }, map->levels, bytes, error);
}
