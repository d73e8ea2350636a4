/*
 * Sum and Mean of any number of f32 operands that broadcast: in double, and rounded once.
 */
#include "cpu/core/cpu_kernel.h"
#include "cpu/elementwise/broadcast.h"
#include "op/elementwise.h"

#define HN_LOOPS "cpu/elementwise/mean_loops.h"
#include "base/every_level.h"

typedef struct {
    int64_t rows;
    HnBroadcast walk; /* over the sums and one operand */
} Term;

typedef struct {
    double divisor;
    Term term[];
} Mean;

static const char *mean_reject(const HnStep *s)
{
    const HnTensor *z = s->out[0].slot->tensor;
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cpu_in(s, i);
        if (x == NULL || x->dtype != HN_F32)
            return "only f32";
        if (x->ndim > z->ndim)
            return "an input that does not broadcast as numpy's";
    }
    return z->n == 0 ? "nothing to compute" : NULL;
}

/* Of Sum: 1 */
static double divisor(const HnStep *s)
{
    return s->op == &hn_op_mean ? s->n_in : 1;
}

static gboolean mean_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *z = s->out[0].slot->tensor;
    Mean *m = g_malloc0(sizeof *m + (gsize)s->n_in * sizeof m->term[0]);
    s->state = m;
    m->divisor = divisor(s);
    for (int i = 0; i < s->n_in; i++) {
        int64_t strides[2][HN_MAX_RANK];
        hn_broadcast_strides(z, z->ndim, strides[0]);
        hn_broadcast_strides(hn_cpu_in(s, i), z->ndim, strides[1]);
        hn_broadcast_start(&m->term[i].walk, z->ndim, z->dims, 2, strides);
        m->term[i].rows = m->term[i].walk.total / m->term[i].walk.n;
    }
    s->scratch_bytes = (gsize)z->n * sizeof(double);
    return TRUE;
}

static void add_term(const Term *t, double *sum, const float *x)
{
    HnBroadcast w = t->walk;
    for (int j = 0; j < w.k; j++)
        w.rows[j] = w.strides[j];
    for (int64_t r = 0; r < t->rows; r++, sum += w.n) {
        const float *from = x + w.off[1];
        if (w.step[1] != 0)
            for (int64_t i = 0; i < w.n; i++)
                sum[i] += (double)from[i];
        else
            for (int64_t i = 0; i < w.n; i++)
                sum[i] += (double)*from;
        hn_broadcast_next(&w);
    }
}

static gboolean mean_run(HnStep *s, GError **error)
{
    (void)error;
    const Mean *m = s->state;
    double *sum = s->scratch;
    const int64_t n = s->out[0].slot->tensor->n;
    for (int64_t i = 0; i < n; i++)
        sum[i] = 0;
    for (int i = 0; i < s->n_in; i++)
        add_term(&m->term[i], sum, hn_cpu_data(&s->in[i]));
    float *z = hn_cpu_data(&s->out[0]);
    for (int64_t i = 0; i < n; i++)
        z[i] = (float)(sum[i] / m->divisor);
    return TRUE;
}

static void mean_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel mean = {
    .name = "cpu.mean",
    .reject = mean_reject,
    .prepare = mean_prepare,
    .run = mean_run,
    .release = mean_release,
    .inplace = TRUE,
};

/* --- operands of one shape, a piece at a time, in whichever layout they lie ----------------------------------------
 */

#define PIECE 512 /* elements whose sums are in the first cache */

static const char *same_reject(const HnStep *s)
{
    const HnTensor *z = s->out[0].slot->tensor;
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cpu_in(s, i);
        if (x == NULL || !hn_tensor_same_dims(x, z))
            return "operands of different shapes";
    }
    return hn_cpu_reject_f32(s);
}

static gboolean same_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *z = s->out[0].slot->tensor;
    int last = 0;
    for (int i = 0; i < s->n_in; i++)
        last += hn_layout_is_last(s->in[i].slot->layout) ? 1 : -1;
    for (int i = 0; i < s->n_in && last >= 0; i++)
        s->in[i].want = hn_layout_last(z);
    s->out[0].slot->layout = last >= 0 ? hn_layout_last(z) : NULL;
    s->scratch_bytes = (gsize)hn_cpu_threads_for(s, 0) * (gsize)s->n_in * sizeof(float *); /* where pieces begin */
    return TRUE;
}

static gboolean same_run(HnStep *s, GError **error)
{
    static void (*const sums[])(float *, const float *const *, int, double, double *, int64_t) =
        HN_TABLE_OF_LEVELS(sum_of_all);
    (void)error;
    const int level = hn_cpu_level(), threads = hn_cpu_threads_for(s, 0);
    const int64_t n = s->out[0].slot->tensor->n, pieces = (n + PIECE - 1) / PIECE;
    float *z = hn_cpu_data(&s->out[0]);
    const double share = divisor(s);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++)
        for (int64_t i = pieces * t / threads; i < pieces * (t + 1) / threads; i++) {
            const float **x = (const float **)s->scratch + t * s->n_in;
            double sum[PIECE];
            for (int k = 0; k < s->n_in; k++)
                x[k] = (const float *)hn_cpu_data(&s->in[k]) + i * PIECE;
            sums[level](z + i * PIECE, x, s->n_in, share, sum, MIN(PIECE, n - i * PIECE));
        }
    return TRUE;
}

static const HnKernel same = {
    .name = "cpu.sum",
    .reject = same_reject,
    .prepare = same_prepare,
    .run = same_run,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_sum[] = { &hn_cpu_broadcast, &same, &mean, NULL };
const HnKernel *const hn_cpu_mean[] = { &same, &mean, NULL };
