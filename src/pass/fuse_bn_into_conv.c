/*
 * BatchNormalization behind a convolution scales its weights and shifts its bias:
 *     w' = w * s / sqrt(var + epsilon), b' = (b - mean) * s / sqrt(var + epsilon) + shift, per output channel.
 */
#include <math.h>

#include "op/batchnorm.h"
#include "pass/weights.h"

static gboolean fuse_bn_into_conv(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_batchnormalization || n->out->len != 1)
        return FALSE;
    HnValue *x = hn_node_in(n, 0);
    HnNode *conv = hn_rw_maker(x, &hn_op_conv);
    if (conv == NULL)
        return FALSE;
    const HnBatchNorm *p = n->params;
    const HnTensor *w = hn_rw_const(r, hn_node_in(conv, 1)), *b = hn_rw_const(r, hn_node_in(conv, 2)), *s[4];
    if (p->training || p->per_element)
        return hn_rw_miss(r, n, "BatchNormalization computes its own statistics");
    if (!hn_rw_single(x))
        return hn_rw_miss(r, n, "'%s' is used by others too", x->name);
    if (w == NULL || w->ndim < 1 || (hn_node_in(conv, 2) != NULL && b == NULL))
        return hn_rw_miss(r, n, "the weights of '%s' are not constant", hn_node_label(conv));
    const int64_t c = w->dims[0];
    for (int i = 0; i < 4; i++) {
        s[i] = hn_rw_const(r, hn_node_in(n, i + 1));
        if (s[i] == NULL || s[i]->n != c)
            return hn_rw_miss(r, n, "its scale, shift, mean and variance are not constants of %" PRId64 " channels", c);
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    g_autofree double *scale = g_new(double, (gsize)c + 1), *shift = g_new(double, (gsize)c + 1);
    for (int64_t i = 0; i < c; i++) {
        scale[i] = hn_tensor_get_f64(s[0], i) / sqrt(hn_tensor_get_f64(s[3], i) + (double)p->epsilon);
        shift[i] = hn_tensor_get_f64(s[1], i) - hn_tensor_get_f64(s[2], i) * scale[i];
    }
    return hn_weights_affine(r, conv, 0, scale, shift) && hn_rw_take(r, conv, n);
}

const HnPass hn_pass_fuse_bn_into_conv = {
    .name = "fuse-bn-into-conv",
    .summary = "BatchNormalization into the weights of the convolution before it",
    .level = 1,
    .node = fuse_bn_into_conv,
};
