/*
 * ReverseSequence: the first elements of each sequence backwards; each sequence of the batch has its own length.
 */
#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/tape.h"

typedef struct {
    int batch_axis, time_axis; /* 0 and 1 in either order */
} HnReverse;

static void reversesequence_bind(HnBind *b, void *params)
{
    HnReverse *p = params;
    int64_t batch = hn_bind_int(b, "batch_axis", 1), when = hn_bind_int(b, "time_axis", 0);
    if (batch < 0 || batch > 1 || when != 1 - batch)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attributes 'batch_axis' and 'time_axis' are not 0 and 1");
    p->batch_axis = (int)CLAMP(batch, 0, 1);
    p->time_axis = 1 - p->batch_axis;
}

static void reversesequence_infer(HnInfer *x)
{
    const HnReverse *p = x->params;
    int rank = hn_infer_rank(x, 0), lens = hn_infer_rank(x, 1);
    if ((rank >= 0 && rank < 2) || (lens >= 0 && lens != 1) ||
        hn_dim_differ(hn_infer_dim(x, 0, p->batch_axis), hn_infer_dim(x, 1, 0)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the sequence lengths do not fit to the batch");
    hn_infer_same(x);
}

static void reversesequence_ref(HnEval *e)
{
    const HnReverse *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *lens = hn_eval_in(e, 1);
    size_t size = hn_move_size(e, x->dtype);
    if (size == 0)
        return;
    if (x->ndim < 2 || lens->ndim != 1 || lens->n != x->dims[p->batch_axis]) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the sequence lengths do not fit to the batch");
        return;
    }
    int64_t batch = lens->n, steps = x->dims[p->time_axis];
    for (int64_t b = 0; b < batch; b++)
        if (hn_tensor_get_i64(lens, b) < 0 || hn_tensor_get_i64(lens, b) > steps) {
            hn_eval_fail(e, HN_ERROR_VALUE, "a sequence length of %" PRId64 " does not fit to %" PRId64 " steps",
                         hn_tensor_get_i64(lens, b), steps);
            return;
        }
    char *y = hn_move_out(e, 0, x->dtype, x->ndim, x->dims);
    if (y == NULL)
        return;
    size_t run = (size_t)hn_span(x->dims, 2, x->ndim) * size;
    for (int64_t b = 0; b < batch && x->n > 0; b++) {
        int64_t len = hn_tensor_get_i64(lens, b);
        for (int64_t t = 0; t < steps; t++) {
            int64_t s = t < len ? len - 1 - t : t;
            int64_t to = p->batch_axis == 0 ? b * steps + t : t * batch + b;
            int64_t from = p->batch_axis == 0 ? b * steps + s : s * batch + b;
            memcpy(y + (size_t)to * run, (const char *)x->data + (size_t)from * run, run);
        }
    }
    hn_move_done(e, 0);
}

/* Backwards twice is forwards. */
static void reversesequence_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, 1) };
    HnNode *n = hn_build_node(t->build, "ReverseSequence", NULL, 2, in, 1);
    hn_node_share_attrs(n, t->node);
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

/* Samples are further sequences of the batch. */
void hn_reversesequence_batch(HnBatch *b)
{
    const HnReverse *p = b->params;
    if (!hn_batch_put(b, 0, p->batch_axis) || !hn_batch_put(b, 1, 0))
        return;
    if (!hn_batch_alike(&b->in[0].at, &b->in[1].at))
        hn_batch_fail(b, "its lengths hold the samples in another order");
    b->out[0] = b->in[0].at;
}

const HnOp hn_op_reversesequence = {
    .name = "ReverseSequence",
    .since = { 10, 28 },
    .lacks = HN_LACKS(HN_BF16_SINCE(28)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnReverse),
    .bind = reversesequence_bind,
    .infer = reversesequence_infer,
    .ref = reversesequence_ref,
    .batch = hn_reversesequence_batch,
    .grad = reversesequence_grad,
    .quant = { .kind = HN_Q_PASS },
};
