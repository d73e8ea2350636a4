/* External data: bytes of a tensor in a file beside the model. The names come from the model, so they are not trusted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "onnx/pair.h"
#include "onnx/reader.h"

/* What messages are about. */
typedef struct {
    const char *tensor, *location;
} Where;

static gboolean fail(GError **error, HnError code, const Where *at, const char *why)
{
    if (*at->tensor)
        g_set_error(error, HN_ERROR, code, "external data '%s' of tensor '%s' %s", at->location, at->tensor, why);
    else
        g_set_error(error, HN_ERROR, code, "external data '%s' %s", at->location, why);
    return FALSE;
}

static const char *entry(const HnPairs *pairs, const char *key)
{
    for (guint i = 0; pairs && i + 1 < pairs->len; i += 2)
        if (!strcmp(pairs->pdata[i], key))
            return pairs->pdata[i + 1];
    return NULL;
}

/* A number of bytes; *value stays where there is no such entry. */
static gboolean number(const HnPairs *pairs, const char *key, const Where *at, guint64 *value, GError **error)
{
    const char *text = entry(pairs, key);
    if (!text || g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, value, NULL))
        return TRUE;
    g_autofree char *why = g_strdup_printf("has the impossible %s '%s'", key, text);
    return fail(error, HN_ERROR_FORMAT, at, why);
}

static gboolean leaves_folder(const char *location)
{
    g_auto(GStrv) parts = g_strsplit(location, "/", -1);
    return g_path_is_absolute(location) || g_strv_contains((const char *const *)parts, "..");
}

/* The file's path without links, which must not lead out of the model's folder; g_free() it. */
static char *resolve(const char *base_dir, const Where *at, GError **error)
{
    if (leaves_folder(at->location)) {
        fail(error, HN_ERROR_FORMAT, at, "lies outside the model's folder");
        return NULL;
    }
    g_autofree char *path = g_build_filename(base_dir, at->location, NULL);
    char *folder = realpath(base_dir, NULL), *file = realpath(path, NULL), *found = NULL;
    if (!folder || !file) {
        g_autofree char *why =
            errno == ENOENT ? g_strdup("is missing") : g_strdup_printf("cannot be read: %s", g_strerror(errno));
        fail(error, HN_ERROR_IO, at, why);
    } else {
        gsize n = strlen(folder);
        if (n == 1) /* the root folder ends in the slash that others lack */
            n = 0;
        struct stat st;
        if (strncmp(file, folder, n) != 0 || file[n] != '/')
            fail(error, HN_ERROR_FORMAT, at, "leads out of the model's folder");
        else if (stat(file, &st) != 0 || !S_ISREG(st.st_mode))
            fail(error, HN_ERROR_IO, at, "is not a regular file");
        else
            found = g_strdup(file);
    }
    free(folder);
    free(file);
    return found;
}

static void bytes_free(gpointer bytes)
{
    g_bytes_unref(bytes);
}

/* One mapping per file; borrowed. */
static GBytes *open_file(HnOnnxReader *r, const Where *at, GError **error)
{
    if (g_strcmp0(at->location, r->held_name) == 0)
        return r->held;
    g_autofree char *path = resolve(r->base_dir, at, error);
    if (!path)
        return NULL;
    if (!r->externals)
        r->externals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, bytes_free);
    GBytes *bytes = g_hash_table_lookup(r->externals, path);
    if (bytes)
        return bytes;
    bytes = hn_file_bytes(path, r->budget, error);
    if (!bytes)
        return NULL;
    if (r->model)
        r->model->file_bytes += g_bytes_get_size(bytes);
    g_hash_table_insert(r->externals, g_steal_pointer(&path), bytes);
    return bytes;
}

/* The whole file against the SHA-1 that the model gives for it; each file is read once. */
static gboolean verify(HnOnnxReader *r, const Where *at, GBytes *bytes, const char *want, GError **error)
{
    if (!r->sums)
        r->sums = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    const char *sum = g_hash_table_lookup(r->sums, bytes);
    if (!sum) {
        char *made = hn_pair_sum(bytes);
        g_hash_table_insert(r->sums, bytes, made);
        sum = made;
    }
    if (!g_ascii_strcasecmp(sum, want))
        return TRUE;
    g_autofree char *why = g_strdup_printf("has the checksum %s, not '%s' as the model says", sum, want);
    return fail(error, HN_ERROR_FORMAT, at, why);
}

GBytes *hn_onnx_external(HnOnnxReader *r, const char *name, const HnPairs *pairs, gsize need, gsize *offset,
                         GError **error)
{
    Where at = { name, entry(pairs, "location") };
    guint64 start = 0, length = need;
    if (!at.location || !*at.location) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "external data of tensor '%s' has no location", name);
        return NULL;
    }
    if (!number(pairs, "offset", &at, &start, error) || !number(pairs, "length", &at, &length, error))
        return NULL;
    if (length != need) {
        g_autofree char *why =
            g_strdup_printf("has %" G_GUINT64_FORMAT " bytes where %" G_GSIZE_FORMAT " are needed", length, need);
        fail(error, HN_ERROR_FORMAT, &at, why);
        return NULL;
    }
    GBytes *bytes = open_file(r, &at, error);
    if (!bytes)
        return NULL;
    gsize size = g_bytes_get_size(bytes);
    if (start > size || need > size - start) {
        g_autofree char *why = g_strdup_printf("ends before it should: bytes %" G_GUINT64_FORMAT
                                               " to %" G_GUINT64_FORMAT " of %" G_GSIZE_FORMAT,
                                               start, start + need, size);
        fail(error, HN_ERROR_FORMAT, &at, why);
        return NULL;
    }
    const char *sum = r->verify_data ? entry(pairs, "checksum") : NULL;
    if (sum && !verify(r, &at, bytes, sum, error))
        return NULL;
    *offset = start;
    return g_bytes_ref(bytes);
}
