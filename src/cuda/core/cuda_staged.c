/*
 * Copies between the host and a device. The device copies from and to pinned memory at the speed of the link; what lies
 * in ordinary memory passes through stages of pinned memory, which one thread of the host fills at a fifth of that
 * speed. So a large value is cut into pieces, threads copy a piece together, and the piece before it is on its way
 * meanwhile. Small values are copied by the calling thread, several into a stage.
 */
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/mapped.h"
#include "base/parallel.h"
#include "cuda/core/cuda_backend.h"

#define DIRECT_MOST ((gsize)64 << 10) /* bytes of a download that the driver does alone */
#define CHUNK ((gsize)16 << 10)       /* bytes that a thread takes at a time */
#define LINE ((gsize)64)              /* values begin at one of these in a stage */

/* On an H100, 5 MB: 38 GB/s, of 50 from pinned memory; 17 where stores stay in the caches, 9 by one thread. */
const HnCudaCopying hn_cuda_copying = {
    .threads = 8, .share = (gsize)64 << 10, .piece = HN_CUDA_STAGE_BYTES, .past = TRUE
};

/* --- the host's part --------------------------------------------------------------------------------------------- */

typedef struct {
    guint8 *to;
    const guint8 *from;
    gsize bytes;
    gboolean past;
} Part;

#ifdef __SSE2__
/* `to` is aligned to 16 bytes, or nothing is gained by it. */
static void copy_past(guint8 *to, const guint8 *from, gsize bytes)
{
    gsize i = 0;
    for (; (uintptr_t)to % 16 == 0 && i + 64 <= bytes; i += 64) {
        __m128i line[4];
        for (int k = 0; k < 4; k++)
            line[k] = _mm_loadu_si128((const __m128i_u *)(const void *)(from + i) + k);
        for (int k = 0; k < 4; k++)
            _mm_stream_si128((__m128i *)(void *)(to + i) + k, line[k]);
    }
    _mm_sfence();
    memcpy(to + i, from + i, bytes - i);
}
#else
static void copy_past(guint8 *to, const guint8 *from, gsize bytes)
{
    memcpy(to, from, bytes);
}
#endif

static void copy_chunks(gpointer data, int thread, int64_t from, int64_t to)
{
    const Part *p = data;
    const gsize start = (gsize)from * CHUNK, bytes = MIN((gsize)to * CHUNK, p->bytes) - start;
    (void)thread;
    if (p->past)
        copy_past(p->to + start, p->from + start, bytes);
    else
        memcpy(p->to + start, p->from + start, bytes);
}

static void copy_together(const HnCudaStream *t, void *to, const void *from, gsize bytes)
{
    const int threads = (int)MIN((gsize)t->copying.threads, bytes / t->copying.share);
    Part p = { to, from, bytes, t->copying.past };
    if (threads > 1)
        hn_parallel_for((int64_t)((bytes + CHUNK - 1) / CHUNK), threads, copy_chunks, &p);
    else
        memcpy(to, from, bytes);
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

static gboolean make_stages(HnCudaStream *t, GError **error)
{
    const HnCuda *c = t->device;
    if (t->stages == NULL &&
        !hn_cuda_check(c, c->driver->host_alloc((void **)&t->stages, HN_CUDA_STAGES * HN_CUDA_STAGE_BYTES, 0),
                       "allocating pinned memory", error))
        return FALSE;
    for (int i = 0; i < HN_CUDA_STAGES; i++)
        if (t->copied[i] == NULL &&
            !hn_cuda_check(c, c->driver->event_create(&t->copied[i], HN_CU_EVENT_NO_TIMING), "making an event", error))
            return FALSE;
    return TRUE;
}

void hn_cuda_free_stages(HnCudaStream *t)
{
    const HnCudaDriver *d = t->device->driver;
    for (int i = 0; i < HN_CUDA_STAGES; i++)
        if (t->copied[i] != NULL)
            d->event_destroy(t->copied[i]);
    if (t->stages != NULL)
        d->host_free(t->stages);
}

static guint8 *stage(const HnCudaStream *t, int i)
{
    return t->stages + (gsize)i * HN_CUDA_STAGE_BYTES;
}

/* Behind the copies so far from or to the stage. */
static gboolean note_stage(const HnCudaStream *t, int i, GError **error)
{
    const HnCuda *c = t->device;
    return hn_cuda_check(c, c->driver->event_record(t->copied[i], t->stream), "recording an event", error);
}

static gboolean wait_for_stage(const HnCudaStream *t, int i, GError **error)
{
    const HnCuda *c = t->device;
    hn_guard_wait_begin();
    const int result = c->driver->event_wait(t->copied[i]);
    hn_guard_wait_end();
    return hn_cuda_check(c, result, "waiting for a copy", error);
}

/* Another stage to fill, behind the copies from it. */
static gboolean next_stage(HnCudaStream *t, GError **error)
{
    if (!note_stage(t, t->turn, error))
        return FALSE;
    t->turn = (t->turn + 1) % HN_CUDA_STAGES;
    t->used = 0;
    return wait_for_stage(t, t->turn, error);
}

/* --- copies ------------------------------------------------------------------------------------------------------ */

gboolean hn_cuda_upload(gpointer stream, void *to, const void *from, gsize bytes, GError **error)
{
    HnCudaStream *t = stream;
    const HnCuda *c = t->device;
    if (!hn_cuda_enter(c, error) || !make_stages(t, error))
        return FALSE;
    for (gsize done = 0, n; done < bytes; done += n) {
        if (t->used == HN_CUDA_STAGE_BYTES && !next_stage(t, error))
            return FALSE;
        n = MIN(MIN(bytes - done, HN_CUDA_STAGE_BYTES - t->used), t->copying.piece);
        guint8 *at = stage(t, t->turn) + t->used;
        copy_together(t, at, (const guint8 *)from + done, n);
        t->work++;
        if (!hn_cuda_check(c, c->driver->upload((HnCuAddress)(uintptr_t)to + done, at, n, t->stream),
                           "copying to the device", error))
            return FALSE;
        t->used += (n + LINE - 1) / LINE * LINE;
    }
    return TRUE;
}

/* Piece k of a value travels to stage k modulo their number. Stages are free for that: what comes from them was
 * enqueued before. Behind the last piece nothing is on its way. */
static gboolean download_staged(HnCudaStream *t, guint8 *to, HnCuAddress from, gsize bytes, GError **error)
{
    const HnCuda *c = t->device;
    const gsize piece = t->copying.piece, n = (bytes + piece - 1) / piece;
    if (!make_stages(t, error))
        return FALSE;
    for (gsize sent = 0, k = 0; k < n; k++) {
        for (; sent < n && sent < k + HN_CUDA_STAGES; sent++) {
            const int at = (int)(sent % HN_CUDA_STAGES);
            const gsize start = sent * piece;
            t->work++;
            if (!hn_cuda_check(c, c->driver->download(stage(t, at), from + start, MIN(piece, bytes - start), t->stream),
                               "copying from the device", error) ||
                !note_stage(t, at, error))
                return FALSE;
        }
        const int at = (int)(k % HN_CUDA_STAGES);
        if (!wait_for_stage(t, at, error))
            return FALSE;
        copy_together(t, to + k * piece, stage(t, at), MIN(piece, bytes - k * piece));
    }
    t->used = 0;
    return TRUE;
}

static gboolean is_pinned(HnCuda *c, const void *data)
{
    g_mutex_lock(&c->lock);
    const gboolean found = g_hash_table_contains(c->pinned, data);
    g_mutex_unlock(&c->lock);
    return found;
}

gboolean hn_cuda_download(gpointer stream, void *to, const void *from, gsize bytes, GError **error)
{
    HnCudaStream *t = stream;
    HnCuda *c = t->device;
    const HnCuAddress at = (HnCuAddress)(uintptr_t)from;
    if (bytes == 0)
        return TRUE;
    if (!hn_cuda_enter(c, error))
        return FALSE;
    if (bytes > DIRECT_MOST && !is_pinned(c, to))
        return download_staged(t, to, at, bytes, error);
    t->work++;
    return hn_cuda_check(c, c->driver->download(to, at, bytes, t->stream), "copying from the device", error);
}
