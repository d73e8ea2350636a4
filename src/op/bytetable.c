/*
 * hone.ByteTable: each byte of x is exchanged by the table's element of its number; what any function of one quantized
 * operand comes to. Signed bytes count from 0 to 255 by their bits. Planning makes it; no file has it.
 */
#include "op/op.h"

static void bytetable_infer(HnInfer *x)
{
    if (hn_infer_rank(x, 1) >= 0 && (hn_infer_rank(x, 1) != 1 || hn_dim_differ(hn_infer_dim(x, 1, 0), hn_dim(256))))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the table does not have 256 elements");
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 1), 0);
}

static void bytetable_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *table = hn_eval_in(e, 1);
    if (table->n != 256) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the table does not have 256 elements");
        return;
    }
    uint8_t *y = hn_eval_out(e, 0, table->dtype, x->ndim, x->dims);
    for (int64_t i = 0; y != NULL && i < x->n; i++)
        y[i] = ((const uint8_t *)table->data)[((const uint8_t *)x->data)[i]];
}

const HnOp hn_op_bytetable = {
    .name = "ByteTable",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_INPLACE,
    .since = { 1 },
    .in = "yU",
    .out = "U",
    .U = HN_BIT(HN_U8) | HN_BIT(HN_I8),
    .infer = bytetable_infer,
    .cost = hn_cost_elementwise,
    .ref = bytetable_ref,
};
