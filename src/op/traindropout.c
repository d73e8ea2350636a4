/*
 * TrainDropout (domain "hone"): x / (1 - ratio) where an element is kept and 0 where it is dropped, one of `ratio` by
 * chance, which follows from state = i64[2] { seed, step }, attribute `salt` and the element's place: bits 32 k to
 * 32 k + 31 of Philox 4x32-10 (base/philox.h), where k is place % 4, the key is the seed, and the counter is place / 4
 * (64 bits), step and salt (32 each). So the same elements are dropped however the work is spread, in a gradient, and
 * when a value is made again.
 */
#include "op/traindropout.h"

#include <string.h>

#include "base/philox.h"
#include "op/tape.h"
#include "op/types.h"

static void traindropout_bind(HnBind *b, void *params)
{
    HnTrainDropout *p = params;
    const int64_t salt = hn_bind_int(b, "salt", 0);
    p->ratio = (double)hn_bind_float(b, "ratio", 0.5f);
    if (!(p->ratio >= 0 && p->ratio < 1)) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "ratio %g is outside [0, 1)", p->ratio);
        return;
    }
    if (salt < 0 || salt > UINT32_MAX)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "salt %" PRId64 " is outside [0, 2^32)", salt);
    p->threshold = (uint32_t)(p->ratio * 4294967296.0);
    p->salt = (uint32_t)salt;
}

static void traindropout_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 1);
    const HnDim n = hn_infer_dim(x, 1, 0);
    if ((rank >= 0 && rank != 1) || (rank == 1 && n.known && !hn_dim_is(n, HN_DROPOUT_STATE)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 1 is not of %d elements", HN_DROPOUT_STATE);
    hn_infer_same(x);
}

static void traindropout_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 16 * hn_type_count(x->out[0]);
}

static void traindropout_ref(HnEval *e)
{
    const HnTrainDropout *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *state = hn_eval_in(e, 1);
    if (state->n != HN_DROPOUT_STATE) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 1 is not of %d elements", HN_DROPOUT_STATE);
        return;
    }
    const int64_t *s = state->data;
    if (hn_eval_out_like(e, 0, x) == NULL)
        return;
    uint32_t word[4] = { 0 };
    for (int64_t i = 0; i < x->n; i++) {
        if (i % 4 == 0) {
            memcpy(word,
                   (uint32_t[]){ (uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), (uint32_t)s[HN_DROPOUT_STEP], p->salt },
                   sizeof word);
            hn_philox((uint64_t)s[HN_DROPOUT_SEED], word);
        }
        hn_tensor_set_f64(e->out[0], i, word[i % 4] < p->threshold ? 0 : hn_tensor_get_f64(x, i) / (1 - p->ratio));
    }
}

/* The mask is made again. */
static void traindropout_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 1) };
    if (in[0] != NULL && hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "TrainDropout", 2, in, 1), 0));
}

const HnOp hn_op_traindropout = {
    .name = "TrainDropout",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE,
    .since = { 1 },
    .in = "Ti",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnTrainDropout),
    .bind = traindropout_bind,
    .infer = traindropout_infer,
    .cost = traindropout_cost,
    .ref = traindropout_ref,
    .grad = traindropout_grad,
};
