/*
 * Attention, and FusedAttention, which plans make of attention that is written out. Scores stay on the chip.
 */
#include <math.h>

#include "cuda/core/cuda_kernel.h"
#include "cuda/gemm/cuda_attention_args.h"
#include "op/index.h"
#include "run/attention_forms.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, NONPAD };
enum { Y, PRESENT_K, PRESENT_V, QK };

#define COPY_THREADS 256
#define CAPABILITY 90     /* of devices with warpgroups */
#define LEAST_QUERIES 16  /* of a warp; below it tiles are mostly zeros */
#define TILE_SIZE 128     /* of vectors, at most */
#define STATIC_BYTES 1024 /* of shared memory, of attention_few */

typedef struct {
    HnCuFunction f, present[2];
    HnCudaGrid grid, present_grid[2];
    HnCudaAttentionArgs args;
    HnCudaPresentArgs caches[2];
} Attention;

static HnCudaHeads heads_of(const HnAttentionForm *f)
{
    return (HnCudaHeads){ 0, f->s_batch, f->s_head, f->s_token };
}

/* Of queries, keys, values and results. */
static void set_forms(HnCudaAttentionArgs *a, const HnAttentionForm f[4])
{
    a->q = heads_of(&f[Q]);
    a->k = heads_of(&f[K]);
    a->v = heads_of(&f[V]);
    a->y = heads_of(&f[3]);
    a->batch = f[Q].batch;
    a->heads = f[Q].heads;
    a->kv_heads = f[K].heads;
    a->queries = f[Q].length;
    a->keys = f[K].length;
    a->size = f[Q].size;
    a->value_size = f[V].size;
}

static gboolean is_wide(const HnCudaHeads *h, int64_t elements)
{
    return h->batch % elements == 0 && h->head % elements == 0 && h->token % elements == 0;
}

/* Tiles on tensor cores. */
static gboolean prepare_tiles(HnStep *s, Attention *c, int64_t size, GError **error)
{
    const HnCudaAttentionArgs *a = &c->args;
    const HnDtype dtype = hn_cuda_in(s, Q)->dtype;
    const int fits = size <= 32 ? 32 : size <= 64 ? 64 : TILE_SIZE, each = HN_CUDA_ATTENTION_QUERIES;
    const int64_t heads = a->batch * a->heads, few = heads * ((a->queries + each - 1) / each);
    const HnCuda *device = s->device;
    /* twice the queries share what is copied of keys, where there are enough blocks without that */
    const gboolean wide = dtype != HN_F32 && a->queries > each && few >= 2 * (int64_t)device->multiprocessors &&
                          HN_CUDA_ATTENTION_HALF_BYTES(fits, 2) <= device->shared_bytes;
    const int m = wide ? 2 : 1;
    g_autofree char *name = dtype == HN_F32 ? g_strdup_printf("attention_tiles_%d", fits)
                                            : g_strdup_printf("attention_half_%d_%d", fits, m);
    c->grid =
        hn_cuda_row(wide ? heads * ((a->queries + 2 * each - 1) / (2 * each)) : few, HN_CUDA_ATTENTION_THREADS * m);
    c->grid.shared =
        (gsize)(dtype == HN_F32 ? HN_CUDA_ATTENTION_TILE_BYTES_F32(fits) : HN_CUDA_ATTENTION_HALF_BYTES(fits, m));
    c->f = hn_cuda_typed(s, dtype == HN_F32 ? "cuda_attention_tiles" : "cuda_attention_half", name, dtype, error);
    return c->f != NULL && hn_cuda_allow_shared(s, c->f, c->grid.shared, error);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Vectors of warpgroups are made as long. */
static int group_size(int64_t size)
{
    return size <= 64 ? 64 : 128;
}
static int group_queries(int64_t size)
{
    return 64 * HN_CUDA_ATTENTION_GROUPS(group_size(size));
}
static gsize group_bytes(int64_t size)
{
    const int fits = group_size(size);
    return (gsize)HN_CUDA_ATTENTION_WARPGROUP_BYTES(fits, HN_CUDA_ATTENTION_GROUPS(fits), HN_CUDA_ATTENTION_GROUP_KEYS,
                                                    HN_CUDA_ATTENTION_STAGES);
}

/* Warpgroups, where a block's queries are mostly there. */
static gboolean takes_warpgroups(const HnStep *s, const HnCudaAttentionArgs *a, int64_t size)
{
    const HnCuda *device = s->device;
    if (hn_cuda_in(s, Q)->dtype == HN_F32 || device->capability != CAPABILITY || size <= 32 || a->queries <= 64)
        return FALSE;
    return (gsize)device->shared_bytes >= group_bytes(size) && MAX(a->queries, a->past + a->keys) <= G_MAXINT32 / 2 &&
           a->batch * a->heads * ceil_div(a->queries, group_queries(size)) <= G_MAXINT32;
}

static gboolean prepare_warpgroups(HnStep *s, Attention *c, int64_t size, GError **error)
{
    HnCudaAttentionArgs *a = &c->args;
    const int queries = group_queries(size);
    a->y_wide = a->y.batch % 2 == 0 && a->y.head % 2 == 0 && a->y.token % 2 == 0;
    g_autofree char *name = g_strdup_printf("attention_warpgroup_%d", group_size(size));
    c->grid = hn_cuda_row(a->batch * a->heads * ceil_div(a->queries, queries), 2 * queries);
    c->grid.shared = group_bytes(size);
    c->f = hn_cuda_typed(s, "cuda_attention_warpgroup", name, hn_cuda_in(s, Q)->dtype, error);
    return c->f != NULL && hn_cuda_allow_shared(s, c->f, c->grid.shared, error);
}

/* A block for few queries, whose warps share the keys. */
typedef struct {
    int size, keys; /* of vectors, and of a tile */
    int64_t bytes;  /* of shared memory */
} Few;

static Few few_of(const HnStep *s, const HnCudaAttentionArgs *a, int64_t size)
{
    const int fits = size <= 32 ? 32 : size <= 64 ? 64 : TILE_SIZE, most = ((const HnCuda *)s->device)->shared_bytes;
    if (hn_cuda_in(s, Q)->dtype != HN_F32)
        return (Few){ fits, HN_CUDA_ATTENTION_FEW_KEYS_HALF, HN_CUDA_ATTENTION_FEW_BYTES_HALF(fits) };
    const gboolean large = fits <= 64 && a->past + a->keys > 16 * HN_CUDA_ATTENTION_FEW_WARPS &&
                           HN_CUDA_ATTENTION_FEW_BYTES_F32(fits, 32) + STATIC_BYTES <= most;
    const int keys = large ? 32 : 16;
    return (Few){ fits, keys, HN_CUDA_ATTENTION_FEW_BYTES_F32(fits, keys) };
}

/* Keys that a multiprocessor goes through, one behind the other. `queries`, `keys`: of a block, and of it at a time;
 * together: blocks of a multiprocessor that hardly slow each other down. */
static double keys_in_turn(const HnStep *s, const HnCudaAttentionArgs *a, int64_t queries, int64_t keys,
                           double together)
{
    const int64_t blocks = a->batch * a->heads * ceil_div(a->queries, queries);
    const double all = together * ((const HnCuda *)s->device)->multiprocessors;
    return MAX((double)blocks / all, 1) * (double)ceil_div(a->past + a->keys, keys);
}

/* Where there are multiprocessors to spare. */
static gboolean takes_few(const HnStep *s, const HnCudaAttentionArgs *a, int64_t size)
{
    const HnCuda *device = s->device;
    const Few f = few_of(s, a, size);
    const gboolean f32 = hn_cuda_in(s, Q)->dtype == HN_F32;
    const int queries = takes_warpgroups(s, a, size) ? group_queries(size) : HN_CUDA_ATTENTION_QUERIES;
    const int keys = f32 ? HN_CUDA_ATTENTION_TILE_KEYS_F32 : HN_CUDA_ATTENTION_TILE_KEYS_HALF;
    const double few =
        f.keys * keys_in_turn(s, a, HN_CUDA_ATTENTION_FEW_QUERIES, (int64_t)f.keys * HN_CUDA_ATTENTION_FEW_WARPS, 1);
    return f.bytes + STATIC_BYTES <= device->shared_bytes &&
           few * (double)device->few_cost[!f32] <= keys * keys_in_turn(s, a, queries, keys, f32 ? 2.5 : 1);
}

static gboolean prepare_few(HnStep *s, Attention *c, int64_t size, GError **error)
{
    const HnCudaAttentionArgs *a = &c->args;
    const HnDtype dtype = hn_cuda_in(s, Q)->dtype;
    const Few f = few_of(s, a, size);
    g_autofree char *name = dtype == HN_F32 ? g_strdup_printf("attention_few_%d_%d", f.size, f.keys)
                                            : g_strdup_printf("attention_few_%d", f.size);
    c->grid = hn_cuda_row(a->batch * a->heads * ceil_div(a->queries, HN_CUDA_ATTENTION_FEW_QUERIES),
                          HN_CUDA_ATTENTION_FEW_WARPS * 32);
    c->grid.shared = (gsize)f.bytes;
    c->f = hn_cuda_typed(s, dtype == HN_F32 ? "cuda_attention_few" : "cuda_attention_few_half", name, dtype, error);
    return c->f != NULL && hn_cuda_allow_shared(s, c->f, c->grid.shared, error);
}

/* What both operators do behind measuring. */
static gboolean prepare(HnStep *s, Attention *c, GError **error)
{
    HnCudaAttentionArgs *a = &c->args;
    const HnDtype dtype = hn_cuda_in(s, Q)->dtype;
    const int64_t elements = 16 / (int64_t)hn_dtype_size(dtype), size = MAX(a->size, a->value_size);
    a->wide = a->size % elements == 0 && a->value_size % elements == 0 && is_wide(&a->q, elements) &&
              is_wide(&a->k, elements) && is_wide(&a->v, elements);
    if (!s->strict_math && a->queries >= LEAST_QUERIES && size <= TILE_SIZE) {
        if (takes_few(s, a, size))
            return prepare_few(s, c, size, error);
        return takes_warpgroups(s, a, size) ? prepare_warpgroups(s, c, size, error) : prepare_tiles(s, c, size, error);
    }
    c->grid = hn_cuda_row(a->batch * a->heads * a->queries, HN_CUDA_ATTENTION_THREADS);
    c->grid.shared = (gsize)HN_CUDA_ATTENTION_ROW_FLOATS(a->size, a->value_size) * sizeof(float);
    c->f = hn_cuda_typed(s, "cuda_attention_rows", "attention_rows", dtype, error);
    return c->f != NULL && hn_cuda_allow_shared(s, c->f, c->grid.shared, error);
}

static const char *too_large(const HnStep *s, const HnCudaAttentionArgs *a)
{
    const gsize bytes = (gsize)HN_CUDA_ATTENTION_ROW_FLOATS(a->size, a->value_size) * sizeof(float) + 1024;
    return bytes > (gsize)((const HnCuda *)s->device)->shared_bytes ? "vectors that fill the shared memory" : NULL;
}

static gboolean run(const HnStep *s, GError **error)
{
    const Attention *c = s->state;
    HnCudaAttentionArgs a = c->args;
    a.q.data = hn_cuda_in_address(s, Q);
    a.k.data = hn_cuda_in_address(s, K);
    a.v.data = hn_cuda_in_address(s, V);
    a.past_k.data = a.past > 0 ? hn_cuda_in_address(s, PAST_K) : 0;
    a.past_v.data = a.past > 0 ? hn_cuda_in_address(s, PAST_V) : 0;
    a.y.data = hn_cuda_out_address(s, Y);
    a.mask = hn_cuda_in_address(s, MASK);
    a.wide = a.wide && (a.q.data | a.k.data | a.v.data | a.past_k.data | a.past_v.data) % 16 == 0;
    a.y_wide = a.y_wide && a.y.data % 4 == 0;
    return hn_cuda_launch(s, c->f, c->grid, &a, error);
}

/* --- Attention --------------------------------------------------------------------------------------------------- */

static const char *measure_mask(const HnStep *s, HnCudaAttentionArgs *a)
{
    const HnAttention *p = s->params;
    const HnTensor *m = hn_cuda_in(s, MASK);
    const int64_t total = a->past + a->keys, want[4] = { a->batch, a->heads, a->queries, total };
    if (m == NULL)
        return NULL;
    a->mask_length = m->ndim > 0 ? m->dims[m->ndim - 1] : 1;
    if (m->ndim > 4)
        return "the mask does not fit";
    for (int i = 4 - m->ndim; i < 4; i++) {
        const int64_t d = m->dims[i - (4 - m->ndim)];
        if (d != 1 && d != want[i] && (i != 3 || !p->short_mask || d > want[i]))
            return "the mask does not fit";
    }
    if (a->mask_length == 1 && !p->short_mask)
        a->mask_length = total;
    hn_broadcast_strides(m, 4, a->mask_steps);
    if (m->dtype == HN_BOOL)
        a->mask_kind = HN_CUDA_MASK_BOOL;
    else if (m->dtype == hn_cuda_in(s, Q)->dtype)
        a->mask_kind = HN_CUDA_MASK_SAME;
    else if (m->dtype == HN_F32)
        a->mask_kind = HN_CUDA_MASK_F32;
    else
        return "a mask that is neither bool nor f32, nor of the type of queries";
    return NULL;
}

static const char *measure(const HnStep *s, Attention *c)
{
    const HnAttention *p = s->params;
    HnAttentionForm f[4];
    HnCudaAttentionArgs *a = &c->args;
    const char *reason = hn_attention_forms(s, f, &a->past);
    if (reason != NULL)
        return reason;
    const HnAttentionForm *k = &f[K], *v = &f[V];
    set_forms(a, f);
    a->past_k = (HnCudaHeads){ 0, k->heads * a->past * k->size, a->past * k->size, k->size };
    a->past_v = (HnCudaHeads){ 0, v->heads * a->past * v->size, a->past * v->size, v->size };
    a->scale = isnan(p->scale) ? (float)(1 / sqrt((double)f[Q].size)) : (float)p->scale;
    a->softcap = (float)p->softcap;
    a->causal = p->causal;
    a->left = p->left;
    a->right = p->right;
    a->hides = TRUE;
    for (int i = 0; i < 2; i++) {
        const HnAttentionForm *x = i == 0 ? k : v;
        c->caches[i] =
            (HnCudaPresentArgs){ i == 0 ? a->k : a->v, 0, 0, x->batch, x->heads, a->past, x->length, x->size };
    }
    reason = measure_mask(s, a);
    return reason != NULL ? reason : too_large(s, a);
}

static const char *attention_reject(const HnStep *s)
{
    Attention c = { 0 };
    const char *reason = hn_cuda_reject_floats(s);
    for (int i = 0; i <= PAST_V && reason == NULL; i++)
        if (i != MASK && hn_cuda_in(s, i) != NULL && hn_cuda_in(s, i)->dtype != hn_cuda_in(s, Q)->dtype)
            reason = "operands of several types";
    if (reason == NULL && (hn_cuda_in(s, K)->n == 0 || hn_cuda_in(s, V)->n == 0))
        reason = "nothing to compute";
    if (reason == NULL && hn_cuda_in(s, NONPAD) != NULL)
        reason = "lengths of the cache";
    if (reason == NULL && !hn_cuda_wants_only(s, QK))
        reason = "the products as an output";
    return reason != NULL ? reason : measure(s, &c);
}

static gboolean attention_prepare(HnStep *s, GError **error)
{
    Attention *c = g_new0(Attention, 1);
    s->state = c;
    measure(s, c);
    for (int i = 0; i < 2; i++) {
        const HnTensor *t = hn_cuda_out(s, PRESENT_K + i);
        if (t == NULL)
            continue;
        c->present_grid[i] = hn_cuda_loop(s, t->n, COPY_THREADS);
        c->present[i] = hn_cuda_typed(s, "cuda_attention_rows", "attention_present", t->dtype, error);
        if (c->present[i] == NULL)
            return FALSE;
    }
    return prepare(s, c, error);
}

static gboolean attention_run(HnStep *s, GError **error)
{
    const Attention *c = s->state;
    for (int i = 0; i < 2; i++) {
        if (c->present[i] == NULL)
            continue;
        HnCudaPresentArgs a = c->caches[i];
        a.x.data = hn_cuda_in_address(s, K + i);
        a.past = a.past_length > 0 ? hn_cuda_in_address(s, PAST_K + i) : 0;
        a.y = hn_cuda_out_address(s, PRESENT_K + i);
        if (!hn_cuda_launch(s, c->present[i], c->present_grid[i], &a, error))
            return FALSE;
    }
    return run(s, error);
}

static const HnKernel attention = {
    .name = "cuda.attention",
    .reject = attention_reject,
    .prepare = attention_prepare,
    .run = attention_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_attention[] = { &attention, NULL };

/* --- FusedAttention ---------------------------------------------------------------------------------------------- */

static const char *measure_fused(const HnStep *s, Attention *c)
{
    const HnFusedAttention *p = s->params;
    HnAttentionForm f[4];
    HnCudaAttentionArgs *a = &c->args;
    const char *reason = hn_fused_attention_forms(s, f, a->mask_steps);
    if (reason != NULL)
        return reason;
    set_forms(a, f);
    a->scale = p->scale * p->key_scale;
    a->left = a->right = -1;
    a->dead = p->guard ? 0 : NAN;
    a->guard = p->guard;
    if (hn_cuda_in(s, MASK) != NULL) {
        a->mask_kind = HN_CUDA_MASK_SAME;
        a->mask_length = a->keys;
    }
    return too_large(s, a);
}

static const char *fused_reject(const HnStep *s)
{
    Attention c = { 0 };
    const char *reason =
        hn_cuda_in(s, HN_FUSED_KEEP) != NULL ? "a number in the place of some scores" : hn_cuda_reject_floats(s);
    for (int i = K; i < s->n_in && reason == NULL; i++)
        if (hn_cuda_in(s, i) != NULL && hn_cuda_in(s, i)->n == 0)
            reason = "nothing to compute";
    return reason != NULL ? reason : measure_fused(s, &c);
}

static gboolean fused_prepare(HnStep *s, GError **error)
{
    Attention *c = g_new0(Attention, 1);
    s->state = c;
    measure_fused(s, c);
    return prepare(s, c, error);
}

static gboolean fused_run(HnStep *s, GError **error)
{
    return run(s, error);
}

static const HnKernel fusedattention = {
    .name = "cuda.fusedattention",
    .reject = fused_reject,
    .prepare = fused_prepare,
    .run = fused_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_fusedattention[] = { &fusedattention, NULL };
