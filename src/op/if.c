/*
 * If: runs one of two sub-graphs.
 */
#include <math.h>

#include "op/batch.h"
#include "op/control.h"
#include "op/tape.h"

static const char *const branches[] = { "else_branch", "then_branch" };

typedef struct {
    HnGraph *branch[2]; /* in that order */
} HnIf;

static void if_bind(HnBind *b, void *params)
{
    HnIf *p = params;
    for (int i = 0; i < 2; i++)
        p->branch[i] = hn_bind_graph(b, branches[i]);
    for (int i = 0; b->error == NULL && i < 2; i++)
        if (p->branch[i]->inputs->len > 0 || p->branch[i]->outputs->len != b->node->out->len)
            hn_bind_fail(b, HN_ERROR_GRAPH, "branch '%s' has %u inputs and %u outputs, not 0 and %u", branches[i],
                         p->branch[i]->inputs->len, p->branch[i]->outputs->len, b->node->out->len);
}

static gboolean one_element(const HnTensor *t)
{
    return t->dtype == HN_BOOL && t->n == 1;
}

double hn_if_runs(const HnTypes *t, const HnNode *n, const HnGraph *body)
{
    const HnIf *p = n->params;
    const HnTensor *known = hn_types_value(t, hn_node_in(n, 0));
    if (known == NULL || !one_element(known))
        return NAN;
    return p->branch[*(const uint8_t *)known->data != 0] == body ? 1 : 0;
}

static void if_infer(HnInfer *x)
{
    const HnIf *p = x->params;
    g_autofree HnType **one = g_new0(HnType *, (gsize)x->n_out + 1), **two = g_new0(HnType *, (gsize)x->n_out + 1);
    gboolean known = x->value[0] != NULL && one_element(x->value[0]);
    HnGraph *first = known ? p->branch[*(const uint8_t *)x->value[0]->data != 0] : p->branch[0];
    gboolean ok = x->graph(x, first, 0, NULL, x->n_out, one);
    if (!known) { /* a branch for other shapes may be impossible for these: it is not taken then */
        g_autoptr(GError) impossible = g_steal_pointer(&x->error);
        ok = x->graph(x, p->branch[1], 0, NULL, x->n_out, two) || impossible == NULL;
        if (ok)
            g_clear_error(&x->error);
    }
    for (int k = 0; ok && k < x->n_out; k++)
        hn_control_out(x, k, known ? g_steal_pointer(&one[k]) : hn_type_common(one[k], two[k]));
    hn_control_unref_types(one, x->n_out);
    hn_control_unref_types(two, x->n_out);
}

static void if_ref(HnEval *e)
{
    const HnIf *p = e->params;
    const HnTensor *cond = hn_eval_in(e, 0);
    if (!one_element(cond)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the condition is not one bool");
        return;
    }
    HnTensor *few[8] = { NULL }, **out = few;
    g_autofree HnTensor **many = NULL;
    if (e->n_out > (int)G_N_ELEMENTS(few))
        out = many = g_new0(HnTensor *, (gsize)e->n_out);
    if (e->graph(e, p->branch[*(const uint8_t *)cond->data != 0], 0, NULL, e->n_out, out))
        for (int k = 0; k < e->n_out; k++)
            if (hn_eval_wants(e, k))
                hn_eval_view(e, k, out[k], out[k]->ndim, out[k]->dims);
    hn_control_unref(out, e->n_out);
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

/* A further If with copies of t's branches, whose nodes make what gradients need: nothing but results is seen from
 * outside of the node itself. Its results are left to the caller. */
static HnNode *copy_of(const HnTape *t)
{
    HnGraph *g = t->build->graph;
    HnValue *cond = hn_tape_in(t, 0);
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) reads = hn_node_reads(t->node);
    for (guint i = 0; i < reads->len; i++)
        g_hash_table_insert(values, reads->pdata[i], reads->pdata[i]);
    for (guint k = 0; k < t->node->out->len; k++)
        if (hn_tape_out(t, (int)k) != NULL)
            g_hash_table_insert(values, hn_tape_out(t, (int)k), hn_graph_new_value(g, "If"));
    HnNode *copy = hn_node_copy(g, t->node, values), *n = hn_build_node(t->build, "If", NULL, 1, &cond, 0);
    hn_node_take_attrs(n, copy);
    hn_graph_remove_node(g, copy);
    return n;
}

static void refuse_random(HnNode *n, gpointer data)
{
    if (n->op != NULL && (n->op->flags & HN_OP_RANDOM) != 0)
        hn_tape_refuse(data, "node '%s' of a branch would draw other numbers for the gradient", hn_node_label(n));
}

/* Result k of branch g becomes dx; NULL: zeros in the shape of x. */
static void give_branch(const HnTape *t, HnGraph *g, HnValue *dx, HnValue *x)
{
    HnBuild b = *t->build;
    b.graph = g;
    b.before = NULL;
    if (dx == NULL) {
        HnTensor *zero = hn_tensor_new(hn_tape_dtype(t, x), 0, NULL, NULL, NULL);
        hn_tensor_set_f64(zero, 0, 0);
        dx = hn_build_op2(&b, "Expand", hn_build_constant(&b, "zero", zero), hn_build_shape(&b, x, 0, INT64_MAX));
    }
    hn_graph_add_output(g, dx);
}

static void if_grad(HnTape *t)
{
    const int n = t->n_captures;
    HnNode *node = copy_of(t);
    HnGraph *g[2];
    g_autofree HnValue **dx = g_new0(HnValue *, 2 * (gsize)n + 1);
    for (int i = 0; i < 2; i++) {
        g[i] = hn_node_attr(node, branches[i])->g;
        if (!t->graph(t, g[i], dx + (gsize)i * (gsize)n))
            return;
        hn_graph_foreach_node(g[i], refuse_random, t);
        while (g[i]->outputs->len > 0)
            hn_graph_remove_output(g[i], (int)g[i]->outputs->len - 1);
    }
    for (int j = 0; j < n; j++) {
        if ((dx[j] == NULL && dx[n + j] == NULL) || hn_tape_dtype(t, t->captures[j]) == HN_UNDEFINED)
            continue;
        for (int i = 0; i < 2; i++)
            give_branch(t, g[i], dx[i * n + j], t->captures[j]);
        t->dcapture[j] = hn_graph_new_value(t->build->graph, "If");
        hn_node_add_out(node, t->dcapture[j]);
    }
    if (node->out->len == 0)
        hn_graph_remove_node(t->build->graph, node);
}

void hn_if_batch(HnBatch *b)
{
    const HnIf *p = b->params;
    if (hn_batch_split(b, 0)) {
        b->select(b, p->branch);
        return;
    }
    const HnTensor *known = hn_types_value(b->types, b->in[0].v);
    if (known != NULL && one_element(known))
        hn_batch_branches(b, &p->branch[*(const uint8_t *)known->data != 0], 1);
    else
        hn_batch_branches(b, p->branch, 2);
}

const HnOp hn_op_if = {
    .name = "If",
    .flags = HN_OP_CONTROL | HN_OP_DYNAMIC,
    .since = { 1, 11, 13, 16, 19, 21, 23, 24, 25 },
    .lacks = HN_LACKS({ '.', 16, 0, HN_BIT(HN_BF16) }, HN_SMALL_TYPES('.', 19)),
    .in = "b",
    .out = ".~",
    .params_size = sizeof(HnIf),
    .bind = if_bind,
    .infer = if_infer,
    .ref = if_ref,
    .grad = if_grad,
    .batch = hn_if_batch,
};
