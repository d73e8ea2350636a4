#include "pass/rewrite.h"

#include <stdarg.h>
#include <string.h>

#include "ir/build.h"
#include "pass/driver.h"

/* --- asking ------------------------------------------------------------------------------------------------------- */

const HnType *hn_rw_type(const HnRewrite *r, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(r->types, v) : NULL;
    if (t == NULL && v != NULL)
        t = v->type;
    return hn_type_is_tensor(t) ? t : NULL;
}

HnDtype hn_rw_dtype(const HnRewrite *r, const HnValue *v)
{
    const HnType *t = hn_rw_type(r, v);
    return t != NULL ? t->dtype : HN_UNDEFINED;
}

int hn_rw_rank(const HnRewrite *r, const HnValue *v)
{
    const HnType *t = hn_rw_type(r, v);
    return t != NULL ? t->rank : -1;
}

HnDim hn_rw_dim(const HnRewrite *r, const HnValue *v, int axis)
{
    const HnType *t = hn_rw_type(r, v);
    if (t == NULL)
        return hn_dim_unknown();
    axis += axis < 0 ? t->rank : 0;
    return axis >= 0 && axis < t->rank ? t->dims[axis] : hn_dim_unknown();
}

gboolean hn_rw_same_dim(const HnRewrite *r, const HnValue *a, int i, const HnValue *b, int k)
{
    return hn_dim_equal(hn_rw_dim(r, a, i), hn_rw_dim(r, b, k));
}

gboolean hn_rw_same_shape(const HnRewrite *r, const HnValue *a, const HnValue *b)
{
    return hn_type_same_shape(hn_rw_type(r, a), hn_rw_type(r, b));
}

gboolean hn_rw_fixed(const HnRewrite *r, const HnValue *v, int64_t *dims)
{
    const HnType *t = hn_rw_type(r, v);
    return t != NULL && hn_type_is_fixed(t, dims);
}

HnTensor *hn_rw_known(const HnRewrite *r, const HnValue *v)
{
    HnTensor *t = v != NULL ? hn_types_value(r->types, v) : NULL;
    return t != NULL && !t->unloaded ? t : NULL;
}

HnTensor *hn_rw_const(const HnRewrite *r, const HnValue *v)
{
    HnTensor *t = hn_rw_known(r, v);
    return t != NULL && (hn_rw_lowers(r) || hn_tensor_align(t, r->o->budget, NULL)) ? t : NULL;
}

HnTensor *hn_rw_tensor(const HnRewrite *r, const HnValue *v)
{
    int64_t dims[HN_MAX_RANK];
    HnTensor *t = hn_rw_known(r, v);
    if (t != NULL)
        return hn_tensor_ref(t);
    g_return_val_if_fail(hn_rw_fixed(r, v, dims), NULL);
    return hn_tensor_new_borrowed(hn_rw_dtype(r, v), hn_rw_rank(r, v), dims, NULL);
}

gboolean hn_rw_number(const HnRewrite *r, const HnValue *v, double *x)
{
    const HnTensor *t = hn_rw_const(r, v);
    if (t == NULL || t->n != 1 || t->dtype == HN_STRING)
        return FALSE;
    *x = hn_tensor_get_f64(t, 0);
    return TRUE;
}

gboolean hn_rw_uniform(const HnRewrite *r, const HnValue *v, double *x)
{
    const HnTensor *t = hn_rw_const(r, v);
    if (t == NULL || t->n == 0 || t->dtype == HN_STRING)
        return FALSE;
    *x = hn_tensor_get_f64(t, 0);
    for (int64_t i = 1; i < t->n; i++)
        if (hn_tensor_get_f64(t, i) != *x)
            return FALSE;
    return TRUE;
}

gboolean hn_rw_ints(const HnRewrite *r, const HnValue *v, int64_t *x, int max, int *n)
{
    const HnTensor *t = hn_rw_const(r, v);
    if (t == NULL || t->ndim > 1 || t->n > max || !hn_dtype_in(t->dtype, HN_T_INTS))
        return FALSE;
    for (int64_t i = 0; i < t->n; i++)
        x[i] = hn_tensor_get_i64(t, i);
    *n = (int)t->n;
    return TRUE;
}

const HnContents *hn_rw_contents(const HnRewrite *r, const HnValue *v)
{
    return v != NULL ? hn_types_contents(r->types, v) : NULL;
}

HnNode *hn_rw_maker(const HnValue *v, const HnOp *op)
{
    HnNode *n = v != NULL ? v->producer : NULL;
    return n != NULL && n->op == op && v->producer_out == 0 && n->graph == v->graph ? n : NULL;
}

HnNode *hn_rw_reader(const HnValue *v, const HnOp *op)
{
    HnNode *n = v != NULL && hn_rw_single(v) ? v->users->pdata[0] : NULL;
    return n != NULL && n->op == op && n->graph == v->graph ? n : NULL;
}

gboolean hn_rw_single(const HnValue *v)
{
    return v->users->len == 1 && !v->is_output;
}

HnValue *hn_rw_other(const HnNode *n, const HnValue *v)
{
    return hn_node_in(n, 0) == v ? hn_node_in(n, 1) : hn_node_in(n, 0);
}

gboolean hn_rw_visible(const HnGraph *g, const HnValue *v)
{
    while (g != NULL && g != v->graph)
        g = g->outer;
    return g != NULL;
}

int64_t hn_rw_opset(const HnGraph *g)
{
    return hn_graph_opset(g, NULL);
}

gboolean hn_rw_can(const HnGraph *g, const HnOp *op, int64_t version)
{
    int64_t have = hn_rw_opset(g);
    return have >= version && have >= op->since[0] && (op->until == 0 || have <= op->until);
}

HnBudget *hn_rw_budget(const HnRewrite *r)
{
    return r->o->budget;
}

gboolean hn_rw_lowers(const HnRewrite *r)
{
    return r->o->lowering;
}

gboolean hn_rw_unrolls(const HnRewrite *r)
{
    return r->o->unroll;
}

gboolean hn_rw_trains(const HnRewrite *r)
{
    return r->o->trains;
}

gboolean hn_rw_runs(const HnRewrite *r, const HnDraft *d)
{
    return r->o->runs == NULL || r->o->runs(d, r->o->data);
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

/* The first output that is named; a node that makes nothing has its operator. */
static const char *site_of(const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            return ((const HnValue *)n->out->pdata[k])->name;
    return n->op_type;
}

static HnSite *site_new(const HnRewrite *r, const char *op, const char *site)
{
    HnSite *s = g_new0(HnSite, 1);
    s->pass = r->pass;
    s->op = g_strdup(op);
    s->site = g_strdup(site);
    return s;
}

gboolean hn_rw_miss(HnRewrite *r, const HnNode *n, const char *format, ...)
{
    if (!r->o->explain)
        return FALSE;
    va_list args;
    va_start(args, format);
    g_autofree char *why = g_strdup_vprintf(format, args);
    va_end(args);
    char *key = g_strdup_printf("%s\t%s\t%s", r->pass->name, site_of(n), why);
    if (g_hash_table_add(r->misses, key)) {
        HnSite *s = site_new(r, n->op_type, site_of(n));
        s->why = g_steal_pointer(&why);
        g_ptr_array_add(r->log->missed, s);
    }
    return FALSE;
}

static gboolean go(HnRewrite *r, const char *op, const char *site)
{
    if (r->error != NULL || r->full)
        return FALSE;
    if (r->o->banned != NULL) {
        g_autofree char *key = hn_site_key(r->pass, site);
        if (g_hash_table_contains(r->o->banned, key))
            return FALSE;
    }
    if (r->o->most > 0 && r->log->made->len >= r->o->most) {
        r->full = TRUE;
        return FALSE;
    }
    hn_rw_weigh(r);
    g_ptr_array_add(r->log->made, site_new(r, op, site));
    r->changed = TRUE;
    return TRUE;
}

gboolean hn_rw_go(HnRewrite *r, const HnNode *n)
{
    return go(r, n->op_type, site_of(n));
}

gboolean hn_rw_go_graph(HnRewrite *r, const HnGraph *g, const HnValue *site)
{
    return go(r, "", site != NULL ? site->name : g->name != NULL ? g->name : "");
}

/* --- what it weighs ----------------------------------------------------------------------------------------------- */

#define NODE_BYTES 40   /* of a node without attributes, its names included */
#define LEAN_BYTES 1024 /* that any node may add where the file is to stay short */

static gint64 sparse_bytes(const HnSparse *s)
{
    return s != NULL ? (gint64)s->values->bytes + (gint64)s->indices->bytes : 0;
}

static gint64 weight_bytes(const HnValue *v)
{
    return v->weight != NULL ? (gint64)v->weight->bytes : sparse_bytes(v->sparse);
}

static gint64 graph_bytes(const HnGraph *g)
{
    gint64 bytes = 0;
    for (guint i = 0; i < g->weights->len; i++)
        bytes += weight_bytes(g->weights->pdata[i]);
    for (guint i = 0; i < g->nodes->len; i++)
        bytes += hn_rw_node_bytes(g->nodes->pdata[i]);
    return bytes;
}

gint64 hn_rw_node_bytes(const HnNode *n)
{
    gint64 bytes = NODE_BYTES;
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_TENSOR && a->t != NULL)
            bytes += (gint64)a->t->bytes;
        else if (a->kind == HN_ATTR_SPARSE)
            bytes += sparse_bytes(a->sparse);
        else if (a->kind == HN_ATTR_GRAPH && a->g != NULL)
            bytes += graph_bytes(a->g);
    }
    return bytes;
}

gboolean hn_rw_may_store(HnRewrite *r, const HnNode *n, gsize bytes)
{
    if (!r->o->lean)
        return TRUE;
    gint64 more = (gint64)bytes - hn_rw_node_bytes(n);
    for (guint i = 0; i < n->in->len; i++)
        more -= n->in->pdata[i] != NULL ? weight_bytes(n->in->pdata[i]) : 0;
    if (more <= LEAN_BYTES)
        return TRUE;
    char *key = g_strdup_printf("%s\t%s", r->pass->name, site_of(n));
    if (g_hash_table_add(r->misses, key)) {
        HnSite *s = site_new(r, n->op_type, site_of(n));
        s->bytes = more;
        g_ptr_array_add(r->log->spared, s);
    }
    return FALSE;
}

void hn_rw_weigh(HnRewrite *r)
{
    const guint n = r->log->made->len;
    if (n > 0)
        ((HnSite *)r->log->made->pdata[n - 1])->bytes += r->bytes - r->begun;
    r->begun = r->bytes;
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

void hn_rw_fail(HnRewrite *r, HnError code, const char *format, ...)
{
    if (r->error != NULL)
        return;
    va_list args;
    va_start(args, format);
    r->error = g_error_new_valist(HN_ERROR, (int)code, format, args);
    va_end(args);
}

/* v lost a use. */
static void loosen(HnRewrite *r, HnValue *v)
{
    if (v == NULL)
        return;
    if (v->producer != NULL)
        g_ptr_array_add(r->loose, v->producer);
    else if (hn_value_is_weight(v))
        g_ptr_array_add(r->unused, v);
}

static void note_weight(const HnBuild *b, HnValue *v, HnTensor *t)
{
    HnRewrite *r = b->data;
    hn_types_set_value(r->types, v, t);
    r->bytes += (gint64)t->bytes;
    g_ptr_array_add(r->unused, v); /* looked at when the pass returns */
}

HnValue *hn_rw_weight(HnRewrite *r, HnGraph *g, const char *stem, HnTensor *t)
{
    const HnBuild b = { .graph = g, .on_constant = note_weight, .data = r };
    if (t == NULL)
        hn_rw_fail(r, HN_ERROR_BUDGET, "no memory for a weight called after '%s'", stem);
    return hn_build_constant(&b, stem, t != NULL ? t : hn_tensor_scalar_f32(0));
}

HnValue *hn_rw_weight_ints(HnRewrite *r, HnGraph *g, const char *stem, const int64_t *x, int n)
{
    return hn_rw_weight(r, g, stem, hn_tensor_ints(x, n));
}

static HnNode *add_node(HnRewrite *r, HnNode *before, const char *op, const char *domain, HnValue *const *in, int n_in)
{
    const HnBuild b = { .graph = before->graph, .before = before };
    HnNode *n = hn_build_node(&b, op, domain, n_in, in, 0);
    g_hash_table_add(r->live, n);
    g_ptr_array_add(r->loose, n);
    r->bytes += NODE_BYTES;
    return n;
}

HnNode *hn_rw_add(HnRewrite *r, HnNode *before, const char *op, HnValue *const *in, int n_in)
{
    return add_node(r, before, op, NULL, in, n_in);
}

HnNode *hn_rw_add_internal(HnRewrite *r, HnNode *before, const HnOp *op, HnValue *const *in, int n_in)
{
    return add_node(r, before, op->name, op->domain, in, n_in);
}

static gboolean bound(HnRewrite *r, HnNode *n)
{
    GError *failure = NULL;
    if (r->error != NULL)
        return FALSE;
    n->op = NULL; /* parameters may depend on which inputs there are */
    g_clear_pointer(&n->params, g_free);
    if (hn_op_bind(n, &failure))
        return TRUE;
    r->error = failure;
    return FALSE;
}

static gboolean contradict(const HnType *a, const HnType *b)
{
    if (!hn_type_is_tensor(a) || !hn_type_is_tensor(b))
        return FALSE;
    if (a->dtype != HN_UNDEFINED && b->dtype != HN_UNDEFINED && a->dtype != b->dtype)
        return TRUE;
    if (a->rank < 0 || b->rank < 0)
        return FALSE;
    gboolean differ = a->rank != b->rank;
    for (int i = 0; i < a->rank && !differ; i++)
        differ = hn_dim_differ(a->dims[i], b->dims[i]);
    return differ;
}

/* Dimension by dimension what is known more precisely: to work on with, not to be written. */
static HnType *sharper(HnType *inferred, HnType *before)
{
    if (!hn_type_is_tensor(inferred) || !hn_type_is_tensor(before))
        return inferred != NULL ? hn_type_ref(inferred) : before != NULL ? hn_type_ref(before) : NULL;
    HnDtype dtype = inferred->dtype != HN_UNDEFINED ? inferred->dtype : before->dtype;
    if (inferred->rank < 0 || before->rank < 0)
        return hn_type_tensor(dtype, MAX(inferred->rank, before->rank),
                              inferred->rank < 0 ? before->dims : inferred->dims);
    g_autofree HnDim *dims = g_new(HnDim, (gsize)inferred->rank + 1);
    for (int i = 0; i < inferred->rank; i++)
        dims[i] = before->dims[i].known || before->dims[i].sym != NULL ? before->dims[i] : inferred->dims[i];
    return hn_type_tensor(dtype, inferred->rank, dims);
}

/* Infers n, whose outputs stood for other nodes' results before: what was known of those must not be contradicted. */
static void infer(HnRewrite *r, HnNode *n)
{
    GError *failure = NULL;
    if (!bound(r, n))
        return;
    g_autofree HnType **before = g_new0(HnType *, n->out->len + 1u);
    g_autofree HnTensor **value = g_new0(HnTensor *, n->out->len + 1u);
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = n->out->pdata[k];
        HnType *t = v != NULL ? hn_types_get(r->types, v) : NULL;
        HnTensor *e = v != NULL ? hn_types_value(r->types, v) : NULL;
        before[k] = t != NULL ? hn_type_ref(t) : NULL;
        value[k] = e != NULL ? hn_tensor_ref(e) : NULL;
    }
    gboolean ok = hn_types_node(r->types, n, 0, &failure);
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = n->out->pdata[k];
        HnType *now = v != NULL ? hn_types_get(r->types, v) : NULL;
        if (ok && contradict(now, before[k])) {
            g_autofree char *a = hn_type_describe(now), *b = hn_type_describe(before[k]);
            hn_rw_fail(r, HN_ERROR_GRAPH, "'%s' would become %s, but is %s", v->name, a, b);
        } else if (ok && v != NULL && value[k] != NULL) {
            hn_types_set_value(r->types, v, value[k]);
        } else if (ok && v != NULL && before[k] != NULL) {
            g_autoptr(HnType) t = sharper(now, before[k]);
            if (!hn_type_equal(t, now))
                hn_types_set(r->types, v, t);
        }
        hn_type_unref(before[k]);
        hn_tensor_unref(value[k]);
    }
    if (!ok && r->error == NULL)
        r->error = failure;
    else
        g_clear_error(&failure);
}

HnValue *hn_rw_out(HnRewrite *r, HnNode *n, const char *stem)
{
    HnValue *v = hn_graph_new_value(n->graph, stem);
    hn_node_add_out(n, v);
    infer(r, n);
    return v;
}

gboolean hn_rw_take_value(HnRewrite *r, HnNode *n, HnValue *v)
{
    loosen(r, v);
    hn_node_set_out(n, 0, v);
    infer(r, n);
    return TRUE;
}

gboolean hn_rw_take(HnRewrite *r, HnNode *n, HnNode *old)
{
    if (n->name == NULL && old->name != NULL)
        n->name = g_strdup(old->name);
    return hn_rw_take_value(r, n, hn_node_out(old, 0));
}

void hn_rw_set_in(HnRewrite *r, HnNode *n, int i, HnValue *v)
{
    HnValue *old = hn_node_in(n, i);
    if (old == v)
        return;
    hn_node_set_in(n, i, v);
    loosen(r, old);
    while (n->in->len > 0 && n->in->pdata[n->in->len - 1] == NULL)
        hn_ptrs_set_len(n->in, n->in->len - 1);
}

void hn_rw_cut_in(HnRewrite *r, HnNode *n, int n_in)
{
    while ((int)n->in->len > n_in) {
        int i = (int)n->in->len - 1;
        HnValue *old = hn_node_in(n, i);
        hn_node_set_in(n, i, NULL);
        hn_ptrs_set_len(n->in, (guint)i);
        loosen(r, old);
    }
}

gboolean hn_rw_done(HnRewrite *r, HnNode *n)
{
    infer(r, n);
    return TRUE;
}

void hn_rw_drop_out(HnRewrite *r, HnNode *n, int k)
{
    HnValue *v = hn_node_out(n, k);
    (void)r;
    if (v == NULL || hn_value_is_read(v))
        return;
    hn_node_set_out(n, k, NULL);
    while (n->out->len > 0 && n->out->pdata[n->out->len - 1] == NULL)
        hn_ptrs_set_len(n->out, n->out->len - 1);
    hn_types_forget(r->types, v);
    hn_graph_drop_value(v);
}

static gboolean can_be_output(const HnGraph *g, const HnValue *v)
{
    return v->graph == g && v->producer != NULL && !v->is_input && !v->is_output;
}

gboolean hn_rw_bypass(HnRewrite *r, const HnNode *n, HnValue *v, HnValue *to)
{
    HnGraph *g = v->graph;
    if (v == to || to == NULL || !hn_rw_visible(g, to) ||
        contradict(hn_types_get(r->types, v), hn_types_get(r->types, to)))
        return FALSE;
    if (v->is_output && !can_be_output(g, to))
        return hn_rw_miss(r, n, "'%s' is an output, which '%s' cannot become", v->name, to->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_replace(r, v, to);
    return TRUE;
}

void hn_rw_replace(HnRewrite *r, HnValue *v, HnValue *to)
{
    const gboolean output = v->is_output;
    g_autoptr(HnType) t = sharper(hn_types_get(r->types, to), hn_types_get(r->types, v));
    loosen(r, v);
    hn_value_replace(v, to);
    if (output) {
        hn_value_swap_names(v, to); /* the output's name and declaration stay */
        if (v->type != NULL)
            hn_value_set_type(to, v->type);
        if (to->doc == NULL)
            to->doc = g_steal_pointer(&v->doc);
        if (to->metadata == NULL)
            to->metadata = g_steal_pointer(&v->metadata);
        if (to->unknown == NULL)
            to->unknown = g_steal_pointer(&v->unknown);
    }
    HnTensor *e = hn_types_value(r->types, to);
    if (e == NULL && t != NULL && !hn_type_equal(t, hn_types_get(r->types, to)))
        hn_types_set(r->types, to, t);
}

void hn_rw_make_constant(HnRewrite *r, HnNode *n, int k, HnTensor *t)
{
    HnValue *v = hn_node_out(n, k);
    loosen(r, v);
    if (t == NULL) {
        hn_rw_fail(r, HN_ERROR_BUDGET, "no memory for '%s'", v->name);
        return;
    }
    if (v->is_output) {
        HnNode *c = hn_rw_add(r, n, "Constant", NULL, 0);
        HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
        a->has_kind = TRUE;
        a->t = hn_tensor_ref(t);
        hn_node_set_attr(c, a);
        hn_node_set_out(c, 0, v);
        infer(r, c);
    } else {
        hn_node_set_out(n, k, NULL);
        hn_graph_add_weight(v->graph, v, t);
        hn_types_set_value(r->types, v, t);
    }
    r->bytes += (gint64)t->bytes;
    hn_tensor_unref(t);
}

/* --- sweeping ----------------------------------------------------------------------------------------------------- */

static void forget_inside(HnNode *n, gpointer data)
{
    g_hash_table_remove(((HnRewrite *)data)->live, n);
}

static gboolean is_below(const HnValue *v, const HnNode *n)
{
    const HnGraph *g = v->graph;
    while (g != NULL && g->holder != n)
        g = g->outer;
    return g != NULL;
}

/* n goes, with the graphs inside it: nobody may come back to what is in them. */
static void forget_graphs(HnRewrite *r, const HnNode *n)
{
    gboolean any = FALSE;
    for (guint i = 0; i < n->attrs->len && !any; i++)
        any = ((const HnAttr *)n->attrs->pdata[i])->kind == HN_ATTR_GRAPH ||
              ((const HnAttr *)n->attrs->pdata[i])->kind == HN_ATTR_GRAPHS;
    for (guint i = any ? r->unused->len : 0; i-- > 0;)
        if (is_below(r->unused->pdata[i], n))
            g_ptr_array_remove_index_fast(r->unused, i);
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH && a->g != NULL)
            hn_graph_foreach_node(a->g, forget_inside, r);
        for (int64_t q = 0; a->kind == HN_ATTR_GRAPHS && q < a->n; q++)
            if (a->graphs[q] != NULL)
                hn_graph_foreach_node(a->graphs[q], forget_inside, r);
    }
}

static void remove_node(HnRewrite *r, HnNode *n)
{
    g_autoptr(GPtrArray) captured = hn_node_captures(n);
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL)
            g_ptr_array_add(captured, n->in->pdata[i]);
    forget_graphs(r, n);
    r->bytes -= hn_rw_node_bytes(n);
    g_hash_table_remove(r->live, n);
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            hn_types_forget(r->types, n->out->pdata[k]);
    if (r->burying)
        hn_graph_bury_node(n->graph, n);
    else
        hn_graph_remove_node(n->graph, n);
    for (guint i = 0; i < captured->len; i++)
        loosen(r, captured->pdata[i]);
}

void hn_rw_sweep(HnRewrite *r)
{
    while (r->loose->len > 0) {
        HnNode *n = g_ptr_array_steal_index(r->loose, r->loose->len - 1);
        if (g_hash_table_contains(r->live, n) && !hn_node_is_read(n))
            remove_node(r, n);
    }
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < r->unused->len; i++) {
        HnValue *v = r->unused->pdata[i];
        if (!g_hash_table_add(seen, v) || hn_value_is_read(v) || v->is_input || !hn_value_is_weight(v))
            continue;
        hn_types_forget(r->types, v);
        r->bytes -= weight_bytes(v);
        hn_graph_drop_value(v);
    }
    g_ptr_array_set_size(r->unused, 0);
}

static void add_loose(HnNode *n, gpointer data)
{
    g_ptr_array_add(((HnRewrite *)data)->loose, n);
}

static void weights_below(HnRewrite *r, HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++)
        g_ptr_array_add(r->unused, g->weights->pdata[i]);
    for (guint i = 0; i < g->inner->len; i++)
        weights_below(r, g->inner->pdata[i]);
}

gboolean hn_rw_sweep_all(HnRewrite *r, HnGraph *g)
{
    guint before = g_hash_table_size(r->live), unused = 0;
    hn_graph_foreach_node(g, add_loose, r);
    hn_rw_sweep(r);
    weights_below(r, g);
    for (guint i = 0; i < r->unused->len; i++) {
        const HnValue *v = r->unused->pdata[i];
        unused += !hn_value_is_read(v) && !v->is_input;
    }
    hn_rw_sweep(r);
    return g_hash_table_size(r->live) != before || unused > 0;
}
