/*
 * Calls about memory, and work of streams other than events: launches, copies, fills.
 */
#include <stdlib.h>
#include <string.h>

#include "emu_device.h"

#define HEX "0x%" G_GINT64_MODIFIER "x"

/* --- work --------------------------------------------------------------------------------------------------------- */

static EmuBlock *range(EmuContext *c, const char *what, uint64_t address, size_t bytes)
{
    char *why = NULL;
    EmuBlock *b = emu_memory_range(&c->device->memory, address, bytes, &why);
    if (b == NULL)
        emu_fail(c, EMU_ILLEGAL_ADDRESS, "%s: %s", what, why);
    g_free(why);
    return b;
}

static void to_device(EmuContext *c, const EmuOp *op)
{
    EmuBlock *b = range(c, "copy to the device", op->to, op->bytes);
    if (b == NULL)
        return;
    const size_t at = op->to - b->r.base;
    memcpy(b->r.data + at, op->staged != NULL ? op->staged : (const uint8_t *)(uintptr_t)op->from, op->bytes);
    memset(b->r.defined + at, 1, op->bytes);
}

static void to_host(EmuContext *c, const EmuOp *op)
{
    const EmuBlock *b = range(c, "copy to the host", op->from, op->bytes);
    if (b == NULL)
        return;
    const size_t at = op->from - b->r.base;
    const uint8_t *hole = memchr(b->r.defined + at, 0, op->bytes);
    if (hole != NULL && !emu_settings.idle) {
        emu_fail(c, EMU_LAUNCH_FAILED,
                 "copy to the host of %zu bytes at " HEX ": byte %zu of the allocation of %zu bytes at " HEX
                 " was never written",
                 op->bytes, op->from, (size_t)(hole - b->r.defined), b->r.bytes, b->r.base);
        return;
    }
    memcpy((void *)(uintptr_t)op->to, b->r.data + at, op->bytes);
}

static void within(EmuContext *c, const EmuOp *op)
{
    const EmuBlock *from = range(c, "copy, source", op->from, op->bytes);
    EmuBlock *to = from != NULL ? range(c, "copy, destination", op->to, op->bytes) : NULL;
    if (to == NULL)
        return;
    const size_t a = op->from - from->r.base, b = op->to - to->r.base;
    memmove(to->r.data + b, from->r.data + a, op->bytes);
    memmove(to->r.defined + b, from->r.defined + a, op->bytes);
}

static void fill(EmuContext *c, const EmuOp *op)
{
    EmuBlock *b = range(c, "fill", op->to, op->bytes);
    if (b == NULL)
        return;
    const size_t at = op->to - b->r.base;
    if (op->work == EMU_SET8)
        memset(b->r.data + at, (int)op->value, op->bytes);
    for (size_t i = 0; op->work == EMU_SET32 && i < op->bytes; i += 4)
        memcpy(b->r.data + at + i, &op->value, 4);
    memset(b->r.defined + at, 1, op->bytes);
}

static void launch(EmuContext *c, const EmuOp *op)
{
    EmuFault fault = { 0 };
    EmuLaunch l = op->launch;
    EmuCounts *counts = op->function->counts;
    const uint64_t before = counts->instructions;
    l.params = op->params;
    l.sms = emu_settings.sms;
    l.order = emu_settings.order != 0 ? 1 + emu_random(1u << 30) : 0;
    if (g_strcmp0(emu_settings.faulty, emu_kernel_name(op->function->kernel)) == 0)
        emu_fail(c, EMU_ILLEGAL_ADDRESS, "kernel '%s' is said to be faulty", emu_settings.faulty);
    else if (!emu_settings.idle && !emu_launch(op->function->kernel, &l, &c->device->memory.space, counts, &fault))
        emu_fail(c, fault.result != EMU_OK ? fault.result : EMU_LAUNCH_FAILED, "%s", fault.text);
    c->clock += 1e-6 * (double)(counts->instructions - before);
}

static void call_host(EmuContext *c, const EmuOp *op)
{
    void (*function)(void *);
    const uintptr_t at = (uintptr_t)op->to;
    (void)c;
    memcpy(&function, &at, sizeof function);
    function((void *)(uintptr_t)op->from);
}

void emu_do(EmuContext *c, const EmuOp *op)
{
    static void (*const does[])(EmuContext *, const EmuOp *) = {
        [EMU_LAUNCH] = launch, [EMU_TO_DEVICE] = to_device, [EMU_TO_HOST] = to_host, [EMU_WITHIN] = within,
        [EMU_SET8] = fill,     [EMU_SET32] = fill,          [EMU_HOST] = call_host,  [EMU_LIBRARY] = emu_library_do,
    };
    const gboolean beside = emu_order_begin(c, op);
    const double before = c->clock;
    c->clock += 1e-3;
    does[op->work](c, op);
    emu_trace(c, op, before);
    if (beside)
        emu_order_end(c, op);
}

/* --- allocations ---------------------------------------------------------------------------------------------------
 */

/* HONE_EMU_FAIL_ALLOC counts allocations on the device and pinned ones. */
static gboolean shall_fail(void)
{
    static guint64 n;
    return ++n == emu_settings.fail;
}

EMU_CALL(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && (address == NULL || bytes == 0))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK && (result = emu_unsafe(c, "cuMemAlloc")) == EMU_OK) {
        const EmuBlock *b = shall_fail() ? NULL : emu_memory_alloc(&c->device->memory, bytes);
        if (b != NULL)
            *address = b->r.base;
        else
            result = EMU_OUT_OF_MEMORY;
    }
    return emu_leave(result);
}

EMU_CALL(cuMemFree_v2, uint64_t address)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result != EMU_OK || address == 0)
        return emu_leave(result);
    EmuBlock *b = (EmuBlock *)emu_space_find(&c->device->memory.space, address);
    if (b == NULL || b->r.base != address || b->module) {
        emu_say("cuMemFree: no allocation begins at " HEX, address);
        return emu_leave(EMU_INVALID_VALUE);
    }
    if ((result = emu_unsafe(c, "cuMemFree")) == EMU_OK) {
        result = emu_run_all(c);
        emu_memory_free(&c->device->memory, b);
    }
    return emu_leave(result);
}

EMU_CALL(cuMemGetInfo_v2, size_t *left, size_t *all)
{
    EmuContext *c;
    const int result = emu_enter(&c);
    if (result == EMU_OK) {
        *all = c->device->memory.total;
        *left = c->device->memory.total - c->device->memory.used;
    }
    return emu_leave(result);
}

EMU_CALL(cuMemHostAlloc, void **p, size_t bytes, unsigned flags)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && (p == NULL || bytes == 0 || flags > 7))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK && (result = emu_unsafe(c, "cuMemHostAlloc")) == EMU_OK) {
        *p = shall_fail() || bytes > SIZE_MAX - 4096 ? NULL : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        if (*p != NULL) {
            EmuRegion *r = g_new0(EmuRegion, 1);
            *r = (EmuRegion){ .base = (uint64_t)(uintptr_t)*p, .bytes = bytes };
            emu_space_add(&c->pinned, r);
        } else {
            result = EMU_OUT_OF_MEMORY;
        }
    }
    return emu_leave(result);
}

EMU_CALL(cuMemFreeHost, void *p)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuRegion *r = result == EMU_OK ? emu_space_find(&c->pinned, (uint64_t)(uintptr_t)p) : NULL;
    if (result == EMU_OK && (r == NULL || r->base != (uint64_t)(uintptr_t)p)) {
        emu_say("cuMemFreeHost: no pinned memory begins at %p", p);
        result = EMU_INVALID_VALUE;
    }
    if (result == EMU_OK && (result = emu_unsafe(c, "cuMemFreeHost")) == EMU_OK) {
        result = emu_run_all(c);
        emu_space_remove(&c->pinned, r);
        g_free(r);
        free(p);
    }
    return emu_leave(result);
}

/* --- copies and fills -----------------------------------------------------------------------------------------------
 */

/* What a call can see at once. */
static int check_device(const EmuContext *c, const char *call, uint64_t address, size_t bytes)
{
    char *why = NULL;
    if (emu_memory_range(&c->device->memory, address, bytes, &why) != NULL)
        return EMU_OK;
    emu_say("%s: %s", call, why);
    g_free(why);
    return EMU_INVALID_VALUE;
}

static int check_host(const EmuContext *c, const char *call, const void *p, size_t bytes, gboolean *pinned)
{
    const uint64_t at = (uint64_t)(uintptr_t)p;
    const EmuRegion *r = emu_space_find(&c->pinned, at);
    *pinned = r != NULL;
    if (p != NULL && !emu_memory_sees(&c->device->memory, at) && (r == NULL || bytes <= r->bytes - (at - r->base)))
        return EMU_OK;
    emu_say(r != NULL ? "%s: %zu bytes at %p reach beyond the end of pinned memory"
                      : "%s: %zu bytes at %p, which is no address of the host's memory",
            call, bytes, p);
    return EMU_INVALID_VALUE;
}

static int upload(EmuContext *c, const char *call, uint64_t to, const void *from, size_t bytes, EmuStream *s)
{
    gboolean pinned;
    int result = check_device(c, call, to, bytes);
    if (result != EMU_OK || (result = check_host(c, call, from, bytes, &pinned)) != EMU_OK)
        return result;
    EmuOp *op = emu_op_new(EMU_TO_DEVICE);
    op->to = to;
    op->from = (uint64_t)(uintptr_t)from;
    op->bytes = bytes;
    op->staged = pinned ? NULL : g_memdup2(from, bytes);
    return emu_push(s, op);
}

/* A copy to memory that is not pinned is done when the call returns. */
static int download(EmuContext *c, const char *call, void *to, uint64_t from, size_t bytes, EmuStream *s)
{
    gboolean pinned;
    int result = check_device(c, call, from, bytes);
    if (result != EMU_OK || (result = check_host(c, call, to, bytes, &pinned)) != EMU_OK)
        return result;
    if (!pinned && s->capture != NULL) {
        emu_say("%s to memory that is not pinned while stream %d is captured", call, s->number);
        s->capture->broken = TRUE;
        return EMU_CAPTURE_UNSUPPORTED;
    }
    EmuOp *op = emu_op_new(EMU_TO_HOST);
    op->to = (uint64_t)(uintptr_t)to;
    op->from = from;
    op->bytes = bytes;
    result = emu_push(s, op);
    return result == EMU_OK && !pinned ? emu_wait_stream(s) : result;
}

static int set(EmuContext *c, const char *call, EmuWork work, uint64_t to, uint32_t value, size_t bytes, EmuStream *s)
{
    const int result = check_device(c, call, to, bytes);
    if (result != EMU_OK)
        return result;
    EmuOp *op = emu_op_new(work);
    op->to = to;
    op->value = value;
    op->bytes = bytes;
    return emu_push(s, op);
}

/* The stream; NULL when there is nothing to do, or *result says why not. */
static EmuStream *begin(EmuContext **c, void *stream, size_t bytes, int *result)
{
    EmuStream *s = NULL;
    *result = emu_enter(c);
    if (*result == EMU_OK && (s = emu_stream_of(*c, stream)) == NULL)
        *result = EMU_INVALID_HANDLE;
    return bytes > 0 ? s : NULL;
}

EMU_CALL(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *stream)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, stream, bytes, &result);
    if (s != NULL)
        result = upload(c, "cuMemcpyHtoDAsync", to, from, bytes, s);
    return emu_leave(result);
}

EMU_CALL(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *stream)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, stream, bytes, &result);
    if (s != NULL)
        result = download(c, "cuMemcpyDtoHAsync", to, from, bytes, s);
    return emu_leave(result);
}

EMU_CALL(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, NULL, bytes, &result);
    if (s != NULL && (result = emu_unsafe(c, "cuMemcpyHtoD")) == EMU_OK &&
        (result = upload(c, "cuMemcpyHtoD", to, from, bytes, s)) == EMU_OK)
        result = emu_wait_stream(s);
    return emu_leave(result);
}

EMU_CALL(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, NULL, bytes, &result);
    if (s != NULL && (result = emu_unsafe(c, "cuMemcpyDtoH")) == EMU_OK &&
        (result = download(c, "cuMemcpyDtoH", to, from, bytes, s)) == EMU_OK)
        result = emu_wait_stream(s);
    return emu_leave(result);
}

EMU_CALL(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, stream, bytes, &result);
    if (s != NULL && (result = check_device(c, "cuMemcpyDtoDAsync", from, bytes)) == EMU_OK &&
        (result = check_device(c, "cuMemcpyDtoDAsync", to, bytes)) == EMU_OK) {
        EmuOp *op = emu_op_new(EMU_WITHIN);
        op->to = to;
        op->from = from;
        op->bytes = bytes;
        result = emu_push(s, op);
    }
    return emu_leave(result);
}

EMU_CALL(cuMemsetD8Async, uint64_t to, unsigned char value, size_t n, void *stream)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, stream, n, &result);
    if (s != NULL)
        result = set(c, "cuMemsetD8Async", EMU_SET8, to, value, n, s);
    return emu_leave(result);
}

EMU_CALL(cuMemsetD32Async, uint64_t to, unsigned value, size_t n, void *stream)
{
    EmuContext *c;
    int result;
    EmuStream *s = begin(&c, stream, n, &result);
    if (s != NULL)
        result = to % 4 == 0 && n <= SIZE_MAX / 4 ? set(c, "cuMemsetD32Async", EMU_SET32, to, value, 4 * n, s)
                                                  : EMU_INVALID_VALUE;
    return emu_leave(result);
}
