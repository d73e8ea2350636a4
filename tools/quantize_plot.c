/* hone-quantize: pictures of its page: the plans that were tried, and what each node loses. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "cli/plot.h"
#include "hone_quantize.h"
#include "plot_rows.h"

#define NODES_DRAWN 20
#define NAMED 8 /* plans with a name in the picture */

/* Of a point: milliseconds, or bytes of weights. */
static double cost_of(const HnParetoPoint *p, gboolean time)
{
    return time ? p->ms : (double)p->bytes * 1e-6;
}

typedef enum { OTHERS, BEST, CHOSEN, NAMES } Series;

static gboolean belongs(const HnParetoPoint *p, Series s)
{
    return s == OTHERS ? !p->best && !p->chosen : s == CHOSEN ? p->chosen : p->best || p->chosen;
}

static gint by_cost(gconstpointer a, gconstpointer b, gpointer time)
{
    const double x = cost_of(*(HnParetoPoint *const *)a, time != NULL);
    const double y = cost_of(*(HnParetoPoint *const *)b, time != NULL);
    return (x > y) - (x < y);
}

static guint put_series(GString *out, const GPtrArray *points, Series s, gboolean time)
{
    guint n = 0;
    for (guint i = 0; i < points->len; i++) {
        const HnParetoPoint *p = points->pdata[i];
        if (!belongs(p, s) || !isfinite(cost_of(p, time)) || !isfinite(p->score.sqnr) || (s == NAMES && n == NAMED))
            continue;
        n++;
        hn_plot_number(out, cost_of(p, time), ' ');
        hn_plot_number(out, p->score.sqnr, s == NAMES ? ' ' : '\n');
        g_autofree char *name = s == NAMES ? hn_plot_label(p->what, 28) : NULL;
        if (name != NULL)
            g_string_append_printf(out, "\"%s\"\n", name);
    }
    g_string_append(out, "e\n");
    return n;
}

/* A plan without any noise has no height: a line says what it costs. */
static void put_line(GString *out, const GPtrArray *points, gboolean time)
{
    for (guint i = 0; i < points->len; i++) {
        const HnParetoPoint *p = points->pdata[i];
        char at[G_ASCII_DTOSTR_BUF_SIZE];
        if (p->score.sqnr != INFINITY || !isfinite(cost_of(p, time)))
            continue;
        g_autofree char *name = hn_plot_label(p->what, 28);
        g_ascii_dtostr(at, sizeof at, cost_of(p, time));
        g_string_append_printf(out,
                               "set arrow from %s, graph 0 to %s, graph 1 nohead dt 2 lc rgb '#71717a'\n"
                               "set label \"%s\" at %s, graph 0.05 right offset -0.5,0\nset xrange [*:%s<*]\n",
                               at, at, name, at, at);
        return;
    }
}

/* Signal over noise against what a plan costs. */
static void plot_plans(const Quantize *q, const char *about, gboolean time, HnReport *report)
{
    static const char *const drawn[] = { [OTHERS] = "'-' using 1:2 with points pt 6 lc rgb '#71717a' title 'tried'",
                                         [BEST] = "'-' using 1:2 with linespoints lt 1 title 'beaten by none'",
                                         [CHOSEN] = "'-' using 1:2 with points pt 7 ps 1.6 lt 2 title 'chosen'",
                                         [NAMES] =
                                             "'-' using 1:2:3 with labels left offset 1.2,0.6 font ',9' notitle" };
    g_autofree char *title = hn_plot_text(about);
    g_autoptr(GPtrArray) points = g_ptr_array_new();
    g_autoptr(GString) out = g_string_new(NULL), data = g_string_new(NULL);
    for (guint i = 0; i < q->search.points->len; i++)
        g_ptr_array_add(points, q->search.points->pdata[i]);
    g_ptr_array_sort_with_data(points, by_cost, GINT_TO_POINTER(time));
    g_string_append_printf(out,
                           "set title \"%s\"\nset xlabel '%s'\nset ylabel 'SQNR, dB'\nset offsets graph 0.02, graph "
                           "0.15, graph 0.08, graph 0.05\nset key outside right top vertical\n",
                           title, time ? "latency, ms" : "weights, MB");
    put_line(out, points, time);
    g_string_append(out, "plot ");
    guint all = 0;
    for (int s = OTHERS; s <= NAMES; s++) {
        g_autoptr(GString) series = g_string_new(NULL);
        const guint n = put_series(series, points, (Series)s, time);
        if (n == 0)
            continue;
        g_string_append_printf(out, "%s%s", all > 0 ? ", " : "", drawn[s]);
        g_string_append(data, series->str);
        all += s == NAMES ? 0 : n;
    }
    g_string_append_printf(out, "\n%s", data->str);
    if (all > 0 && points->len > 1)
        hn_report_plot(report,
                       time ? "Plans by latency: higher and further left is better"
                            : "Plans by size: higher and further left is better",
                       out->str);
}

static double alone_of(JsonObject *row)
{
    const double db = hn_json_number_or_nan(row, "alone_sqnr_db");
    return isnan(db) ? INFINITY : db;
}

static gint worst_first(gconstpointer a, gconstpointer b)
{
    const double x = alone_of(*(JsonObject *const *)a), y = alone_of(*(JsonObject *const *)b);
    return (x > y) - (x < y);
}

/* The nodes that lose most when they alone are integers. */
static void plot_nodes(const char *about, JsonArray *nodes, HnReport *report)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    for (guint i = 0; i < json_array_get_length(nodes); i++)
        g_ptr_array_add(order, json_array_get_object_element(nodes, i));
    g_ptr_array_sort(order, worst_first);
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < order->len; i++)
        json_array_add_object_element(rows, json_object_ref(order->pdata[i]));
    hn_plot_bars(report, rows,
                 &(HnBars){ .caption = "Nodes that lose most when nothing else is quantized",
                            .title = about,
                            .axis = "SQNR of the outputs, dB: shorter is worse",
                            .name = "name",
                            .value = "alone_sqnr_db",
                            .factor = 1,
                            .most = NODES_DRAWN });
    json_array_unref(rows);
}

void quantize_plot(const Quantize *q, JsonObject *root, HnReport *report)
{
    g_autofree char *name = g_path_get_basename(q->path);
    g_autofree char *about = hn_plot_about(strcmp(q->path, "-") != 0 ? name : "stdin");
    plot_plans(q, about, TRUE, report);
    plot_plans(q, about, FALSE, report);
    plot_nodes(about, json_object_get_array_member(root, "nodes"), report);
}
