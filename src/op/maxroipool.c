/*
 * MaxRoiPool: the largest elements of a grid of cells over regions of an image. x [N,C,H,W], rois [R,5] as (sample, x1,
 * y1, x2, y2), both ends belonging to the region; y [R,C,rows,columns]. An empty cell gives 0.
 *
 * MaxRoiPoolGrad(x, rois, dy) (domain "hone"): the gradient of x, that of a cell to its first largest element.
 */
#include <math.h>

#include "op/index.h"
#include "op/op.h"
#include "op/tape.h"
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

/* --- gradient ----------------------------------------------------------------------------------------------------- */

/* Place in x of the first largest element of a cell of the plane at `from`; -1: the cell is empty. */
static int64_t first_largest(const HnTensor *x, int64_t from, const int64_t *rows, const int64_t *columns)
{
    int64_t at = -1;
    for (int64_t y = rows[0]; y < rows[1]; y++)
        for (int64_t c = columns[0]; c < columns[1]; c++) {
            const int64_t i = from + y * x->dims[3] + c;
            if (at < 0 || hn_tensor_get_f64(x, i) > hn_tensor_get_f64(x, at))
                at = i;
        }
    return at;
}

static void region_grad(const HnEval *e, int64_t r, int64_t sample, const double *corner, double *dx)
{
    const HnTensor *x = e->in[0], *dy = e->in[2];
    const HnMaxRoiPool *p = e->params;
    const int64_t channels = x->dims[1], cells = p->pooled[0] * p->pooled[1];
    for (int64_t i = 0; i < channels * cells; i++) {
        int64_t rows[2], columns[2];
        cell(corner[1], corner[3], p->pooled[0], i % cells / p->pooled[1], x->dims[2], &rows[0], &rows[1]);
        cell(corner[0], corner[2], p->pooled[1], i % p->pooled[1], x->dims[3], &columns[0], &columns[1]);
        const int64_t plane = (sample * channels + i / cells) * x->dims[2] * x->dims[3];
        const int64_t at = first_largest(x, plane, rows, columns);
        if (at >= 0)
            dx[at] += hn_tensor_get_f64(dy, r * channels * cells + i);
    }
}

static void maxroipoolgrad_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *rois = hn_eval_in(e, 1), *dy = hn_eval_in(e, 2);
    const HnMaxRoiPool *p = e->params;
    gboolean fits = x->ndim == 4 && rois->ndim == 2 && rois->dims[1] == 5;
    const int64_t want[] = { fits ? rois->dims[0] : 0, fits ? x->dims[1] : 0, p->pooled[0], p->pooled[1] };
    fits = fits && hn_tensor_has_dims(dy, 4, want);
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the inputs are not those and the result of a MaxRoiPool");
        return;
    }
    double *dx = hn_eval_out_like(e, 0, x) != NULL ? hn_eval_scratch(e, MAX(x->n, 1), sizeof *dx) : NULL, corner[4];
    int64_t sample;
    for (int64_t i = 0; dx != NULL && i < x->n; i++)
        dx[i] = 0;
    for (int64_t r = 0; dx != NULL && r < rois->dims[0] && corners(e, r, x->dims[0], &sample, corner); r++)
        region_grad(e, r, sample, corner, dx);
    for (int64_t i = 0; dx != NULL && i < x->n; i++)
        hn_tensor_set_f64(e->out[0], i, dx[i]);
    hn_eval_scratch_free(e, dx);
}

static void maxroipoolgrad_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[2]);
}

static void maxroipool_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_dy(t, 0) };
    hn_tape_ends(t, 1);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_node_out(hn_tape_backward(t, "MaxRoiPoolGrad", 3, in, 1), 0));
}

/* --- records ------------------------------------------------------------------------------------------------------ */

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
    .grad = maxroipool_grad,
    .range = { .exact = "T" },
};

const HnOp hn_op_maxroipoolgrad = {
    .name = "MaxRoiPoolGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnMaxRoiPool),
    .bind = maxroipool_bind,
    .infer = hn_infer_same,
    .cost = maxroipoolgrad_cost,
    .ref = maxroipoolgrad_ref,
};
