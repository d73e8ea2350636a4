#include "prune/branches.h"

#include "ir/type.h"
#include "op/linear.h"

/* --- what would go ------------------------------------------------------------------------------------------------ */

static const HnNode *maker(const HnGraph *g, const HnValue *v)
{
    return v != NULL && v->producer != NULL && v->producer->graph == g ? v->producer : NULL;
}

/* All that reads n is in `gone`. */
static gboolean only_for(const HnNode *n, GHashTable *gone)
{
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (v == NULL)
            continue;
        if (v->is_output > 0)
            return FALSE;
        for (guint u = 0; u < v->users->len; u++)
            if (!g_hash_table_contains(gone, v->users->pdata[u]))
                return FALSE;
    }
    return TRUE;
}

/* Nodes that serve nothing but `last`, from its input `from` on, added to `gone`; layers with weights among them are
 * counted. `kept` is needed by others. */
static guint gather(const HnGraph *g, const HnValue *from, const HnValue *kept, GHashTable *gone)
{
    g_autoptr(GPtrArray) next = g_ptr_array_new();
    guint layers = 0;
    g_ptr_array_add(next, (gpointer)maker(g, from));
    while (next->len > 0) {
        const HnNode *n = g_ptr_array_steal_index(next, next->len - 1);
        HnLinearView v;
        if (n == NULL || n == maker(g, kept) || g_hash_table_contains(gone, n) || !only_for(n, gone))
            continue;
        g_hash_table_add(gone, (gpointer)n);
        layers += hn_op_linear(n, &v) && v.w->weight != NULL;
        for (guint i = 0; i < n->in->len; i++)
            g_ptr_array_add(next, (gpointer)maker(g, n->in->pdata[i]));
    }
    return layers;
}

/* `v` is computed from `from`. */
static gboolean is_made_of(const HnGraph *g, const HnValue *v, const HnValue *from)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) next = g_ptr_array_new();
    g_ptr_array_add(next, (gpointer)v);
    while (next->len > 0) {
        const HnValue *x = g_ptr_array_steal_index(next, next->len - 1);
        if (x == from)
            return TRUE;
        const HnNode *n = maker(g, x);
        if (n == NULL || !g_hash_table_add(seen, (gpointer)n))
            continue;
        for (guint i = 0; i < n->in->len; i++)
            g_ptr_array_add(next, n->in->pdata[i]);
    }
    return FALSE;
}

static gboolean same_type(const HnValue *a, const HnValue *b)
{
    return a != NULL && b != NULL && a->type != NULL && b->type != NULL && hn_type_equal(a->type, b->type);
}

static void add(GArray *blocks, const HnGraph *g, const HnNode *last, const HnValue *goes, const HnValue *stays)
{
    g_autoptr(GHashTable) gone = g_hash_table_new(NULL, NULL);
    g_hash_table_add(gone, (gpointer)last);
    const HnPruneBlock b = { .out = hn_node_out(last, 0), .in = stays, .layers = gather(g, goes, stays, gone) };
    if (b.layers > 0)
        g_array_append_val(blocks, b);
}

static gboolean is_sum(const HnNode *n)
{
    return n->in->len == 2 && n->op->range.addends == 3;
}

GArray *hn_prune_blocks(const HnModel *m)
{
    const HnGraph *g = m->graph;
    GArray *blocks = g_array_new(FALSE, FALSE, sizeof(HnPruneBlock));
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        HnLinearView v;
        if (n->op == NULL || n->out->len == 0)
            continue;
        for (int k = 0; is_sum(n) && k < 2; k++)
            if (same_type(hn_node_in(n, 1 - k), hn_node_out(n, 0)) && maker(g, hn_node_in(n, k)) != NULL)
                add(blocks, g, n, hn_node_in(n, k), hn_node_in(n, 1 - k));
        if (hn_op_linear(n, &v) && v.w->weight != NULL && v.x->weight == NULL && same_type(v.x, hn_node_out(n, 0))) {
            const HnPruneBlock b = { .out = hn_node_out(n, 0), .in = v.x, .layers = 1 };
            g_array_append_val(blocks, b);
        }
    }
    return blocks;
}

gboolean hn_prune_skip(HnModel *m, const char *out, const char *in)
{
    HnGraph *g = m->graph;
    HnValue *from = g_hash_table_lookup(g->values, out), *to = g_hash_table_lookup(g->values, in);
    if (!same_type(from, to) || maker(g, from) == NULL || is_made_of(g, to, from))
        return FALSE;
    hn_value_replace(from, to);
    return TRUE;
}
