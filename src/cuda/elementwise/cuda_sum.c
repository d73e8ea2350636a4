/*
 * Sum and Mean of any number of operands that broadcast: in double, some of them at each launch, and rounded once.
 */
#include "cuda/elementwise/cuda_sum.h"

#include "cuda/elementwise/cuda_sum_args.h"
#include "cuda/elementwise/cuda_walk.h"
#include "op/index.h"
#include "op/ops.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    int n;
    HnCudaSumArgs launch[];
} Sum;

static const char *sum_reject(const HnStep *s)
{
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cuda_in(s, i);
        if (x == NULL || !hn_cuda_is_float(x->dtype) || x->dtype != hn_cuda_out(s, 0)->dtype)
            return "only f32, f16, bf16";
        if (!hn_broadcasts_to(x, hn_cuda_out(s, 0)))
            return "an input that does not broadcast as numpy's";
    }
    return NULL;
}

static gboolean sum_prepare(HnStep *s, GError **error)
{
    const HnTensor *z = hn_cuda_out(s, 0);
    const int n = (s->n_in + HN_CUDA_TERMS - 1) / HN_CUDA_TERMS;
    Sum *m = g_malloc0(sizeof *m + (gsize)n * sizeof m->launch[0]);
    s->state = m;
    m->n = n;
    for (int k = 0; k < n; k++) {
        HnCudaSumArgs *a = &m->launch[k];
        const HnTensor *x[HN_CUDA_TERMS];
        a->n = MIN(HN_CUDA_TERMS, s->n_in - k * HN_CUDA_TERMS);
        a->first = k == 0;
        a->last = k == n - 1;
        a->share = s->op == &hn_op_mean ? s->n_in : 1;
        for (int i = 0; i < a->n; i++)
            x[i] = hn_cuda_in(s, k * HN_CUDA_TERMS + i);
        hn_cuda_walk(&a->walk, a->seen, z, x, a->n);
    }
    if (n > 1)
        s->scratch_bytes = (gsize)z->n * sizeof(double);
    m->grid = hn_cuda_quads(s, z->n, THREADS);
    m->f = hn_cuda_typed(s, "cuda_sum", "sum", z->dtype, error);
    return m->f != NULL;
}

static gboolean sum_run(HnStep *s, GError **error)
{
    const Sum *m = s->state;
    for (int k = 0; k < m->n; k++) {
        HnCudaSumArgs a = m->launch[k];
        a.z = hn_cuda_out_address(s, 0);
        a.sum = m->n > 1 ? hn_cuda_scratch(s) : 0;
        for (int i = 0; i < a.n; i++)
            a.x[i] = hn_cuda_in_address(s, k * HN_CUDA_TERMS + i);
        if (a.walk.shape.total > 0 && !hn_cuda_launch(s, m->f, m->grid, &a, error))
            return FALSE;
    }
    return TRUE;
}

const HnKernel hn_cuda_sums = {
    .name = "cuda.sum",
    .reject = sum_reject,
    .prepare = sum_prepare,
    .run = sum_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_mean[] = { &hn_cuda_sums, NULL };
