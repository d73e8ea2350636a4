/*
 * Losses over elements of f32, in whichever layout both lie: sums of pieces in double, which are added in their order.
 */
#include <math.h>

#include "cpu/core/cpu_kernel.h"
#include "op/loss.h"

#define HN_LOOPS "cpu/reduce/elementloss_loops.h"
#include "base/every_level.h"

#define PIECE 4096 /* elements */

typedef double (*SumFn)(const float *x, const float *y, int64_t n);
typedef void (*GradFn)(float *dx, const float *x, const float *y, float dy, int64_t n);

typedef struct {
    SumFn sum;
    GradFn grad; /* one of both */
    int64_t n, pieces;
    int threads;
} ElementLoss;

static const char *loss_reject(const HnStep *s)
{
    if (s->n_in > 2 && hn_cpu_in(s, 2)->n != 1)
        return "input 2 is not one number";
    return hn_cpu_reject_f32(s);
}

static void prepare(HnStep *s, const SumFn *sums, const GradFn *grads)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    ElementLoss *l = g_new0(ElementLoss, 1);
    s->state = l;
    l->sum = sums != NULL ? sums[hn_cpu_level()] : NULL;
    l->grad = grads != NULL ? grads[hn_cpu_level()] : NULL;
    l->n = x->n;
    l->pieces = (x->n + PIECE - 1) / PIECE;
    l->threads = hn_cpu_threads_for(s, 8 * (double)x->n);
    s->scratch_bytes = (gsize)l->pieces * sizeof(double);
    if (!hn_layout_is_last(s->in[0].slot->layout))
        return;
    for (int i = 0; i < 2; i++)
        s->in[i].want = hn_layout_last(x);
    if (l->grad != NULL)
        s->out[0].slot->layout = hn_layout_last(x);
}

static gboolean mse_prepare(HnStep *s, GError **error)
{
    static const SumFn sums[] = HN_TABLE_OF_LEVELS(square_losses);
    (void)error;
    prepare(s, sums, NULL);
    return TRUE;
}

static gboolean l1_prepare(HnStep *s, GError **error)
{
    static const SumFn sums[] = HN_TABLE_OF_LEVELS(distance_losses);
    (void)error;
    prepare(s, sums, NULL);
    return TRUE;
}

static gboolean bce_prepare(HnStep *s, GError **error)
{
    static const SumFn logits[] = HN_TABLE_OF_LEVELS(logit_losses), made[] = HN_TABLE_OF_LEVELS(probability_losses);
    (void)error;
    prepare(s, ((const HnLoss *)s->params)->probabilities ? made : logits, NULL);
    return TRUE;
}

static gboolean bce_grad_prepare(HnStep *s, GError **error)
{
    static const GradFn logits[] = HN_TABLE_OF_LEVELS(logit_grads), made[] = HN_TABLE_OF_LEVELS(probability_grads);
    (void)error;
    prepare(s, NULL, ((const HnLoss *)s->params)->probabilities ? made : logits);
    return TRUE;
}

static void run_piece(const HnStep *s, int64_t i)
{
    const ElementLoss *l = s->state;
    const int64_t at = i * PIECE, n = MIN(PIECE, l->n - at);
    const float *x = (const float *)hn_cpu_data(&s->in[0]) + at, *y = (const float *)hn_cpu_data(&s->in[1]) + at;
    if (l->grad != NULL)
        l->grad((float *)hn_cpu_data(&s->out[0]) + at, x, y, *(const float *)hn_cpu_data(&s->in[2]), n);
    else
        ((double *)s->scratch)[i] = l->sum(x, y, n);
}

static gboolean loss_run(HnStep *s, GError **error)
{
    (void)error;
    const ElementLoss *l = s->state;
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
    for (int t = 0; t < l->threads; t++)
        for (int64_t i = l->pieces * t / l->threads; i < l->pieces * (t + 1) / l->threads; i++)
            run_piece(s, i);
    if (l->grad != NULL)
        return TRUE;
    double sum = 0;
    for (int64_t i = 0; i < l->pieces; i++)
        sum += ((const double *)s->scratch)[i];
    *(float *)hn_cpu_data(&s->out[0]) = (float)sum;
    return TRUE;
}

#define LOSS(title, made)                                                                                        \
    {                                                                                                            \
        .name = "cpu." title, .reject = loss_reject, .prepare = made, .run = loss_run, .release = hn_cpu_release \
    }

static const HnKernel mse = LOSS("mseloss", mse_prepare), l1 = LOSS("l1loss", l1_prepare),
                      bce = LOSS("bceloss", bce_prepare);

static const HnKernel bce_grad = {
    .name = "cpu.bceloss_grad",
    .reject = loss_reject,
    .prepare = bce_grad_prepare,
    .run = loss_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_mseloss[] = { &mse, NULL };
const HnKernel *const hn_cpu_l1loss[] = { &l1, NULL };
const HnKernel *const hn_cpu_binarycrossentropyloss[] = { &bce, NULL };
const HnKernel *const hn_cpu_binarycrossentropylossgrad[] = { &bce_grad, NULL };
