/* A report as text for a terminal or a pipe. */
#include "cli/report_parts.h"

#define GAP 2         /* blanks between columns */
#define LEAST_TEXT 7  /* a text column is not cut below this */
#define GOOD_TEXT 16  /* nor below this while there are minor columns to leave out */
#define HIDDEN (-GAP) /* width of what is left out */

static int text_width(const char *s)
{
    int n = 0;
    for (; *s; s = g_utf8_next_char(s))
        n += hn_terminal_char(g_utf8_get_char(s));
    return n;
}

/* Both ends of s, with ".." in place of what is too much: names of nodes begin alike, types and files end alike. */
static char *cut(const char *s, int width)
{
    int n = 0, all = text_width(s), head = (width - 1) / 2;
    if (all <= width)
        return g_strdup(s);
    const char *p = s, *tail;
    for (; *p && n + hn_terminal_char(g_utf8_get_char(p)) <= head; p = g_utf8_next_char(p))
        n += hn_terminal_char(g_utf8_get_char(p));
    int left = width - n - 2;
    for (tail = p, n = all - n; n > left; tail = g_utf8_next_char(tail))
        n -= hn_terminal_char(g_utf8_get_char(tail));
    return g_strdup_printf("%.*s..%s", (int)(p - s), s, tail);
}

static void put_cell(GString *out, const char *text, int width, gboolean left, gboolean last)
{
    if (width == HIDDEN)
        return;
    g_autofree char *shown = cut(text, width);
    int pad = width - text_width(shown);
    if (!left)
        g_string_append_printf(out, "%*s", pad, "");
    g_string_append(out, shown);
    if (!last)
        g_string_append_printf(out, "%*s", (left ? pad : 0) + GAP, "");
}

/* Leave out minor columns, the last ones first, then take columns of the terminal away from the widest text columns,
 * until the table fits. */
static void fit(int *widths, const HnColumn *columns, int n, int limit)
{
    int total = -GAP, spare = 0;
    for (int c = 0; c < n; c++) {
        total += widths[c] + GAP;
        spare += columns[c].kind == HN_COL_TEXT ? MAX(widths[c] - GOOD_TEXT, 0) : 0;
    }
    for (int c = n - 1; c >= 0 && total - spare > limit; c--)
        if ((columns[c].kind & HN_COL_MINOR) != 0) {
            total -= widths[c] + GAP;
            widths[c] = HIDDEN;
        }
    while (total > limit) {
        int widest = -1;
        for (int c = 0; c < n; c++)
            if (columns[c].kind == HN_COL_TEXT && widths[c] > LEAST_TEXT && (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            return;
        widths[widest]--;
        total--;
    }
}

static void put_table(GString *out, HnReport *report, const HnPart *part, int limit, gboolean bold)
{
    JsonArray *rows = hn_part_rows(report, part);
    const guint n_rows = hn_part_shown(report, part);
    int n = 0;
    while (part->columns[n].key)
        n++;
    if (!n_rows)
        return;

    g_autofree int *widths = g_new0(int, n);
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    for (int c = 0; c < n; c++)
        widths[c] = text_width(part->columns[c].header);
    for (guint i = 0; i < n_rows; i++) {
        for (int c = 0; c < n; c++) {
            char *text = hn_part_cell(json_array_get_element(rows, i), &part->columns[c]);
            widths[c] = MAX(widths[c], text_width(text));
            g_ptr_array_add(cells, text);
        }
    }
    if (limit > 0)
        fit(widths, part->columns, n, limit);

    int last = n - 1;
    while (last > 0 && widths[last] == HIDDEN)
        last--;
    g_string_append(out, bold ? "\033[1m" : "");
    for (int c = 0; c < n; c++)
        put_cell(out, part->columns[c].header, widths[c], part->columns[c].kind == HN_COL_TEXT, c == last);
    g_string_append(out, bold ? "\033[0m\n" : "\n");
    for (guint i = 0; i < cells->len; i++) {
        int c = (int)(i % (guint)n);
        put_cell(out, cells->pdata[i], widths[c], part->columns[c].kind == HN_COL_TEXT, c == last);
        if (c == n - 1)
            g_string_append_c(out, '\n');
    }
}

/* Facts that follow each other, with their values in one column. */
static guint put_facts(GString *out, const HnReport *report, guint i, int width)
{
    int wide = 0;
    guint end = i;
    for (; end < report->parts->len && g_array_index(report->parts, HnPart, end).kind == HN_PART_FACT; end++)
        wide = MAX(wide, text_width(g_array_index(report->parts, HnPart, end).name));
    for (; i < end; i++) {
        const HnPart *part = &g_array_index(report->parts, HnPart, i);
        g_autofree char *line =
            g_strdup_printf("%s%*s%s", part->name, wide - text_width(part->name) + GAP, "", part->text);
        hn_terminal_wrap_to(out, line, width, wide + GAP);
    }
    return end - 1;
}

char *hn_report_text(HnReport *report, int width, gboolean bold)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < report->parts->len; i++) {
        const HnPart *part = &g_array_index(report->parts, HnPart, i);
        if (part->kind == HN_PART_LINE)
            hn_terminal_wrap(out, part->text, width);
        else if (part->kind == HN_PART_FACT)
            i = put_facts(out, report, i, width);
        else if (part->kind == HN_PART_SECTION && out->len > 0)
            g_string_append_c(out, '\n');
        else if (part->kind == HN_PART_TABLE)
            put_table(out, report, part, width, bold);
    }
    return g_string_free(out, FALSE);
}
