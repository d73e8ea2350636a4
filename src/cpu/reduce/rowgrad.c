/*
 * Gradients of LayerNormalization, RMSNormalization, Softmax and LogSoftmax, a row at a time, which is in the first
 * cache from its sums on. Sums over rows are cut into parts, as many as the shape says, which are added in double.
 */
#include "cpu/reduce/rowgrad.h"

#include <math.h>
#include <string.h>

#include "cpu/reduce/norm.h"
#include "op/index.h"
#include "op/layernorm.h"
#include "op/softmax.h"

#define HN_LOOPS "cpu/reduce/rowgrad_loops.h"
#include "base/every_level.h"

static const HnRowGradFns *row_fns(void)
{
    static const HnRowGradFns *const levels[HN_LEVELS] = { &rowgrad_fns_plain, &rowgrad_fns_avx2, &rowgrad_fns_avx512 };
    return levels[hn_cpu_level()];
}

/* --- LayerNormalization ------------------------------------------------------------------------------------------- */

enum { DY, X, SCALE };

#define PARTS 64 /* at most */
#define PART_ROWS 16

typedef struct {
    const HnRowGradFns *fns;
    const HnRowFns *rows_fns;
    int64_t rows, cols, parts, each; /* each: rows of a part */
    int threads;
} NormGrad;

static int from_axis(const HnStep *s, int64_t axis)
{
    return hn_axis(axis, hn_cpu_in(s, X)->ndim);
}

static const char *norm_reject(const HnStep *s)
{
    const HnLayerNormGrad *p = s->params;
    const HnTensor *x = hn_cpu_in(s, X);
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    if (s->n_out < 1 || s->out[0].slot == NULL)
        return "no gradient of the elements";
    return hn_cpu_in(s, SCALE)->n == hn_span(x->dims, from_axis(s, p->axis), x->ndim) ? NULL : "a scale that is no row";
}

static gboolean norm_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnLayerNormGrad *p = s->params;
    const HnTensor *x = hn_cpu_in(s, X);
    NormGrad *g = g_new0(NormGrad, 1);
    s->state = g;
    g->fns = row_fns();
    g->rows_fns = hn_cpu_rows();
    g->rows = hn_span(x->dims, 0, from_axis(s, p->axis));
    g->cols = x->n / g->rows;
    g->each = MAX(PART_ROWS, (g->rows + PARTS - 1) / PARTS);
    g->parts = (g->rows + g->each - 1) / g->each;
    g->threads = hn_cpu_threads_for(s, 14 * (double)x->n);
    s->scratch_bytes = (gsize)(2 * g->parts * g->cols) * sizeof(float);
    return TRUE;
}

static void norm_part(const HnStep *s, int64_t part)
{
    const NormGrad *g = s->state;
    const HnLayerNormGrad *p = s->params;
    const int64_t n = g->cols, last = MIN(g->rows, (part + 1) * g->each);
    float *sums = (float *)s->scratch + 2 * part * n;
    const HnNormRow row = { n, hn_cpu_data(&s->in[SCALE]), sums, sums + n };
    memset(sums, 0, 2 * (gsize)n * sizeof *sums);
    for (int64_t r = part * g->each; r < last; r++) {
        const float *dy = (const float *)hn_cpu_data(&s->in[DY]) + r * n;
        const float *x = (const float *)hn_cpu_data(&s->in[X]) + r * n;
        const float mean = p->centred ? g->rows_fns->sum(x, n) / (float)n : 0;
        const float inv = 1.0f / sqrtf(g->rows_fns->squares(x, n, mean) / (float)n + p->epsilon);
        float all, along;
        g->fns->norm_sums(&row, dy, x, mean, inv, &all, &along);
        g->fns->norm_back(&row, (float *)hn_cpu_data(&s->out[0]) + r * n, dy, x, mean, inv,
                          p->centred ? all / (float)n : 0, along / (float)n);
    }
}

static void join_parts(const HnStep *s, int k)
{
    const NormGrad *g = s->state;
    if (k >= s->n_out - 1 || s->out[k + 1].slot == NULL)
        return;
    float *to = hn_cpu_data(&s->out[k + 1]);
    const float *sums = (const float *)s->scratch + k * g->cols;
    for (int64_t c = 0; c < g->cols; c++) {
        double sum = 0;
        for (int64_t p = 0; p < g->parts; p++)
            sum += (double)sums[2 * p * g->cols + c];
        to[c] = (float)sum;
    }
}

static gboolean norm_run(HnStep *s, GError **error)
{
    (void)error;
    const NormGrad *g = s->state;
#pragma omp parallel for num_threads(g->threads) if (g->threads > 1)
    for (int t = 0; t < g->threads; t++)
        for (int64_t i = g->parts * t / g->threads; i < g->parts * (t + 1) / g->threads; i++)
            norm_part(s, i);
    join_parts(s, 0);
    join_parts(s, 1);
    return TRUE;
}

static const HnKernel layernorm_grad = {
    .name = "cpu.layernorm_grad",
    .reject = norm_reject,
    .prepare = norm_prepare,
    .run = norm_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_layernormgrad[] = { &layernorm_grad, NULL };

/* --- Softmax ------------------------------------------------------------------------------------------------------ */

#define WIDTH 64 /* columns taken at a time */

typedef struct {
    const HnRowGradFns *fns;
    const HnRowFns *rows_fns;
    int64_t outer, n, inner, pieces; /* pieces: rows, or blocks of columns */
    gboolean logs;
    int threads;
} SoftGrad;

static const char *soft_reject(const HnStep *s)
{
    return hn_cpu_reject_f32(s);
}

static gboolean soft_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnSoftmaxGrad *p = s->params;
    const HnTensor *y = hn_cpu_in(s, 1);
    const int axis = from_axis(s, p->axis);
    SoftGrad *g = g_new0(SoftGrad, 1);
    s->state = g;
    g->fns = row_fns();
    g->rows_fns = hn_cpu_rows();
    g->outer = hn_span(y->dims, 0, axis);
    g->n = y->dims[axis];
    g->inner = hn_span(y->dims, axis + 1, y->ndim);
    if (axis == 1 && y->ndim <= 5 && (s->in[0].slot->layout != NULL || s->in[1].slot->layout != NULL)) {
        for (int i = 0; i < 2; i++)
            s->in[i].want = hn_layout_last(y);
        s->out[0].slot->layout = hn_layout_last(y);
        g->outer *= g->inner;
        g->inner = 1;
    }
    g->logs = p->log;
    g->pieces = g->outer * (g->inner == 1 ? 1 : (g->inner + WIDTH - 1) / WIDTH);
    g->threads = hn_cpu_threads_for(s, 6 * (double)y->n);
    return TRUE;
}

static void soft_piece(const HnStep *s, int64_t i)
{
    const SoftGrad *g = s->state;
    const float *dy = hn_cpu_data(&s->in[0]), *y = hn_cpu_data(&s->in[1]);
    float *dx = hn_cpu_data(&s->out[0]), sum[WIDTH];
    if (g->inner > 1) {
        const int64_t blocks = (g->inner + WIDTH - 1) / WIDTH, c = i % blocks * WIDTH;
        const int64_t at = i / blocks * g->n * g->inner + c;
        g->fns->columns_back(dx + at, dy + at, y + at, g->n, g->inner, MIN(WIDTH, g->inner - c), sum, g->logs);
        return;
    }
    dy += i * g->n;
    y += i * g->n;
    if (g->logs)
        g->fns->log_back(dx + i * g->n, dy, y, g->n, g->rows_fns->sum(dy, g->n));
    else
        g->fns->soft_back(dx + i * g->n, dy, y, g->n, g->fns->dot(dy, y, g->n));
}

static gboolean soft_run(HnStep *s, GError **error)
{
    (void)error;
    const SoftGrad *g = s->state;
#pragma omp parallel for num_threads(g->threads) if (g->threads > 1)
    for (int t = 0; t < g->threads; t++)
        for (int64_t i = g->pieces * t / g->threads; i < g->pieces * (t + 1) / g->threads; i++)
            soft_piece(s, i);
    return TRUE;
}

static const HnKernel softmax_grad = {
    .name = "cpu.softmax_grad",
    .reject = soft_reject,
    .prepare = soft_prepare,
    .run = soft_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_softmaxgrad[] = { &softmax_grad, NULL };
