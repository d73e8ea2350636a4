/* Rows of pictures and sound kept as .npy files, under a hash of what decides about their elements. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "data/media.h"
#include "data/npy.h"

#define FORM "hone-1" /* of the elements: another one where the same keys come to make others */

static char *cache_path(const HnMediaTarget *t, const char *path, const char *cache)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return NULL;
    g_autofree char *whole = g_canonicalize_filename(path, NULL), *what = hn_media_describe(t);
    g_autofree char *text = g_strdup_printf("%s|%s|%" PRIi64 "|%" PRIi64 ".%09ld|%s", FORM, whole, (int64_t)st.st_size,
                                            (int64_t)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec, what);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    g_autofree char *name = g_strconcat(hash, ".npy", NULL);
    return g_build_filename(cache, name, NULL);
}

/* NULL: it is not there, or not what it should be. */
static HnTensor *from_cache(const HnMediaTarget *t, const char *kept, HnBudget *budget)
{
    if (!g_file_test(kept, G_FILE_TEST_IS_REGULAR))
        return NULL;
    g_autoptr(GBytes) bytes = hn_file_bytes(kept, budget, NULL);
    HnTensor *row = bytes != NULL ? hn_npy_read_bytes(bytes, kept, budget, NULL) : NULL;
    const int rank = t->rank - (t->batched ? 1 : 0);
    if (row == NULL || (row->dtype == t->dtype && row->ndim == rank))
        return row;
    hn_tensor_unref(row);
    return NULL;
}

static gboolean to_cache(const HnTensor *row, const char *kept, const char *cache, GError **error)
{
    if (g_mkdir_with_parents(cache, 0777) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot make the folder '%s': %s", cache, g_strerror(errno));
        return FALSE;
    }
    g_autoptr(GBytes) head = hn_npy_header(row->dtype, row->ndim, row->dims, error);
    g_autoptr(HnOutFile) out = head != NULL ? hn_out_open(kept, error) : NULL;
    return out != NULL && hn_out_write(out, g_bytes_get_data(head, NULL), g_bytes_get_size(head), error) &&
           hn_out_write(out, row->data, row->bytes, error) && hn_out_commit(out, error);
}

HnTensor *hn_media_row_cached(const HnMediaTarget *t, const char *path, const char *cache, HnBudget *budget,
                              GError **error)
{
    g_autofree char *kept = cache != NULL ? cache_path(t, path, cache) : NULL;
    HnTensor *row = kept != NULL ? from_cache(t, kept, budget) : NULL;
    if (row != NULL)
        return row;
    g_autoptr(GBytes) bytes = hn_file_bytes(path, budget, error);
    row = bytes != NULL ? hn_media_row(t, bytes, path, budget, error) : NULL;
    if (row == NULL || kept == NULL || to_cache(row, kept, cache, error))
        return row;
    hn_tensor_unref(row);
    return NULL;
}
