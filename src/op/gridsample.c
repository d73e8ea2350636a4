/*
 * GridSample: y[n,c,o...] is x[n,c] at the place grid[n,o...,:], given from the innermost axis outwards with -1 and 1
 * at the ends of each axis, interpolated between its neighbours.
 */
#include "op/gridsample.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/tape.h"
#include "op/types.h"
#include "op/unbind.h"

enum { MAX_TAPS = 1024 }; /* HN_GRID_TAPS along each of HN_GRID_AXES */

void hn_gridsample_bind(HnBind *b, void *params)
{
    static const char *const modes[] = { "linear", "nearest", "cubic", "bilinear", "bicubic", NULL };
    static const HnGridMode mode_of[] = { HN_GRID_LINEAR, HN_GRID_NEAREST, HN_GRID_CUBIC, HN_GRID_LINEAR,
                                          HN_GRID_CUBIC };
    static const char *const paddings[] = { "zeros", "border", "reflection", NULL };
    HnGridSample *p = params;
    p->mode = mode_of[hn_bind_word(b, "mode", modes, 0)];
    p->padding = (HnGridPadding)hn_bind_word(b, "padding_mode", paddings, HN_GRID_ZEROS);
    p->align_corners = hn_bind_bool(b, "align_corners", FALSE);
}

static void gridsample_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0), grid_rank = hn_infer_rank(x, 1);
    HnDim dims[HN_MAX_RANK];
    if (rank >= 0 && grid_rank >= 0 && rank != grid_rank) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions and the grid has %d", rank, grid_rank);
        return;
    }
    rank = MAX(rank, grid_rank);
    if (rank >= 0 && rank < 3) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, at least 3 are needed", rank);
        return;
    }
    if (rank >= 0 && hn_dim_differ(hn_infer_dim(x, 1, rank - 1), hn_dim(rank - 2))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the grid does not hold %d coordinates per place", rank - 2);
        return;
    }
    if (hn_dim_differ(hn_infer_dim(x, 0, 0), hn_infer_dim(x, 1, 0))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "input and grid differ in batch size");
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? hn_infer_dim(x, 0, i) : hn_infer_dim(x, 1, i - 1);
    if (rank >= 0 && !dims[0].known)
        dims[0] = hn_infer_rank(x, 0) >= 0 ? dims[0] : hn_infer_dim(x, 1, 0);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static void gridsample_cost(const HnInfer *x, HnCost *c)
{
    const HnGridSample *p = x->params;
    c->flops = hn_type_count(x->out[0]) * (p->mode == HN_GRID_NEAREST ? 1 : p->mode == HN_GRID_LINEAR ? 8 : 32);
}

/* --- places ------------------------------------------------------------------------------------------------------ */

/* Reflected at the borders lo and hi until it lies between them. */
static double reflect(double x, double lo, double hi)
{
    double range = hi - lo;
    if (!(range > 0))
        return lo;
    double d = fabs(x - lo), r = fmod(d, 2 * range);
    return r <= range ? lo + r : hi - (r - range);
}

int64_t hn_grid_settle(const HnGridSample *p, int64_t i, int64_t size)
{
    if (i >= 0 && i < size)
        return i;
    if (p->padding == HN_GRID_ZEROS)
        return -1;
    double k = (double)i;
    if (p->padding == HN_GRID_REFLECTION)
        k = p->align_corners ? reflect(k, 0, (double)(size - 1)) : reflect(k, -0.5, (double)size - 0.5);
    return k >= (double)size ? size - 1 : k > 0 ? (int64_t)k : 0;
}

/* Halves between elements are decided in single precision, as the specification's own evaluator does. */
double hn_grid_place(const HnGridSample *p, double v, int64_t size)
{
    double x;
    double lo = p->align_corners ? 0 : -0.5, hi = (double)(size - 1) - lo;
    if (p->mode == HN_GRID_NEAREST) {
        float n = (float)v, length = (float)size;
        x = (double)(p->align_corners ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2);
        x = nearbyint(x);
    } else {
        x = p->align_corners ? (v + 1) / 2 * (double)(size - 1) : ((v + 1) * (double)size - 1) / 2;
    }
    if (!isfinite(x))
        return p->padding == HN_GRID_ZEROS ? -0x1p50 : 0;
    if (x < lo || x > hi) {
        if (p->padding == HN_GRID_BORDER && p->mode != HN_GRID_CUBIC) /* cubic: its taps are moved one by one */
            x = x < 0 ? 0 : (double)(size - 1);
        else if (p->padding == HN_GRID_REFLECTION)
            x = reflect(x, lo, hi);
    }
    return CLAMP(x, -0x1p50, 0x1p50);
}

double hn_grid_slope(const HnGridSample *p, double v, int64_t size)
{
    const double lo = p->align_corners ? 0 : -0.5, hi = (double)(size - 1) - lo, step = (hi - lo) / 2;
    const double x = (v + 1) * step + lo;
    if (!isfinite(x) || p->mode == HN_GRID_NEAREST)
        return 0;
    if ((x >= lo && x <= hi) || p->padding == HN_GRID_ZEROS)
        return step;
    if (p->padding == HN_GRID_BORDER)
        return p->mode == HN_GRID_CUBIC ? step : 0;
    if (!(hi > lo))
        return 0;
    return (x < lo) == (fmod(fabs(x - lo), 2 * (hi - lo)) <= hi - lo) ? -step : step;
}

int hn_grid_taps(const HnGridSample *p, double x, int64_t *first, double *w, double *slope)
{
    double low = floor(x), t = x - low, a = -0.75, unread[HN_GRID_TAPS];
    slope = slope != NULL ? slope : unread;
    *first = (int64_t)low;
    if (p->mode == HN_GRID_NEAREST) {
        w[0] = 1;
        slope[0] = 0;
        return 1;
    }
    if (p->mode == HN_GRID_LINEAR) {
        w[0] = 1 - t;
        w[1] = t;
        slope[0] = -1;
        slope[1] = 1;
        return 2;
    }
    *first -= 1;
    for (int k = 0; k < 4; k++) {
        double d = fabs(t + 1 - k);
        w[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        slope[k] = d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a;
        slope[k] = t + 1 < k ? -slope[k] : slope[k];
    }
    return 4;
}

/* What one output is made of: `n` offsets into a plane and their weights. */
typedef struct {
    int n;
    int64_t at[MAX_TAPS];
    double w[MAX_TAPS];
} Mix;

static void mix_of(const HnGridSample *p, int axes, const int64_t *size, const HnTensor *grid, int64_t from, Mix *m)
{
    m->n = 1;
    m->at[0] = 0;
    m->w[0] = 1;
    for (int i = 0; i < axes; i++) {
        int64_t first;
        double w[HN_GRID_TAPS];
        double x = hn_grid_place(p, hn_tensor_get_f64(grid, from + axes - 1 - i), size[i]);
        int taps = hn_grid_taps(p, x, &first, w, NULL), n = m->n;
        for (int k = taps - 1; k >= 0; k--) /* the combinations so far times the taps, the first ones last */
            for (int j = 0; j < n; j++) {
                int64_t at = hn_grid_settle(p, first + k, size[i]);
                gboolean none = at < 0 || m->at[j] < 0;
                m->at[k * n + j] = none ? -1 : m->at[j] * size[i] + at;
                m->w[k * n + j] = m->w[j] * w[k];
            }
        m->n = n * taps;
    }
}

/* Truncated into the range of a type; hi of 64 bits is the largest double below the limit. */
static inline double truncated(double v, double lo, double hi)
{
    return v != v ? 0 : trunc(CLAMP(v, lo, hi));
}
#define AS_FLOAT(T, v, lo, hi) (T)(v)
#define AS_INT(T, v, lo, hi) (T) truncated(v, lo, hi)

#define DEFINE_MIX(T, AS, lo, hi)                                                                           \
    static void mix_##T(const T *x, T *y, const Mix *m, int64_t channels, int64_t x_plane, int64_t y_plane) \
    {                                                                                                       \
        for (int64_t c = 0; c < channels; c++) {                                                            \
            double sum = 0;                                                                                 \
            for (int i = 0; i < m->n; i++)                                                                  \
                sum += m->at[i] >= 0 ? m->w[i] * (double)x[c * x_plane + m->at[i]] : 0;                     \
            y[c * y_plane] = AS(T, sum, lo, hi);                                                            \
        }                                                                                                   \
    }
DEFINE_MIX(float, AS_FLOAT, 0, 0)
DEFINE_MIX(double, AS_FLOAT, 0, 0)
DEFINE_MIX(int8_t, AS_INT, -128, 127)
DEFINE_MIX(uint8_t, AS_INT, 0, 255)
DEFINE_MIX(int16_t, AS_INT, INT16_MIN, INT16_MAX)
DEFINE_MIX(uint16_t, AS_INT, 0, UINT16_MAX)
DEFINE_MIX(int32_t, AS_INT, INT32_MIN, INT32_MAX)
DEFINE_MIX(uint32_t, AS_INT, 0, UINT32_MAX)
DEFINE_MIX(int64_t, AS_INT, -0x1p63, 0x1.fffffffffffffp62)
DEFINE_MIX(uint64_t, AS_INT, 0, 0x1.fffffffffffffp63)

/* Nearest: elements are moved, of any type. */
static void move(const HnTensor *x, void *y, const Mix *m, int64_t from, int64_t to, int64_t channels, int64_t x_plane,
                 int64_t y_plane)
{
#define RUN(T)                             \
    for (int64_t c = 0; c < channels; c++) \
        ((T *)y)[to + c * y_plane] = m->at[0] >= 0 ? ((const T *)x->data)[from + c * x_plane + m->at[0]] : 0;
    HN_FOR_SIZE(hn_dtype_size(x->dtype), RUN)
#undef RUN
}

gboolean hn_gridsample_check(HnEval *e, const HnTensor *x, const HnTensor *grid)
{
    const HnGridSample *p = e->params;
    int axes = x->ndim - 2;
    if (axes < 1 || grid->ndim != x->ndim || grid->dims[0] != x->dims[0] || grid->dims[axes + 1] != axes) {
        g_autofree char *a = hn_tensor_describe(x), *b = hn_tensor_describe(grid);
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %s and grid %s do not fit", a, b);
        return FALSE;
    }
    if (axes > HN_GRID_AXES) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d spatial axes are more than %d", axes, HN_GRID_AXES);
        return FALSE;
    }
    if (!hn_dtype_in(x->dtype, p->mode == HN_GRID_NEAREST ? HN_T_COMPUTE | HN_BIT(HN_C64) : HN_T_NUM) ||
        !hn_dtype_in(grid->dtype, HN_T_FLOATS)) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%s cannot be sampled in this mode", hn_dtype_name(x->dtype));
        return FALSE;
    }
    return TRUE;
}

static void gridsample_ref(HnEval *e)
{
    const HnGridSample *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *grid = hn_eval_in(e, 1);
    int64_t dims[HN_MAX_RANK], n;
    if (!hn_gridsample_check(e, x, grid))
        return;
    int axes = x->ndim - 2;
    for (int i = 0; i < x->ndim; i++)
        dims[i] = i < 2 ? x->dims[i] : grid->dims[i - 1];
    void *y = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    Mix *m = y != NULL ? hn_eval_scratch(e, 1, sizeof *m) : NULL;
    if (m == NULL || !hn_dims_count(x->ndim, dims, &n)) {
        hn_eval_scratch_free(e, m);
        return;
    }
    int64_t channels = dims[1], x_plane = hn_span(x->dims, 2, x->ndim), y_plane = hn_span(dims, 2, x->ndim);
    if (x_plane == 0 && n > 0)
        hn_eval_fail(e, HN_ERROR_SHAPE, "an empty input cannot be sampled");
    for (int64_t i = 0; n > 0 && e->error == NULL && i < dims[0] * y_plane; i++) {
        int64_t s = i / y_plane, from = s * channels * x_plane, to = s * channels * y_plane + i % y_plane;
        mix_of(p, axes, x->dims + 2, grid, i * axes, m);
        if (p->mode == HN_GRID_NEAREST) {
            move(x, y, m, from, to, channels, x_plane, y_plane);
            continue;
        }
#define RUN(T) mix_##T((const T *)x->data + from, (T *)y + to, m, channels, x_plane, y_plane);
        HN_FOR_NUM(x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, m);
}

/* Opset 20 gave the modes shorter names and took volumes. */
static void gridsample_unbind(HnUnbind *u)
{
    static const char *const before[] = { "bilinear", "nearest", "bicubic" }, *const since[] = { "linear", "nearest",
                                                                                                 "cubic" };
    const HnGridSample *p = u->params;
    if ((u->from < 20) == (u->to < 20))
        return;
    if (u->to < 20 && hn_unbind_rank(u, 0) != 4)
        hn_unbind_refuse(u, "only inputs of 4 dimensions were taken before opset 20");
    else
        hn_node_set_string(u->node, "mode", u->to < 20 ? before[p->mode] : since[p->mode]);
}

static void gridsample_grad(HnTape *t)
{
    HnValue *in[] = { hn_tape_in(t, 0), hn_tape_in(t, 1), hn_tape_dy(t, 0) };
    const HnNode *n = hn_tape_backward(t, "GridSampleGrad", 3, in, 2);
    for (int i = 0; i < 2; i++)
        hn_tape_give(t, i, hn_node_out(n, i));
}

void hn_gridsample_batch(HnBatch *b)
{
    hn_batch_first_of(b, 1 | 1 << 1);
}

const HnOp hn_op_gridsample = {
    .name = "GridSample",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 16, 20, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22), { 'U', 22, 0, HN_BIT(HN_BF16) }),
    .in = "TU",
    .out = "T",
    .T = HN_T_COMPUTE | HN_BIT(HN_C64) | HN_BIT(HN_C128) | HN_BIT(HN_STRING),
    .U = HN_T_FLOATS,
    .unbind = gridsample_unbind,
    .params_size = sizeof(HnGridSample),
    .bind = hn_gridsample_bind,
    .infer = gridsample_infer,
    .cost = gridsample_cost,
    .ref = gridsample_ref,
    .grad = gridsample_grad,
    .batch = hn_gridsample_batch,
    .range = { .exact = "U" },
};
