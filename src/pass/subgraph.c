/*
 * Sub-graphs: their nodes in the graph around them, and inputs and outputs that go.
 */
#include <string.h>

#include "pass/driver.h"

/* What the copy needs to know of one sub-graph. */
typedef struct {
    HnGraph *to;        /* where its nodes go */
    GHashTable *values; /* HnValue * that its nodes use or make -> the one outside that stands for it */
} Copy;

/* What the nodes of g read from outside stands for itself. */
static void map_outer(const Copy *c, const HnGraph *g)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        g_autoptr(GPtrArray) used = hn_node_captures(n);
        for (guint k = 0; k < n->in->len; k++)
            if (n->in->pdata[k] != NULL)
                g_ptr_array_add(used, n->in->pdata[k]);
        for (guint k = 0; k < used->len; k++)
            if (hn_rw_visible(c->to, used->pdata[k]))
                g_hash_table_insert(c->values, used->pdata[k], used->pdata[k]);
    }
}

static HnValue *copy_weight(HnRewrite *r, const Copy *c, HnValue *v)
{
    if (v->weight != NULL)
        return hn_rw_weight(r, c->to, v->name, hn_tensor_ref(v->weight));
    g_autoptr(GError) error = NULL;
    HnTensor *dense = hn_sparse_dense(v->sparse, hn_rw_budget(r), &error);
    if (dense == NULL)
        hn_rw_fail(r, HN_ERROR_BUDGET, "weight '%s': %s", v->name, error->message);
    return hn_rw_weight(r, c->to, v->name, dense != NULL ? dense : hn_tensor_scalar_f32(0));
}

static void map_own(HnRewrite *r, const Copy *c, const HnGraph *g, HnValue *const *in, GHashTable *shared)
{
    for (guint i = 0; i < g->inputs->len; i++)
        g_hash_table_insert(c->values, g->inputs->pdata[i], in[i]);
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i], *w = shared != NULL ? g_hash_table_lookup(shared, v) : NULL;
        if (g_hash_table_contains(c->values, v) || !hn_value_is_read(v))
            continue; /* an input with a default, or spare */
        if (w == NULL)
            w = copy_weight(r, c, v);
        if (shared != NULL)
            g_hash_table_insert(shared, v, w);
        g_hash_table_insert(c->values, v, w);
    }
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            HnValue *v = n->out->pdata[k], *w = v != NULL ? hn_graph_new_value(c->to, v->name) : NULL;
            if (v != NULL && v->type != NULL)
                hn_value_set_type(w, v->type);
            if (v != NULL)
                g_hash_table_insert(c->values, v, w);
        }
    }
}

static void add_live(HnNode *n, gpointer data)
{
    HnRewrite *r = data;
    g_hash_table_add(r->live, n);
}

/* n, a copy at the end of its graph, is one of the rewrite's nodes from here on. */
static void adopt(HnRewrite *r, HnNode *n, GHashTable *names)
{
    if (n->name != NULL && !g_hash_table_add(names, g_strdup(n->name)))
        g_clear_pointer(&n->name, g_free); /* names of nodes are unique within a graph */
    g_hash_table_add(r->live, n);
    g_ptr_array_add(r->loose, n);
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH && a->g != NULL)
            hn_graph_foreach_node(a->g, add_live, r);
    }
    r->bytes += hn_rw_node_bytes(n);
    if (hn_op_bind(n, NULL))
        hn_types_node(r->types, n, 0, NULL);
}

/* Names of the nodes of g: looked for once in a pass, since many graphs may go into one. */
static GHashTable *names_in(HnRewrite *r, const HnGraph *g)
{
    if (r->names != NULL && r->names_of == g && g->outer == NULL) /* an inner one may be another at the same address */
        return r->names;
    g_clear_pointer(&r->names, g_hash_table_unref);
    r->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r->names_of = g;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        if (n->name != NULL)
            g_hash_table_add(r->names, g_strdup(n->name));
    }
    return r->names;
}

void hn_rw_inline_graph(HnRewrite *r, HnNode *holder, HnGraph *g, HnValue *const *in, GHashTable *shared, HnValue **out)
{
    HnGraph *to = holder->graph;
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    GHashTable *names = names_in(r, to);
    const Copy c = { to, values };
    const guint at = hn_graph_index(to, holder);
    hn_graph_settle(g);
    map_outer(&c, g);
    map_own(r, &c, g, in, shared);
    const guint before = to->nodes->len, made = g->nodes->len;
    for (guint i = 0; i < made; i++)
        hn_node_copy(to, g->nodes->pdata[i], values);
    for (guint i = before; i < to->nodes->len; i++)
        adopt(r, to->nodes->pdata[i], names);
    /* from the end of the list to the place in front of the holder */
    g_autofree gpointer *copies = g_memdup2(to->nodes->pdata + before, made * sizeof(gpointer));
    memmove(to->nodes->pdata + at + made, to->nodes->pdata + at, (before - at) * sizeof(gpointer));
    if (made > 0)
        memcpy(to->nodes->pdata + at, copies, made * sizeof(gpointer));
    for (guint k = 0; k < g->outputs->len; k++) {
        HnValue *v = g->outputs->pdata[k];
        out[k] = g_hash_table_contains(values, v) ? g_hash_table_lookup(values, v) : v;
    }
}

void hn_rw_stand_in(HnRewrite *r, HnNode *n, int k, HnValue *to)
{
    HnValue *v = hn_node_out(n, k);
    if (!hn_value_is_read(v))
        return;
    if (v->is_output && (to->graph != v->graph || to->producer == NULL || to->is_input || to->is_output)) {
        HnNode *same = hn_rw_add(r, n, "Identity", &to, 1);
        hn_rw_take_value(r, same, v);
        return;
    }
    hn_rw_replace(r, v, to);
}

/* --- inputs and outputs that go ----------------------------------------------------------------------------------- */

static void lost_a_use(HnRewrite *r, HnValue *v)
{
    if (v != NULL && v->producer != NULL)
        g_ptr_array_add(r->loose, v->producer);
    else if (v != NULL && hn_value_is_weight(v))
        g_ptr_array_add(r->unused, v);
}

static void forget(HnRewrite *r, HnValue *v)
{
    hn_types_forget(r->types, v);
    hn_graph_drop_value(v);
}

void hn_rw_remove_in(HnRewrite *r, HnNode *n, int i)
{
    HnValue *v = hn_node_in(n, i);
    hn_node_remove_in(n, i);
    lost_a_use(r, v);
}

void hn_rw_remove_out(HnRewrite *r, HnNode *n, int k)
{
    HnValue *v = hn_node_out(n, k);
    hn_node_remove_out(n, k);
    if (v != NULL)
        forget(r, v);
}

void hn_rw_remove_graph_in(HnRewrite *r, HnGraph *g, int i)
{
    HnValue *v = g->inputs->pdata[i];
    hn_graph_remove_input(g, i);
    if (!hn_value_is_weight(v))
        forget(r, v);
    else
        g_ptr_array_add(r->unused, v);
}

void hn_rw_remove_graph_out(HnRewrite *r, HnGraph *g, int k)
{
    HnValue *v = g->outputs->pdata[k];
    hn_graph_remove_output(g, k);
    lost_a_use(r, v);
}
