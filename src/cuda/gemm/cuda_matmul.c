/*
 * MatMul and FusedMatMul: stacks of matrices as in numpy.matmul.
 */
#include "cuda/gemm/cuda_lt.h"
#include "op/gemm.h"

/* MatMul has no parameters. */
static HnFusedMatMul form_of(const HnStep *s)
{
    return s->op->params_size > 0 ? *(const HnFusedMatMul *)s->params : (HnFusedMatMul){ FALSE, FALSE };
}

/* Behind the node's own inputs are those of nodes that are computed along. */
static const HnTensor *bias_of(const HnStep *s)
{
    return s->n_in > 2 ? hn_cuda_in(s, 2) : NULL;
}

/* Sizes of the stacks from the last axis on: strides 0 where an operand is repeated. Axes that one stride goes through
 * are one. FALSE: they do not fit. */
static gboolean stacks_of(const HnTensor *a, const HnTensor *b, HnCudaProductArgs *p)
{
    const int all = MAX(MAX(a->ndim, b->ndim) - 2, 0);
    int64_t at_a = p->m * p->k, at_b = p->k * p->n, dims[HN_MAX_RANK], steps[2][HN_MAX_RANK];
    int n = 0; /* from the last one on */
    p->stacks = 1;
    for (int i = 0; i < all; i++) {
        const int ia = a->ndim - 3 - i, ib = b->ndim - 3 - i;
        const int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1, d = da == 1 ? db : da;
        if (da != db && da != 1 && db != 1)
            return FALSE;
        const int64_t step_a = da == 1 ? 0 : at_a, step_b = db == 1 ? 0 : at_b;
        at_a *= da;
        at_b *= db;
        p->stacks *= d;
        if (d == 1)
            continue;
        if (n > 0 && step_a == steps[0][n - 1] * dims[n - 1] && step_b == steps[1][n - 1] * dims[n - 1]) {
            dims[n - 1] *= d;
            continue;
        }
        dims[n] = d;
        steps[0][n] = step_a;
        steps[1][n++] = step_b;
    }
    if (n > HN_CUDA_STACK_AXES)
        return FALSE;
    p->axes = n;
    for (int i = 0; i < n; i++) {
        p->dims[i] = dims[n - 1 - i];
        p->a_step[i] = steps[0][n - 1 - i];
        p->b_step[i] = steps[1][n - 1 - i];
    }
    return TRUE;
}

static const char *measure(const HnStep *s, HnCudaProductArgs *p)
{
    const HnTensor *a = hn_cuda_in(s, 0), *b = hn_cuda_in(s, 1), *bias = bias_of(s);
    const HnFusedMatMul t = form_of(s);
    if (a->ndim == 0 || b->ndim == 0 || (t.trans_a && a->ndim == 1) || (t.trans_b && b->ndim == 1))
        return "the shapes do not fit";
    p->m = a->ndim > 1 ? a->dims[a->ndim - (t.trans_a ? 1 : 2)] : 1;
    p->k = a->dims[a->ndim - (t.trans_a ? 2 : 1)];
    p->n = b->ndim > 1 ? b->dims[b->ndim - (t.trans_b ? 2 : 1)] : 1;
    if (b->dims[b->ndim > 1 ? b->ndim - (t.trans_b ? 1 : 2) : 0] != p->k)
        return "the inner sizes differ";
    if (bias != NULL && (bias->ndim != 1 || bias->dims[0] != p->n))
        return "the bias does not fit";
    if (!stacks_of(a, b, p))
        return "stacks that do not fit, or too many axes that broadcast";
    p->a_row = t.trans_a ? 1 : p->k;
    p->a_col = t.trans_a ? p->m : 1;
    p->b_row = t.trans_b ? 1 : p->n;
    p->b_col = t.trans_b ? p->k : 1;
    p->c_col = 1;
    p->alpha = p->beta = 1;
    if (p->axes == 1 && p->b_step[0] == 0 && !t.trans_a) { /* one matrix b for all of a: one tall product */
        p->m *= p->stacks;
        p->stacks = 1;
        p->axes = 0;
    }
    return NULL;
}

static const char *matmul_reject(const HnStep *s)
{
    HnCudaProductArgs p = { 0 };
    const char *reason = hn_cuda_reject_floats(s);
    if (reason == NULL && hn_cuda_out(s, 0)->n == 0)
        reason = "nothing to compute";
    return reason != NULL ? reason : measure(s, &p);
}

static gboolean matmul_prepare(HnStep *s, GError **error)
{
    HnCudaProduct *p = g_new0(HnCudaProduct, 1);
    s->state = p;
    measure(s, &p->args);
    return hn_cuda_product_prepare(p, s, hn_cuda_in(s, 0)->dtype, error);
}

static gboolean matmul_run(HnStep *s, GError **error)
{
    return hn_cuda_product_run(s->state, s, bias_of(s) != NULL ? hn_cuda_in_address(s, 2) : 0, error);
}

static const HnKernel matmul = {
    .name = "cuda.matmul",
    .reject = matmul_reject,
    .prepare = matmul_prepare,
    .run = matmul_run,
    .release = hn_cuda_product_release,
    .fuses = hn_cuda_product_fuses,
};

static const char *lt_reject(const HnStep *s)
{
    HnCudaProductArgs a = { 0 };
    const char *reason = matmul_reject(s);
    if (reason != NULL)
        return reason;
    measure(s, &a);
    return hn_cuda_lt_reject(s, &a);
}

static gboolean lt_prepare(HnStep *s, GError **error)
{
    HnCudaProductArgs a = { 0 };
    measure(s, &a);
    return hn_cuda_lt_prepare(s, &a, error);
}

static const HnKernel lt = {
    .name = "cuda.lt",
    .reject = lt_reject,
    .prepare = lt_prepare,
    .run = hn_cuda_lt_run,
    .release = hn_cuda_lt_release,
    .fuses = hn_cuda_lt_fuses,
};

const HnKernel *const hn_cuda_matmul[] = { &lt, &matmul, NULL };
const HnKernel *const hn_cuda_fusedmatmul[] = { &lt, &matmul, NULL };
