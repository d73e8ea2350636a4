#include "cpu/gemm/sgemm.h"

#include <string.h>

#include "cpu/gemm/gemm_pairs.h"
#include "cpu/sparse/sparse_product.h"
#include "op/index.h"

#define HN_LOOPS "cpu/gemm/sgemm_loops.h"
#include "base/every_level.h"

#define SMALL_FLOPS 1e4

/* --- small products ----------------------------------------------------------------------------------------------- */

static double flops_of(const HnMatrices *m)
{
    double flops = 2 * (double)m->a[m->ndim - 1];
    for (int i = 0; i < m->ndim; i++)
        flops *= (double)m->y[i];
    return flops;
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
    static void (*const add_rows[])(float *restrict, const float *, int64_t, const float *, int64_t, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(add_rows);
    const int r = m->ndim - 2, c = m->ndim - 1;
    const int64_t rows = m->y[r], n = m->y[c], k = m->a[c];
    for (int64_t i = 0; i < rows; i++, y += n, a += m->a_strides[r]) {
        if (bias != NULL)
            memcpy(y, bias, (gsize)n * sizeof *y);
        else
            memset(y, 0, (gsize)n * sizeof *y);
        if (m->b_strides[c] == 1 && n > 1)
            add_rows[hn_cpu_level()](y, a, m->a_strides[c], b, m->b_strides[r], k, n);
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
static dnnl_status_t describe(const HnStep *s, const HnMatrices *m, const HnEpilogue *epilogue, gboolean *inner,
                              dnnl_primitive_desc_t *pd)
{
    g_auto(dnnl_primitive_attr_t) attr =
        hn_epilogue_attr(epilogue, m->ndim, m->y, m->ndim - 1, hn_cpu_in_bf16(s, flops_of(m)));
    if (attr == NULL)
        return dnnl_unimplemented;
    gboolean rows = m->ndim == 2 && m->a_strides[1] == 1 && m->a_strides[0] == m->a[1];
    hn_cpu_begin(s, flops_of(m));
    *inner = rows && s->in[1].slot->constant && describe_inner(s, m, attr, pd) == dnnl_success;
    return *inner ? dnnl_success : describe_matmul(s, m, attr, pd);
}

/* --- by tiles ----------------------------------------------------------------------------------------------------- */

#define LOOSE_ROWS (2 * HN_GEMM_KERNEL_LOOSE_ROWS) /* of a product; more of them pay for packing b */

static void pack_rights(void *to, const HnTensor *b, gconstpointer data)
{
    const HnSgemm *p = data;
    const HnMatrices *m = &p->matrices;
    const int64_t k = m->a[m->ndim - 1], n = m->y[m->ndim - 1];
    for (int64_t i = 0; i < p->rights; i++)
        (p->pairs ? hn_gemm_pairs_pack : hn_gemm_kernel_pack)(
            (float *)to + i * p->packed_right, (const char *)b->data + i * k * n * (int64_t)sizeof(float),
            m->b_strides[m->ndim - 2], m->b_strides[m->ndim - 1], k, n);
}

static void place_stacks(HnSgemm *p)
{
    const HnMatrices *m = &p->matrices;
    const int stacks = m->ndim - 2;
    int64_t idx[DNNL_MAX_NDIMS] = { 0 }, as[DNNL_MAX_NDIMS], bs[DNNL_MAX_NDIMS], off[2] = { 0 }, at = 0;
    int64_t *strides[] = { as, bs };
    p->stacks = hn_span(m->y, 0, stacks);
    p->rights = hn_span(m->b, 0, stacks);
    p->a_at = g_new(int64_t, (gsize)p->stacks);
    p->b_at = g_new(int64_t, (gsize)p->stacks);
    for (int i = 0; i < stacks; i++) {
        as[i] = m->a[i] == 1 ? 0 : m->a_strides[i];
        bs[i] = m->b[i] == 1 ? 0 : m->b_strides[i];
    }
    do {
        p->a_at[at] = off[0];
        p->b_at[at++] = off[1];
    } while (hn_index_next(stacks, m->y, idx, 2, strides, off));
}

int hn_sgemm_take_shift(HnSgemm *p)
{
    const HnEpilogueOp *op = p->epilogue.op;
    if (p->bias || p->epilogue.n == 0 || op->kind != HN_EPILOGUE_AFFINE || op->scale != NULL)
        return 0;
    p->shift = op->shift;
    return 1;
}

static gboolean prepare_packed(HnSgemm *p, HnStep *s, GError **error)
{
    const HnMatrices *m = &p->matrices;
    const int r = m->ndim - 2, c = m->ndim - 1;
    place_stacks(p);
    p->threads = hn_cpu_threads_for(s, flops_of(m));
    p->whole = p->stacks < 2 * p->threads && p->stacks % p->threads != 0;
    p->loose = !hn_slot_is_weight(s->in[1].slot) && m->y[r] <= LOOSE_ROWS && m->b_strides[c] == 1;
    p->pairs = s->bf16 && !p->loose && hn_gemm_pairs_pay(m->a[c], m->y[c]);
    p->depth = p->pairs ? hn_gemm_pairs_words(m->a[c]) : m->a[c];
    p->packed_right = hn_gemm_kernel_packed(p->depth, m->y[c]);
    if (p->pairs || (m->a[c] > 1 && m->a_strides[c] != 1 && !p->loose))
        p->room = hn_gemm_kernel_room(m->y[r], p->depth);
    p->end = hn_epilogue_end(&p->epilogue, hn_sgemm_take_shift(p));
    p->posts = hn_epilogue_posts(&p->epilogue, &p->end, p->post);
    p->lates = hn_epilogue_late(&p->epilogue, &p->end, p->late);
    s->scratch_bytes = (gsize)(p->threads * p->room) * sizeof(float);
    if (hn_slot_is_weight(s->in[1].slot))
        return (p->pairs ? hn_pack_normal : hn_pack_own)(s, 1, pack_rights, (m->b_strides[c] != 1) + 2 * p->pairs,
                                                         (gsize)(p->rights * p->packed_right) * sizeof(float), p,
                                                         &p->packed, error);
    p->once = !p->loose && p->rights == p->stacks;
    p->right = p->loose ? 0 : p->once ? hn_gemm_kernel_panels(p->depth, m->y[c]) : p->packed_right;
    s->scratch_bytes += (gsize)((p->whole && !p->once ? 1 : p->threads) * p->right) * sizeof(float);
    return TRUE;
}

typedef struct {
    const HnSgemm *p;
    const HnStep *s;
    const float *a, *b, *bias, *add;
    float *y, *scratch, *rooms; /* scratch: for right operands */
    int64_t row;                /* of y, where the present product begins */
} Run;

static void rest_of_rows(gpointer data, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const Run *r = data;
    const int64_t n = r->p->matrices.y[r->p->matrices.ndim - 1];
    hn_epilogue_rest(&r->p->epilogue, r->p->end.rest, r->s, r->y, n, r->row + row, rows, col, cols);
}

/* Product i with b as given: units [from, to) of it, by one of the threads. */
static void one_product(const Run *run, int64_t i, const float *b, const HnGemmCut *cut, int64_t from, int64_t to,
                        int thread)
{
    const HnSgemm *p = run->p;
    const HnMatrices *m = &p->matrices;
    const int64_t rows = m->y[m->ndim - 2], n = m->y[m->ndim - 1], k = m->a[m->ndim - 1];
    Run here = *run;
    here.row = i * rows;
    HnGemmBlocked g = { .m = rows,
                        .n = n,
                        .k = k,
                        .pairs = p->pairs,
                        .a = run->a + p->a_at[i],
                        .b = b,
                        .c = run->y + here.row * n,
                        .b_pitch = p->loose ? m->b_strides[m->ndim - 2] : 0,
                        .panels = p->once ? run->scratch + thread * p->right : NULL,
                        .b_row = m->b_strides[m->ndim - 2],
                        .b_col = m->b_strides[m->ndim - 1],
                        .a_pitch = m->a_strides[m->ndim - 2],
                        .a_k = k > 1 ? m->a_strides[m->ndim - 1] : 1,
                        .room = p->room > 0 ? run->rooms + thread * p->room : NULL,
                        .c_pitch = n,
                        .bias = run->bias,
                        .add = run->add != NULL ? run->add + here.row * n : NULL,
                        .add_pitch = n,
                        .post = p->post,
                        .posts = p->posts,
                        .late = p->late,
                        .lates = p->lates,
                        .lo = p->end.lo,
                        .hi = p->end.hi,
                        .done = p->end.rest < p->epilogue.n ? rest_of_rows : NULL,
                        .data = &here };
    hn_gemm_blocked_units(&g, cut, from, to);
}

/* Right operands are packed into scratch memory, one at a time. */
static gboolean is_packed_here(const HnSgemm *p)
{
    return p->packed == NULL && !p->loose && !p->once;
}

/* Product i's right operand where it is not. */
static const float *stored_b(const Run *run, int64_t i)
{
    const HnSgemm *p = run->p;
    const HnMatrices *m = &p->matrices;
    const int64_t n = m->y[m->ndim - 1], k = m->a[m->ndim - 1];
    return p->packed != NULL ? run->b + p->b_at[i] / (k * n) * p->packed_right : run->b + p->b_at[i];
}

static int64_t panels_of(int64_t n)
{
    return (n + hn_gemm_kernel_cols() - 1) / hn_gemm_kernel_cols();
}

/* Panels [first, last) of product i's right operand, into `to`. */
static void pack_right(const Run *run, int64_t i, float *to, int64_t first, int64_t last)
{
    const HnSgemm *p = run->p;
    const HnMatrices *m = &p->matrices;
    const int64_t n = m->y[m->ndim - 1], k = m->a[m->ndim - 1], from = first * hn_gemm_kernel_cols();
    const int64_t end = MIN(n, last * hn_gemm_kernel_cols()), row = m->b_strides[m->ndim - 2];
    const int64_t col = m->b_strides[m->ndim - 1];
    (p->pairs ? hn_gemm_pairs_pack : hn_gemm_kernel_pack)(to + from * p->depth, run->b + p->b_at[i] + from * col, row,
                                                          col, k, end - from);
}

/* Products [from, to), one after the other. */
static void some_products(gpointer data, int thread, int64_t from, int64_t to)
{
    const Run *run = data;
    const HnSgemm *p = run->p;
    const HnGemmCut whole = { 1, 1 };
    const gboolean here = is_packed_here(p);
    float *buffer = run->scratch + thread * p->right;
    for (int64_t i = from; i < to; i++) {
        if (here && (i == from || p->b_at[i] != p->b_at[i - 1]))
            pack_right(run, i, buffer, 0, panels_of(p->matrices.y[p->matrices.ndim - 1]));
        one_product(run, i, here ? buffer : stored_b(run, i), &whole, 0, 1, thread);
    }
}

typedef struct {
    const Run *run;
    int64_t i;
    const float *b;
    HnGemmCut cut;
} Whole;

static void pack_panels(gpointer data, G_GNUC_UNUSED int thread, int64_t from, int64_t to)
{
    const Whole *w = data;
    pack_right(w->run, w->i, w->run->scratch, from, to);
}

static void units_of_product(gpointer data, int thread, int64_t from, int64_t to)
{
    const Whole *w = data;
    one_product(w->run, w->i, w->b, &w->cut, from, to, thread);
}

/* Every product by all threads. */
static void whole_products(const Run *run)
{
    const HnSgemm *p = run->p;
    const HnMatrices *m = &p->matrices;
    const int64_t n = m->y[m->ndim - 1], k = m->a[m->ndim - 1];
    const gboolean shared = is_packed_here(p);
    Whole w = { .run = run, .cut = hn_gemm_cut(m->y[m->ndim - 2], n, k, p->once || p->room > 0, p->threads) };
    for (w.i = 0; w.i < p->stacks; w.i++) {
        if (shared && (w.i == 0 || p->b_at[w.i] != p->b_at[w.i - 1]))
            hn_parallel_for(panels_of(n), p->threads, pack_panels, &w);
        w.b = shared ? run->scratch : stored_b(run, w.i);
        hn_parallel_for((int64_t)w.cut.down * w.cut.across, p->threads, units_of_product, &w);
    }
}

static void run_packed(const HnSgemm *p, const HnStep *s, const float *bias)
{
    Run run = { .p = p,
                .s = s,
                .a = hn_cpu_data(&s->in[0]),
                .b = hn_pack_data(p->packed, s, 1),
                .bias = p->shift != NULL ? p->shift : bias,
                .add = p->end.add_port >= 0 ? hn_cpu_data(&s->in[p->end.add_port]) : NULL,
                .y = hn_cpu_data(&s->out[0]),
                .rooms = s->scratch,
                .scratch = (float *)s->scratch + p->threads * p->room };
    if (p->threads > 1 && p->whole)
        whole_products(&run);
    else
        hn_parallel_for(p->stacks, p->threads, some_products, &run);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static int channel_axis(const HnStep *s)
{
    return MAX(s->out[0].slot->tensor->ndim - 1, 0);
}

gboolean hn_sgemm_fuses(const HnStep *s, const HnMatrices *m)
{
    const HnTensor *y = s->out[0].slot->tensor;
    return y->ndim > 0 && y->dims[y->ndim - 1] == m->y[m->ndim - 1] && hn_epilogue_fits(s, y->ndim - 1);
}

const char *hn_sgemm_reject(const HnStep *s, const HnMatrices *m, HnSgemmWay way)
{
    const char *reason;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    gboolean inner;
    if (way == HN_SGEMM_SPARSE)
        return hn_sparse_product_reject(s, m);
    if (way == HN_SGEMM_SMALL)
        return flops_of(m) <= SMALL_FLOPS || m->y[m->ndim - 1] == 1 ? NULL : "large enough for tiles";
    if (way == HN_SGEMM_KERNEL)
        return hn_cpu_in_bf16(s, flops_of(m)) ? "bf16 is asked for" : NULL;
    if ((reason = hn_cpu_reject_onednn(s)) != NULL)
        return reason;
    HnEpilogue epilogue;
    hn_epilogue_init(&epilogue, (HnStep *)s, channel_axis(s));
    dnnl_status_t status = describe(s, m, &epilogue, &inner, &pd);
    hn_epilogue_clear(&epilogue);
    return status == dnnl_success ? NULL : "oneDNN has no implementation";
}

gboolean hn_sgemm_prepare(HnSgemm *p, HnStep *s, const HnMatrices *m, HnSgemmWay way, GError **error)
{
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    gboolean inner;
    p->matrices = *m;
    p->bias = m->bias;
    if (s->n_fused > 0)
        hn_epilogue_init(&p->epilogue, s, channel_axis(s));
    p->way = way;
    if (way == HN_SGEMM_SMALL)
        return TRUE;
    if (way == HN_SGEMM_SPARSE)
        return hn_sparse_product_prepare(p, s, error);
    if (way == HN_SGEMM_KERNEL)
        return prepare_packed(p, s, error);
    if (!hn_cpu_check(describe(s, m, &p->epilogue, &inner, &pd), s, error))
        return FALSE;
    g_auto(dnnl_memory_desc_t) stored = stored_right(m, inner);
    const_dnnl_memory_desc_t wanted = hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_weights_md, 0);
    if (s->in[1].slot->constant && !hn_pack(s, 1, stored, wanted, &p->packed, error))
        return FALSE;
    int args[HN_PRIM_ARGS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS };
    int n = hn_epilogue_args(&p->epilogue, s, pd, args, m->bias ? 4 : 3);
    return hn_prim_init(&p->prim, s, pd, n, args, error);
}

gboolean hn_sgemm_run(HnSgemm *p, const HnStep *s, void *bias, GError **error)
{
    float *y = hn_cpu_data(&s->out[0]);
    if (p->way == HN_SGEMM_SPARSE) {
        hn_sparse_product_run(p, s, bias);
        return TRUE;
    }
    if (p->way == HN_SGEMM_KERNEL) {
        run_packed(p, s, bias);
        return TRUE;
    }
    if (p->way == HN_SGEMM_SMALL) {
        const int64_t total = s->out[0].slot->tensor->n, n = p->matrices.y[p->matrices.ndim - 1];
        small_product(&p->matrices, hn_cpu_data(&s->in[0]), hn_cpu_data(&s->in[1]), bias, y);
        for (int64_t at = 0; p->epilogue.n > 0 && at < total; at += n)
            hn_epilogue_row(&p->epilogue, s, y + at, at, n, -1);
        return TRUE;
    }
    void *data[HN_PRIM_ARGS] = { hn_cpu_data(&s->in[0]), hn_pack_data(p->packed, s, 1), y, bias };
    hn_epilogue_data(&p->epilogue, s, data, p->bias ? 4 : 3);
    return hn_prim_run(&p->prim, s, data, error);
}

void hn_sgemm_clear(HnSgemm *p)
{
    hn_prim_clear(&p->prim);
    g_clear_pointer(&p->sparse, hn_sparse_product_free);
    hn_epilogue_clear(&p->epilogue);
    hn_pack_unref(p->packed);
    p->packed = NULL;
    g_clear_pointer(&p->a_at, g_free);
    g_clear_pointer(&p->b_at, g_free);
}
