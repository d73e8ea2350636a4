/*
 * ResizeGrad (domain "hone"): the gradient of what a Resize reads, in the shape of input 0, of which nothing else is
 * read. Attributes and inputs 1 to 3 are the Resize's, input 4 is the gradient of its result: each element of that goes
 * to the elements that it is a mean of, by their weights, axis by axis. What lay outside of a cropped input goes
 * nowhere.
 */
#include <string.h>

#include "op/index.h"
#include "op/ops.h"
#include "op/resize.h"

static void resizegrad_bind(HnBind *b, void *params)
{
    hn_resize_bind(b, HN_OPSET_MAX, params);
    if (hn_node_in(b->node, 4) == NULL)
        hn_bind_fail(b, HN_ERROR_GRAPH, "input 4 is missing");
}

static void resizegrad_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 4), 0);
}

static void resizegrad_cost(const HnInfer *x, HnCost *c)
{
    const HnResize *p = x->params;
    c->flops = hn_type_count(x->in[4]) * (p->mode == HN_RESIZE_NEAREST ? 1 : p->mode == HN_RESIZE_LINEAR ? 8 : 32);
}

static int64_t taps_of(const HnResize *p, const HnResizeAxis *a)
{
    return p->mode == HN_RESIZE_NEAREST ? 1 : hn_resize_taps(p, a);
}

/* FALSE: result y is made of nothing. */
static gboolean weights_of(const HnResize *p, const HnResizeAxis *a, int64_t y, int64_t *first, double *w)
{
    if (p->mode != HN_RESIZE_NEAREST)
        return hn_resize_weights(p, a, y, first, w);
    w[0] = 1;
    *first = hn_resize_nearest(p, a, y);
    return *first >= 0;
}

/* from [outer, out, inner] to [outer, in, inner] */
static gboolean back_pass(HnEval *e, const HnResizeAxis *a, int64_t outer, int64_t inner, const double *from,
                          double *to)
{
    const HnResize *p = e->params;
    int64_t width = taps_of(p, a), first = 0;
    if (width < 0) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "scale %g is too small", a->scale);
        return FALSE;
    }
    double *w = hn_eval_scratch(e, width, sizeof *w);
    if (w == NULL)
        return FALSE;
    memset(to, 0, (size_t)(outer * a->in * inner) * sizeof *to);
    for (int64_t y = 0; y < a->out; y++) {
        if (!weights_of(p, a, y, &first, w))
            continue;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < width; k++) {
                const double *f = from + (o * a->out + y) * inner, weight = w[k];
                double *t = to + (o * a->in + CLAMP(first + k, 0, a->in - 1)) * inner;
                for (int64_t i = 0; weight != 0 && i < inner; i++)
                    t[i] += weight * f[i];
            }
    }
    hn_eval_scratch_free(e, w);
    return TRUE;
}

/* Does a Resize leave the axis as it is? */
static gboolean stays(const HnResize *p, const HnResizeAxis *a)
{
    return a->in == a->out && a->scale == 1 && p->place != HN_RESIZE_CROP && p->mode != HN_RESIZE_NEAREST;
}

/* v, of the result's shape, becomes that of the input; it is freed, and what comes back has to be. NULL: failed. */
static double *all_passes(HnEval *e, int rank, const HnResizeAxis *axis, double *v)
{
    int64_t dims[HN_MAX_RANK], n;
    for (int i = 0; i < rank; i++)
        dims[i] = axis[i].out;
    for (int i = rank - 1; i >= 0 && v != NULL; i--) {
        if (stays(e->params, &axis[i]))
            continue;
        dims[i] = axis[i].in;
        double *next = NULL;
        if (!hn_dims_count(rank, dims, &n))
            hn_eval_fail(e, HN_ERROR_SHAPE, "the size between two axes overflows");
        else
            next = hn_eval_scratch(e, n, sizeof *next);
        if (next != NULL && !back_pass(e, &axis[i], hn_span(dims, 0, i), hn_span(dims, i + 1, rank), v, next)) {
            hn_eval_scratch_free(e, next);
            next = NULL;
        }
        hn_eval_scratch_free(e, v);
        v = next;
    }
    return v;
}

static void resizegrad_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *dy = hn_eval_in(e, 4);
    HnResizeAxis axis[HN_MAX_RANK];
    if (!hn_resize_axes(e, axis))
        return;
    gboolean fits = dy->ndim == x->ndim;
    for (int i = 0; i < x->ndim && fits; i++)
        fits = dy->dims[i] == axis[i].out;
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 4 does not have the shape of the Resize's result");
        return;
    }
    double *v = hn_eval_scratch(e, dy->n, sizeof *v);
    for (int64_t i = 0; v != NULL && i < dy->n; i++)
        v[i] = hn_tensor_get_f64(dy, i);
    v = v != NULL ? all_passes(e, x->ndim, axis, v) : NULL;
    void *dx = v != NULL ? hn_eval_out(e, 0, dy->dtype, x->ndim, x->dims) : NULL;
    for (int64_t i = 0; dx != NULL && i < x->n; i++)
        if (dy->dtype == HN_F32)
            ((float *)dx)[i] = (float)v[i];
        else
            ((double *)dx)[i] = v[i];
    hn_eval_scratch_free(e, v);
}

const HnOp hn_op_resizegrad = {
    .name = "ResizeGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TUfiT",
    .out = "T",
    .T = HN_T_FLOATS,
    .U = HN_T_FLOATS,
    .min_in = 1,
    .params_size = sizeof(HnResize),
    .bind = resizegrad_bind,
    .infer = resizegrad_infer,
    .cost = resizegrad_cost,
    .ref = resizegrad_ref,
};
