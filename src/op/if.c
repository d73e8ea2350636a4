/*
 * If: runs one of two sub-graphs.
 */
#include "op/control.h"

typedef struct {
    HnGraph *branch[2]; /* else, then */
} HnIf;

static void if_bind(HnBind *b, void *params)
{
    HnIf *p = params;
    p->branch[0] = hn_bind_graph(b, "else_branch");
    p->branch[1] = hn_bind_graph(b, "then_branch");
    for (int i = 0; b->error == NULL && i < 2; i++)
        if (p->branch[i]->inputs->len > 0 || p->branch[i]->outputs->len != b->node->out->len)
            hn_bind_fail(b, HN_ERROR_GRAPH, "branch '%s' has %u inputs and %u outputs, not 0 and %u",
                         i == 0 ? "else_branch" : "then_branch", p->branch[i]->inputs->len, p->branch[i]->outputs->len,
                         b->node->out->len);
}

static gboolean one_element(const HnTensor *t)
{
    return t->dtype == HN_BOOL && t->n == 1;
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
        hn_control_out(x, k, known ? g_steal_pointer(&one[k]) : hn_control_common(one[k], two[k]));
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
};
