/*
 * Memory of a CUDA device, copies, and recorded work.
 */
#include <unistd.h>

#include "cuda/core/cuda_backend.h"

#define PINNED_PART 8

/* What is needed, what was free for it, what it may be; under the lock. */
static void set_too_little(const HnCuda *c, gsize bytes, GError **error)
{
    size_t left = 0, all = 0;
    g_autofree char *limit =
        c->limit > 0 ? g_strdup_printf(", and the limit is %.1f MB", (double)c->limit / 1e6) : g_strdup("");
    c->driver->memory_info(&left, &all);
    g_set_error(
        error, HN_ERROR, HN_ERROR_BUDGET,
        "device 'cuda:%d' has too little memory: the model needs %.1f MB or more, %.1f of %.1f MB are free for it%s",
        c->index, (double)(c->used + bytes) / 1e6, (double)(c->used + left) / 1e6, (double)all / 1e6, limit);
}

/* Under the lock. 0: error. */
static HnCuAddress allocate(HnCuda *c, gsize bytes, GError **error)
{
    HnCuAddress address = 0;
    const gboolean allowed = c->limit == 0 || (c->used <= c->limit && bytes <= c->limit - c->used);
    const int result = allowed ? c->driver->alloc(&address, bytes) : HN_CU_OUT_OF_MEMORY;
    if (result == HN_CU_OUT_OF_MEMORY)
        set_too_little(c, bytes, error);
    else if (hn_cuda_check(c, result, "allocating memory", error))
        return address;
    return 0;
}

static void *cuda_alloc(gpointer device, gsize bytes, GError **error)
{
    HnCuda *c = device;
    bytes = MAX(bytes, 1);
    if (!hn_cuda_enter(c, error))
        return NULL;
    g_mutex_lock(&c->lock);
    const HnCuAddress address = allocate(c, bytes, error);
    if (address != 0) {
        const guint64 block[] = { address, bytes };
        guint64 *key = g_memdup2(block, sizeof block);
        g_hash_table_insert(c->blocks, key, key + 1);
        c->used += bytes;
    }
    g_mutex_unlock(&c->lock);
    return (void *)(uintptr_t)address;
}

static void cuda_free(gpointer device, void *data)
{
    HnCuda *c = device;
    const guint64 address = (guint64)(uintptr_t)data;
    if (data == NULL)
        return;
    g_mutex_lock(&c->lock);
    const guint64 *bytes = g_hash_table_lookup(c->blocks, &address);
    c->used -= bytes != NULL ? (gsize)*bytes : 0;
    g_hash_table_remove(c->blocks, &address);
    g_mutex_unlock(&c->lock);
    if (hn_cuda_enter(c, NULL))
        c->driver->free((HnCuAddress)address);
}

/* Of the host's memory at most, so that others find room, too. */
static gsize most_pinned(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (gsize)pages / PINNED_PART * (gsize)page : 0;
}

static void *cuda_alloc_pinned(gpointer device, gsize bytes, GError **error)
{
    HnCuda *c = device;
    void *data = NULL;
    bytes = MAX(bytes, 1);
    if (!hn_cuda_enter(c, error))
        return NULL;
    g_mutex_lock(&c->lock);
    if (bytes <= most_pinned() && c->pinned_bytes <= most_pinned() - bytes &&
        hn_cuda_check(c, c->driver->host_alloc(&data, bytes, 0), "allocating pinned memory", error)) {
        g_hash_table_insert(c->pinned, data, GSIZE_TO_POINTER(bytes));
        c->pinned_bytes += bytes;
    }
    g_mutex_unlock(&c->lock);
    return data;
}

static void cuda_free_pinned(gpointer device, void *data)
{
    HnCuda *c = device;
    g_mutex_lock(&c->lock);
    c->pinned_bytes -= GPOINTER_TO_SIZE(g_hash_table_lookup(c->pinned, data));
    g_hash_table_remove(c->pinned, data);
    g_mutex_unlock(&c->lock);
    if (hn_cuda_enter(c, NULL))
        c->driver->host_free(data);
}

static void cuda_limit(gpointer device, gsize bytes)
{
    HnCuda *c = device;
    g_mutex_lock(&c->lock);
    c->limit = bytes;
    g_mutex_unlock(&c->lock);
}

/* Such a result is all that the driver says of this context from then on. */
static gboolean cuda_failed(gpointer stream)
{
    const HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    if (!hn_cuda_enter(c, NULL))
        return FALSE;
    const int result = hn_cuda_wait(t);
    return result >= HN_CU_FAULTS && result < HN_CU_FAULTS_END;
}

/* --- copies ------------------------------------------------------------------------------------------------------ */

static gboolean cuda_copy(gpointer stream, void *to, const void *from, gsize bytes, GError **error)
{
    HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    t->work += bytes > 0;
    return bytes == 0 ||
           (hn_cuda_enter(c, error) &&
            hn_cuda_check(c,
                          c->driver->copy((HnCuAddress)(uintptr_t)to, (HnCuAddress)(uintptr_t)from, bytes, t->stream),
                          "copying on the device", error));
}

static gboolean cuda_wait(gpointer stream, GError **error)
{
    HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    if (!hn_cuda_enter(c, error) || !hn_cuda_ask_complaint(t, error) ||
        !hn_cuda_check(c, hn_cuda_wait(t), "what was running there", error))
        return FALSE;
    t->used = 0; /* all copies are done */
    return hn_cuda_hear_complaint(t, error);
}

/* --- recorded work ----------------------------------------------------------------------------------------------- */

static gboolean cuda_record(gpointer stream, GError **error)
{
    const HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    return hn_cuda_enter(c, error) &&
           hn_cuda_check(c, c->driver->capture_begin(t->stream, HN_CU_CAPTURE_THREAD), "recording", error);
}

static gpointer cuda_recorded(gpointer stream, GError **error)
{
    const HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    HnCuGraph graph = NULL;
    HnCuGraphExec recorded = NULL;
    if (!hn_cuda_check(c, c->driver->capture_end(t->stream, &graph), "recording", error) || graph == NULL)
        return NULL;
    if (!hn_cuda_check(c, c->driver->graph_instantiate(&recorded, graph, 0), "keeping what was recorded", error))
        recorded = NULL;
    c->driver->graph_destroy(graph);
    return recorded;
}

static gboolean cuda_replay(gpointer stream, gpointer recorded, GError **error)
{
    const HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    return hn_cuda_enter(c, error) &&
           hn_cuda_check(c, c->driver->graph_launch(recorded, t->stream), "replaying", error);
}

static void cuda_forget(gpointer stream, gpointer recorded)
{
    const HnCudaStream *t = stream;
    if (hn_cuda_enter(t->device, NULL))
        t->device->driver->graph_forget(recorded);
}

/* --- times ------------------------------------------------------------------------------------------------------- */

static gboolean cuda_mark(gpointer stream, guint i, GError **error)
{
    HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    if (!hn_cuda_enter(c, error))
        return FALSE;
    while (t->marks->len <= i) {
        HnCuEvent e = NULL;
        if (!hn_cuda_check(c, c->driver->event_create(&e, 0), "making an event", error))
            return FALSE;
        g_ptr_array_add(t->marks, e);
    }
    return hn_cuda_check(c, c->driver->event_record(t->marks->pdata[i], t->stream), "recording an event", error);
}

static gboolean cuda_marks(gpointer stream, guint n, double *ns, GError **error)
{
    const HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    for (guint i = 0; i < n; i++) {
        float ms = 0;
        if (!hn_cuda_check(c, c->driver->event_elapsed(&ms, t->marks->pdata[0], t->marks->pdata[i]),
                           "reading the device's clock", error))
            return FALSE;
        ns[i] = (double)ms * 1e6;
    }
    return TRUE;
}

static void cuda_threads(gpointer stream, int n)
{
    HnCudaCopying *o = &((HnCudaStream *)stream)->copying;
    o->threads = CLAMP(n, 1, hn_cuda_copying.threads);
}

static guint cuda_launches(gpointer stream)
{
    return ((const HnCudaStream *)stream)->launches;
}

const HnMemory hn_cuda_memory = {
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_pinned = cuda_alloc_pinned,
    .free_pinned = cuda_free_pinned,
    .upload = hn_cuda_upload,
    .download = hn_cuda_download,
    .copy = cuda_copy,
    .wait = cuda_wait,
    .record = cuda_record,
    .recorded = cuda_recorded,
    .replay = cuda_replay,
    .forget = cuda_forget,
    .mark = cuda_mark,
    .marks = cuda_marks,
    .limit = cuda_limit,
    .failed = cuda_failed,
    .hold = hn_cuda_hold,
    .threads = cuda_threads,
    .launches = cuda_launches,
};
