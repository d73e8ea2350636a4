/* A report as text for a terminal or a pipe. */
#include "cli/report_parts.h"

#define GAP 2          /* blanks between columns */
#define LEAST_TEXT 7   /* a text column is not cut below this */
#define GOOD_TEXT 16   /* nor below this while there are minor columns to leave out */
#define LEAST_PROSE 24 /* a sentence's lines are not shorter than this while other texts can be cut */
#define HIDDEN (-GAP)  /* width of what is left out */

static int text_width(const char *s)
{
    int n = 0;
    for (; *s; s = g_utf8_next_char(s))
        n += hn_terminal_char(g_utf8_get_char(s));
    return n;
}

/* Where a text that is too long is cut, in columns of the terminal. */
typedef struct {
    int head; /* that stay in front */
    int back; /* that are left out at its end */
} Cut;

/* Adds what lies between two columns of s. */
static void put_span(GString *out, const char *s, int from, int to)
{
    for (int n = 0; *s && n < to; s = g_utf8_next_char(s)) {
        const int end = n + hn_terminal_char(g_utf8_get_char(s));
        if (n >= from && end <= to)
            g_string_append_len(out, s, g_utf8_next_char(s) - s);
        n = end;
    }
}

/* s within `width` columns, with ".." in place of what is left out. */
static char *cut(const char *s, int width, Cut at)
{
    const int all = text_width(s), back = at.back > 0 && all - at.back >= width - 2 ? at.back : 0;
    const int left = width - at.head - 2 - (back > 0 ? 2 : 0);
    if (all <= width)
        return g_strdup(s);
    GString *out = g_string_new(NULL);
    put_span(out, s, 0, at.head);
    g_string_append(out, "..");
    put_span(out, s, all - back - left, all - back);
    if (back > 0)
        g_string_append(out, "..");
    return g_string_free(out, FALSE);
}

/* How many of n texts differ when they are cut so. */
static guint count_different(char **const *texts, guint n, int width, Cut at)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < n; i++)
        g_hash_table_add(seen, cut(*texts[i], width, at));
    return g_hash_table_size(seen);
}

/* Both ends stay, for names of nodes begin alike, types and files end alike; unless more of the texts differ by what
 * they end with, begin with, or have somewhere before their end. */
static Cut best_cut(char **const *texts, guint n, int width)
{
    Cut best = { (width - 1) / 2, 0 };
    guint most = count_different(texts, n, width, best);
    int longest = 0;
    for (guint i = 0; i < n; i++)
        longest = MAX(longest, text_width(*texts[i]));
    for (int back = -2; back < longest - width; back += back < 0 ? 1 : (width - 2) / 2) {
        const Cut at = back == -2 ? (Cut){ 0, 0 } : back == -1 ? (Cut){ width - 2, 0 } : (Cut){ 0, back };
        const guint different = count_different(texts, n, width, at);
        if (different > most) {
            most = different;
            best = at;
        }
    }
    return best;
}

/* Cuts a column's texts. Those that would then look alike, though they are not, are cut by themselves. */
static void cut_column(char **cells, guint n, guint step, int width)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GHashTable) alike =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    for (guint i = 0; i < n; i += step)
        g_ptr_array_add(all, &cells[i]);
    const Cut at = best_cut((char **const *)(void *)all->pdata, all->len, width);
    for (guint i = 0; i < all->len; i++) {
        g_autofree char *text = cut(*(char **)all->pdata[i], width, at);
        GPtrArray *group = g_hash_table_lookup(alike, text);
        if (group == NULL)
            g_hash_table_insert(alike, g_steal_pointer(&text), group = g_ptr_array_new());
        g_ptr_array_add(group, all->pdata[i]);
    }
    GHashTableIter iter;
    gpointer value;
    for (g_hash_table_iter_init(&iter, alike); g_hash_table_iter_next(&iter, NULL, &value);) {
        const GPtrArray *group = value;
        const Cut own = group->len > 1 ? best_cut((char **const *)(void *)group->pdata, group->len, width) : at;
        const gboolean differ = count_different((char **const *)(void *)group->pdata, group->len, width, own) > 1;
        for (guint i = 0; i < group->len; i++) {
            char **cell = group->pdata[i], *text = cut(*cell, width, differ ? own : at);
            g_free(*cell);
            *cell = text;
        }
    }
}

static void put_cell(GString *out, const char *text, int width, gboolean left, gboolean last)
{
    if (width == HIDDEN)
        return;
    g_autofree char *shown = cut(text, width, (Cut){ (width - 1) / 2, 0 });
    int pad = width - text_width(shown);
    if (!left)
        g_string_append_printf(out, "%*s", pad, "");
    g_string_append(out, shown);
    if (!last)
        g_string_append_printf(out, "%*s", (left ? pad : 0) + GAP, "");
}

/* Columns of the terminal that a column keeps of `width`, where texts that are cut keep `text`. */
static int least_width(const HnColumn *column, int width, int text)
{
    const int least = column->kind == HN_COL_TEXT ? text : column->kind == HN_COL_PROSE ? LEAST_PROSE : width;
    return MIN(least, width);
}

/* Leave out minor columns, the last ones first, then take columns of the terminal away from the widest text columns,
 * until the table fits. */
static void fit(int *widths, const HnColumn *columns, int n, int limit)
{
    int total = -GAP, spare = 0;
    for (int c = 0; c < n; c++) {
        total += widths[c] + GAP;
        spare += widths[c] - least_width(&columns[c], widths[c], GOOD_TEXT);
    }
    for (int c = n - 1; c >= 0 && total - spare > limit; c--)
        if ((columns[c].kind & HN_COL_MINOR) != 0) {
            total -= widths[c] + GAP;
            widths[c] = HIDDEN;
        }
    while (total > limit) {
        int widest = -1;
        for (int c = 0; c < n; c++)
            if (widths[c] > least_width(&columns[c], widths[c], LEAST_TEXT) &&
                (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            return;
        widths[widest]--;
        total--;
    }
}

/* A row's n cells; a sentence at its end goes on below where it begins. */
static void put_row(GString *out, char *const *cells, const HnColumn *columns, int n, const int *widths, int last,
                    int limit)
{
    const gboolean prose = columns[last].kind == HN_COL_PROSE;
    g_autoptr(GString) row = g_string_new(NULL);
    int start = 0;
    for (int c = 0; c < n - prose; c++) {
        put_cell(row, cells[c], widths[c], hn_column_is_text(&columns[c]), c == last);
        start += widths[c] + GAP;
    }
    if (prose)
        g_string_append(row, cells[last]);
    hn_terminal_wrap_to(out, row->str, prose ? limit : 0, start);
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

    for (int c = 0; c < n && limit > 0; c++)
        if (widths[c] != HIDDEN && part->columns[c].kind != HN_COL_PROSE)
            cut_column((char **)cells->pdata + c, cells->len - (guint)c, (guint)n, widths[c]);
    int last = n - 1;
    while (last > 0 && widths[last] == HIDDEN)
        last--;
    g_string_append(out, bold ? "\033[1m" : "");
    for (int c = 0; c < n; c++)
        put_cell(out, part->columns[c].header, widths[c], hn_column_is_text(&part->columns[c]), c == last);
    g_string_append(out, bold ? "\033[0m\n" : "\n");
    for (guint i = 0; i < cells->len; i += (guint)n)
        put_row(out, (char *const *)cells->pdata + i, part->columns, n, widths, last, limit);
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
