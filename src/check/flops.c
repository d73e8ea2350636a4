#include "check/flops.h"

#include <math.h>

#include "op/control.h"

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

static double graph_flops(const HnTypes *t, const HnGraph *g, guint *left);

/* Bodies as often as they run, where that is known, and else once; of branches the one with most flops. */
static double bodies_flops(const HnTypes *t, const HnNode *n, guint *left)
{
    double sum = 0, most = -1;
    guint left_of_most = 0;
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        guint inner = 0;
        if (a->kind != HN_ATTR_GRAPH)
            continue;
        const double flops = graph_flops(t, a->g, &inner), runs = hn_control_runs(t, n, a->g);
        if (isnan(runs) && flops > most) {
            most = flops;
            left_of_most = inner;
        } else if (runs > 0) {
            sum += flops * runs;
            *left += inner;
        }
    }
    *left += left_of_most;
    return sum + MAX(most, 0);
}

static double graph_flops(const HnTypes *t, const HnGraph *g, guint *left)
{
    double sum = 0, flops;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        if (n->op != NULL && (n->op->flags & HN_OP_CONTROL) != 0) {
            sum += bodies_flops(t, n, left);
            continue;
        }
        *left += !hn_flops_node(t, n, &flops);
        sum += flops;
    }
    return sum;
}

double hn_flops(const HnTypes *t, const HnModel *m, guint *left)
{
    *left = 0;
    return graph_flops(t, m->graph, left);
}
