#include "ir/graph.h"

#include <string.h>

#include "ir/detach.h"

#define FEW_ATTRS 16 /* are looked through one by one */
#define NEAR 1000    /* places around the one where a node was that are looked at first */

static HnNode *node_new(HnGraph *g, const char *op_type, const char *domain, const char *name)
{
    HnNode *n = g_new0(HnNode, 1);
    hn_model_count(g->model, HN_NODE_BYTES);
    n->graph = g;
    n->op_type = hn_model_text(g->model, op_type);
    n->domain = hn_model_text(g->model, domain);
    n->name = g_strdup(name);
    n->version = hn_graph_opset(g, domain);
    return n;
}

HnNode *hn_graph_add_node(HnGraph *g, int at, const char *op_type, const char *domain, const char *name)
{
    HnNode *n = node_new(g, op_type, domain, name);
    n->at = at < 0 ? g->nodes->len : (guint)at;
    g_ptr_array_insert(g->nodes, at, n);
    return n;
}

HnNode *hn_graph_add_node_before(HnGraph *g, const HnNode *before, const char *op_type, const char *domain,
                                 const char *name)
{
    const guint at = hn_graph_index(g, before);
    HnNode *grave = at > 0 ? g->nodes->pdata[at - 1] : NULL;
    if (!grave || !grave->buried)
        return hn_graph_add_node(g, (int)at, op_type, domain, name);
    HnNode *n = node_new(g, op_type, domain, name);
    n->at = at - 1;
    g->nodes->pdata[at - 1] = n;
    g->buried--;
    hn_node_release(grave);
    return n;
}

void hn_node_become(HnNode *n, const char *op_type, const char *domain)
{
    n->op_type = hn_model_text(n->graph->model, op_type);
    n->domain = hn_model_text(n->graph->model, domain);
    n->version = hn_graph_opset(n->graph, domain);
    n->op = NULL;
    g_clear_pointer(&n->params, g_free);
}

guint hn_graph_index(const HnGraph *g, const HnNode *n)
{
    HnNode *const *nodes = (HnNode *const *)g->nodes->pdata;
    const guint len = g->nodes->len, at = n->at;
    for (guint d = 0; d < NEAR && d <= MAX(at, len); d++) {
        if (at + d < len && nodes[at + d] == n)
            return nodes[at + d]->at = at + d;
        if (at >= d && at - d < len && nodes[at - d] == n)
            return nodes[at - d]->at = at - d;
    }
    for (guint i = 0; i < len; i++) /* many have come or gone: all places are told anew */
        nodes[i]->at = i;
    g_return_val_if_fail(n->at < len && nodes[n->at] == n, 0);
    return n->at;
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

static void forget_index(HnNode *n)
{
    g_clear_pointer(&n->by_name, g_hash_table_unref);
}

void hn_node_release(HnNode *n)
{
    for (guint i = 0; i < n->attrs->len; i++)
        hn_attr_release(n->attrs->pdata[i]);
    forget_index(n);
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
    return hn_value_is_read(v) || v->is_input || hn_value_is_weight(v) || v->producer;
}

/* Values that n made and that nothing names any more go. */
static void free_unnamed(const GPtrArray *out)
{
    for (guint i = 0; i < out->len; i++) {
        HnValue *v = out->pdata[i];
        if (v && !is_named(v))
            hn_graph_drop_value(v);
    }
}

/* n makes nothing any more: what it made, each value once. */
static GPtrArray *take_out(HnNode *n)
{
    GPtrArray *out = hn_ptrs_copy(n->out);
    hn_ptrs_clear(n->out);
    for (guint i = 0; i < out->len; i++) {
        HnValue *v = out->pdata[i];
        if (v && v->producer == n)
            v->producer = NULL;
        else /* none, or named twice by a broken node */
            out->pdata[i] = NULL;
    }
    return out;
}

void hn_graph_remove_node(HnGraph *g, HnNode *n)
{
    g_autoptr(GPtrArray) out = take_out(n);
    g_ptr_array_remove_index(g->nodes, hn_graph_index(g, n));
    hn_node_free(n);
    free_unnamed(out);
}

void hn_graph_bury_node(HnGraph *g, HnNode *n)
{
    g_autoptr(GPtrArray) out = take_out(n);
    HnNode *grave = g_new0(HnNode, 1);
    hn_model_count(g->model, HN_NODE_BYTES);
    grave->graph = g;
    grave->buried = TRUE;
    grave->at = hn_graph_index(g, n);
    grave->op_type = "";
    g->nodes->pdata[grave->at] = grave;
    g->buried++;
    hn_node_free(n);
    free_unnamed(out);
}

void hn_graph_settle(HnGraph *g)
{
    guint kept = 0;
    for (guint i = 0; g->buried > 0 && i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        if (n->buried) {
            hn_node_release(n);
        } else {
            n->at = kept;
            g->nodes->pdata[kept++] = n;
        }
    }
    if (g->buried > 0)
        g_ptr_array_set_size(g->nodes, (int)kept);
    g->buried = 0;
    for (guint i = 0; i < g->inner->len; i++)
        hn_graph_settle(g->inner->pdata[i]);
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

/* 1 + place of the attribute; 0: there is none. */
static guint attr_place(const HnNode *n, const char *name)
{
    if (n->by_name)
        return GPOINTER_TO_UINT(g_hash_table_lookup(n->by_name, name));
    for (guint i = 0; i < n->attrs->len; i++)
        if (g_strcmp0(((const HnAttr *)n->attrs->pdata[i])->name, name) == 0)
            return i + 1;
    return 0;
}

/* From `first` on they are found by name, if they are many. */
static void index_attrs(HnNode *n, guint first)
{
    if (n->attrs->len <= FEW_ATTRS)
        return;
    if (!n->by_name) {
        n->by_name = g_hash_table_new(g_str_hash, g_str_equal);
        first = 0;
    }
    for (guint i = first; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        g_hash_table_replace(n->by_name, a->name, GUINT_TO_POINTER(i + 1));
    }
}

const HnAttr *hn_node_attr(const HnNode *n, const char *name)
{
    const guint at = attr_place(n, name);
    return at > 0 ? n->attrs->pdata[at - 1] : NULL;
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
        hn_graph_note_names(g);
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
    const guint at = attr_place(n, a->name);
    HnAttr *old = at > 0 ? n->attrs->pdata[at - 1] : NULL;
    if (old && old != a) {
        n->attrs->pdata[at - 1] = a;
        if (n->by_name)
            g_hash_table_replace(n->by_name, a->name, GUINT_TO_POINTER(at));
        hn_attr_free(old);
    } else if (!old) {
        hn_ptrs_add(n->attrs, a);
        index_attrs(n, n->attrs->len - 1);
    }
}

void hn_node_remove_attr(HnNode *n, const char *name)
{
    const guint at = attr_place(n, name);
    if (at == 0)
        return;
    unbind(n);
    forget_index(n);
    HnAttr *a = n->attrs->pdata[at - 1];
    hn_ptrs_remove(n->attrs, at - 1);
    hn_attr_free(a);
    index_attrs(n, 0);
}

void hn_node_share_attrs(HnNode *n, const HnNode *from)
{
    for (guint i = 0; i < from->attrs->len; i++) {
        HnAttr *a = from->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH || a->kind == HN_ATTR_GRAPHS)
            continue;
        g_atomic_int_inc(&a->refs);
        hn_ptrs_add(n->attrs, a);
        index_attrs(n, n->attrs->len - 1);
    }
}

void hn_node_take_attrs(HnNode *n, HnNode *from)
{
    g_autoptr(GPtrArray) attrs = hn_ptrs_copy(from->attrs);
    hn_ptrs_clear(from->attrs);
    forget_index(from);
    unbind(from);
    for (guint i = 0; i < attrs->len; i++)
        hn_node_set_attr(n, attrs->pdata[i]);
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
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < n->in->len + captures->len; i++) {
        HnValue *v = i < n->in->len ? n->in->pdata[i] : captures->pdata[i - n->in->len];
        if (v && g_hash_table_add(seen, v))
            g_ptr_array_add(reads, v);
    }
    return reads;
}
