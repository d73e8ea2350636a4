#include "check/flops.h"

HnTypes *hn_flops_types(HnModel *m, const HnShapes *shapes, HnBudget *budget)
{
    HnTypes *t = hn_types_new(m);
    hn_types_set_budget(t, budget);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        int64_t dims[HN_MAX_RANK];
        const int rank = hn_value_is_weight(v) ? -1 : hn_shapes_dims(shapes, v, dims, NULL);
        if (rank < 0 || v->type->kind != HN_TYPE_TENSOR)
            continue;
        g_autoptr(HnType) type = hn_type_fixed(v->type->dtype, rank, dims);
        hn_types_set(t, v, type);
    }
    /* stops where memory ends: what is known by then is right */
    (void)hn_types_graph(t, m->graph, HN_TENSOR_SMALL, 0, NULL);
    return t;
}

gboolean hn_flops_node(const HnTypes *t, const HnNode *n, double *flops)
{
    HnCost c;
    *flops = 0;
    if (n->op == NULL || (n->op->flags & HN_OP_CONTROL) != 0 || !hn_types_cost(t, n, &c))
        return FALSE;
    *flops = c.flops;
    return TRUE;
}

typedef struct {
    const HnTypes *types;
    double flops;
    guint left;
} Sum;

static void add_node(HnNode *n, gpointer data)
{
    Sum *s = data;
    double flops;
    if (n->op != NULL && (n->op->flags & HN_OP_CONTROL) != 0)
        return;
    s->left += !hn_flops_node(s->types, n, &flops);
    s->flops += flops;
}

double hn_flops(const HnTypes *t, HnModel *m, guint *left)
{
    Sum s = { t, 0, 0 };
    hn_graph_foreach_node(m->graph, add_node, &s);
    *left = s.left;
    return s.flops;
}
