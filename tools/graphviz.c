/* Graphs that graphviz's dot lays out and draws. */
#include "graphviz.h"

#include <gio/gio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define MANY 400 /* nodes from which on positions are only improved for a while */

gboolean hn_dot_check(GError **error)
{
    g_autofree char *dot = g_find_program_in_path("dot");
    if (dot != NULL)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_IO,
                "option '--svg': there is no graphviz here; '--dot' writes what it would draw");
    return FALSE;
}

char *hn_dot_text(const char *text)
{
    return g_strdelimit(hn_text_clean(text), "\"\\", '_');
}

gboolean hn_dot_draw(const char *path, const char *script, guint nodes, GError **error)
{
    GError *cause = NULL;
    g_autoptr(GBytes) in = g_bytes_new_static(script, strlen(script));
    g_autoptr(GBytes) picture = NULL, talk = NULL;
    const char *plain[] = { "dot", "-Tsvg", NULL };
    const char *quick[] = { "dot", "-Tsvg", "-Gnslimit=1", "-Gnslimit1=1", "-Gmclimit=0.2", "-Gsplines=line", NULL };
    const GSubprocessFlags flags =
        G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE;
    g_autoptr(GSubprocess) dot = g_subprocess_newv(nodes < MANY ? plain : quick, flags, &cause);
    if (dot == NULL || !g_subprocess_communicate(dot, in, NULL, &picture, &talk, &cause)) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "option '--svg': graphviz cannot be run: %s", cause->message);
        g_error_free(cause);
        return FALSE;
    }
    if (!g_subprocess_get_successful(dot) || g_bytes_get_size(picture) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "option '--svg': graphviz could not draw '%s'", path);
        return FALSE;
    }
    return hn_out_save(path, g_bytes_get_data(picture, NULL), g_bytes_get_size(picture), error);
}
