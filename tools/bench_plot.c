/* hone-bench: pictures, drawn by gnuplot: how the times are spread, and how they follow what is swept. */
#include <math.h>
#include <string.h>

#include "cli/plot.h"
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
    char *about, *x_name;
};

static void row_clear(gpointer data)
{
    Row *row = data;
    g_free(row->label);
    g_free(row->model);
}

BenchPlot *bench_plot_new(const char *about)
{
    BenchPlot *plot = g_new0(BenchPlot, 1);
    plot->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    plot->about = hn_plot_text(about);
    g_array_set_clear_func(plot->rows, row_clear);
    return plot;
}

void bench_plot_free(BenchPlot *plot)
{
    if (!plot)
        return;
    g_array_unref(plot->rows);
    g_free(plot->about);
    g_free(plot->x_name);
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
    row.per_s = s->throughput;
    memcpy(row.curve, s->measured.curve, sizeof row.curve);
    g_array_append_val(plot->rows, row);
    if (!plot->x_name && s->point->x_name)
        plot->x_name = hn_plot_text(s->point->x_name);
}

/* Of times: what makes numbers of ms between 1 and 1000 of the least. */
typedef struct {
    const char *name;
    double factor;
} Unit;

static Unit unit_for(double least_ms)
{
    static const Unit units[] = { { "s", 1e-3 }, { "ms", 1 }, { "\302\265s", 1e3 } };
    return units[least_ms >= 1000 ? 0 : least_ms >= 1 ? 1 : 2];
}

/* From 0 on where values are near each other, else logarithmic. */
static const char *y_axis(double least, double most)
{
    return most >= 8 * least ? "set logscale y" : "set yrange [0:*]";
}

static double least_p50(const GArray *rows)
{
    double least = INFINITY;
    for (guint i = 0; i < rows->len; i++)
        least = MIN(least, g_array_index(rows, Row, i).p50);
    return least;
}

static void put_curves(GString *out, const BenchPlot *plot)
{
    const GArray *rows = plot->rows;
    const Unit unit = unit_for(least_p50(rows));
    g_string_append_printf(
        out,
        "set title \"%s\"\nset xlabel 'part of the runs that is faster, %%'\n"
        "set ylabel 'latency of a run, %s'\nunset logscale\nset yrange [*:*]\nset logscale y\nset xtics auto\n"
        "set xrange [0:100]\nplot ",
        plot->about, unit.name);
    for (guint i = 0; i < rows->len; i++)
        g_string_append_printf(out, "%s'-' using 1:2 with lines lw 2 title \"%s\"", i ? ", " : "",
                               g_array_index(rows, Row, i).label);
    g_string_append_c(out, '\n');
    for (guint i = 0; i < rows->len; i++) {
        for (int k = 0; k < HN_CURVE; k++) {
            g_string_append_printf(out, "%d ", k);
            hn_plot_number(out, MAX(g_array_index(rows, Row, i).curve[k], 1e-6) * unit.factor, '\n');
        }
        g_string_append(out, "e\n");
    }
}

static GPtrArray *models_of(const GArray *rows)
{
    GPtrArray *models = g_ptr_array_new();
    for (guint i = 0; i < rows->len; i++) {
        char *model = g_array_index(rows, Row, i).model;
        if (!g_ptr_array_find_with_equal_func(models, model, g_str_equal, NULL))
            g_ptr_array_add(models, model);
    }
    return models;
}

/* Sizes double: their axis is logarithmic where they are far apart, with a mark at each. */
static void put_x_axis(GString *out, const BenchPlot *plot)
{
    double least = INFINITY, most = 0;
    g_autoptr(GString) tics = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_double_hash, g_double_equal, g_free, NULL);
    for (guint i = 0; i < plot->rows->len; i++) {
        const double x = g_array_index(plot->rows, Row, i).x;
        least = MIN(least, x);
        most = MAX(most, x);
        if (g_hash_table_add(seen, g_memdup2(&x, sizeof x)))
            g_string_append_printf(tics, "%s%.15g", tics->len ? "," : "", x);
    }
    const gboolean logarithmic = least > 0 && most >= 4 * least;
    g_string_append_printf(out, "set xlabel \"%s\"\n%s\nset xtics (%s)\nset xrange [%.15g:%.15g]\n", plot->x_name,
                           logarithmic ? "set logscale x 2" : "unset logscale x", tics->str,
                           logarithmic ? least * 0.9 : least - 0.05 * (most - least),
                           logarithmic ? most * 1.1 : most + 0.05 * (most - least));
}

/* A line for each model over what is swept: medians with their intervals, or samples in a second. */
static void put_sweep(GString *out, const BenchPlot *plot, gboolean per_s)
{
    const GArray *rows = plot->rows;
    const Unit unit = unit_for(least_p50(rows));
    double least = INFINITY, most = 0;
    g_autoptr(GPtrArray) models = models_of(rows);
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = &g_array_index(rows, Row, i);
        least = MIN(least, per_s ? row->per_s : row->p50);
        most = MAX(most, per_s ? row->per_s : row->p50);
    }
    g_string_append_printf(out, "set title \"%s\"\nunset logscale\n%s\nset ylabel '%s%s'\n", plot->about,
                           y_axis(least, most), per_s ? "samples/s" : "median latency of a run, ",
                           per_s ? "" : unit.name);
    put_x_axis(out, plot);
    for (guint m = 0; m < models->len; m++)
        g_string_append_printf(out, "%s'-' using %s title \"%s\"", m ? ", " : "plot ",
                               per_s ? "1:2 with linespoints" : "1:2:3:4 with yerrorlines", (char *)models->pdata[m]);
    g_string_append_c(out, '\n');
    for (guint m = 0; m < models->len; m++) {
        for (guint i = 0; i < rows->len; i++) {
            const Row *row = &g_array_index(rows, Row, i);
            if (strcmp(row->model, models->pdata[m]) != 0)
                continue;
            hn_plot_number(out, row->x, ' ');
            hn_plot_number(out, per_s ? row->per_s : row->p50 * unit.factor, ' ');
            hn_plot_number(out, row->lo * unit.factor, ' ');
            hn_plot_number(out, row->hi * unit.factor, '\n');
        }
        g_string_append(out, "e\n");
    }
}

static gboolean is_sweep(const BenchPlot *plot)
{
    gboolean swept = plot->rows->len > 1 && plot->x_name;
    for (guint i = 0; i < plot->rows->len; i++)
        swept = swept && isfinite(g_array_index(plot->rows, Row, i).x);
    return swept;
}

gboolean bench_plot_write(const BenchPlot *plot, const char *path, GError **error)
{
    if (plot->rows->len == 0)
        return TRUE;
    const gboolean swept = is_sweep(plot);
    g_autoptr(GString) out = g_string_new(NULL);
    if (swept) {
        g_string_append(out, "set multiplot layout 2,1\n");
        put_sweep(out, plot, FALSE);
    }
    put_curves(out, plot);
    if (swept)
        g_string_append(out, "unset multiplot\n");
    return hn_plot_draw(path, swept ? "900,800" : "900,500", out->str, error);
}

void bench_plot_report(const BenchPlot *plot, HnReport *report)
{
    if (plot->rows->len == 0)
        return;
    for (int per_s = 0; per_s < 2 && is_sweep(plot); per_s++) {
        g_autoptr(GString) out = g_string_new(NULL);
        g_autofree char *caption =
            g_strdup_printf("%s by %s", per_s ? "Samples in a second" : "Median latency", plot->x_name);
        put_sweep(out, plot, per_s);
        hn_report_plot(report, caption, out->str);
    }
    g_autoptr(GString) out = g_string_new(NULL);
    put_curves(out, plot);
    hn_report_plot(report, "How many runs are faster than a time", out->str);
}
