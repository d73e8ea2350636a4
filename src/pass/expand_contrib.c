#include "pass/expand_contrib.h"

#include "ir/copy.h"
#include "op/contrib.h"

#define FOLD_BYTES 4096 /* shapes and scalars */

static void count(HnNode *n, gpointer data)
{
    *(guint *)data += hn_contrib_knows(n);
}

guint hn_count_contrib(const HnModel *m)
{
    guint n = 0;
    hn_graph_foreach_node(m->graph, count, &n);
    return n;
}

typedef struct {
    HnTypes *types;
    gboolean all; /* those that run as they are, too */
} Expansion;

static gboolean spell_out_graph(const Expansion *x, HnGraph *g, GError **error);

static gboolean spell_out_inner(const Expansion *x, const HnNode *n, GError **error)
{
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH && a->g != NULL && !spell_out_graph(x, a->g, error))
            return FALSE;
        for (int64_t k = 0; a->kind == HN_ATTR_GRAPHS && k < a->n; k++)
            if (!spell_out_graph(x, a->graphs[k], error))
                return FALSE;
    }
    return TRUE;
}

static gboolean spell_out_node(const Expansion *x, HnNode *n, GError **error)
{
    if (g_strcmp0(n->domain, HN_DOMAIN_NCHWC) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "node '%s' (%s.%s): its weights are laid out for the processor that the model was written on; "
                    "ONNX Runtime writes it for all with ORT_ENABLE_EXTENDED",
                    hn_node_label(n), n->domain, n->op_type);
        return FALSE;
    }
    if (hn_contrib_knows(n) && (x->all || !hn_contrib_runs(n)))
        return hn_contrib_spell_out(n, x->types, error);
    hn_types_node(x->types, n, FOLD_BYTES, NULL); /* what stays unknown is a matter of those that ask */
    return spell_out_inner(x, n, error);
}

static gboolean spell_out_graph(const Expansion *x, HnGraph *g, GError **error)
{
    if (g->outer != NULL)
        hn_types_enter(x->types, g, TRUE, NULL);
    g_autoptr(GPtrArray) nodes = g_ptr_array_sized_new(g->nodes->len); /* those that are here before the first goes */
    for (guint i = 0; i < g->nodes->len; i++)
        g_ptr_array_add(nodes, g->nodes->pdata[i]);
    for (guint i = 0; i < nodes->len; i++)
        if (!spell_out_node(x, nodes->pdata[i], error))
            return FALSE;
    return TRUE;
}

static void is_foreign(HnNode *n, gpointer data)
{
    *(gboolean *)data = *(gboolean *)data || hn_contrib_knows(n) || g_strcmp0(n->domain, HN_DOMAIN_NCHWC) == 0;
}

gboolean hn_spell_out_contrib(HnModel *m, gboolean all, GError **error)
{
    gboolean any = FALSE;
    hn_graph_foreach_node(m->graph, is_foreign, &any);
    if (!any)
        return TRUE;
    g_autoptr(HnTypes) types = hn_types_new(m);
    const Expansion x = { types, all };
    if (!hn_types_enter(types, m->graph, TRUE, error) || !spell_out_graph(&x, m->graph, error))
        return FALSE;
    hn_graph_settle(m->graph);
    if (hn_model_opset(m, NULL) == 0)
        hn_model_set_opset(m, NULL, HN_OPSET_MAX);
    return TRUE;
}

static void take_types(const HnNode *n, const HnGraph *from)
{
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = hn_node_out(n, (int)k);
        const HnValue *known = v != NULL ? g_hash_table_lookup(from->values, v->name) : NULL;
        if (known != NULL && known->type != NULL)
            hn_value_set_type(v, known->type);
    }
}

void hn_type_contrib(HnModel *m)
{
    if (hn_count_contrib(m) == 0)
        return;
    g_autoptr(HnModel) copy = hn_model_copy(m);
    if (copy == NULL || !hn_spell_out_contrib(copy, FALSE, NULL) || !hn_graph_infer(copy->graph, FALSE, NULL))
        return;
    for (guint i = 0; i < m->graph->nodes->len; i++)
        if (hn_contrib_knows(m->graph->nodes->pdata[i]))
            take_types(m->graph->nodes->pdata[i], copy->graph);
}
