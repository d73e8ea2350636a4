#include "check/ranges.h"

#include <math.h>

#define SMALL 4096 /* elements that ref looks at sooner than a session is opened for them */
#define LIST 64    /* integers that are given as constants: shapes, axes */

struct HnRangeProbe {
    HnModel *model;
    const HnBackend *backend;
    HnRangeProbeOptions o;
    HnSession *whole; /* on the null backend, for the inputs alone */
    HnRanges *ranges;
    HnTensor **have;  /* by HnValue.id */
    GPtrArray *reads; /* for each node of the main graph: GPtrArray of HnValue *, inputs and what sub-graphs capture */
    guint *users;     /* by HnValue.id: nodes of the main graph that read it */
    guint *left;
    guint n_values; /* when the probe was made: the model may be edited once all was seen */
};

/* --- elements ---------------------------------------------------------------------------------------------------- */

static gboolean fill(HnRangeProbe *w, const HnValue *v, GError **error)
{
    if (w->have[v->id] != NULL || !hn_value_is_weight(v))
        return TRUE;
    return (w->have[v->id] = hn_value_aligned(v, w->o.budget, error)) != NULL;
}

static void drop(HnRangeProbe *w, const HnValue *v)
{
    if (v != NULL)
        g_clear_pointer(&w->have[v->id], hn_tensor_unref);
}

static HnTensor *magnitudes(const HnTensor *t, HnBudget *budget, GError **error)
{
    HnTensor *m = hn_tensor_copy(t, budget, error);
    if (m != NULL && m->dtype == HN_F32)
        for (int64_t i = 0; i < m->n; i++)
            ((float *)m->data)[i] = fabsf(((float *)m->data)[i]);
    else if (m != NULL)
        for (int64_t i = 0; i < m->n; i++)
            hn_tensor_set_f64(m, i, fabs(hn_tensor_get_f64(m, i)));
    return m;
}

static gboolean is_float(const HnTensor *t)
{
    return t != NULL && hn_dtype_in(t->dtype, HN_T_FLOATS);
}

/* --- one node ---------------------------------------------------------------------------------------------------- */

static gboolean run_graph(HnEval *e, HnGraph *g, int n_in, HnTensor *const *in, int n_out, HnTensor **out);

static uint64_t seed_of(const HnRangeProbe *w, const HnNode *n)
{
    return w->o.seed ^ g_str_hash(hn_node_label(n));
}

static gboolean run_ref(HnRangeProbe *w, HnNode *n, HnTensor **in, HnTensor **out, GError **error)
{
    HnEval e = { .node = n,
                 .params = n->params,
                 .n_in = (int)n->in->len,
                 .n_out = (int)n->out->len,
                 .in = in,
                 .out = out,
                 .budget = w->o.budget,
                 .seed = seed_of(w, n),
                 .graph = run_graph,
                 .data = w };
    return hn_op_eval(&e, error);
}

/* A model of the one node: what has elements in the file, and lists of integers, are weights; the rest is fed. */
static HnModel *model_of(const HnRangeProbe *w, const HnNode *n, HnTensor **in, GPtrArray *fed)
{
    HnModel *m = hn_model_new();
    for (guint i = 0; i < w->model->opsets->len; i++) {
        const HnOpset *o = &g_array_index(w->model->opsets, HnOpset, i);
        hn_model_set_opset(m, o->domain, o->version);
    }
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < n->in->len; i++) {
        HnValue *v = hn_node_in(n, (int)i), *copy;
        if (v == NULL || g_hash_table_contains(values, v))
            continue;
        g_hash_table_insert(values, v, copy = hn_graph_value(m->graph, v->name));
        if (hn_value_is_weight(v) || (hn_dtype_in(in[i]->dtype, HN_T_INTS) && in[i]->n <= LIST)) {
            hn_graph_add_weight(m->graph, copy, in[i]);
            continue;
        }
        g_autoptr(HnType) type = hn_type_fixed(in[i]->dtype, in[i]->ndim, in[i]->dims);
        hn_value_set_type(copy, type);
        hn_graph_add_input(m->graph, copy);
        g_ptr_array_add(fed, in[i]);
    }
    HnNode *c = hn_node_copy(m->graph, n, values);
    for (guint k = 0; k < c->out->len; k++)
        if (hn_node_out(c, (int)k) != NULL) {
            hn_value_set_type(hn_node_out(c, (int)k), NULL);
            hn_graph_add_output(m->graph, hn_node_out(c, (int)k));
        }
    return m;
}

static gboolean run_session(HnRangeProbe *w, HnNode *n, HnTensor **in, HnTensor **out, GError **error)
{
    g_autoptr(GPtrArray) fed = g_ptr_array_new();
    g_autoptr(HnModel) m = model_of(w, n, in, fed);
    HnSessionOptions o = { .threads = w->o.threads, .seed = seed_of(w, n), .budget = w->o.budget };
    g_autoptr(HnSession) s = hn_session_new(m, w->backend, &o, error);
    g_autofree HnTensor **results = g_new0(HnTensor *, m->graph->outputs->len + 1u);
    if (s == NULL || !hn_session_run(s, (HnTensor *const *)fed->pdata, results, error))
        return FALSE;
    for (guint k = 0, i = 0; k < n->out->len; k++)
        out[k] = hn_node_out(n, (int)k) != NULL ? results[i++] : NULL;
    return TRUE;
}

/* out: new references, a place for each output of the node. */
static gboolean run_node(HnRangeProbe *w, HnNode *n, HnTensor **in, HnTensor **out, GError **error)
{
    int64_t elements = 0;
    for (guint i = 0; i < n->in->len; i++)
        elements += in[i] != NULL ? in[i]->n : 0;
    const gboolean ref =
        (n->op->flags & HN_OP_CONTROL) != 0 || n->in->len == 0 || (n->op->ref != NULL && elements <= SMALL);
    return ref ? run_ref(w, n, in, out, error) : run_session(w, n, in, out, error);
}

/* --- what comes up inside ---------------------------------------------------------------------------------------- */

/* The largest result of the node on magnitudes; 0 where it cannot be computed. */
static double of_magnitudes(HnRangeProbe *w, HnNode *n, HnTensor **in)
{
    g_autofree HnTensor **m = g_new0(HnTensor *, n->in->len + 1u), **out = g_new0(HnTensor *, n->out->len + 1u);
    gboolean ok = TRUE;
    HnRange r = { 0 };
    for (guint i = 0; i < n->in->len && ok; i++)
        if (in[i] != NULL)
            ok = (m[i] = is_float(in[i]) ? magnitudes(in[i], w->o.budget, NULL) : hn_tensor_ref(in[i])) != NULL;
    if (ok && run_node(w, n, m, out, NULL) && out[0] != NULL)
        hn_range_of(out[0], &r);
    for (guint i = 0; i < n->in->len; i++)
        hn_tensor_unref(m[i]);
    for (guint k = 0; k < n->out->len; k++)
        hn_tensor_unref(out[k]);
    return r.largest;
}

/* Elements that one result of a mean stands for. */
static double share(const HnNode *n, const HnTensor *in, const HnTensor *out)
{
    const HnAttr *kernel = hn_node_attr(n, "kernel_shape");
    double k = 1;
    for (int64_t i = 0; kernel != NULL && kernel->kind == HN_ATTR_INTS && i < kernel->n; i++)
        k *= (double)kernel->ints[i];
    return kernel != NULL ? k : out->n > 0 ? (double)in->n / (double)out->n : 0;
}

typedef struct {
    int64_t outer, len, inner; /* rows are [outer, *, inner] */
} Rows;

static Rows rows_of(const HnNode *n, const HnTensor *t)
{
    const HnRangeRule *rule = &n->op->range;
    const HnAttr *a = hn_node_attr(n, "axis"), *groups = hn_node_attr(n, "num_groups");
    const gboolean old = rule->kind == HN_R_EXPONENTS && n->version < 13; /* a row is all from the axis on */
    const HnRow row = old ? HN_ROW_FROM_AXIS : rule->row;
    int64_t axis = a != NULL && a->kind == HN_ATTR_INT ? a->i : old ? 1 : -1;
    Rows r = { 1, 1, 1 };
    axis += axis < 0 ? t->ndim : 0;
    if (row == HN_ROW_SPATIAL)
        axis = 2;
    if (row == HN_ROW_ALL || axis < 0)
        axis = 0;
    for (int i = 0; i < t->ndim; i++)
        *(i < axis ? &r.outer : i > axis && row == HN_ROW_AXIS ? &r.inner : &r.len) *= t->dims[i];
    if (row != HN_ROW_SPATIAL || t->ndim < 2 || groups == NULL || groups->kind != HN_ATTR_INT)
        return r;
    if (groups->i > 0 && t->dims[1] % groups->i == 0) {
        r.len *= t->dims[1] / groups->i;
        r.outer = r.outer / t->dims[1] * groups->i;
    }
    return r;
}

static double row_sum(const HnTensor *t, int64_t first, int64_t n, int64_t step, gboolean exponents)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; exponents && i < n; i++)
        max = fmax(max, hn_tensor_get_f64(t, first + i * step));
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_tensor_get_f64(t, first + i * step);
        const double y = exponents ? exp(x - max) : x * x;
        sum += isfinite(y) ? y : 0;
    }
    return sum;
}

static double largest_row(const HnNode *n, const HnTensor *t)
{
    double largest = 0;
    const Rows r = rows_of(n, t);
    for (int64_t o = 0; t->n > 0 && o < r.outer; o++)
        for (int64_t i = 0; i < r.inner; i++)
            largest =
                MAX(largest, row_sum(t, o * r.len * r.inner + i, r.len, r.inner, n->op->range.kind == HN_R_EXPONENTS));
    return largest;
}

static void look_inside(HnRangeProbe *w, HnNode *n, HnTensor **in, HnTensor **out)
{
    const char *name = hn_node_out(n, 0) != NULL ? hn_node_out(n, 0)->name : NULL;
    HnRange r = { 0 };
    if (name == NULL || n->in->len == 0 || !is_float(in[0]) || !is_float(out[0]))
        return;
    switch (n->op->range.kind) {
    case HN_R_NONE:
        break;
    case HN_R_PRODUCTS:
        hn_ranges_note_inside(w->ranges, name, of_magnitudes(w, n, in), "the sum of magnitudes");
        break;
    case HN_R_MEAN:
        hn_ranges_note_inside(w->ranges, name, of_magnitudes(w, n, in) * share(n, in[0], out[0]),
                              "the sum of magnitudes");
        break;
    case HN_R_SQUARE:
        hn_range_of(out[0], &r);
        hn_ranges_note_inside(w->ranges, name, r.largest * r.largest, "the sum of squares");
        break;
    case HN_R_SQUARES:
        hn_ranges_note_inside(w->ranges, name, largest_row(n, in[0]), "the sum of squares");
        break;
    case HN_R_EXPONENTS:
        hn_ranges_note_inside(w->ranges, name, largest_row(n, in[0]), "the sum of exponentials");
        break;
    }
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

static gboolean step(HnRangeProbe *w, HnNode *n, GError **error)
{
    g_autofree HnTensor **in = g_new0(HnTensor *, n->in->len + 1u), **out = g_new0(HnTensor *, n->out->len + 1u);
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = hn_node_in(n, (int)i);
        if (v != NULL && !fill(w, v, error))
            return FALSE;
        in[i] = v != NULL ? w->have[v->id] : NULL;
        if (v == NULL || in[i] != NULL)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "node '%s' reads '%s', which has no elements", hn_node_label(n),
                    v->name);
        return FALSE;
    }
    if (!hn_op_bind(n, error) || !run_node(w, n, in, out, error))
        return FALSE;
    look_inside(w, n, in, out);
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = hn_node_out(n, (int)k);
        if (v == NULL || out[k] == NULL) {
            hn_tensor_unref(out[k]);
            continue;
        }
        hn_ranges_note(w->ranges, v->name, out[k]);
        drop(w, v);
        w->have[v->id] = out[k];
    }
    return TRUE;
}

static void leave(HnRangeProbe *w, const HnGraph *g)
{
    for (guint i = 0; i < g->inputs->len; i++)
        drop(w, g->inputs->pdata[i]);
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++)
            drop(w, hn_node_out(n, (int)k));
    }
}

/* HnEval.graph: outer values are those that are there. */
static gboolean run_graph(HnEval *e, HnGraph *g, int n_in, HnTensor *const *in, int n_out, HnTensor **out)
{
    HnRangeProbe *w = e->data;
    gboolean ok = TRUE;
    for (int i = 0; i < n_in && (guint)i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        drop(w, v);
        w->have[v->id] = in[i] != NULL ? hn_tensor_ref(in[i]) : NULL;
        if (in[i] != NULL)
            hn_ranges_note(w->ranges, v->name, in[i]);
    }
    for (guint i = 0; i < g->nodes->len && ok; i++)
        ok = step(w, g->nodes->pdata[i], &e->error);
    for (int k = 0; k < n_out && ok; k++) {
        const HnValue *v = (guint)k < g->outputs->len ? g->outputs->pdata[k] : NULL;
        ok = v != NULL && fill(w, v, &e->error) && w->have[v->id] != NULL;
        if (ok)
            out[k] = hn_tensor_ref(w->have[v->id]);
        else if (e->error == NULL)
            hn_eval_fail(e, HN_ERROR_GRAPH, "result %d of a sub-graph has no elements", k);
    }
    leave(w, g);
    return ok;
}

static void release(HnRangeProbe *w, const HnValue *v)
{
    if (w->left[v->id] > 0 && --w->left[v->id] == 0)
        drop(w, v);
}

static gboolean run_model(HnRangeProbe *w, GError **error)
{
    const HnGraph *g = w->model->graph;
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        const GPtrArray *reads = w->reads->pdata[i];
        if (hn_progress_stop(w->o.progress, error))
            return FALSE;
        for (guint k = 0; k < reads->len; k++) /* what sub-graphs capture as well */
            if (!fill(w, reads->pdata[k], error))
                return FALSE;
        if (!step(w, n, error))
            return FALSE;
        for (guint k = 0; k < reads->len; k++)
            release(w, reads->pdata[k]);
        for (guint k = 0; k < n->out->len; k++)
            if (hn_node_out(n, (int)k) != NULL && w->users[hn_node_out(n, (int)k)->id] == 0)
                drop(w, hn_node_out(n, (int)k));
        hn_progress_tell(w->o.progress, "observing ranges", i + 1, g->nodes->len);
    }
    return TRUE;
}

gboolean hn_range_probe_run(HnRangeProbe *w, HnTensor *const *in, GError **error)
{
    for (guint i = 0; i < w->n_values; i++)
        w->left[i] = w->users[i];
    for (int i = 0; i < hn_range_probe_n_inputs(w); i++) {
        const HnValue *v = hn_range_probe_input(w, i);
        if (in[i] == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "input '%s' is missing", v->name);
            return FALSE;
        }
        w->have[v->id] = hn_tensor_ref(in[i]);
        hn_ranges_note(w->ranges, v->name, in[i]);
    }
    gboolean ok = run_model(w, error);
    for (guint i = 0; i < w->n_values; i++)
        g_clear_pointer(&w->have[i], hn_tensor_unref);
    return ok;
}

/* --- making it --------------------------------------------------------------------------------------------------- */

int hn_range_probe_n_inputs(const HnRangeProbe *w)
{
    return hn_session_n_inputs(w->whole);
}

const HnValue *hn_range_probe_input(const HnRangeProbe *w, int i)
{
    return hn_session_input(w->whole, i);
}

const HnRanges *hn_range_probe_ranges(const HnRangeProbe *w)
{
    return w->ranges;
}

HnRangeProbe *hn_range_probe_new(HnModel *m, const HnBackend *backend, const HnRangeProbeOptions *o, GError **error)
{
    g_autoptr(HnRangeProbe) w = g_new0(HnRangeProbe, 1);
    w->model = m;
    w->backend = backend;
    w->o = *o;
    if (w->o.budget != NULL)
        hn_budget_ref(w->o.budget);
    w->ranges = hn_ranges_new();
    w->reads = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    w->whole = hn_session_new(m, &hn_backend_null, &(HnSessionOptions){ .seed = o->seed, .budget = o->budget }, error);
    if (w->whole == NULL)
        return NULL;
    w->n_values = m->n_values;
    w->have = g_new0(HnTensor *, m->n_values + 1u);
    w->users = g_new0(guint, m->n_values + 1u);
    w->left = g_new0(guint, m->n_values + 1u);
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        GPtrArray *reads = hn_node_reads(m->graph->nodes->pdata[i]);
        for (guint k = 0; k < reads->len; k++)
            w->users[((const HnValue *)reads->pdata[k])->id]++;
        g_ptr_array_add(w->reads, reads);
    }
    return g_steal_pointer(&w);
}

void hn_range_probe_free(HnRangeProbe *w)
{
    if (w == NULL)
        return;
    for (guint i = 0; w->have != NULL && i < w->n_values; i++)
        hn_tensor_unref(w->have[i]);
    hn_session_free(w->whole);
    hn_ranges_free(w->ranges);
    g_ptr_array_unref(w->reads);
    if (w->o.budget != NULL)
        hn_budget_unref(w->o.budget);
    g_free(w->have);
    g_free(w->users);
    g_free(w->left);
    g_free(w);
}
