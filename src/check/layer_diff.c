#include "check/layer_diff.h"

#include <math.h>

#include "check/factors.h"
#include "check/outputs.h"

/* A value of a model while a sample runs. */
typedef struct {
    HnTensor *own;   /* elements on the model's own results; NULL: not yet, or no longer needed */
    HnTensor *alone; /* second model: what isolated nodes are fed; often the same tensor as `own` */
    guint users;     /* nodes that read it, and the comparison: what `left` starts with */
    guint left;
    int row;        /* -1: none */
    int work;       /* that makes it; -1: input or weight */
    int output;     /* of the model; -1: none */
    gboolean fixed; /* the same at each run with inputs of these shapes */
} Place;

/* A node that has to run. */
typedef struct {
    HnNode *node;
    GPtrArray *reads; /* HnValue *, each once: inputs, then what sub-graphs capture */
    gboolean done;
} Work;

typedef struct {
    HnModel *model;
    const HnBackend *backend;
    gboolean bf16;
    int max_isa;
    HnFactors *factors; /* per layer: of tensors that are in other units than the other model's */
    HnSession *whole;   /* per layer: on the null backend, for the inputs alone */
    Place *places;      /* by HnValue.id */
    GArray *works;      /* Work, in order */
    guint unmatched;
} Side;

struct HnLayerDiff {
    Side side[2];
    HnLayerDiffOptions o;
    GPtrArray *rows;  /* HnLayerDiffRow * of all matched results */
    GPtrArray *shown; /* those that are no constants */
    int *partner;     /* per input of the second model: the place among those of the first */
};

static const char *const names[] = { "first", "second" };

static const HnTolerance no_tolerance = { .min_cos = NAN };

static Place *place(const Side *s, const HnValue *v)
{
    return &s->places[v->id];
}

static Work *work(const Side *s, int i)
{
    return &g_array_index(s->works, Work, i);
}

/* --- types and errors -------------------------------------------------------------------------------------------- */

static gboolean is_float(HnDtype t)
{
    return hn_dtype_in(t, HN_T_FLOATS);
}

static gboolean comparable(const HnTensor *a, const HnTensor *b)
{
    return hn_tensor_same_dims(a, b) && (a->dtype == b->dtype || (is_float(a->dtype) && is_float(b->dtype)));
}

/* NaN stands for the worst there is. */
static double worse(double a, double b, gboolean low)
{
    return isnan(a) || isnan(b) ? NAN : low ? MIN(a, b) : MAX(a, b);
}

static void note(HnTensorError *e, const HnTensor *got, const HnTensor *want)
{
    HnDiff d;
    (void)hn_compare_numbers(got, want, &no_tolerance, &d);
    if (e->samples++ == 0) {
        e->cos = d.cos;
        e->sqnr = d.sqnr;
    } else {
        e->cos = worse(e->cos, d.cos, TRUE);
        e->sqnr = worse(e->sqnr, d.sqnr, TRUE);
    }
    e->max_abs = MAX(e->max_abs, d.max_abs);
    e->max_rel = MAX(e->max_rel, d.max_rel);
}

static void describe(char **text, const HnTensor *t)
{
    g_free(*text);
    *text = hn_tensor_describe(t);
}

static gboolean note_types(HnLayerDiffRow *r, const HnTensor *a, const HnTensor *b)
{
    describe(&r->type_a, a);
    describe(&r->type_b, b);
    gboolean fit = comparable(a, b);
    r->differs = r->differs || !fit;
    return fit;
}

/* --- which nodes run, and who reads what ------------------------------------------------------------------------- */

/* The graph's own inputs are found by the session; everything else that no node makes is a weight. */
static void find_fixed(Side *s)
{
    const HnGraph *g = s->model->graph;
    for (guint i = 0; i < g->weights->len; i++)
        place(s, g->weights->pdata[i])->fixed = TRUE;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        gboolean fixed = (n->op->flags & (HN_OP_RANDOM | HN_OP_CONTROL)) == 0;
        for (guint k = 0; k < n->in->len && fixed; k++)
            fixed = hn_node_in(n, (int)k) == NULL || place(s, hn_node_in(n, (int)k))->fixed ||
                    (k == 0 && (n->op->flags & HN_OP_SHAPE_ONLY) != 0);
        for (guint k = 0; k < n->out->len; k++)
            if (hn_node_out(n, (int)k) != NULL)
                place(s, hn_node_out(n, (int)k))->fixed = fixed;
    }
}

static void work_clear(gpointer data)
{
    g_ptr_array_unref(((Work *)data)->reads);
}

/* Works in order: what the values that `users` marks already are made of. */
static void find_works(Side *s)
{
    const HnGraph *g = s->model->graph;
    g_autoptr(GPtrArray) found = g_ptr_array_new(); /* GPtrArray * of reads, last node first */
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    for (guint i = g->nodes->len; i-- > 0;) {
        HnNode *n = g->nodes->pdata[i];
        gboolean needed = FALSE;
        for (guint k = 0; k < n->out->len && !needed; k++)
            needed = hn_node_out(n, (int)k) != NULL && place(s, hn_node_out(n, (int)k))->users > 0;
        if (!needed)
            continue;
        GPtrArray *reads = hn_node_reads(n);
        for (guint k = 0; k < reads->len; k++)
            place(s, reads->pdata[k])->users++;
        g_ptr_array_add(found, reads);
        g_ptr_array_add(nodes, n);
    }
    for (guint i = nodes->len; i-- > 0;) {
        Work w = { .node = nodes->pdata[i], .reads = found->pdata[i] };
        for (guint k = 0; k < w.node->out->len; k++)
            if (hn_node_out(w.node, (int)k) != NULL)
                place(s, hn_node_out(w.node, (int)k))->work = (int)s->works->len;
        g_array_append_val(s->works, w);
    }
}

static void count_unmatched(Side *s)
{
    const HnGraph *g = s->model->graph;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            const HnValue *v = hn_node_out(n, (int)k);
            s->unmatched += v != NULL && place(s, v)->row < 0 && !place(s, v)->fixed;
        }
    }
}

/* --- one node on its own ----------------------------------------------------------------------------------------- */

static gboolean fill_weight(const HnLayerDiff *l, Side *s, const HnValue *v, GError **error)
{
    Place *p = place(s, v);
    if (p->own != NULL || !hn_value_is_weight(v) || !p->fixed)
        return TRUE;
    if ((p->own = hn_value_aligned(v, l->o.budget, error)) == NULL)
        return FALSE;
    p->alone = hn_tensor_ref(p->own);
    return TRUE;
}

/* The same for both models where the node is. */
static uint64_t seed_of(const HnLayerDiff *l, const Side *s, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = hn_node_out(n, (int)k);
        int row = v != NULL ? place(s, v)->row : -1;
        if (v != NULL)
            return l->o.seed ^ g_str_hash(row < 0 ? v->name : ((HnLayerDiffRow *)l->rows->pdata[row])->match.a->name);
    }
    return l->o.seed;
}

/* A model of the one node: fed values are inputs, fixed ones weights. in gets a borrowed tensor per input. */
static HnModel *model_of(const Side *s, const Work *w, gboolean alone, GPtrArray *in)
{
    HnModel *m = hn_model_new();
    for (guint i = 0; i < s->model->opsets->len; i++) {
        const HnOpset *o = &g_array_index(s->model->opsets, HnOpset, i);
        hn_model_set_opset(m, o->domain, o->version);
    }
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < w->reads->len; i++) {
        HnValue *v = w->reads->pdata[i], *copy = hn_graph_value(m->graph, v->name);
        const Place *p = place(s, v);
        HnTensor *t = alone ? p->alone : p->own;
        g_hash_table_insert(values, v, copy);
        if (p->fixed) {
            hn_graph_add_weight(m->graph, copy, t);
            continue;
        }
        g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->ndim, t->dims);
        hn_value_set_type(copy, type);
        hn_graph_add_input(m->graph, copy);
        g_ptr_array_add(in, t);
    }
    HnNode *n = hn_node_copy(m->graph, w->node, values);
    for (guint k = 0; k < n->out->len; k++)
        if (hn_node_out(n, (int)k) != NULL) {
            hn_value_set_type(hn_node_out(n, (int)k), NULL);
            hn_graph_add_output(m->graph, hn_node_out(n, (int)k));
        }
    return m;
}

/* out: a place per output of the node. */
static gboolean run_node(const HnLayerDiff *l, const Side *s, const Work *w, gboolean alone, HnTensor **out,
                         GError **error)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new();
    g_autoptr(HnModel) m = model_of(s, w, alone, in);
    HnSessionOptions o = { .threads = l->o.threads,
                           .strict_math = l->o.strict_math,
                           .bf16 = s->bf16,
                           .max_isa = s->max_isa,
                           .seed = seed_of(l, s, w->node),
                           .budget = l->o.budget };
    g_autoptr(HnSession) session = hn_session_new(m, s->backend, &o, error);
    g_autofree HnTensor **results = g_new0(HnTensor *, m->graph->outputs->len + 1u);
    if (session == NULL || !hn_session_run(session, (HnTensor *const *)in->pdata, results, error))
        return FALSE;
    for (guint k = 0, i = 0; k < w->node->out->len; k++)
        out[k] = hn_node_out(w->node, (int)k) != NULL ? results[i++] : NULL;
    return TRUE;
}

static void drop(Place *p)
{
    g_clear_pointer(&p->own, hn_tensor_unref);
    g_clear_pointer(&p->alone, hn_tensor_unref);
}

static void release(const Side *s, const HnValue *v)
{
    Place *p = place(s, v);
    if (p->left > 0 && --p->left == 0)
        drop(p);
}

static void done(const Side *s, Work *w)
{
    w->done = TRUE;
    for (guint i = 0; i < w->reads->len; i++)
        release(s, w->reads->pdata[i]);
    for (guint k = 0; k < w->node->out->len; k++)
        if (hn_node_out(w->node, (int)k) != NULL && place(s, hn_node_out(w->node, (int)k))->left == 0)
            drop(place(s, hn_node_out(w->node, (int)k)));
}

static gboolean fill_weights(const HnLayerDiff *l, Side *s, const Work *w, GError **error)
{
    for (guint i = 0; i < w->reads->len; i++)
        if (!fill_weight(l, s, w->reads->pdata[i], error))
            return FALSE;
    return TRUE;
}

/* --- the first model: as far as asked for ------------------------------------------------------------------------ */

static gboolean step_first(HnLayerDiff *l, Work *w, GError **error)
{
    Side *s = &l->side[0];
    g_autofree HnTensor **out = g_new0(HnTensor *, w->node->out->len + 1u);
    if (!fill_weights(l, s, w, error) || !run_node(l, s, w, FALSE, out, error))
        return FALSE;
    for (guint k = 0; k < w->node->out->len; k++)
        if (out[k] != NULL)
            place(s, hn_node_out(w->node, (int)k))->own = out[k];
    done(s, w);
    return TRUE;
}

/* Runs what v is made of, and no more. */
static gboolean ask_first(HnLayerDiff *l, const HnValue *v, GError **error)
{
    Side *s = &l->side[0];
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int));
    int top = place(s, v)->work;
    if (top >= 0)
        g_array_append_val(stack, top);
    while (stack->len > 0) {
        Work *w = work(s, g_array_index(stack, int, stack->len - 1));
        guint before = stack->len;
        for (guint i = 0; i < w->reads->len && !w->done; i++) {
            int maker = place(s, w->reads->pdata[i])->work;
            if (maker >= 0 && !work(s, maker)->done)
                g_array_append_val(stack, maker);
        }
        if (stack->len > before)
            continue;
        if (!w->done && !step_first(l, w, error)) {
            g_prefix_error(error, "%s model: ", names[0]);
            return FALSE;
        }
        g_array_set_size(stack, stack->len - 1);
    }
    return TRUE;
}

/* --- the second model: leads ------------------------------------------------------------------------------------- */

/* Is an isolated run of w any different from the one on the model's own results? */
static gboolean runs_alone(const Side *s, const Work *w)
{
    for (guint i = 0; i < w->reads->len; i++) {
        const Place *p = place(s, w->reads->pdata[i]);
        if (p->own != p->alone)
            return TRUE;
    }
    return FALSE;
}

/* A tensor of a side in the units of the model that both were made of. NULL: it cannot be, or *error. */
static HnTensor *in_units(const HnLayerDiff *l, int side, const HnValue *v, HnTensor *t, GError **error)
{
    return hn_factors_apply(l->side[side].factors, v->name, t, FALSE, l->o.budget, error);
}

/* What the second model is fed in place of its own tensor: the first one's, in its units and type. */
static HnTensor *feed(const HnLayerDiff *l, const HnValue *v, HnTensor *want, HnTensor *own, GError **error)
{
    g_autoptr(HnTensor) fed = hn_factors_apply(l->side[1].factors, v->name, want, TRUE, l->o.budget, error);
    if (fed == NULL)
        return NULL;
    return hn_tensor_equal(fed, own) ? hn_tensor_ref(own) : hn_input_as(fed, own->dtype, l->o.budget, error);
}

/* Both as they were made, compared in the same units; *alone becomes what isolated readers are fed. */
static gboolean compare_in_units(HnLayerDiff *l, HnLayerDiffRow *r, HnTensor *first, HnTensor *second, HnTensor **alone,
                                 GError **error)
{
    GError *cause = NULL;
    g_autoptr(HnTensor) want = in_units(l, 0, r->match.a, first, &cause);
    g_autoptr(HnTensor) own = want != NULL ? in_units(l, 1, r->match.b, second, &cause) : NULL;
    g_autoptr(HnTensor) apart = own != NULL ? in_units(l, 1, r->match.b, *alone, &cause) : NULL;
    if (cause != NULL) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    if (own == NULL) { /* factors that fit no such tensor */
        r->differs = TRUE;
        return TRUE;
    }
    r->rescaled = own != second || want != first;
    note(&r->accumulated, own, want);
    if (apart != NULL && comparable(want, apart))
        note(&r->isolated, apart, want);
    HnTensor *fed = feed(l, r->match.b, want, second, error);
    if (fed == NULL)
        return FALSE;
    hn_tensor_unref(*alone);
    *alone = fed;
    return TRUE;
}

/* Compares result k of the node; *alone becomes what isolated readers of it are fed. */
static gboolean compare(HnLayerDiff *l, const HnValue *v, HnTensor *own, HnTensor **alone, GError **error)
{
    HnLayerDiffRow *r = l->rows->pdata[place(&l->side[1], v)->row];
    HnTensor *want = place(&l->side[0], r->match.a)->own;
    if (note_types(r, want, own) && !compare_in_units(l, r, want, own, alone, error))
        return FALSE;
    release(&l->side[0], r->match.a);
    release(&l->side[1], v);
    return TRUE;
}

static gboolean step_second(HnLayerDiff *l, Work *w, GError **error)
{
    Side *s = &l->side[1];
    guint n = w->node->out->len;
    g_autofree HnTensor **own = g_new0(HnTensor *, n + 1), **alone = g_new0(HnTensor *, n + 1);
    if (!fill_weights(l, s, w, error) || !run_node(l, s, w, FALSE, own, error))
        return FALSE;
    /* with other inputs a node may fail, as an index that is out of range does: then there is no isolated result */
    gboolean apart = runs_alone(s, w) && run_node(l, s, w, TRUE, alone, NULL), ok = TRUE;
    for (guint k = 0; k < n; k++) {
        const HnValue *v = hn_node_out(w->node, (int)k);
        if (v == NULL)
            continue;
        Place *p = place(s, v);
        p->own = own[k];
        p->alone = apart ? alone[k] : hn_tensor_ref(own[k]);
        if (ok && p->row >= 0)
            ok = compare(l, v, p->own, &p->alone, error);
    }
    done(s, w);
    return ok;
}

/* --- a sample ---------------------------------------------------------------------------------------------------- */

static void reset(Side *s)
{
    for (guint i = 0; i < s->model->n_values; i++) {
        drop(&s->places[i]);
        s->places[i].left = s->places[i].users;
    }
    for (guint i = 0; i < s->works->len; i++)
        work(s, (int)i)->done = FALSE;
}

/* The second model's inputs out of the first one's. */
static gboolean inputs_of_second(const HnLayerDiff *l, HnTensor *const *in, HnTensor **out, GError **error)
{
    for (int i = 0; i < hn_session_n_inputs(l->side[1].whole); i++) {
        const HnDtype dtype = hn_type_dtype(hn_session_input(l->side[1].whole, i)->type);
        out[i] = hn_input_as(in[l->partner[i]], dtype, l->o.budget, error);
        if (out[i] == NULL)
            return FALSE;
    }
    return TRUE;
}

static gboolean run_layers(HnLayerDiff *l, HnTensor *const *in_a, HnTensor *const *in_b, GError **error)
{
    Side *a = &l->side[0], *b = &l->side[1];
    reset(a);
    reset(b);
    for (int i = 0; i < hn_session_n_inputs(a->whole); i++)
        place(a, hn_session_input(a->whole, i))->own = hn_tensor_ref(in_a[i]);
    for (int i = 0; i < hn_session_n_inputs(b->whole); i++) {
        Place *p = place(b, hn_session_input(b->whole, i));
        p->own = hn_tensor_ref(in_b[i]);
        p->alone = hn_tensor_ref(in_b[i]);
    }
    for (guint i = 0; i < b->works->len; i++) {
        Work *w = work(b, (int)i);
        if (hn_progress_stop(l->o.progress, error))
            return FALSE;
        for (guint k = 0; k < w->node->out->len; k++) {
            const HnValue *v = hn_node_out(w->node, (int)k);
            int row = v != NULL ? place(b, v)->row : -1;
            if (row >= 0 && !ask_first(l, ((HnLayerDiffRow *)l->rows->pdata[row])->match.a, error))
                return FALSE;
        }
        if (!step_second(l, w, error)) {
            g_prefix_error(error, "%s model: ", names[1]);
            return FALSE;
        }
        hn_progress_tell(l->o.progress, "comparing layers", i + 1, b->works->len);
    }
    return TRUE;
}

static gboolean run_whole(const Side *s, const char *name, HnTensor *const *in, HnTensor **out, GError **error)
{
    if (hn_session_run(s->whole, in, out, error))
        return TRUE;
    g_prefix_error(error, "%s model: ", name);
    return FALSE;
}

static HnTensor *output_of(const Side *s, HnTensor **out, const HnValue *v)
{
    const int output = place(s, v)->output;
    return output >= 0 ? out[output] : NULL;
}

static gboolean run_outputs(HnLayerDiff *l, HnTensor *const *in_a, HnTensor *const *in_b, GError **error)
{
    Side *a = &l->side[0], *b = &l->side[1];
    int n = hn_session_n_outputs(a->whole), m = hn_session_n_outputs(b->whole);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n + (gsize)m + 1);
    gboolean ok = run_whole(a, names[0], in_a, out, error) && run_whole(b, names[1], in_b, out + n, error);
    for (guint i = 0; ok && i < l->rows->len; i++) {
        HnLayerDiffRow *r = l->rows->pdata[i];
        const HnTensor *want = output_of(a, out, r->match.a), *got = output_of(b, out + n, r->match.b);
        if (want != NULL && got != NULL && note_types(r, want, got))
            note(&r->accumulated, got, want);
    }
    for (int k = 0; k < n + m; k++)
        hn_tensor_unref(out[k]);
    return ok;
}

gboolean hn_layer_diff_run(HnLayerDiff *l, HnTensor *const *in, GError **error)
{
    int n = hn_session_n_inputs(l->side[1].whole);
    g_autofree HnTensor **in_b = g_new0(HnTensor *, (gsize)n + 1);
    gboolean ok = inputs_of_second(l, in, in_b, error) &&
                  (l->o.per_layer ? run_layers(l, in, in_b, error) : run_outputs(l, in, in_b, error));
    for (int i = 0; i < n; i++)
        hn_tensor_unref(in_b[i]);
    for (int i = 0; i < 2 && l->o.per_layer; i++)
        reset(&l->side[i]);
    return ok;
}

/* --- making it --------------------------------------------------------------------------------------------------- */

static void row_free(gpointer data)
{
    HnLayerDiffRow *r = data;
    g_free(r->type_a);
    g_free(r->type_b);
    g_free(r);
}

static gboolean open_side(HnLayerDiff *l, int i, const HnSide *from, GError **error)
{
    Side *s = &l->side[i];
    s->model = from->model;
    s->backend = from->backend;
    s->bf16 = from->bf16;
    s->max_isa = from->max_isa;
    if (s->max_isa > 0) /* said ahead to what is opened once for both sides */
        hn_cpu_limit_isa(hn_cpu_limit_isa((HnIsa)(s->max_isa - 1)));
    s->factors = hn_factors_read(s->model);
    HnSessionOptions o = { .threads = l->o.threads,
                           .strict_math = l->o.strict_math,
                           .bf16 = s->bf16,
                           .max_isa = s->max_isa,
                           .seed = l->o.seed,
                           .budget = l->o.budget };
    s->whole = hn_session_new(s->model, l->o.per_layer ? &hn_backend_null : s->backend, &o, error);
    if (s->whole == NULL) {
        g_prefix_error(error, "%s model: ", names[i]);
        return FALSE;
    }
    s->places = g_new0(Place, (gsize)s->model->n_values + 1);
    for (guint k = 0; k < s->model->n_values; k++)
        s->places[k].row = s->places[k].work = s->places[k].output = -1;
    for (int k = hn_session_n_outputs(s->whole) - 1; k >= 0; k--)
        place(s, hn_session_output(s->whole, k))->output = k;
    s->works = g_array_new(FALSE, FALSE, sizeof(Work));
    g_array_set_clear_func(s->works, work_clear);
    return TRUE;
}

static gboolean is_result_of(const HnGraph *g, const HnValue *v)
{
    return v->graph == g && v->is_output > 0;
}

static void add_rows(HnLayerDiff *l, const GArray *matches)
{
    Side *a = &l->side[0], *b = &l->side[1];
    for (guint i = 0; i < matches->len; i++) {
        const HnMatch *m = &g_array_index(matches, HnMatch, i);
        gboolean is_output = is_result_of(b->model->graph, m->b);
        if (m->b->producer == NULL || (!l->o.per_layer && (!is_output || !is_result_of(a->model->graph, m->a))))
            continue;
        HnLayerDiffRow *r = g_new0(HnLayerDiffRow, 1);
        r->match = *m;
        r->is_output = is_output;
        if (!place(a, m->a)->fixed || !place(b, m->b)->fixed || is_output)
            g_ptr_array_add(l->shown, r);
        place(a, m->a)->row = place(b, m->b)->row = (int)l->rows->len;
        place(a, m->a)->users = place(b, m->b)->users = 1;
        g_ptr_array_add(l->rows, r);
    }
}

static GHashTable *places_of_inputs(const HnSession *s)
{
    GHashTable *at = g_hash_table_new(NULL, NULL);
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        g_hash_table_insert(at, (gpointer)hn_session_input(s, i), GINT_TO_POINTER(i + 1));
    return at;
}

static gboolean find_partners(HnLayerDiff *l, const GArray *matches, GError **error)
{
    const HnSession *first = l->side[0].whole, *second = l->side[1].whole;
    const int n = hn_session_n_inputs(second);
    g_autoptr(GHashTable) in_a = places_of_inputs(first), in_b = places_of_inputs(second);
    l->partner = g_new(int, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        l->partner[i] = -1;
    for (guint k = 0; k < matches->len; k++) {
        const HnMatch *m = &g_array_index(matches, HnMatch, k);
        const int a = GPOINTER_TO_INT(g_hash_table_lookup(in_a, m->a));
        const int b = GPOINTER_TO_INT(g_hash_table_lookup(in_b, m->b));
        if (a > 0 && b > 0)
            l->partner[b - 1] = a - 1;
    }
    for (int i = 0; i < n; i++)
        if (l->partner[i] < 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "input '%s' of the second model is none of the first",
                        hn_session_input(second, i)->name);
            return FALSE;
        }
    return TRUE;
}

HnLayerDiff *hn_layer_diff_new(const HnSide *a, const HnSide *b, const HnLayerDiffOptions *o, GError **error)
{
    g_autoptr(HnLayerDiff) l = g_new0(HnLayerDiff, 1);
    l->o = *o;
    if (l->o.budget != NULL)
        hn_budget_ref(l->o.budget);
    l->rows = g_ptr_array_new_with_free_func(row_free);
    l->shown = g_ptr_array_new();
    if (!open_side(l, 0, a, error) || !open_side(l, 1, b, error))
        return NULL;
    g_autoptr(GArray) matches = hn_match_values(a->model->graph, b->model->graph);
    if (!find_partners(l, matches, error))
        return NULL;
    for (int i = 0; i < 2 && o->per_layer; i++)
        find_fixed(&l->side[i]);
    add_rows(l, matches);
    if (l->rows->len == 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, "the models have no tensor in common to compare");
        return NULL;
    }
    for (int i = 0; i < 2 && o->per_layer; i++) {
        count_unmatched(&l->side[i]);
        find_works(&l->side[i]);
    }
    return g_steal_pointer(&l);
}

void hn_layer_diff_free(HnLayerDiff *l)
{
    if (l == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        Side *s = &l->side[i];
        for (guint k = 0; s->places != NULL && k < s->model->n_values; k++)
            drop(&s->places[k]);
        g_free(s->places);
        g_clear_pointer(&s->works, g_array_unref);
        hn_factors_free(s->factors);
        hn_session_free(s->whole);
    }
    g_clear_pointer(&l->rows, g_ptr_array_unref);
    g_clear_pointer(&l->shown, g_ptr_array_unref);
    g_free(l->partner);
    if (l->o.budget != NULL)
        hn_budget_unref(l->o.budget);
    g_free(l);
}

int hn_layer_diff_n_inputs(const HnLayerDiff *l)
{
    return hn_session_n_inputs(l->side[0].whole);
}

const HnValue *hn_layer_diff_input(const HnLayerDiff *l, int i)
{
    return hn_session_input(l->side[0].whole, i);
}

guint hn_layer_diff_rows(const HnLayerDiff *l)
{
    return l->shown->len;
}

const HnLayerDiffRow *hn_layer_diff_row(const HnLayerDiff *l, guint i)
{
    return l->shown->pdata[i];
}

guint hn_layer_diff_unmatched(const HnLayerDiff *l, int side)
{
    return l->side[side].unmatched;
}
