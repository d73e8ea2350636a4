/*
 * Stands in for libcuda.so.1 (HONE_CUDA_DRIVER=PATH): devices, contexts, and errors. What kernels do is interpreted.
 *
 *   HONE_EMU_CC=80          compute capability; 90 takes PTX for 90a where there is some
 *   HONE_EMU_SMS=4          multiprocessors
 *   HONE_EMU_DEVICES=1      devices
 *   HONE_EMU_MEMORY=BYTES   of each device; 8 GiB
 *   HONE_EMU_FAIL_ALLOC=N   the N-th allocation, of device or pinned memory, fails
 *   HONE_EMU_ORDER=SEED     another order of streams, blocks, warps and lanes
 *   HONE_EMU_LEAKS=1        says at the end of a context what is still there
 *   HONE_EMU_COUNTS=FILE    gets a line of JSON for each kernel at the end of the process
 *   HONE_EMU_LOG=FILE       gets what is said on stderr
 *   HONE_EMU_FAULT=KERNEL   launches of a kernel that is called so read outside of all memory
 *   HONE_EMU_CASE=NAME      stub, old, nogpu, cc70, busy: a driver or device that hone cannot use
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu_device.h"

#define MOST_DEVICES 16
#define MOST_PUSHED 16

EmuSettings emu_settings;

static GMutex lock;
static gboolean started;
static EmuDevice devices[MOST_DEVICES];
static GPtrArray
    *created; /* EmuContext * that are no device's primary one; each has the memory of a device to itself */
static _Thread_local EmuContext *current[MOST_PUSHED]; /* of this thread, the last one on top */
static _Thread_local int depth;

/* --- what is said ---------------------------------------------------------------------------------------------------
 */

static void say(const char *sentence)
{
    char *line = g_strdup_printf("emulated device: %s\n", sentence);
    FILE *log = emu_settings.log != NULL ? fopen(emu_settings.log, "a") : NULL;
    fputs(line, stderr);
    if (log != NULL) {
        fputs(line, log);
        fclose(log);
    }
    g_free(line);
}

void emu_say(const char *format, ...)
{
    va_list a;
    va_start(a, format);
    char *sentence = g_strdup_vprintf(format, a);
    va_end(a);
    say(sentence);
    g_free(sentence);
}

int emu_fail(EmuContext *c, int result, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    char *sentence = g_strdup_vprintf(format, a);
    va_end(a);
    say(sentence);
    g_free(sentence);
    c->fault = result;
    return result;
}

static const struct {
    int result;
    const char *name, *text;
} results[] = {
    { EMU_OK, "CUDA_SUCCESS", "no error" },
    { EMU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { EMU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { EMU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { EMU_STUB, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library" },
    { EMU_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable" },
    { EMU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { EMU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { EMU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { EMU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { EMU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
    { EMU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
    { EMU_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
      "the provided PTX was compiled with an unsupported toolchain." },
    { EMU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { EMU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state" },
    { EMU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { EMU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
    { EMU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { EMU_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch" },
    { 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated" },
    { 710, "CUDA_ERROR_ASSERT", "device-side assert triggered" },
    { 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered" },
    { 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address" },
    { 717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space" },
    { 718, "CUDA_ERROR_INVALID_PC", "invalid program counter" },
    { EMU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { EMU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
      "operation not permitted when stream is capturing" },
    { EMU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture" },
    { EMU_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
      "operation would result in a merge of separate capture sequences" },
    { EMU_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
      "capture was not ended in the same stream as it began" },
    { EMU_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work" },
    { EMU_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
      "dependency created on uncaptured work in another stream" },
    { EMU_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
      "operation would make the legacy stream depend on a capturing blocking stream" },
    { EMU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
      "operation not permitted on an event last recorded in a capturing stream" },
    { EMU_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
      "attempt to terminate a thread-local capture sequence from another thread" },
};

static int result_text(int result, gboolean name, const char **text)
{
    *text = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(results); i++)
        if (results[i].result == result)
            *text = name ? results[i].name : results[i].text;
    return *text != NULL ? EMU_OK : EMU_INVALID_VALUE;
}

/* --- the environment ---------------------------------------------------------------------------------------------- */

static guint64 number(const char *name, guint64 otherwise)
{
    const char *text = g_getenv(name);
    return text != NULL ? g_ascii_strtoull(text, NULL, 10) : otherwise;
}

static gboolean is_case(const char *name)
{
    return g_strcmp0(emu_settings.fault, name) == 0;
}

static void read_settings(void)
{
    EmuSettings *s = &emu_settings;
    if (s->read)
        return;
    s->read = TRUE;
    s->fault = g_getenv("HONE_EMU_CASE");
    s->faulty = g_getenv("HONE_EMU_FAULT");
    s->cc = is_case("cc70") ? 70 : (int)number("HONE_EMU_CC", 80);
    s->sms = (int)CLAMP(number("HONE_EMU_SMS", 4), 1, 1024);
    s->devices = is_case("nogpu") ? 0 : (int)MIN(number("HONE_EMU_DEVICES", 1), MOST_DEVICES);
    s->memory = MIN(number("HONE_EMU_MEMORY", (guint64)8 << 30), (guint64)1 << 40);
    s->fail = number("HONE_EMU_FAIL_ALLOC", 0);
    s->order = (guint32)number("HONE_EMU_ORDER", 0);
    s->leaks = number("HONE_EMU_LEAKS", 0) != 0;
    s->version = is_case("old") ? 11000 : 13000;
    s->counts = g_getenv("HONE_EMU_COUNTS");
    s->log = g_getenv("HONE_EMU_LOG");
    s->budget = g_getenv("HONE_EMU_BUDGET");
    s->idle = number("HONE_EMU_IDLE", 0) != 0;
}

static int enter_bare(void)
{
    g_mutex_lock(&lock);
    read_settings();
    return is_case("stub") ? EMU_STUB : EMU_OK;
}

static int enter_started(void)
{
    const int result = enter_bare();
    return result == EMU_OK && !started ? EMU_NOT_INITIALIZED : result;
}

static gboolean is_context(const EmuContext *c)
{
    for (int i = 0; c != NULL && i < emu_settings.devices; i++)
        if (devices[i].context == c)
            return TRUE;
    return c != NULL && created != NULL && g_ptr_array_find(created, c, NULL);
}

int emu_enter(EmuContext **c)
{
    const int result = enter_started();
    *c = depth > 0 ? current[depth - 1] : NULL;
    if (result == EMU_OK && !is_context(*c))
        return EMU_INVALID_CONTEXT;
    return result == EMU_OK ? (*c)->fault : result;
}

int emu_leave(int result)
{
    g_mutex_unlock(&lock);
    return result;
}

gboolean emu_is(const EmuContext *c, const void *handle, EmuKind kind)
{
    return handle != NULL && GPOINTER_TO_INT(g_hash_table_lookup(c->objects, handle)) == (int)kind;
}

EMU_CALL(cuGetErrorName, int of, const char **text)
{
    const int result = enter_bare();
    return emu_leave(result == EMU_OK ? result_text(of, TRUE, text) : result);
}

EMU_CALL(cuGetErrorString, int of, const char **text)
{
    const int result = enter_bare();
    return emu_leave(result == EMU_OK ? result_text(of, FALSE, text) : result);
}

/* --- devices --------------------------------------------------------------------------------------------------------
 */

EMU_CALL(cuInit, unsigned flags)
{
    int result = enter_bare();
    if (result == EMU_OK && flags != 0)
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK && emu_settings.devices == 0)
        result = EMU_NO_DEVICE;
    started = started || result == EMU_OK;
    return emu_leave(result);
}

EMU_CALL(cuDriverGetVersion, int *version)
{
    const int result = enter_bare();
    if (result == EMU_OK)
        *version = emu_settings.version;
    return emu_leave(result);
}

EMU_CALL(cuDeviceGetCount, int *n)
{
    const int result = enter_started();
    if (result == EMU_OK)
        *n = emu_settings.devices;
    return emu_leave(result);
}

static int enter_device(int device)
{
    const int result = enter_started();
    return result == EMU_OK && (device < 0 || device >= emu_settings.devices) ? EMU_INVALID_DEVICE : result;
}

EMU_CALL(cuDeviceGet, int *device, int index)
{
    const int result = enter_device(index);
    if (result == EMU_OK)
        *device = index;
    return emu_leave(result);
}

EMU_CALL(cuDeviceGetName, char *name, int bytes, int device)
{
    const int result = enter_device(device);
    if (result == EMU_OK)
        g_snprintf(name, (gulong)bytes, "emulated sm_%d", emu_settings.cc);
    return emu_leave(result);
}

EMU_CALL(cuDeviceGetPCIBusId, char *bus, int bytes, int device)
{
    const int result = enter_device(device);
    if (result == EMU_OK)
        g_snprintf(bus, (gulong)bytes, "0000:%02X:00.0", device + 1);
    return emu_leave(result);
}

EMU_CALL(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    const int result = enter_device(device);
    if (result == EMU_OK)
        *bytes = emu_settings.memory;
    return emu_leave(result);
}

/* CUdevice_attribute: as an A100 has it, and an H100. What is not listed is 0. */
static const struct {
    int attribute, sm80, sm90;
} attributes[] = {
    { 1, 1024, 1024 }, /* threads of a block */
    { 2, 1024, 1024 }, /* its extents */
    { 3, 1024, 1024 },
    { 4, 64, 64 },
    { 5, 2147483647, 2147483647 }, /* of the grid */
    { 6, 65535, 65535 },
    { 7, 65535, 65535 },
    { 8, 49152, 49152 }, /* shared memory of a block */
    { 9, 65536, 65536 }, /* constant memory */
    { 10, 32, 32 },      /* lanes of a warp */
    { 11, 2147483647, 2147483647 },
    { 12, 65536, 65536 },     /* registers of a block */
    { 13, 1410000, 1980000 }, /* clock, kHz */
    { 14, 512, 512 },
    { 15, 1, 1 },
    { 19, 1, 1 },
    { 31, 1, 1 },
    { 32, 1, 1 },
    { 36, 1593000, 2619000 },   /* clock of memory, kHz */
    { 37, 5120, 5120 },         /* its bus, bits */
    { 38, 41943040, 52428800 }, /* L2 */
    { 39, 2048, 2048 },         /* threads of a multiprocessor */
    { 40, 3, 3 },               /* copy engines */
    { 41, 1, 1 },
    { 78, 1, 1 },
    { 79, 1, 1 },
    { 80, 1, 1 },
    { 81, 167936, 233472 }, /* shared memory of a multiprocessor */
    { 82, 65536, 65536 },   /* its registers */
    { 87, 2, 2 },
    { 90, 1, 1 },
    { 95, 1, 1 },           /* cooperative launches */
    { 97, 166912, 232448 }, /* shared memory of a block that asks for it */
    { 106, 32, 32 },        /* blocks of a multiprocessor */
    { 111, 1024, 1024 },    /* shared memory of a block that the system takes */
    { 120, 0, 1 },          /* clusters */
};

static int attribute(int which)
{
    switch (which) {
    case 16:
        return emu_settings.sms;
    case 20: /* compute mode: 3 is one process alone */
        return is_case("busy") ? 3 : 0;
    case 75:
        return emu_settings.cc / 10;
    case 76:
        return emu_settings.cc % 10;
    default:
        for (guint i = 0; i < G_N_ELEMENTS(attributes); i++)
            if (attributes[i].attribute == which)
                return emu_settings.cc >= 90 ? attributes[i].sm90 : attributes[i].sm80;
        return 0;
    }
}

EMU_CALL(cuDeviceGetAttribute, int *value, int which, int device)
{
    int result = enter_device(device);
    if (result == EMU_OK && (which < 1 || which > 150))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK)
        *value = attribute(which);
    return emu_leave(result);
}

/* --- contexts
 * --------------------------------------------------------------------------------------------------------- */

static EmuContext *context_new(EmuDevice *d)
{
    if (!emu_memory_init(&d->memory, emu_settings.memory))
        return NULL;
    EmuContext *c = g_new0(EmuContext, 1);
    c->device = d;
    c->objects = g_hash_table_new(NULL, NULL);
    c->streams = g_ptr_array_new();
    c->captures = g_ptr_array_new();
    c->remembered = emu_order_new();
    emu_stream_new(c, TRUE);
    return c;
}

static void say_leaks(const EmuContext *c)
{
    static const char *const kinds[] = {
        [EMU_MODULE] = "a module", [EMU_STREAM] = "a stream",        [EMU_EVENT] = "an event",
        [EMU_GRAPH] = "a graph",   [EMU_EXEC] = "a graph to launch", [EMU_FUNCTION] = NULL
    };
    const EmuSpace *s = &c->device->memory.space;
    GHashTableIter it;
    gpointer object, kind;
    for (size_t i = 0; i < s->n; i++)
        if (!((const EmuBlock *)s->region[i])->module)
            emu_say("leaked: %zu bytes of device memory at 0x%" G_GINT64_MODIFIER "x, allocation %" G_GUINT64_FORMAT,
                    s->region[i]->bytes, s->region[i]->base, ((const EmuBlock *)s->region[i])->serial);
    for (size_t i = 0; i < c->pinned.n; i++)
        emu_say("leaked: %zu bytes of pinned memory", c->pinned.region[i]->bytes);
    g_hash_table_iter_init(&it, c->objects);
    while (g_hash_table_iter_next(&it, &object, &kind))
        if (kinds[GPOINTER_TO_INT(kind)] != NULL)
            emu_say("leaked: %s", kinds[GPOINTER_TO_INT(kind)]);
}

static void free_object(gpointer object, gpointer kind, gpointer data)
{
    (void)data;
    switch ((EmuKind)GPOINTER_TO_INT(kind)) {
    case EMU_EVENT:
        emu_event_free(object);
        break;
    case EMU_GRAPH:
        emu_graph_free(object);
        break;
    case EMU_EXEC:
        emu_exec_unref(object);
        break;
    case EMU_MODULE:
        emu_module_handle_free(object);
        break;
    default: /* functions belong to modules; streams come last */
        break;
    }
}

static void context_free(EmuContext *c)
{
    if (emu_settings.leaks)
        say_leaks(c);
    GHashTable *objects = c->objects;
    c->objects = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < c->captures->len; i++) {
        EmuCapture *k = g_ptr_array_index(c->captures, i);
        g_ptr_array_unref(k->ops);
        g_free(k);
    }
    g_hash_table_foreach(objects, free_object, NULL);
    g_hash_table_unref(objects);
    while (c->streams->len > 0)
        emu_stream_free(g_ptr_array_index(c->streams, c->streams->len - 1));
    emu_mark_unref(c->legacy);
    for (size_t i = 0; i < c->pinned.n; i++) {
        free((void *)(uintptr_t)c->pinned.region[i]->base);
        g_free(c->pinned.region[i]);
    }
    g_free(c->pinned.region);
    g_ptr_array_unref(c->streams);
    g_ptr_array_unref(c->captures);
    g_ptr_array_unref(c->remembered);
    if (c->clock_of_host != NULL)
        g_array_unref(c->clock_of_host);
    g_hash_table_unref(c->objects);
    emu_memory_clear(&c->device->memory);
    g_free(c);
}

EMU_CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
    int result = enter_device(device);
    EmuDevice *d = result == EMU_OK ? &devices[device] : NULL;
    if (result == EMU_OK && is_case("busy"))
        result = EMU_UNAVAILABLE;
    if (result == EMU_OK && d->context == NULL && (d->context = context_new(d)) == NULL)
        result = EMU_OUT_OF_MEMORY;
    if (result == EMU_OK) {
        d->retained++;
        *context = d->context;
    }
    return emu_leave(result);
}

EMU_CALL(cuDevicePrimaryCtxRelease_v2, int device)
{
    int result = enter_device(device);
    if (result == EMU_OK && devices[device].retained == 0)
        result = EMU_INVALID_CONTEXT;
    if (result == EMU_OK && --devices[device].retained == 0) {
        EmuContext *c = devices[device].context;
        emu_run_all(c);
        devices[device].context = NULL;
        context_free(c);
    }
    return emu_leave(result);
}

EMU_CALL(cuCtxCreate_v4, void **context, void *params, unsigned flags, int device)
{
    int result = enter_device(device);
    if (result == EMU_OK && (params != NULL || flags != 0))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK && depth == MOST_PUSHED)
        result = EMU_INVALID_CONTEXT;
    EmuDevice *own = result == EMU_OK ? g_new0(EmuDevice, 1) : NULL;
    if (own != NULL) {
        own->index = device;
        own->context = context_new(own);
        if (own->context == NULL) {
            g_free(own);
            return emu_leave(EMU_OUT_OF_MEMORY);
        }
        created = created != NULL ? created : g_ptr_array_new();
        g_ptr_array_add(created, own->context);
        *context = current[depth++] = own->context;
    }
    return emu_leave(result);
}

EMU_CALL(cuCtxDestroy_v2, void *context)
{
    int result = enter_started();
    if (result == EMU_OK && (created == NULL || !g_ptr_array_remove(created, context)))
        result = EMU_INVALID_CONTEXT;
    if (result == EMU_OK) {
        EmuContext *c = context;
        EmuDevice *own = c->device;
        if (depth > 0 && current[depth - 1] == c)
            depth--;
        emu_run_all(c);
        context_free(c);
        g_free(own);
    }
    return emu_leave(result);
}

EMU_CALL(cuCtxSetCurrent, void *context)
{
    int result = enter_started();
    if (result == EMU_OK && context != NULL && !is_context(context))
        result = EMU_INVALID_CONTEXT;
    if (result == EMU_OK) {
        depth = MAX(depth, 1);
        current[depth - 1] = context;
    }
    return emu_leave(result);
}

EMU_CALL(cuCtxGetCurrent, void **context)
{
    const int result = enter_started();
    if (result == EMU_OK)
        *context = depth > 0 ? current[depth - 1] : NULL;
    return emu_leave(result);
}

EMU_CALL(cuCtxPushCurrent_v2, void *context)
{
    int result = enter_started();
    if (result == EMU_OK && (!is_context(context) || depth == MOST_PUSHED))
        result = EMU_INVALID_CONTEXT;
    if (result == EMU_OK)
        current[depth++] = context;
    return emu_leave(result);
}

EMU_CALL(cuCtxPopCurrent_v2, void **context)
{
    int result = enter_started();
    if (result == EMU_OK && depth == 0)
        result = EMU_INVALID_CONTEXT;
    if (result == EMU_OK) {
        depth--;
        if (context != NULL)
            *context = current[depth];
    }
    return emu_leave(result);
}

/* --- the end of the process --------------------------------------------------------------------------------------- */

static __attribute__((destructor)) void end(void)
{
    for (int i = 0; emu_settings.leaks && i < emu_settings.devices; i++)
        if (devices[i].context != NULL) {
            emu_say("leaked: the context of device %d", i);
            say_leaks(devices[i].context);
        }
    emu_write_counts();
}
