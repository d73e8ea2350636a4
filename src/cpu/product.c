#include "cpu/product.h"

#include <string.h>

#include "op/index.h"

#define SMALL_FLOPS 1e5 /* a call of oneDNN costs about as much, and preparing it a hundred times that */

/* --- small products ------------------------------------------------------------------------------------------------
 */

static double flops_of(const HnMatrices *m)
{
    double flops = 2 * (double)m->a[m->ndim - 1];
    for (int i = 0; i < m->ndim; i++)
        flops *= (double)m->y[i];
    return flops;
}

/* y[n] += sum over k of a[k * as] * b[k * bs + n] */
static void add_rows(float *restrict y, const float *a, int64_t as, const float *b, int64_t bs, int64_t k, int64_t n)
{
    for (; k > 0; k--, a += as, b += bs) {
        const float v = *a;
        for (int64_t j = 0; j < n; j++)
            y[j] += v * b[j];
    }
}

#define LANES 8

/* sum over k of a[k * as] * b[k * bs] */
static float dot(const float *a, int64_t as, const float *b, int64_t bs, int64_t k)
{
    float part[LANES] = { 0 }, sum = 0;
    int64_t i = 0;
    for (; as == 1 && bs == 1 && i + LANES <= k; i += LANES)
        for (int j = 0; j < LANES; j++)
            part[j] += a[i + j] * b[i + j];
    for (; i < k; i++)
        sum += a[i * as] * b[i * bs];
    for (int j = 0; j < LANES; j++)
        sum += part[j];
    return sum;
}

static void small_matrix(const HnMatrices *m, const float *a, const float *b, const float *bias, float *y)
{
    const int r = m->ndim - 2, c = m->ndim - 1;
    const int64_t rows = m->y[r], n = m->y[c], k = m->a[c];
    for (int64_t i = 0; i < rows; i++, y += n, a += m->a_strides[r]) {
        if (bias != NULL)
            memcpy(y, bias, (gsize)n * sizeof *y);
        else
            memset(y, 0, (gsize)n * sizeof *y);
        if (m->b_strides[c] == 1)
            add_rows(y, a, m->a_strides[c], b, m->b_strides[r], k, n);
        else
            for (int64_t j = 0; j < n; j++)
                y[j] += dot(a, m->a_strides[c], b + j * m->b_strides[c], m->b_strides[r], k);
    }
}

static void small_product(const HnMatrices *m, const float *a, const float *b, const float *bias, float *y)
{
    const int stacks = m->ndim - 2;
    int64_t idx[DNNL_MAX_NDIMS] = { 0 }, as[DNNL_MAX_NDIMS], bs[DNNL_MAX_NDIMS], off[2] = { 0 };
    int64_t *strides[] = { as, bs };
    for (int i = 0; i < stacks; i++) {
        as[i] = m->a[i] == 1 ? 0 : m->a_strides[i];
        bs[i] = m->b[i] == 1 ? 0 : m->b_strides[i];
    }
    do {
        small_matrix(m, a + off[0], b + off[1], bias, y);
        y += m->y[stacks] * m->y[stacks + 1];
    } while (hn_index_next(stacks, m->y, idx, 2, strides, off));
}

/* --- through oneDNN ---------------------------------------------------------------------------------------------- */

/* How the right operand lies in the slot's memory, seen as the primitive counts its axes. */
static dnnl_memory_desc_t stored_right(const HnMatrices *m, gboolean inner)
{
    if (!inner)
        return hn_md_strided(m->ndim, m->b, m->b_strides);
    return hn_md_strided(2, (const int64_t[]){ m->b[1], m->b[0] },
                         (const int64_t[]){ m->b_strides[1], m->b_strides[0] });
}

static dnnl_status_t describe_inner(const HnStep *s, const HnMatrices *m, const_dnnl_primitive_attr_t attr,
                                    dnnl_primitive_desc_t *pd)
{
    HnCpu *c = s->device;
    g_auto(dnnl_memory_desc_t) src = hn_md_plain(2, m->a);
    g_auto(dnnl_memory_desc_t) weights = hn_md_any(2, (const int64_t[]){ m->b[1], m->b[0] });
    g_auto(dnnl_memory_desc_t) bias = m->bias ? hn_md_plain(1, &m->y[1]) : NULL;
    g_auto(dnnl_memory_desc_t) dst = hn_md_plain(2, m->y);
    return hn_dnnl(inner_product_forward_primitive_desc_create)(pd, c->engine, dnnl_forward_inference, src, weights,
                                                                bias, dst, attr);
}

static dnnl_status_t describe_matmul(const HnStep *s, const HnMatrices *m, const_dnnl_primitive_attr_t attr,
                                     dnnl_primitive_desc_t *pd)
{
    HnCpu *c = s->device;
    int64_t row[DNNL_MAX_NDIMS];
    for (int i = 0; i < m->ndim; i++)
        row[i] = i < m->ndim - 1 ? 1 : m->y[i];
    g_auto(dnnl_memory_desc_t) src = hn_md_strided(m->ndim, m->a, m->a_strides);
    g_auto(dnnl_memory_desc_t) weights = s->in[1].slot->constant ? hn_md_any(m->ndim, m->b) : stored_right(m, FALSE);
    g_auto(dnnl_memory_desc_t) bias = m->bias ? hn_md_plain(m->ndim, row) : NULL;
    g_auto(dnnl_memory_desc_t) dst = hn_md_plain(m->ndim, m->y);
    return hn_dnnl(matmul_primitive_desc_create)(pd, c->engine, src, weights, bias, dst, attr);
}

/* *inner: which of the two it became. */
static dnnl_status_t describe(const HnStep *s, const HnMatrices *m, const HnAlong *along, gboolean *inner,
                              dnnl_primitive_desc_t *pd)
{
    g_auto(dnnl_primitive_attr_t) attr = hn_along_attr(along, m->ndim, m->y, m->ndim - 1);
    if (attr == NULL)
        return dnnl_unimplemented;
    gboolean rows = m->ndim == 2 && m->a_strides[1] == 1 && m->a_strides[0] == m->a[1];
    hn_cpu_begin(s, flops_of(m));
    *inner = rows && s->in[1].slot->constant && describe_inner(s, m, attr, pd) == dnnl_success;
    return *inner ? dnnl_success : describe_matmul(s, m, attr, pd);
}

static int channel_axis(const HnStep *s)
{
    return MAX(s->out[0].slot->tensor->ndim - 1, 0);
}

gboolean hn_product_fuses(const HnStep *s, const HnMatrices *m)
{
    const HnTensor *y = s->out[0].slot->tensor;
    return y->ndim > 0 && y->dims[y->ndim - 1] == m->y[m->ndim - 1] && hn_along_fits(s, y->ndim - 1);
}

const char *hn_product_reject(const HnStep *s, const HnMatrices *m, gboolean small)
{
    const char *reason;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    gboolean inner;
    if (small)
        return flops_of(m) <= SMALL_FLOPS ? NULL : "large enough for oneDNN";
    if ((reason = hn_cpu_reject_onednn(s)) != NULL)
        return reason;
    HnAlong along;
    hn_along_init(&along, (HnStep *)s, channel_axis(s));
    dnnl_status_t status = describe(s, m, &along, &inner, &pd);
    hn_along_clear(&along);
    return status == dnnl_success ? NULL : "oneDNN has no implementation";
}

gboolean hn_product_prepare(HnProduct *p, HnStep *s, const HnMatrices *m, gboolean small, GError **error)
{
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    gboolean inner;
    p->matrices = *m;
    p->bias = m->bias;
    if (s->n_fused > 0)
        hn_along_init(&p->along, s, channel_axis(s));
    if ((p->small = small))
        return TRUE;
    if (!hn_cpu_check(describe(s, m, &p->along, &inner, &pd), s, error))
        return FALSE;
    g_auto(dnnl_memory_desc_t) stored = stored_right(m, inner);
    const_dnnl_memory_desc_t wanted = hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_weights_md, 0);
    if (s->in[1].slot->constant && !hn_pack(s, 1, stored, wanted, &p->packed, error))
        return FALSE;
    int args[HN_PRIM_ARGS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS };
    int n = hn_along_args(&p->along, s, pd, args, m->bias ? 4 : 3);
    return hn_prim_init(&p->prim, s, pd, n, args, error);
}

gboolean hn_product_run(HnProduct *p, const HnStep *s, void *bias, GError **error)
{
    float *y = hn_cpu_data(&s->out[0]);
    if (p->small) {
        const int64_t total = s->out[0].slot->tensor->n, n = p->matrices.y[p->matrices.ndim - 1];
        small_product(&p->matrices, hn_cpu_data(&s->in[0]), hn_cpu_data(&s->in[1]), bias, y);
        for (int64_t at = 0; p->along.n > 0 && at < total; at += n)
            hn_along_row(&p->along, s, y + at, at, n, -1);
        return TRUE;
    }
    void *data[HN_PRIM_ARGS] = { hn_cpu_data(&s->in[0]), hn_pack_data(p->packed, s, 1), y, bias };
    hn_along_data(&p->along, s, data, p->bias ? 4 : 3);
    return hn_prim_run(&p->prim, s, data, error);
}

void hn_product_clear(HnProduct *p)
{
    hn_prim_clear(&p->prim);
    hn_along_clear(&p->along);
    hn_pack_unref(p->packed);
    p->packed = NULL;
}
