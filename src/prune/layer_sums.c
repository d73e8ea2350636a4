#include "prune/layer_sums.h"

#include <math.h>
#include <string.h>

#include "base/each.h"
#include "check/capture.h"
#include "check/session_need.h"
#include "ir/copy.h"

#define RIDGE 1e-3                  /* of the mean square of an input, of many samples; */
#define FEW 32                      /* of fewer it is the larger, */
#define MOST_RIDGE 1e-2             /* up to that */
#define TOGETHER ((gsize)256 << 20) /* bytes of HnGram for one pass over the samples, where there is no limit */
#define ROWS 16384                  /* of a layer's inputs that are looked at, in all samples together, at least; */
#define ROWS_OF_K 8                 /* and so many times k more */

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

static int64_t rows_of(const HnPruneOptions *o, const HnPruneLayer *l)
{
    return MAX((ROWS + ROWS_OF_K * l->rows.k) / MAX(o->n, 1), 1);
}

/* --- how much memory ---------------------------------------------------------------------------------------------- */

/* What is looked at: of the model pruned so far, and of the dense one. */
typedef struct {
    GPtrArray *x, *y;         /* names */
    guint *x_place, *y_place; /* by layer of the pass */
} Names;

static void names_clear(Names *n)
{
    g_ptr_array_unref(n->x);
    g_ptr_array_unref(n->y);
    g_free(n->x_place);
    g_free(n->y_place);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Names, names_clear)

/* of: by layer, NULL for those that are left out, and nothing of the dense model; NULL: all. */
static Names names_of(const HnLayerSums *p, double *const *of)
{
    Names n = { g_ptr_array_new(), g_ptr_array_new(), g_new0(guint, p->layers->len + 1),
                g_new0(guint, p->layers->len + 1) };
    for (guint i = 0; i < p->layers->len; i++) {
        const int at = g_array_index(p->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[at];
        if (of != NULL && of[at] == NULL)
            continue;
        n.x_place[i] = name_of(n.x, hn_node_in(l->node, l->x));
        if (p->wanted[at] && of == NULL)
            n.y_place[i] = name_of(n.y, hn_node_out(l->node, 0));
    }
    return n;
}

static const HnModel *wanted_model(const HnLayerSums *p)
{
    return p->o->wanted != NULL ? p->o->wanted : p->map->model;
}

/* Of a session for them. */
static gboolean add_session(const HnLayerSums *p, const HnModel *m, const GPtrArray *names, gsize *bytes,
                            GError **error)
{
    gsize values;
    if (names->len == 0)
        return TRUE;
    if (!hn_session_values(m, names, p->o->memory->in, &values, error))
        return FALSE;
    *bytes += values + p->o->memory->beside;
    return TRUE;
}

/* May the layer's results be others, where that makes no difference behind it? */
static gboolean may_aim(const HnLayerSums *p, int layer)
{
    const HnPruneLayer *l = p->map->layers->pdata[layer];
    return p->aims && p->wanted[layer] && (isfinite(l->lo) || isfinite(l->hi));
}

static gsize grams_of(const HnLayerSums *p)
{
    gsize grams = 0;
    for (guint i = 0; i < p->layers->len; i++) {
        const int at = g_array_index(p->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[at];
        grams += hn_gram_bytes(&l->rows, l->bias >= 0, p->wanted[at]);
        if (may_aim(p, at))
            grams += hn_gram_outcome_bytes(&l->rows, l->bias >= 0, l->lo, l->hi, rows_of(p->o, l) * p->o->n);
    }
    return grams;
}

/* Solving is behind the pass, but for targets: then the session of x is there once more. */
static gsize together(const HnLayerSums *p, gsize x, gsize y, gsize solving)
{
    gboolean aims = FALSE;
    for (guint i = 0; i < p->layers->len; i++)
        aims = aims || may_aim(p, g_array_index(p->layers, int, i));
    return grams_of(p) + MAX(x + y, solving + (aims ? x : 0));
}

gboolean hn_layer_sums_need(const HnLayerSums *p, gsize solving, gsize *bytes, GError **error)
{
    g_auto(Names) names = names_of(p, NULL);
    gsize x = 0, y = 0;
    if (p->o->memory != NULL &&
        !(add_session(p, p->map->model, names.x, &x, error) && add_session(p, wanted_model(p), names.y, &y, error)))
        return FALSE;
    *bytes = p->o->memory != NULL ? together(p, x, y, solving) : grams_of(p);
    return TRUE;
}

/* A session takes no more than that of the whole model, and what is looked at beside it. G_MAXSIZE: not known. */
static gsize session_bound(const HnLayerSums *p, const GPtrArray *names)
{
    gsize bytes = names->len > 0 ? p->o->memory->values + p->o->memory->beside : 0;
    for (guint i = 0; i < names->len; i++) {
        const gsize *of = g_hash_table_lookup(p->o->memory->bytes, names->pdata[i]);
        if (of == NULL)
            return G_MAXSIZE;
        bytes += *of;
    }
    return bytes;
}

/* hn_layer_sums_need() is no more than that, which takes no plan. */
static gsize bound_of(const HnLayerSums *p, gsize solving)
{
    if (p->o->memory == NULL)
        return grams_of(p);
    g_auto(Names) names = names_of(p, NULL);
    const gsize x = session_bound(p, names.x), y = session_bound(p, names.y);
    return x == G_MAXSIZE || y == G_MAXSIZE ? G_MAXSIZE : together(p, x, y, solving);
}

static gboolean raise_most(HnLayerPassFn pass, gconstpointer data, int i, gsize *bytes, GError **error)
{
    gsize solving, now;
    HnLayerSums p = pass(data, i, &solving);
    const gboolean more = p.layers->len > 0 && bound_of(&p, solving) > *bytes;
    const gboolean ok = !more || hn_layer_sums_need(&p, solving, &now, error);
    if (ok && more)
        *bytes = MAX(*bytes, now);
    hn_layer_sums_clear(&p);
    return ok;
}

gboolean hn_layer_sums_most(HnLayerPassFn pass, gconstpointer data, int n, gsize *bytes, GError **error)
{
    gsize most = 0, solving;
    int largest = 0;
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        HnLayerSums p = pass(data, i, &solving);
        const gsize bound = p.layers->len > 0 ? bound_of(&p, solving) : 0;
        if (bound > most) {
            most = bound;
            largest = i;
        }
        hn_layer_sums_clear(&p);
    }
    if (n > 0 && !raise_most(pass, data, largest, bytes, error))
        return FALSE;
    for (int i = 0; i < n; i++)
        if (!raise_most(pass, data, i, bytes, error))
            return FALSE;
    return TRUE;
}

gsize hn_layer_sums_solving(const HnLayerSums *p)
{
    gsize bytes = 0, work = 0;
    for (guint i = 0; i < p->layers->len; i++) {
        const int at = g_array_index(p->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[at];
        bytes += hn_obs_bytes(&l->rows, l->bias >= 0, p->chosen[at]);
        work = MAX(work, hn_obs_work_bytes(&l->rows, l->bias >= 0));
    }
    return bytes + work * (gsize)MIN((guint)MAX(p->o->threads, 1), MAX(p->layers->len, 1));
}

gboolean hn_layer_sums_fit(const HnLayerSums *p, gsize solving, gboolean *fit, GError **error)
{
    const gsize room = p->o->memory != NULL ? MIN(p->o->memory->room, TOGETHER) : TOGETHER;
    gsize bytes;
    *fit = bound_of(p, solving) <= room;
    if (*fit || p->o->memory == NULL)
        return TRUE;
    if (!hn_layer_sums_need(p, solving, &bytes, error))
        return FALSE;
    *fit = bytes <= room;
    return TRUE;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static gboolean make_grams(const HnLayerSums *p, GError **error)
{
    for (guint i = 0; i < p->layers->len; i++) {
        const int at = g_array_index(p->layers, int, i);
        const HnPruneLayer *l = p->map->layers->pdata[at];
        p->grams[at] = hn_gram_new(&l->rows, l->bias >= 0, p->wanted[at], p->o->budget, error);
        if (p->grams[at] == NULL || (may_aim(p, at) && !hn_gram_outcomes(p->grams[at], &l->rows, l->lo, l->hi,
                                                                         rows_of(p->o, l) * p->o->n, error)))
            return FALSE;
    }
    return TRUE;
}

/* All samples once, for all layers or some (names_of()). */
static gboolean look_at(const HnLayerSums *p, HnModel *pruned, double *const *of, GError **error)
{
    g_auto(Names) names = names_of(p, of);
    Look of_x = { 0 }, of_y = { 0 };
    HnModel *m = hn_model_copy(pruned != NULL ? pruned : p->map->model);
    gboolean ok = look_open(&of_x, m, names.x, p->o, error) &&
                  (names.y->len == 0 || look_open(&of_y, hn_model_copy(wanted_model(p)), names.y, p->o, error));
    for (int64_t k = 0; k < p->o->n && ok; k++) {
        g_autoptr(HnSample) s = hn_data_load(p->o->data, p->o->first + k, error);
        ok = s != NULL && hn_capture_run(of_x.capture, s, of_x.values, error) &&
             (names.y->len == 0 || hn_capture_run(of_y.capture, s, of_y.values, error));
        for (guint i = 0; i < p->layers->len && ok; i++) {
            const int at = g_array_index(p->layers, int, i);
            const HnPruneLayer *l = p->map->layers->pdata[at];
            if (of == NULL || of[at] != NULL)
                hn_gram_add(p->grams[at], &l->rows, of_x.values[names.x_place[i]],
                            p->wanted[at] && of == NULL ? of_y.values[names.y_place[i]] : NULL, rows_of(p->o, l),
                            (uint64_t)k, p->o->threads);
        }
    }
    for (guint i = 0; i < p->layers->len && ok; i++)
        hn_gram_settle(p->grams[g_array_index(p->layers, int, i)], p->o->threads);
    look_clear(&of_x);
    look_clear(&of_y);
    return ok;
}

gboolean hn_layer_sums_run(const HnLayerSums *p, HnModel *pruned, GError **error)
{
    return make_grams(p, error) && look_at(p, pruned, NULL, error);
}

gboolean hn_layer_sums_aims(const HnLayerSums *p, int layer)
{
    const HnGram *g = p->grams[layer];
    return g != NULL && g->rows > 0 && g->plain != NULL;
}

gboolean hn_layer_sums_aim(const HnLayerSums *p, HnModel *pruned, double *const *w, GError **error)
{
    gboolean any = FALSE;
    for (guint i = 0; i < p->map->layers->len; i++) {
        if (w[i] != NULL)
            hn_gram_aim(p->grams[i], w[i]);
        any = any || w[i] != NULL;
    }
    return !any || look_at(p, pruned, w, error);
}

/* --- which layers ------------------------------------------------------------------------------------------------- */

gboolean hn_prune_goes_at(const HnPruneMap *map, const int *keep, int c, int level)
{
    const HnPruneClass *k = map->classes->pdata[c];
    return k->level == level && (keep != NULL ? keep[c] < k->n : !k->fixed);
}

static gboolean is_fitted(const HnPruneOptions *o, const HnPruneLayer *l, int level)
{
    return o->fit && l->level == level && l->free && hn_node_in(l->node, l->x)->weight == NULL;
}

HnLayerSums hn_layer_sums_of_level(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, gboolean dirty,
                                   int level)
{
    HnLayerSums p = hn_layer_sums(map, o);
    gboolean any = FALSE;
    p.aims = o->fit;
    for (int c = 0; c < (int)map->classes->len; c++) {
        const HnPruneClass *k = map->classes->pdata[c];
        const gboolean goes = hn_prune_goes_at(map, keep, c, level);
        for (guint i = 0; goes && i < k->layers->len; i++)
            hn_layer_sums_choose(&p, g_array_index(k->layers, int, i));
        any = any || goes;
    }
    for (int i = 0; i < (int)map->layers->len && (any || dirty); i++)
        if (is_fitted(o, map->layers->pdata[i], level)) {
            hn_layer_sums_add(&p, i);
            p.wanted[i] = 1;
        }
    return p;
}

HnLayerSums hn_layer_sums(const HnPruneMap *map, const HnPruneOptions *o)
{
    return (HnLayerSums){ .map = map,
                          .o = o,
                          .layers = g_array_new(FALSE, FALSE, sizeof(int)),
                          .grams = g_new0(HnGram *, map->layers->len + 1u),
                          .wanted = g_new0(guint8, map->layers->len + 1u),
                          .chosen = g_new0(guint8, map->layers->len + 1u) };
}

void hn_layer_sums_add(HnLayerSums *p, int layer)
{
    for (guint i = 0; i < p->layers->len; i++)
        if (g_array_index(p->layers, int, i) == layer)
            return;
    g_array_append_val(p->layers, layer);
}

/* For one of its inputs to go. */
void hn_layer_sums_choose(HnLayerSums *p, int layer)
{
    p->chosen[layer] = 1;
    hn_layer_sums_add(p, layer);
}

void hn_layer_sums_clear(HnLayerSums *p)
{
    for (guint i = 0; i < p->map->layers->len; i++)
        hn_gram_free(p->grams[i]);
    g_array_unref(p->layers);
    g_free(p->grams);
    g_free(p->wanted);
    g_free(p->chosen);
}

/* --- least squares ------------------------------------------------------------------------------------------------ */

double hn_layer_ridge(const HnPruneOptions *o)
{
    return o->ridge > 0 ? o->ridge : CLAMP(RIDGE * FEW / (double)MAX(o->n, 1), RIDGE, MOST_RIDGE);
}

guint8 *hn_layer_gone_inputs(const HnPruneLayer *l, const HnGram *g, const guint8 *gone)
{
    const int64_t each = l->rows.k / l->rows.taps;
    guint8 *all = g_new0(guint8, (gsize)(g->groups * g->k));
    for (int64_t i = 0; gone != NULL && l->at != NULL && i < g->groups * each; i++)
        if (gone[l->at[i]])
            memset(all + i / each * g->k + i % each * l->rows.taps, 1, (gsize)l->rows.taps);
    return all;
}

/* A layer of which no row was seen, or no finite one, says nothing: *obs is NULL then. */
gboolean hn_layer_obs(const HnLayerSums *p, int layer, HnObs **obs, GError **error)
{
    const HnGram *g = p->grams[layer];
    GError *failure = NULL;
    *obs = NULL;
    if (g == NULL || g->rows == 0)
        return TRUE;
    const HnPruneLayer *l = p->map->layers->pdata[layer];
    g_autofree double *w = hn_prune_weights(l);
    g_autofree guint8 *gone = hn_layer_gone_inputs(l, g, p->gone);
    *obs = hn_obs_new(g, w, hn_layer_ridge(p->o), gone, p->chosen[layer], &failure);
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_GRAPH))
        g_clear_error(&failure);
    if (failure == NULL)
        return TRUE;
    g_propagate_error(error, failure);
    return FALSE;
}

typedef struct {
    const HnLayerSums *p;
    HnObs **obs;
    GMutex lock;
    GError *error;
} Solve;

static void solve_one(gpointer data, gint64 i)
{
    Solve *s = data;
    const int at = g_array_index(s->p->layers, int, i);
    GError *failure = NULL;
    if (hn_layer_obs(s->p, at, &s->obs[at], &failure))
        return;
    g_mutex_lock(&s->lock);
    if (s->error == NULL)
        s->error = g_steal_pointer(&failure);
    g_mutex_unlock(&s->lock);
    g_clear_error(&failure);
}

/* obs[layer] for all layers of the pass. */
gboolean hn_layer_sums_solve(const HnLayerSums *p, HnObs **obs, GError **error)
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
