/*
 * MaxRoiPool: the largest elements of a grid of cells over regions of an image. x [N,C,H,W], rois [R,5] as (sample, x1,
 * y1, x2, y2), both ends belonging to the region; y [R,C,rows,columns]. An empty cell gives 0.
 */
#include <math.h>

#include "op/index.h"
#include "op/op.h"
#include "op/types.h"

typedef struct {
    const int64_t *pooled; /* rows, columns */
    double scale;
} HnMaxRoiPool;

static void maxroipool_bind(HnBind *b, void *params)
{
    HnMaxRoiPool *p = params;
    int64_t n;
    hn_bind_require(b, "pooled_shape");
    p->pooled = hn_bind_ints(b, "pooled_shape", &n);
    p->scale = (double)hn_bind_float(b, "spatial_scale", 1);
    if (b->error == NULL && (n != 2 || p->pooled[0] < 1 || p->pooled[1] < 1))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'pooled_shape' is not two positive sizes");
}

static void maxroipool_infer(HnInfer *x)
{
    const HnMaxRoiPool *p = x->params;
    HnDim dims[4] = { hn_infer_dim(x, 1, 0), hn_infer_dim(x, 0, 1), hn_dim(p->pooled[0]), hn_dim(p->pooled[1]) };
    int rank = hn_infer_rank(x, 0), rois = hn_infer_rank(x, 1);
    if ((rank >= 0 && rank != 4) || (rois >= 0 && rois != 2) || hn_dim_differ(hn_infer_dim(x, 1, 1), hn_dim(5))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input needs 4 dimensions and the regions 5 numbers each");
        return;
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 4, dims);
}

/* Cells along one axis: cell i covers [lo, hi) of [0, size). */
static void cell(double start, double end, int64_t cells, int64_t i, int64_t size, int64_t *lo, int64_t *hi)
{
    double step = fmax(end - start + 1, 1) / (double)cells;
    double a = floor((double)i * step) + start, b = ceil((double)(i + 1) * step) + start;
    *lo = (int64_t)CLAMP(a, 0, (double)size);
    *hi = (int64_t)CLAMP(b, 0, (double)size);
}

/* The four corners of region r in elements; FALSE: the region is not of this input. */
static gboolean corners(HnEval *e, int64_t r, int64_t samples, int64_t *sample, double *corner)
{
    const HnMaxRoiPool *p = e->params;
    double s = hn_tensor_get_f64(e->in[1], r * 5);
    gboolean fine = s >= 0 && s < (double)samples;
    for (int i = 0; i < 4; i++) {
        corner[i] = round(hn_tensor_get_f64(e->in[1], r * 5 + 1 + i) * p->scale);
        fine = fine && fabs(corner[i]) < 0x1p50;
    }
    if (!fine)
        hn_eval_fail(e, HN_ERROR_VALUE, "region %" PRId64 " does not lie in one of %" PRId64 " samples", r, samples);
    *sample = fine ? (int64_t)s : 0;
    return fine;
}

#define DEFINE_RUN(T)                                                                                   \
    static T largest_##T(const T *plane, int64_t width, int64_t y0, int64_t y1, int64_t x0, int64_t x1) \
    {                                                                                                   \
        T max = y0 < y1 && x0 < x1 ? plane[y0 * width + x0] : 0;                                        \
        for (int64_t y = y0; y < y1; y++)                                                               \
            for (int64_t x = x0; x < x1; x++)                                                           \
                max = plane[y * width + x] > max ? plane[y * width + x] : max;                          \
        return max;                                                                                     \
    }
DEFINE_RUN(float)
DEFINE_RUN(double)

static void maxroipool_ref(HnEval *e)
{
    const HnMaxRoiPool *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *rois = hn_eval_in(e, 1);
    if (x->ndim != 4 || rois->ndim != 2 || rois->dims[1] != 5 || rois->dtype != x->dtype) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input needs 4 dimensions and the regions 5 numbers each");
        return;
    }
    int64_t rows = p->pooled[0], columns = p->pooled[1], height = x->dims[2], width = x->dims[3], channels = x->dims[1];
    int64_t dims[4] = { rois->dims[0], channels, rows, columns }, sample, y0, y1, x0, x1;
    double corner[4];
    void *out = hn_eval_out(e, 0, x->dtype, 4, dims);
    for (int64_t r = 0; out != NULL && r < dims[0] && corners(e, r, x->dims[0], &sample, corner); r++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < rows * columns; i++) {
                int64_t plane = (sample * channels + c) * height * width, to = (r * channels + c) * rows * columns + i;
                cell(corner[1], corner[3], rows, i / columns, height, &y0, &y1);
                cell(corner[0], corner[2], columns, i % columns, width, &x0, &x1);
#define RUN(T) ((T *)out)[to] = largest_##T((const T *)x->data + plane, width, y0, y1, x0, x1);
                HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
            }
}

const HnOp hn_op_maxroipool = {
    .name = "MaxRoiPool",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .wide = HN_WIDE_PICKS,
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnMaxRoiPool),
    .bind = maxroipool_bind,
    .infer = maxroipool_infer,
    .cost = hn_cost_elementwise,
    .ref = maxroipool_ref,
    .range = { .exact = "T" },
};
