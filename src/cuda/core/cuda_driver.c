#include "cuda/core/cuda_driver.h"

#include <dlfcn.h>

#include "base/error.h"

#define LIBRARY "libcuda.so.1"

/* A constant once made: the driver, or why there is none. */
typedef struct {
    HnCudaDriver driver;
    char *missing; /* NULL: it is there */
} Opened;

const char *hn_cuda_result_text(const HnCudaDriver *d, int result)
{
    const char *text = NULL;
    if (d->error_text == NULL || d->error_text((unsigned)result, &text) != HN_CU_SUCCESS || text == NULL)
        return "an unknown error";
    return text;
}

static const char *library_name(void)
{
    const char *name = g_getenv("HONE_CUDA_DRIVER");
    return name != NULL && *name != '\0' ? name : LIBRARY;
}

/* NULL: all of the functions are there. */
static char *find_functions(HnCudaDriver *d, void *library, const char *name)
{
#define HN_CU(member, symbol, arguments)                          \
    if ((*(void **)&d->member = dlsym(library, #symbol)) == NULL) \
        return g_strdup_printf("%s has no function %s: the driver is too old", name, #symbol);
#define HN_CU_LATER(member, symbol, arguments) *(void **)&d->member = dlsym(library, #symbol);
#include "cuda/core/cuda_driver.def"
#undef HN_CU
    return NULL;
}

static char *start(const HnCudaDriver *d, const char *name)
{
    int version = 0;
    const int result = d->init(0);
    if (result == HN_CU_STUB)
        return g_strdup_printf("%s is the stand-in that programs are linked with, no driver", name);
    if (result == HN_CU_NO_DEVICE)
        return g_strdup_printf("the driver (%s) finds no GPU", name);
    if (result != HN_CU_SUCCESS)
        return g_strdup_printf("the driver (%s) does not start: %s", name, hn_cuda_result_text(d, result));
    if (d->driver_version(&version) != HN_CU_SUCCESS || version < HN_CU_DRIVER_VERSION)
        return g_strdup_printf("the driver (%s) is for CUDA %d.%d; hone needs %d.%d or later", name, version / 1000,
                               version % 1000 / 10, HN_CU_DRIVER_VERSION / 1000, HN_CU_DRIVER_VERSION % 1000 / 10);
    return NULL;
}

static Opened *open_driver(void)
{
    Opened *o = g_new0(Opened, 1);
    const char *name = library_name();
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        o->missing = g_strdup_printf("no CUDA driver: %s", dlerror());
    else if ((o->missing = find_functions(&o->driver, library, name)) == NULL)
        o->missing = start(&o->driver, name);
    return o;
}

static gsize opened;

const HnCudaDriver *hn_cuda_driver(GError **error)
{
    if (g_once_init_enter(&opened))
        g_once_init_leave(&opened, (gsize)open_driver());
    const Opened *o = (const Opened *)opened;
    if (o->missing == NULL)
        return &o->driver;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device 'cuda' is not available: %s", o->missing);
    return NULL;
}
