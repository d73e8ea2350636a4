#include "cuda/core/cublaslt.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

#define NAME "cublaslt"

/* Versions 12 and 13 have the same functions and numbers as far as they are used. */
static const char *const libraries[] = { "libcublasLt.so.13", "libcublasLt.so.12" };

/* A constant once made. */
typedef struct {
    HnCublasLt lt;
    char *missing; /* NULL: it is there */
} Opened;

static char *find_functions(HnCublasLt *lt, void *library)
{
#define HN_LT(member, symbol, arguments)                           \
    if ((*(void **)&lt->member = dlsym(library, #symbol)) == NULL) \
        return g_strdup("the library in the place of cuBLASLt has no function " #symbol);
#include "cuda/core/cublaslt.def"
#undef HN_LT
    return NULL;
}

static Opened *open_library(void)
{
    Opened *o = g_new0(Opened, 1);
    const char *named = g_getenv("HONE_CUBLASLT");
    void *library = NULL;
    if (named != NULL && *named != '\0')
        library = dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    else
        for (guint i = 0; i < G_N_ELEMENTS(libraries) && library == NULL; i++)
            library = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
    if (library != NULL)
        o->missing = find_functions(&o->lt, library);
    else
        o->missing = g_strdup_printf("cuBLASLt (%s) is not installed",
                                     named != NULL && *named != '\0' ? named : "libcublasLt.so.13 or .12");
    return o;
}

static gsize opened;

const HnCublasLt *hn_cublaslt(const char **why)
{
    if (g_once_init_enter(&opened))
        g_once_init_leave(&opened, (gsize)open_library());
    const Opened *o = (const Opened *)opened;
    *why = o->missing;
    return o->missing == NULL ? &o->lt : NULL;
}

gboolean hn_cublaslt_asked(gboolean *asked, GError **error)
{
    const char *value = g_getenv("HONE_CUDA_LIBRARIES");
    *asked = value != NULL && strcmp(value, NAME) == 0;
    if (*asked || value == NULL || *value == '\0')
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "HONE_CUDA_LIBRARIES is '%s', not " NAME, value);
    return FALSE;
}
