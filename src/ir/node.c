#include "ir/graph.h"

#include <string.h>

#include "ir/private.h"

HnNode *hn_graph_add_node(HnGraph *g, int at, const char *op_type, const char *domain, const char *name)
{
    HnNode *n = g_new0(HnNode, 1);
    hn_model_count(g->model, HN_NODE_BYTES);
    n->graph = g;
    n->op_type = hn_model_text(g->model, op_type);
    n->domain = hn_model_text(g->model, domain);
    n->name = g_strdup(name);
    n->version = hn_graph_opset(g, domain);
    g_ptr_array_insert(g->nodes, at, n);
    return n;
}

void hn_node_add_in(HnNode *n, HnValue *v_or_null)
{
    hn_ptrs_add(n->in, v_or_null);
    if (v_or_null)
        hn_value_add_user(v_or_null, n);
}

static void produce(HnNode *n, int i, HnValue *v)
{
    if (v && !v->producer) { /* a second producer is what hn_graph_verify() reports */
        v->producer = n;
        v->producer_out = i;
    }
}

void hn_node_add_out(HnNode *n, HnValue *v_or_null)
{
    hn_ptrs_add(n->out, v_or_null);
    produce(n, (int)n->out->len - 1, v_or_null);
}

void hn_node_set_in(HnNode *n, int i, HnValue *v_or_null)
{
    if ((guint)i >= n->in->len)
        hn_ptrs_set_len(n->in, (guint)i + 1);
    HnValue *old = n->in->pdata[i];
    if (old == v_or_null)
        return;
    n->in->pdata[i] = v_or_null;
    if (old)
        hn_value_drop_user(old, n);
    if (v_or_null)
        hn_value_add_user(v_or_null, n);
}

/* The value no longer comes from output i of n. */
static void unproduce(HnNode *n, int i)
{
    HnValue *v = n->out->pdata[i];
    n->out->pdata[i] = NULL;
    if (v && v->producer == n && v->producer_out == i)
        v->producer = NULL;
}

void hn_node_set_out(HnNode *n, int i, HnValue *v_or_null)
{
    if ((guint)i >= n->out->len)
        hn_ptrs_set_len(n->out, (guint)i + 1);
    if (n->out->pdata[i] == v_or_null)
        return;
    unproduce(n, i);
    if (v_or_null && v_or_null->producer)
        unproduce(v_or_null->producer, v_or_null->producer_out);
    n->out->pdata[i] = v_or_null;
    produce(n, i, v_or_null);
}

void hn_node_remove_in(HnNode *n, int i)
{
    hn_node_set_in(n, i, NULL);
    hn_ptrs_remove(n->in, (guint)i);
}

void hn_node_remove_out(HnNode *n, int k)
{
    unproduce(n, k);
    hn_ptrs_remove(n->out, (guint)k);
    for (guint i = (guint)k; i < n->out->len; i++) {
        HnValue *v = n->out->pdata[i];
        if (v && v->producer == n && v->producer_out == (int)i + 1)
            v->producer_out = (int)i;
    }
}

static void unbind(HnNode *n)
{
    n->op = NULL;
    g_clear_pointer(&n->params, g_free);
}

void hn_node_release(HnNode *n)
{
    for (guint i = 0; i < n->attrs->len; i++)
        hn_attr_release(n->attrs->pdata[i]);
    hn_ptrs_clear(n->attrs);
    hn_ptrs_clear(n->in);
    hn_ptrs_clear(n->out);
    if (n->metadata)
        g_ptr_array_unref(n->metadata);
    if (n->unknown)
        g_bytes_unref(n->unknown);
    g_free(n->params);
    g_free(n->name);
    g_free(n->doc);
    hn_model_count(n->graph->model, -(gssize)HN_NODE_BYTES);
    g_free(n);
}

void hn_node_free(HnNode *n)
{
    if (!n)
        return;
    for (guint i = n->in->len; i-- > 0;)
        if (n->in->pdata[i])
            hn_value_drop_user(n->in->pdata[i], n);
    for (guint i = 0; i < n->out->len; i++)
        unproduce(n, (int)i);
    for (guint i = 0; i < n->attrs->len; i++)
        hn_attr_detach(n->attrs->pdata[i]);
    hn_node_release(n);
}

static gboolean is_named(const HnValue *v)
{
    return v->users->len > 0 || v->is_input || v->is_output || v->weight || v->sparse || v->producer;
}

void hn_graph_remove_node(HnGraph *g, HnNode *n)
{
    g_autoptr(GPtrArray) out = hn_ptrs_copy(n->out);
    hn_ptrs_clear(n->out);
    for (guint i = 0; i < out->len; i++) {
        HnValue *v = out->pdata[i];
        if (v && v->producer == n)
            v->producer = NULL;
    }
    hn_array_drop(g->nodes, n);
    hn_node_free(n);
    for (guint i = 0; i < out->len; i++) {
        HnValue *v = out->pdata[i];
        for (guint j = 0; v && j < i; j++) /* named twice by a broken node: freed once */
            if (out->pdata[j] == v)
                v = NULL;
        if (!v || is_named(v))
            continue;
        if (v->has_info)
            hn_array_drop(v->graph->infos, v);
        g_hash_table_remove(v->graph->values, v->name);
    }
}

const char *hn_node_label(const HnNode *n)
{
    if (n->name && *n->name)
        return n->name;
    for (guint i = 0; i < n->out->len; i++)
        if (n->out->pdata[i])
            return ((const HnValue *)n->out->pdata[i])->name;
    return n->op_type ? n->op_type : "?";
}

/* --- attributes of nodes ----------------------------------------------------------------------------------------- */

const HnAttr *hn_node_attr(const HnNode *n, const char *name)
{
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (g_strcmp0(a->name, name) == 0)
            return a;
    }
    return NULL;
}

/* Makes n the holder of g; outputs of g that are values of n's side of the border become uses by n. */
static void adopt(HnNode *n, HnGraph *g)
{
    if (!g)
        return;
    if (g->outer != n->graph) {
        if (g->outer)
            hn_array_drop(g->outer->inner, g);
        g->outer = n->graph;
        g_ptr_array_add(n->graph->inner, g);
    }
    HnNode *old = g->holder;
    if (old == n)
        return;
    g->holder = n;
    for (guint i = 0; i < g->outputs->len; i++) {
        HnValue *v = g->outputs->pdata[i];
        if (v->graph == g)
            continue;
        if (old)
            hn_value_drop_user(v, old);
        hn_value_add_user(v, n);
    }
}

void hn_node_set_attr(HnNode *n, HnAttr *a)
{
    HnGraph *const *graphs;
    int64_t k = hn_attr_graphs(a, &graphs);
    for (int64_t i = 0; i < k; i++)
        adopt(n, graphs[i]);
    unbind(n); /* params may point into the attribute that goes */
    for (guint i = 0; i < n->attrs->len; i++) {
        HnAttr *old = n->attrs->pdata[i];
        if (old == a)
            return;
        if (g_strcmp0(old->name, a->name) == 0) {
            n->attrs->pdata[i] = a;
            hn_attr_free(old);
            return;
        }
    }
    hn_ptrs_add(n->attrs, a);
}

void hn_node_remove_attr(HnNode *n, const char *name)
{
    for (guint i = 0; i < n->attrs->len; i++) {
        HnAttr *a = n->attrs->pdata[i];
        if (g_strcmp0(a->name, name) == 0) {
            unbind(n);
            hn_ptrs_remove(n->attrs, i);
            hn_attr_free(a);
            return;
        }
    }
}

void hn_node_set_int(HnNode *n, const char *name, int64_t v)
{
    HnAttr *a = hn_attr_new(name, HN_ATTR_INT);
    a->i = v;
    hn_node_set_attr(n, a);
}

void hn_node_set_float(HnNode *n, const char *name, float v)
{
    HnAttr *a = hn_attr_new(name, HN_ATTR_FLOAT);
    a->f = v;
    hn_node_set_attr(n, a);
}

void hn_node_set_ints(HnNode *n, const char *name, const int64_t *v, int64_t len)
{
    HnAttr *a = hn_attr_new(name, HN_ATTR_INTS);
    a->n = len;
    a->ints = len > 0 ? g_memdup2(v, (gsize)len * sizeof *v) : NULL;
    hn_node_set_attr(n, a);
}

void hn_node_set_string(HnNode *n, const char *name, const char *v)
{
    HnAttr *a = hn_attr_new(name, HN_ATTR_STRING);
    a->s = g_bytes_new(v, strlen(v));
    hn_node_set_attr(n, a);
}

/* --- walks ------------------------------------------------------------------------------------------------------- */

void hn_graph_foreach_node(HnGraph *g, HnNodeFn fn, gpointer data)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        fn(n, data);
        for (guint j = 0; j < n->attrs->len; j++) {
            HnGraph *const *graphs;
            int64_t k = hn_attr_graphs(n->attrs->pdata[j], &graphs);
            for (int64_t q = 0; q < k; q++)
                if (graphs[q])
                    hn_graph_foreach_node(graphs[q], fn, data);
        }
    }
}

typedef struct {
    const HnNode *of;
    GPtrArray *found;
    GHashTable *seen; /* made with the first */
} Captures;

static void capture(Captures *c, HnValue *v)
{
    if (!v)
        return;
    const HnGraph *h = c->of->graph;
    while (h && h != v->graph)
        h = h->outer;
    if (!h)
        return;
    if (!c->seen)
        c->seen = g_hash_table_new(NULL, NULL);
    if (g_hash_table_add(c->seen, v))
        g_ptr_array_add(c->found, v);
}

static void capture_graphs(Captures *c, const HnNode *n)
{
    for (guint i = 0; i < n->attrs->len; i++) {
        HnGraph *const *graphs;
        int64_t k = hn_attr_graphs(n->attrs->pdata[i], &graphs);
        for (int64_t q = 0; q < k; q++) {
            const HnGraph *g = graphs[q];
            for (guint j = 0; g && j < g->nodes->len; j++) {
                const HnNode *m = g->nodes->pdata[j];
                for (guint x = 0; x < m->in->len; x++)
                    capture(c, m->in->pdata[x]);
                capture_graphs(c, m);
            }
            for (guint j = 0; g && j < g->outputs->len; j++)
                capture(c, g->outputs->pdata[j]);
        }
    }
}

GPtrArray *hn_node_captures(const HnNode *n)
{
    Captures c = { n, g_ptr_array_new(), NULL };
    capture_graphs(&c, n);
    if (c.seen)
        g_hash_table_unref(c.seen);
    return c.found;
}

GPtrArray *hn_node_reads(const HnNode *n)
{
    GPtrArray *reads = g_ptr_array_new();
    g_autoptr(GPtrArray) captures = hn_node_captures(n);
    for (guint i = 0; i < n->in->len + captures->len; i++) {
        HnValue *v = i < n->in->len ? n->in->pdata[i] : captures->pdata[i - n->in->len];
        if (v && !g_ptr_array_find(reads, v, NULL))
            g_ptr_array_add(reads, v);
    }
    return reads;
}
