#include "op/conv_grad.h"

HnNode *hn_conv_backward(HnTape *t, const HnConvPlan *p, const char *op, const char *domain, int n_in,
                         HnValue *const *in, int n_out)
{
    int64_t kernel[HN_MAX_RANK], strides[HN_MAX_RANK], dilations[HN_MAX_RANK], pads[2 * HN_MAX_RANK];
    HnNode *n = hn_build_node(t->build, op, domain, n_in, in, n_out);
    for (int i = 0; i < p->n; i++) {
        kernel[i] = p->axis[i].kernel;
        strides[i] = p->axis[i].stride;
        dilations[i] = p->axis[i].dilation;
        pads[i] = p->axis[i].pad;
        pads[p->n + i] = p->axis[i].pad_end;
    }
    hn_node_set_ints(n, "kernel_shape", kernel, p->n);
    hn_node_set_ints(n, "strides", strides, p->n);
    hn_node_set_ints(n, "dilations", dilations, p->n);
    hn_node_set_ints(n, "pads", pads, 2 * p->n);
    hn_node_set_int(n, "group", p->group);
    return n;
}

void hn_conv_bias_grad(HnTape *t)
{
    HnValue *b = hn_tape_in(t, 2);
    const int rank = hn_tape_rank(t, 0);
    int64_t dims[HN_MAX_RANK];
    if (!hn_tape_needs(t, 2))
        return;
    for (int i = 0; i < rank - 1; i++)
        dims[i] = i == 0 ? -1 : 1;
    HnValue *like = hn_build_reshape(t->build, b, dims, rank - 1);
    hn_tape_give(t, 2, hn_tape_reshape_like(t, hn_tape_sum_like(t, hn_tape_dy(t, 0), like), b));
}
