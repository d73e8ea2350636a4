#include "cli/model_path.h"

#include "base/error.h"

#define MODEL "model.onnx"

static char *only_model(const char *folder, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autofree char *found = NULL;
    const char *name;
    guint n = 0;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(name, ".onnx"))
            continue;
        g_free(found);
        found = g_build_filename(folder, name, NULL);
        n++;
    }
    if (n == 1)
        return g_steal_pointer(&found);
    if (n == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "folder '%s' holds no model", folder);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "folder '%s' holds %u models, and none is called " MODEL, folder, n);
    return NULL;
}

char *hn_model_path(const char *name, GError **error)
{
    if (!g_file_test(name, G_FILE_TEST_IS_DIR))
        return g_strdup(name);
    g_autofree char *usual = g_build_filename(name, MODEL, NULL);
    return g_file_test(usual, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer(&usual) : only_model(name, error);
}
