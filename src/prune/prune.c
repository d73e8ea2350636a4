#include "prune/prune.h"

#include <math.h>
#include <string.h>

#include "base/each.h"
#include "check/capture.h"
#include "ir/copy.h"
#include "pass/pass.h"

#define RIDGE 1e-3                  /* of the mean square of an input, of many samples; */
#define FEW 32                      /* of fewer it is the larger, */
#define MOST_RIDGE 1e-2             /* up to that */
#define ROWS 16384                  /* of a layer's inputs that are looked at, in all samples together, at least; */
#define ROWS_OF_K 8                 /* and so many times k more */
#define AIMS 2                      /* times that targets are looked for anew */
#define TOGETHER ((gsize)256 << 20) /* bytes of HnGram for one pass over the samples, where there is no limit; */
#define PART 4                      /* else that part of it */

/* --- models ------------------------------------------------------------------------------------------------------- */

static void apply_fits(const HnPruned *p, HnModel *m)
{
    for (guint i = 0; i < p->map->layers->len; i++) {
        const HnPruneLayer *l = p->map->layers->pdata[i];
        HnTensor *const *fit = p->fits + 2 * (gsize)i;
        if (fit[0] == NULL)
            continue;
        HnNode *n = hn_graph_find(m->graph, hn_node_out(l->node, 0)->name)->producer;
        hn_graph_add_weight(m->graph, hn_node_in(n, l->w), fit[0]);
        if (fit[1] == NULL)
            continue;
        HnValue *b = hn_node_in(n, l->bias);
        if (b == NULL) {
            b = hn_graph_new_value(m->graph, hn_node_out(n, 0)->name);
            hn_graph_add_weight(m->graph, b, fit[1]);
            hn_node_set_in(n, l->bias, b);
        } else {
            hn_graph_add_weight(m->graph, b, fit[1]);
        }
    }
}

static HnModel *changed(const HnPruned *p)
{
    HnModel *m = hn_model_copy(p->map->model);
    apply_fits(p, m);
    return m;
}

HnModel *hn_pruned_model(const HnPruned *p, GError **error)
{
    static const char *const dead[] = { "eliminate-dead", NULL };
    const HnPassOptions o = { .level = 1, .only = dead, .budget = p->budget };
    g_autoptr(HnModel) m = changed(p);
    if (!hn_graph_infer(m->graph, FALSE, error) || !hn_channels_remove(p->map->channels, p->gone, m, error))
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
    return hn_channels_mask(p->map->channels, p->gone, m, error) ? g_steal_pointer(&m) : NULL;
}

/* --- a pass over the samples -------------------------------------------------------------------------------------- */

/* What is looked at in one model: names of values, each once. */
static guint name_of(GPtrArray *names, const HnValue *v)
{
    guint at;
    if (!g_ptr_array_find_with_equal_func(names, v->name, g_str_equal, &at)) {
        at = names->len;
        g_ptr_array_add(names, v->name);
    }
    return at;
}

/* m, which is taken, with nothing but these values for outputs. */
typedef struct {
    HnModel *model;
    HnCapture *capture;
    HnTensor **values;
} Look;

static void look_clear(Look *l)
{
    hn_capture_free(l->capture);
    hn_model_free(l->model);
    g_free(l->values);
}

static gboolean look_open(Look *l, HnModel *m, const GPtrArray *names, const HnPruneOptions *o, GError **error)
{
    const HnCaptureOptions c = {
        .backend = o->backend, .threads = o->threads, .budget = o->budget, .progress = o->progress, .data = o->data
    };
    *l = (Look){ .model = m, .values = g_new0(HnTensor *, names->len + 1) };
    while (m->graph->outputs->len > 0)
        hn_graph_remove_output(m->graph, (int)m->graph->outputs->len - 1);
    l->capture = hn_capture_new(m, names, &c, error);
    return l->capture != NULL;
}

/* Layers whose sums are taken in one pass. */
typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
    GArray *layers;     /* int */
    HnGram **grams;     /* by layer */
    guint8 *wanted;     /* by layer: y of the dense model is wanted, too ... */
    guint8 *chosen;     /* ... and some of its inputs are to go */
    const guint8 *gone; /* by hn_channels_class(): before; NULL: nothing is */
} Pass;

static int64_t rows_of(const HnPruneOptions *o, const HnPruneLayer *l)
{
    return MAX((ROWS + ROWS_OF_K * l->rows.k) / MAX(o->n, 1), 1);
}

static gboolean make_grams(const Pass *p, GError **error)
{
    for (guint i = 0; i < p->layers->len; i++) {
        const int at = g_array_index(p->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[at];
        p->grams[at] = hn_gram_new(&l->rows, l->bias >= 0, p->wanted[at], p->o->budget, error);
        if (p->grams[at] == NULL)
            return FALSE;
        if (p->wanted[at] && (isfinite(l->lo) || isfinite(l->hi)))
            hn_gram_keep(p->grams[at], rows_of(p->o, l) * p->o->n);
    }
    return TRUE;
}

/* pruned: the model whose x are looked at, NULL: the dense one; taken. */
static gboolean pass_run(const Pass *p, HnModel *pruned, GError **error)
{
    g_autoptr(GPtrArray) x_names = g_ptr_array_new(), y_names = g_ptr_array_new();
    g_autofree guint *x = g_new(guint, p->layers->len + 1), *y = g_new0(guint, p->layers->len + 1);
    for (guint i = 0; i < p->layers->len; i++) {
        const int at = g_array_index(p->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[at];
        x[i] = name_of(x_names, hn_node_in(l->node, l->x));
        if (p->wanted[at])
            y[i] = name_of(y_names, hn_node_out(l->node, 0));
    }
    Look of_x = { 0 }, of_y = { 0 };
    gboolean ok = look_open(&of_x, pruned != NULL ? pruned : hn_model_copy(p->map->model), x_names, p->o, error) &&
                  (y_names->len == 0 || look_open(&of_y, hn_model_copy(p->map->model), y_names, p->o, error)) &&
                  make_grams(p, error);
    for (int64_t k = 0; k < p->o->n && ok; k++) {
        g_autoptr(HnSample) s = hn_data_load(p->o->data, p->o->first + k, error);
        ok = s != NULL && hn_capture_run(of_x.capture, s, of_x.values, error) &&
             (y_names->len == 0 || hn_capture_run(of_y.capture, s, of_y.values, error));
        for (guint i = 0; i < p->layers->len && ok; i++) {
            const int at = g_array_index(p->layers, int, i);
            const HnPruneLayer *l = p->map->layers->pdata[at];
            hn_gram_add(p->grams[at], &l->rows, of_x.values[x[i]], p->wanted[at] ? of_y.values[y[i]] : NULL,
                        rows_of(p->o, l), (uint64_t)k, p->o->threads);
        }
    }
    for (guint i = 0; i < p->layers->len && ok; i++)
        hn_gram_settle(p->grams[g_array_index(p->layers, int, i)], p->o->threads);
    look_clear(&of_x);
    look_clear(&of_y);
    return ok;
}

static Pass pass_new(const HnPruneMap *map, const HnPruneOptions *o)
{
    return (Pass){ .map = map,
                   .o = o,
                   .layers = g_array_new(FALSE, FALSE, sizeof(int)),
                   .grams = g_new0(HnGram *, map->layers->len + 1u),
                   .wanted = g_new0(guint8, map->layers->len + 1u),
                   .chosen = g_new0(guint8, map->layers->len + 1u) };
}

static void pass_add(Pass *p, int layer)
{
    for (guint i = 0; i < p->layers->len; i++)
        if (g_array_index(p->layers, int, i) == layer)
            return;
    g_array_append_val(p->layers, layer);
}

/* For one of its inputs to go. */
static void pass_choose(Pass *p, int layer)
{
    p->chosen[layer] = 1;
    pass_add(p, layer);
}

static void pass_clear(Pass *p)
{
    for (guint i = 0; i < p->map->layers->len; i++)
        hn_gram_free(p->grams[i]);
    g_array_unref(p->layers);
    g_free(p->grams);
    g_free(p->wanted);
    g_free(p->chosen);
}

/* --- least squares ------------------------------------------------------------------------------------------------ */

static double ridge_of(const HnPruneOptions *o)
{
    return o->ridge > 0 ? o->ridge : CLAMP(RIDGE * FEW / (double)MAX(o->n, 1), RIDGE, MOST_RIDGE);
}

/* Inputs of the layer that are no more. */
static guint8 *gone_inputs(const HnPruneLayer *l, const HnGram *g, const guint8 *gone)
{
    const int64_t each = l->rows.k / l->rows.taps;
    guint8 *all = g_new0(guint8, (gsize)(g->groups * g->k));
    for (int64_t i = 0; gone != NULL && l->at != NULL && i < g->groups * each; i++)
        if (gone[l->at[i]])
            memset(all + i / each * g->k + i % each * l->rows.taps, 1, (gsize)l->rows.taps);
    return all;
}

/* A layer of which no row was seen, or no finite one, says nothing: *obs is NULL then. */
static gboolean obs_of(const Pass *p, int layer, HnObs **obs, GError **error)
{
    const HnGram *g = p->grams[layer];
    GError *failure = NULL;
    *obs = NULL;
    if (g == NULL || g->rows == 0)
        return TRUE;
    const HnPruneLayer *l = p->map->layers->pdata[layer];
    g_autofree double *w = hn_prune_weights(l);
    g_autofree guint8 *gone = gone_inputs(l, g, p->gone);
    *obs = hn_obs_new(g, w, ridge_of(p->o), gone, p->chosen[layer], &failure);
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_GRAPH))
        g_clear_error(&failure);
    if (failure == NULL)
        return TRUE;
    g_propagate_error(error, failure);
    return FALSE;
}

typedef struct {
    const Pass *p;
    HnObs **obs;
    GMutex lock;
    GError *error;
} Solve;

static void solve_one(gpointer data, gint64 i)
{
    Solve *s = data;
    const int at = g_array_index(s->p->layers, int, i);
    GError *failure = NULL;
    if (obs_of(s->p, at, &s->obs[at], &failure))
        return;
    g_mutex_lock(&s->lock);
    if (s->error == NULL)
        s->error = g_steal_pointer(&failure);
    g_mutex_unlock(&s->lock);
    g_clear_error(&failure);
}

/* obs[layer] for all layers of the pass. */
static gboolean solve_all(const Pass *p, HnObs **obs, GError **error)
{
    Solve s = { .p = p, .obs = obs };
    g_mutex_init(&s.lock);
    hn_each(p->layers->len, p->o->threads, solve_one, &s);
    g_mutex_clear(&s.lock);
    if (s.error == NULL)
        return TRUE;
    g_propagate_error(error, s.error);
    return FALSE;
}

/* --- curves ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnPruneMap *map;
    const HnPruneOptions *o;
    const Pass *p; /* NULL: no samples */
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
        ok = obs_of(s->p, at, &obs[at], &failure);
    }
    hn_prune_weight_scores(s->map, c, s->p != NULL ? HN_PRUNE_OBS : HN_PRUNE_L2, s->o->seed, others);
    if (ok)
        hn_prune_choose(s->map, c, obs, others, k->n - 1, order, s->loss[c]);
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

static gboolean curves_of(const HnPruneMap *map, const HnPruneOptions *o, const Pass *p, const GArray *classes,
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

static gsize memory_for(const HnPruneOptions *o)
{
    const gsize limit = hn_budget_limit(o->budget);
    return limit > 0 ? MIN(limit / PART, TOGETHER) : TOGETHER;
}

/* Bytes of the sums of class c's readers that are not in the pass yet. */
static gsize bytes_of(const HnPruneMap *map, const Pass *p, int c)
{
    const HnPruneClass *k = map->classes->pdata[c];
    gsize bytes = 0;
    for (guint i = 0; i < k->layers->len; i++) {
        const int at = g_array_index(k->layers, int, i);
        const HnPruneLayer *l = map->layers->pdata[at];
        gboolean there = FALSE;
        for (guint q = 0; q < p->layers->len; q++)
            there = there || g_array_index(p->layers, int, q) == at;
        bytes += there ? 0 : hn_gram_bytes(&l->rows, l->bias >= 0, FALSE);
    }
    return bytes;
}

gboolean hn_prune_curves(const HnPruneMap *map, const HnPruneOptions *o, double *const *loss, GError **error)
{
    const int n = (int)map->classes->len;
    gboolean ok = TRUE;
    for (int c = 0; c < n && ok;) {
        g_autoptr(GArray) classes = g_array_new(FALSE, FALSE, sizeof(int));
        Pass p = pass_new(map, o);
        gsize bytes = 0;
        hn_progress_tell(o->progress, "errors of widths", (guint64)c, (guint64)n);
        for (; c < n; c++) {
            const HnPruneClass *k = map->classes->pdata[c];
            const gsize more = bytes_of(map, &p, c);
            if (classes->len > 0 && bytes + more > memory_for(o))
                break;
            bytes += more;
            for (guint i = 0; i < k->layers->len; i++)
                pass_choose(&p, g_array_index(k->layers, int, i));
            g_array_append_val(classes, c);
        }
        ok = (o->data == NULL || p.layers->len == 0 || pass_run(&p, NULL, error)) &&
             curves_of(map, o, o->data != NULL ? &p : NULL, classes, loss, error);
        pass_clear(&p);
    }
    return ok;
}

/* --- in the order of the graph ------------------------------------------------------------------------------------ */

typedef struct {
    HnPruned *out;
    const HnPruneOptions *o;
    const int *keep;
    gboolean dirty; /* something has gone */
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

/* Mean squares of what is read, times those of the weights. */
static void add_wanda(const Pass *p, int c, double *score)
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
static void choose(Run *r, const Pass *p, int c, HnObs *const *obs)
{
    const HnPruneClass *k = r->out->map->classes->pdata[c];
    const int n = k->n - r->keep[c];
    g_autofree double *score = g_new(double, (gsize)k->n), *loss = g_new0(double, (gsize)k->n);
    g_autofree int *order = g_new(int, (gsize)k->n);
    const gboolean by_data = r->o->data != NULL && p != NULL;
    HnPruneScore s = r->o->score;
    if (!by_data && (s == HN_PRUNE_OBS || s == HN_PRUNE_WANDA) && k->layers->len > 0)
        s = HN_PRUNE_L2;
    hn_prune_weight_scores(r->out->map, c, s, r->o->seed, score);
    if (s == HN_PRUNE_OBS) {
        hn_prune_choose(r->out->map, c, obs, score, n, order, loss);
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
}

static gboolean fit_layer(Run *r, const Pass *p, int layer, HnObs *obs, GError **error)
{
    const HnPruneLayer *l = r->out->map->layers->pdata[layer];
    HnTensor **fit = r->out->fits + 2 * (gsize)layer;
    g_autofree double *w = hn_prune_weights(l);
    if (p->chosen[layer] && !hn_obs_settle(obs, p->grams[layer], w, ridge_of(r->o), error))
        return FALSE;
    for (int i = 0; i < AIMS && (isfinite(l->lo) || isfinite(l->hi)); i++)
        if (hn_gram_aim(p->grams[layer], obs->w, l->lo, l->hi, r->o->threads) &&
            !hn_obs_settle(obs, p->grams[layer], w, ridge_of(r->o), error))
            return FALSE;
    r->out->fitted++;
    return hn_prune_tensors(l, obs->w, r->o->budget, &fit[0], &fit[1], error);
}

static gboolean fits(const Run *r, const HnPruneLayer *l, int level)
{
    return r->o->fit && l->level == level && l->free && hn_node_in(l->node, l->x)->weight == NULL;
}

static gboolean goes_now(const Run *r, int c, int level)
{
    const HnPruneClass *k = r->out->map->classes->pdata[c];
    return k->level == level && r->keep[c] < k->n;
}

/* All that this level reads: what goes of it, and what its weights become. */
static gboolean run_level(Run *r, int level, GError **error)
{
    const HnPruneMap *map = r->out->map;
    Pass p = pass_new(map, r->o);
    p.gone = r->out->gone;
    gboolean ok = TRUE, any = FALSE;
    for (int c = 0; c < (int)map->classes->len; c++) {
        const HnPruneClass *k = map->classes->pdata[c];
        for (guint i = 0; goes_now(r, c, level) && i < k->layers->len; i++)
            pass_choose(&p, g_array_index(k->layers, int, i));
        any = any || goes_now(r, c, level);
    }
    for (int i = 0; i < (int)map->layers->len && (any || r->dirty); i++)
        if (fits(r, map->layers->pdata[i], level)) {
            pass_add(&p, i);
            p.wanted[i] = 1;
        }
    g_autofree HnObs **obs = g_new0(HnObs *, map->layers->len + 1u);
    if (r->o->data != NULL && p.layers->len > 0) {
        HnModel *pruned = r->dirty ? hn_pruned_masked(r->out, error) : NULL;
        ok = (!r->dirty || pruned != NULL) && pass_run(&p, pruned, error) && solve_all(&p, obs, error);
    }
    for (int c = 0; c < (int)map->classes->len && ok; c++)
        if (goes_now(r, c, level))
            choose(r, &p, c, obs);
    for (int i = 0; i < (int)map->layers->len && ok; i++)
        if (p.wanted[i] && obs[i] != NULL)
            ok = fit_layer(r, &p, i, obs[i], error);
    for (guint i = 0; i < map->layers->len; i++)
        hn_obs_free(obs[i]);
    pass_clear(&p);
    return ok;
}

HnPruned *hn_prune_run(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, GError **error)
{
    g_autoptr(HnPruned) p = g_new0(HnPruned, 1);
    const guint n = map->classes->len;
    *p = (HnPruned){ .map = map,
                     .budget = o->budget,
                     .gone = g_new0(guint8, (gsize)hn_channels_count(map->channels) + 1),
                     .kept = g_new0(int, n + 1u),
                     .loss = g_new0(double, n + 1u),
                     .fits = g_new0(HnTensor *, 2 * (gsize)map->layers->len + 1) };
    Run r = { .out = p, .o = o, .keep = keep };
    for (guint c = 0; c < n; c++) {
        const HnPruneClass *k = map->classes->pdata[c];
        p->kept[c] = k->n;
        p->loss[c] = NAN;
        if (goes_now(&r, (int)c, G_MAXINT)) /* no layer reads it */
            choose(&r, NULL, (int)c, NULL);
    }
    for (int level = 0; level < map->levels; level++) {
        hn_progress_tell(o->progress, "pruning", (guint64)level, (guint64)map->levels);
        if (hn_progress_stop(o->progress, error) || !run_level(&r, level, error))
            return NULL;
    }
    return g_steal_pointer(&p);
}

HnPruned *hn_pruned_without_fits(const HnPruned *p)
{
    HnPruned *q = g_new(HnPruned, 1);
    const guint n = p->map->classes->len;
    *q = (HnPruned){ .map = p->map,
                     .budget = p->budget,
                     .gone = g_memdup2(p->gone, (gsize)hn_channels_count(p->map->channels) + 1),
                     .kept = g_memdup2(p->kept, (n + 1u) * sizeof *p->kept),
                     .loss = g_memdup2(p->loss, (n + 1u) * sizeof *p->loss),
                     .fits = g_new0(HnTensor *, 2 * (gsize)p->map->layers->len + 1) };
    return q;
}

void hn_pruned_free(HnPruned *p)
{
    if (p == NULL)
        return;
    for (gsize i = 0; i < 2 * (gsize)p->map->layers->len; i++)
        hn_tensor_unref(p->fits[i]);
    g_free(p->fits);
    g_free(p->gone);
    g_free(p->kept);
    g_free(p->loss);
    g_free(p);
}
