/*
 * Inference: the calls that rules use, and the table that carries what is known from node to node.
 */
#include "op/infer.h"

#include <stdarg.h>
#include <string.h>

#include "base/checked.h"
#include "op/internal.h"

/* --- for rules --------------------------------------------------------------------------------------------------- */

void hn_infer_fail(HnInfer *x, HnError code, const char *format, ...)
{
    if (x->error != NULL)
        return;
    va_list args;
    va_start(args, format);
    x->error = g_error_new_valist(HN_ERROR, (int)code, format, args);
    va_end(args);
}

static const HnType *tensor_type(const HnInfer *x, int i)
{
    return i >= 0 && i < x->n_in && hn_type_is_tensor(x->in[i]) ? x->in[i] : NULL;
}

gboolean hn_infer_has(const HnInfer *x, int i)
{
    return hn_node_in(x->node, i) != NULL;
}

HnDtype hn_infer_dtype(const HnInfer *x, int i)
{
    const HnType *t = tensor_type(x, i);
    return t != NULL ? t->dtype : HN_UNDEFINED;
}

int hn_infer_rank(const HnInfer *x, int i)
{
    const HnType *t = tensor_type(x, i);
    return t != NULL ? t->rank : -1;
}

HnDim hn_infer_dim(const HnInfer *x, int i, int axis)
{
    const HnType *t = tensor_type(x, i);
    return t != NULL && axis >= 0 && axis < t->rank ? t->dims[axis] : hn_dim_unknown();
}

gboolean hn_infer_ints(const HnInfer *x, int i, int64_t *v, int max, int *n)
{
    if (i >= x->n_in)
        return FALSE;
    const HnTensor *t = x->value[i];
    const HnContents *c = x->contents[i];
    if (t != NULL && hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL) && t->n <= max) {
        for (int64_t k = 0; k < t->n; k++)
            v[k] = hn_tensor_get_i64(t, k);
        *n = (int)t->n;
        return TRUE;
    }
    if (c == NULL || c->n > max)
        return FALSE;
    for (int k = 0; k < c->n; k++) {
        if (!c->d[k].known)
            return FALSE;
        v[k] = c->d[k].n;
    }
    *n = c->n;
    return TRUE;
}

static void set_out(HnInfer *x, int k, HnType *t)
{
    if (k < x->n_out) {
        hn_type_unref(x->out[k]);
        x->out[k] = t;
    } else {
        hn_type_unref(t);
    }
}

void hn_infer_out(HnInfer *x, int k, HnDtype dtype, int rank, const HnDim *dims)
{
    if (x->error == NULL)
        set_out(x, k, hn_type_tensor(dtype, rank, dims));
}

void hn_infer_out_unknown(HnInfer *x, int k, HnDtype dtype)
{
    hn_infer_out(x, k, dtype, -1, NULL);
}

void hn_infer_out_shape_of(HnInfer *x, int k, HnDtype dtype, int i)
{
    const HnType *t = tensor_type(x, i);
    hn_infer_out(x, k, dtype, t != NULL ? t->rank : -1, t != NULL ? t->dims : NULL);
}

void hn_infer_out_like(HnInfer *x, int k, int i)
{
    hn_infer_out_shape_of(x, k, hn_infer_dtype(x, i), i);
}

HnContents *hn_contents_new(int rank, int n)
{
    HnContents *c = g_malloc0(sizeof *c + (gsize)n * sizeof(HnDim));
    c->rank = rank;
    c->n = n;
    for (int i = 0; i < n; i++)
        c->d[i] = hn_dim_unknown();
    return c;
}

void hn_infer_out_contents(HnInfer *x, int k, HnContents *c)
{
    if (x->error == NULL && k < x->n_out && c->n <= HN_CONTENTS_MAX) {
        g_free(x->out_contents[k]);
        x->out_contents[k] = c;
    } else {
        g_free(c);
    }
}

int hn_infer_axis(HnInfer *x, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank) {
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "axis %" PRId64 " is outside [-%d, %d)", axis, rank, rank);
        return 0;
    }
    return hn_axis(axis, rank);
}

int hn_infer_broadcast(HnInfer *x, int first, int last, HnDim *dims)
{
    int rank = 0;
    for (int i = first; i <= last; i++) {
        if (hn_infer_rank(x, i) < 0)
            return -1;
        rank = MAX(rank, hn_infer_rank(x, i));
    }
    if (rank > HN_MAX_RANK) {
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", rank, HN_MAX_RANK);
        return -1;
    }
    for (int a = 0; a < rank; a++) {
        HnDim d = hn_dim(1);
        for (int i = first; i <= last; i++) {
            int axis = a - (rank - hn_infer_rank(x, i));
            HnDim e = axis >= 0 ? hn_infer_dim(x, i, axis) : hn_dim(1);
            if (hn_dim_is(e, 1) || hn_dim_equal(d, e))
                continue;
            if (hn_dim_is(d, 1) || (!d.known && e.known && e.n != 1))
                d = e; /* an unknown size that broadcasts with 5 is 1 or 5: 5 comes out */
            else if (d.known && d.n != 1 && e.known)
                hn_infer_fail(x, HN_ERROR_SHAPE, "sizes %" PRId64 " and %" PRId64 " do not broadcast", d.n, e.n);
            else if (!d.known && !e.known)
                d = hn_dim_unknown();
        }
        dims[a] = d;
    }
    return rank;
}

void hn_infer_same(HnInfer *x)
{
    hn_infer_out_like(x, 0, 0);
}

void hn_infer_broadcast_all(HnInfer *x)
{
    HnDim dims[HN_MAX_RANK];
    int rank = hn_infer_broadcast(x, 0, x->n_in - 1, dims);
    gboolean same;
    char letter = hn_op_letter(x->node->op->out, 0, &same);
    HnDtype dtype = letter == 'b' ? HN_BOOL : HN_UNDEFINED;
    for (int i = 0; i < x->n_in && dtype == HN_UNDEFINED; i++)
        if (hn_op_letter(x->node->op->in, i, &same) == letter)
            dtype = hn_infer_dtype(x, i);
    hn_infer_out(x, 0, dtype, rank, dims);
}

/* --- the table --------------------------------------------------------------------------------------------------- */

typedef struct {
    HnType *type;
    HnTensor *value;
    HnContents *contents;
} Known;

/* Entries of values with neighbouring ids. Copies of a table share pages until one of them writes: a plan that goes on
 * behind another costs what it adds. */
#define PAGE 64

typedef struct {
    gint refs;
    Known known[PAGE];
} Page;

struct HnTypes {
    guint n;      /* there is a page for each HnValue.id below */
    Page **pages; /* NULL: nothing known of these values */
    HnBudget *budget;
    gboolean named; /* unknown dimensions are symbols */
};

static gsize pages_of(const HnTypes *t)
{
    return ((gsize)t->n + PAGE - 1) / PAGE;
}

HnTypes *hn_types_new(const HnModel *m)
{
    HnTypes *t = g_new0(HnTypes, 1);
    t->n = m->n_values;
    t->pages = g_new0(Page *, pages_of(t) + 1);
    return t;
}

void hn_types_set_budget(HnTypes *t, HnBudget *budget)
{
    if (budget != NULL)
        hn_budget_ref(budget);
    if (t->budget != NULL)
        hn_budget_unref(t->budget);
    t->budget = budget;
}

HnTypes *hn_types_copy(const HnTypes *t)
{
    HnTypes *c = g_new0(HnTypes, 1);
    c->n = t->n;
    c->named = t->named;
    hn_types_set_budget(c, t->budget);
    c->pages = g_new0(Page *, pages_of(t) + 1);
    for (gsize i = 0; i < pages_of(t); i++)
        if ((c->pages[i] = t->pages[i]) != NULL)
            g_atomic_int_inc(&c->pages[i]->refs);
    return c;
}

static void known_clear(Known *k)
{
    hn_type_unref(k->type);
    hn_tensor_unref(k->value);
    g_free(k->contents);
    *k = (Known){ 0 };
}

static void page_unref(Page *p)
{
    if (p == NULL || !g_atomic_int_dec_and_test(&p->refs))
        return;
    for (int i = 0; i < PAGE; i++)
        known_clear(&p->known[i]);
    g_free(p);
}

static Page *page_new(const Page *like)
{
    Page *p = g_new0(Page, 1);
    p->refs = 1;
    for (int i = 0; like != NULL && i < PAGE; i++) {
        const Known *k = &like->known[i];
        const HnContents *c = k->contents;
        p->known[i] =
            (Known){ k->type != NULL ? hn_type_ref(k->type) : NULL, k->value != NULL ? hn_tensor_ref(k->value) : NULL,
                     c != NULL ? g_memdup2(c, sizeof *c + (gsize)c->n * sizeof(HnDim)) : NULL };
    }
    return p;
}

void hn_types_free(HnTypes *t)
{
    if (t == NULL)
        return;
    for (gsize i = 0; i < pages_of(t); i++)
        page_unref(t->pages[i]);
    hn_types_set_budget(t, NULL);
    g_free(t->pages);
    g_free(t);
}

/* Values of which nothing was ever set are simply not known. */
static const Known *known(const HnTypes *t, const HnValue *v)
{
    static const Known nothing = { 0 };
    if (v == NULL)
        return NULL;
    const Page *p = v->id < t->n ? t->pages[v->id / PAGE] : NULL;
    return p != NULL ? &p->known[v->id % PAGE] : &nothing;
}

/* The same, to write to. */
static Known *to_know(HnTypes *t, const HnValue *v)
{
    if (v == NULL)
        return NULL;
    if (v->id >= t->n) { /* made after the table */
        gsize before = pages_of(t);
        t->n = MAX(v->id + 1, t->n + t->n / 2);
        t->pages = g_renew(Page *, t->pages, pages_of(t) + 1);
        memset(t->pages + before, 0, (pages_of(t) + 1 - before) * sizeof *t->pages);
    }
    Page **p = &t->pages[v->id / PAGE], *shared = *p;
    if (shared == NULL || g_atomic_int_get(&shared->refs) > 1) {
        *p = page_new(shared);
        page_unref(shared);
    }
    return &(*p)->known[v->id % PAGE];
}

HnType *hn_types_get(const HnTypes *t, const HnValue *v)
{
    const Known *k = known(t, v);
    return k != NULL ? k->type : NULL;
}

HnTensor *hn_types_value(const HnTypes *t, const HnValue *v)
{
    const Known *k = known(t, v);
    return k != NULL ? k->value : NULL;
}

const HnContents *hn_types_contents(const HnTypes *t, const HnValue *v)
{
    const Known *k = known(t, v);
    return k != NULL ? k->contents : NULL;
}

void hn_types_set(HnTypes *t, const HnValue *v, HnType *type)
{
    Known *k = to_know(t, v);
    if (k == NULL)
        return;
    type = type != NULL ? hn_type_ref(type) : NULL;
    known_clear(k);
    k->type = type;
}

/* Contents of a small integer tensor of rank 0 or 1; NULL for others. */
static HnContents *contents_of(const HnTensor *t)
{
    if (t->ndim > 1 || t->n > HN_CONTENTS_MAX || !hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL))
        return NULL;
    HnContents *c = hn_contents_new(t->ndim, (int)t->n);
    for (int i = 0; i < c->n; i++)
        c->d[i] = hn_dim(hn_tensor_get_i64(t, i));
    return c;
}

void hn_types_set_value(HnTypes *t, const HnValue *v, HnTensor *elements)
{
    Known *k = to_know(t, v);
    if (k == NULL)
        return;
    hn_tensor_ref(elements);
    known_clear(k);
    k->value = elements;
    k->type = hn_type_of(elements);
    k->contents = contents_of(elements);
}

void hn_types_name_unknown(HnTypes *t)
{
    t->named = TRUE;
}

/* Takes type, which belongs to v; dimensions that are not known are called after v's id: names come and go. Two
 * question marks: what a node makes may have no elements. */
static HnType *name_unknown(const HnTypes *t, const HnValue *v, HnType *type)
{
    gboolean any = FALSE;
    if (!t->named || !hn_type_is_tensor(type))
        return type;
    for (int i = 0; i < type->rank; i++)
        any = any || (!type->dims[i].known && type->dims[i].sym == NULL);
    if (!any)
        return type;
    g_autofree HnDim *dims = g_memdup2(type->dims, (gsize)type->rank * sizeof *dims);
    for (int i = 0; i < type->rank; i++) {
        g_autofree char *name = g_strdup_printf("%s%u.%d", v->producer != NULL ? "??" : "?", v->id, i);
        if (!dims[i].known && dims[i].sym == NULL)
            dims[i] = hn_dim_symbol(name);
    }
    HnType *named = hn_type_tensor(type->dtype, type->rank, dims);
    hn_type_unref(type);
    return named;
}

gboolean hn_types_enter(HnTypes *t, HnGraph *g, gboolean inputs, GError **error)
{
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (hn_types_value(t, v) != NULL)
            continue;
        if (v->weight != NULL) {
            hn_types_set_value(t, v, v->weight);
        } else if (v->sparse != NULL) {
            g_autoptr(HnTensor) dense = hn_sparse_dense(v->sparse, t->budget, error);
            if (dense == NULL) {
                g_prefix_error(error, "weight '%s': ", v->name);
                return FALSE;
            }
            hn_types_set_value(t, v, dense);
        }
    }
    for (guint i = 0; inputs && i < g->inputs->len; i++) {
        HnValue *v = g->inputs->pdata[i];
        if (v->type != NULL && hn_types_get(t, v) == NULL) {
            g_autoptr(HnType) type = name_unknown(t, v, hn_type_ref(v->type));
            hn_types_set(t, v, type);
        }
    }
    return TRUE;
}

/* Where both say something the more precise counts, dimension by dimension; they may well contradict in a bad file:
 * then what was inferred counts. */
static HnType *refine(HnType *inferred, HnType *declared)
{
    if (inferred == NULL || inferred->kind == HN_TYPE_NONE)
        return declared != NULL ? hn_type_ref(declared) : NULL;
    if (!hn_type_is_tensor(declared) || inferred->kind != HN_TYPE_TENSOR)
        return hn_type_ref(inferred);
    HnDtype dtype = inferred->dtype != HN_UNDEFINED ? inferred->dtype : declared->dtype;
    if (inferred->rank < 0)
        return hn_type_tensor(dtype, declared->rank, declared->dims);
    if (declared->rank != inferred->rank)
        return hn_type_tensor(dtype, inferred->rank, inferred->dims);
    g_autofree HnDim *dims = g_new(HnDim, (gsize)inferred->rank + 1);
    for (int i = 0; i < inferred->rank; i++)
        dims[i] = inferred->dims[i].known || (inferred->dims[i].sym != NULL && !declared->dims[i].known)
                      ? inferred->dims[i]
                      : declared->dims[i];
    return hn_type_tensor(dtype, inferred->rank, dims);
}

typedef struct {
    HnTypes *t;
    gsize fold_bytes;
    uint32_t whole; /* flags of operators that are not computed */
    gboolean strict, declared;
} Walk;

static gboolean walk_node(const Walk *w, HnNode *n, GError **error);

/* HnInfer.graph: the formal inputs get the given types, the rest of the table is the outer world. */
static gboolean infer_graph(HnInfer *x, HnGraph *g, int n_in, HnType *const *in, int n_out, HnType **out)
{
    const Walk *w = x->data;
    if (!hn_types_enter(w->t, g, FALSE, &x->error))
        return FALSE;
    for (guint i = 0; i < g->inputs->len; i++) {
        HnValue *v = g->inputs->pdata[i];
        HnType *type = refine((int)i < n_in ? in[i] : NULL, v->type);
        hn_types_set(w->t, v, type);
        hn_type_unref(type);
    }
    for (guint i = 0; i < g->nodes->len; i++)
        if (!walk_node(w, g->nodes->pdata[i], &x->error))
            return FALSE;
    for (int i = 0; i < n_out; i++) {
        HnType *type = (guint)i < g->outputs->len ? hn_types_get(w->t, g->outputs->pdata[i]) : NULL;
        out[i] = type != NULL ? hn_type_ref(type) : NULL;
    }
    return TRUE;
}

static void infer_init(HnInfer *x, const HnTypes *t, const HnNode *n)
{
    x->node = n;
    x->params = n->params;
    x->n_in = (int)n->in->len;
    x->n_out = (int)n->out->len;
    x->in = g_new0(HnType *, (gsize)x->n_in + 1);
    x->value = g_new0(HnTensor *, (gsize)x->n_in + 1);
    x->contents = g_new0(HnContents *, (gsize)x->n_in + 1);
    x->out = g_new0(HnType *, (gsize)x->n_out + 1);
    x->out_contents = g_new0(HnContents *, (gsize)x->n_out + 1);
    for (int i = 0; i < x->n_in; i++) {
        const Known *k = known(t, hn_node_in(n, i));
        if (k != NULL) {
            x->in[i] = k->type;
            x->value[i] = k->value;
            x->contents[i] = k->contents;
        }
    }
}

static void infer_clear(HnInfer *x)
{
    for (int k = 0; k < x->n_out; k++) {
        hn_type_unref(x->out[k]);
        g_free(x->out_contents[k]);
    }
    g_free(x->in);
    g_free(x->value);
    g_free(x->contents);
    g_free(x->out);
    g_free(x->out_contents);
}

/* Integers that are all known become elements: shape arithmetic is constant once the shapes are. */
static void settle_contents(HnTypes *t, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++) {
        const Known *o = known(t, hn_node_out(n, (int)k));
        if (o == NULL || o->value != NULL || o->contents == NULL || !hn_type_is_tensor(o->type))
            continue;
        const HnContents *c = o->contents;
        gboolean all = hn_dtype_in(o->type->dtype, HN_T_INTS | HN_T_BOOL);
        for (int i = 0; i < c->n && all; i++)
            all = c->d[i].known;
        int64_t len = c->n;
        g_autoptr(HnTensor) v = all ? hn_tensor_new(o->type->dtype, c->rank, &len, NULL, NULL) : NULL;
        for (int i = 0; v != NULL && i < c->n; i++)
            hn_tensor_set_i64(v, i, c->d[i].n);
        if (v != NULL)
            hn_types_set_value(t, hn_node_out(n, (int)k), v);
    }
}

/* Computes n where everything it reads is known. A node that fails here is left to fail when it runs. */
static void fold(HnTypes *t, HnNode *n, gsize limit)
{
    if ((n->op->flags & (HN_OP_RANDOM | HN_OP_CONTROL)) != 0 || n->op->ref == NULL)
        return;
    gsize bytes = 0;
    gboolean open = FALSE;
    for (guint k = 0; k < n->out->len; k++) {
        const Known *o = known(t, hn_node_out(n, (int)k));
        int64_t dims[HN_MAX_RANK], count;
        size_t size;
        if (o == NULL)
            continue;
        if (hn_type_is_list(o->type)) /* elements of the graph are tensors */
            return;
        open = open || o->value == NULL;
        if (o->type == NULL || !hn_type_is_fixed(o->type, dims))
            continue;
        if (!hn_dims_count(o->type->rank, dims, &count) ||
            (o->type->dtype == HN_STRING ? !hn_mul_size((size_t)count, sizeof(GBytes *), &size)
                                         : !hn_dtype_bytes(o->type->dtype, count, &size)) ||
            !hn_add_size(bytes, size, &bytes))
            return;
    }
    g_autoptr(GPtrArray) aligned = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n->in->len + 1);
    gsize in_bytes = 0;
    for (guint i = 0; i < n->in->len; i++) {
        HnValue *v = hn_node_in(n, (int)i);
        in[i] = hn_types_value(t, v);
        if (v != NULL && in[i] == NULL)
            return;
        in_bytes += in[i] != NULL ? in[i]->bytes : 0;
    }
    /* a node without inputs has its elements in the file: looking at them costs nothing */
    if (!open || (n->in->len > 0 && bytes > MAX(limit, 2 * in_bytes)))
        return;
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n->out->len + 1);
    HnEval e = {
        .node = n,
        .params = n->params,
        .n_in = (int)n->in->len,
        .n_out = (int)n->out->len,
        .in = in,
        .out = out,
        .budget = t->budget,
    };
    gboolean done = TRUE;
    for (guint i = 0; i < n->in->len && done; i++)
        if (in[i] != NULL && in[i]->misaligned && (done = (in[i] = hn_tensor_copy(in[i], t->budget, NULL)) != NULL))
            g_ptr_array_add(aligned, in[i]); /* tables on other threads may know the weight, which stays as it is */
    done = done && hn_op_eval(&e, NULL);
    for (guint k = 0; k < n->out->len; k++) {
        if (done && out[k] != NULL && hn_node_out(n, (int)k) != NULL && !hn_tensor_is_list(out[k]))
            hn_types_set_value(t, hn_node_out(n, (int)k), out[k]);
        hn_tensor_unref(out[k]);
    }
}

static void store(const Walk *w, HnNode *n, HnInfer *x)
{
    for (int k = 0; k < x->n_out; k++) {
        HnValue *v = hn_node_out(n, k);
        Known *o = to_know(w->t, v);
        if (o == NULL)
            continue;
        HnType *type = w->declared ? refine(x->out[k], v->type) : x->out[k] != NULL ? hn_type_ref(x->out[k]) : NULL;
        known_clear(o);
        o->type = name_unknown(w->t, v, type);
        o->contents = g_steal_pointer(&x->out_contents[k]);
    }
}

static gboolean walk_node(const Walk *w, HnNode *n, GError **error)
{
    HnInfer x = { .graph = infer_graph, .data = (gpointer)w };
    if (n->buried)
        return TRUE;
    if (!hn_budget_ask(w->t->budget, error))
        return FALSE;
    infer_init(&x, w->t, n);
    g_autoptr(GError) failure = NULL;
    gboolean ok = hn_op_bind(n, &failure);
    x.params = n->params;
    ok = ok && hn_op_infer(&x, &failure);
    if (ok || !w->strict)
        store(w, n, &x);
    infer_clear(&x);
    if (!ok && w->strict) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    if (!ok) { /* its attributes and inputs contradict each other: nobody shall trust them */
        n->op = NULL;
        g_clear_pointer(&n->params, g_free);
        return TRUE;
    }
    settle_contents(w->t, n);
    if (w->fold_bytes > 0 && (n->op->flags & w->whole) == 0)
        fold(w->t, n, w->fold_bytes);
    return TRUE;
}

gboolean hn_types_node(HnTypes *t, HnNode *n, gsize fold_bytes, GError **error)
{
    Walk w = { .t = t, .fold_bytes = fold_bytes, .strict = TRUE };
    return walk_node(&w, n, error);
}

static gboolean is_fixed(const HnTypes *t, const HnPtrs *values)
{
    int64_t dims[HN_MAX_RANK];
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        const HnType *type = v != NULL ? hn_types_get(t, v) : NULL;
        if (v != NULL && (type == NULL || !hn_type_is_fixed(type, dims)))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_types_cost(const HnTypes *t, const HnNode *n, HnCost *c)
{
    HnInfer x = { 0 };
    *c = (HnCost){ 0 };
    if (n->op == NULL || !is_fixed(t, n->in) || !is_fixed(t, n->out))
        return FALSE;
    infer_init(&x, t, n);
    for (int k = 0; k < x.n_out; k++) {
        HnType *type = hn_types_get(t, hn_node_out(n, k));
        x.out[k] = type != NULL ? hn_type_ref(type) : NULL;
    }
    hn_op_cost(&x, c);
    infer_clear(&x);
    return TRUE;
}

void hn_types_forget(HnTypes *t, const HnValue *v)
{
    if (v->id < t->n && t->pages[v->id / PAGE] != NULL)
        known_clear(to_know(t, v));
}

gboolean hn_types_graph(HnTypes *t, HnGraph *g, gsize fold_bytes, uint32_t whole, GError **error)
{
    Walk w = { .t = t, .fold_bytes = fold_bytes, .whole = whole, .declared = TRUE };
    if (!hn_types_enter(t, g, TRUE, error))
        return FALSE;
    for (guint i = 0; i < g->nodes->len; i++)
        if (!walk_node(&w, g->nodes->pdata[i], error))
            return FALSE;
    return TRUE;
}

/* --- a whole graph ----------------------------------------------------------------------------------------------- */

static void keep_types(HnNode *n, gpointer data)
{
    const HnTypes *t = data;
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = hn_node_out(n, (int)k);
        HnType *type = v != NULL ? hn_types_get(t, v) : NULL;
        if (type != NULL && type->kind != HN_TYPE_NONE)
            hn_value_set_type(v, type);
    }
}

gboolean hn_graph_infer(HnGraph *g, gboolean strict, GError **error)
{
    g_autoptr(HnTypes) t = hn_types_new(g->model);
    Walk w = { .t = t, .strict = strict, .declared = TRUE };
    if (!hn_types_enter(t, g, TRUE, error))
        return FALSE;
    for (guint i = 0; i < g->nodes->len; i++)
        if (!walk_node(&w, g->nodes->pdata[i], error))
            return FALSE;
    hn_graph_foreach_node(g, keep_types, t);
    return TRUE;
}
