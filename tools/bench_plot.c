/* hone-bench: pictures, drawn by gnuplot: how the times are spread, and how they follow what is swept. */
#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "hone_bench.h"

typedef struct {
    char *label; /* of the run */
    char *model;
    double x; /* NaN: no sweep of one option */
    double p50, lo, hi, p90, per_s;
    double curve[HN_CURVE];
} Row;

struct BenchPlot {
    GArray *rows;
};

static void row_clear(gpointer data)
{
    Row *row = data;
    g_free(row->label);
    g_free(row->model);
}

BenchPlot *bench_plot_new(void)
{
    BenchPlot *plot = g_new0(BenchPlot, 1);
    plot->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    g_array_set_clear_func(plot->rows, row_clear);
    return plot;
}

void bench_plot_free(BenchPlot *plot)
{
    if (!plot)
        return;
    g_array_unref(plot->rows);
    g_free(plot);
}

static gboolean is_svg(const char *path)
{
    return g_str_has_suffix(path, ".svg");
}

gboolean bench_plot_check(const char *path, GError **error)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!is_svg(path) && !g_str_has_suffix(path, ".png"))
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--plot': '%s' ends neither in .svg nor in .png", path);
    else if (!gnuplot) /* said before the time is spent on measuring */
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "option '--plot': there is no gnuplot here");
    else
        return TRUE;
    return FALSE;
}

/* What a quoted text of gnuplot can hold: neither the end of it, nor a command in backquotes, nor an escape. */
static char *clean(const char *text)
{
    return g_strdelimit(hn_text_clean(text), "\"\\'`", '_');
}

void bench_plot_add(BenchPlot *plot, const Subject *s)
{
    const HnStats *t = &s->measured.ms;
    gsize point =
        *s->point->label ? strlen(s->point->label) + 1 : 0; /* the label is the model's, a blank, the point's */
    g_autofree char *model = g_strndup(s->label, strlen(s->label) - point);
    Row row = { .label = clean(s->label), .model = clean(model), .x = s->point->x };
    row.p50 = t->p50;
    row.lo = isfinite(t->lo) ? t->lo : t->p50;
    row.hi = isfinite(t->hi) ? t->hi : t->p50;
    row.p90 = t->p90;
    row.per_s = (double)s->measured.runs / s->measured.wall;
    memcpy(row.curve, s->measured.curve, sizeof row.curve);
    g_array_append_val(plot->rows, row);
}

static void put_number(GString *out, double x, char after)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(out, "%s%c", g_ascii_formatd(text, sizeof text, "%.9g", x), after);
}

static void put_curves(GString *out, const GArray *rows)
{
    g_string_append(out, "set xlabel 'runs that are faster, %'\nset ylabel 'ms'\nset logscale y\nplot ");
    for (guint i = 0; i < rows->len; i++)
        g_string_append_printf(out, "%s'-' using 1:2 with lines lw 2 title \"%s\"", i ? ", " : "",
                               g_array_index(rows, Row, i).label);
    g_string_append_c(out, '\n');
    for (guint i = 0; i < rows->len; i++) {
        for (int k = 0; k < HN_CURVE; k++) {
            g_string_append_printf(out, "%d ", k);
            put_number(out, MAX(g_array_index(rows, Row, i).curve[k], 1e-6), '\n');
        }
        g_string_append(out, "e\n");
    }
}

/* A line for each model: its median, with its interval, over what is swept. */
static void put_sweep(GString *out, const GArray *rows)
{
    g_autoptr(GPtrArray) models = g_ptr_array_new();
    for (guint i = 0; i < rows->len; i++) {
        char *model = g_array_index(rows, Row, i).model;
        if (!g_ptr_array_find_with_equal_func(models, model, g_str_equal, NULL))
            g_ptr_array_add(models, model);
    }
    g_string_append(out, "set xlabel 'swept value'\nset ylabel 'median, ms'\nset logscale y\nplot ");
    for (guint m = 0; m < models->len; m++)
        g_string_append_printf(out, "%s'-' using 1:2:3:4 with yerrorlines lw 2 title \"%s\"", m ? ", " : "",
                               (char *)models->pdata[m]);
    g_string_append_c(out, '\n');
    for (guint m = 0; m < models->len; m++) {
        for (guint i = 0; i < rows->len; i++) {
            const Row *row = &g_array_index(rows, Row, i);
            if (strcmp(row->model, models->pdata[m]) != 0)
                continue;
            put_number(out, row->x, ' ');
            put_number(out, row->p50, ' ');
            put_number(out, row->lo, ' ');
            put_number(out, row->hi, '\n');
        }
        g_string_append(out, "e\n");
    }
}

static char *script(const BenchPlot *plot, const char *path)
{
    gboolean swept = plot->rows->len > 1;
    for (guint i = 0; i < plot->rows->len; i++)
        swept = swept && isfinite(g_array_index(plot->rows, Row, i).x);
    GString *out = g_string_new("set encoding utf8\n");
    g_string_append_printf(out, "set terminal %s size %s noenhanced\n", is_svg(path) ? "svg" : "pngcairo",
                           swept ? "900,800" : "900,500");
    g_string_append(out, "set key outside top center horizontal\nset grid\n");
    if (swept) {
        g_string_append(out, "set multiplot layout 2,1\n");
        put_sweep(out, plot->rows);
    }
    put_curves(out, plot->rows);
    if (swept)
        g_string_append(out, "unset multiplot\n");
    return g_string_free(out, FALSE);
}

gboolean bench_plot_write(const BenchPlot *plot, const char *path, GError **error)
{
    if (plot->rows->len == 0)
        return TRUE;
    GError *cause = NULL;
    g_autofree char *text = script(plot, path);
    g_autoptr(GBytes) in = g_bytes_new(text, strlen(text));
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
