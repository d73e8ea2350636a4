#include "pass/lib/channel_removal.h"

#include <string.h>

#include "base/error.h"
#include "ir/build.h"
#include "ir/copy.h"
#include "op/linear.h"
#include "op/narrow.h"
#include "op/ops.h"
#include "pass/lib/channel_place.h"
#include "pass/lib/forget_types.h"

typedef struct {
    const HnChannels *c;
    const guint8 *gone; /* by class */
    HnModel *m;
    GHashTable *kept; /* HnValue * of m -> HnKept * */
    GHashTable *cut;  /* HnValue *, weights of m -> Cut * */
    HnModel *anew;    /* c's model with types as inference has them, not as the file does; NULL: nobody asked yet */
    const HnNode *failed;
} Removal;

/* A weight that has lost elements. */
typedef struct {
    HnTensor *whole;
    guint members;   /* that read it */
    GPtrArray *keys; /* GBytes *: what stays along both axes ... */
    GPtrArray *made; /* ... HnValue *: where that is */
} Cut;

static void cut_free(gpointer data)
{
    Cut *cut = data;
    hn_tensor_unref(cut->whole);
    g_ptr_array_unref(cut->keys);
    g_ptr_array_unref(cut->made);
    g_free(cut);
}

static void kept_free(gpointer data)
{
    HnKept *k = data;
    g_free((gpointer)k->stays);
    g_free(k);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* Which of n places stay; NULL: all. */
static guint8 *staying(const Removal *r, const int *at, int64_t n, int64_t *left)
{
    guint8 *stays = g_malloc((gsize)MAX(n, 1));
    *left = 0;
    for (int64_t i = 0; i < n; i++)
        *left += stays[i] = !r->gone[hn_channels_class(r->c, at[i])];
    if (*left == n)
        g_clear_pointer(&stays, g_free);
    return stays;
}

static gboolean fail(Removal *r, const HnNode *n, GError **error)
{
    r->failed = n;
    g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "'%s' (%s): its parameters cannot follow when channels go",
                hn_node_label(n), n->op_type);
    return FALSE;
}

static gboolean keep_value(Removal *r, const HnValue *v, GError **error)
{
    const HnChannelPlace *p = hn_channels_place(r->c, v);
    int64_t left;
    guint8 *stays = p != NULL && p->at != NULL ? staying(r, p->at, p->n, &left) : NULL;
    if (stays == NULL)
        return TRUE;
    HnValue *own = hn_graph_find(r->m->graph, v->name);
    HnKept *k = g_new(HnKept, 1);
    *k = (HnKept){ p->axis, p->n, left, stays };
    g_hash_table_insert(r->kept, own, k);
    return left > 0 || fail(r, own->producer, error);
}

static gboolean keep_values(Removal *r, GError **error)
{
    const GPtrArray *nodes = r->c->model->graph->nodes;
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++)
            if (n->out->pdata[k] != NULL && !keep_value(r, n->out->pdata[k], error))
                return FALSE;
    }
    return TRUE;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static HnNode *node_of(const Removal *r, const HnChannelMember *f)
{
    return hn_graph_find(r->m->graph, f->node)->producer;
}

/* What is left of t along an axis; takes t. NULL: error. */
static HnTensor *cut_axis(HnTensor *t, int axis, const guint8 *stays, int64_t left, HnBudget *budget, GError **error)
{
    g_autoptr(HnTensor) whole = t;
    int64_t dims[HN_MAX_RANK], outer = 1, n = t->dims[axis];
    memcpy(dims, t->dims, (gsize)t->ndim * sizeof *dims);
    dims[axis] = left;
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    HnTensor *y = hn_tensor_new_uninit(t->dtype, t->ndim, dims, budget, error);
    if (y == NULL || outer * n == 0)
        return y;
    const gsize run = t->bytes / (gsize)(outer * n);
    const char *from = whole->data;
    char *to = y->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++, from += run)
            if (stays[i]) {
                memcpy(to, from, run);
                to += run;
            }
    return y;
}

/* What stays of f's weight along its axes. */
typedef struct {
    guint8 *out, *in; /* NULL: all */
    int64_t n_out, n_in;
} Stays;

static GBytes *key_of(const HnChannelMember *f, const Stays *s)
{
    GByteArray *all = g_byte_array_new();
    const int axes[] = { s->out != NULL ? f->axis : -1, s->in != NULL ? f->in_axis : -1 };
    g_byte_array_append(all, (const guint8 *)axes, sizeof axes);
    if (s->out != NULL)
        g_byte_array_append(all, s->out, (guint)f->n);
    if (s->in != NULL)
        g_byte_array_append(all, s->in, (guint)(f->groups * f->in_n));
    return g_byte_array_free_to_bytes(all);
}

static HnTensor *cut_weight(const Removal *r, const HnChannelMember *f, const Stays *s, HnTensor *whole, GError **error)
{
    HnTensor *t = hn_tensor_ref(whole);
    if (s->out != NULL)
        t = cut_axis(t, f->axis, s->out, s->n_out, r->c->budget, error);
    if (t != NULL && s->in != NULL)
        t = cut_axis(t, f->in_axis, s->in, s->n_in, r->c->budget, error);
    return t;
}

/* The weight itself gets other elements where all that read it want the same, else a reader has its own. */
static HnValue *cut_value(const Removal *r, const HnChannelMember *f, const Stays *s, HnValue *w, GError **error)
{
    Cut *cut = g_hash_table_lookup(r->cut, w);
    g_autoptr(GBytes) key = key_of(f, s);
    for (guint i = 0; i < cut->keys->len; i++)
        if (g_bytes_equal(cut->keys->pdata[i], key))
            return cut->made->pdata[i];
    g_autoptr(HnTensor) t = cut_weight(r, f, s, cut->whole, error);
    if (t == NULL)
        return NULL;
    const gboolean own = cut->keys->len > 0 || cut->members != w->users->len || w->is_output > 0;
    HnValue *v = own ? hn_graph_new_value(w->graph, w->name) : w;
    hn_graph_add_weight(w->graph, v, t);
    g_ptr_array_add(cut->keys, g_steal_pointer(&key));
    g_ptr_array_add(cut->made, v);
    return v;
}

static void count_members(Removal *r)
{
    for (guint i = 0; i < r->c->members->len; i++) {
        const HnChannelMember *f = r->c->members->pdata[i];
        HnValue *w = hn_node_in(node_of(r, f), f->input);
        Cut *cut = g_hash_table_lookup(r->cut, w);
        if (cut == NULL) {
            cut = g_new0(Cut, 1);
            cut->whole = hn_tensor_ref(w->weight);
            cut->keys = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
            cut->made = g_ptr_array_new();
            g_hash_table_insert(r->cut, w, cut);
        }
        cut->members++;
    }
}

static gboolean cut_member(Removal *r, const HnChannelMember *f, GError **error)
{
    HnNode *n = node_of(r, f);
    HnValue *w = hn_node_in(n, f->input);
    Stays s = { 0 };
    if (f->axis >= 0)
        s.out = staying(r, f->out, f->n, &s.n_out);
    if (f->in_axis >= 0)
        s.in = staying(r, f->in, f->groups * f->in_n, &s.n_in);
    HnValue *v = cut_value(r, f, &s, w, error);
    if (v != NULL && v != w)
        hn_node_set_in(n, f->input, v);
    g_free(s.out);
    g_free(s.in);
    return v != NULL;
}

/* Weights that nobody reads any more. */
static void drop_weights(const Removal *r)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, r->cut);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        HnValue *w = key;
        if (!hn_value_is_read(w))
            hn_graph_drop_value(w);
    }
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static const HnKept *kept_of(gconstpointer data, const HnValue *v)
{
    return g_hash_table_lookup(((const Removal *)data)->kept, v);
}

static gboolean narrow_node(Removal *r, HnNode *n, GError **error)
{
    gboolean touched = FALSE;
    for (guint i = 0; i < n->in->len; i++)
        touched = touched || kept_of(r, n->in->pdata[i]) != NULL;
    for (guint k = 0; k < n->out->len; k++)
        touched = touched || kept_of(r, n->out->pdata[k]) != NULL;
    if (!touched || n->op->narrow == NULL)
        return TRUE;
    g_autofree void *params = g_memdup2(n->params, n->op->params_size); /* the node's go when an attribute is edited */
    const HnNarrow x = { .node = n, .params = params, .kept = kept_of, .data = r };
    return n->op->narrow(&x) || fail(r, n, error);
}

/* --- types -------------------------------------------------------------------------------------------------------- */

/* What v of m was, but for what has gone, is what it is now. */
static gboolean is_as(const Removal *r, const HnValue *v, const HnType *was)
{
    const HnKept *k = kept_of(r, v);
    if (!hn_type_is_tensor(was) || was->rank < 0)
        return TRUE;
    if (!hn_type_is_tensor(v->type) || v->type->rank != was->rank)
        return FALSE;
    for (int i = 0; i < was->rank; i++) {
        const int64_t want = k != NULL && k->axis == i ? k->left : was->dims[i].n;
        if (was->dims[i].known && !hn_dim_is(v->type->dims[i], want))
            return FALSE;
    }
    return TRUE;
}

/* So it is; where a file says more of values than can be inferred of it, that cannot be expected of what is left. */
static gboolean follows(Removal *r, const HnValue *v, const HnType *was)
{
    if (is_as(r, v, was))
        return TRUE;
    if (r->anew == NULL) {
        r->anew = hn_model_copy(r->c->model);
        hn_pass_forget_types(r->anew->graph);
        if (!hn_graph_infer(r->anew->graph, FALSE, NULL))
            return FALSE;
    }
    const HnValue *own = hn_graph_find(r->anew->graph, v->name);
    return own != NULL && is_as(r, v, own->type);
}

/* Bytes that become a layer's weights are as many as these. */
static gboolean is_constant(const HnNode *n)
{
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL && ((const HnValue *)n->in->pdata[i])->weight == NULL)
            return FALSE;
    return TRUE;
}

/* Types of all results, anew. */
static gboolean infer(Removal *r, GError **error)
{
    const GPtrArray *nodes = r->m->graph->nodes;
    g_autoptr(GHashTable) was = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            HnValue *v = n->out->pdata[k];
            if (v == NULL || v->type == NULL || v->is_output > 0)
                continue;
            g_hash_table_insert(was, v, hn_type_ref(v->type));
            hn_value_set_type(v, NULL);
        }
    }
    if (!hn_graph_infer(r->m->graph, FALSE, error))
        return FALSE;
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            const HnType *type = g_hash_table_lookup(was, n->out->pdata[k]);
            if (type != NULL && !is_constant(n) && !follows(r, n->out->pdata[k], type))
                return fail(r, n, error);
        }
    }
    return TRUE;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void removal_clear(Removal *r)
{
    g_clear_pointer(&r->kept, g_hash_table_unref);
    g_clear_pointer(&r->cut, g_hash_table_unref);
    g_clear_pointer(&r->anew, hn_model_free);
}

static gboolean removal_run(Removal *r, GError **error)
{
    const GPtrArray *members = r->c->members, *nodes = r->m->graph->nodes;
    r->kept = g_hash_table_new_full(NULL, NULL, NULL, kept_free);
    r->cut = g_hash_table_new_full(NULL, NULL, NULL, cut_free);
    for (guint i = 0; i < nodes->len; i++)
        if (!hn_op_bind(nodes->pdata[i], error))
            return FALSE;
    if (!keep_values(r, error))
        return FALSE;
    count_members(r);
    for (guint i = 0; i < members->len; i++)
        if (!cut_member(r, members->pdata[i], error))
            return FALSE;
    drop_weights(r);
    for (guint i = 0; i < nodes->len; i++)
        if (!narrow_node(r, nodes->pdata[i], error))
            return FALSE;
    return infer(r, error);
}

gboolean hn_channels_remove(const HnChannels *c, const guint8 *gone, HnModel *m, GError **error)
{
    Removal r = { .c = c, .gone = gone, .m = m };
    const gboolean ok = removal_run(&r, error);
    removal_clear(&r);
    return ok;
}

static int class_along(const HnChannels *c, const int *classes, const HnTensor *t, int axis, int64_t i)
{
    int64_t inner = 1;
    for (int k = axis + 1; k < t->ndim; k++)
        inner *= t->dims[k];
    return hn_channels_class(c, classes[i / inner % t->dims[axis]]);
}

/* Elements of t that are read from, or make, classes that go. */
static void zero(const HnChannels *c, const guint8 *gone, const HnChannelMember *f, gboolean makes, HnTensor *t)
{
    for (int64_t e = 0; e < t->n; e++)
        if ((f->in_axis >= 0 && gone[class_along(c, f->in, t, f->in_axis, e)]) ||
            (makes && f->axis >= 0 && gone[class_along(c, f->out, t, f->axis, e)]))
            hn_tensor_set_f64(t, e, 0);
}

/* A sum over channels reads all of them, and whatever made them need not make 0 of those that go: it gets 0. */
static gboolean zero_terms(const HnChannels *c, const guint8 *gone, const HnNode *n, HnModel *m, GError **error)
{
    const HnChannelPlace *p = hn_channels_place(c, hn_node_in(n, 0)), *q = hn_channels_place(c, hn_node_out(n, 0));
    const HnType *type = hn_channels_type(c, hn_node_in(n, 0));
    if (n->op != &hn_op_reducesum || p == NULL || p->at == NULL || type == NULL || (q != NULL && q->at != NULL))
        return TRUE;
    int64_t dims[HN_MAX_RANK] = { p->n };
    gboolean any = FALSE;
    for (int i = 1; i < type->rank - p->axis; i++)
        dims[i] = 1;
    g_autoptr(HnTensor) t = hn_tensor_new(type->dtype, type->rank - p->axis, dims, c->budget, error);
    for (int64_t i = 0; t != NULL && i < p->n; i++) {
        const gboolean goes = gone[hn_channels_class(c, p->at[i])];
        hn_tensor_set_f64(t, i, goes ? 0 : 1);
        any = any || goes;
    }
    if (t == NULL || !any)
        return t != NULL;
    HnNode *own = hn_graph_find(m->graph, hn_node_out(n, 0)->name)->producer;
    const HnBuild b = { .graph = m->graph, .before = own };
    HnValue *mask = hn_build_constant(&b, "stays", g_steal_pointer(&t));
    hn_node_set_in(own, 0, hn_build_op2(&b, "Mul", hn_node_in(own, 0), mask));
    return TRUE;
}

gboolean hn_channels_mask(const HnChannels *c, const guint8 *gone, HnModel *m, GError **error)
{
    const GPtrArray *nodes = c->model->graph->nodes;
    for (guint i = 0; i < nodes->len; i++)
        if (!zero_terms(c, gone, nodes->pdata[i], m, error))
            return FALSE;
    for (guint i = 0; i < c->members->len; i++) {
        const HnChannelMember *f = c->members->pdata[i];
        HnNode *n = hn_graph_find(m->graph, f->node)->producer;
        HnValue *w = hn_node_in(n, f->input);
        const gboolean makes = hn_op_bind(n, NULL) && hn_op_is_linear(n->op);
        if (f->in_axis < 0 && !makes)
            continue;
        g_autoptr(HnTensor) t = hn_tensor_copy(w->weight, c->budget, error);
        if (t == NULL)
            return FALSE;
        zero(c, gone, f, makes, t);
        HnValue *own = w->users->len == 1 && !w->is_output ? w : hn_graph_new_value(w->graph, w->name);
        hn_graph_add_weight(w->graph, own, t);
        hn_node_set_in(n, f->input, own);
    }
    return TRUE;
}

/* --- what can go -------------------------------------------------------------------------------------------------- */

/* Every second class of each group, or as many as leave one. */
static guint8 *some_of_each(const HnChannels *c)
{
    guint8 *gone = g_new0(guint8, c->parent->len + 1);
    g_autoptr(GPtrArray) groups = hn_channels_groups(c);
    for (guint i = 0; i < groups->len; i++) {
        const HnChannelGroup *g = groups->pdata[i];
        for (guint k = 1; g->locked == NULL && k < g->classes->len; k += 2)
            gone[g_array_index(g->classes, int, k)] = 1;
    }
    return gone;
}

/* All classes of what n, of a copy, reads and makes. FALSE: none of them was free. */
static gboolean lock_node(HnChannels *c, const HnNode *n)
{
    gboolean news = FALSE;
    HnNode *own = hn_graph_find(c->model->graph, hn_node_result(n)->name)->producer;
    g_autoptr(GPtrArray) all = hn_node_reads(own);
    for (guint k = 0; k < own->out->len; k++)
        g_ptr_array_add(all, own->out->pdata[k]);
    for (guint i = 0; i < all->len; i++) {
        const HnChannelPlace *p = hn_channels_place(c, all->pdata[i]);
        for (int64_t k = 0; p != NULL && p->at != NULL && k < p->n; k++)
            news = news || hn_channels_locked(c, p->at[k]) == NULL;
        hn_channels_lock_value(c, all->pdata[i], own, "its parameters cannot follow when channels go");
    }
    return news;
}

gboolean hn_channels_lock_fixed(HnChannels *c, GError **error)
{
    for (;;) {
        g_autofree guint8 *gone = some_of_each(c);
        g_autoptr(HnModel) m = hn_model_copy(c->model);
        Removal r = { .c = c, .gone = gone, .m = m };
        GError *failure = NULL;
        const gboolean ok = removal_run(&r, &failure);
        const gboolean locked = !ok && r.failed != NULL && lock_node(c, r.failed);
        removal_clear(&r);
        if (ok)
            return TRUE;
        if (!locked) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        g_clear_error(&failure);
    }
}
