/*
 * Gemm.
 */
#include "op/gemm.h"

#include "cuda/gemm/cuda_lt.h"

static const char *measure(const HnStep *s, HnCudaProductArgs *g)
{
    const HnGemmParams *p = s->params;
    const HnTensor *a = hn_cuda_in(s, 0), *b = hn_cuda_in(s, 1), *c = s->n_in > 2 ? hn_cuda_in(s, 2) : NULL;
    if (a->ndim != 2 || b->ndim != 2)
        return "operands that are no matrices";
    const int ta = p->trans_a, tb = p->trans_b;
    g->m = a->dims[ta];
    g->k = a->dims[1 - ta];
    g->n = b->dims[1 - tb];
    if (b->dims[tb] != g->k)
        return "the inner sizes differ";
    g->a_row = ta ? 1 : g->k;
    g->a_col = ta ? g->m : 1;
    g->b_row = tb ? 1 : g->n;
    g->b_col = tb ? g->k : 1;
    g->stacks = 1;
    g->alpha = p->alpha;
    g->beta = c != NULL ? p->beta : 0;
    if (c == NULL)
        return NULL;
    const int64_t last = c->ndim > 0 ? c->dims[c->ndim - 1] : 1, first = c->ndim > 1 ? c->dims[0] : 1;
    const gboolean same = c->ndim == 2 && first == g->m && last == g->n;
    if (c->ndim > 2 || (p->exact && !same))
        return "the addend does not fit";
    if ((first != 1 && first != g->m) || (last != 1 && last != g->n))
        return "the addend does not fit";
    g->c_row = first == 1 ? 0 : last;
    g->c_col = last == 1 ? 0 : 1;
    return NULL;
}

static const char *gemm_reject(const HnStep *s)
{
    HnCudaProductArgs g = { 0 };
    const char *reason = hn_cuda_reject_floats(s);
    if (reason == NULL && hn_cuda_out(s, 0)->n == 0)
        reason = "nothing to compute";
    return reason != NULL ? reason : measure(s, &g);
}

static gboolean gemm_prepare(HnStep *s, GError **error)
{
    HnCudaProduct *p = g_new0(HnCudaProduct, 1);
    s->state = p;
    measure(s, &p->args);
    return hn_cuda_product_prepare(p, s, hn_cuda_in(s, 0)->dtype, error);
}

/* A factor of 0 leaves NaN and infinities of the addend out. */
static gboolean gemm_run(HnStep *s, GError **error)
{
    const HnCudaProduct *p = s->state;
    return hn_cuda_product_run(p, s, p->args.beta != 0 ? hn_cuda_in_address(s, 2) : 0, error);
}

static const HnKernel gemm = {
    .name = "cuda.gemm",
    .reject = gemm_reject,
    .prepare = gemm_prepare,
    .run = gemm_run,
    .release = hn_cuda_product_release,
    .fuses = hn_cuda_product_fuses,
};

static const char *lt_reject(const HnStep *s)
{
    HnCudaProductArgs g = { 0 };
    const char *reason = gemm_reject(s);
    if (reason != NULL)
        return reason;
    measure(s, &g);
    return hn_cuda_lt_reject(s, &g);
}

static gboolean lt_prepare(HnStep *s, GError **error)
{
    HnCudaProductArgs g = { 0 };
    measure(s, &g);
    return hn_cuda_lt_prepare(s, &g, error);
}

static const HnKernel lt = {
    .name = "cuda.lt",
    .reject = lt_reject,
    .prepare = lt_prepare,
    .run = hn_cuda_lt_run,
    .release = hn_cuda_lt_release,
    .fuses = hn_cuda_lt_fuses,
};

const HnKernel *const hn_cuda_gemm[] = { &lt, &gemm, NULL };
