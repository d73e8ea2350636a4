/*
 * SequenceMap: runs its body once for each element of its first input; further inputs that are sequences give their
 * element of the same place, tensors are the same each time. The body's results are collected in sequences.
 */
#include "op/control.h"
#include "op/sequence.h"

typedef struct {
    HnGraph *body;
} Map;

static void map_bind(HnBind *b, void *params)
{
    Map *p = params;
    p->body = hn_bind_graph(b, "body");
    if (b->error == NULL && (p->body->inputs->len != b->node->in->len || p->body->outputs->len != b->node->out->len))
        hn_bind_fail(b, HN_ERROR_GRAPH, "the body has %u inputs and %u outputs, not %u and %u", p->body->inputs->len,
                     p->body->outputs->len, b->node->in->len, b->node->out->len);
}

static void map_infer(HnInfer *x)
{
    const Map *p = x->params;
    g_autofree HnType **in = g_new0(HnType *, (gsize)x->n_in + 1), **out = g_new0(HnType *, (gsize)x->n_out + 1);
    in[0] = hn_infer_elements(x, 0);
    for (int i = 1; i < x->n_in; i++)
        in[i] = x->in[i] != NULL && x->in[i]->kind == HN_TYPE_SEQUENCE ? x->in[i]->elem : x->in[i];
    if (x->error == NULL && x->graph(x, p->body, x->n_in, in, x->n_out, out))
        for (int k = 0; k < x->n_out; k++)
            hn_infer_out_sequence(x, k, g_steal_pointer(&out[k]));
    hn_control_unref_types(out, x->n_out);
}

/* One run for element i of the first input. */
static void run_body(HnEval *e, int64_t i, HnTensor **in, HnTensor **out, HnTensor **lists)
{
    const Map *p = e->params;
    for (int k = 0; k < e->n_in; k++)
        in[k] = e->in[k]->dtype == HN_SEQUENCE ? hn_tensor_get_item(e->in[k], i) : e->in[k];
    if (!hn_budget_ask(e->budget, &e->error) || !e->graph(e, p->body, e->n_in, in, e->n_out, out))
        return;
    for (int k = 0; k < e->n_out && e->error == NULL; k++) {
        g_autoptr(HnTensor) element = lists[k] != NULL ? hn_list_element(e, out[k]) : NULL;
        if (element != NULL)
            hn_tensor_set_item(lists[k], i, element);
    }
    hn_control_unref(out, e->n_out);
}

static void map_ref(HnEval *e)
{
    const HnTensor *first = hn_eval_sequence(e, 0);
    if (first == NULL)
        return;
    for (int k = 1; k < e->n_in; k++)
        if (e->in[k]->dtype == HN_SEQUENCE && e->in[k]->n != first->n)
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d has %" PRId64 " elements, input 0 has %" PRId64, k, e->in[k]->n,
                         first->n);
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)e->n_in + 1), **out = g_new0(HnTensor *, (gsize)e->n_out + 1),
                        **lists = g_new0(HnTensor *, (gsize)e->n_out + 1);
    for (int k = 0; k < e->n_out && e->error == NULL; k++)
        if (hn_eval_wants(e, k))
            lists[k] = hn_eval_out_list(e, k, HN_SEQUENCE, first->n);
    for (int64_t i = 0; i < first->n && e->error == NULL; i++)
        run_body(e, i, in, out, lists);
}

const HnOp hn_op_sequencemap = {
    .name = "SequenceMap",
    .flags = HN_OP_CONTROL,
    .since = { 17 },
    .in = ".~",
    .out = ".~",
    .params_size = sizeof(Map),
    .bind = map_bind,
    .infer = map_infer,
    .ref = map_ref,
};
