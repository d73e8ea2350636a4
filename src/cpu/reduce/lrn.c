/*
 * LRN of plain f32 tensors: sums over neighbouring channels for some hundred pixels at a time.
 */
#include "op/lrn.h"

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"

#define HN_LOOPS "cpu/reduce/lrn_loops.h"
#include "base/every_level.h"

typedef void (*ScaleFn)(float *y, const float *x, const float *sum, int64_t n, float bias, float alpha, float beta);
typedef void (*SquareFn)(float *sum, const float *x, int64_t n);

static const ScaleFn scale_fns[HN_LEVELS] = HN_TABLE_OF_LEVELS(lrn_scale);
static const SquareFn square_fns[HN_LEVELS] = HN_TABLE_OF_LEVELS(lrn_squares);

#define PIXELS 512

typedef struct {
    ScaleFn scale;
    SquareFn squares;
    float alpha, beta, bias; /* alpha is divided by the size */
    int64_t below, above;    /* channels on either side */
    int64_t samples, channels, pixels, blocks;
    int threads;
} Lrn;

static const char *lrn_reject(const HnStep *s)
{
    return hn_cpu_reject_f32(s);
}

static gboolean lrn_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnLrn *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    Lrn *l = g_new0(Lrn, 1);
    s->state = l;
    l->scale = scale_fns[hn_cpu_level()];
    l->squares = square_fns[hn_cpu_level()];
    l->alpha = p->alpha / (float)p->size;
    l->beta = p->beta;
    l->bias = p->bias;
    l->below = (p->size - 1) / 2;
    l->above = p->size - 1 - l->below;
    l->samples = x->dims[0];
    l->channels = x->dims[1];
    l->pixels = hn_span(x->dims, 2, x->ndim);
    l->blocks = (l->pixels + PIXELS - 1) / PIXELS;
    l->threads = (int)MIN(hn_cpu_threads_for(s, 30 * (double)x->n), l->samples * l->channels * l->blocks);
    return TRUE;
}

/* Some pixels of one channel of one sample: number i of all. */
static void one_block(const Lrn *l, float *y, const float *x, int64_t i)
{
    float sum[PIXELS] = { 0 };
    const int64_t pixel = i % l->blocks * PIXELS, c = i / l->blocks % l->channels, n = MIN(PIXELS, l->pixels - pixel);
    const int64_t at = i / l->blocks / l->channels * l->channels * l->pixels + pixel;
    const int64_t from = c < l->below ? 0 : c - l->below;
    const int64_t to = l->above < l->channels - c ? c + l->above : l->channels - 1;
    for (int64_t k = from; k <= to; k++)
        l->squares(sum, x + at + k * l->pixels, n);
    l->scale(y + at + c * l->pixels, x + at + c * l->pixels, sum, n, l->bias, l->alpha, l->beta);
}

static gboolean lrn_run(HnStep *s, GError **error)
{
    (void)error;
    const Lrn *l = s->state;
    const float *x = hn_cpu_data(&s->in[0]);
    float *y = hn_cpu_data(&s->out[0]);
    const int64_t all = l->samples * l->channels * l->blocks;
    if (l->threads == 1) {
        for (int64_t i = 0; i < all; i++)
            one_block(l, y, x, i);
        return TRUE;
    }
#pragma omp parallel for num_threads(l->threads)
    for (int64_t i = 0; i < all; i++)
        one_block(l, y, x, i);
    return TRUE;
}

static const HnKernel lrn = {
    .name = "cpu.lrn",
    .reject = lrn_reject,
    .prepare = lrn_prepare,
    .run = lrn_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_lrn[] = { &lrn, NULL };
