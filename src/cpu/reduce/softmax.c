/*
 * Softmax and LogSoftmax along any axis, of f32 and f64. f16 and bf16 rows are computed in f32.
 */
#include "op/softmax.h"

#include <math.h>

#include "cpu/core/half_rows.h"
#include "cpu/reduce/norm.h"
#include "op/index.h"

#define HN_LOOPS "cpu/reduce/softmax_f64_loops.h"
#include "base/every_level.h"

#define WIDTH 64 /* columns taken at a time */

typedef struct {
    const HnRowFns *fns;
    int64_t outer, n, inner;
    gboolean logs, wide; /* wide: f64 */
    HnDtype half;        /* HN_UNDEFINED: f32 or f64 */
    gboolean several;    /* rows so short that they are taken HN_SHORT_ROWS at a time */
    int threads;
} Softmax;

static int axis_of(const HnStep *s)
{
    const HnSoftmax *p = s->params;
    return hn_axis(p->axis, hn_cpu_in(s, 0)->ndim);
}

/* Of channels that lie side by side. */
static gboolean is_last(const HnStep *s)
{
    return hn_layout_is_last(s->in[0].slot->layout) && axis_of(s) == 1 && !((const HnSoftmax *)s->params)->flatten;
}

/* The rows that are normalised; an axis behind the last one makes rows of one element. */
static void rows_of(const HnStep *s, int64_t *outer, int64_t *n, int64_t *inner)
{
    const HnSoftmax *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    int axis = axis_of(s);
    if (is_last(s)) {
        *n = x->dims[1];
        *outer = x->n / *n;
        *inner = 1;
        return;
    }
    int end = p->flatten || x->ndim == 0 ? x->ndim : axis + 1;
    axis = CLAMP(axis, 0, x->ndim);
    *outer = hn_span(x->dims, 0, axis);
    *n = hn_span(x->dims, axis, end);
    *inner = hn_span(x->dims, end, x->ndim);
}

static const char *softmax_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    int64_t outer, n, inner;
    if (x->dtype != HN_F32 && x->dtype != HN_F64 && !hn_dtype_is_half(x->dtype))
        return "only f32, f64, f16, bf16";
    if (x->n == 0)
        return "nothing to compute";
    rows_of(s, &outer, &n, &inner);
    return hn_dtype_is_half(x->dtype) && inner > 1 ? "rows of a half type that are not contiguous" : NULL;
}

static gboolean softmax_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    Softmax *m = g_new0(Softmax, 1);
    s->state = m;
    m->fns = hn_cpu_rows();
    rows_of(s, &m->outer, &m->n, &m->inner);
    m->logs = s->op == &hn_op_logsoftmax;
    m->wide = x->dtype == HN_F64;
    m->half = hn_dtype_is_half(x->dtype) ? x->dtype : HN_UNDEFINED;
    m->several = x->dtype == HN_F32 && m->inner == 1 && m->n <= HN_SHORT && m->outer >= 4;
    m->threads = hn_cpu_threads_for(s, 16 * (double)x->n);
    if (m->half != HN_UNDEFINED)
        s->scratch_bytes = (gsize)m->n * sizeof(float) * (gsize)m->threads;
    if (is_last(s)) {
        s->in[0].any = TRUE;
        s->out[0].slot->layout = hn_layout_ref(s->in[0].slot->layout);
    }
    return TRUE;
}

static void one_row(const Softmax *m, float *y, const float *x)
{
    const HnRowFns *f = m->fns;
    const float max = f->max(x, m->n);
    if (m->logs)
        f->log_share(y, x, m->n, max, logf(f->exp_sum(x, m->n, max)));
    else
        f->affine(y, y, m->n, 1.0f / f->exp(y, x, m->n, max), 0);
}

static void half_row(const Softmax *m, uint16_t *y, const uint16_t *x, float *row)
{
    hn_cpu_half_to_f32(m->half, row, x, m->n);
    one_row(m, row, row);
    hn_cpu_half_from_f32(m->half, y, row, m->n);
}

static void one_block(const Softmax *m, float *y, const float *x, int64_t i)
{
    const int64_t blocks = (m->inner + WIDTH - 1) / WIDTH;
    float most[WIDTH], sum[WIDTH];
    const int64_t c = i % blocks * WIDTH, at = i / blocks * m->n * m->inner + c;
    m->fns->columns(y + at, x + at, m->n, m->inner, MIN(WIDTH, m->inner - c), most, sum, m->logs);
}

static void one_wide(const Softmax *m, double *y, const double *x, int64_t i)
{
    static void (*const row_fns[])(double *, const double *, int64_t, gboolean) = HN_TABLE_OF_LEVELS(row_softmax_f64);
    static void (*const column_fns[])(double *, const double *, int64_t, int64_t, int64_t, double *, double *,
                                      gboolean) = HN_TABLE_OF_LEVELS(columns_softmax_f64);
    if (m->inner == 1) {
        row_fns[hn_cpu_level()](y + i * m->n, x + i * m->n, m->n, m->logs);
        return;
    }
    const int64_t blocks = (m->inner + WIDTH - 1) / WIDTH;
    double most[WIDTH], sum[WIDTH];
    const int64_t c = i % blocks * WIDTH, at = i / blocks * m->n * m->inner + c;
    column_fns[hn_cpu_level()](y + at, x + at, m->n, m->inner, MIN(WIDTH, m->inner - c), most, sum, m->logs);
}

/* Blocks, rows or rows of half numbers [lo, hi). */
static void run_units(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Softmax *m = s->state;
    const void *x = hn_cpu_data(&s->in[0]);
    void *y = hn_cpu_data(&s->out[0]);
    if (m->several) {
        m->fns->short_rows((float *)y + lo * m->n, (const float *)x + lo * m->n, m->n, hi - lo, m->logs);
        return;
    }
    for (int64_t i = lo; i < hi; i++) {
        if (m->wide)
            one_wide(m, y, x, i);
        else if (m->half != HN_UNDEFINED)
            half_row(m, (uint16_t *)y + i * m->n, (const uint16_t *)x + i * m->n, (float *)s->scratch + thread * m->n);
        else if (m->inner > 1)
            one_block(m, y, x, i);
        else
            one_row(m, (float *)y + i * m->n, (const float *)x + i * m->n);
    }
}

static gboolean softmax_run(HnStep *s, GError **error)
{
    (void)error;
    const Softmax *m = s->state;
    const int64_t blocks = (m->inner + WIDTH - 1) / WIDTH;
    hn_parallel_for(m->half == HN_UNDEFINED && m->inner > 1 ? m->outer * blocks : m->outer, m->threads, run_units, s);
    return TRUE;
}

static const HnKernel softmax = {
    .name = "cpu.softmax",
    .reject = softmax_reject,
    .prepare = softmax_prepare,
    .run = softmax_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_softmax[] = { &softmax, NULL };
const HnKernel *const hn_cpu_logsoftmax[] = { &softmax, NULL };
