/*
 * A constant that the result of a product with weights (Conv, ConvTranspose, Gemm, MatMul) is multiplied by, divided by
 * or added to, one number for all or one for each output channel, goes into its weights and bias. A number for all gets
 * there through views and Transposes too.
 */
#include "pass/shapes.h"
#include "pass/lib/weights.h"

#define MOST_VIEWS 4 /* between the product and the constant */

/* What y is a view of: made in the same graph, for y alone. */
static HnValue *source_of(HnValue *y)
{
    for (int i = 0; i < MOST_VIEWS && y->producer != NULL; i++) {
        HnNode *n = y->producer;
        if (n->graph != y->graph || (n->op != &hn_op_transpose && !hn_shapes_is_view(n)) || !hn_rw_single(y))
            break;
        y = hn_node_in(n, 0);
    }
    return y;
}

static gboolean fuse_arithmetic_into_weights(HnRewrite *r, HnNode *n)
{
    g_auto(HnLinear) l = { 0 };
    g_auto(HnAffine) a = { 0 };
    if (n->op == &hn_op_batchnormalization)
        return FALSE;
    HnValue *y = hn_affine_data(r, n), *source = y != NULL ? source_of(y) : NULL;
    if (source == NULL || source->producer == NULL || !hn_linear_read(r, source, &l))
        return FALSE;
    if (!hn_rw_single(y) || !hn_rw_single(source))
        return hn_rw_miss(r, n, "'%s' is used by others too", hn_rw_single(y) ? source->name : y->name);
    if (source == y ? !hn_affine_read(r, n, l.rank, l.axis, l.channels, &a) : !hn_affine_number(r, n, l.channels, &a))
        return hn_rw_miss(r, n, "its constant is not one number for each channel of '%s'", hn_node_label(l.node));
    return hn_linear_absorb(r, n, &l, &a);
}

const HnPass hn_pass_fuse_arithmetic_into_weights = {
    .name = "fuse-arithmetic-into-weights",
    .summary = "Add, Sub, Mul, Div by constants into the weights of the convolution or matrix product before them",
    .level = 1,
    .node = fuse_arithmetic_into_weights,
};
