#include "data/codecs.h"

#include <dlfcn.h>

#include "base/error.h"

#if defined HN_HAVE_PNG || defined HN_HAVE_JPEG || defined HN_HAVE_SNDFILE

/* The functions names[n] of a library into table[n]; NULL: it is not there, or lacks one. */
static void **open_library(const char *library, const char *const *names, gsize n)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    void **table = g_new0(void *, n);
    for (gsize i = 0; i < n; i++) {
        table[i] = handle != NULL ? dlsym(handle, names[i]) : NULL;
        if (table[i] == NULL) {
            g_free(table);
            return NULL;
        }
    }
    return table;
}

/* *opened: 0 not asked yet, 1 not there, else the table: a constant once made. */
static gconstpointer open_once(gsize *opened, const char *library, const char *const *names, gsize n, GError **error)
{
    if (g_once_init_enter(opened)) {
        void **table = open_library(library, names, n);
        g_once_init_leave(opened, table != NULL ? (gsize)table : 1);
    }
    if (*opened != 1)
        return (gconstpointer)*opened;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "the library '%s', which reads such files, is not installed",
                library);
    return NULL;
}

#endif

#define HN_CODEC(name) #name,

#ifdef HN_HAVE_PNG
const HnPng *hn_png(GError **error)
{
    static gsize opened;
    static const char *const names[] = {
#include "data/png.def"
    };
    return open_once(&opened, "libpng16.so.16", names, G_N_ELEMENTS(names), error);
}
#endif

#ifdef HN_HAVE_JPEG
const HnJpeg *hn_jpeg(GError **error)
{
    static gsize opened;
    static const char *const names[] = {
#include "data/jpeg.def"
    };
    return open_once(&opened, JPEG_LIB_VERSION >= 80 ? "libjpeg.so.8" : "libjpeg.so.62", names, G_N_ELEMENTS(names),
                     error);
}
#endif

#ifdef HN_HAVE_SNDFILE
const HnSndfile *hn_sndfile(GError **error)
{
    static gsize opened;
    static const char *const names[] = {
#include "data/sndfile.def"
    };
    return open_once(&opened, "libsndfile.so.1", names, G_N_ELEMENTS(names), error);
}
#endif
