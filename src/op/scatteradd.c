/*
 * ScatterAdd (domain "hone"): zeros in the shape of input 2, to which the elements of input 0 are added: element i to
 * the place whose number, counted from 1, is element i of input 1; 0 is no place. What the gradient of an operator that
 * moves elements is.
 */
#include <inttypes.h>
#include <string.h>

#include "op/tape.h"

static void scatteradd_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 0), 2);
}

static void scatteradd_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1), *like = hn_eval_in(e, 2);
    if (x->n != at->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " elements for %" PRId64 " places", x->n, at->n);
        return;
    }
    void *y = hn_eval_out(e, 0, x->dtype, like->ndim, like->dims);
    if (y == NULL)
        return;
    memset(y, 0, e->out[0]->bytes);
    const int64_t *to = at->data;
    for (int64_t i = 0; i < x->n; i++) {
        if (to[i] < 0 || to[i] > like->n) {
            hn_eval_fail(e, HN_ERROR_VALUE, "there is no place %" PRId64, to[i]);
            return;
        }
        if (to[i] == 0)
            continue;
        if (x->dtype == HN_F32)
            ((float *)y)[to[i] - 1] += ((const float *)x->data)[i];
        else
            ((double *)y)[to[i] - 1] += ((const double *)x->data)[i];
    }
}

static void scatteradd_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]);
}

const HnOp hn_op_scatteradd = {
    .name = "ScatterAdd",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TiT",
    .out = "T",
    .T = HN_T_FLOATS,
    .infer = scatteradd_infer,
    .cost = scatteradd_cost,
    .ref = scatteradd_ref,
};
