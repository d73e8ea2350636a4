#include "plot_rows.h"

#include <math.h>

#include "base/cpu.h"
#include "base/jsonread.h"
#include "cli/plot.h"

#define LABEL 42 /* characters beside a bar */

char *hn_plot_about(const char *model)
{
    g_autofree char *cpu = hn_cpu_model(NULL);
    return g_strdup_printf("%s on %s (%s)", model, cpu, hn_cpu_isa_name(hn_cpu_isa()));
}

char *hn_plot_label(const char *text, guint most)
{
    g_autofree char *clean = hn_plot_text(text);
    const glong n = g_utf8_strlen(clean, -1);
    if (n <= (glong)most)
        return g_steal_pointer(&clean);
    return g_strdup_printf("...%s", g_utf8_offset_to_pointer(clean, n - (glong)most + 3));
}

static double number_of(JsonObject *row, const char *member)
{
    return member != NULL ? hn_json_number_or_nan(row, member) : NAN;
}

/* Middle, height, and the corners of a bar. */
static void put_bar(GString *out, double v, double top, double bottom)
{
    const double of[] = { v / 2, (top + bottom) / 2, 0, v, top, bottom };
    for (gsize i = 0; i < G_N_ELEMENTS(of); i++)
        hn_plot_number(out, of[i], i + 1 < G_N_ELEMENTS(of) ? ' ' : '\n');
}

static void put_series(GString *out, const GPtrArray *rows, const HnBars *bars, gboolean second)
{
    for (guint i = 0; i < rows->len; i++) {
        const double v = number_of(rows->pdata[i], second ? bars->second : bars->value) * bars->factor;
        const double top = (double)i + (second ? 0.02 : -0.4),
                     bottom = (double)i + (bars->second == NULL || second ? 0.4 : -0.02);
        if (isfinite(v))
            put_bar(out, v, top, bottom);
    }
    g_string_append(out, "e\n");
}

static void put_head(GString *out, const GPtrArray *rows, const HnBars *bars)
{
    g_autofree char *title = hn_plot_text(bars->title);
    g_string_append_printf(
        out,
        "set title \"%s\"\nset xlabel '%s'\nset xrange [0:*]\nset yrange [%u.6:-0.6]\nset grid x noy\n"
        "set border 1\nset style fill solid noborder\nset tics scale 0\nset ytics (",
        title, bars->axis, rows->len - 1);
    for (guint i = 0; i < rows->len; i++) {
        g_autofree char *label = hn_plot_label(json_object_get_string_member(rows->pdata[i], bars->name), LABEL);
        g_string_append_printf(out, "%s\"%s\" %u", i > 0 ? ", " : "", label, i);
    }
    g_string_append(out, ")\n");
}

void hn_plot_bars(HnReport *report, JsonArray *rows, const HnBars *bars)
{
    g_autoptr(GPtrArray) shown = g_ptr_array_new();
    for (guint i = 0; i < json_array_get_length(rows) && shown->len < bars->most; i++) {
        JsonObject *row = json_array_get_object_element(rows, i);
        if (isfinite(number_of(row, bars->value)) || isfinite(number_of(row, bars->second)))
            g_ptr_array_add(shown, row);
    }
    if (shown->len == 0)
        return;
    g_autoptr(GString) out = g_string_new(NULL);
    put_head(out, shown, bars);
    if (bars->second == NULL)
        g_string_append(out, "unset key\nplot '-' using 1:2:3:4:5:6 with boxxyerror lt 1\n");
    else
        g_string_append_printf(out,
                               "plot '-' using 1:2:3:4:5:6 with boxxyerror lc rgb '#a1a1aa' title \"%s\", "
                               "'-' using 1:2:3:4:5:6 with boxxyerror lt 1 title \"%s\"\n",
                               bars->legend[0], bars->legend[1]);
    put_series(out, shown, bars, FALSE);
    if (bars->second != NULL)
        put_series(out, shown, bars, TRUE);
    hn_report_plot(report, bars->caption, out->str);
}
