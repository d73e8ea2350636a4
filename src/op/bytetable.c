/*
 * hone.ByteTable: each byte of x is exchanged by the table's element of its number; what any function of one quantized
 * operand comes to. Signed bytes count from 0 to 255 by their bits. Lowering makes it; no file has it.
 *
 * Inputs: x, table [256], scale, zero. The last two are for lowering alone: most elements of a table of f32 are
 * (integer - zero) * scale.
 */
#include "op/batch.h"

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
    const uint8_t *from = x->data;
    void *y = hn_eval_out(e, 0, table->dtype, x->ndim, x->dims);
    if (y != NULL && table->dtype == HN_F32)
        for (int64_t i = 0; i < x->n; i++)
            ((float *)y)[i] = ((const float *)table->data)[from[i]];
    else if (y != NULL)
        for (int64_t i = 0; i < x->n; i++)
            ((uint8_t *)y)[i] = ((const uint8_t *)table->data)[from[i]];
}

static void bytetable_batch(HnBatch *b)
{
    hn_batch_quantize(b, FALSE, 0);
}

const HnOp hn_op_bytetable = {
    .name = "ByteTable",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_INPLACE,
    .since = { 1 },
    .in = "yUfV",
    .out = "U",
    .U = HN_BIT(HN_U8) | HN_BIT(HN_I8) | HN_BIT(HN_F32),
    .V = HN_BIT(HN_U8) | HN_BIT(HN_I8),
    .min_in = 2,
    .infer = bytetable_infer,
    .cost = hn_cost_elementwise,
    .ref = bytetable_ref,
    .batch = bytetable_batch,
};
