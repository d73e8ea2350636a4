/*
 * Conversion of precision: the element type of everything, where shapes do not matter.
 *
 * Inference of shapes leaves out the branch that is never taken, and what is behind a node that contradicts itself. A
 * conversion has to change these, too: element types follow from the records' letters alone.
 */
#include "pass/precision/precision_plan.h"
#include "pass/rewrite.h"

static HnDtype dtype_of(const HnTypes *t, const HnValue *v)
{
    return v != NULL ? hn_type_dtype(hn_types_get(t, v)) : HN_UNDEFINED;
}

static gboolean is_open(const HnTypes *t, const HnValue *v)
{
    return v != NULL && hn_type_may_be(hn_types_get(t, v), 0);
}

static void know(HnTypes *t, const HnValue *v, HnDtype dtype)
{
    const HnType *declared = v->type;
    if (dtype == HN_UNDEFINED && declared != NULL && declared->kind != HN_TYPE_NONE) {
        hn_types_set(t, v, v->type);
        return;
    }
    const gboolean shaped = hn_type_is_tensor(declared);
    g_autoptr(HnType) type = dtype != HN_UNDEFINED
                                 ? hn_type_tensor(dtype, shaped ? declared->rank : -1, shaped ? declared->dims : NULL)
                                 : NULL;
    hn_types_set(t, v, type);
}

static HnDtype of_letter(const HnTypes *t, const HnNode *n, int k)
{
    gboolean same;
    const char letter = hn_op_letter(n->op->out, k, &same);
    switch (letter) {
    case 'i':
        return HN_I64;
    case 'b':
        return HN_BOOL;
    case 'f':
        return HN_F32;
    case 'u':
        return HN_U8;
    default:
        break;
    }
    for (int i = 0; letter >= 'A' && letter <= 'Z' && i < (int)n->in->len; i++)
        if (hn_op_letter(n->op->in, i, &same) == letter && dtype_of(t, hn_node_in(n, i)) != HN_UNDEFINED)
            return dtype_of(t, hn_node_in(n, i));
    return HN_UNDEFINED;
}

static const HnGraph *graph_of(const HnAttr *a)
{
    return a != NULL && a->kind == HN_ATTR_GRAPH ? a->g : NULL;
}

/* The type of output k, as far as it follows from types alone. */
static HnDtype of_output(const HnTypes *t, const HnNode *n, int k)
{
    const HnAttr *a;
    if (n->op == &hn_op_if || n->op == &hn_op_loop || n->op == &hn_op_scan) {
        const char *const holders[] = { "then_branch", "else_branch", "body" };
        const guint at = (guint)k + (n->op == &hn_op_loop);
        HnDtype dtype = HN_UNDEFINED;
        for (guint i = 0; i < G_N_ELEMENTS(holders) && dtype == HN_UNDEFINED; i++) {
            const HnGraph *g = graph_of(hn_node_attr(n, holders[i]));
            dtype = g != NULL && at < g->outputs->len ? dtype_of(t, g->outputs->pdata[at]) : HN_UNDEFINED;
        }
        return dtype;
    }
    if (n->op == &hn_op_cast)
        return (a = hn_node_attr(n, "to")) != NULL && a->kind == HN_ATTR_INT ? (HnDtype)a->i : HN_UNDEFINED;
    if (n->op == &hn_op_constant || n->op == &hn_op_constantofshape) {
        a = hn_node_attr(n, "value");
        return a != NULL && a->kind == HN_ATTR_TENSOR && a->t != NULL ? a->t->dtype
               : n->op == &hn_op_constantofshape                      ? HN_F32
                                                                      : HN_UNDEFINED;
    }
    if (n->op == &hn_op_identity)
        return dtype_of(t, hn_node_in(n, 0));
    return n->op != NULL ? of_letter(t, n, k) : HN_UNDEFINED;
}

static gboolean fill(HnTypes *t, HnGraph *g, GError **error);

static gboolean fill_inner(HnTypes *t, const HnNode *n, HnGraph *g, GError **error)
{
    const guint first = n->op == &hn_op_scan && n->version < 9 ? 1 : 0;
    for (guint i = 0; i < g->inputs->len; i++)
        if (is_open(t, g->inputs->pdata[i]))
            know(t, g->inputs->pdata[i], dtype_of(t, hn_node_in(n, (int)(i + first))));
    return fill(t, g, error);
}

static gboolean fill(HnTypes *t, HnGraph *g, GError **error)
{
    if (!hn_types_enter(t, g, TRUE, error))
        return FALSE;
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        (void)hn_op_bind(n, NULL);
        for (guint j = 0; j < n->attrs->len; j++) {
            const HnAttr *a = n->attrs->pdata[j];
            if (a->kind == HN_ATTR_GRAPH && a->g != NULL && !fill_inner(t, n, a->g, error))
                return FALSE;
            for (int64_t k = 0; a->kind == HN_ATTR_GRAPHS && k < a->n; k++)
                if (!fill_inner(t, n, a->graphs[k], error))
                    return FALSE;
        }
        for (guint k = 0; k < n->out->len; k++)
            if (is_open(t, hn_node_out(n, (int)k)))
                know(t, hn_node_out(n, (int)k), of_output(t, n, (int)k));
    }
    return TRUE;
}

HnTypes *hn_precision_types(const HnModel *m, GError **error)
{
    g_autoptr(HnTypes) t = hn_types_new(m);
    return hn_types_graph(t, m->graph, 0, 0, error) && fill(t, m->graph, error) ? g_steal_pointer(&t) : NULL;
}
