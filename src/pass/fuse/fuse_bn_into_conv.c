/*
 * BatchNormalization behind a product with constant weights (Conv, ConvTranspose, Gemm, MatMul) scales the weights and
 * shifts the bias:
 *     w' = w * s / sqrt(var + epsilon), b' = (b - mean) * s / sqrt(var + epsilon) + shift, per output channel.
 */
#include "op/batchnorm.h"
#include "pass/lib/weights.h"

static gboolean fuse_bn_into_conv(HnRewrite *r, HnNode *n)
{
    g_auto(HnLinear) l = { 0 };
    g_auto(HnAffine) a = { 0 };
    if (n->op != &hn_op_batchnormalization || !hn_linear_read(r, hn_node_in(n, 0), &l))
        return FALSE;
    if (hn_affine_data(r, n) == NULL)
        return hn_rw_miss(r, n, "BatchNormalization computes its own statistics");
    if (!hn_rw_single(l.y))
        return hn_rw_miss(r, n, "'%s' is used by others too", l.y->name);
    if (!hn_affine_read(r, n, l.rank, l.axis, l.channels, &a))
        return hn_rw_miss(r, n, "its scale, shift, mean and variance are not constants of %" PRId64 " channels",
                          l.channels);
    return hn_linear_absorb(r, n, &l, &a);
}

const HnPass hn_pass_fuse_bn_into_conv = {
    .name = "fuse-bn-into-conv",
    .summary = "BatchNormalization into the weights of the convolution or matrix product before it",
    .level = 1,
    .node = fuse_bn_into_conv,
};
