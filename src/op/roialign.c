/*
 * RoiAlign: each region of interest pooled to a fixed grid out of bilinear samples. Before opset 16 coordinates were
 * taken as they are; since then half a pixel is subtracted unless the node says otherwise.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/move.h"
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

static void roialign_ref(HnEval *e)
{
    const HnRoi *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *rois = hn_eval_in(e, 1), *batch = hn_eval_in(e, 2);
    if (x->ndim != 4 || rois->ndim != 2 || batch->ndim != 1 || rois->dims[1] != 4 || rois->dims[0] != batch->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input, regions and batch indices do not fit");
        return;
    }
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
    .range = { .exact = "T" },
};
