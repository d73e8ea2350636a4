/*
 * Trilu: the upper or lower triangle of each matrix, zeros elsewhere.
 */
#include "op/trilu.h"

#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/unbind.h"

static void trilu_bind(HnBind *b, void *params)
{
    ((HnTrilu *)params)->upper = hn_bind_bool(b, "upper", TRUE);
}

static void trilu_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0 && rank < 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 2 are needed", rank);
    hn_infer_same(x);
}

static void trilu_ref(HnEval *e)
{
    const HnTrilu *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    size_t size = hn_move_size(e, x->dtype);
    int64_t k = 0;
    if (size == 0 || (hn_eval_in(e, 1) != NULL && !hn_eval_int(e, 1, &k)))
        return;
    if (x->ndim < 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input has %d dimensions, at least 2 are needed", x->ndim);
        return;
    }
    char *y = hn_move_out(e, 0, x->dtype, x->ndim, x->dims);
    if (y == NULL)
        return;
    const char *src = x->data;
    int64_t rows = x->dims[x->ndim - 2], cols = x->dims[x->ndim - 1];
    k = CLAMP(k, -rows, cols);
    for (int64_t r = 0; x->n > 0 && r < x->n / cols; r++) {
        /* columns [0, cut) are left of the diagonal; the lower triangle takes the diagonal along */
        int64_t cut = CLAMP(r % rows + k + (p->upper ? 0 : 1), 0, cols);
        size_t left = (size_t)cut * size, row = (size_t)cols * size;
        memset(y + (p->upper ? 0 : left), 0, p->upper ? left : row - left);
        memcpy(y + (p->upper ? left : 0), src + (p->upper ? left : 0), p->upper ? row - left : left);
        y += row;
        src += row;
    }
    hn_move_done(e, 0);
}

#define MASK_BYTES ((int64_t)1 << 22)

/* What is left out, as a constant: row r, column c of [rows, cols]; diagonal k is kept. */
static HnValue *known_mask(HnUnbind *u, int64_t rows, int64_t cols, int64_t k, gboolean upper)
{
    HnTensor *t = hn_tensor_new(HN_BOOL, 2, (int64_t[]){ rows, cols }, NULL, NULL);
    for (int64_t i = 0; i < t->n; i++)
        ((uint8_t *)t->data)[i] = upper ? i % cols - i / cols < k : i % cols - i / cols > k;
    return hn_unbind_const(u, t);
}

static HnValue *count_to(HnUnbind *u, HnValue *x, int64_t axis)
{
    HnNode *n = hn_unbind_node(u, "Squeeze", 1, (HnValue *[]){ hn_unbind_size(u, x, axis) }, 1);
    return hn_unbind_op3(u, "Range", hn_unbind_scalar(u, HN_I64, 0), hn_node_out(n, 0), hn_unbind_scalar(u, HN_I64, 1));
}

static void trilu_unbind(HnUnbind *u)
{
    const HnTrilu *p = u->params;
    HnDtype dtype = hn_unbind_dtype(u, 0);
    int64_t rows = hn_unbind_dim(u, 0, -2), cols = hn_unbind_dim(u, 0, -1);
    double k = 0;
    HnValue *x = hn_unbind_in(u, 0), *given = hn_unbind_in(u, 1), *out;
    if (u->to >= 14)
        return;
    if (!hn_dtype_in(dtype, HN_T_COMPUTE)) {
        hn_unbind_refuse(u, "the operator exists since opset 14");
        return;
    }
    if ((given == NULL || hn_unbind_number(u, 1, &k)) && rows > 0 && cols > 0 && rows <= MASK_BYTES / cols) {
        out = known_mask(u, rows, cols, (int64_t)k, p->upper);
    } else {
        HnValue *r = hn_unbind_op2(u, "Unsqueeze", count_to(u, x, -2), hn_unbind_int(u, 1)), *c = count_to(u, x, -1);
        out = hn_unbind_op2(u, p->upper ? "Less" : "Greater", hn_unbind_op2(u, "Sub", c, r),
                            given != NULL ? given : hn_unbind_scalar(u, HN_I64, 0));
    }
    hn_unbind_take(u, 0, hn_unbind_op3(u, "Where", out, hn_unbind_scalar(u, dtype, 0), x));
}

static void trilu_grad(HnTape *t)
{
    HnNode *n = hn_build_node(t->build, "Trilu", NULL, 2, (HnValue *[]){ hn_tape_dy(t, 0), hn_tape_in(t, 1) }, 1);
    hn_node_share_attrs(n, t->node);
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

const HnOp hn_op_trilu = {
    .name = "Trilu",
    .since = { 14 },
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_PLAIN,
    .min_in = 1,
    .unbind = trilu_unbind,
    .params_size = sizeof(HnTrilu),
    .bind = trilu_bind,
    .infer = trilu_infer,
    .ref = trilu_ref,
    .grad = trilu_grad,
    .batch = hn_batch_last_two,
};
