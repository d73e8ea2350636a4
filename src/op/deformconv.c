/*
 * DeformConv: a convolution whose taps are moved by `offset` (in elements, linear interpolation, zero outside of the
 * input) and weighed by `mask`. Inputs: x [N,C,in...], w [M,C/group,kernel...], offset
 * [N,offset_group*taps*axes,out...], bias [M], mask [N,offset_group*taps,out...].
 *
 * DeformConvGrad(x, w, offset, mask, dy) (domain "hone"): the gradients of x, w, offset and mask.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/conv.h"
#include "op/gemm.h"
#include "op/index.h"
#include "op/tape.h"
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

static gboolean check(HnEval *e, const HnConvPlan *p, const int64_t *dims, int ndim, const HnTensor *bias,
                      const HnTensor *mask)
{
    const HnDeformConv *d = e->params;
    const HnTensor *x = e->in[0], *w = e->in[1], *offset = e->in[2];
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
    if (!check(e, &plan, dims, x->ndim, hn_eval_in(e, 3), hn_eval_in(e, 4)))
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

/* --- gradient ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnConvPlan *p;
    const HnTensor *x, *w, *offset, *mask, *dy; /* mask: NULL, all 1 */
    int64_t groups;                             /* of offsets */
    double *dx, *dw, *doffset, *dmask;
} Back;

/* One tap at one place of the output. */
typedef struct {
    int64_t sample, channel, tap, y;
    int64_t plane, offset, mask; /* where the channel, the tap's first offset and its mask begin */
    double pos[MAX_AXES];
} Tap;

static void tap_read(const Back *b, Tap *t, const int64_t *k, const int64_t *o)
{
    const HnConvPlan *p = b->p;
    const int64_t channels = p->group * p->in_channels;
    const int64_t side = t->sample * b->groups + t->channel / (channels / b->groups);
    t->plane = (t->sample * channels + t->channel) * p->x_plane;
    t->mask = (side * p->taps + t->tap) * p->y_plane + t->y;
    t->offset = (side * p->taps + t->tap) * p->n * p->y_plane + t->y;
    for (int i = 0; i < p->n; i++) {
        const HnWindowAxis *a = &p->axis[i];
        t->pos[i] = (double)(o[i] * a->stride + k[i] * a->dilation - a->pad) +
                    hn_tensor_get_f64(b->offset, t->offset + i * p->y_plane);
    }
}

/* The gradient of what the tap gives; v: that, masked, which the gradient of weights needs. */
static double tap_gradient(const Back *b, const Tap *t, double v)
{
    const HnConvPlan *p = b->p;
    const int64_t g = t->channel / p->in_channels;
    double sum = 0;
    for (int64_t k = 0; k < p->out_channels; k++) {
        const int64_t m = g * p->out_channels + k;
        const int64_t at = (m * p->in_channels + t->channel % p->in_channels) * p->taps + t->tap;
        const double dy = hn_tensor_get_f64(b->dy, (t->sample * p->group * p->out_channels + m) * p->y_plane + t->y);
        sum += dy * hn_tensor_get_f64(b->w, at);
        b->dw[at] += dy * v;
    }
    return sum;
}

/* One corner of 2^n: its place in the plane, its weight, and how that changes with the position along each axis.
 * FALSE: it lies outside. */
static gboolean corner_of(const Back *b, const Tap *t, unsigned corner, int64_t *at, double *weight, double *slope)
{
    const HnConvPlan *p = b->p;
    *at = 0;
    *weight = 1;
    for (int i = 0; i < p->n; i++)
        slope[i] = 1;
    for (int i = 0; i < p->n; i++) {
        const int64_t up = corner >> i & 1, k = (int64_t)floor(t->pos[i]) + up;
        const double part = t->pos[i] - floor(t->pos[i]), of = up ? part : 1 - part;
        if (k < 0 || k >= p->axis[i].in)
            return FALSE;
        *at = *at * p->axis[i].in + k;
        *weight *= of;
        for (int j = 0; j < p->n; j++)
            slope[j] *= j == i ? (up ? 1 : -1) : of;
    }
    return TRUE;
}

static void tap_back(const Back *b, const Tap *t)
{
    const HnConvPlan *p = b->p;
    const double mask = b->mask != NULL ? hn_tensor_get_f64(b->mask, t->mask) : 1;
    double v = 0, weight, slope[MAX_AXES];
    int64_t at;
    gboolean inside = TRUE;
    for (int i = 0; i < p->n; i++)
        inside = inside && t->pos[i] > -1 && t->pos[i] < (double)p->axis[i].in;
    for (unsigned c = 0; inside && c < 1u << p->n; c++)
        if (corner_of(b, t, c, &at, &weight, slope))
            v += weight * hn_tensor_get_f64(b->x, t->plane + at);
    const double g = tap_gradient(b, t, mask * v);
    b->dmask[t->mask] += g * v;
    for (unsigned c = 0; inside && c < 1u << p->n; c++) {
        if (!corner_of(b, t, c, &at, &weight, slope))
            continue;
        b->dx[t->plane + at] += g * mask * weight;
        for (int i = 0; i < p->n; i++)
            b->doffset[t->offset + i * p->y_plane] += g * mask * slope[i] * hn_tensor_get_f64(b->x, t->plane + at);
    }
}

static void channel_back(const Back *b, int64_t sample, int64_t channel)
{
    const HnConvPlan *p = b->p;
    int64_t k[MAX_AXES] = { 0 };
    for (int64_t tap = 0; tap < p->taps; tap++) {
        int64_t o[MAX_AXES] = { 0 };
        for (int64_t y = 0; y < p->y_plane; y++) {
            Tap t = { .sample = sample, .channel = channel, .tap = tap, .y = y };
            tap_read(b, &t, k, o);
            tap_back(b, &t);
            for (int i = p->n - 1; i >= 0 && ++o[i] == p->axis[i].out; i--)
                o[i] = 0;
        }
        for (int i = p->n - 1; i >= 0 && ++k[i] == p->axis[i].kernel; i--)
            k[i] = 0;
    }
}

/* Outputs like the inputs of those numbers, and sums for them in double: `sums` in one piece. FALSE: failed. */
static gboolean open_sums(HnEval *e, Back *b, double **sums)
{
    const int64_t masks = b->offset->n / MAX(b->p->n, 1);
    const int64_t n = b->x->n + b->w->n + b->offset->n + masks;
    for (int k = 0; k < MIN(e->n_out, 4); k++)
        if (k < 3 ? hn_eval_out_like(e, k, e->in[k]) == NULL
                  : b->mask != NULL && hn_eval_out_like(e, k, b->mask) == NULL)
            return FALSE;
    if ((*sums = hn_eval_scratch(e, MAX(n, 1), sizeof **sums)) == NULL)
        return FALSE;
    memset(*sums, 0, (size_t)n * sizeof **sums);
    b->dx = *sums;
    b->dw = b->dx + b->x->n;
    b->doffset = b->dw + b->w->n;
    b->dmask = b->doffset + b->offset->n;
    return TRUE;
}

static void deformconvgrad_ref(HnEval *e)
{
    const HnDeformConv *d = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *w = hn_eval_in(e, 1), *mask = hn_eval_in(e, 3), *dy = hn_eval_in(e, 4);
    HnConvPlan plan;
    int64_t dims[HN_MAX_RANK];
    double *sums = NULL;
    if (!hn_conv_plan(&d->conv, x->ndim, x->dims, w->ndim, w->dims, &plan, &e->error))
        return;
    hn_conv_out_dims(&plan, FALSE, dims);
    if (!check(e, &plan, dims, x->ndim, NULL, mask) || !check_side(e, dy, dims, x->ndim, dims[1], "gradient"))
        return;
    Back b = { .p = &plan, .x = x, .w = w, .offset = e->in[2], .mask = mask, .dy = dy, .groups = d->offset_group };
    if (!open_sums(e, &b, &sums))
        return;
    for (int64_t i = 0; dy->n > 0 && i < plan.batch * plan.group * plan.in_channels; i++)
        channel_back(&b, i / (plan.group * plan.in_channels), i % (plan.group * plan.in_channels));
    const double *const from[] = { b.dx, b.dw, b.doffset, b.dmask };
    for (int k = 0; k < e->n_out; k++) /* three without a mask */
        for (int64_t i = 0; e->out[k] != NULL && i < e->out[k]->n; i++)
            hn_tensor_set_f64(e->out[k], i, from[k][i]);
    hn_eval_scratch_free(e, sums);
}

static void deformconvgrad_infer(HnInfer *x)
{
    for (int k = 0; k < x->n_out; k++)
        if (hn_infer_has(x, k))
            hn_infer_out_like(x, k, k);
}

static void deformconvgrad_cost(const HnInfer *x, HnCost *c)
{
    double taps = 1;
    for (int i = 1; i < hn_infer_rank(x, 1); i++)
        taps *= (double)hn_infer_dim(x, 1, i).n;
    c->flops = 6 * hn_type_count(x->in[4]) * taps;
}

static void deformconv_grad(HnTape *t)
{
    HnValue *mask = hn_tape_in(t, 4), *dy = hn_tape_dy(t, 0);
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_in(t, 2), mask, dy };
    const HnNode *n = hn_tape_backward(t, "DeformConvGrad", 5, in, mask != NULL ? 4 : 3);
    for (int i = 0; i < 3; i++)
        hn_tape_give(t, i, hn_node_out(n, i));
    if (mask != NULL)
        hn_tape_give(t, 4, hn_node_out(n, 3));
    if (!hn_tape_needs(t, 3))
        return;
    int64_t axes[HN_MAX_RANK];
    const int rank = hn_tape_rank(t, 0);
    if (rank < 2)
        hn_tape_refuse(t, "the number of dimensions is not known");
    for (int i = 0; i < rank - 1; i++)
        axes[i] = i == 0 ? 0 : i + 1;
    if (rank >= 2)
        hn_tape_give(t, 3, hn_build_reduce(t->build, "ReduceSum", dy, axes, rank - 1, FALSE));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

void hn_deformconv_batch(HnBatch *b)
{
    hn_batch_first_of(b, 1 | 1 << 2 | 1 << 4);
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
    .grad = deformconv_grad,
    .batch = hn_deformconv_batch,
};

const HnOp hn_op_deformconvgrad = {
    .name = "DeformConvGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTTTT",
    .out = "TTTT",
    .T = HN_T_FLOATS,
    .min_in = HN_MIN_IN_NONE,
    .params_size = sizeof(HnDeformConv),
    .bind = deformconv_bind,
    .infer = deformconvgrad_infer,
    .cost = deformconvgrad_cost,
    .ref = deformconvgrad_ref,
};
