#include "check/calibrate.h"

#include <math.h>

#include "base/cpu.h"
#include "base/team.h"
#include "pass/inline_functions.h"

#define FOLD_BYTES ((gsize)1 << 20) /* as planning: what a session knows before it runs is never seen */
#define SHARE 32768                 /* elements that are worth a thread */
#define PLANS 1                     /* kept of each graph: samples of other shapes take each other's memory */

/* A value of which there is a histogram. */
typedef struct {
    HnSpread spread;
    float lo, hi; /* of the present sample */
} Extremes;

/* What one sample shows. */
typedef struct {
    GArray *histograms;
    GArray *extremes; /* lo and hi alone */
} Sample;

struct HnCalibrator {
    HnModel *model;
    HnCalibrateOptions o;
    HnWatch watch;
    HnSession *session;
    guint n_places;
    int *place;        /* by HnValue.id: index of its histogram; -1: not looked at */
    GHashTable *asked; /* names; NULL: all, and once it is known which these are */
    GPtrArray *names;  /* char *: of those looked at, keys of the index */
    GHashTable *index; /* name -> 1 + index of its histogram; owns its keys */
    GArray *histograms;
    GArray *extremes;   /* of each histogram */
    GPtrArray *apart;   /* Sample *, of each that has run; NULL: they are not kept */
    GArray *now;        /* histograms of the present sample; NULL: it goes to those of all */
    HnHistogram *parts; /* one for each thread */
    guint64 samples;
    GError *failure; /* of a look during the present run */
};

static HnHistogram *histogram(const HnCalibrator *c, int i)
{
    return &g_array_index(c->histograms, HnHistogram, i);
}

/* Where the present sample is counted. */
static HnHistogram *counted(const HnCalibrator *c, int i)
{
    return c->now != NULL ? &g_array_index(c->now, HnHistogram, i) : histogram(c, i);
}

static Extremes *extremes(const HnCalibrator *c, int i)
{
    return &g_array_index(c->extremes, Extremes, i);
}

/* --- looking ----------------------------------------------------------------------------------------------------- */

static gboolean wants(const HnValue *v, gpointer data)
{
    const HnCalibrator *c = data;
    return v->id < c->n_places && c->place[v->id] >= 0;
}

/* Parts of what was seen. */
typedef struct {
    const HnSeen *seen;
    HnHistogram *parts;
    int n;
    gint failed; /* atomic */
} Split;

static gboolean add_rows(HnHistogram *h, const HnSeen *s, int64_t from, int64_t to, GError **error)
{
    const char *data = (const char *)s->data + (size_t)(from * s->pitch) * hn_dtype_size(s->dtype);
    return hn_histogram_add(h, s->dtype, data, to - from, s->width, s->pitch, error);
}

static void add_part(void *data)
{
    Split *s = data;
    const int k = hn_team_share()->id;
    const int64_t rows = s->seen->rows;
    if (!add_rows(&s->parts[k], s->seen, rows * k / s->n, rows * (k + 1) / s->n, NULL))
        g_atomic_int_set(&s->failed, 1);
}

static gboolean add_parts(HnCalibrator *c, HnHistogram *h, const HnSeen *seen, int n, GError **error)
{
    Split s = { .seen = seen, .parts = c->parts, .n = n };
    HnRegion region = { .fn = add_part, .data = &s, .n = n };
    hn_team_run(&region, FALSE);
    gboolean ok = !g_atomic_int_get(&s.failed);
    if (!ok)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "no memory is left for a thread's histogram");
    for (int k = 0; k < n; k++) {
        ok = ok && hn_histogram_merge(h, &c->parts[k], error);
        hn_histogram_reset(&c->parts[k]);
    }
    return ok;
}

static gboolean look(HnCalibrator *c, HnHistogram *h, const HnSeen *seen, int threads, GError **error)
{
    return threads > 1 ? add_parts(c, h, seen, threads, error) : add_rows(h, seen, 0, seen->rows, error);
}

/* The same, and what it says of the present sample. */
static gboolean look_apart(HnCalibrator *c, int place, const HnSeen *seen, int threads, GError **error)
{
    HnHistogram *h = counted(c, place);
    Extremes *e = extremes(c, place);
    const float min = h->min, max = h->max;
    h->min = INFINITY;
    h->max = -INFINITY;
    const gboolean ok = look(c, h, seen, threads, error);
    e->lo = MIN(e->lo, h->min);
    e->hi = MAX(e->hi, h->max);
    h->min = MIN(h->min, min);
    h->max = MAX(h->max, max);
    return ok;
}

static GArray *histograms_new(guint n, HnBudget *budget)
{
    GArray *all = g_array_sized_new(FALSE, FALSE, sizeof(HnHistogram), n);
    for (guint i = 0; i < n; i++) {
        HnHistogram h;
        hn_histogram_init(&h, budget);
        g_array_append_val(all, h);
    }
    return all;
}

static void histograms_free(GArray *all)
{
    for (guint i = 0; all != NULL && i < all->len; i++)
        hn_histogram_clear(&g_array_index(all, HnHistogram, i));
    if (all != NULL)
        g_array_unref(all);
}

static gboolean histograms_add(GArray *to, const GArray *from, GError **error)
{
    for (guint i = 0; i < from->len; i++)
        if (!hn_histogram_merge(&g_array_index(to, HnHistogram, i), &g_array_index(from, HnHistogram, i), error))
            return FALSE;
    return TRUE;
}

static void sample_free(gpointer data)
{
    Sample *s = data;
    histograms_free(s->histograms);
    g_array_unref(s->extremes);
    g_free(s);
}

static void spread_add(Extremes *e, float lo, float hi)
{
    if (lo <= hi)
        hn_spread_add(&e->spread, (double)lo, (double)hi);
}

/* The sample has come to its end. */
static void note_extremes(HnCalibrator *c)
{
    for (guint i = 0; i < c->extremes->len; i++) {
        Extremes *e = extremes(c, (int)i);
        spread_add(e, e->lo, e->hi);
        e->lo = INFINITY;
        e->hi = -INFINITY;
    }
}

/* The same, and what it shows is kept and added to what all show. */
static gboolean note_sample(HnCalibrator *c, GError **error)
{
    if (c->now != NULL) {
        Sample *s = g_new0(Sample, 1);
        *s = (Sample){ g_steal_pointer(&c->now), g_array_copy(c->extremes) };
        g_ptr_array_add(c->apart, s);
        if (!histograms_add(c->histograms, s->histograms, error))
            return FALSE;
    }
    note_extremes(c);
    c->samples++;
    return TRUE;
}

static void saw(const HnValue *v, const HnSeen *seen, gpointer data)
{
    HnCalibrator *c = data;
    HnSeen s = *seen;
    if (!wants(v, c) || c->failure != NULL || !hn_dtype_in(s.dtype, HN_T_FLOATS) || s.rows == 0)
        return;
    const int64_t n = s.rows * s.width;
    const int threads = (int)CLAMP(n / SHARE, 1, c->o.threads);
    if (s.pitch == s.width) /* in one piece: may be divided anywhere */
        s = (HnSeen){ s.dtype, s.data, n, 1, 1 };
    if (!look_apart(c, c->place[v->id], &s, threads, &c->failure))
        g_prefix_error(&c->failure, "'%s': ", v->name);
}

/* --- what is looked at ------------------------------------------------------------------------------------------- */

static gboolean may_be_float(const HnTypes *types, const HnValue *v)
{
    if (hn_value_is_weight(v) || hn_types_value(types, v) != NULL)
        return FALSE;
    return hn_type_may_be(hn_types_get(types, v), HN_T_FLOATS);
}

/* Whose elements v's are. */
static const HnValue *seen_as(const HnValue *v)
{
    while (v->producer != NULL && v->producer_out == 0 && v->producer->op != NULL &&
           (v->producer->op->flags & HN_OP_VIEW) != 0 && hn_node_in(v->producer, 0) != NULL)
        v = hn_node_in(v->producer, 0);
    return v;
}

/* v's histogram is that of what it looks at; one is made where there is none. */
static void add_value(HnCalibrator *c, const HnTypes *types, const HnValue *v)
{
    const HnValue *root = seen_as(v);
    if (!may_be_float(types, v) || !may_be_float(types, root) ||
        (c->asked != NULL && !g_hash_table_contains(c->asked, v->name)) || g_hash_table_contains(c->index, v->name))
        return;
    if (c->place[root->id] < 0) {
        HnHistogram h;
        hn_histogram_init(&h, c->o.budget);
        c->place[root->id] = (int)c->histograms->len;
        g_array_append_val(c->histograms, h);
        const Extremes e = { .lo = INFINITY, .hi = -INFINITY };
        g_array_append_val(c->extremes, e);
    }
    char *name = g_strdup(v->name);
    g_hash_table_insert(c->index, name, GINT_TO_POINTER(c->place[root->id] + 1));
    g_ptr_array_add(c->names, name);
}

static void add_values(HnCalibrator *c, const HnTypes *types, const HnGraph *g)
{
    for (guint i = 0; i < g->inputs->len; i++)
        add_value(c, types, g->inputs->pdata[i]);
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint a = 0; a < n->attrs->len; a++) {
            const HnAttr *attr = n->attrs->pdata[a];
            if (attr->kind == HN_ATTR_GRAPH)
                add_values(c, types, attr->g);
        }
        for (guint k = 0; k < n->out->len; k++)
            if (n->out->pdata[k] != NULL)
                add_value(c, types, n->out->pdata[k]);
    }
}

static gboolean find_values(HnCalibrator *c, GError **error)
{
    g_autoptr(HnTypes) types = hn_types_new(c->model);
    hn_types_set_budget(types, c->o.budget);
    if (!hn_types_graph(types, c->model->graph, FOLD_BYTES, 0, error))
        return FALSE;
    c->n_places = c->model->n_values;
    c->place = g_new(int, c->n_places + 1u);
    for (guint i = 0; i < c->n_places; i++)
        c->place[i] = -1;
    if (c->o.values != NULL)
        c->asked = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; c->o.values != NULL && c->o.values[i] != NULL; i++)
        g_hash_table_add(c->asked, (gpointer)c->o.values[i]);
    add_values(c, types, c->model->graph);
    g_clear_pointer(&c->asked, g_hash_table_unref);
    for (guint i = 0; c->o.values != NULL && c->o.values[i] != NULL; i++)
        if (!g_hash_table_contains(c->index, c->o.values[i])) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is no float that the model computes", c->o.values[i]);
            return FALSE;
        }
    return TRUE;
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

gboolean hn_calibrator_prepare(HnCalibrator *c, HnTensor *const *in, gsize *bytes, GError **error)
{
    const int n = hn_calibrator_n_inputs(c);
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (int i = 0; i < n; i++) {
        if (in[i] == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "input '%s' is missing", hn_calibrator_input(c, i)->name);
            return FALSE;
        }
        g_ptr_array_add(types, hn_type_fixed(in[i]->dtype, in[i]->ndim, in[i]->dims));
    }
    if (!hn_session_prepare(c->session, (HnType *const *)types->pdata, error))
        return FALSE;
    HnSessionStats stats;
    hn_session_stats(c->session, &stats);
    gsize left = 0; /* bytes of histograms that are to be made yet */
    for (guint i = 0; i < c->histograms->len + (guint)c->o.threads; i++) {
        const HnHistogram *h = i < c->histograms->len ? histogram(c, (int)i) : &c->parts[i - c->histograms->len];
        left += hn_histogram_bytes() / 2 * (gsize)((h->bins[0] == NULL) + (h->bins[1] == NULL));
    }
    const gsize histograms = hn_calibrator_bytes(c);
    const gsize all = stats.arena_bytes + stats.output_bytes + stats.packed_bytes + histograms;
    const gsize limit = c->o.budget != NULL ? hn_budget_limit(c->o.budget) : 0;
    if (limit > 0 && hn_budget_used(c->o.budget) + left > limit) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET,
                    "calibrating %u values takes %" G_GSIZE_FORMAT " bytes, %" G_GSIZE_FORMAT
                    " of them for histograms, and the limit is %" G_GSIZE_FORMAT,
                    c->histograms->len, hn_budget_used(c->o.budget) + left, histograms, limit);
        return FALSE;
    }
    if (bytes != NULL)
        *bytes = all;
    return TRUE;
}

gboolean hn_calibrator_run(HnCalibrator *c, HnTensor *const *in, GError **error)
{
    const int n = hn_session_n_outputs(c->session);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n + 1);
    if (hn_progress_stop(c->o.progress, error))
        return FALSE;
    if (c->apart != NULL && c->now == NULL)
        c->now = histograms_new(c->histograms->len, c->o.budget);
    gboolean ok = hn_session_run(c->session, in, out, error);
    for (int k = 0; k < n; k++)
        hn_tensor_unref(out[k]);
    if (ok && c->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&c->failure));
        ok = FALSE;
    }
    g_clear_error(&c->failure);
    return ok && note_sample(c, error);
}

gboolean hn_calibrator_stream(HnCalibrator *c, HnDataIter *it, GError **error)
{
    const guint64 total = (guint64)hn_data_iter_batches(it);
    for (guint64 done = 0;; done++) {
        GError *failure = NULL;
        g_autoptr(HnSample) s = hn_data_iter_next(it, &failure);
        if (s == NULL) {
            if (failure != NULL)
                g_propagate_error(error, failure);
            return failure == NULL;
        }
        if ((done == 0 && !hn_calibrator_prepare(c, s->in, NULL, error)) || !hn_calibrator_run(c, s->in, error)) {
            g_prefix_error(error, "%s: ", s->name);
            return FALSE;
        }
        hn_progress_tell(c->o.progress, "calibrating", done + 1, total);
    }
}

/* --- making it, and what came of it ------------------------------------------------------------------------------ */

HnCalibrator *hn_calibrator_new(HnModel *m, const HnBackend *backend, const HnCalibrateOptions *o, GError **error)
{
    g_autoptr(HnCalibrator) c = g_new0(HnCalibrator, 1);
    c->model = m;
    c->o = *o;
    if (c->o.threads <= 0)
        c->o.threads = hn_cpu_threads(NULL);
    c->o.threads = MIN(c->o.threads, HN_TEAM_MAX);
    if (c->o.budget != NULL)
        hn_budget_ref(c->o.budget);
    c->names = g_ptr_array_new();
    c->index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->histograms = g_array_new(FALSE, FALSE, sizeof(HnHistogram));
    c->extremes = g_array_new(FALSE, FALSE, sizeof(Extremes));
    c->apart = o->apart ? g_ptr_array_new_with_free_func(sample_free) : NULL;
    c->parts = g_new0(HnHistogram, c->o.threads);
    for (int k = 0; k < c->o.threads; k++)
        hn_histogram_init(&c->parts[k], c->o.budget);
    if (!hn_inline_functions(m, error))
        return NULL;
    hn_model_name_apart(m);
    if (!find_values(c, error))
        return NULL;
    c->o.values = NULL;
    c->watch = (HnWatch){ wants, saw, c };
    c->session = hn_session_new(m, backend,
                                &(HnSessionOptions){ .threads = c->o.threads,
                                                     .seed = c->o.seed,
                                                     .budget = c->o.budget,
                                                     .plan_cache = PLANS,
                                                     .watch = &c->watch },
                                error);
    return c->session != NULL ? g_steal_pointer(&c) : NULL;
}

HnCalibrator *hn_calibrator_without(const HnCalibrator *c, guint64 i, GError **error)
{
    g_autoptr(HnCalibrator) rest = g_new0(HnCalibrator, 1);
    g_return_val_if_fail(c->apart != NULL, NULL);
    rest->o.budget = c->o.budget != NULL ? hn_budget_ref(c->o.budget) : NULL;
    rest->names = g_ptr_array_new();
    rest->index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint k = 0; k < c->names->len; k++) {
        char *name = g_strdup(c->names->pdata[k]);
        g_hash_table_insert(rest->index, name, g_hash_table_lookup(c->index, name));
        g_ptr_array_add(rest->names, name);
    }
    rest->histograms = histograms_new(c->histograms->len, c->o.budget);
    rest->extremes = g_array_new(FALSE, TRUE, sizeof(Extremes));
    g_array_set_size(rest->extremes, c->extremes->len);
    for (guint64 k = 0; k < c->apart->len; k++) {
        const Sample *s = c->apart->pdata[k];
        if (k == i)
            continue;
        if (!histograms_add(rest->histograms, s->histograms, error))
            return NULL;
        for (guint v = 0; v < s->extremes->len; v++)
            spread_add(extremes(rest, (int)v), g_array_index(s->extremes, Extremes, v).lo,
                       g_array_index(s->extremes, Extremes, v).hi);
        rest->samples++;
    }
    return g_steal_pointer(&rest);
}

void hn_calibrator_free(HnCalibrator *c)
{
    if (c == NULL)
        return;
    hn_calibrator_end(c);
    histograms_free(c->histograms);
    histograms_free(c->now);
    g_clear_pointer(&c->apart, g_ptr_array_unref);
    for (int k = 0; k < c->o.threads; k++)
        hn_histogram_clear(&c->parts[k]);
    g_array_unref(c->extremes);
    g_free(c->parts);
    g_free(c->place);
    g_ptr_array_unref(c->names);
    g_hash_table_unref(c->index);
    g_clear_error(&c->failure);
    if (c->o.budget != NULL)
        hn_budget_unref(c->o.budget);
    g_free(c);
}

void hn_calibrator_end(HnCalibrator *c)
{
    g_clear_pointer(&c->session, hn_session_free);
}

gsize hn_calibrator_bytes(const HnCalibrator *c)
{
    return (c->histograms->len + (gsize)c->o.threads) * hn_histogram_bytes();
}

int hn_calibrator_n_inputs(const HnCalibrator *c)
{
    return hn_session_n_inputs(c->session);
}

const HnValue *hn_calibrator_input(const HnCalibrator *c, int i)
{
    return hn_session_input(c->session, i);
}

guint64 hn_calibrator_samples(const HnCalibrator *c)
{
    return c->samples;
}

const HnHistogram *hn_calibrator_get(const HnCalibrator *c, const char *value)
{
    const int i = GPOINTER_TO_INT(g_hash_table_lookup(c->index, value)) - 1;
    return i >= 0 ? histogram(c, i) : NULL;
}

const HnSpread *hn_calibrator_spread(const HnCalibrator *c, const char *value)
{
    const int i = GPOINTER_TO_INT(g_hash_table_lookup(c->index, value)) - 1;
    return i >= 0 ? &extremes(c, i)->spread : NULL;
}

guint hn_calibrator_count(const HnCalibrator *c)
{
    return c->names->len;
}

const char *hn_calibrator_name(const HnCalibrator *c, guint i)
{
    return c->names->pdata[i];
}
