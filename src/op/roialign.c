/*
 * RoiAlign: each region of interest pooled to a fixed grid out of bilinear samples. Before opset 16 coordinates were
 * taken as they are; since then half a pixel is subtracted unless the node says otherwise.
 *
 * RoiAlignGrad(x, rois, batch, dy) (domain "hone"): the gradient of its input, to which each element of dy goes by the
 * weights of its samples; of a maximum, to the first largest of what it is taken of. Regions have no gradient.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/index.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"
#include "op/unbind.h"

#define GRID_MAX 32768 /* samples per bin and axis: more is a broken region */

typedef struct {
    int64_t height, width, ratio; /* of the output; samples per bin, 0: by the size of the region */
    float scale;
    gboolean half_pixel, max;
} HnRoi;

static void roialign_bind(HnBind *b, void *params)
{
    static const char *const modes[] = { "avg", "max", NULL };
    static const char *const coordinates[] = { "half_pixel", "output_half_pixel", NULL };
    HnRoi *p = params;
    p->max = hn_bind_word(b, "mode", modes, 0) == 1;
    p->height = hn_bind_int(b, "output_height", 1);
    p->width = hn_bind_int(b, "output_width", 1);
    p->ratio = hn_bind_int(b, "sampling_ratio", 0);
    p->scale = hn_bind_float(b, "spatial_scale", 1);
    p->half_pixel = b->version >= 16 && hn_bind_word(b, "coordinate_transformation_mode", coordinates, 0) == 0;
    if (p->height < 1 || p->width < 1 || p->ratio < 0 || p->ratio > GRID_MAX)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE,
                     "sizes of %" PRId64 " x %" PRId64 " with %" PRId64 " samples make no output", p->height, p->width,
                     p->ratio);
}

static void roialign_infer(HnInfer *x)
{
    const HnRoi *p = x->params;
    static const int ranks[3] = { 4, 2, 1 };
    for (int i = 0; i < 3; i++)
        if (hn_infer_rank(x, i) >= 0 && hn_infer_rank(x, i) != ranks[i])
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions instead of %d", i, hn_infer_rank(x, i),
                          ranks[i]);
    HnDim n = hn_infer_dim(x, 1, 0), m = hn_infer_dim(x, 2, 0);
    if (hn_dim_differ(n, m) || hn_dim_differ(hn_infer_dim(x, 1, 1), hn_dim(4)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "regions and batch indices do not fit");
    HnDim dims[4] = { n.known ? n : m, hn_infer_dim(x, 0, 1), hn_dim(p->height), hn_dim(p->width) };
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 4, dims);
}

/* Neighbours of a coordinate along an axis of n, and the weight of the upper one. FALSE: outside, counts as 0. */
static gboolean sample_axis(double v, int64_t n, int64_t *low, int64_t *high, double *weight)
{
    if (!(v >= -1 && v <= (double)n))
        return FALSE;
    v = MAX(v, 0);
    *low = (int64_t)v;
    if (*low >= n - 1) {
        *low = *high = n - 1;
        *weight = 0;
    } else {
        *high = *low + 1;
        *weight = v - (double)*low;
    }
    return TRUE;
}

typedef struct {
    double y, x, bin_h, bin_w; /* first corner, size of a bin */
    int64_t grid_h, grid_w;    /* samples per bin */
} Region;

static gboolean region_read(HnEval *e, const HnTensor *rois, int64_t r, Region *g)
{
    const HnRoi *p = e->params;
    double v[4], shift = p->half_pixel ? 0.5 : 0;
    for (int i = 0; i < 4; i++)
        v[i] = hn_tensor_get_f64(rois, 4 * r + i) * (double)p->scale - shift;
    double w = v[2] - v[0], h = v[3] - v[1];
    if (!p->half_pixel) {
        w = MAX(w, 1);
        h = MAX(h, 1);
    }
    *g = (Region){ .y = v[1], .x = v[0], .bin_h = h / (double)p->height, .bin_w = w / (double)p->width };
    if (!(g->bin_h <= GRID_MAX && g->bin_w <= GRID_MAX && isfinite(g->y + g->x + h + w))) {
        hn_eval_fail(e, HN_ERROR_VALUE, "region %" PRId64 " is too large", r);
        return FALSE;
    }
    g->grid_h = p->ratio > 0 ? p->ratio : (int64_t)ceil(MAX(g->bin_h, 0));
    g->grid_w = p->ratio > 0 ? p->ratio : (int64_t)ceil(MAX(g->bin_w, 0));
    return TRUE;
}

/* One bin of one channel x [h,w]. */
#define DEFINE_BIN(T)                                                                                              \
    static double bin_##T(const T *x, int64_t h, int64_t w, const Region *g, int64_t ph, int64_t pw, gboolean max) \
    {                                                                                                              \
        double sum = 0, best = 0;                                                                                  \
        for (int64_t iy = 0; iy < g->grid_h; iy++) {                                                               \
            double sy = g->y + (double)ph * g->bin_h + ((double)iy + 0.5) * g->bin_h / (double)g->grid_h;          \
            for (int64_t ix = 0; ix < g->grid_w; ix++) {                                                           \
                double sx = g->x + (double)pw * g->bin_w + ((double)ix + 0.5) * g->bin_w / (double)g->grid_w;      \
                double wy, wx, v[4] = { 0 };                                                                       \
                int64_t y0, y1, x0, x1;                                                                            \
                if (sample_axis(sy, h, &y0, &y1, &wy) && sample_axis(sx, w, &x0, &x1, &wx)) {                      \
                    v[0] = (1 - wy) * (1 - wx) * (double)x[y0 * w + x0];                                           \
                    v[1] = (1 - wy) * wx * (double)x[y0 * w + x1];                                                 \
                    v[2] = wy * (1 - wx) * (double)x[y1 * w + x0];                                                 \
                    v[3] = wy * wx * (double)x[y1 * w + x1];                                                       \
                }                                                                                                  \
                double top = MAX(MAX(v[0], v[1]), MAX(v[2], v[3]));                                                \
                best = (iy | ix) == 0 ? top : MAX(best, top);                                                      \
                sum += v[0] + v[1] + v[2] + v[3];                                                                  \
            }                                                                                                      \
        }                                                                                                          \
        return max ? best : sum / (double)MAX(g->grid_h * g->grid_w, 1);                                           \
    }
DEFINE_BIN(float)
DEFINE_BIN(double)

static gboolean inputs_fit(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *rois = hn_eval_in(e, 1), *batch = hn_eval_in(e, 2);
    if (x->ndim == 4 && rois->ndim == 2 && batch->ndim == 1 && rois->dims[1] == 4 && rois->dims[0] == batch->n)
        return TRUE;
    hn_eval_fail(e, HN_ERROR_SHAPE, "input, regions and batch indices do not fit");
    return FALSE;
}

static void roialign_ref(HnEval *e)
{
    const HnRoi *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *rois = hn_eval_in(e, 1), *batch = hn_eval_in(e, 2);
    if (!inputs_fit(e))
        return;
    int64_t c = x->dims[1], h = x->dims[2], w = x->dims[3], regions = batch->n;
    void *out = hn_eval_out(e, 0, x->dtype, 4, (int64_t[]){ regions, c, p->height, p->width });
    if (out == NULL || e->out[0]->n == 0)
        return;
    if (h == 0 || w == 0) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input is empty");
        return;
    }
    for (int64_t r = 0; r < regions; r++) {
        Region g;
        int64_t b = hn_tensor_get_i64(batch, r);
        if (!hn_eval_index(e, &b, x->dims[0]) || !region_read(e, rois, r, &g))
            return;
#define RUN(T)                                        \
    const T *s = (const T *)x->data + b * c * h * w;  \
    T *y = (T *)out + r * c * p->height * p->width;   \
    for (int64_t k = 0; k < c; k++, s += h * w)       \
        for (int64_t ph = 0; ph < p->height; ph++)    \
            for (int64_t pw = 0; pw < p->width; pw++) \
                *y++ = (T)bin_##T(s, h, w, &g, ph, pw, p->max);
        HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
    }
}

static void roialign_cost(const HnInfer *x, HnCost *c)
{
    const HnRoi *p = x->params;
    double samples = p->ratio > 0 ? (double)(p->ratio * p->ratio) : 4;
    c->flops = 8 * samples * hn_type_count(x->out[0]);
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

/* What a sample is mixed of: elements of a plane, and their weights. */
typedef struct {
    int n; /* 4; 0: it lies outside */
    int64_t at[4];
    double weight[4];
} Mix;

/* Sample i of a bin. */
static Mix mix_of(const HnTensor *x, const Region *g, int64_t ph, int64_t pw, int64_t i)
{
    const int64_t h = x->dims[2], w = x->dims[3], iy = i / g->grid_w, ix = i % g->grid_w;
    const double sy = g->y + (double)ph * g->bin_h + ((double)iy + 0.5) * g->bin_h / (double)g->grid_h;
    const double sx = g->x + (double)pw * g->bin_w + ((double)ix + 0.5) * g->bin_w / (double)g->grid_w;
    double wy, wx;
    int64_t y0, y1, x0, x1;
    if (!sample_axis(sy, h, &y0, &y1, &wy) || !sample_axis(sx, w, &x0, &x1, &wx))
        return (Mix){ .n = 0 };
    return (Mix){ .n = 4,
                  .at = { y0 * w + x0, y0 * w + x1, y1 * w + x0, y1 * w + x1 },
                  .weight = { (1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx } };
}

/* The share of one bin, whose gradient is dy, to a plane of x that begins at element `from`. */
static void mean_grad(const HnTensor *x, int64_t from, const Region *g, int64_t ph, int64_t pw, double dy, double *dx)
{
    const int64_t samples = g->grid_h * g->grid_w;
    for (int64_t i = 0; i < samples; i++) {
        const Mix m = mix_of(x, g, ph, pw, i);
        for (int k = 0; k < m.n; k++)
            dx[from + m.at[k]] += m.weight[k] * dy / (double)samples;
    }
}

/* Of samples outside, 0 is what is compared. */
static void max_grad(const HnTensor *x, int64_t from, const Region *g, int64_t ph, int64_t pw, double dy, double *dx)
{
    double best = -INFINITY, by = 0;
    int64_t largest = -1;
    for (int64_t i = 0; i < g->grid_h * g->grid_w; i++) {
        const Mix m = mix_of(x, g, ph, pw, i);
        for (int k = 0; k < MAX(m.n, 1); k++) {
            const double v = m.n > 0 ? m.weight[k] * hn_tensor_get_f64(x, from + m.at[k]) : 0;
            if (!(v > best))
                continue;
            best = v;
            by = m.weight[k];
            largest = m.n > 0 ? m.at[k] : -1;
        }
    }
    if (largest >= 0)
        dx[from + largest] += by * dy;
}

static void region_grad(HnEval *e, int64_t r, const Region *g, int64_t b, double *dx)
{
    const HnRoi *p = e->params;
    const HnTensor *x = e->in[0], *dy = e->in[3];
    const int64_t channels = x->dims[1], plane = x->dims[2] * x->dims[3], bins = p->height * p->width;
    for (int64_t i = 0; i < channels * bins; i++)
        (p->max ? max_grad : mean_grad)(x, (b * channels + i / bins) * plane, g, i % bins / p->width, i % p->width,
                                        hn_tensor_get_f64(dy, r * channels * bins + i), dx);
}

static void roialigngrad_ref(HnEval *e)
{
    const HnRoi *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *batch = hn_eval_in(e, 2), *dy = hn_eval_in(e, 3);
    if (!inputs_fit(e))
        return;
    const int64_t want[] = { batch->n, x->dims[1], p->height, p->width };
    if (!hn_tensor_has_dims(dy, 4, want) || (x->n == 0 && dy->n > 0)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 3 does not have the shape of the RoiAlign's result");
        return;
    }
    double *dx = hn_eval_out_like(e, 0, x) != NULL ? hn_eval_scratch(e, MAX(x->n, 1), sizeof *dx) : NULL;
    if (dx == NULL)
        return;
    memset(dx, 0, (size_t)x->n * sizeof *dx);
    for (int64_t r = 0; r < batch->n && e->error == NULL; r++) {
        Region g;
        int64_t b = hn_tensor_get_i64(batch, r);
        if (hn_eval_index(e, &b, x->dims[0]) && region_read(e, e->in[1], r, &g))
            region_grad(e, r, &g, b, dx);
    }
    for (int64_t i = 0; i < x->n; i++)
        hn_tensor_set_f64(e->out[0], i, dx[i]);
    hn_eval_scratch_free(e, dx);
}

static void roialigngrad_cost(const HnInfer *x, HnCost *c)
{
    const HnRoi *p = x->params;
    c->flops = 8 * (p->ratio > 0 ? (double)(p->ratio * p->ratio) : 4) * hn_type_count(x->in[3]);
}

static void roialign_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_in(t, 2), hn_tape_dy(t, 0) };
    hn_tape_ends(t, 1);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "RoiAlignGrad", 4, in, 1), 0));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static void roialign_unbind(HnUnbind *u)
{
    const HnRoi *p = u->params;
    if (hn_unbind_above(u, 16))
        hn_node_set_string(u->node, "coordinate_transformation_mode", "output_half_pixel");
    else if (hn_unbind_below(u, 16) && p->half_pixel)
        hn_unbind_refuse(u, "coordinates shifted by half a pixel came with opset 16");
}

const HnOp hn_op_roialign = {
    .name = "RoiAlign",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 10, 16, 22 },
    .forms = HN_FORMS({ "coordinate_transformation_mode", HN_ATTR_STRING, .since = 16, .word = "output_half_pixel" }),
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTi",
    .out = "T",
    .T = HN_T_FLOATS,
    .unbind = roialign_unbind,
    .params_size = sizeof(HnRoi),
    .bind = roialign_bind,
    .infer = roialign_infer,
    .cost = roialign_cost,
    .ref = roialign_ref,
    .grad = roialign_grad,
    .range = { .exact = "T" },
};

/* Node attributes are those of the newest RoiAlign. */
static void roialigngrad_bind(HnBind *b, void *params)
{
    b->version = HN_OPSET_MAX;
    roialign_bind(b, params);
}

const HnOp hn_op_roialigngrad = {
    .name = "RoiAlignGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTiT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnRoi),
    .bind = roialigngrad_bind,
    .infer = hn_infer_same,
    .cost = roialigngrad_cost,
    .ref = roialigngrad_ref,
};
