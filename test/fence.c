#include "fence.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "op/ops.h"

#define REGION ((gsize)1 << 30) /* bytes; of those in use there are pages */
#define ALIGN 256
#define POISON 0xA7

typedef struct {
    gsize offset, bytes;
} Block;

typedef struct {
    GMutex lock;
    char *seen, *own; /* one memory: as others see it, which nobody may touch, and as it is used here */
    GArray *blocks;   /* Block, in use, by offset */
    HnFenceCounts counts;
    int fail_alloc, fail_kernel;
} Fence;

typedef struct {
    Fence *fence;
    GPtrArray *queue;     /* Op * */
    GPtrArray *recording; /* Op *; NULL mostly */
} Stream;

/* Something that is to be done. Addresses are those of the moment when it was enqueued. */
typedef struct {
    gint ref;
    void *to;
    const void *from; /* to and from: a copy, of this side's addresses; else a kernel */
    void *snapshot;   /* what a copy to the device found on the host */
    gsize bytes;
    const HnStep *step;
    void *scratch;
    GPtrArray *in, *out; /* HnTensor *, or NULL */
} Op;

static void op_unref(gpointer data)
{
    Op *o = data;
    if (--o->ref > 0)
        return;
    g_free(o->snapshot);
    g_clear_pointer(&o->in, g_ptr_array_unref);
    g_clear_pointer(&o->out, g_ptr_array_unref);
    g_free(o);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static gpointer fence_open(int index, GError **error)
{
    (void)index;
    (void)error;
    Fence *f = g_new0(Fence, 1);
    const int fd = memfd_create("fence", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(fd, (off_t)REGION), ==, 0);
    f->seen = mmap(NULL, REGION, PROT_NONE, MAP_SHARED, fd, 0);
    f->own = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(f->seen != MAP_FAILED && f->own != MAP_FAILED);
    close(fd);
    f->blocks = g_array_new(FALSE, FALSE, sizeof(Block));
    g_mutex_init(&f->lock);
    return f;
}

static void fence_close(gpointer device)
{
    Fence *f = device;
    g_assert_cmpuint(f->blocks->len, ==, 0); /* nothing was forgotten */
    g_array_unref(f->blocks);
    munmap(f->seen, REGION);
    munmap(f->own, REGION);
    g_mutex_clear(&f->lock);
    g_free(f);
}

/* This side's address of one of the device's. */
static void *own(const Fence *f, const void *seen)
{
    const char *p = seen;
    g_assert_true(p >= f->seen && p < f->seen + REGION);
    return f->own + (p - f->seen);
}

/* The index of the first block that leaves room before it, and the offset of that room. */
static guint room_for(const Fence *f, gsize bytes, gsize *offset)
{
    *offset = 0;
    for (guint i = 0; i < f->blocks->len; i++) {
        const Block *b = &g_array_index(f->blocks, Block, i);
        if (b->offset - *offset >= bytes)
            return i;
        *offset = b->offset + b->bytes;
    }
    return f->blocks->len;
}

static void *fence_alloc(gpointer device, gsize bytes, GError **error)
{
    Fence *f = device;
    Block b = { 0, (MAX(bytes, 1) + ALIGN - 1) / ALIGN * ALIGN };
    g_mutex_lock(&f->lock);
    const guint at = room_for(f, b.bytes, &b.offset);
    const gboolean ok = b.offset + b.bytes <= REGION && (f->fail_alloc == 0 || --f->fail_alloc > 0);
    if (ok) {
        g_array_insert_val(f->blocks, at, b);
        memset(f->own + b.offset, POISON, b.bytes);
        f->counts.bytes += b.bytes;
    }
    g_mutex_unlock(&f->lock);
    if (!ok)
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no %" G_GSIZE_FORMAT " bytes behind the fence", bytes);
    return ok ? f->seen + b.offset : NULL;
}

static void fence_free(gpointer device, void *data)
{
    Fence *f = device;
    const gsize offset = (gsize)((char *)data - f->seen);
    gboolean found = FALSE;
    g_mutex_lock(&f->lock);
    for (guint i = 0; i < f->blocks->len && !found; i++) {
        const Block b = g_array_index(f->blocks, Block, i);
        if ((found = b.offset == offset)) {
            memset(f->own + b.offset, POISON, b.bytes);
            f->counts.bytes -= b.bytes;
            g_array_remove_index(f->blocks, i);
        }
    }
    g_mutex_unlock(&f->lock);
    g_assert_true(found);
}

/* --- streams ----------------------------------------------------------------------------------------------------- */

static gpointer stream_new(gpointer device, GError **error)
{
    (void)error;
    Stream *t = g_new0(Stream, 1);
    t->fence = device;
    t->queue = g_ptr_array_new_with_free_func(op_unref);
    return t;
}

static void stream_free(gpointer stream)
{
    Stream *t = stream;
    g_assert_true(t->queue->len == 0 && t->recording == NULL);
    g_ptr_array_unref(t->queue);
    g_free(t);
}

static void count(Fence *f, int *counter)
{
    g_mutex_lock(&f->lock);
    ++*counter;
    g_mutex_unlock(&f->lock);
}

static gboolean enqueue(Stream *t, const Op *op)
{
    Op *o = g_memdup2(op, sizeof *op);
    o->ref = 1;
    g_ptr_array_add(t->recording != NULL ? t->recording : t->queue, o);
    return TRUE;
}

static gboolean fence_upload(gpointer stream, void *to, const void *from, gsize bytes, GError **error)
{
    Stream *t = stream;
    (void)error;
    g_assert_null(t->recording); /* the next run's are others */
    count(t->fence, &t->fence->counts.uploads);
    void *snapshot = g_memdup2(from, bytes);
    return enqueue(t, &(Op){ .to = own(t->fence, to), .from = snapshot, .snapshot = snapshot, .bytes = bytes });
}

static gboolean fence_download(gpointer stream, void *to, const void *from, gsize bytes, GError **error)
{
    Stream *t = stream;
    (void)error;
    g_assert_null(t->recording);
    count(t->fence, &t->fence->counts.downloads);
    if (bytes > 0)
        memset(to, POISON, bytes); /* not there yet */
    return enqueue(t, &(Op){ .to = to, .from = own(t->fence, from), .bytes = bytes });
}

static gboolean fence_copy(gpointer stream, void *to, const void *from, gsize bytes, GError **error)
{
    Stream *t = stream;
    (void)error;
    count(t->fence, &t->fence->counts.copies);
    return enqueue(t, &(Op){ .to = own(t->fence, to), .from = own(t->fence, from), .bytes = bytes });
}

static gboolean compute(Fence *f, const Op *o, GError **error)
{
    HnEval e = { .node = o->step->node,
                 .params = o->step->params,
                 .n_in = o->step->n_in,
                 .n_out = o->step->n_out,
                 .in = (HnTensor *const *)o->in->pdata,
                 .out = (HnTensor **)o->out->pdata };
    count(f, &f->counts.launches);
    memset(o->scratch, POISON, o->step->scratch_bytes);
    if (f->fail_kernel > 0 && --f->fail_kernel == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "node '%s' failed behind the fence",
                    hn_node_label(o->step->node));
        return FALSE;
    }
    return hn_op_eval(&e, error);
}

/* Behind a failure nothing more is done. */
static gboolean fence_wait(gpointer stream, GError **error)
{
    Stream *t = stream;
    gboolean ok = TRUE;
    count(t->fence, &t->fence->counts.waits);
    for (guint i = 0; i < t->queue->len && ok; i++) {
        const Op *o = t->queue->pdata[i];
        if (o->step != NULL)
            ok = compute(t->fence, o, error);
        else if (o->bytes > 0)
            memcpy(o->to, o->from, o->bytes);
    }
    g_ptr_array_set_size(t->queue, 0);
    return ok;
}

static gboolean fence_record(gpointer stream, GError **error)
{
    Stream *t = stream;
    (void)error;
    g_assert_null(t->recording);
    t->recording = g_ptr_array_new_with_free_func(op_unref);
    return TRUE;
}

static gpointer fence_recorded(gpointer stream, GError **error)
{
    Stream *t = stream;
    (void)error;
    count(t->fence, &t->fence->counts.recorded);
    return g_steal_pointer(&t->recording);
}

static gboolean fence_replay(gpointer stream, gpointer recorded, GError **error)
{
    Stream *t = stream;
    const GPtrArray *ops = recorded;
    (void)error;
    count(t->fence, &t->fence->counts.replays);
    for (guint i = 0; i < ops->len; i++) {
        Op *o = ops->pdata[i];
        o->ref++;
        g_ptr_array_add(t->queue, o);
    }
    return TRUE;
}

static void fence_forget(gpointer stream, gpointer recorded)
{
    (void)stream;
    g_ptr_array_unref(recorded);
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */

static const char *reject(const HnStep *s)
{
    if (s->node == NULL || s->op != s->node->op)
        return "an operator that is no node's";
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnPort *p = i < s->n_in ? &s->in[i] : &s->out[i - s->n_in];
        if (p->slot != NULL && hn_dtype_is_refs(p->slot->tensor->dtype))
            return "strings";
    }
    return NULL;
}

static gboolean prepare(HnStep *s, GError **error)
{
    (void)error;
    s->scratch_bytes = 100; /* to see that it lies there, too */
    return TRUE;
}

/* The tensor as it is seen on this side, or, of the host's memory, as it is now. */
static HnTensor *mirror(const Fence *f, const HnSlot *slot)
{
    const HnTensor *t = slot->tensor;
    return slot->where == HN_HOST ? hn_tensor_copy(t, NULL, NULL)
                                  : hn_tensor_new_borrowed(t->dtype, t->ndim, t->dims, own(f, t->data));
}

static GPtrArray *mirrors(const Fence *f, const HnPort *ports, int n)
{
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (int i = 0; i < n; i++)
        g_ptr_array_add(all, ports[i].slot != NULL ? mirror(f, ports[i].slot) : NULL);
    return all;
}

static gboolean run(HnStep *s, GError **error)
{
    Stream *t = s->stream;
    (void)error;
    for (int k = 0; k < s->n_out; k++)
        g_assert_true(s->out[k].slot == NULL || s->out[k].slot->where == HN_DEVICE);
    for (int i = 0; i < s->n_in; i++)
        g_assert_true(s->in[i].slot == NULL ||
                      (s->in[i].slot->where == HN_HOST) == ((s->kernel->host_in >> MIN(i, 63) & 1) != 0));
    return enqueue(t, &(Op){ .step = s,
                             .scratch = own(t->fence, s->scratch),
                             .in = mirrors(t->fence, s->in, s->n_in),
                             .out = mirrors(t->fence, s->out, s->n_out) });
}

/* Where ref may write over its input, so may they. */
#define KERNEL(title, bits, over)                                                                         \
    {                                                                                                     \
        .name = title, .reject = reject, .prepare = prepare, .run = run, .host_in = bits, .inplace = over \
    }
static const HnKernel device = KERNEL("fence.device", 0, FALSE), device_over = KERNEL("fence.device", 0, TRUE);
static const HnKernel host = KERNEL("fence.host", ~(guint64)1, FALSE),
                      host_over = KERNEL("fence.host", ~(guint64)1, TRUE);
static const HnKernel *const kernels[] = { &device, &host, NULL };
static const HnKernel *const kernels_over[] = { &device_over, &host_over, NULL };

static const HnKernel *const *fence_kernels(const HnOp *op)
{
    if (op->ref == NULL || (op->flags & HN_OP_RANDOM) != 0 || op == &hn_op_bytetable)
        return NULL;
    return (op->flags & HN_OP_INPLACE) != 0 ? kernels_over : kernels;
}

static gboolean layout_equal(const HnLayout *a, const HnLayout *b)
{
    return a == b;
}

static const HnMemory memory = { .alloc = fence_alloc,
                                 .free = fence_free,
                                 .upload = fence_upload,
                                 .download = fence_download,
                                 .copy = fence_copy,
                                 .wait = fence_wait,
                                 .record = fence_record,
                                 .recorded = fence_recorded,
                                 .replay = fence_replay,
                                 .forget = fence_forget };

const HnBackend hn_backend_fence = { .name = "fence",
                                     .memory = &memory,
                                     .open = fence_open,
                                     .close = fence_close,
                                     .stream_new = stream_new,
                                     .stream_free = stream_free,
                                     .kernels = fence_kernels,
                                     .layout_equal = layout_equal,
                                     .computes = TRUE };

HnFenceCounts hn_fence_counts(const HnDevice *d)
{
    Fence *f = d->handle;
    g_mutex_lock(&f->lock);
    const HnFenceCounts counts = f->counts;
    g_mutex_unlock(&f->lock);
    return counts;
}

void hn_fence_fail(const HnDevice *d, int allocation, int kernel)
{
    Fence *f = d->handle;
    f->fail_alloc = allocation;
    f->fail_kernel = kernel;
}
