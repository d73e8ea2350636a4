/*
 * DynamicQuantizeLSTM of ONNX Runtime's domain: op/recurrent.h has what its inputs are.
 */
#include "op/contrib.h"
#include "op/recurrent.h"

static void dynamic_bind(HnBind *b, void *params)
{
    HnRecurrent *p = params;
    hn_lstm_bind(b, p);
    p->dynamic = TRUE;
    p->batch_first = FALSE;
    for (int i = HN_DYNAMIC_W_SCALE; i < HN_DYNAMIC_INPUTS; i++)
        if (hn_node_in(b->node, i) == NULL) {
            hn_bind_fail(b, HN_ERROR_GRAPH, "input %d is missing", i);
            return;
        }
}

static void dynamic_infer(HnInfer *x)
{
    const HnRecurrent *p = x->params;
    const HnDim directions = hn_dim(p->direction == HN_BIDIRECTIONAL ? 2 : 1), batch = hn_infer_dim(x, 0, 1);
    HnDim hidden = hn_infer_dim(x, 2, 1);
    for (int i = 0; i < 3; i++)
        if (hn_infer_rank(x, i) >= 0 && hn_infer_rank(x, i) != 3) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, not 3", i, hn_infer_rank(x, i));
            return;
        }
    if (!hidden.known && p->hidden > 0)
        hidden = hn_dim(p->hidden);
    hn_infer_out(x, 0, HN_F32, 4, (HnDim[]){ hn_infer_dim(x, 0, 0), directions, batch, hidden });
    for (int k = 1; k < 3; k++)
        hn_infer_out(x, k, HN_F32, 3, (HnDim[]){ directions, batch, hidden });
}

static void dynamic_cost(const HnInfer *x, HnCost *c)
{
    const double rows = (double)hn_infer_dim(x, 0, 0).n * (double)hn_infer_dim(x, 0, 1).n;
    c->flops = 2 * rows * (hn_type_count(x->in[1]) + hn_type_count(x->in[2]));
}

const HnOp hn_op_dynamicquantizelstm = {
    .name = "DynamicQuantizeLSTM",
    .domain = HN_DOMAIN_CONTRIB,
    .since = { 1 },
    .in = "fTUfjffffTfU",
    .out = "fff",
    .T = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .U = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .min_in = 3,
    .params_size = sizeof(HnRecurrent),
    .bind = dynamic_bind,
    .infer = dynamic_infer,
    .cost = dynamic_cost,
    .ref = hn_recurrent_ref,
};
