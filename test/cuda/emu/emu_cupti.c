/*
 * Stands in for libcupti.so (HONE_CUPTI=PATH), fed by the emulated device of HONE_CUDA_DRIVER. Records come in flushes.
 *
 *   HONE_EMU_CUPTI=NAME, of records
 *     lose      each fifth one is dropped, which is told
 *     silent    the last one before a flush is, which is not
 *     seldom    that at one flush of four
 *     mostly    that at two of three
 *     late      they come with the second flush
 *     next      the last one comes when records are asked for again
 *     pieces    two in a buffer
 *     shuffled  the last one first
 *     swapped   two of different kinds have each other's times
 *     strange   one ends before it began
 *     fills     there are none of them
 *   and of the library
 *     version   nobody knows it
 *     held      another profiler has it
 *     dead      it does not start
 *     broken    it flushes nothing
 */
#include <dlfcn.h>
#include <glib.h>
#include <string.h>

#include "cuda/core/cupti.h"
#include "emu_trace.h"

enum { OK = 0, NOT_INITIALIZED = 15, UNKNOWN_ERROR = 999, VERSION = 130001, UNKNOWN_VERSION = 999999 };
enum { KERNEL_BYTES = 216, COPY_BYTES = 96, FILL_BYTES = 88, LARGEST = KERNEL_BYTES }; /* of whole records in CUDA 13 */

#define CALL(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

static GMutex lock;
static GArray *waiting; /* EmuTraced */
static guint asked;     /* bits of kinds */
static guint flushes;   /* since there was something new */
static size_t dropped;
static HnCuptiRequestedFn requested;
static HnCuptiCompletedFn completed;

static gboolean is_case(const char *name)
{
    return g_strcmp0(g_getenv("HONE_EMU_CUPTI"), name) == 0;
}

static gpointer driver_function(const char *name)
{
    void *driver = dlopen(g_getenv("HONE_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return driver != NULL ? dlsym(driver, name) : NULL;
}

static int kind_of(const EmuTraced *t)
{
    return t->kind == EMU_TRACED_KERNEL ? HN_CUPTI_KERNEL
           : t->kind == EMU_TRACED_FILL ? HN_CUPTI_MEMSET
                                        : HN_CUPTI_MEMCPY;
}

/* EmuTraceFn */
static void take(const EmuTraced *t)
{
    static guint seen;
    EmuTraced mine = *t;
    g_mutex_lock(&lock);
    flushes = 0;
    mine.name = t->name != NULL ? g_intern_string(t->name) : NULL;
    if ((asked >> kind_of(t) & 1) == 0 || (is_case("lose") && ++seen % 5 == 0 && ++dropped > 0))
        ;
    else
        g_array_append_val(waiting, mine);
    g_mutex_unlock(&lock);
}

/* --- calls ---------------------------------------------------------------------------------------------------------
 */

CALL(cuptiGetVersion, uint32_t *version)
{
    *version = is_case("version") ? UNKNOWN_VERSION : VERSION;
    return OK;
}

CALL(cuptiGetResultString, int result, const char **text)
{
    *text = result == NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED" : "CUPTI_ERROR_UNKNOWN";
    return OK;
}

CALL(cuptiGetTimestamp, uint64_t *now)
{
    EmuClockFn device_clock;
    *(gpointer *)&device_clock = driver_function(EMU_CLOCK);
    *now = device_clock();
    return OK;
}

CALL(cuptiActivityRegisterCallbacks, HnCuptiRequestedFn request, HnCuptiCompletedFn complete)
{
    requested = request;
    completed = complete;
    waiting = g_array_new(FALSE, FALSE, sizeof(EmuTraced));
    return is_case("dead") ? NOT_INITIALIZED : OK;
}

static int ask(int kind, gboolean on)
{
    EmuTraceSetFn set;
    *(gpointer *)&set = driver_function(EMU_TRACE_SET);
    g_mutex_lock(&lock);
    asked = on ? asked | 1u << kind : asked & ~(1u << kind);
    const gboolean any = asked != 0;
    g_mutex_unlock(&lock);
    set(any ? take : NULL);
    return OK;
}

CALL(cuptiActivityEnable, int kind)
{
    if (is_case("held"))
        return HN_CUPTI_HELD;
    return is_case("fills") && kind == HN_CUPTI_MEMSET ? HN_CUPTI_INVALID_KIND : ask(kind, TRUE);
}

CALL(cuptiActivityDisable, int kind)
{
    return ask(kind, FALSE);
}

CALL(cuptiActivityGetNumDroppedRecords, HnCuContext context, uint32_t stream, size_t *n)
{
    (void)context;
    (void)stream;
    *n = dropped;
    dropped = 0;
    return OK;
}

/* --- records -------------------------------------------------------------------------------------------------------
 */

static size_t put_kernel(const EmuTraced *t, uint8_t *at)
{
    HnCuptiKernel x = { .kind = HN_CUPTI_KERNEL,
                        .registers = (uint16_t)t->registers,
                        .start = t->start,
                        .end = t->end,
                        .stream = t->stream,
                        .static_shared = (int32_t)t->shared,
                        .dynamic_shared = (int32_t)t->dynamic,
                        .name = t->name,
                        .graph_node = t->graph_node };
    for (int i = 0; i < 3; i++) {
        x.grid[i] = (int32_t)t->grid[i];
        x.block[i] = (int32_t)t->block[i];
    }
    memcpy(at, &x, sizeof x);
    return KERNEL_BYTES;
}

static size_t put_copy(const EmuTraced *t, uint8_t *at)
{
    const HnCuptiCopy x = { .kind = HN_CUPTI_MEMCPY,
                            .way = t->kind == EMU_TRACED_TO_DEVICE ? HN_CUPTI_TO_DEVICE
                                   : t->kind == EMU_TRACED_TO_HOST ? HN_CUPTI_TO_HOST
                                                                   : 8,
                            .bytes = t->bytes,
                            .start = t->start,
                            .end = t->end,
                            .stream = t->stream,
                            .graph_node = t->graph_node };
    memcpy(at, &x, sizeof x);
    return COPY_BYTES;
}

static size_t put_fill(const EmuTraced *t, uint8_t *at)
{
    const HnCuptiFill x = { .kind = HN_CUPTI_MEMSET,
                            .bytes = t->bytes,
                            .start = t->start,
                            .end = t->end,
                            .stream = t->stream,
                            .graph_node = t->graph_node };
    memcpy(at, &x, sizeof x);
    return FILL_BYTES;
}

static size_t put(const EmuTraced *t, uint8_t *at)
{
    memset(at, 0, LARGEST);
    return t->kind == EMU_TRACED_KERNEL ? put_kernel(t, at)
           : t->kind == EMU_TRACED_FILL ? put_fill(t, at)
                                        : put_copy(t, at);
}

CALL(cuptiActivityGetNextRecord, uint8_t *buffer, size_t valid, void **record)
{
    static const uint8_t sizes[] = {
        [HN_CUPTI_MEMCPY] = COPY_BYTES, [HN_CUPTI_MEMSET] = FILL_BYTES, [HN_CUPTI_KERNEL] = KERNEL_BYTES
    };
    uint8_t *at = *record;
    int32_t kind;
    if (at == NULL) {
        at = buffer;
    } else {
        memcpy(&kind, at, sizeof kind);
        at += sizes[kind];
    }
    if (at >= buffer + valid)
        return HN_CUPTI_MAX_LIMIT;
    *record = at;
    return OK;
}

static void swap_times(EmuTraced *a, EmuTraced *b)
{
    const EmuTraced x = *a;
    a->start = b->start;
    a->end = b->end;
    b->start = x.start;
    b->end = x.end;
}

/* As the case wants it, before records are handed out. */
static void change(GArray *list)
{
    for (guint i = 0; is_case("shuffled") && i < list->len / 2; i++) {
        EmuTraced *a = &g_array_index(list, EmuTraced, i), *b = &g_array_index(list, EmuTraced, list->len - 1 - i);
        const EmuTraced x = *a;
        *a = *b;
        *b = x;
    }
    for (guint i = 0; is_case("swapped") && i + 1 < list->len; i++) {
        EmuTraced *a = &g_array_index(list, EmuTraced, i);
        if (a->kind != a[1].kind) {
            swap_times(a, a + 1);
            break;
        }
    }
    if (is_case("strange") && list->len > 0)
        g_array_index(list, EmuTraced, 0).end = 0;
    static guint seen;
    const guint turn = list->len > 0 ? seen++ : 0;
    if (list->len > 0 &&
        (is_case("silent") || (is_case("seldom") && turn % 4 == 3) || (is_case("mostly") && turn % 3 != 2)))
        g_array_set_size(list, list->len - 1);
}

CALL(cuptiActivityFlushAll, uint32_t flags)
{
    (void)flags;
    if (is_case("broken"))
        return UNKNOWN_ERROR;
    g_mutex_lock(&lock);
    const gboolean now = !is_case("late") || flushes++ > 0;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(EmuTraced));
    const guint n = !now ? 0 : is_case("next") && asked != 0 && waiting->len > 0 ? waiting->len - 1 : waiting->len;
    g_array_append_vals(list, waiting->data, n);
    g_array_remove_range(waiting, 0, n);
    g_mutex_unlock(&lock);
    change(list);
    for (guint i = 0; i < list->len;) {
        uint8_t *buffer;
        size_t bytes, most, used = 0;
        requested(&buffer, &bytes, &most);
        for (guint k = 0; i < list->len && used + LARGEST <= bytes && !(is_case("pieces") && k == 2); i++, k++)
            used += put(&g_array_index(list, EmuTraced, i), buffer + used);
        completed(NULL, 0, buffer, bytes, used);
    }
    g_array_unref(list);
    return OK;
}
