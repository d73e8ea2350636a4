#include "cli/child_program.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"

char *hn_program_folder(void)
{
    g_autofree char *path = g_file_read_link("/proc/self/exe", NULL);
    return path != NULL ? g_path_get_dirname(path) : NULL;
}

void hn_program_become(const char *name, const GPtrArray *args, GError **error)
{
    g_autofree char *folder = hn_program_folder();
    g_autofree char *path = folder != NULL ? g_build_filename(folder, name, NULL) : NULL;
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, (gpointer)name);
    for (guint i = 0; i < args->len; i++)
        g_ptr_array_add(argv, args->pdata[i]);
    g_ptr_array_add(argv, NULL);
    if (path != NULL && access(path, X_OK) == 0)
        execv(path, (char **)argv->pdata);
    else
        execvp(name, (char **)argv->pdata);
    g_set_error(error, HN_ERROR, errno == ENOENT ? HN_ERROR_UNSUPPORTED : HN_ERROR_IO, "cannot run '%s': %s", name,
                g_strerror(errno));
}
