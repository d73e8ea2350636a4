/*
 * Records of CUPTI. It asks for buffers and gives them back filled, in any thread, in any order, and perhaps late.
 */
#include "cuda/core/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER ((size_t)1 << 18) /* bytes */
#define ALIGNMENT 8
#define SLACK 500          /* ns: so much earlier than start() a record may seem to begin */
#define FLUSHES 20         /* for records that are late, at most ... */
#define FLUSH_WAIT_US 1000 /* ... with so much time in between */
#define TOOLKIT "/usr/local/cuda"

typedef struct {
    HnCupti cupti;
    char *missing;   /* NULL: it is there */
    GMutex lock;     /* of what follows */
    GArray *records; /* HnDeviceRecord, with times of the library's clock */
    uint64_t begun;
    gboolean strange; /* a record is not what it should be */
    size_t dropped;
} Opened;

static const int kinds[] = { HN_CUPTI_KERNEL, HN_CUPTI_MEMCPY, HN_CUPTI_MEMSET };

static gsize opened;

static const char *result_text(const HnCupti *f, int result)
{
    const char *text = NULL;
    return f->result_text(result, &text) == HN_CUPTI_SUCCESS && text != NULL ? text : "an unknown error";
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

static void requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = aligned_alloc(ALIGNMENT, BUFFER);
    *bytes = *buffer != NULL ? BUFFER : 0;
    *most_records = 0; /* as many as there is room for */
}

/* FALSE: of a kind that nobody asked for. */
static gboolean read_copy(const void *from, HnDeviceRecord *r)
{
    HnCuptiCopy x;
    memcpy(&x, from, sizeof x);
    *r = (HnDeviceRecord){ .kind = x.way == HN_CUPTI_TO_DEVICE ? HN_WORK_UPLOAD
                                   : x.way == HN_CUPTI_TO_HOST ? HN_WORK_DOWNLOAD
                                                               : HN_WORK_COPY,
                           .start = (double)x.start,
                           .end = (double)x.end,
                           .bytes = x.bytes,
                           .graph = x.graph_node != 0 };
    return TRUE;
}

static gboolean read_fill(const void *from, HnDeviceRecord *r)
{
    HnCuptiFill x;
    memcpy(&x, from, sizeof x);
    *r = (HnDeviceRecord){ .kind = HN_WORK_FILL,
                           .start = (double)x.start,
                           .end = (double)x.end,
                           .bytes = x.bytes,
                           .graph = x.graph_node != 0 };
    return TRUE;
}

static gboolean read_kernel(const void *from, HnDeviceRecord *r)
{
    HnCuptiKernel x;
    memcpy(&x, from, sizeof x);
    for (int i = 0; i < 3; i++)
        if (x.grid[i] < 1 || x.block[i] < 1)
            return FALSE;
    *r = (HnDeviceRecord){ .kind = HN_WORK_KERNEL,
                           .start = (double)x.start,
                           .end = (double)x.end,
                           .registers = x.registers,
                           .shared = (guint)(x.static_shared + x.dynamic_shared),
                           .graph = x.graph_node != 0 };
    r->name = g_intern_string(x.name != NULL ? x.name : "?");
    for (int i = 0; i < 3; i++) {
        r->grid[i] = (guint)x.grid[i];
        r->block[i] = (guint)x.block[i];
    }
    return TRUE;
}

/* Under the lock. */
static void take(Opened *o, const void *record)
{
    HnDeviceRecord r;
    int32_t kind;
    memcpy(&kind, record, sizeof kind);
    const gboolean known = kind == HN_CUPTI_KERNEL   ? read_kernel(record, &r)
                           : kind == HN_CUPTI_MEMCPY ? read_copy(record, &r)
                           : kind == HN_CUPTI_MEMSET ? read_fill(record, &r)
                                                     : FALSE;
    if (!known || r.end < r.start)
        o->strange = TRUE;
    else if (r.start + SLACK >= (double)o->begun) /* else late, from before */
        g_array_append_val(o->records, r);
}

static void completed(HnCuContext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    Opened *o = (Opened *)opened;
    void *record = NULL;
    (void)bytes;
    g_mutex_lock(&o->lock);
    while (valid > 0 && o->cupti.next(buffer, valid, &record) == HN_CUPTI_SUCCESS)
        take(o, record);
    size_t dropped = 0;
    if (o->cupti.dropped(context, stream, &dropped) == HN_CUPTI_SUCCESS)
        o->dropped += dropped;
    g_mutex_unlock(&o->lock);
    free(buffer);
}

/* --- the library -------------------------------------------------------------------------------------------------- */

static void *open_in(const char *folder, const char *within)
{
    g_autofree char *path = folder != NULL && *folder != '\0' ? g_build_filename(folder, within, NULL) : NULL;
    return path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *open_file(char **missing)
{
    static const char *const within[] = { "extras/CUPTI/lib64/libcupti.so", "lib64/libcupti.so", "lib/libcupti.so" };
    const char *name = g_getenv("HONE_CUPTI"), *driver = g_getenv("HONE_CUDA_DRIVER");
    const char *const toolkits[] = { g_getenv("CUDA_HOME"), g_getenv("CUDA_PATH"), TOOLKIT };
    void *library = NULL;
    if (name != NULL && *name != '\0') {
        if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) == NULL)
            *missing = g_strdup_printf("no CUPTI: %s", dlerror());
        return library;
    }
    if (driver != NULL && *driver != '\0') {
        *missing = g_strdup("no CUPTI for another driver: HONE_CUPTI names none");
        return NULL;
    }
    if ((library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL)) == NULL)
        library = dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL);
    for (guint i = 0; i < G_N_ELEMENTS(toolkits); i++)
        for (guint k = 0; library == NULL && k < G_N_ELEMENTS(within); k++)
            library = open_in(toolkits[i], within[k]);
    if (library == NULL)
        *missing = g_strdup("no CUPTI: neither libcupti.so.13 nor .12, nor a toolkit in " TOOLKIT
                            " (HONE_CUPTI names the library)");
    return library;
}

/* NULL: all is as it should be. */
static char *begin(const HnCupti *f)
{
    uint32_t version = 0;
    int result = f->version(&version);
    if (result != HN_CUPTI_SUCCESS)
        return g_strdup_printf("CUPTI does not start: %s", result_text(f, result));
    if (version < HN_CUPTI_OLDEST || version > HN_CUPTI_NEWEST)
        return g_strdup_printf("CUPTI is of version %u, whose records are not known", version);
    result = f->callbacks(requested, completed);
    return result != HN_CUPTI_SUCCESS ? g_strdup_printf("CUPTI does not start: %s", result_text(f, result)) : NULL;
}

static char *find_functions(HnCupti *f, void *library)
{
#define HN_CUPTI(member, symbol, arguments)                       \
    if ((*(void **)&f->member = dlsym(library, #symbol)) == NULL) \
        return g_strdup("CUPTI has no function " #symbol);
#include "cuda/core/cupti.def"
#undef HN_CUPTI
    return NULL;
}

static Opened *open_library(void)
{
    Opened *o = g_new0(Opened, 1);
    void *library = open_file(&o->missing);
    g_mutex_init(&o->lock);
    o->records = g_array_new(FALSE, FALSE, sizeof(HnDeviceRecord));
    if (library != NULL && (o->missing = find_functions(&o->cupti, library)) == NULL)
        o->missing = begin(&o->cupti);
    return o;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static void disable(const HnCupti *f, guint n)
{
    for (guint i = 0; i < n; i++)
        f->disable(kinds[i]);
}

static char *enable(const HnCupti *f)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const int result = f->enable(kinds[i]);
        if (result == HN_CUPTI_SUCCESS)
            continue;
        disable(f, i);
        return result == HN_CUPTI_HELD ? g_strdup("another profiler holds CUPTI")
                                       : g_strdup_printf("CUPTI keeps no records: %s", result_text(f, result));
    }
    return NULL;
}

gboolean hn_cupti_start(char **why)
{
    if (g_once_init_enter(&opened))
        g_once_init_leave(&opened, (gsize)open_library());
    Opened *o = (Opened *)opened;
    uint64_t now = 0;
    if (o->missing != NULL) {
        *why = g_strdup(o->missing);
        return FALSE;
    }
    if (o->cupti.now(&now) != HN_CUPTI_SUCCESS)
        now = 0;
    g_mutex_lock(&o->lock);
    g_array_set_size(o->records, 0);
    o->begun = now;
    o->strange = FALSE;
    o->dropped = 0;
    g_mutex_unlock(&o->lock);
    return (*why = enable(&o->cupti)) == NULL;
}

static guint known(Opened *o)
{
    g_mutex_lock(&o->lock);
    const guint n = o->records->len;
    g_mutex_unlock(&o->lock);
    return n;
}

static int by_start(gconstpointer a, gconstpointer b)
{
    const HnDeviceRecord *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start) : (x->end > y->end) - (x->end < y->end);
}

gboolean hn_cupti_stop(guint expected, GArray *records, char **why)
{
    Opened *o = (Opened *)opened;
    int result = o->cupti.flush(HN_CUPTI_FLUSH_FORCED);
    for (int i = 0; i < FLUSHES && result == HN_CUPTI_SUCCESS && known(o) < expected; i++) {
        g_usleep(FLUSH_WAIT_US);
        result = o->cupti.flush(HN_CUPTI_FLUSH_FORCED);
    }
    disable(&o->cupti, G_N_ELEMENTS(kinds));
    g_mutex_lock(&o->lock);
    g_array_sort(o->records, by_start);
    for (guint i = 0; i < o->records->len; i++) {
        HnDeviceRecord *r = &g_array_index(o->records, HnDeviceRecord, i);
        r->start -= (double)o->begun;
        r->end -= (double)o->begun;
        g_array_append_vals(records, r, 1);
    }
    g_array_set_size(o->records, 0);
    *why = result != HN_CUPTI_SUCCESS ? g_strdup_printf("CUPTI hands nothing out: %s", result_text(&o->cupti, result))
           : o->strange               ? g_strdup("CUPTI's records are not what they should be")
           : o->dropped > 0           ? g_strdup_printf("CUPTI lost %" G_GSIZE_FORMAT " records", o->dropped)
                                      : NULL;
    g_mutex_unlock(&o->lock);
    return *why == NULL;
}
