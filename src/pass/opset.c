#include "pass/opset.h"

#include <string.h>

#include "op/unbind.h"
#include "pass/inline_functions.h"

#define FOLD_BYTES 4096 /* shapes, axes, scalars: what can become an attribute */

typedef struct {
    HnTypes *types;
    int64_t target;
    GPtrArray *blocked;
} Conversion;

/* The IR version that came with each opset from 7 on. */
static int64_t ir_version_of(int64_t opset)
{
    static const uint8_t ir[] = { 3, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12, 13, 13, 13, 14 };
    G_STATIC_ASSERT(G_N_ELEMENTS(ir) == HN_OPSET_MAX - HN_OPSET_MIN + 1);
    return ir[opset - HN_OPSET_MIN];
}

static void block(const Conversion *c, const char *op, const char *name, const char *why)
{
    g_ptr_array_add(c->blocked, g_strdup_printf("node '%s' (%s): %s", name, op, why));
}

static void convert_graph(const Conversion *c, HnGraph *g);

static void convert_graphs(const Conversion *c, const HnNode *n)
{
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH && a->g != NULL)
            convert_graph(c, a->g);
        for (int64_t k = 0; a->kind == HN_ATTR_GRAPHS && k < a->n; k++)
            convert_graph(c, a->graphs[k]);
    }
}

static void convert_one(const Conversion *c, HnNode *n)
{
    g_autoptr(GError) why = NULL;
    g_autofree char *op = g_strdup(n->op_type), *name = g_strdup(hn_node_label(n));
    if (!hn_domain_equal(n->domain, NULL)) {
        convert_graphs(c, n);
        return;
    }
    hn_types_node(c->types, n, FOLD_BYTES, NULL); /* what stays unknown is a matter of those that ask */
    convert_graphs(c, n);
    if (n->version == c->target)
        return;
    if (hn_op_find(NULL, n->op_type) == NULL) {
        if (hn_unbind_unknown(n, c->target, c->types))
            n->version = c->target;
        else
            block(c, op, name, "the operator is not known well enough to be converted");
    } else if (!hn_node_convert(n, c->target, c->types, &why)) {
        block(c, op, name, why->message);
    }
}

static void convert_graph(const Conversion *c, HnGraph *g)
{
    if (g->outer != NULL)
        hn_types_enter(c->types, g, TRUE, NULL);    /* a weight that cannot be read is not known, no more */
    g_autoptr(GPtrArray) nodes = g_ptr_array_new(); /* those that are here before the first is converted */
    for (guint i = 0; i < g->nodes->len; i++)
        g_ptr_array_add(nodes, g->nodes->pdata[i]);
    for (guint i = 0; i < nodes->len; i++)
        convert_one(c, nodes->pdata[i]);
}

static void drop_functions(HnModel *m)
{
    for (guint i = 0; i < m->functions->len; i++)
        hn_function_free(m->functions->pdata[i]);
    g_ptr_array_set_size(m->functions, 0);
}

static void find_plain(HnNode *n, gpointer data)
{
    *(gboolean *)data = *(gboolean *)data || hn_domain_equal(n->domain, NULL);
}

static gboolean has_plain_nodes(const HnModel *m)
{
    gboolean found = m->functions->len > 0;
    hn_graph_foreach_node(m->graph, find_plain, &found);
    return found;
}

gboolean hn_convert_opset(HnModel *m, int64_t target, GPtrArray *blocked, GError **error)
{
    int64_t from = hn_model_opset(m, NULL);
    if (from == 0 && !has_plain_nodes(m)) /* all nodes are of other domains */
        hn_model_set_opset(m, NULL, from = target);
    if (target < HN_OPSET_MIN || target > HN_OPSET_MAX || from < HN_OPSET_MIN || from > HN_OPSET_MAX) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "opset %" G_GINT64_FORMAT " cannot be converted to opset %" G_GINT64_FORMAT
                    ": both have to be between %d and %d",
                    from, target, HN_OPSET_MIN, HN_OPSET_MAX);
        return FALSE;
    }
    gboolean inlined = FALSE;
    for (guint i = 0; i < m->functions->len; i++)
        inlined = inlined || hn_graph_opset(((const HnFunction *)m->functions->pdata[i])->body, NULL) != target;
    if (inlined) {
        if (!hn_inline_functions(m, error))
            return FALSE;
        drop_functions(m);
    }
    g_autoptr(HnTypes) types = hn_types_new(m);
    guint before = blocked->len;
    Conversion c = { types, target, blocked };
    if (!hn_types_enter(types, m->graph, TRUE, error))
        return FALSE;
    convert_graph(&c, m->graph);
    hn_graph_settle(m->graph);
    hn_model_set_opset(m, NULL, target);
    m->ir_version = MAX(m->ir_version, ir_version_of(target));
    for (guint i = 0; i < m->graph->weights->len; i++)
        if (!((const HnValue *)m->graph->weights->pdata[i])->is_input) /* before IR version 4 it had to be an input */
            m->ir_version = MAX(m->ir_version, 4);
    if (blocked->len == before)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "%u of the nodes cannot be converted to opset %" G_GINT64_FORMAT ", the first: %s",
                blocked->len - before, target, (const char *)blocked->pdata[before]);
    return FALSE;
}

static void find_foreign(HnNode *n, gpointer data)
{
    if (hn_domain_equal(n->domain, NULL) && n->version != hn_graph_opset(n->graph, NULL))
        *(gboolean *)data = TRUE;
}

gboolean hn_settle_calls(HnModel *m, int64_t target, GPtrArray *blocked, GError **error)
{
    gboolean foreign = FALSE;
    if (!hn_inline_calls(m, error))
        return FALSE;
    hn_graph_foreach_node(m->graph, find_foreign, &foreign);
    const int64_t have = hn_model_opset(m, NULL), want = target != 0 ? target : have;
    if ((want != have || foreign) && !hn_convert_opset(m, want, blocked, error))
        return FALSE;
    while (m->functions->len > 0) /* nobody calls them now */
        hn_function_free(g_ptr_array_steal_index(m->functions, m->functions->len - 1));
    return TRUE;
}

gboolean hn_settle_opset(HnModel *m, int64_t target, GPtrArray *blocked, GError **error)
{
    return hn_inline_functions(m, error) && hn_settle_calls(m, target, blocked, error);
}
