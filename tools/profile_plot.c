/* hone-profile: pictures of its page: where the time goes, and how near nodes are to what the machine can do. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "cli/plot.h"
#include "hone_profile.h"
#include "plot_rows.h"

#define TYPES_DRAWN 14
#define NODES_DRAWN 20
#define COLOURED 6 /* types with a colour of their own in the roofline */

/* A node can be drawn where it computes, moves and takes time. */
static gboolean at_point(JsonObject *row, double *x, double *y)
{
    const double flops = hn_json_number_or_nan(row, "flops"), bytes = hn_json_number_or_nan(row, "bytes");
    *y = hn_json_number_or_nan(row, "gflop_per_s");
    *x = flops / bytes;
    return flops > 0 && bytes > 0 && *y > 0;
}

/* The points of a type, NULL: of all that come behind the coloured ones. Are there any? */
static gboolean put_points(GString *out, JsonArray *nodes, JsonArray *types, guint type)
{
    gboolean any = FALSE;
    for (guint i = 0; i < json_array_get_length(nodes); i++) {
        JsonObject *row = json_array_get_object_element(nodes, i);
        const char *op = json_object_get_string_member(row, "op");
        const guint n = json_array_get_length(types);
        double x, y;
        guint k = 0;
        while (k < n && k < COLOURED &&
               strcmp(op, json_object_get_string_member(json_array_get_object_element(types, k), "op")) != 0)
            k++;
        if (k != type || !at_point(row, &x, &y))
            continue;
        any = TRUE;
        hn_plot_number(out, x, ' ');
        hn_plot_number(out, y, ' ');
        hn_plot_number(out, 0.5 + 3 * sqrt(fmax(hn_json_number_or_nan(row, "share"), 0)), '\n');
    }
    g_string_append(out, "e\n");
    return any;
}

static void put_roofs(GString *out, const HnRoofline *roof)
{
    const double near = roof->tiers[1].bytes_per_s, far = roof->tiers[HN_ROOFLINE_TIERS - 1].bytes_per_s;
    char peak[G_ASCII_DTOSTR_BUF_SIZE], memory[G_ASCII_DTOSTR_BUF_SIZE], caches[G_ASCII_DTOSTR_BUF_SIZE];
    char bytes[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(peak, sizeof peak, "%.6g", roof->flops * 1e-9);
    g_ascii_formatd(bytes, sizeof bytes, "%.6g", roof->int8_ops * 1e-9);
    g_ascii_formatd(memory, sizeof memory, "%.6g", far * 1e-9);
    g_ascii_formatd(caches, sizeof caches, "%.6g", near * 1e-9);
    g_string_append_printf(out, "low(a,b) = a < b ? a : b\nplot low(%s,%s*x) lc rgb '#18181b' lw 2 title 'memory, f32'",
                           peak, memory);
    if (isfinite(near))
        g_string_append_printf(out, ", low(%s,%s*x) lc rgb '#71717a' lw 1 title 'caches, f32'", peak, caches);
    if (roof->int8_ops > 1.05 * roof->flops)
        g_string_append_printf(out, ", low(%s,%s*x) lc rgb '#a1a1aa' lw 1 dt 2 title '8-bit integers'", bytes,
                               isfinite(near) ? caches : memory);
}

static void roofline(const Profiling *f, JsonArray *nodes, JsonArray *types, const char *about, HnReport *report)
{
    const HnRoofline *roof = profile_on_device(f) ? &f->there : &f->roofline;
    g_autofree char *title = hn_plot_text(about);
    g_autoptr(GString) out = g_string_new(NULL), data = g_string_new(NULL);
    if (!(roof->flops > 0) || !isfinite(roof->tiers[HN_ROOFLINE_TIERS - 1].bytes_per_s))
        return;
    g_string_append_printf(
        out,
        "set title \"%s\"\nset xlabel 'operations for each byte moved'\nset ylabel 'GFLOP/s'\n"
        "set key outside right top vertical\nset logscale xy\nset xrange [0.01:*]\nset samples 400\n",
        title);
    put_roofs(out, roof);
    gboolean any = FALSE;
    for (guint k = 0; k <= COLOURED; k++) {
        g_autoptr(GString) points = g_string_new(NULL);
        if (k < COLOURED && k >= json_array_get_length(types))
            continue;
        if (!put_points(points, nodes, types, k < json_array_get_length(types) ? k : COLOURED))
            continue;
        any = TRUE;
        g_autofree char *name =
            k < COLOURED
                ? hn_plot_label(json_object_get_string_member(json_array_get_object_element(types, k), "op"), 24)
                : g_strdup("others");
        if (k < COLOURED)
            g_string_append_printf(out, ", '-' using 1:2:3 with points pt 7 ps variable lt %u title \"%s\"", k + 1,
                                   name);
        else
            g_string_append_printf(out, ", '-' using 1:2:3 with points pt 6 ps variable lc rgb '#71717a' title \"%s\"",
                                   name);
        g_string_append(data, points->str);
    }
    g_string_append_printf(out, "\n%s", data->str);
    if (any)
        hn_report_plot(report, "Nodes below the roofline: larger points take more of the time", out->str);
}

void profile_plot_types(const Profiling *f, JsonObject *root, HnReport *report)
{
    g_autofree char *about = hn_plot_about(f->label);
    JsonArray *types = json_object_get_array_member(root, "types");
    const HnBars bars = { .caption = "Time by type of node",
                          .title = about,
                          .axis = "share of the time of all nodes, %",
                          .name = "op",
                          .value = "share",
                          .factor = 100,
                          .most = TYPES_DRAWN };
    hn_plot_bars(report, types, &bars);
    roofline(f, json_object_get_array_member(root, "nodes"), types, about, report);
}

void profile_plot_nodes(const Profiling *f, JsonObject *root, HnReport *report)
{
    g_autofree char *about = hn_plot_about(f->label);
    const HnBars bars = { .caption = "Nodes that take most of the time",
                          .title = about,
                          .axis = "share of the time of all nodes, %",
                          .name = "name",
                          .value = "share",
                          .factor = 100,
                          .most = NODES_DRAWN };
    hn_plot_bars(report, json_object_get_array_member(root, "nodes"), &bars);
}
