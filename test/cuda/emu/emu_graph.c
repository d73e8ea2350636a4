/*
 * What a stream is given while it is captured is kept as it was, with what it comes behind, and done by launches of the
 * graph. It uses memory by address: all that was allocated there when it was recorded has to be there still.
 */
#include <string.h>

#include "emu_device.h"

int emu_unsafe(EmuContext *c, const char *call)
{
    int result = EMU_OK;
    for (guint i = 0; i < c->captures->len; i++) {
        EmuCapture *k = g_ptr_array_index(c->captures, i);
        if (k->mode == 0 || (k->mode == 1 && k->thread == g_thread_self())) {
            k->broken = TRUE;
            emu_say("%s while stream %d is captured", call, k->origin->number);
            result = EMU_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

static void add_use(const EmuContext *c, GArray *uses, uint64_t address)
{
    const EmuBlock *b = (const EmuBlock *)emu_space_find(&c->device->memory.space, address);
    if (b != NULL)
        g_array_append_vals(uses, &(EmuUse){ b->r.base, b->serial }, 1);
}

GArray *emu_uses(const EmuContext *c, const EmuOp *op)
{
    GArray *uses = g_array_new(FALSE, FALSE, sizeof(EmuUse));
    const size_t n = op->work == EMU_LAUNCH ? emu_kernel_param_bytes(op->function->kernel) : 0;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, op->params + i, 8);
        add_use(c, uses, word);
    }
    for (int i = 0; op->work == EMU_LIBRARY && i < op->library->n; i++)
        add_use(c, uses, op->library->range[i].address);
    if (op->work == EMU_TO_DEVICE || op->work == EMU_WITHIN || op->work == EMU_SET8 || op->work == EMU_SET32)
        add_use(c, uses, op->to);
    if (op->work == EMU_TO_HOST || op->work == EMU_WITHIN)
        add_use(c, uses, op->from);
    return uses;
}

int emu_record(EmuStream *s, EmuOp *op)
{
    EmuCapture *k = s->capture;
    if (k->broken) {
        emu_op_unref(op);
        return EMU_CAPTURE_INVALIDATED;
    }
    if (op->work == EMU_REPLAY || op->staged != NULL) {
        emu_say(op->staged != NULL ? "a copy from memory that is not pinned while stream %d is captured"
                                   : "a graph is launched in stream %d, which is captured",
                s->number);
        emu_op_unref(op);
        k->broken = TRUE;
        return EMU_CAPTURE_UNSUPPORTED;
    }
    const int index = (int)k->ops->len;
    op->uses = emu_uses(s->context, op);
    op->after = s->tail;
    s->tail = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(s->tail, index);
    g_ptr_array_add(k->ops, op);
    return EMU_OK;
}

/* --- capture ------------------------------------------------------------------------------------------------------ */

EMU_CALL(cuStreamBeginCapture_v2, void *stream, int mode)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && s == NULL)
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && (mode < 0 || mode > 2))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK && s == g_ptr_array_index(c->streams, 0))
        result = EMU_CAPTURE_UNSUPPORTED;
    if (result == EMU_OK && s->capture != NULL)
        result = EMU_ILLEGAL_STATE;
    if (result == EMU_OK) {
        EmuCapture *k = g_new0(EmuCapture, 1);
        *k = (EmuCapture){ .mode = mode, .thread = g_thread_self(), .origin = s };
        k->ops = g_ptr_array_new_with_free_func(emu_op_unref);
        s->capture = k;
        s->tail = g_array_new(FALSE, FALSE, sizeof(int));
        g_ptr_array_add(c->captures, k);
    }
    return emu_leave(result);
}

/* Nothing that was captured stands beside the end of the stream where it began. */
static gboolean is_joined(const EmuCapture *k)
{
    gboolean *followed = g_new0(gboolean, k->ops->len);
    gboolean joined = TRUE;
    for (guint i = 0; i < k->ops->len; i++) {
        const GArray *after = ((const EmuOp *)g_ptr_array_index(k->ops, i))->after;
        for (guint j = 0; j < after->len; j++)
            followed[g_array_index(after, int, j)] = TRUE;
    }
    for (guint j = 0; j < k->origin->tail->len; j++)
        followed[g_array_index(k->origin->tail, int, j)] = TRUE;
    for (guint i = 0; i < k->ops->len; i++)
        joined = joined && followed[i];
    g_free(followed);
    return joined;
}

/* Streams and events know nothing of the capture any more. */
static void forget(EmuContext *c, EmuCapture *k)
{
    GHashTableIter it;
    gpointer object, kind;
    for (guint i = 0; i < c->streams->len; i++) {
        EmuStream *s = g_ptr_array_index(c->streams, i);
        if (s->capture == k) {
            s->capture = NULL;
            g_clear_pointer(&s->tail, g_array_unref);
        }
    }
    g_hash_table_iter_init(&it, c->objects);
    while (g_hash_table_iter_next(&it, &object, &kind))
        if (GPOINTER_TO_INT(kind) == EMU_EVENT && ((EmuEvent *)object)->capture == k) {
            ((EmuEvent *)object)->capture = NULL;
            g_clear_pointer(&((EmuEvent *)object)->tail, g_array_unref);
        }
    g_ptr_array_remove(c->captures, k);
    g_ptr_array_unref(k->ops);
    g_free(k);
}

EMU_CALL(cuStreamEndCapture, void *stream, void **graph)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && s == NULL)
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && s->capture == NULL)
        result = EMU_ILLEGAL_STATE;
    if (result != EMU_OK)
        return emu_leave(result);
    EmuCapture *k = s->capture;
    *graph = NULL;
    if (k->mode != 2 && k->thread != g_thread_self())
        return emu_leave(EMU_CAPTURE_WRONG_THREAD);
    if (k->origin != s) {
        k->broken = TRUE;
        return emu_leave(EMU_CAPTURE_UNMATCHED);
    }
    if (k->broken) {
        result = EMU_CAPTURE_INVALIDATED;
    } else if (!is_joined(k)) {
        emu_say("work was captured that stream %d does not wait for", s->number);
        result = EMU_CAPTURE_UNJOINED;
    } else {
        EmuGraph *g = g_new0(EmuGraph, 1);
        g->context = c;
        g->ops = g_ptr_array_ref(k->ops);
        g_hash_table_insert(c->objects, g, GINT_TO_POINTER(EMU_GRAPH));
        *graph = g;
    }
    forget(c, k);
    return emu_leave(result);
}

EMU_CALL(cuStreamIsCapturing, void *stream, int *status)
{
    EmuContext *c;
    int result = emu_enter(&c);
    const EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && s == NULL)
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK)
        *status = s->capture == NULL ? 0 : s->capture->broken ? 2 : 1;
    return emu_leave(result);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

void emu_graph_free(EmuGraph *g)
{
    g_ptr_array_unref(g->ops);
    g_free(g);
}

void emu_exec_unref(EmuExec *x)
{
    if (--x->refs > 0)
        return;
    g_ptr_array_unref(x->ops);
    emu_mark_unref(x->last);
    g_free(x);
}

EMU_CALL(cuGraphInstantiateWithFlags, void **exec, void *graph, unsigned long long flags)
{
    EmuContext *c;
    int result = emu_enter(&c);
    (void)flags;
    if (result == EMU_OK && !emu_is(c, graph, EMU_GRAPH))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK) {
        EmuExec *x = g_new0(EmuExec, 1);
        *x = (EmuExec){ .refs = 1, .context = c, .ops = g_ptr_array_ref(((EmuGraph *)graph)->ops) };
        x->seen = emu_trace_on();
        g_hash_table_insert(c->objects, x, GINT_TO_POINTER(EMU_EXEC));
        *exec = x;
    }
    return emu_leave(result);
}

EMU_CALL(cuGraphDestroy, void *graph)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && !emu_is(c, graph, EMU_GRAPH))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK) {
        g_hash_table_remove(c->objects, graph);
        emu_graph_free(graph);
    }
    return emu_leave(result);
}

EMU_CALL(cuGraphExecDestroy, void *exec)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && !emu_is(c, exec, EMU_EXEC))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK) {
        g_hash_table_remove(c->objects, exec);
        emu_exec_unref(exec);
    }
    return emu_leave(result);
}

/* The handles of nodes are good for nothing but being counted. */
EMU_CALL(cuGraphGetNodes, void *graph, void **nodes, size_t *n)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && !emu_is(c, graph, EMU_GRAPH))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK) {
        const GPtrArray *ops = ((EmuGraph *)graph)->ops;
        for (size_t i = 0; nodes != NULL && i < *n; i++)
            nodes[i] = i < ops->len ? g_ptr_array_index(ops, i) : NULL;
        *n = nodes != NULL ? MIN(*n, ops->len) : ops->len;
    }
    return emu_leave(result);
}

EMU_CALL(cuGraphLaunch, void *exec, void *stream)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && (s == NULL || !emu_is(c, exec, EMU_EXEC)))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK) {
        EmuExec *x = exec;
        EmuOp *op = emu_op_new(EMU_REPLAY);
        op->exec = x;
        x->refs++;
        if (s->capture == NULL) /* launches of one graph come one behind the other */
            emu_push_wait(s, x->last);
        result = emu_push(s, op);
        if (result == EMU_OK) {
            emu_mark_unref(x->last);
            x->last = emu_mark_here(s);
        }
    }
    return emu_leave(result);
}

/* --- replay ---------------------------------------------------------------------------------------------------------
 */

const char *emu_name_of(const EmuOp *op)
{
    switch (op->work) {
    case EMU_LAUNCH:
        return emu_kernel_name(op->function->kernel);
    case EMU_TO_DEVICE:
        return "copy to the device";
    case EMU_TO_HOST:
        return "copy to the host";
    case EMU_WITHIN:
        return "copy";
    case EMU_HOST:
        return "function of the host";
    case EMU_LIBRARY:
        return op->library->name;
    default:
        return "fill";
    }
}

/* Everything is there that was there when it was recorded. */
static gboolean still_there(EmuContext *c, const EmuOp *op)
{
    if (op->work == EMU_LAUNCH &&
        (!emu_is(c, op->function, EMU_FUNCTION) || op->function->module->serial != op->module)) {
        emu_fail(c, EMU_INVALID_HANDLE, "a graph is replayed with a kernel whose module was unloaded");
        return FALSE;
    }
    const uint64_t host = op->work == EMU_TO_DEVICE ? op->from : op->work == EMU_TO_HOST ? op->to : 0;
    if (host != 0 && emu_space_find(&c->pinned, host) == NULL) {
        emu_fail(c, EMU_ILLEGAL_ADDRESS,
                 "a graph is replayed: '%s' uses pinned memory at %p, which was freed since it was recorded",
                 emu_name_of(op), (void *)(uintptr_t)host);
        return FALSE;
    }
    for (guint i = 0; i < op->uses->len; i++) {
        const EmuUse *u = &g_array_index(op->uses, EmuUse, i);
        const EmuBlock *b = (const EmuBlock *)emu_space_find(&c->device->memory.space, u->address);
        if (b == NULL || b->serial != u->serial) {
            emu_fail(c, EMU_ILLEGAL_ADDRESS,
                     "a graph is replayed: '%s' uses memory at 0x%" G_GINT64_MODIFIER
                     "x, which was freed since it was recorded",
                     emu_name_of(op), u->address);
            return FALSE;
        }
    }
    return TRUE;
}

/* In the order in which it was recorded, or another one that its dependencies allow. */
static int *order_of(const GPtrArray *ops)
{
    int *order = g_new(int, ops->len);
    gboolean *done = g_new0(gboolean, ops->len);
    for (guint n = 0; n < ops->len; n++) {
        guint i = emu_settings.order != 0 ? emu_random(ops->len) : n;
        for (gboolean ready = FALSE; !ready; i = (i + 1) % ops->len) {
            const GArray *after = ((const EmuOp *)g_ptr_array_index(ops, i))->after;
            ready = !done[i];
            for (guint j = 0; ready && j < after->len; j++)
                ready = done[g_array_index(after, int, j)];
            if (ready)
                order[n] = (int)i;
        }
        done[order[n]] = TRUE;
    }
    g_free(done);
    return order;
}

void emu_replay(EmuContext *c, const EmuExec *x)
{
    int *order = order_of(x->ops);
    for (guint n = 0; n < x->ops->len && c->fault == EMU_OK; n++) {
        const EmuOp *op = g_ptr_array_index(x->ops, order[n]);
        c->node = x->seen ? (uint64_t)order[n] + 1 : EMU_NODE_UNSEEN;
        if (still_there(c, op))
            emu_do(c, op);
    }
    c->node = 0;
    g_free(order);
}
