/*
 * ConvWeightGrad (domain "hone"): the gradient of a convolution's weights, from its source (input 0) and the gradient
 * of its result (input 1), in the shape of the weights (input 2, of which nothing else is read). Attributes are those
 * of the Conv. Of a ConvTranspose the two are exchanged, and input 1 may be smaller than the result: the first windows
 * only. Output 1, where it is asked for, is the sum of input 1 over all but its channels: the gradient of a bias.
 */
#include <string.h>

#include "op/conv.h"
#include "op/tape.h"
#include "op/types.h"

static void convweightgrad_infer(HnInfer *x)
{
    const HnDim channels = hn_infer_dim(x, 1, 1);
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 0), 2);
    hn_infer_out(x, 1, hn_infer_dtype(x, 0), 1, &channels);
}

static void convweightgrad_cost(const HnInfer *x, HnCost *c)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, 2); i++)
        taps *= (double)hn_infer_dim(x, 2, i).n;
    c->flops = 2 * hn_type_count(x->in[1]) * taps;
}

typedef struct {
    const void *x, *dy; /* a plane of the source, and of the result */
    double *dw;         /* [taps] */
} Planes;

#define DEFINE_ROWS(T)                                                                              \
    static void rows_##T(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len) \
    {                                                                                               \
        const Planes *p = data;                                                                     \
        const T *from = (const T *)p->x + x, *dy = (const T *)p->dy + y;                            \
        double sum = 0;                                                                             \
        for (int64_t i = 0; i < len; i++)                                                           \
            sum += (double)from[i * step] * (double)dy[i];                                          \
        p->dw[k] += sum;                                                                            \
    }
DEFINE_ROWS(float)
DEFINE_ROWS(double)

/* The gradient of the weights from source channel c of a group to output channel o. */
static void run_pair(const HnConvPlan *p, HnDtype dtype, const void *x, const void *dy, int64_t o, int64_t c,
                     double *dw)
{
    const int64_t g = o / p->out_channels;
    memset(dw, 0, (size_t)p->taps * sizeof *dw);
    for (int64_t n = 0; n < p->batch; n++) {
        const int64_t from = (n * p->group * p->in_channels + g * p->in_channels + c) * p->x_plane;
        const int64_t to = (n * p->group * p->out_channels + o) * p->y_plane;
#define RUN(T)                                                       \
    Planes planes = { (const T *)x + from, (const T *)dy + to, dw }; \
    hn_window_rows(p->n, p->axis, rows_##T, &planes);
        HN_FOR_FLOAT(dtype, RUN)
#undef RUN
    }
}

static void sum_of_channels(HnEval *e, const HnTensor *dy)
{
    const int64_t channels = dy->dims[1], plane = channels > 0 ? dy->n / MAX(dy->dims[0], 1) / channels : 0;
    void *db = hn_eval_out(e, 1, dy->dtype, 1, &channels);
    for (int64_t c = 0; db != NULL && c < channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < dy->dims[0]; n++)
            for (int64_t i = 0; i < plane; i++)
                sum += hn_tensor_get_f64(dy, (n * channels + c) * plane + i);
#define RUN(T) ((T *)db)[c] = (T)sum;
        HN_FOR_FLOAT(dy->dtype, RUN)
#undef RUN
    }
}

static void convweightgrad_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *dy = hn_eval_in(e, 1), *w = hn_eval_in(e, 2);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK];
    if (!hn_conv_plan(e->params, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    gboolean fits = dy->ndim == x->ndim && dy->dims[0] == dims[0] && dy->dims[1] == dims[1];
    plan.y_plane = 1;
    for (int i = 0; fits && i < plan.n; i++) {
        fits = dy->dims[2 + i] <= dims[2 + i];
        plan.axis[i].out = dy->dims[2 + i];
        plan.y_plane *= dy->dims[2 + i]; /* dy is there: it does not overflow */
    }
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 1 does not have the shape of the convolution's result");
        return;
    }
    void *y = hn_eval_out_like(e, 0, w);
    double *dw = y != NULL ? hn_eval_scratch(e, MAX(plan.taps, 1), sizeof *dw) : NULL;
    if (dw == NULL)
        return;
    memset(y, 0, e->out[0]->bytes);
    for (int64_t i = 0; x->n > 0 && dy->n > 0 && w->n > 0 && i < w->n / plan.taps; i++) {
        run_pair(&plan, x->dtype, x->data, dy->data, i / plan.in_channels, i % plan.in_channels, dw);
#define RUN(T)                              \
    for (int64_t k = 0; k < plan.taps; k++) \
        ((T *)y)[i * plan.taps + k] = (T)dw[k];
        HN_FOR_FLOAT(w->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, dw);
    if (hn_eval_wants(e, 1))
        sum_of_channels(e, dy);
}

const HnOp hn_op_convweightgrad = {
    .name = "ConvWeightGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTT",
    .out = "TT",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnConv),
    .bind = hn_conv_bind,
    .infer = convweightgrad_infer,
    .cost = convweightgrad_cost,
    .ref = convweightgrad_ref,
};
