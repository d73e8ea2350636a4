#include <string.h>

#include "cuda/core/cuda_backend.h"

#include "base/mapped.h"
#include "cuda/core/cuda_kernel.h"
#include "cuda/core/cuda_layout.h"
#include "cuda/elementwise/cuda_elements.h"
#include "run/element_program.h"

#define CAPABILITY 80 /* at least */

gboolean hn_cuda_check(const HnCuda *c, int result, const char *what, GError **error)
{
    if (result == HN_CU_SUCCESS)
        return TRUE;
    const gboolean fault = result >= HN_CU_FAULTS && result < HN_CU_FAULTS_END;
    const HnError code = result == HN_CU_OUT_OF_MEMORY ? HN_ERROR_BUDGET
                         : fault                       ? HN_ERROR_VALUE
                                                       : HN_ERROR_UNSUPPORTED;
    g_set_error(error, HN_ERROR, code, "device 'cuda:%d': %s failed: %s (%d)", c->index, what,
                hn_cuda_result_text(c->driver, result), result);
    return FALSE;
}

gboolean hn_cuda_enter(const HnCuda *c, GError **error)
{
    return hn_cuda_check(c, c->driver->context_set(c->context), "entering the context", error);
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

static void unload(gpointer key, gpointer module, gpointer data)
{
    (void)key;
    ((const HnCuda *)data)->driver->module_unload(module);
}

static void cuda_close(gpointer device)
{
    HnCuda *c = device;
    if (c->context != NULL && hn_cuda_enter(c, NULL)) {
        hn_cuda_close_lt(c);
        g_hash_table_foreach(c->modules, unload, c);
    }
    if (c->context != NULL && c->apart)
        c->driver->context_destroy(c->context);
    else if (c->context != NULL)
        c->driver->context_release(c->index);
    hn_kernel_file_free(c->kernels);
    g_hash_table_unref(c->modules);
    g_hash_table_unref(c->functions);
    g_hash_table_unref(c->shared);
    g_hash_table_unref(c->blocks);
    g_hash_table_unref(c->pinned);
    g_mutex_clear(&c->lock);
    g_free(c);
}

static int attribute(const HnCuda *c, int which)
{
    int value = 0;
    return c->driver->device_attribute(&value, (unsigned)which, c->index) == HN_CU_SUCCESS ? value : 0;
}

gboolean hn_cuda_has_device(int index, GError **error)
{
    int n = 0;
    const HnCudaDriver *d = hn_cuda_driver(error);
    if (d == NULL)
        return FALSE;
    const int result = d->device_count(&n);
    n = MIN(n, HN_CUDA_DEVICES);
    if (result == HN_CU_SUCCESS && index < n)
        return TRUE;
    if (result == HN_CU_SUCCESS && n > 0)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "device 'cuda:%d' is not available: the last one is 'cuda:%d'", index, n - 1);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device 'cuda' is not available: the driver finds no GPU");
    return FALSE;
}

static gboolean is_able(const HnCuda *c, GError **error)
{
    if (c->capability >= CAPABILITY)
        return TRUE;
    char name[256] = "";
    c->driver->device_name(name, sizeof name, c->index);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "device 'cuda:%d' is not available: %s has compute capability %d.%d; hone needs %d.%d or later",
                c->index, name, c->capability / 10, c->capability % 10, CAPABILITY / 10, CAPABILITY % 10);
    return FALSE;
}

/* Not the calling thread's yet. */
static int make_context(HnCuda *c)
{
    HnCuContext before;
    if (!c->apart)
        return c->driver->context_retain(&c->context, c->index);
    const int result = c->driver->context_create(&c->context, NULL, 0, c->index);
    return result == HN_CU_SUCCESS ? c->driver->context_pop(&before) : result;
}

static gboolean enter_first(HnCuda *c, GError **error)
{
    const int result = make_context(c);
    if (result == HN_CU_SUCCESS)
        return hn_cuda_enter(c, error);
    c->context = NULL;
    if (result == HN_CU_UNAVAILABLE)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "device 'cuda:%d' is not available: another process holds it alone", c->index);
    else
        hn_cuda_check(c, result, "opening the device", error);
    return FALSE;
}

static gboolean start(HnCuda *c, int index, GError **error)
{
    if (!hn_cuda_has_device(index, error) ||
        !hn_cuda_check(c, c->driver->device_get(&c->index, index), "finding the device", error))
        return FALSE;
    c->capability = 10 * attribute(c, HN_CU_MAJOR) + attribute(c, HN_CU_MINOR);
    c->multiprocessors = MAX(attribute(c, HN_CU_MULTIPROCESSORS), 1);
    c->shared_bytes = attribute(c, HN_CU_SHARED_OPTIN);
    return is_able(c, error) && hn_cublaslt_asked(&c->asks_lt, error) &&
           (c->kernels = hn_kernel_file_open(error)) != NULL && enter_first(c, error);
}

static gpointer open_context(int index, gboolean apart, GError **error)
{
    const HnCudaDriver *driver = hn_cuda_driver(error);
    if (driver == NULL)
        return NULL;
    if (apart && driver->context_create == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "the driver is too old to open device 'cuda:%d' once more",
                    index);
        return NULL;
    }
    HnCuda *c = g_new0(HnCuda, 1);
    c->driver = driver;
    const float few_cost[] = HN_CUDA_FEW_COSTS;
    memcpy(c->few_cost, few_cost, sizeof few_cost);
    c->apart = apart;
    g_mutex_init(&c->lock);
    c->modules = g_hash_table_new(g_str_hash, g_str_equal);
    c->functions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->shared = g_hash_table_new(NULL, NULL);
    c->blocks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    c->pinned = g_hash_table_new(NULL, NULL);
    if (start(c, index, error))
        return c;
    cuda_close(c);
    return NULL;
}

static gpointer cuda_open(int index, GError **error)
{
    return open_context(index, FALSE, error);
}

static gpointer cuda_open_apart(int index, GError **error)
{
    return open_context(index, TRUE, error);
}

/* --- modules ----------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static HnCuModule load(HnCuda *c, const char *name, GError **error)
{
    HnCuModule module = g_hash_table_lookup(c->modules, name);
    gsize bytes;
    if (module != NULL)
        return module;
    const void *image = hn_kernel_file_find(c->kernels, name, &bytes);
    if (image == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "device 'cuda' is not available: the file of kernels is of another version of hone (no '%s' in it)",
                    name);
        return NULL;
    }
    if (!hn_cuda_check(c, c->driver->module_load(&module, image), "loading kernels", error))
        return NULL;
    g_hash_table_insert(c->modules, (gpointer)name, module);
    return module;
}

HnCuFunction hn_cuda_function(HnCuda *c, const char *module, const char *name, GError **error)
{
    HnCuFunction f = NULL;
    if (!hn_cuda_enter(c, error))
        return NULL;
    g_mutex_lock(&c->lock);
    if ((f = g_hash_table_lookup(c->functions, name)) == NULL) {
        HnCuModule m = load(c, module, error);
        const gboolean found = m != NULL && hn_cuda_check(c, c->driver->module_function(&f, m, name), name, error);
        if (found)
            g_hash_table_insert(c->functions, g_strdup(name), f);
        else
            f = NULL;
    }
    g_mutex_unlock(&c->lock);
    return f;
}

/* --- libraries ---------------------------------------------------------------------------------------------------- */

const HnCublasLt *hn_cuda_lt(HnCuda *c, const char **why)
{
    const HnCublasLt *lt = hn_cublaslt(why);
    if (lt == NULL)
        return NULL;
    g_mutex_lock(&c->lock);
    if (c->lt == NULL && c->lt_lacks == NULL && (!hn_cuda_enter(c, NULL) || lt->create(&c->lt) != HN_LT_SUCCESS)) {
        c->lt = NULL;
        c->lt_lacks = "cuBLASLt does not start on this device";
    }
    *why = c->lt_lacks;
    g_mutex_unlock(&c->lock);
    return *why == NULL ? lt : NULL;
}

void hn_cuda_close_lt(HnCuda *c)
{
    const char *why;
    if (c->lt != NULL)
        hn_cublaslt(&why)->destroy(c->lt);
    c->lt = NULL;
}

/* --- streams ----------------------------------------------------------------------------------------------------- */

int hn_cuda_wait(const HnCudaStream *t)
{
    hn_guard_wait_begin();
    const int result = t->device->driver->stream_wait(t->stream);
    hn_guard_wait_end();
    return result;
}

static void cuda_stream_free(gpointer stream)
{
    HnCudaStream *t = stream;
    const HnCudaDriver *d = t->device->driver;
    if (t->stream != NULL && hn_cuda_enter(t->device, NULL)) {
        hn_cuda_wait(t);
        hn_cuda_free_stages(t);
        for (guint i = 0; i < t->marks->len; i++)
            d->event_destroy(t->marks->pdata[i]);
        hn_cuda_free_complaint(t);
        d->stream_destroy(t->stream);
    }
    g_ptr_array_unref(t->marks);
    g_cond_clear(&t->freed);
    g_mutex_clear(&t->hold_lock);
    g_free(t);
}

static gpointer cuda_stream_new(gpointer device, GError **error)
{
    HnCuda *c = device;
    HnCudaStream *t = g_new0(HnCudaStream, 1);
    t->device = c;
    t->copying = hn_cuda_copying;
    t->copying.threads = 1;
    t->marks = g_ptr_array_new();
    g_mutex_init(&t->hold_lock);
    g_cond_init(&t->freed);
    if (hn_cuda_enter(c, error) &&
        hn_cuda_check(c, c->driver->stream_create(&t->stream, HN_CU_STREAM_NON_BLOCKING), "making a stream", error))
        return t;
    t->stream = NULL;
    cuda_stream_free(t);
    return NULL;
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */

static const HnKernel *const *cuda_kernels(const HnOp *op)
{
#define HN_CUDA(symbol, file)  \
    if (op == &hn_op_##symbol) \
        return hn_cuda_##symbol;
#include "cuda/kernels.def"
#undef HN_CUDA
    return NULL;
}

#define DEVICE(i, text)                       \
    [i] = {                                   \
        .name = text,                         \
        .index = i,                           \
        .memory = &hn_cuda_memory,            \
        .open = cuda_open,                    \
        .close = cuda_close,                  \
        .open_apart = cuda_open_apart,        \
        .stream_new = cuda_stream_new,        \
        .stream_free = cuda_stream_free,      \
        .kernels = cuda_kernels,              \
        .group = &hn_cuda_group,              \
        .group_takes = hn_element_takes,      \
        .layout_equal = hn_cuda_layout_equal, \
        .layout_view = hn_cuda_layout_view,   \
        .turns = hn_cuda_turns,               \
        .reorders = hn_cuda_reorders,         \
        .lowers = TRUE,                       \
        .computes = TRUE,                     \
        .state = hn_cuda_state,               \
        .trace = &hn_cuda_trace,              \
    }

const HnBackend *hn_backend_cuda(int index)
{
    static const HnBackend devices[HN_CUDA_DEVICES] = {
        DEVICE(0, "cuda"),     DEVICE(1, "cuda:1"),   DEVICE(2, "cuda:2"),   DEVICE(3, "cuda:3"),
        DEVICE(4, "cuda:4"),   DEVICE(5, "cuda:5"),   DEVICE(6, "cuda:6"),   DEVICE(7, "cuda:7"),
        DEVICE(8, "cuda:8"),   DEVICE(9, "cuda:9"),   DEVICE(10, "cuda:10"), DEVICE(11, "cuda:11"),
        DEVICE(12, "cuda:12"), DEVICE(13, "cuda:13"), DEVICE(14, "cuda:14"), DEVICE(15, "cuda:15"),
    };
    return index >= 0 && index < HN_CUDA_DEVICES ? &devices[index] : NULL;
}
