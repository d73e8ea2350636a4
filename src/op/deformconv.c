/*
 * DeformConv: a convolution whose taps are moved by `offset` (in elements, linear interpolation, zero outside of the
 * input) and weighed by `mask`. Inputs: x [N,C,in...], w [M,C/group,kernel...], offset
 * [N,offset_group*taps*axes,out...], bias [M], mask [N,offset_group*taps,out...].
 */
#include <math.h>

#include "base/checked.h"
#include "op/conv.h"
#include "op/gemm.h"
#include "op/index.h"
#include "op/types.h"

enum { MAX_AXES = 8 }; /* 2^8 corners are interpolated between */

typedef struct {
    HnConv conv;
    int64_t offset_group;
} HnDeformConv;

static void deformconv_bind(HnBind *b, void *params)
{
    HnDeformConv *p = params;
    hn_conv_bind(b, &p->conv);
    p->conv.window.pad_mode = HN_PAD_EXPLICIT; /* has no auto_pad */
    p->offset_group = hn_bind_int(b, "offset_group", 1);
    if (p->offset_group < 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'offset_group' cannot be %" PRId64, p->offset_group);
}

static void deformconv_infer(HnInfer *x) /* params begin with those of Conv */
{
    HnDtype dtype = hn_infer_dtype(x, 0) != HN_UNDEFINED ? hn_infer_dtype(x, 0) : hn_infer_dtype(x, 1);
    hn_conv_infer(x, 0, 1, dtype);
}

static void deformconv_cost(const HnInfer *x, HnCost *c)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, 1); i++)
        taps *= (double)hn_infer_dim(x, 1, i).n;
    c->flops = 2 * hn_type_count(x->out[0]) * taps;
}

/* Element of a plane at fractional positions. Corners outside of the plane are zero. */
#define DEFINE_SAMPLE(T)                                                                         \
    static double sample_##T(const T *plane, int n, const HnWindowAxis *axis, const double *pos) \
    {                                                                                            \
        int64_t base[MAX_AXES];                                                                  \
        double part[MAX_AXES], sum = 0;                                                          \
        for (int i = 0; i < n; i++) {                                                            \
            if (!(pos[i] > -1 && pos[i] < (double)axis[i].in))                                   \
                return 0;                                                                        \
            base[i] = (int64_t)floor(pos[i]);                                                    \
            part[i] = pos[i] - (double)base[i];                                                  \
        }                                                                                        \
        for (unsigned corner = 0; corner < 1u << n; corner++) {                                  \
            double weight = 1;                                                                   \
            int64_t at = 0;                                                                      \
            for (int i = 0; i < n; i++) {                                                        \
                int64_t up = corner >> i & 1, k = base[i] + up;                                  \
                weight *= up ? part[i] : 1 - part[i];                                            \
                if (k < 0 || k >= axis[i].in)                                                    \
                    weight = 0;                                                                  \
                at = at * axis[i].in + CLAMP(k, 0, axis[i].in - 1);                              \
            }                                                                                    \
            sum += weight != 0 ? weight * (double)plane[at] : 0;                                 \
        }                                                                                        \
        return sum;                                                                              \
    }
DEFINE_SAMPLE(float)
DEFINE_SAMPLE(double)

/* col[taps, y_plane] of one channel; offset [taps, n, y_plane], mask [taps, y_plane] or NULL */
#define DEFINE_COLUMN(T)                                                                                    \
    static void column_##T(const HnConvPlan *p, T *col, const T *plane, const T *offset, const T *mask)     \
    {                                                                                                       \
        int64_t k[MAX_AXES] = { 0 };                                                                        \
        for (int64_t tap = 0; tap < p->taps; tap++) {                                                       \
            int64_t o[MAX_AXES] = { 0 };                                                                    \
            for (int64_t y = 0; y < p->y_plane; y++) {                                                      \
                double pos[MAX_AXES];                                                                       \
                for (int i = 0; i < p->n; i++) {                                                            \
                    const HnWindowAxis *a = &p->axis[i];                                                    \
                    pos[i] = (double)(o[i] * a->stride + k[i] * a->dilation - a->pad) +                     \
                             (double)offset[(tap * p->n + i) * p->y_plane + y];                             \
                }                                                                                           \
                double v = sample_##T(plane, p->n, p->axis, pos);                                           \
                col[tap * p->y_plane + y] = (T)(mask != NULL ? v * (double)mask[tap * p->y_plane + y] : v); \
                for (int i = p->n - 1; i >= 0 && ++o[i] == p->axis[i].out; i--)                             \
                    o[i] = 0;                                                                               \
            }                                                                                               \
            for (int i = p->n - 1; i >= 0 && ++k[i] == p->axis[i].kernel; i--)                              \
                k[i] = 0;                                                                                   \
        }                                                                                                   \
    }
DEFINE_COLUMN(float)
DEFINE_COLUMN(double)

/* [N, channels, out...] */
static gboolean check_side(HnEval *e, const HnTensor *t, const int64_t *dims, int ndim, int64_t channels,
                           const char *what)
{
    gboolean fits = t->ndim == ndim && t->dims[0] == dims[0] && t->dims[1] == channels;
    for (int i = 2; fits && i < ndim; i++)
        fits = t->dims[i] == dims[i];
    if (!fits) {
        g_autofree char *text = hn_tensor_describe(t);
        hn_eval_fail(e, HN_ERROR_SHAPE, "the %s is %s, which does not fit the output", what, text);
    }
    return fits;
}

static gboolean check(HnEval *e, const HnConvPlan *p, const int64_t *dims, int ndim)
{
    const HnDeformConv *d = e->params;
    const HnTensor *x = e->in[0], *w = e->in[1], *offset = e->in[2], *bias = hn_eval_in(e, 3), *mask = hn_eval_in(e, 4);
    int64_t masks, offsets;
    if (p->n > MAX_AXES) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d spatial axes are more than %d", p->n, MAX_AXES);
        return FALSE;
    }
    const gboolean others = (bias == NULL || bias->dtype == x->dtype) && (mask == NULL || mask->dtype == x->dtype);
    if (w->dtype != x->dtype || offset->dtype != x->dtype || !others) {
        hn_eval_fail(e, HN_ERROR_TYPE, "the inputs are not of one type");
        return FALSE;
    }
    if (x->dims[1] % d->offset_group != 0 || !hn_mul_i64(d->offset_group, p->taps, &masks) ||
        !hn_mul_i64(masks, p->n, &offsets)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " channels are not divisible by %" PRId64 " offset groups",
                     x->dims[1], d->offset_group);
        return FALSE;
    }
    if (bias != NULL && (bias->ndim != 1 || bias->dims[0] != dims[1])) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not have one element per output channel");
        return FALSE;
    }
    return check_side(e, offset, dims, ndim, offsets, "offset") &&
           (mask == NULL || check_side(e, mask, dims, ndim, masks, "mask"));
}

/* Columns of all channels of a sample, then a matrix product per group. */
static void sample_run(HnEval *e, const HnConvPlan *p, int64_t s, char *col, char *y)
{
    const HnTensor *x = e->in[0], *w = e->in[1], *offset = e->in[2], *bias = hn_eval_in(e, 3), *mask = hn_eval_in(e, 4);
    int64_t groups = ((const HnDeformConv *)e->params)->offset_group, channels = p->group * p->in_channels;
    int64_t depth = p->in_channels * p->taps, size = (int64_t)hn_dtype_size(x->dtype), block = p->taps * p->y_plane;
    for (int64_t c = 0; c < channels; c++) {
        int64_t side = s * groups + c / (channels / groups);
#define RUN(T)                                                                                \
    column_##T(p, (T *)col + c * block, (const T *)x->data + (s * channels + c) * p->x_plane, \
               (const T *)offset->data + side * block * p->n,                                 \
               mask != NULL ? (const T *)mask->data + side * block : NULL);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
    for (int64_t g = 0; g < p->group; g++) {
        int64_t m = g * p->out_channels;
        HnGemm gemm = { .m = p->out_channels, .n = p->y_plane, .k = depth, .alpha = 1, .beta = 1 };
        gemm.a = (const char *)w->data + m * depth * size;
        gemm.a_row = depth;
        gemm.a_col = gemm.b_col = gemm.add_row = 1;
        gemm.b = col + g * depth * p->y_plane * size;
        gemm.b_row = p->y_plane;
        gemm.c = y + (s * p->group * p->out_channels + m) * p->y_plane * size;
        gemm.c_row = p->y_plane;
        gemm.add = bias != NULL ? (const char *)bias->data + m * size : NULL;
        hn_gemm(x->dtype, &gemm);
    }
}

static void deformconv_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *w = hn_eval_in(e, 1);
    const HnDeformConv *d = e->params;
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK], n, rows;
    if (!hn_conv_plan(&d->conv, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    if (!check(e, &plan, dims, x->ndim))
        return;
    char *y = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    if (y == NULL || !hn_dims_count(x->ndim, dims, &n) || n == 0)
        return;
    if (plan.in_channels == 0) /* nothing is sampled */
        plan.taps = 0;
    if (!hn_mul_i64(x->dims[1], plan.taps, &rows) || !hn_mul_i64(rows, plan.y_plane, &n)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the size of the kernel overflows");
        return;
    }
    char *col = hn_eval_scratch(e, n, hn_dtype_size(x->dtype));
    for (int64_t s = 0; col != NULL && s < plan.batch; s++)
        sample_run(e, &plan, s, col, y);
    hn_eval_scratch_free(e, col);
}

const HnOp hn_op_deformconv = {
    .name = "DeformConv",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 19, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTTTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 3,
    .params_size = sizeof(HnDeformConv),
    .bind = deformconv_bind,
    .infer = deformconv_infer,
    .cost = deformconv_cost,
    .ref = deformconv_ref,
};
