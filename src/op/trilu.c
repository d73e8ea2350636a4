/*
 * Trilu: the upper or lower triangle of each matrix, zeros elsewhere.
 */
#include "op/trilu.h"

#include <inttypes.h>
#include <string.h>

#include "op/move.h"

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

const HnOp hn_op_trilu = {
    .name = "Trilu",
    .since = { 14 },
    .in = "Ti",
    .out = "T",
    .T = HN_T_PLAIN,
    .min_in = 1,
    .params_size = sizeof(HnTrilu),
    .bind = trilu_bind,
    .infer = trilu_infer,
    .ref = trilu_ref,
};
