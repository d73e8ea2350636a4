/*
 * Gemm. An addend that is one row goes into the product as a bias; every other one, and factors that are not 1, are
 * applied to the result afterwards.
 */
#include "op/gemm.h"

#include "cpu/gemm/sgemm.h"

typedef struct {
    HnSgemm product;
    gboolean finish;   /* y = alpha * y + beta * c is to be done */
    float alpha, beta; /* beta is 0 where there is no c */
    int64_t m, n, c_row, c_col;
    int threads;
} Gemm;

static gboolean is_row(const HnGemmParams *p, const HnTensor *c, int64_t n)
{
    if (c == NULL || c->n != n || (c->ndim != 1 && (c->ndim != 2 || c->dims[0] != 1)))
        return FALSE;
    return p->alpha == 1 && p->beta == 1;
}

static void matrices_of(const HnStep *s, HnMatrices *m)
{
    const HnGemmParams *p = s->params;
    const HnTensor *a = hn_cpu_in(s, 0), *b = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    int ta = p->trans_a, tb = p->trans_b;
    *m = (HnMatrices){ .ndim = 2,
                       .a = { a->dims[ta], a->dims[1 - ta] },
                       .b = { b->dims[tb], b->dims[1 - tb] },
                       .y = { y->dims[0], y->dims[1] },
                       .a_strides = { ta ? 1 : a->dims[1], ta ? a->dims[1] : 1 },
                       .b_strides = { tb ? 1 : b->dims[1], tb ? b->dims[1] : 1 },
                       .bias = is_row(p, hn_cpu_in(s, 2), y->dims[1]) };
}

static const char *reject(const HnStep *s, HnSgemmWay way)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    HnMatrices m;
    matrices_of(s, &m);
    if (m.a[1] != m.b[0])
        return "the inner sizes differ";
    return hn_sgemm_reject(s, &m, way);
}

static void gemm_release(HnStep *s)
{
    Gemm *g = s->state;
    if (g != NULL)
        hn_sgemm_clear(&g->product);
    g_free(g);
    s->state = NULL;
}

static gboolean prepare(HnStep *s, HnSgemmWay way, GError **error)
{
    const HnGemmParams *p = s->params;
    const HnTensor *c = hn_cpu_in(s, 2);
    Gemm *g = g_new0(Gemm, 1);
    HnMatrices m;
    s->state = g;
    matrices_of(s, &m);
    g->m = m.y[0];
    g->n = m.y[1];
    g->alpha = p->alpha;
    g->threads = hn_cpu_threads_for(s, 0);
    if (c != NULL && !m.bias) {
        int64_t last = c->ndim > 0 ? c->dims[c->ndim - 1] : 1, first = c->ndim > 1 ? c->dims[0] : 1;
        g->beta = p->beta;
        g->c_row = first == 1 ? 0 : last;
        g->c_col = last == 1 ? 0 : 1;
    }
    g->finish = g->alpha != 1 || g->beta != 0;
    return hn_sgemm_prepare(&g->product, s, &m, way, error);
}

static void finish_rows(const Gemm *g, float *restrict y, const float *c, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) {
        float *row = y + i * g->n;
        const float *add = c != NULL ? c + i * g->c_row : NULL;
        for (int64_t j = 0; j < g->n; j++)
            row[j] = g->alpha * row[j] + (add != NULL ? g->beta * add[j * g->c_col] : 0);
    }
}

static void finish(const Gemm *g, float *restrict y, const float *c)
{
    if (g->threads == 1) {
        finish_rows(g, y, c, 0, g->m);
        return;
    }
#pragma omp parallel for num_threads(g->threads)
    for (int t = 0; t < g->threads; t++)
        finish_rows(g, y, c, g->m * t / g->threads, g->m * (t + 1) / g->threads);
}

static gboolean gemm_run(HnStep *s, GError **error)
{
    Gemm *g = s->state;
    void *c = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    if (!hn_sgemm_run(&g->product, s, g->product.bias ? c : NULL, error))
        return FALSE;
    if (g->finish)
        finish(g, hn_cpu_data(&s->out[0]), g->beta != 0 ? c : NULL);
    return TRUE;
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

/* Not where something is left to do behind the product. */
static gboolean gemm_fuses(const HnStep *s)
{
    const HnGemmParams *p = s->params;
    HnMatrices m;
    if (hn_cpu_reject_f32(s) != NULL || p->alpha != 1)
        return FALSE;
    matrices_of(s, &m);
    return (hn_cpu_in(s, 2) == NULL || m.bias) && hn_sgemm_fuses(s, &m);
}

static const HnKernel gemm_sparse = {
    .name = "cpu.sparse_gemm",
    .reject = sparse_reject,
    .prepare = sparse_prepare,
    .run = gemm_run,
    .release = gemm_release,
    .fuses = gemm_fuses,
};

static const HnKernel gemm_small = {
    .name = "cpu.gemm",
    .reject = small_reject,
    .prepare = small_prepare,
    .run = gemm_run,
    .release = gemm_release,
    .fuses = gemm_fuses,
};

static const HnKernel gemm_packed = {
    .name = "cpu.gemm_packed",
    .reject = tile_reject,
    .prepare = tile_prepare,
    .run = gemm_run,
    .release = gemm_release,
    .fuses = gemm_fuses,
};

static const HnKernel gemm_onednn = {
    .name = "onednn.gemm",
    .reject = onednn_reject,
    .prepare = onednn_prepare,
    .run = gemm_run,
    .release = gemm_release,
    .fuses = gemm_fuses,
};

const HnKernel *const hn_cpu_gemm[] = { &gemm_sparse, &gemm_small, &gemm_packed, &gemm_onednn, NULL };
