#include "data/testset.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "onnx/tensor_file.h"

#define MAX_NUMBER 99999999 /* digits that a K or N may have: 8 */

/* The number in PREFIX_<number>SUFFIX, -1: name is not such a one. */
static int number_of(const char *name, const char *prefix, const char *suffix)
{
    gsize n = strlen(prefix);
    if (strncmp(name, prefix, n) || name[n] != '_' || !g_ascii_isdigit(name[n + 1]))
        return -1;
    char *end;
    guint64 x = g_ascii_strtoull(name + n + 1, &end, 10);
    return !strcmp(end, suffix) && x <= MAX_NUMBER ? (int)x : -1;
}

typedef struct {
    int number;
    char *path;
} Set;

static int compare_sets(gconstpointer a, gconstpointer b)
{
    const Set *p = a, *q = b;
    return p->number != q->number ? (p->number > q->number) - (p->number < q->number) : strcmp(p->path, q->path);
}

static GDir *open_folder(const char *path, GError **error)
{
    g_autoptr(GError) cause = NULL;
    GDir *dir = g_dir_open(path, 0, &cause);
    if (!dir) {
        int e = errno;
        gboolean missing = g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT);
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot open folder '%s': %s", path,
                    g_strerror(missing ? ENOENT
                               : e     ? e
                                       : EIO));
    }
    return dir;
}

GPtrArray *hn_testset_find(const char *path, GError **error)
{
    g_autoptr(GDir) dir = open_folder(path, error);
    if (!dir)
        return NULL;
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) sets = g_array_new(FALSE, FALSE, sizeof(Set));
    gboolean is_set = FALSE;
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        Set set = { .number = number_of(name, "test_data_set", "") };
        is_set |= number_of(name, "input", ".pb") >= 0 || number_of(name, "output", ".pb") >= 0;
        set.path = set.number >= 0 ? g_build_filename(path, name, NULL) : NULL;
        if (set.path && g_file_test(set.path, G_FILE_TEST_IS_DIR))
            g_array_append_val(sets, set);
        else
            g_free(set.path);
    }
    g_array_sort(sets, compare_sets);
    for (guint i = 0; i < sets->len; i++) {
        char *set = g_array_index(sets, Set, i).path;
        if (is_set)
            g_free(set);
        else
            g_ptr_array_add(found, set);
    }
    if (is_set)
        g_ptr_array_add(found, g_strdup(path));
    if (found->len == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no test set: neither input_0.pb nor test_data_set_0",
                    path);
        return NULL;
    }
    return g_steal_pointer(&found);
}

static gboolean read_numbered(const char *folder, GDir *dir, const char *prefix, int n, const HnType *const *types,
                              HnTensor **tensors, HnBudget *budget, GError **error)
{
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        int k = number_of(name, prefix, ".pb");
        if (k < 0)
            continue;
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (k >= n) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no counterpart: the model has %d %s%s", path, n,
                        prefix, n == 1 ? "" : "s");
            return FALSE;
        }
        if (!tensors[k])
            tensors[k] = hn_onnx_value_read(path, types[k], budget, error);
        if (!tensors[k])
            return FALSE;
    }
    return TRUE;
}

gboolean hn_testset_read(const char *folder, const char *prefix, int n, const HnType *const *types, HnTensor **tensors,
                         HnBudget *budget, GError **error)
{
    g_autoptr(GDir) dir = open_folder(folder, error);
    if (n > 0)
        memset(tensors, 0, (gsize)n * sizeof *tensors);
    if (dir && read_numbered(folder, dir, prefix, n, types, tensors, budget, error))
        return TRUE;
    for (int k = 0; k < n; k++)
        g_clear_pointer(&tensors[k], hn_tensor_unref);
    return FALSE;
}

gboolean hn_testset_write(const char *folder, const char *prefix, int n, HnTensor *const *tensors,
                          const char *const *names, GError **error)
{
    if (g_mkdir_with_parents(folder, 0777) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot make folder '%s': %s", folder, g_strerror(errno));
        return FALSE;
    }
    for (int k = 0; k < n; k++) {
        g_autofree char *name = g_strdup_printf("%s_%d.pb", prefix, k);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (tensors[k] && !hn_onnx_tensor_write(path, tensors[k], names[k], error))
            return FALSE;
    }
    return TRUE;
}
