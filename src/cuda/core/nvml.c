#include "cuda/core/nvml.h"

#include <dlfcn.h>

#define LIBRARY "libnvidia-ml.so.1"

/* A constant once made. */
typedef struct {
    HnNvml nvml;
    gboolean there;
} Opened;

static Opened *open_library(void)
{
    Opened *o = g_new0(Opened, 1);
    const char *name = g_getenv("HONE_NVML");
    void *library = dlopen(name != NULL && *name != '\0' ? name : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return o;
#define HN_NVML(member, symbol, arguments) *(void **)&o->nvml.member = dlsym(library, #symbol);
#include "cuda/core/nvml.def"
#undef HN_NVML
    o->there = o->nvml.init != NULL && o->nvml.by_bus != NULL && o->nvml.init() == HN_NVML_SUCCESS;
    return o;
}

static gsize opened;

const HnNvml *hn_nvml(void)
{
    if (g_once_init_enter(&opened))
        g_once_init_leave(&opened, (gsize)open_library());
    const Opened *o = (const Opened *)opened;
    return o->there ? &o->nvml : NULL;
}
