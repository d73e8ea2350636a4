/*
 * MaxPoolGrad (domain "hone"): each element of input 0, the gradient of a MaxPool's result, goes to the element of its
 * window in input 1, the source, that is equal to that of input 2, the result: the first of several. No places have to
 * be kept for it.
 */
#include <string.h>

#include "op/pool.h"
#include "op/types.h"

enum { DY, X, Y };

static void maxpoolgrad_bind(HnBind *b, void *params)
{
    HnPool *p = params;
    hn_bind_require(b, "kernel_shape");
    hn_window_bind(b, &p->window, HN_WINDOW_DILATIONS | HN_WINDOW_CEIL);
    if (p->window.kernel == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'kernel_shape' is empty");
}

static void maxpoolgrad_infer(HnInfer *x)
{
    hn_infer_out_like(x, 0, X);
}

/* A plane; `left`: what of dy has found no place. */
typedef struct {
    const HnTensor *x, *y;
    int64_t x_at, y_at;
    double *left, *sum;
} Plane;

static void give(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len)
{
    const Plane *p = data;
    (void)k;
    for (int64_t i = 0; i < len; i++) {
        const double from = hn_tensor_get_f64(p->x, p->x_at + x + i * step);
        if (!(from == hn_tensor_get_f64(p->y, p->y_at + y + i)))
            continue;
        p->sum[x + i * step] += p->left[y + i];
        p->left[y + i] = 0;
    }
}

static void maxpoolgrad_ref(HnEval *e)
{
    const HnTensor *dy = hn_eval_in(e, DY), *x = hn_eval_in(e, X), *y = hn_eval_in(e, Y);
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    if (!hn_pool_place(e->params, x->ndim, x->dims, axis, dims, &e->error))
        return;
    if (!hn_tensor_has_dims(dy, x->ndim, dims) || !hn_tensor_has_dims(y, x->ndim, dims)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "inputs 0 and 2 do not have the shape of the pool's result");
        return;
    }
    void *dx = hn_eval_out_like(e, 0, x);
    const int64_t planes = dims[0] * dims[1], x_plane = planes > 0 ? x->n / planes : 0,
                  y_plane = planes > 0 ? y->n / planes : 0;
    double *room = dx != NULL ? hn_eval_scratch(e, x_plane + y_plane + 1, sizeof(double)) : NULL;
    for (int64_t c = 0; room != NULL && c < planes; c++) {
        Plane p = { x, y, c * x_plane, c * y_plane, room, room + y_plane };
        memset(p.sum, 0, (size_t)x_plane * sizeof(double));
        for (int64_t i = 0; i < y_plane; i++)
            p.left[i] = hn_tensor_get_f64(dy, p.y_at + i);
        hn_window_rows(x->ndim - 2, axis, give, &p);
        for (int64_t i = 0; i < x_plane; i++)
            hn_tensor_set_f64(e->out[0], p.x_at + i, p.sum[i]);
    }
    if (room != NULL)
        hn_eval_scratch_free(e, room);
}

const HnOp hn_op_maxpoolgrad = {
    .name = "MaxPoolGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnPool),
    .bind = maxpoolgrad_bind,
    .infer = maxpoolgrad_infer,
    .cost = hn_cost_elementwise,
    .ref = maxpoolgrad_ref,
};
