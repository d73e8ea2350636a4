/*
 * MatMul and FusedMatMul: stacks of matrices as in numpy.matmul.
 */
#include "cpu/fourier/dft_product.h"
#include "cpu/gemm/sgemm.h"
#include "op/gemm.h"

/* Stacks of a and b along one axis, after axes that behave alike were merged: equal, or one of them 1. */
typedef struct {
    int64_t a, b;
} Stack;

static gboolean alike(Stack x, Stack y)
{
    if (x.a == x.b && y.a == y.b)
        return TRUE;
    return (x.a == 1 && y.a == 1) || (x.b == 1 && y.b == 1); /* one of them is repeated along both */
}

/* Number of merged axes; -1: the shapes do not fit. */
static int stacks_of(const HnTensor *a, const HnTensor *b, Stack *merged)
{
    int all = MAX(MAX(a->ndim, b->ndim) - 2, 0), n = 0;
    for (int i = 0; i < all; i++) {
        int ia = a->ndim - 2 - all + i, ib = b->ndim - 2 - all + i;
        Stack x = { ia >= 0 ? a->dims[ia] : 1, ib >= 0 ? b->dims[ib] : 1 };
        if (x.a != x.b && x.a != 1 && x.b != 1)
            return -1;
        if (x.a == 1 && x.b == 1)
            continue;
        if (n > 0 && alike(merged[n - 1], x)) {
            merged[n - 1].a *= x.a;
            merged[n - 1].b *= x.b;
        } else {
            merged[n++] = x;
        }
    }
    return n;
}

/* Of matrices of these dims that lie one behind the other, row by row or column by column. */
static void strides_of(int ndim, const int64_t *dims, gboolean transposed, int64_t *strides)
{
    int64_t step = dims[ndim - 2] * dims[ndim - 1];
    strides[ndim - 1] = transposed ? dims[ndim - 2] : 1;
    strides[ndim - 2] = transposed ? 1 : dims[ndim - 1];
    for (int i = ndim - 3; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
}

/* MatMul has no parameters. */
static HnFusedMatMul form_of(const HnStep *s)
{
    return s->op->params_size > 0 ? *(const HnFusedMatMul *)s->params : (HnFusedMatMul){ FALSE, FALSE };
}

static const char *matrices_of(const HnStep *s, HnMatrices *m)
{
    const HnTensor *a = hn_cpu_in(s, 0), *b = hn_cpu_in(s, 1);
    const HnFusedMatMul t = form_of(s);
    Stack stack[HN_MAX_RANK];
    int n = a->ndim > 0 && b->ndim > 0 ? stacks_of(a, b, stack) : -1;
    if (n < 0)
        return "the shapes do not fit";
    if ((t.trans_a && a->ndim == 1) || (t.trans_b && b->ndim == 1))
        return "a vector is to be transposed";
    int64_t rows = a->ndim > 1 ? a->dims[a->ndim - (t.trans_a ? 1 : 2)] : 1,
            inner = a->dims[a->ndim - (t.trans_a ? 2 : 1)];
    int64_t cols = b->ndim > 1 ? b->dims[b->ndim - (t.trans_b ? 2 : 1)] : 1;
    if (b->dims[b->ndim > 1 ? b->ndim - (t.trans_b ? 1 : 2) : 0] != inner)
        return "the inner sizes differ";
    if (hn_cpu_in(s, 2) != NULL && (hn_cpu_in(s, 2)->ndim != 1 || hn_cpu_in(s, 2)->dims[0] != cols))
        return "the bias does not fit";
    if (n == 1 && stack[0].b == 1 && !t.trans_a) { /* one matrix b for all of a: one tall product */
        rows *= stack[0].a;
        n = 0;
    }
    if (n + 2 > DNNL_MAX_NDIMS)
        return "too many axes that broadcast";
    *m = (HnMatrices){ .ndim = n + 2 };
    for (int i = 0; i < n; i++) {
        m->a[i] = stack[i].a;
        m->b[i] = stack[i].b;
        m->y[i] = MAX(stack[i].a, stack[i].b);
    }
    m->a[n] = m->y[n] = rows;
    m->a[n + 1] = m->b[n] = inner;
    m->b[n + 1] = m->y[n + 1] = cols;
    m->bias = hn_cpu_in(s, 2) != NULL;
    strides_of(n + 2, m->a, t.trans_a, m->a_strides);
    strides_of(n + 2, m->b, t.trans_b, m->b_strides);
    return NULL;
}

static const char *reject(const HnStep *s, HnSgemmWay way)
{
    HnMatrices m;
    const char *reason = hn_cpu_reject_f32(s);
    if (reason == NULL)
        reason = matrices_of(s, &m);
    return reason != NULL ? reason : hn_sgemm_reject(s, &m, way);
}

static void matmul_release(HnStep *s)
{
    if (s->state != NULL)
        hn_sgemm_clear(s->state);
    g_clear_pointer(&s->state, g_free);
}

static gboolean prepare(HnStep *s, HnSgemmWay way, GError **error)
{
    HnSgemm *p = g_new0(HnSgemm, 1);
    HnMatrices m;
    s->state = p;
    return hn_cpu_check(matrices_of(s, &m) == NULL ? dnnl_success : dnnl_invalid_arguments, s, error) &&
           hn_sgemm_prepare(p, s, &m, way, error);
}

static gboolean matmul_run(HnStep *s, GError **error)
{
    return hn_sgemm_run(s->state, s, hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL, error);
}

static const char *onednn_reject(const HnStep *s)
{
    return reject(s, HN_SGEMM_ONEDNN);
}

static gboolean onednn_prepare(HnStep *s, GError **error)
{
    return prepare(s, HN_SGEMM_ONEDNN, error);
}

static const char *sparse_reject(const HnStep *s)
{
    return reject(s, HN_SGEMM_SPARSE);
}

static gboolean sparse_prepare(HnStep *s, GError **error)
{
    return prepare(s, HN_SGEMM_SPARSE, error);
}

static const char *small_reject(const HnStep *s)
{
    return reject(s, HN_SGEMM_SMALL);
}

static gboolean small_prepare(HnStep *s, GError **error)
{
    return prepare(s, HN_SGEMM_SMALL, error);
}

static const char *tile_reject(const HnStep *s)
{
    return reject(s, HN_SGEMM_KERNEL);
}

static gboolean tile_prepare(HnStep *s, GError **error)
{
    return prepare(s, HN_SGEMM_KERNEL, error);
}

static gboolean matmul_fuses(const HnStep *s)
{
    HnMatrices m;
    return hn_cpu_reject_f32(s) == NULL && matrices_of(s, &m) == NULL && hn_sgemm_fuses(s, &m);
}

static const HnKernel matmul_sparse = {
    .name = "cpu.sparse_matmul",
    .reject = sparse_reject,
    .prepare = sparse_prepare,
    .run = matmul_run,
    .release = matmul_release,
    .fuses = matmul_fuses,
};

static const HnKernel matmul_small = {
    .name = "cpu.matmul",
    .reject = small_reject,
    .prepare = small_prepare,
    .run = matmul_run,
    .release = matmul_release,
    .fuses = matmul_fuses,
};

static const HnKernel matmul_packed = {
    .name = "cpu.matmul_packed",
    .reject = tile_reject,
    .prepare = tile_prepare,
    .run = matmul_run,
    .release = matmul_release,
    .fuses = matmul_fuses,
};

static const HnKernel matmul_onednn = {
    .name = "onednn.matmul",
    .reject = onednn_reject,
    .prepare = onednn_prepare,
    .run = matmul_run,
    .release = matmul_release,
    .fuses = matmul_fuses,
};

const HnKernel *const hn_cpu_fusedmatmul[] = { &matmul_small, &matmul_packed, &matmul_onednn, NULL };
const HnKernel *const hn_cpu_matmul[] = { &hn_cpu_dft_matmul, &matmul_sparse, &matmul_small,
                                          &matmul_packed,     &matmul_onednn, NULL };
