/* Pictures that gnuplot draws. */
#include "gnuplot.h"

#include <gio/gio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

static gboolean is_svg(const char *path)
{
    return g_str_has_suffix(path, ".svg");
}

gboolean hn_plot_check(const char *path, GError **error)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!is_svg(path) && !g_str_has_suffix(path, ".png"))
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--plot': '%s' ends neither in .svg nor in .png", path);
    else if (!gnuplot) /* said before the time is spent */
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "option '--plot': there is no gnuplot here");
    else
        return TRUE;
    return FALSE;
}

void hn_plot_begin(GString *out, const char *path, const char *size)
{
    g_string_append(out, "set encoding utf8\n");
    g_string_append_printf(out, "set terminal %s size %s noenhanced\n", is_svg(path) ? "svg" : "pngcairo", size);
    g_string_append(out, "set key outside top center horizontal\nset grid\n");
}

void hn_plot_number(GString *out, double x, char after)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(out, "%s%c", g_ascii_formatd(text, sizeof text, "%.9g", x), after);
}

char *hn_plot_text(const char *text)
{
    return g_strdelimit(hn_text_clean(text), "\"\\'`", '_');
}

gboolean hn_plot_draw(const char *path, const char *script, GError **error)
{
    GError *cause = NULL;
    g_autoptr(GBytes) in = g_bytes_new(script, strlen(script));
    g_autoptr(GBytes) picture = NULL, talk = NULL;
    g_autoptr(GSubprocess) gnuplot = g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                                                          G_SUBPROCESS_FLAGS_STDERR_PIPE,
                                                      &cause, "gnuplot", NULL);
    if (!gnuplot || !g_subprocess_communicate(gnuplot, in, NULL, &picture, &talk, &cause)) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "option '--plot': gnuplot cannot be run: %s", cause->message);
        g_error_free(cause);
        return FALSE;
    }
    if (!g_subprocess_get_successful(gnuplot) || g_bytes_get_size(picture) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "option '--plot': gnuplot could not draw '%s'", path);
        return FALSE;
    }
    return hn_out_save(path, g_bytes_get_data(picture, NULL), g_bytes_get_size(picture), error);
}
