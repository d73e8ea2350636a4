/*
 * NonZero and Compress: what is selected by its elements. Their results have a size that only a run knows.
 */
#include <inttypes.h>
#include <string.h>

#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"

static void nonzero_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0);
    HnDim dims[2] = { rank >= 0 ? hn_dim(rank) : hn_dim_unknown(), hn_dim_unknown() };
    hn_infer_out(x, 0, HN_I64, 2, dims);
}

/* 1 where an element is not zero (a NaN is not). */
static gboolean nonzero_mask(HnEval *e, const HnTensor *x, uint8_t *mask)
{
#define MASK(T)                        \
    const T *s = x->data;              \
    for (int64_t i = 0; i < x->n; i++) \
        mask[i] = s[i] != 0;
    switch (x->dtype) {
        HN_CASE(HN_BOOL, uint8_t, MASK)
    case HN_F16:
    case HN_BF16: { /* all but the sign */
        const uint16_t *s = x->data;
        for (int64_t i = 0; i < x->n; i++)
            mask[i] = (s[i] & 0x7fff) != 0;
        break;
    }
    case HN_STRING:
        for (int64_t i = 0; i < x->n; i++)
            mask[i] = g_bytes_get_size(hn_tensor_get_string(x, i)) != 0;
        break;
    default:
        if (!hn_dtype_in(x->dtype, HN_T_NUM)) {
            hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "elements of type %s are not computed with", hn_dtype_name(x->dtype));
            return FALSE;
        }
        HN_FOR_NUM(x->dtype, MASK)
        break;
    }
#undef MASK
    return TRUE;
}

static void nonzero_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t n = 0, idx[HN_MAX_RANK] = { 0 };
    uint8_t *mask = hn_eval_scratch(e, x->n, 1);
    if (mask != NULL && nonzero_mask(e, x, mask)) {
        for (int64_t i = 0; i < x->n; i++)
            n += mask[i];
        int64_t *y = hn_eval_out(e, 0, HN_I64, 2, (int64_t[]){ x->ndim, n }), k = 0;
        for (int64_t i = 0; y != NULL && i < x->n; i++) {
            if (mask[i]) {
                for (int a = 0; a < x->ndim; a++)
                    y[a * n + k] = idx[a];
                k++;
            }
            hn_index_next(x->ndim, x->dims, idx, 0, NULL, NULL);
        }
    }
    hn_eval_scratch_free(e, mask);
}

const HnOp hn_op_nonzero = {
    .name = "NonZero",
    .flags = HN_OP_DYNAMIC,
    .since = { 9, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "i",
    .T = HN_T_PLAIN,
    .infer = nonzero_infer,
    .ref = nonzero_ref,
};

/* --- Compress -------------------------------------------------------------------------------------------------------
 */

typedef struct {
    gboolean flat; /* no axis: elements of the flattened input */
    int64_t axis;
} HnCompress;

static void compress_bind(HnBind *b, void *params)
{
    HnCompress *p = params;
    p->flat = !hn_bind_has(b, "axis");
    p->axis = hn_bind_int(b, "axis", 0);
}

static void compress_infer(HnInfer *x)
{
    const HnCompress *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK] = { hn_dim_unknown() };
    if (hn_infer_rank(x, 1) >= 0 && hn_infer_rank(x, 1) != 1)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the condition has %d dimensions instead of 1", hn_infer_rank(x, 1));
    if (p->flat) {
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), 1, dims);
        return;
    }
    int axis = rank >= 0 ? hn_infer_axis(x, p->axis, rank) : 0;
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? hn_dim_unknown() : hn_infer_dim(x, 0, a);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static void compress_ref(HnEval *e)
{
    const HnCompress *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *condition = hn_eval_in(e, 1);
    const uint8_t *take = condition->data;
    size_t size = hn_move_size(e, x->dtype);
    int axis = p->flat ? 0 : hn_eval_axis(e, p->axis, x->ndim);
    if (size == 0 || axis < 0)
        return;
    int64_t dims[HN_MAX_RANK], n = 0, len = p->flat ? x->n : x->dims[axis];
    for (int64_t i = 0; i < condition->n && condition->dtype == HN_BOOL; i++) {
        if (take[i] && i >= len) {
            hn_eval_fail(e, HN_ERROR_VALUE, "the condition selects index %" PRId64 " of an axis of %" PRId64, i, len);
            return;
        }
        n += take[i] != 0;
    }
    memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    dims[axis] = n;
    int64_t outer = p->flat ? 1 : hn_span(x->dims, 0, axis);
    size_t run = p->flat ? size : (size_t)hn_span(x->dims, axis + 1, x->ndim) * size;
    char *y = hn_move_out(e, 0, x->dtype, p->flat ? 1 : x->ndim, dims);
    if (y == NULL)
        return;
    for (int64_t o = 0; o < outer && n > 0 && run > 0; o++)
        for (int64_t i = 0; i < MIN(condition->n, len); i++)
            if (take[i]) {
                memcpy(y, (const char *)x->data + (size_t)(o * len + i) * run, run);
                y += run;
            }
    hn_move_done(e, 0);
}

const HnOp hn_op_compress = {
    .name = "Compress",
    .flags = HN_OP_DYNAMIC,
    .since = { 9, 11, 28 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(28)),
    .wide = HN_WIDE_PICKS,
    .in = "Tb",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnCompress),
    .bind = compress_bind,
    .infer = compress_infer,
    .cost = hn_cost_move,
    .ref = compress_ref,
    .grad = hn_tape_moved,
    .quant = { .kind = HN_Q_PASS },
};
