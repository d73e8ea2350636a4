#include "cli/plot.h"

#include <gio/gio.h>
#include <string.h>

#include "base/error.h"
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

void hn_plot_number(GString *out, double x, char after)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(out, "%s%c", g_ascii_formatd(text, sizeof text, "%.9g", x), after);
}

char *hn_plot_text(const char *text)
{
    return g_strdelimit(hn_text_clean(text), "\"\\'`", '_');
}

static GString *head(gboolean svg, const char *size)
{
    static const char *const colours[] = {
        "#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#525252"
    };
    GString *out = g_string_new("set encoding utf8\n");
    g_string_append_printf(out, "set terminal %s size %s noenhanced font 'sans-serif,12' background '#ffffff'\n",
                           svg ? "svg" : "pngcairo", size);
    for (gsize i = 0; i < G_N_ELEMENTS(colours); i++)
        g_string_append_printf(out, "set linetype %u lc rgb '%s' lw 2 pt 7 ps 0.6\n", (guint)i + 1, colours[i]);
    g_string_append(out, "set linetype cycle 7\nset key outside bottom center horizontal\n"
                         "set grid lc rgb '#d4d4d8' lw 1\nset border 3 lc rgb '#525252'\nset tics nomirror\n");
    return out;
}

static GBytes *run(gboolean svg, const char *size, const char *commands, GError **error)
{
    GError *cause = NULL;
    GString *script = head(svg, size);
    g_string_append(script, commands);
    g_autoptr(GBytes) in = g_string_free_to_bytes(script), picture = NULL, talk = NULL;
    g_autoptr(GSubprocess) gnuplot = g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                                                          G_SUBPROCESS_FLAGS_STDERR_PIPE,
                                                      &cause, "gnuplot", NULL);
    if (!gnuplot || !g_subprocess_communicate(gnuplot, in, NULL, &picture, &talk, &cause)) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "gnuplot cannot be run: %s", cause->message);
        g_error_free(cause);
        return NULL;
    }
    if (!g_subprocess_get_successful(gnuplot) || g_bytes_get_size(picture) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "gnuplot could not draw");
        return NULL;
    }
    return g_steal_pointer(&picture);
}

gboolean hn_plot_draw(const char *path, const char *size, const char *commands, GError **error)
{
    g_autoptr(GBytes) picture = run(is_svg(path), size, commands, error);
    if (!picture) {
        g_prefix_error(error, "option '--plot': '%s': ", path);
        return FALSE;
    }
    return hn_out_save(path, g_bytes_get_data(picture, NULL), g_bytes_get_size(picture), error);
}

char *hn_plot_svg(const char *size, const char *commands, GError **error)
{
    g_autoptr(GBytes) picture = run(TRUE, size, commands, error);
    if (!picture)
        return NULL;
    gsize n;
    const char *text = g_bytes_get_data(picture, &n);
    const char *svg = g_strstr_len(text, (gssize)n, "<svg"); /* behind the prologue of a file */
    if (!svg) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "gnuplot could not draw");
        return NULL;
    }
    return g_strndup(svg, n - (gsize)(svg - text));
}
