/*
 * A constant that the result of a product with weights (Conv, ConvTranspose, Gemm, MatMul) is multiplied by, divided by
 * or added to, one number for all or one for each output channel, goes into its weights and bias.
 */
#include "pass/weights.h"

static gboolean fuse_arithmetic_into_weights(HnRewrite *r, HnNode *n)
{
    g_auto(HnLinear) l = { 0 };
    g_auto(HnAffine) a = { 0 };
    if (n->op == &hn_op_batchnormalization)
        return FALSE;
    HnValue *y = hn_affine_data(r, n);
    if (y == NULL || y->producer == NULL || !hn_linear_read(r, y, &l))
        return FALSE;
    if (!hn_rw_single(y))
        return hn_rw_miss(r, n, "'%s' is used by others too", y->name);
    if (!hn_affine_read(r, n, l.rank, l.axis, l.channels, &a))
        return hn_rw_miss(r, n, "its constant is not one number for each channel of '%s'", hn_node_label(l.node));
    return hn_linear_absorb(r, n, &l, &a);
}

const HnPass hn_pass_fuse_arithmetic_into_weights = {
    .name = "fuse-arithmetic-into-weights",
    .summary = "Add, Sub, Mul, Div by constants into the weights of the convolution or matrix product before them",
    .level = 1,
    .node = fuse_arithmetic_into_weights,
};
