/*
 * Rows of the left operand are turned round, block by block, so that what the same weight is multiplied by lies side by
 * side; results are computed in columns, and turned back.
 */
#include "cpu/sparse/sparse_product.h"

#include "cpu/core/strided_copy.h"
#include "cpu/sparse/sparse_cost.h"
#include "cpu/sparse/sparse_rows.h"

#define PAST 16 /* elements behind each column, so that columns do not share lines of the cache */

struct HnSparseProduct {
    HnSparseRows lists;
    int threads;
    int64_t m, n, k, block, blocks; /* rows of a block, and how many */
    HnCopy *in[2], *out[2];         /* of a whole block, of the last one */
    int first;                      /* of the epilogue, that is no bias */
    gboolean late;                  /* the epilogue comes behind whole rows */
};

static gboolean count_zeros(const HnStep *s, const HnMatrices *m, HnSparseCount *count)
{
    return hn_sparse_count(hn_cpu_in(s, 1)->data, m->b[1], m->b[0], m->b_strides[1], m->b_strides[0],
                           HN_SPARSE_LEAST_ZEROS, count);
}

const char *hn_sparse_product_reject(const HnStep *s, const HnMatrices *m)
{
    HnSparseCount count;
    if (m->ndim != 2)
        return "stacks of matrices";
    if (!hn_sparse_weights_stay(s, 1))
        return "weights that change";
    if (2.0 * (double)m->y[0] * (double)m->y[1] * (double)m->b[0] < HN_SPARSE_LEAST_WORK)
        return "little work";
    if (m->y[0] < hn_sparse_lanes())
        return "few rows";
    if (!count_zeros(s, m, &count))
        return "few weights are 0";
    const HnSparseWork work = { .columns = m->y[0], .dense = (double)m->y[0], .turned = TRUE };
    return hn_sparse_pays(&count, &work) ? NULL : "too few weights are 0 to gain by it";
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const HnSgemm *p = data;
    hn_sparse_pack(&p->sparse->lists, to, w->data, p->matrices.b_strides[1], p->matrices.b_strides[0]);
}

/* Rows are shared out evenly, whole vectors of them. */
static void cut(HnSparseProduct *q)
{
    const int64_t most = hn_sparse_columns(), lanes = hn_sparse_lanes(), least = MAX((q->m + most - 1) / most, 1);
    const int64_t blocks = MAX(least, MIN(q->threads, (q->m + lanes - 1) / lanes));
    q->block = ((q->m + blocks - 1) / blocks + lanes - 1) / lanes * lanes;
    q->blocks = (q->m + q->block - 1) / q->block;
    q->threads = (int)MIN(q->threads, q->blocks);
}

gboolean hn_sparse_product_prepare(HnSgemm *p, HnStep *s, GError **error)
{
    const HnMatrices *m = &p->matrices;
    HnSparseProduct *q = p->sparse = g_new0(HnSparseProduct, 1);
    HnSparseCount count;
    (void)count_zeros(s, m, &count);
    q->m = m->y[0];
    q->n = m->y[1];
    q->k = m->b[0];
    q->threads = hn_cpu_threads_for(s, 2 * (double)q->m * (double)hn_sparse_floats(&count));
    cut(q);
    const int64_t pitch = q->block + PAST, last = q->m - (q->blocks - 1) * q->block;
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i == 0 ? q->block : last;
        q->in[i] = hn_copy_new(sizeof(float), 2, (const int64_t[]){ q->k, rows }, 0, (const int64_t[]){ pitch, 1 }, 0,
                               (const int64_t[]){ m->a_strides[1], m->a_strides[0] }, 1);
        q->out[i] = hn_copy_new(sizeof(float), 2, (const int64_t[]){ rows, q->n }, 0, (const int64_t[]){ q->n, 1 }, 0,
                                (const int64_t[]){ 1, pitch }, 1);
    }
    g_autofree int64_t *offset = g_new(int64_t, (gsize)q->k + 1);
    for (int64_t i = 0; i < q->k; i++)
        offset[i] = i * pitch;
    hn_sparse_rows_init(&q->lists, &count, hn_cpu_in(s, 1)->data, m->b_strides[1], m->b_strides[0], offset);
    q->first = hn_sgemm_take_shift(p);
    p->end = hn_epilogue_end(&p->epilogue, q->first);
    q->late = p->end.rest < p->epilogue.n || p->end.add_port >= 0;
    s->scratch_bytes = (gsize)(q->threads * (q->k + q->n) * pitch) * sizeof(float);
    return hn_pack_own(s, 1, pack_weights, m->b_strides[1] != 1, (hn_sparse_floats(&count) + 1) * sizeof(float), p,
                       &p->packed, error);
}

static void run_block(const HnSgemm *p, const HnStep *s, const float *bias, int64_t at, float *scratch)
{
    const HnSparseProduct *q = p->sparse;
    const gboolean last = at == q->blocks - 1;
    const int64_t from = at * q->block, rows = MIN(q->block, q->m - from), pitch = q->block + PAST;
    float *all = hn_cpu_data(&s->out[0]), *y = all + from * q->n, *columns = scratch + q->k * pitch;
    const HnSparseArgs a = { .rows = &q->lists,
                             .weights = hn_pack_data(p->packed, s, 1),
                             .bias = p->shift != NULL ? p->shift : bias,
                             .x = scratch,
                             .y = columns,
                             .y_pitch = pitch,
                             .lo = q->late ? -G_MAXFLOAT * 2 : p->end.lo,
                             .hi = q->late ? G_MAXFLOAT * 2 : p->end.hi,
                             .columns = rows };
    hn_copy_run(q->in[last], scratch, (const float *)hn_cpu_data(&s->in[0]) + from * p->matrices.a_strides[0]);
    hn_sparse_strips(&a, 0, q->lists.count.strips);
    hn_copy_run(q->out[last], y, columns);
    if (q->late)
        hn_epilogue_rest(&p->epilogue, q->first, s, all, q->n, from, rows, 0, q->n);
}

static void run_part(const HnSgemm *p, const HnStep *s, const float *bias, int part)
{
    const HnSparseProduct *q = p->sparse;
    float *scratch = (float *)s->scratch + part * (q->k + q->n) * (q->block + PAST);
    for (int64_t at = q->blocks * part / q->threads; at < q->blocks * (part + 1) / q->threads; at++)
        run_block(p, s, bias, at, scratch);
}

void hn_sparse_product_run(const HnSgemm *p, const HnStep *s, const float *bias)
{
    if (p->sparse->threads == 1) {
        run_part(p, s, bias, 0);
        return;
    }
#pragma omp parallel for num_threads(p->sparse->threads)
    for (int t = 0; t < p->sparse->threads; t++)
        run_part(p, s, bias, t);
}

void hn_sparse_product_free(HnSparseProduct *q)
{
    if (q == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        hn_copy_free(q->in[i]);
        hn_copy_free(q->out[i]);
    }
    hn_sparse_rows_clear(&q->lists);
    g_free(q);
}
