#include "cuda/core/cuda_kernel.h"

#include "cuda/core/nvtx.h"

HnCuFunction hn_cuda_named(const HnStep *s, const char *module, const char *name, GError **error)
{
    return hn_cuda_function(s->device, module, name, error);
}

HnCuFunction hn_cuda_typed(const HnStep *s, const char *module, const char *prefix, HnDtype dtype, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s_%s", prefix, hn_dtype_name(dtype));
    return hn_cuda_named(s, module, name, error);
}

#define BLOCKS_EACH 16 /* of a multiprocessor: some waves of blocks, whose ends overlap */

HnCudaGrid hn_cuda_loop(const HnStep *s, int64_t n, int threads)
{
    const HnCuda *c = s->device;
    const int64_t blocks = n / threads + (n % threads != 0);
    return hn_cuda_row(MIN(blocks, (int64_t)c->multiprocessors * BLOCKS_EACH), threads);
}

#define LEAST_THREADS 64

HnCudaGrid hn_cuda_spread(const HnStep *s, int64_t n, int threads)
{
    const HnCuda *c = s->device;
    while (threads / 2 >= LEAST_THREADS && n / threads < c->multiprocessors)
        threads /= 2;
    return hn_cuda_row(n / threads + (n % threads != 0), threads);
}

gboolean hn_cuda_launch(const HnStep *s, HnCuFunction f, HnCudaGrid g, const void *args, GError **error)
{
    const HnCuda *c = s->device;
    HnCudaStream *t = s->stream;
    void *params[] = { (void *)args };
    const HnNvtx *watched = hn_nvtx();
    if (!hn_cuda_enter(c, error))
        return FALSE;
    t->launches++;
    t->work++;
    if (watched != NULL)
        watched->push(s->origin != NULL ? hn_node_label(s->origin) : "reorder");
    const int result = c->driver->launch(f, g.grid[0], g.grid[1], g.grid[2], g.block[0], g.block[1], g.block[2],
                                         (unsigned)g.shared, t->stream, params, NULL);
    if (watched != NULL)
        watched->pop();
    return hn_cuda_check(c, result, s->kernel != NULL ? s->kernel->name : "a kernel", error);
}

gboolean hn_cuda_allow_shared(const HnStep *s, HnCuFunction f, gsize bytes, GError **error)
{
    HnCuda *c = s->device;
    int result = HN_CU_SUCCESS;
    g_mutex_lock(&c->lock);
    if (bytes > GPOINTER_TO_SIZE(g_hash_table_lookup(c->shared, f)) &&
        (result = c->driver->function_set(f, HN_CU_MAX_DYNAMIC_SHARED, (int)bytes)) == HN_CU_SUCCESS)
        g_hash_table_insert(c->shared, f, GSIZE_TO_POINTER(bytes));
    g_mutex_unlock(&c->lock);
    return hn_cuda_check(c, result, "booking shared memory", error);
}

gboolean hn_cuda_copy(const HnStep *s, uint64_t to, uint64_t from, gsize bytes, GError **error)
{
    const HnCuda *c = s->device;
    HnCudaStream *t = s->stream;
    t->work += bytes > 0;
    return bytes == 0 || (hn_cuda_enter(c, error) && hn_cuda_check(c, c->driver->copy(to, from, bytes, t->stream),
                                                                   "copying on the device", error));
}

gboolean hn_cuda_zeros(const HnStep *s, uint64_t to, gsize bytes, GError **error)
{
    const HnCuda *c = s->device;
    HnCudaStream *t = s->stream;
    t->work += bytes > 0;
    return bytes == 0 || (hn_cuda_enter(c, error) && hn_cuda_check(c, c->driver->fill(to, 0, bytes, t->stream),
                                                                   "clearing memory on the device", error));
}

uint64_t hn_cuda_table_new(const HnStep *s, const void *data, gsize bytes, GError **error)
{
    void *table = hn_cuda_memory.alloc(s->device, bytes, error);
    if (table == NULL || hn_cuda_memory.upload(s->stream, table, data, bytes, error))
        return (uint64_t)(uintptr_t)table;
    hn_cuda_memory.free(s->device, table);
    return 0;
}

void hn_cuda_table_free(const HnStep *s, uint64_t table)
{
    hn_cuda_memory.free(s->device, (void *)(uintptr_t)table);
}

const char *hn_cuda_reject_floats(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    if (x == NULL || !hn_cuda_is_float(x->dtype))
        return "only f32, f16, bf16";
    return x->n == 0 ? "nothing to compute" : NULL;
}

gboolean hn_cuda_wants_only(const HnStep *s, int n_out)
{
    for (int k = n_out; k < s->n_out; k++)
        if (s->out[k].slot != NULL)
            return FALSE;
    return TRUE;
}
