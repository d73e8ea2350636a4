/*
 * Streams and events: work waits until somebody waits for it, or, where nobody ever does, until there is a lot of it.
 */
#include <string.h>

#include "emu_device.h"

#define MOST_WAITING 4096

enum { NON_BLOCKING = 1, NO_TIMING = 2 };

/* Below n; by HONE_EMU_ORDER. */
guint32 emu_random(guint32 n)
{
    static guint64 state;
    if (state == 0)
        state = emu_settings.order * 0x9E3779B97F4A7C15u + 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (guint32)((state >> 33) % n);
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

static EmuMark *mark_ref(EmuMark *m)
{
    if (m != NULL)
        m->refs++;
    return m;
}

void emu_mark_unref(EmuMark *m)
{
    if (m == NULL || --m->refs > 0)
        return;
    if (m->clock != NULL)
        g_array_unref(m->clock);
    g_free(m);
}

static void mark_reach(EmuContext *c, EmuMark *m)
{
    m->done = TRUE;
    m->ms = c->clock;
}

EmuMark *emu_mark_here(EmuStream *s)
{
    EmuMark *m = g_new0(EmuMark, 1);
    m->refs = 1;
    m->stream = s;
    emu_order_mark(s, m);
    if (g_queue_is_empty(&s->ops)) {
        mark_reach(s->context, m);
    } else {
        EmuOp *op = emu_op_new(EMU_REACH);
        op->mark = mark_ref(m);
        g_queue_push_tail(&s->ops, op);
    }
    return m;
}

void emu_push_wait(EmuStream *s, EmuMark *m)
{
    if (m != NULL)
        emu_order_wait(s, m);
    if (m == NULL || m->done || m->stream == s)
        return;
    EmuOp *op = emu_op_new(EMU_WAIT);
    op->mark = mark_ref(m);
    g_queue_push_tail(&s->ops, op);
}

/* --- work -----------------------------------------------------------------------------------------------------------
 */

EmuOp *emu_op_new(EmuWork work)
{
    EmuOp *op = g_new0(EmuOp, 1);
    op->refs = 1;
    op->work = work;
    return op;
}

void emu_op_unref(gpointer data)
{
    EmuOp *op = data;
    if (--op->refs > 0)
        return;
    emu_mark_unref(op->mark);
    if (op->clock != NULL)
        g_array_unref(op->clock);
    if (op->exec != NULL)
        emu_exec_unref(op->exec);
    if (op->uses != NULL)
        g_array_unref(op->uses);
    if (op->after != NULL)
        g_array_unref(op->after);
    emu_library_free(op->library);
    g_free(op->params);
    g_free(op->staged);
    g_free(op);
}

static gboolean overlap(uint64_t a, size_t a_bytes, uint64_t b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Somebody will still read these bytes of the host. */
static gboolean reads(const EmuOp *op, uint64_t at, size_t bytes)
{
    if (op->work == EMU_TO_DEVICE && op->staged == NULL)
        return overlap(op->from, op->bytes, at, bytes);
    for (guint i = 0; op->work == EMU_REPLAY && i < op->exec->ops->len; i++)
        if (reads(g_ptr_array_index(op->exec->ops, i), at, bytes))
            return TRUE;
    return FALSE;
}

/* What is not there yet shall not look right because it was there before. */
static void spoil(const EmuContext *c, const EmuOp *op)
{
    for (guint i = 0; op->work == EMU_REPLAY && i < op->exec->ops->len; i++)
        spoil(c, g_ptr_array_index(op->exec->ops, i));
    if (op->work != EMU_TO_HOST || emu_space_find(&c->pinned, op->to) == NULL)
        return;
    for (guint i = 0; i < c->streams->len; i++)
        for (const GList *l = ((EmuStream *)g_ptr_array_index(c->streams, i))->ops.head; l != NULL; l = l->next)
            if (reads(l->data, op->to, op->bytes))
                return;
    memset((void *)(uintptr_t)op->to, 0xA5, op->bytes);
}

/* The default stream waits for all blocking ones, and they for it. */
static int meet_default(EmuStream *s)
{
    EmuContext *c = s->context;
    const gboolean is_default = s == g_ptr_array_index(c->streams, 0);
    if (!s->blocking)
        return EMU_OK;
    if (!is_default) {
        if (c->legacy != s->legacy) {
            emu_push_wait(s, c->legacy);
            emu_mark_unref(s->legacy);
            s->legacy = mark_ref(c->legacy);
        }
        return EMU_OK;
    }
    for (guint i = 1; i < c->streams->len; i++) {
        EmuStream *other = g_ptr_array_index(c->streams, i);
        if (!other->blocking)
            continue;
        if (other->capture != NULL) {
            other->capture->broken = TRUE;
            emu_say("work in the default stream while stream %d, which waits for it, is captured", other->number);
            return EMU_CAPTURE_IMPLICIT;
        }
        EmuMark *m = emu_mark_here(other);
        emu_push_wait(s, m);
        emu_mark_unref(m);
    }
    return EMU_OK;
}

int emu_push(EmuStream *s, EmuOp *op)
{
    EmuContext *c = s->context;
    int result = EMU_OK;
    if (s->capture != NULL)
        return emu_record(s, op);
    if ((result = meet_default(s)) != EMU_OK) {
        emu_op_unref(op);
        return result;
    }
    spoil(c, op);
    emu_order_op(s, op);
    g_queue_push_tail(&s->ops, op);
    if (s == g_ptr_array_index(c->streams, 0)) {
        emu_mark_unref(c->legacy);
        c->legacy = emu_mark_here(s);
    }
    while (result == EMU_OK && g_queue_get_length(&s->ops) > MOST_WAITING)
        result = emu_run_one(s);
    return result;
}

int emu_run_one(EmuStream *s)
{
    EmuContext *c = s->context;
    EmuOp *op = g_queue_peek_head(&s->ops);
    if (c->fault != EMU_OK || op == NULL)
        return c->fault;
    if (op->work == EMU_WAIT && emu_run_mark(op->mark) != EMU_OK)
        return c->fault;
    g_queue_pop_head(&s->ops);
    if (op->work == EMU_REACH)
        mark_reach(c, op->mark);
    c->doing = op;
    if (op->work == EMU_REPLAY)
        emu_replay(c, op->exec);
    else if (op->work != EMU_WAIT && op->work != EMU_REACH)
        emu_do(c, op);
    c->doing = NULL;
    emu_op_unref(op);
    return c->fault;
}

/* With HONE_EMU_ORDER other streams may be ahead of this one. */
static void run_others(EmuStream *s)
{
    const EmuContext *c = s->context;
    while (emu_settings.order != 0 && emu_random(2) == 0) {
        EmuStream *other = g_ptr_array_index(c->streams, emu_random(c->streams->len));
        if (other == s || other->capture != NULL || g_queue_is_empty(&other->ops) || emu_run_one(other) != EMU_OK)
            return;
    }
}

int emu_run_mark(EmuMark *m)
{
    while (!m->done) {
        run_others(m->stream);
        if (!m->done && emu_run_one(m->stream) != EMU_OK)
            return m->stream->context->fault;
    }
    return EMU_OK;
}

int emu_run_stream(EmuStream *s)
{
    EmuContext *c = s->context;
    if (s == g_ptr_array_index(c->streams, 0))
        for (guint i = 1; i < c->streams->len && c->fault == EMU_OK; i++)
            if (((EmuStream *)g_ptr_array_index(c->streams, i))->blocking)
                emu_run_stream(g_ptr_array_index(c->streams, i));
    while (c->fault == EMU_OK && !g_queue_is_empty(&s->ops)) {
        run_others(s);
        emu_run_one(s);
    }
    return c->fault;
}

/* The host waits for it. */
int emu_wait_stream(EmuStream *s)
{
    emu_order_host_stream(s);
    return emu_run_stream(s);
}

int emu_run_all(EmuContext *c)
{
    for (guint i = 0; i < c->streams->len; i++)
        emu_order_host_stream(g_ptr_array_index(c->streams, i));
    for (guint i = 0; i < c->streams->len; i++)
        emu_run_stream(g_ptr_array_index(c->streams, i));
    return c->fault;
}

/* --- streams
 * ---------------------------------------------------------------------------------------------------------- */

EmuStream *emu_stream_new(EmuContext *c, gboolean blocking)
{
    static int number;
    EmuStream *s = g_new0(EmuStream, 1);
    s->context = c;
    s->blocking = blocking;
    s->index = c->indices++;
    s->number = c->streams->len == 0 ? 0 : ++number;
    g_queue_init(&s->ops);
    g_ptr_array_add(c->streams, s);
    return s;
}

void emu_stream_free(EmuStream *s)
{
    g_ptr_array_remove(s->context->streams, s);
    g_queue_clear_full(&s->ops, emu_op_unref);
    emu_mark_unref(s->legacy);
    if (s->tail != NULL)
        g_array_unref(s->tail);
    if (s->clock != NULL)
        g_array_unref(s->clock);
    g_free(s);
}

EmuStream *emu_stream_of(EmuContext *c, void *handle)
{
    if (handle == NULL || handle == (void *)1) /* CU_STREAM_LEGACY */
        return g_ptr_array_index(c->streams, 0);
    if (emu_is(c, handle, EMU_STREAM))
        return handle;
    emu_say("there is no stream %p", handle);
    return NULL;
}

EMU_CALL(cuStreamCreate, void **stream, unsigned flags)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && (stream == NULL || flags > NON_BLOCKING))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK) {
        *stream = emu_stream_new(c, (flags & NON_BLOCKING) == 0);
        g_hash_table_insert(c->objects, *stream, GINT_TO_POINTER(EMU_STREAM));
    }
    return emu_leave(result);
}

EMU_CALL(cuStreamDestroy_v2, void *stream)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && !emu_is(c, stream, EMU_STREAM))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && ((EmuStream *)stream)->capture != NULL) {
        ((EmuStream *)stream)->capture->broken = TRUE;
        result = EMU_CAPTURE_UNSUPPORTED;
    }
    if (result == EMU_OK) {
        result = emu_wait_stream(stream);
        g_hash_table_remove(c->objects, stream);
        emu_stream_free(stream);
    }
    return emu_leave(result);
}

/* A stream that is captured can be neither waited for nor asked. */
static int free_stream(EmuContext *c, void *handle, const char *call, EmuStream **s)
{
    *s = emu_stream_of(c, handle);
    if (*s == NULL)
        return EMU_INVALID_HANDLE;
    if ((*s)->capture == NULL)
        return EMU_OK;
    (*s)->capture->broken = TRUE;
    emu_say("%s of stream %d while it is captured", call, (*s)->number);
    return EMU_CAPTURE_UNSUPPORTED;
}

EMU_CALL(cuStreamSynchronize, void *stream)
{
    EmuContext *c;
    EmuStream *s = NULL;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = free_stream(c, stream, "cuStreamSynchronize", &s)) == EMU_OK)
        result = emu_wait_stream(s);
    return emu_leave(result);
}

EMU_CALL(cuStreamQuery, void *stream)
{
    EmuContext *c;
    EmuStream *s = NULL;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = free_stream(c, stream, "cuStreamQuery", &s)) == EMU_OK) {
        if (g_queue_is_empty(&s->ops))
            emu_order_host_stream(s);
        else if ((result = emu_run_one(s)) == EMU_OK)
            result = EMU_NOT_READY;
    }
    return emu_leave(result);
}

EMU_CALL(cuCtxSynchronize, void)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = emu_unsafe(c, "cuCtxSynchronize")) == EMU_OK)
        result = emu_run_all(c);
    return emu_leave(result);
}

EMU_CALL(cuLaunchHostFunc, void *stream, void (*function)(void *), void *data)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && (s == NULL || function == NULL))
        result = s == NULL ? EMU_INVALID_HANDLE : EMU_INVALID_VALUE;
    if (result == EMU_OK) {
        EmuOp *op = emu_op_new(EMU_HOST);
        uintptr_t at;
        memcpy(&at, &function, sizeof at);
        op->to = at;
        op->from = (uint64_t)(uintptr_t)data;
        result = emu_push(s, op);
    }
    return emu_leave(result);
}

/* --- events
 * ------------------------------------------------------------------------------------------------------------ */

void emu_event_free(EmuEvent *e)
{
    emu_mark_unref(e->mark);
    if (e->tail != NULL)
        g_array_unref(e->tail);
    g_free(e);
}

EMU_CALL(cuEventCreate, void **event, unsigned flags)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && event == NULL)
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK) {
        EmuEvent *e = g_new0(EmuEvent, 1);
        e->context = c;
        e->timed = (flags & NO_TIMING) == 0;
        g_hash_table_insert(c->objects, e, GINT_TO_POINTER(EMU_EVENT));
        *event = e;
    }
    return emu_leave(result);
}

EMU_CALL(cuEventDestroy_v2, void *event)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && !emu_is(c, event, EMU_EVENT))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK) {
        g_hash_table_remove(c->objects, event);
        emu_event_free(event);
    }
    return emu_leave(result);
}

static GArray *copy_tail(const GArray *tail)
{
    GArray *copy = g_array_new(FALSE, FALSE, sizeof(int));
    return tail != NULL ? g_array_append_vals(copy, tail->data, tail->len) : copy;
}

EMU_CALL(cuEventRecord, void *event, void *stream)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && (s == NULL || !emu_is(c, event, EMU_EVENT)))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && s->capture == NULL)
        result = meet_default(s);
    if (result == EMU_OK) {
        EmuEvent *e = event;
        emu_mark_unref(e->mark);
        g_clear_pointer(&e->tail, g_array_unref);
        e->mark = s->capture == NULL ? emu_mark_here(s) : NULL;
        e->capture = s->capture;
        if (s->capture != NULL)
            e->tail = copy_tail(s->tail);
    }
    return emu_leave(result);
}

/* The stream's capture comes behind the event's. */
static int wait_captured(EmuStream *s, const EmuEvent *e)
{
    if (s->capture == NULL) { /* it joins in */
        if (s == g_ptr_array_index(s->context->streams, 0))
            return EMU_CAPTURE_IMPLICIT;
        s->capture = e->capture;
        s->tail = copy_tail(e->tail);
        return EMU_OK;
    }
    if (e->capture == NULL || s->capture != e->capture) {
        s->capture->broken = TRUE;
        emu_say("stream %d, which is captured, waits for work that is not captured with it", s->number);
        return e->capture == NULL ? EMU_CAPTURE_ISOLATION : EMU_CAPTURE_MERGE;
    }
    for (guint i = 0; i < e->tail->len; i++) {
        const int op = g_array_index(e->tail, int, i);
        gboolean there = FALSE;
        for (guint k = 0; k < s->tail->len; k++)
            there = there || g_array_index(s->tail, int, k) == op;
        if (!there)
            g_array_append_val(s->tail, op);
    }
    return EMU_OK;
}

EMU_CALL(cuStreamWaitEvent, void *stream, void *event, unsigned flags)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    const EmuEvent *e = event;
    (void)flags;
    if (result == EMU_OK && (s == NULL || !emu_is(c, event, EMU_EVENT)))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && (e->capture != NULL || (s->capture != NULL && e->mark != NULL)))
        result = wait_captured(s, e);
    else if (result == EMU_OK)
        emu_push_wait(s, e->mark);
    return emu_leave(result);
}

/* Sets *mark to what the event stands for; NULL: it never was recorded, and is done. */
static int event_mark(EmuContext *c, void *event, const char *call, EmuMark **mark)
{
    const EmuEvent *e = event;
    if (!emu_is(c, event, EMU_EVENT))
        return EMU_INVALID_HANDLE;
    if (e->capture != NULL) {
        e->capture->broken = TRUE;
        emu_say("%s of an event that stands in a captured stream", call);
        return EMU_CAPTURED_EVENT;
    }
    *mark = e->mark;
    return emu_unsafe(c, call);
}

EMU_CALL(cuEventSynchronize, void *event)
{
    EmuContext *c;
    EmuMark *mark = NULL;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = event_mark(c, event, "cuEventSynchronize", &mark)) == EMU_OK && mark != NULL) {
        emu_order_host(c, mark);
        result = emu_run_mark(mark);
    }
    return emu_leave(result);
}

EMU_CALL(cuEventQuery, void *event)
{
    EmuContext *c;
    EmuMark *mark = NULL;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = event_mark(c, event, "cuEventQuery", &mark)) == EMU_OK && mark != NULL) {
        if (mark->done)
            emu_order_host(c, mark);
        else if ((result = emu_run_one(mark->stream)) == EMU_OK)
            result = EMU_NOT_READY;
    }
    return emu_leave(result);
}

/* The device's clock counts what was done, not time. */
EMU_CALL(cuEventElapsedTime, float *ms, void *start, void *end)
{
    EmuContext *c;
    EmuMark *from = NULL, *to = NULL;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = event_mark(c, start, "cuEventElapsedTime", &from)) == EMU_OK)
        result = event_mark(c, end, "cuEventElapsedTime", &to);
    if (result == EMU_OK && (from == NULL || to == NULL || !((EmuEvent *)start)->timed || !((EmuEvent *)end)->timed))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && (!from->done || !to->done))
        result = EMU_NOT_READY;
    if (result == EMU_OK)
        *ms = (float)(to->ms - from->ms);
    return emu_leave(result);
}

EMU_CALL(cuEventElapsedTime_v2, float *ms, void *start, void *end)
{
    return cuEventElapsedTime(ms, start, end);
}
