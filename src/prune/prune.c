#include "prune/prune.h"

#include <math.h>
#include <string.h>

#include "base/each.h"
#include "ir/copy.h"
#include "pass/pass.h"
#include "prune/layer_sums.h"

#define AIMS 2 /* times that targets are looked for anew */

/* --- models ------------------------------------------------------------------------------------------------------- */

static HnNode *node_in(const HnModel *m, const HnPruneLayer *l)
{
    return hn_graph_find(m->graph, hn_node_out(l->node, 0)->name)->producer;
}

/* The dense model with weights that were fitted, and biases where it has some. */
static HnModel *changed(const HnPruned *p)
{
    HnModel *m = hn_model_copy(p->map->model);
    for (guint i = 0; i < p->map->layers->len; i++) {
        const HnPruneLayer *l = p->map->layers->pdata[i];
        HnTensor *const *fit = p->fits + 2 * (gsize)i;
        if (fit[0] == NULL)
            continue;
        const HnNode *n = node_in(m, l);
        hn_graph_add_weight(m->graph, hn_node_in(n, l->w), fit[0]);
        if (fit[1] != NULL && hn_node_in(n, l->bias) != NULL)
            hn_graph_add_weight(m->graph, hn_node_in(n, l->bias), fit[1]);
    }
    return m;
}

/* Of the bias of layer l, its elements for the channels that stay; a new reference. */
static HnTensor *left_of(const HnPruned *p, const HnPruneLayer *l, HnTensor *bias, GError **error)
{
    int axis;
    int64_t n, left = 0;
    const int *at = hn_channels_at(p->map->channels, hn_node_out(l->node, 0), &axis, &n);
    if (at == NULL || n != bias->n)
        return hn_tensor_ref(bias);
    g_autofree float *elements = g_new(float, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++)
        if (!p->gone[hn_channels_class(p->map->channels, at[i])])
            elements[left++] = ((const float *)bias->data)[i];
    HnTensor *t = hn_tensor_new_uninit(HN_F32, 1, &left, p->budget, error);
    if (t != NULL)
        memcpy(t->data, elements, t->bytes);
    return t;
}

/* Biases of layers of m that had none; `all` channels of them, or those that are left. */
static gboolean add_biases(const HnPruned *p, HnModel *m, gboolean all, GError **error)
{
    for (guint i = 0; i < p->map->layers->len; i++) {
        const HnPruneLayer *l = p->map->layers->pdata[i];
        HnTensor *bias = p->fits[2 * (gsize)i + 1];
        HnNode *n = bias != NULL ? node_in(m, l) : NULL;
        if (n == NULL || hn_node_in(n, l->bias) != NULL)
            continue;
        g_autoptr(HnTensor) t = all ? hn_tensor_ref(bias) : left_of(p, l, bias, error);
        if (t == NULL)
            return FALSE;
        HnValue *b = hn_graph_new_value(m->graph, hn_node_out(n, 0)->name);
        hn_graph_add_weight(m->graph, b, t);
        hn_node_set_in(n, l->bias, b);
    }
    return TRUE;
}

HnModel *hn_pruned_model(const HnPruned *p, GError **error)
{
    static const char *const dead[] = { "eliminate-dead", NULL };
    const HnPassOptions o = { .level = 1, .only = dead, .budget = p->budget };
    g_autoptr(HnModel) m = changed(p);
    if (!hn_graph_infer(m->graph, FALSE, error) || !hn_channels_remove(p->map->channels, p->gone, m, error) ||
        !add_biases(p, m, FALSE, error))
        return NULL;
    HnPassLog log;
    hn_pass_log_init(&log);
    const gboolean ok = hn_pass_run(m, &o, &log, error); /* constants that others took the place of */
    hn_pass_log_clear(&log);
    return ok ? g_steal_pointer(&m) : NULL;
}

HnModel *hn_pruned_masked(const HnPruned *p, GError **error)
{
    g_autoptr(HnModel) m = changed(p);
    return add_biases(p, m, TRUE, error) && hn_channels_mask(p->map->channels, p->gone, m, error) ? g_steal_pointer(&m)
                                                                                                  : NULL;
}

/* --- curves ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
    const HnLayerSums *p; /* NULL: no samples */
    const GArray *classes;
    double *const *loss;
    GMutex lock;
    GError *error;
} Curves;

static void curve_of(gpointer data, gint64 i)
{
    Curves *s = data;
    const int c = g_array_index(s->classes, int, i);
    const HnPruneClass *k = s->map->classes->pdata[c];
    g_autofree HnObs **obs = g_new0(HnObs *, s->map->layers->len + 1u);
    g_autofree double *others = g_new(double, (gsize)k->n);
    g_autofree int *order = g_new(int, (gsize)k->n);
    GError *failure = NULL;
    gboolean ok = TRUE;
    for (guint r = 0; s->p != NULL && r < k->layers->len && ok; r++) {
        const int at = g_array_index(k->layers, int, r);
        ok = hn_layer_obs(s->p, at, &obs[at], &failure);
    }
    hn_prune_weight_scores(s->map, c, s->p != NULL ? HN_PRUNE_OBS : HN_PRUNE_L2, s->o->seed, others);
    ok = ok && hn_prune_choose(s->map, c, obs, others, k->n - 1, order, s->loss[c], s->o->progress, &failure);
    for (guint r = 0; r < k->layers->len; r++)
        hn_obs_free(obs[g_array_index(k->layers, int, r)]);
    if (ok)
        return;
    g_mutex_lock(&s->lock);
    if (s->error == NULL)
        s->error = g_steal_pointer(&failure);
    g_mutex_unlock(&s->lock);
    g_clear_error(&failure);
}

static gboolean curves_of(const HnPruneMap *map, const HnPruneOptions *o, const HnLayerSums *p, const GArray *classes,
                          double *const *loss, GError **error)
{
    Curves s = { .map = map, .o = o, .p = p, .classes = classes, .loss = loss };
    g_mutex_init(&s.lock);
    hn_each(classes->len, o->threads, curve_of, &s);
    g_mutex_clear(&s.lock);
    if (s.error == NULL)
        return TRUE;
    g_propagate_error(error, s.error);
    return FALSE;
}

/* What the curves of so many classes take, each with all its readers at once. */
static gsize curve_bytes(const HnPruneMap *map, const HnPruneOptions *o, const GArray *classes)
{
    gsize most = 0;
    for (guint i = 0; i < classes->len; i++) {
        const HnPruneClass *k = map->classes->pdata[g_array_index(classes, int, i)];
        HnLayerSums p = hn_layer_sums(map, o);
        for (guint r = 0; r < k->layers->len; r++)
            hn_layer_sums_choose(&p, g_array_index(k->layers, int, r));
        most = MAX(most, hn_layer_sums_solving(&p));
        hn_layer_sums_clear(&p);
    }
    return most * MIN(classes->len, (guint)MAX(o->threads, 1));
}

/* One pass for some classes, of which the last one need not have got into it. */
static HnLayerSums curves_pass(const HnPruneMap *map, const HnPruneOptions *o, const GArray *classes, gsize *solving)
{
    HnLayerSums p = hn_layer_sums(map, o);
    for (guint i = 0; i < classes->len; i++) {
        const HnPruneClass *k = map->classes->pdata[g_array_index(classes, int, i)];
        for (guint r = 0; r < k->layers->len; r++)
            hn_layer_sums_choose(&p, g_array_index(k->layers, int, r));
    }
    *solving = curve_bytes(map, o, classes);
    return p;
}

/* Classes from `from` on whose sums there is memory for, one at least: how many. */
static gboolean take_classes(const HnPruneMap *map, const HnPruneOptions *o, int from, GArray *classes, GError **error)
{
    for (int c = from; c < (int)map->classes->len; c++) {
        gsize solving;
        gboolean fit;
        g_array_append_val(classes, c);
        HnLayerSums p = curves_pass(map, o, classes, &solving);
        const gboolean ok = hn_layer_sums_fit(&p, solving, &fit, error);
        hn_layer_sums_clear(&p);
        if (!ok)
            return FALSE;
        if (fit || classes->len == 1)
            continue;
        g_array_set_size(classes, classes->len - 1);
        break;
    }
    return TRUE;
}

gboolean hn_prune_curves(const HnPruneMap *map, const HnPruneOptions *o, double *const *loss, GError **error)
{
    const int n = (int)map->classes->len;
    gboolean ok = TRUE;
    for (int c = 0; c < n && ok;) {
        g_autoptr(GArray) classes = g_array_new(FALSE, FALSE, sizeof(int));
        gsize solving;
        hn_progress_tell(o->progress, "errors of widths", (guint64)c, (guint64)n);
        if (!take_classes(map, o, c, classes, error))
            return FALSE;
        HnLayerSums p = curves_pass(map, o, classes, &solving);
        ok = (o->data == NULL || p.layers->len == 0 || hn_layer_sums_run(&p, NULL, error)) &&
             curves_of(map, o, o->data != NULL ? &p : NULL, classes, loss, error);
        hn_layer_sums_clear(&p);
        c += (int)classes->len;
    }
    return ok;
}

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
} Needs;

static HnLayerSums pass_of_class(gconstpointer data, int c, gsize *solving)
{
    const Needs *n = data;
    g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(one, c);
    return curves_pass(n->map, n->o, one, solving);
}

gboolean hn_prune_curves_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error)
{
    return hn_layer_sums_most(pass_of_class, &(Needs){ map, o }, (int)map->classes->len, bytes, error);
}

/* --- in the order of the graph ------------------------------------------------------------------------------------ */

typedef struct {
    HnPruned *out;
    const HnPruneOptions *o;
    const int *keep;
    const double *learned; /* HnPruneLearner.score; NULL: another score is asked for */
    gboolean dirty;        /* something has gone */
} Run;

static void note_gone(HnPruned *p, int c, const int *order, int n)
{
    const HnPruneClass *k = p->map->classes->pdata[c];
    for (int i = 0; i < n; i++)
        p->gone[g_array_index(k->group->classes, int, order[i])] = 1;
    p->kept[c] = k->n - n;
}

static int compare_scores(gconstpointer a, gconstpointer b, gpointer data)
{
    const double *score = data, x = score[*(const int *)a], y = score[*(const int *)b];
    return x < y ? -1 : x > y ? 1 : *(const int *)a - *(const int *)b;
}

/* By scores that do not change when others go. */
static void sort_places(int *order, int n, double *score)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    g_qsort_with_data(order, n, sizeof *order, compare_scores, score);
}

/* The learner's, unless it knows nothing of the class. */
static void take_learned(const Run *r, int c, double *score)
{
    const HnPruneClass *k = r->out->map->classes->pdata[c];
    double sum = 0;
    for (int i = 0; i < k->n; i++)
        sum += score[i] = r->learned[g_array_index(k->group->classes, int, i)];
    if (!(sum > 0))
        hn_prune_weight_scores(r->out->map, c, HN_PRUNE_L2, r->o->seed, score);
}

/* Mean squares of what is read, times those of the weights. */
static void add_wanda(const HnLayerSums *p, int c, double *score)
{
    const HnPruneClass *k = p->map->classes->pdata[c];
    g_autoptr(GArray) at = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint i = 0; i < k->layers->len; i++) {
        const int layer = g_array_index(k->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[layer];
        const HnGram *g = p->grams[layer];
        g_autofree double *w = hn_prune_weights(l);
        for (int place = 0; g != NULL && place < k->n; place++)
            for (int64_t group = 0; group < g->groups; group++) {
                g_array_set_size(at, 0);
                hn_prune_inputs(p->map, l, c, place, group, at);
                for (guint e = 0; e < at->len; e++) {
                    const int64_t row = g_array_index(at, int64_t, e);
                    const double *from = w + (group * g->k + row) * g->outs;
                    for (int64_t o = 0; o < g->outs; o++)
                        score[place] += from[o] * from[o] * (double)g->h[(group * g->k + row) * g->k + row];
                }
            }
    }
}

/* The channels of class c that go, now. */
static gboolean choose(Run *r, const HnLayerSums *p, int c, HnObs *const *obs, GError **error)
{
    const HnPruneClass *k = r->out->map->classes->pdata[c];
    const int n = k->n - r->keep[c];
    g_autofree double *score = g_new(double, (gsize)k->n), *loss = g_new0(double, (gsize)k->n);
    g_autofree int *order = g_new(int, (gsize)k->n);
    const gboolean by_data = r->o->data != NULL && p != NULL;
    HnPruneScore s = r->o->score;
    if (!by_data && (s == HN_PRUNE_OBS || s == HN_PRUNE_WANDA) && k->layers->len > 0)
        s = HN_PRUNE_L2;
    if (s == HN_PRUNE_TAYLOR && r->learned != NULL)
        take_learned(r, c, score);
    else
        hn_prune_weight_scores(r->out->map, c, s, r->o->seed, score);
    if (s == HN_PRUNE_OBS) {
        if (!hn_prune_choose(r->out->map, c, obs, score, n, order, loss, r->o->progress, error))
            return FALSE;
        if (p != NULL && !hn_prune_exchange(r->out->map, c, obs, score, n, order, &loss[n - 1], r->o->progress, error))
            return FALSE;
        r->out->loss[c] = loss[n - 1];
    } else {
        if (s == HN_PRUNE_WANDA && by_data)
            add_wanda(p, c, score);
        sort_places(order, k->n, score);
        if (obs != NULL)
            hn_prune_take(r->out->map, c, obs, order, n);
    }
    note_gone(r->out, c, order, n);
    r->dirty = TRUE;
    return TRUE;
}

/* The best weights for targets that those so far make, of all layers that can have some. */
static gboolean aim_layers(const Run *r, const HnLayerSums *p, HnModel *pruned, HnObs *const *obs, GError **error)
{
    const guint n = p->map->layers->len;
    g_autofree double **w = g_new0(double *, n + 1u);
    for (guint i = 0; i < n; i++)
        w[i] = obs[i] != NULL && hn_layer_sums_aims(p, (int)i) ? obs[i]->w : NULL;
    gboolean ok = hn_layer_sums_aim(p, pruned, w, error);
    for (guint i = 0; i < n && ok; i++) {
        if (w[i] == NULL)
            continue;
        g_autofree double *own = hn_prune_weights(p->map->layers->pdata[i]);
        ok = hn_obs_settle(obs[i], p->grams[i], own, hn_layer_ridge(r->o), error);
    }
    return ok;
}

static gboolean fit_layers(Run *r, const HnLayerSums *p, HnModel *pruned, HnObs *const *obs, GError **error)
{
    gboolean ok = TRUE;
    for (guint i = 0; i < p->map->layers->len; i++)
        if (p->chosen[i] && obs[i] != NULL)
            hn_obs_end(obs[i]);
    for (int i = 0; i < AIMS && ok; i++)
        ok = aim_layers(r, p, pruned, obs, error);
    for (guint i = 0; i < p->map->layers->len && ok; i++) {
        HnTensor **fit = r->out->fits + 2 * (gsize)i;
        if (!p->wanted[i] || obs[i] == NULL)
            continue;
        r->out->fitted++;
        ok = hn_prune_tensors(p->map->layers->pdata[i], obs[i]->w, r->o->budget, &fit[0], &fit[1], error);
    }
    return ok;
}

/* All that this level reads: what goes of it, and what its weights become. */
static gboolean run_level(Run *r, int level, GError **error)
{
    const HnPruneMap *map = r->out->map;
    HnLayerSums p = hn_layer_sums_of_level(map, r->o, r->keep, r->dirty, level);
    p.gone = r->out->gone;
    gboolean ok = TRUE;
    g_autofree HnObs **obs = g_new0(HnObs *, map->layers->len + 1u);
    g_autoptr(HnModel) pruned = NULL;
    if (r->o->data != NULL && p.layers->len > 0) {
        pruned = r->dirty ? hn_pruned_masked(r->out, error) : NULL;
        ok = (!r->dirty || pruned != NULL) && hn_layer_sums_run(&p, pruned, error) &&
             hn_layer_sums_solve(&p, obs, error);
    }
    for (int c = 0; c < (int)map->classes->len && ok; c++)
        if (hn_prune_goes_at(map, r->keep, c, level))
            ok = choose(r, &p, c, obs, error);
    ok = ok && fit_layers(r, &p, pruned, obs, error);
    for (guint i = 0; i < map->layers->len; i++)
        hn_obs_free(obs[i]);
    hn_layer_sums_clear(&p);
    return ok;
}

static HnLayerSums pass_of_level(gconstpointer data, int level, gsize *solving)
{
    const Needs *n = data;
    HnLayerSums p = hn_layer_sums_of_level(n->map, n->o, NULL, TRUE, level);
    *solving = hn_layer_sums_solving(&p);
    return p;
}

gboolean hn_prune_need(const HnPruneMap *map, const HnPruneOptions *o, gsize *bytes, GError **error)
{
    return hn_layer_sums_most(pass_of_level, &(Needs){ map, o }, map->levels, bytes, error);
}

HnPruned *hn_pruned_new(const HnPruneMap *map, HnBudget *budget)
{
    HnPruned *p = g_new(HnPruned, 1);
    const guint n = map->classes->len;
    *p = (HnPruned){ .map = map,
                     .budget = budget,
                     .gone = g_new0(guint8, (gsize)hn_channels_count(map->channels) + 1),
                     .kept = g_new0(int, n + 1u),
                     .loss = g_new0(double, n + 1u),
                     .fits = g_new0(HnTensor *, 2 * (gsize)map->layers->len + 1),
                     .bare = g_new0(HnTensor *, map->layers->len + 1u) };
    for (guint c = 0; c < n; c++) {
        p->kept[c] = ((const HnPruneClass *)map->classes->pdata[c])->n;
        p->loss[c] = NAN;
    }
    return p;
}

HnPruned *hn_prune_run(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, GError **error)
{
    g_autoptr(HnPruned) p = hn_pruned_new(map, o->budget);
    const guint n = map->classes->len;
    g_autofree double *learned = NULL;
    if (o->score == HN_PRUNE_TAYLOR && o->learner != NULL) {
        learned = g_new0(double, (gsize)hn_channels_count(map->channels) + 1);
        if (!o->learner->score(o->learner->data, map, learned, error))
            return NULL;
    }
    Run r = { .out = p, .o = o, .keep = keep, .learned = learned, .dirty = o->wanted != NULL };
    for (guint c = 0; c < n; c++) {
        if (hn_prune_goes_at(map, keep, (int)c, G_MAXINT) && /* no layer reads it */
            !choose(&r, NULL, (int)c, NULL, error))
            return NULL;
    }
    for (int level = 0; level < map->levels; level++) {
        hn_progress_tell(o->progress, "pruning", (guint64)level, (guint64)map->levels);
        if (hn_progress_stop(o->progress, error) || !run_level(&r, level, error))
            return NULL;
    }
    return g_steal_pointer(&p);
}

HnPruned *hn_pruned_copy(const HnPruned *p, gboolean fits)
{
    HnPruned *q = g_new(HnPruned, 1);
    const guint n = p->map->classes->len;
    *q = (HnPruned){ .map = p->map,
                     .budget = p->budget,
                     .gone = g_memdup2(p->gone, (gsize)hn_channels_count(p->map->channels) + 1),
                     .kept = g_memdup2(p->kept, (n + 1u) * sizeof *p->kept),
                     .loss = g_memdup2(p->loss, (n + 1u) * sizeof *p->loss),
                     .fits = g_new0(HnTensor *, 2 * (gsize)p->map->layers->len + 1),
                     .bare = g_new0(HnTensor *, p->map->layers->len + 1u),
                     .fitted = fits ? p->fitted : 0 };
    for (guint i = 0; i < p->map->layers->len; i++) {
        HnTensor **to = q->fits + 2 * (gsize)i, *const *from = p->fits + 2 * (gsize)i;
        q->bare[i] = hn_tensor_ref(p->bare[i]);
        to[0] = hn_tensor_ref(fits ? from[0] : p->bare[i]);
        to[1] = fits ? hn_tensor_ref(from[1]) : NULL;
    }
    return q;
}

void hn_pruned_free(HnPruned *p)
{
    if (p == NULL)
        return;
    for (gsize i = 0; i < 2 * (gsize)p->map->layers->len; i++)
        hn_tensor_unref(p->fits[i]);
    for (guint i = 0; i < p->map->layers->len; i++)
        hn_tensor_unref(p->bare[i]);
    g_free(p->fits);
    g_free(p->bare);
    g_free(p->gone);
    g_free(p->kept);
    g_free(p->loss);
    g_free(p);
}
