/*
 * MatMulInteger and QLinearMatMul, exact: one matrix b for all of a, or stacks of the same shape.
 */
#include <string.h>

#include "cpu/int8/int8_conv.h"
#include "cpu/int8/int8_gemm.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/int8/int16_gemm.h"

typedef struct {
    HnInt16Gemm product; /* of one stack */
    int64_t stacks;
    HnPack *columns;    /* all units of the right operand; NULL: packed in each run */
    int64_t tiles;      /* of one stack */
    gsize rows, scales; /* bytes in scratch: packed rows of all stacks, scales; then what each thread needs */
    gsize thread;
    int threads;
} Product;

/* Stacks, rows and columns; FALSE: a form that the kernel does not have. */
static gboolean sizes_of(const HnStep *s, int64_t *stacks, int64_t *m, int64_t *k, int64_t *n)
{
    const HnTensor *a = hn_cpu_in(s, 0), *b = hn_int8_input(s, hn_int8_inputs(s)->w);
    if (a->ndim < 2 || b->ndim < 2)
        return FALSE;
    *stacks = *m = 1;
    if (b->ndim > 2) {
        if (a->ndim != b->ndim || memcmp(a->dims, b->dims, (gsize)(a->ndim - 2) * sizeof *a->dims) != 0)
            return FALSE;
        for (int i = 0; i < a->ndim - 2; i++)
            *stacks *= a->dims[i];
        *m = a->dims[a->ndim - 2];
    } else {
        for (int i = 0; i < a->ndim - 1; i++)
            *m *= a->dims[i];
    }
    *k = a->dims[a->ndim - 1];
    *n = b->dims[b->ndim - 1];
    return b->dims[b->ndim - 2] == *k;
}

static gboolean single(const HnTensor *t)
{
    return t == NULL || t->n == 1;
}

static const char *integer_reject(const HnStep *s)
{
    const HnInt8Inputs *i = hn_int8_inputs(s);
    const HnTensor *y = s->out[0].slot->tensor, *b_scale = hn_int8_input(s, i->w_scale);
    int64_t stacks, m, k, n;
    if (y->n == 0 || hn_cpu_in(s, 0)->n == 0)
        return "nothing to compute";
    if (!sizes_of(s, &stacks, &m, &k, &n))
        return "vectors, or stacks that broadcast";
    if (!single(hn_int8_input(s, i->x_zero)) || !single(hn_int8_input(s, i->w_zero)) ||
        !single(hn_int8_input(s, i->x_scale)) || !single(hn_int8_input(s, i->y_scale)) ||
        !single(hn_int8_input(s, i->y_zero)))
        return "scales or zero points per row or column";
    if (b_scale == NULL)
        return NULL;
    if (b_scale->dtype != HN_F32 || hn_int8_input(s, i->x_scale)->dtype != HN_F32 ||
        hn_int8_input(s, i->y_scale)->dtype != HN_F32)
        return "only scales of f32";
    return b_scale->n == 1 || (stacks == 1 && b_scale->ndim == 1 && b_scale->n == n) ? NULL : "scales per stack";
}

static void integer_release(HnStep *s)
{
    Product *c = s->state;
    if (c != NULL)
        hn_pack_unref(c->columns);
    g_free(c);
    s->state = NULL;
}

static gsize aligned(gsize bytes)
{
    return (bytes + 63) / 64 * 64;
}

typedef struct {
    const Product *c;
    HnInt16GemmZero zero;
    int16_t *line;
} Packing;

static void pack_columns(void *to, const HnTensor *b, gconstpointer data)
{
    const Packing *k = data;
    const HnInt16Gemm *p = &k->c->product;
    char *at = to;
    for (int64_t g = 0; g < k->c->stacks; g++)
        for (int64_t first = 0; first < p->units; first += p->tile) {
            const int64_t n = MIN(p->units - first, p->tile);
            hn_int16_gemm_pack_units(p, (int16_t *)at, (const char *)b->data + g * p->k * p->n, k->zero, first, n,
                                     k->line);
            at += hn_int16_gemm_units_bytes(p, n);
        }
}

static HnInt16GemmZero zero_of(const HnStep *s, int operand, int zero)
{
    const HnTensor *z = hn_int8_input(s, zero);
    return hn_int16_gemm_zero(hn_int8_input(s, operand)->dtype, z != NULL ? hn_tensor_get_i64(z, 0) : 0);
}

static gboolean integer_prepare(HnStep *s, GError **error)
{
    const HnInt8Inputs *i = hn_int8_inputs(s);
    Product *c = g_new0(Product, 1);
    HnInt16Gemm *p = &c->product;
    int64_t m, k, n;
    s->state = c;
    sizes_of(s, &c->stacks, &m, &k, &n);
    hn_int16_gemm_init_matrix(p, m, k, n);
    c->tiles = (p->units + p->tile - 1) / p->tile;
    const double flops = 2 * (double)s->out[0].slot->tensor->n * (double)k;
    c->threads = (int)MIN((int64_t)hn_cpu_threads_for(s, flops), c->stacks * c->tiles);
    if (s->in[i->w].slot->constant && (hn_int8_input(s, i->w_zero) == NULL || s->in[i->w_zero].slot->constant)) {
        g_autofree int16_t *line = g_malloc(hn_int16_gemm_line_bytes(p));
        const Packing how = { c, zero_of(s, i->w, i->w_zero), line };
        if (!hn_pack_own(s, i->w, pack_columns, how.zero.less,
                         (gsize)c->stacks * hn_int16_gemm_units_bytes(p, p->units), &how, &c->columns, error))
            return FALSE;
    }
    c->rows = aligned((gsize)c->stacks * hn_int16_gemm_rows_bytes(p));
    c->scales = aligned((gsize)n * sizeof(float));
    if (c->columns == NULL)
        c->thread = aligned(hn_int16_gemm_units_bytes(p, p->tile)) + aligned(hn_int16_gemm_line_bytes(p));
    s->scratch_bytes = c->rows + c->scales + (gsize)c->threads * c->thread;
    return TRUE;
}

/* What sums are multiplied by: one, or one per column. */
static void load_scales(const HnStep *s, float *to)
{
    const HnInt8Inputs *i = hn_int8_inputs(s);
    const HnTensor *b_scale = hn_int8_input(s, i->w_scale);
    for (int64_t k = 0; b_scale != NULL && k < b_scale->n; k++)
        to[k] = *(const float *)hn_int8_input(s, i->x_scale)->data * ((const float *)b_scale->data)[k] /
                *(const float *)hn_int8_input(s, i->y_scale)->data;
}

static void run_tile(const HnStep *s, const int16_t *rows, const float *scales, int64_t job, char *scratch)
{
    const Product *c = s->state;
    const HnInt16Gemm *p = &c->product;
    const HnInt8Inputs *i = hn_int8_inputs(s);
    const HnTensor *b = hn_int8_input(s, i->w), *b_scale = hn_int8_input(s, i->w_scale), *y = s->out[0].slot->tensor;
    const int64_t stack = job / c->tiles, first = job % c->tiles * p->tile, n = MIN(p->units - first, p->tile);
    const int16_t *units = (const int16_t *)scratch;
    if (c->columns == NULL)
        hn_int16_gemm_pack_units(p, (int16_t *)scratch, (const char *)b->data + stack * p->k * p->n,
                                 zero_of(s, i->w, i->w_zero), first, n,
                                 (int16_t *)(scratch + aligned(hn_int16_gemm_units_bytes(p, p->tile))));
    else
        units = (const int16_t *)((const char *)hn_pack_data(c->columns, s, i->w) +
                                  hn_int16_gemm_units_bytes(p, stack * p->units + first));
    const double zero = y->dtype != HN_I32 ? (double)hn_tensor_get_i64(hn_int8_input(s, i->y_zero), 0) : 0;
    const HnInt16GemmOut out = {
        .y = (char *)y->data + (gsize)(stack * p->m * p->n) * (y->dtype == HN_I32 ? 4 : 1),
        .pitch = p->n,
        .dtype = y->dtype,
        .scale = scales,
        .column_step = b_scale != NULL && b_scale->n > 1 ? 1 : 0,
        .zero = zero,
        .nan = zero,
    };
    hn_int16_gemm_multiply(p, rows + stack * p->m * 2 * p->pairs, units, first, n, NULL, &out);
}

static gboolean integer_run(HnStep *s, GError **error)
{
    (void)error;
    const Product *c = s->state;
    const HnInt16Gemm *p = &c->product;
    const HnTensor *a = hn_cpu_in(s, 0), *zero = hn_int8_input(s, hn_int8_inputs(s)->x_zero);
    char *scratch = s->scratch;
    for (int64_t g = 0; g < c->stacks; g++)
        hn_int16_gemm_pack_rows(p, (int16_t *)scratch + g * p->m * 2 * p->pairs,
                                (const char *)a->data + g * p->m * p->k, a->dtype, zero != NULL ? zero->data : NULL, 0);
    float *scales = (float *)(scratch + c->rows);
    load_scales(s, scales);
    const int64_t jobs = c->stacks * c->tiles;
    if (c->threads == 1) {
        for (int64_t job = 0; job < jobs; job++)
            run_tile(s, (const int16_t *)scratch, scales, job, scratch + c->rows + c->scales);
        return TRUE;
    }
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int t = 0; t < c->threads; t++)
        for (int64_t job = t; job < jobs; job += c->threads)
            run_tile(s, (const int16_t *)scratch, scales, job, scratch + c->rows + c->scales + (gsize)t * c->thread);
    return TRUE;
}

static const HnKernel matmulinteger_kernel = {
    .name = "cpu.matmulinteger",
    .reject = integer_reject,
    .prepare = integer_prepare,
    .run = integer_run,
    .release = integer_release,
};

static const HnKernel qlinearmatmul_kernel = {
    .name = "cpu.qlinearmatmul",
    .reject = integer_reject,
    .prepare = integer_prepare,
    .run = integer_run,
    .release = integer_release,
};

const HnKernel *const hn_cpu_matmulinteger[] = { &hn_cpu_sparse_int8_matmul, &hn_cpu_int8_matmul, &matmulinteger_kernel,
                                                 NULL };
const HnKernel *const hn_cpu_qlinearmatmul[] = { &hn_cpu_sparse_int8_matmul, &hn_cpu_int8_matmul, &qlinearmatmul_kernel,
                                                 NULL };
