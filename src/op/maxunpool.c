/*
 * MaxUnpool: puts every element of x where its index says in a tensor of zeros of the size that MaxPool would have
 * reduced to x's; with output_shape that tensor is the first corner of a larger one.
 */
#include <string.h>

#include "op/index.h"
#include "op/tape.h"
#include "op/types.h"
#include "op/window.h"

static void maxunpool_bind(HnBind *b, void *params)
{
    HnWindow *w = params;
    hn_bind_require(b, "kernel_shape");
    hn_window_bind(b, w, 0);
    w->pad_mode = HN_PAD_EXPLICIT;
    if (w->kernel == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'kernel_shape' is empty");
}

static HnDim pooled_from(const HnWindow *w, int axis, HnDim out)
{
    int64_t pads = w->pads != NULL ? w->pads[axis] + w->pads[w->n + axis] : 0;
    HnDim stride = hn_dim(w->strides != NULL ? w->strides[axis] : 1);
    return hn_dim_add(hn_dim_mul(hn_dim_sub(out, hn_dim(1)), stride), hn_dim(w->kernel[axis] - pads));
}

static void maxunpool_infer(HnInfer *x)
{
    const HnWindow *w = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && rank < 3) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", rank);
        return;
    }
    if (rank >= 0 && !hn_window_check(w, rank - 2, &x->error))
        return;
    const HnContents *shape = x->n_in > 2 ? x->contents[2] : NULL;
    for (int i = 0; i < rank; i++) {
        dims[i] = i < 2 ? hn_infer_dim(x, 0, i) : pooled_from(w, i - 2, hn_infer_dim(x, 0, i));
        if (hn_infer_has(x, 2))
            dims[i] = shape != NULL && shape->n == rank ? shape->d[i] : hn_dim_unknown();
        if (dims[i].known && dims[i].n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d of the output has a negative size", i);
            return;
        }
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

/* inner: dims of the tensor that the indices speak of; dims: those of the output */
static gboolean place(HnEval *e, int64_t *inner, int64_t *dims)
{
    const HnWindow *w = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1), *shape = hn_eval_in(e, 2);
    if (x->ndim < 3 || x->ndim > HN_MAX_RANK || at->dtype != HN_I64 || at->n != x->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input needs at least 3 dimensions and an index for each element");
        return FALSE;
    }
    if (!hn_window_check(w, x->ndim - 2, &e->error))
        return FALSE;
    if (shape != NULL && shape->n != x->ndim) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the output shape has %" PRId64 " elements, not %d", shape->n, x->ndim);
        return FALSE;
    }
    for (int i = 0; i < x->ndim; i++) {
        HnDim d = i < 2 ? hn_dim(x->dims[i]) : pooled_from(w, i - 2, hn_dim(x->dims[i]));
        inner[i] = d.known ? d.n : -1;
        dims[i] = shape != NULL ? hn_tensor_get_i64(shape, i) : inner[i];
        if (inner[i] < 0 || dims[i] < inner[i]) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "axis %d of the output cannot have size %" PRId64, i, dims[i]);
            return FALSE;
        }
    }
    return TRUE;
}

static void maxunpool_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t inner[HN_MAX_RANK], dims[HN_MAX_RANK], strides[HN_MAX_RANK], n;
    if (!place(e, inner, dims))
        return;
    char *y = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    if (y == NULL || !hn_dims_count(x->ndim, inner, &n))
        return;
    size_t size = hn_dtype_size(x->dtype);
    const int64_t *at = e->in[1]->data;
    memset(y, 0, e->out[0]->bytes);
    hn_strides(x->ndim, dims, strides);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t left = at[i], to = 0;
        if (left < 0 || left >= n) {
            hn_eval_fail(e, HN_ERROR_VALUE, "index %" PRId64 " is outside [0, %" PRId64 ")", left, n);
            return;
        }
        for (int k = x->ndim - 1; k >= 0; k--) {
            to += left % inner[k] * strides[k];
            left /= inner[k];
        }
        memcpy(y + (size_t)to * size, (const char *)x->data + (size_t)i * size, size);
    }
}

/* Indices speak of the corner that output_shape extends. */
static void maxunpool_grad(HnTape *t)
{
    int64_t x[HN_MAX_RANK], y[HN_MAX_RANK];
    const int rank = hn_tape_rank(t, 0);
    HnValue *dy = hn_tape_dy(t, 0);
    if (!hn_tape_needs(t, 0))
        return;
    if (hn_tape_in(t, 2) != NULL && (!hn_tape_dims(t, 0, x) || !hn_tape_out_dims(t, 0, y))) {
        hn_tape_refuse(t, "sizes are not known");
        return;
    }
    for (int i = 2; hn_tape_in(t, 2) != NULL && i < rank; i++) {
        const HnDim inner = pooled_from(t->params, i - 2, hn_dim(x[i]));
        if (!hn_dim_is(inner, y[i]))
            dy = hn_build_slice(t->build, dy, i, 0, inner.n);
    }
    dy = hn_build_reshape(t->build, dy, (int64_t[]){ -1 }, 1);
    hn_tape_give(t, 0, hn_build_op2(t->build, "Gather", dy, hn_tape_in(t, 1)));
}

const HnOp hn_op_maxunpool = {
    .name = "MaxUnpool",
    .since = { 9, 11, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .wide = HN_WIDE_PICKS,
    .in = "Tii",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .params_size = sizeof(HnWindow),
    .bind = maxunpool_bind,
    .infer = maxunpool_infer,
    .ref = maxunpool_ref,
    .grad = maxunpool_grad,
    .quant = { .kind = HN_Q_PASS },
};
