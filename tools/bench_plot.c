/* hone-bench: pictures, drawn by gnuplot: how the times are spread, and how they follow what is swept. */
#include <math.h>
#include <string.h>

#include "gnuplot.h"
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

void bench_plot_add(BenchPlot *plot, const Subject *s)
{
    const HnStats *t = &s->measured.ms;
    gsize point =
        *s->point->label ? strlen(s->point->label) + 1 : 0; /* the label is the model's, a blank, the point's */
    g_autofree char *model = g_strndup(s->label, strlen(s->label) - point);
    Row row = { .label = hn_plot_text(s->label), .model = hn_plot_text(model), .x = s->point->x };
    row.p50 = t->p50;
    row.lo = isfinite(t->lo) ? t->lo : t->p50;
    row.hi = isfinite(t->hi) ? t->hi : t->p50;
    row.p90 = t->p90;
    row.per_s = (double)s->measured.runs / s->measured.wall;
    memcpy(row.curve, s->measured.curve, sizeof row.curve);
    g_array_append_val(plot->rows, row);
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
            hn_plot_number(out, MAX(g_array_index(rows, Row, i).curve[k], 1e-6), '\n');
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
            hn_plot_number(out, row->x, ' ');
            hn_plot_number(out, row->p50, ' ');
            hn_plot_number(out, row->lo, ' ');
            hn_plot_number(out, row->hi, '\n');
        }
        g_string_append(out, "e\n");
    }
}

static char *script(const BenchPlot *plot, const char *path)
{
    gboolean swept = plot->rows->len > 1;
    for (guint i = 0; i < plot->rows->len; i++)
        swept = swept && isfinite(g_array_index(plot->rows, Row, i).x);
    GString *out = g_string_new(NULL);
    hn_plot_begin(out, path, swept ? "900,800" : "900,500");
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
    g_autofree char *text = script(plot, path);
    return hn_plot_draw(path, text, error);
}
