#include "cuda/core/kernel_file.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "config.h"
#include "kernels_key.h"

#define MAGIC "HONEKRNL"
#define VERSION 1
#define NAME_BYTES 64
#define HASH_BYTES 64
#define FILE_NAME "kernels.cuda"

typedef struct {
    char magic[8];
    guint32 version, n;
    char hash[HASH_BYTES];
} Header;

typedef struct {
    char name[NAME_BYTES];
    guint64 offset, bytes;
} Entry;

struct HnKernelFile {
    GMappedFile *mapped;
    const Entry *entries;
    guint32 n;
};

/* Every entry lies within the file, and its name ends. */
static gboolean entries_fit(const char *data, gsize bytes)
{
    const Header *h = (const Header *)data;
    if (bytes < sizeof *h || (bytes - sizeof *h) / sizeof(Entry) < h->n)
        return FALSE;
    const Entry *e = (const Entry *)(h + 1);
    for (guint32 i = 0; i < h->n; i++)
        if (memchr(e[i].name, 0, NAME_BYTES) == NULL || e[i].offset > bytes || e[i].bytes > bytes - e[i].offset)
            return FALSE;
    return TRUE;
}

static const char *wrong_with(const char *data, gsize bytes)
{
    const Header *h = (const Header *)data;
    if (bytes < sizeof *h || memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return "is no file of kernels";
    if (GUINT32_FROM_LE(h->version) != VERSION || memcmp(h->hash, HN_KERNELS_KEY, HASH_BYTES) != 0)
        return "is of another version of hone";
    return entries_fit(data, bytes) ? NULL : "is damaged";
}

static HnKernelFile *open_at(const char *path, GError **error)
{
    GMappedFile *mapped = g_mapped_file_new(path, FALSE, error);
    if (mapped == NULL)
        return NULL;
    const char *data = g_mapped_file_get_contents(mapped);
    const char *wrong = wrong_with(data, g_mapped_file_get_length(mapped));
    if (wrong != NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device 'cuda' is not available: '%s' %s", path, wrong);
        g_mapped_file_unref(mapped);
        return NULL;
    }
    HnKernelFile *f = g_new0(HnKernelFile, 1);
    f->mapped = mapped;
    f->n = ((const Header *)data)->n;
    f->entries = (const Entry *)((const Header *)data + 1);
    return f;
}

/* Where it may be, in order. */
static char **places(void)
{
    g_autoptr(GStrvBuilder) b = g_strv_builder_new();
    Dl_info here;
    const char *named = g_getenv("HONE_CUDA_KERNELS");
    if (named != NULL) {
        g_strv_builder_add(b, named);
        return g_strv_builder_end(b);
    }
    if (dladdr((void *)hn_kernel_file_open, &here) != 0 && here.dli_fname != NULL) {
        g_autofree char *folder = g_path_get_dirname(here.dli_fname);
        g_autofree char *beside = g_build_filename(folder, "hone", FILE_NAME, NULL);
        g_autofree char *built = g_build_filename(folder, "..", "src", "cuda", FILE_NAME, NULL);
        g_strv_builder_add(b, beside);
        g_strv_builder_add(b, built);
    }
    g_autofree char *installed = g_build_filename(HN_LIBDIR, "hone", FILE_NAME, NULL);
    g_strv_builder_add(b, installed);
    return g_strv_builder_end(b);
}

HnKernelFile *hn_kernel_file_open(GError **error)
{
    g_auto(GStrv) paths = places();
    for (char **p = paths; *p != NULL; p++)
        if (g_file_test(*p, G_FILE_TEST_EXISTS))
            return open_at(*p, error);
    g_autofree char *all = g_strjoinv("', '", paths);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "device 'cuda' is not available: its kernels are not installed (looked for '%s')", all);
    return NULL;
}

void hn_kernel_file_free(HnKernelFile *f)
{
    if (f == NULL)
        return;
    g_mapped_file_unref(f->mapped);
    g_free(f);
}

const void *hn_kernel_file_find(const HnKernelFile *f, const char *name, gsize *bytes)
{
    for (guint32 i = 0; i < f->n; i++)
        if (strcmp(f->entries[i].name, name) == 0) {
            *bytes = f->entries[i].bytes;
            return g_mapped_file_get_contents(f->mapped) + f->entries[i].offset;
        }
    return NULL;
}
