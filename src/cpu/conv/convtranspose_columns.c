/*
 * Columns [pixels][out_channels * taps] = x' [pixels][in_channels] * W [in_channels][out_channels * taps], of a block
 * of source pixels at a time; then each pixel's columns are added to the results that its window covers. Vectors are
 * full of taps where there are not enough output channels to fill them.
 *
 * A part of the work is a range of results along the first spatial axis that is there; source pixels that reach into
 * two ranges are computed for both. Results are sums in the order of pixels, however many parts there are.
 */
#include "cpu/conv/convtranspose_columns.h"

#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/epilogue.h"
#include "cpu/gemm/gemm_kernel.h"
#include "op/conv.h"

#define BLOCK_FLOATS (32 * 1024) /* of columns, in the second cache */
#define FEW_TAPS 8               /* of a row: no more than fit into a vector */
#define ADD_CYCLES 1.5           /* to add a column to a result */

enum { H, W };

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[2]; /* of the convolution whose adjoint this is: `in` are results, `out` is the source */
    int64_t columns;      /* of a pixel */
    int64_t pixels;       /* of a block */
    gboolean last;        /* the source is channels last */
    HnPack *weights;
    HnEpilogue epilogue;
    int threads;
    gsize part_bytes; /* scratch of a thread: columns, and room for the source */
} Columns;

static double filled(int64_t n, int64_t lanes)
{
    return (double)((n + lanes - 1) / lanes * lanes) / (double)n;
}

/* Cycles of one tap of one pixel and output channel: tiles of channels against columns. */
static gboolean is_worth_it(const HnConvPlan *p)
{
    const int64_t lanes = hn_gemm_kernel_cols() / 2;
    const double product = (double)p->in_channels / (double)(2 * lanes);
    return product * filled(p->out_channels * p->taps, lanes) + ADD_CYCLES < product * filled(p->out_channels, lanes);
}

static const char *columns_reject(const HnStep *s)
{
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, HN_CONV_TRANSPOSE, 2, &plan);
    if (reason != NULL)
        return reason;
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (plan.group > 1)
        return "groups";
    for (int i = 0; i < plan.n; i++)
        if (plan.axis[i].pad < 0)
            return "negative padding";
    return is_worth_it(&plan) ? NULL : "tiles of channels are faster";
}

static void columns_release(HnStep *s)
{
    Columns *c = s->state;
    if (c != NULL) {
        hn_pack_unref(c->weights);
        hn_epilogue_clear(&c->epilogue);
    }
    hn_cpu_release(s);
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Columns *c = data;
    hn_gemm_kernel_pack(to, w->data, c->columns, 1, c->plan.in_channels, c->columns);
}

static gboolean columns_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    Columns *c = g_new0(Columns, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    hn_window_axes(p->n, p->axis, 2, c->axis);
    c->columns = p->out_channels * p->taps;
    const int64_t source = c->axis[H].out * c->axis[W].out, rows = hn_gemm_kernel_rows();
    c->pixels = CLAMP(BLOCK_FLOATS / c->columns / rows * rows, rows, MAX(rows, source));
    c->threads = hn_cpu_threads_for(s, 2 * (double)x->n * (double)c->columns);
    c->last = s->in[0].slot->layout != NULL;
    if (c->last)
        s->in[0].want = hn_layout_last(x);
    const gsize floats = (gsize)(c->pixels * c->columns + hn_gemm_kernel_room(c->pixels, p->in_channels));
    c->part_bytes = (floats * sizeof(float) + 63) / 64 * 64;
    s->scratch_bytes = (gsize)c->threads * c->part_bytes;
    return hn_pack_own(s, 1, pack_weights, 0, (gsize)hn_gemm_kernel_packed(p->in_channels, c->columns) * sizeof(float),
                       c, &c->weights, error);
}

/* Results [lo, hi) of an axis, and source positions [from, to) whose windows reach them. */
typedef struct {
    int64_t lo, hi, from, to;
} Range;

static Range range_of(const HnWindowAxis *a, int64_t lo, int64_t hi)
{
    const int64_t reach =
        (a->kernel - 1) * a->dilation; /* position i covers i * stride - pad and up to that further on */
    const int64_t first = lo + a->pad - reach, end = hi - 1 + a->pad;
    Range r = { .lo = lo, .hi = hi };
    r.from = first > 0 ? MIN((first + a->stride - 1) / a->stride, a->out) : 0;
    r.to = CLAMP(end / a->stride + 1, r.from, a->out);
    return r;
}

/* One row of taps of one pixel, whose first one is result `at` of the row y. */
static void add_row(const HnWindowAxis *a, const Range *r, const float *column, float *restrict y, int64_t at)
{
    const int64_t d = a->dilation;
    int64_t from = 0, to = a->kernel;
    if (at < r->lo)
        from = (r->lo - at + d - 1) / d;
    if (at + (to - 1) * d >= r->hi)
        to = at < r->hi ? (r->hi - at + d - 1) / d : 0;
    if (d == 1)
        for (int64_t k = from; k < to; k++)
            y[at + k] += column[k];
    else
        for (int64_t k = from; k < to; k++)
            y[at + k * d] += column[k];
}

typedef float Pair __attribute__((vector_size(8), aligned(4), may_alias));

/* Rows of as many taps as the stride, which lie side by side in the result: all of n pixels in one run. */
static void add_runs(const float *restrict column, int64_t pitch, float *restrict y, int64_t taps, int64_t n)
{
    if (taps == 2) {
        for (int64_t j = 0; j < n; j++)
            *(Pair *)(y + 2 * j) += *(const Pair *)(column + j * pitch);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < taps; k++)
            y[j * taps + k] += column[j * pitch + k];
}

/* Rows of few taps of n pixels of a source row, the first of which is at position i: tap by tap, the last one first, so
 * that a result's sum is in the order of pixels still. */
static void add_taps(const Columns *c, const Range *r, const float *column, float *restrict y, int64_t i, int64_t n)
{
    const HnWindowAxis *w = &c->axis[W];
    const int64_t stride = w->stride, pitch = c->columns, start = i * stride - w->pad;
    if (w->kernel == stride && w->dilation == 1 && start >= r->lo && start + n * stride <= r->hi) {
        add_runs(column, pitch, y + start, stride, n);
        return;
    }
    for (int64_t k = w->kernel; k-- > 0;) {
        const int64_t at = start + k * w->dilation; /* of the first pixel */
        const int64_t from = at < r->lo ? (r->lo - at + stride - 1) / stride : 0;
        const int64_t to = at < r->hi ? MIN(n, (r->hi - at + stride - 1) / stride) : 0;
        const float *restrict x = column + k;
        for (int64_t j = from; j < to; j++)
            y[at + j * stride] += x[j * pitch];
    }
}

/* Columns of source pixels [first, first + n), counted in rows, into the plane of each channel at y. */
static void add_columns(const Columns *c, const float *columns, int64_t first, int64_t n, const Range *range, float *y)
{
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    int64_t top = first / w->out * h->stride - h->pad, i = first % w->out;
    for (int64_t some; n > 0; n -= some, columns += some * c->columns) {
        const float *column = columns;
        some = w->kernel <= FEW_TAPS ? MIN(n, w->out - i) : 1;
        for (int64_t o = 0; o < c->plan.out_channels; o++)
            for (int64_t k = 0; k < h->kernel; k++, column += w->kernel) {
                const int64_t row = top + k * h->dilation;
                float *to = y + (o * h->in + row) * w->in;
                if (row < range[H].lo || row >= range[H].hi)
                    continue;
                if (w->kernel <= FEW_TAPS)
                    add_taps(c, &range[W], column, to, i, some);
                else
                    add_row(w, &range[W], column, to, i * w->stride - w->pad);
            }
        i += some;
        if (i == w->out) {
            i = 0;
            top += h->stride;
        }
    }
}

static void run_part(const HnStep *s, int64_t image, int part, int parts)
{
    const Columns *c = s->state;
    const HnConvPlan *p = &c->plan;
    const int64_t in = c->axis[W].in, source = c->axis[H].out * c->axis[W].out, along = c->axis[H].in > 1 ? H : W;
    const int64_t pitch = c->last ? hn_slot_pitch(s->in[0].slot) : 1; /* from pixel to pixel */
    const float *x = (const float *)hn_cpu_data(&s->in[0]) + image * source * (c->last ? pitch : p->in_channels);
    const float *bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    const int64_t plane = c->axis[H].in * in, base = image * p->out_channels * plane;
    float *y = (float *)hn_cpu_data(&s->out[0]) + base;
    float *columns = (float *)(gpointer)((char *)s->scratch + (gsize)part * c->part_bytes);
    Range range[2];
    for (int k = 0; k < 2; k++) {
        const int64_t all = c->axis[k].in;
        range[k] =
            range_of(&c->axis[k], k == along ? all * part / parts : 0, k == along ? all * (part + 1) / parts : all);
    }
    /* one run of results in each channel's plane, and one of source pixels */
    const int64_t y0 = range[H].lo * in + range[W].lo, y1 = (range[H].hi - 1) * in + range[W].hi;
    if (y1 <= y0)
        return;
    for (int64_t o = 0; o < p->out_channels; o++)
        for (int64_t i = y0; i < y1; i++)
            y[o * plane + i] = bias != NULL ? bias[o] : 0;
    const int64_t x0 = range[H].from * c->axis[W].out + range[W].from,
                  x1 = (range[H].to - 1) * c->axis[W].out + range[W].to;
    HnGemmBlocked g = { .n = c->columns,
                        .k = p->in_channels,
                        .b = hn_pack_data(c->weights, s, 1),
                        .c = columns,
                        .a_pitch = pitch,
                        .a_k = c->last ? 1 : source,
                        .c_pitch = c->columns,
                        .room = c->last ? NULL : columns + c->pixels * c->columns,
                        .lo = HN_GEMM_KERNEL_LOW,
                        .hi = HN_GEMM_KERNEL_HIGH };
    for (int64_t at = x0; at < x1; at += c->pixels) {
        g.m = MIN(c->pixels, x1 - at);
        g.a = x + at * pitch;
        hn_gemm_blocked(&g, 0, 1);
        add_columns(c, columns, at, g.m, range, y);
    }
    for (int64_t o = 0; c->epilogue.n > 0 && o < p->out_channels; o++)
        hn_epilogue_row(&c->epilogue, s, y + o * plane + y0, base + o * plane + y0, y1 - y0, o);
}

static gboolean columns_run(HnStep *s, GError **error)
{
    const Columns *c = s->state;
    (void)error;
    for (int64_t i = 0; i < c->plan.batch; i++) {
        if (c->threads == 1) {
            run_part(s, i, 0, 1);
            continue;
        }
#pragma omp parallel for num_threads(c->threads)
        for (int t = 0; t < c->threads; t++)
            run_part(s, i, t, c->threads);
    }
    return TRUE;
}

const HnKernel hn_cpu_convtranspose_columns = {
    .name = "cpu.convtranspose_columns",
    .reject = columns_reject,
    .prepare = columns_prepare,
    .run = columns_run,
    .release = columns_release,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};
