/* A report as Markdown and as a page of HTML. */
#include <string.h>

#include "base/text.h"
#include "cli/json.h"
#include "cli/plot.h"
#include "cli/report_parts.h"

#define PLOT_SIZE "900,420"

static const HnPart *part_at(const HnReport *report, guint i)
{
    return &g_array_index(report->parts, HnPart, i);
}

static HnPartKind kind_at(const HnReport *report, guint i)
{
    return i < report->parts->len ? part_at(report, i)->kind : HN_PART_SECTION;
}

static gboolean shows(const HnReport *report, guint i, gboolean plots)
{
    const HnPart *part = part_at(report, i);
    if (part->kind == HN_PART_TABLE)
        return hn_part_shown(report, part) > 0;
    return part->kind == HN_PART_LINE ? *part->text != '\0' : part->kind != HN_PART_PLOT || plots;
}

/* There is something between this title and the next. */
static gboolean is_filled(const HnReport *report, guint i, gboolean plots)
{
    for (i++; kind_at(report, i) != HN_PART_SECTION; i++) /* also at the end */
        if (shows(report, i, plots))
            return TRUE;
    return FALSE;
}

/* A line or fact that belongs to the list of the one at i, which is of that kind. */
static gboolean in_list(const HnReport *report, guint i, HnPartKind kind)
{
    return kind_at(report, i) == kind && *part_at(report, i)->text != '\0';
}

/* "hone-bench: a/model.onnx, b.onnx" */
static char *title_of(const HnReport *report)
{
    const HnContext *ctx = report->ctx;
    GString *out = g_string_new(ctx->tool->name);
    for (int i = 0; i < ctx->n_args; i++) {
        g_autofree char *name = g_path_get_basename(ctx->args[i]), *folder = g_path_get_dirname(ctx->args[i]);
        g_autofree char *parent = strcmp(name, "model.onnx") == 0 ? g_path_get_basename(folder) : NULL;
        g_autofree char *clean = hn_text_clean(name), *above = parent ? hn_text_clean(parent) : NULL;
        g_string_append_printf(out, "%s%s%s%s", i ? ", " : ": ", above ? above : "", above ? "/" : "", clean);
    }
    return g_string_free(out, FALSE);
}

static const HnColumn env_columns[] = {
    { "date", "date", HN_COL_TEXT },          { "cpu", "processor", HN_COL_TEXT },
    { "isa", "instructions", HN_COL_TEXT },   { "threads", "threads", HN_COL_INT },
    { "quota", "CPU quota", HN_COL_NUMBER },  { "governor", "governor", HN_COL_TEXT },
    { "load", "load before", HN_COL_NUMBER }, { "kernel", "kernel", HN_COL_TEXT },
    { "device", "device", HN_COL_TEXT },      { "onednn", "oneDNN", HN_COL_TEXT },
};

static JsonNode *env_of(const HnReport *report)
{
    return hn_json_find(report->root, "env");
}

/* As a shell takes it. */
static char *command_of(const HnReport *report)
{
    JsonArray *words = json_object_get_array_member(json_node_get_object(env_of(report)), "command");
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < json_array_get_length(words); i++) {
        const char *word = json_array_get_string_element(words, i);
        g_autofree char *name = i == 0 ? g_path_get_basename(word) : NULL;
        const gboolean plain =
            strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=./:,+%@") == strlen(word);
        g_autofree char *quoted = plain && *word ? g_strdup(name ? name : word) : g_shell_quote(name ? name : word);
        g_string_append_printf(out, "%s%s", i ? " " : "", quoted);
    }
    g_autofree char *text = g_string_free(out, FALSE);
    return hn_text_clean(text);
}

/* --- Markdown ----------------------------------------------------------------------------------------------------- */

/* What GitHub's Markdown would take for more than the character: by backslashes, names of people kept from being told.
 */
static void md_text(GString *out, const char *s)
{
    for (const char *begin = s; *s; s++) {
        const gboolean inner = s > begin && g_ascii_isalnum(s[-1]) && g_ascii_isalnum(s[1]);
        if (*s == '@' || *s == '#')
            g_string_append_printf(out, "%c<!-- -->", *s);
        else if (strchr("\\`*[]<>|~&", *s) || (*s == '_' && !inner))
            g_string_append_printf(out, "\\%c", *s);
        else
            g_string_append_c(out, *s);
    }
}

/* The columns in which some row has something, and the first; free it with g_free(). */
static HnColumn *filled_columns(JsonArray *rows, const HnColumn *columns)
{
    g_autoptr(GArray) filled = g_array_new(TRUE, FALSE, sizeof(HnColumn));
    for (const HnColumn *c = columns; c->key; c++) {
        gboolean any = c == columns;
        for (guint i = 0; i < json_array_get_length(rows) && !any; i++) {
            g_autofree char *text = hn_part_cell(json_array_get_element(rows, i), c);
            any = strcmp(text, "-") != 0;
        }
        if (any)
            g_array_append_val(filled, *c);
    }
    return g_array_steal(filled, NULL);
}

static void md_row(GString *out, JsonNode *row, const HnColumn *columns)
{
    for (const HnColumn *c = columns; c->key; c++) {
        g_autofree char *text = hn_part_cell(row, c);
        g_string_append(out, c == columns ? "| " : " ");
        md_text(out, text);
        g_string_append(out, " |");
    }
    g_string_append_c(out, '\n');
}

static void md_table(GString *out, const HnReport *report, const HnPart *part)
{
    JsonArray *rows = hn_part_rows(report, part);
    const guint n = hn_part_shown(report, part);
    if (n == 0)
        return;
    g_autofree HnColumn *columns = filled_columns(rows, part->columns);
    for (const HnColumn *c = columns; c->key; c++) {
        g_string_append(out, c == columns ? "| " : " ");
        md_text(out, c->header);
        g_string_append(out, " |");
    }
    g_string_append_c(out, '\n');
    for (const HnColumn *c = columns; c->key; c++)
        g_string_append_printf(out, "%s%s", c == columns ? "|" : "", hn_column_is_text(c) ? ":--|" : "--:|");
    g_string_append_c(out, '\n');
    for (guint i = 0; i < n; i++)
        md_row(out, json_array_get_element(rows, i), columns);
    g_string_append_c(out, '\n');
    if (n < json_array_get_length(rows))
        g_string_append_printf(out, "%u of %u rows.\n\n", n, json_array_get_length(rows));
}

static void md_part(GString *out, const HnReport *report, guint i)
{
    const HnPart *part = part_at(report, i);
    if (part->kind == HN_PART_SECTION && is_filled(report, i, FALSE)) {
        g_string_append(out, "### ");
        md_text(out, part->name);
        g_string_append(out, "\n\n");
    } else if (part->kind == HN_PART_TABLE) {
        md_table(out, report, part);
    } else if ((part->kind == HN_PART_LINE && *part->text) || part->kind == HN_PART_FACT) {
        g_string_append(out, *part->text == ' ' ? "  - " : "- "); /* what is indented belongs to what is before it */
        if (part->kind == HN_PART_FACT) {
            g_string_append(out, "**");
            md_text(out, part->name);
            g_string_append(out, ":** ");
        }
        md_text(out, part->text + strspn(part->text, " "));
        g_string_append(out,
                        in_list(report, i + 1, HN_PART_LINE) || in_list(report, i + 1, HN_PART_FACT) ? "\n" : "\n\n");
    }
}

static void md_env(GString *out, const HnReport *report)
{
    g_autofree char *command = command_of(report);
    gsize ticks = 3; /* a fence is longer than any row of them in what it encloses */
    for (const char *p = command; *p; p++) {
        const gsize n = strspn(p, "`");
        ticks = MAX(ticks, n + 1);
    }
    g_autofree char *fence = g_strnfill(ticks, '`');
    g_string_append_printf(out, "<details><summary>Machine and command</summary>\n\n%s\n%s\n%s\n\n| | |\n|:--|:--|\n",
                           fence, command, fence);
    for (gsize i = 0; i < G_N_ELEMENTS(env_columns); i++) {
        g_autofree char *text = hn_part_cell(env_of(report), &env_columns[i]);
        if (strcmp(text, "-") == 0)
            continue;
        g_string_append_printf(out, "| %s | ", env_columns[i].header);
        md_text(out, text);
        g_string_append(out, " |\n");
    }
    g_string_append_printf(out, "| hone | %s |\n\n</details>\n", hn_version());
}

char *hn_report_md(HnReport *report)
{
    GString *out = g_string_new("## ");
    g_autofree char *title = title_of(report);
    md_text(out, title);
    g_string_append(out, "\n\n");
    for (guint i = 0; i < report->parts->len; i++)
        md_part(out, report, i);
    md_env(out, report);
    return g_string_free(out, FALSE);
}

/* --- HTML --------------------------------------------------------------------------------------------------------- */

static const char style[] =
    ":root{color-scheme:light dark;--fg:#1f2328;--dim:#59636e;--bg:#fff;--line:#d8dee4;--head:#f6f8fa;--bar:#dbeafe}\n"
    "@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--dim:#9198a1;--bg:#0d1117;--line:#30363d;--head:#161b22;"
    "--bar:#1e3a5f}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:72rem;margin:2rem auto;"
    "padding:0 1rem}\n"
    "h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
    ".sub,figcaption{color:var(--dim)}ul{margin:.5rem 0;padding-left:1.2rem}li{overflow-wrap:anywhere}"
    "li.more{margin-left:1.2rem;list-style:none}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0}\n"
    "th,td{padding:.2rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\n"
    "th{background:var(--head);font-weight:600}.t{text-align:left}td.t{white-space:normal;overflow-wrap:anywhere;"
    "min-width:6rem}td.t:first-child{min-width:14rem}\n"
    "tbody tr:hover{background:var(--head)}td.p{background:linear-gradient(to left,var(--bar) var(--w),transparent "
    "0)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:.5rem 0}dt{color:var(--dim)}"
    "dd{margin:0;overflow-wrap:anywhere}\n"
    "figure{margin:1rem 0}figure svg{width:100%;height:auto;background:#fff;border-radius:6px}\n"
    "pre{background:var(--head);padding:.7rem;overflow-x:auto}summary{cursor:pointer;color:var(--dim);margin:.5rem 0}\n"
    "@media print{body{margin:0}details{display:none}}\n";

static void html_text(GString *out, const char *s)
{
    g_autofree char *escaped = g_markup_escape_text(s, -1);
    g_string_append(out, escaped);
}

/* Parts of a whole are bars, too. */
static void html_cell(GString *out, JsonNode *row, const HnColumn *c)
{
    g_autofree char *text = hn_part_cell(row, c);
    JsonNode *node = hn_json_find(row, c->key);
    const gboolean part = (c->kind & ~HN_COL_MINOR) == HN_COL_PERCENT && strcmp(text, "-") != 0;
    const double x = part ? json_node_get_double(node) : 0;
    if (part && x >= 0 && x <= 1)
        g_string_append_printf(out, "<td class=p style=\"--w:%d%%\">", (int)(100 * x + 0.5));
    else
        g_string_append(out, hn_column_is_text(c) ? "<td class=t>" : "<td>");
    html_text(out, text);
}

static void html_rows(GString *out, JsonArray *rows, guint n, const HnColumn *columns)
{
    g_string_append(out, "<div class=wide><table><thead><tr>");
    for (const HnColumn *c = columns; c->key; c++) {
        g_string_append(out, hn_column_is_text(c) ? "<th class=t>" : "<th>");
        html_text(out, c->header);
    }
    g_string_append(out, "</thead><tbody>\n");
    for (guint i = 0; i < n; i++) {
        g_string_append(out, "<tr>");
        for (const HnColumn *c = columns; c->key; c++)
            html_cell(out, json_array_get_element(rows, i), c);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "</tbody></table></div>\n");
}

static void html_table(GString *out, const HnReport *report, const HnPart *part)
{
    JsonArray *rows = hn_part_rows(report, part);
    const guint n = hn_part_shown(report, part), all = n > 0 ? json_array_get_length(rows) : 0;
    if (n == 0)
        return;
    g_autofree HnColumn *columns = filled_columns(rows, part->columns);
    html_rows(out, rows, n, columns);
    if (n == all)
        return;
    g_string_append_printf(out, "<details><summary>all %u rows</summary>\n", all);
    html_rows(out, rows, all, columns);
    g_string_append(out, "</details>\n");
}

static void html_plot(GString *out, const HnPart *part)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *svg = hn_plot_svg(PLOT_SIZE, part->text, &error);
    if (svg) {
        g_string_append_printf(out, "<figure>%s<figcaption>", svg);
        html_text(out, part->name);
        g_string_append(out, "</figcaption></figure>\n");
        return;
    }
    g_string_append(out, "<p class=sub>Here would be a plot: ");
    html_text(out, part->name);
    g_string_append(out, " (");
    html_text(out, error->message);
    g_string_append(out, ").</p>\n");
}

/* Lines and facts that follow each other are a list. */
static void html_item(GString *out, const HnReport *report, guint i)
{
    const HnPart *part = part_at(report, i);
    const gboolean is_line = part->kind == HN_PART_LINE;
    if (i == 0 || !in_list(report, i - 1, part->kind))
        g_string_append(out, is_line ? "<ul>\n" : "<dl>\n");
    g_string_append(out, !is_line ? "<dt>" : *part->text == ' ' ? "<li class=more>" : "<li>");
    if (!is_line) {
        html_text(out, part->name);
        g_string_append(out, "<dd>");
    }
    html_text(out, part->text);
    g_string_append_c(out, '\n');
    if (i + 1 == report->parts->len || !in_list(report, i + 1, part->kind))
        g_string_append(out, is_line ? "</ul>\n" : "</dl>\n");
}

static void html_part(GString *out, const HnReport *report, guint i)
{
    const HnPart *part = part_at(report, i);
    if (part->kind == HN_PART_SECTION && is_filled(report, i, TRUE)) {
        g_string_append(out, "<h2>");
        html_text(out, part->name);
        g_string_append(out, "</h2>\n");
    } else if (part->kind == HN_PART_TABLE) {
        html_table(out, report, part);
    } else if (part->kind == HN_PART_PLOT) {
        html_plot(out, part);
    } else if (part->kind != HN_PART_SECTION && *part->text != '\0') {
        html_item(out, report, i);
    }
}

static void html_env(GString *out, const HnReport *report)
{
    g_autofree char *command = command_of(report);
    g_string_append(out, "<h2>Machine and command</h2>\n<pre>");
    html_text(out, command);
    g_string_append(out, "</pre>\n<dl>\n");
    for (gsize i = 0; i < G_N_ELEMENTS(env_columns); i++) {
        g_autofree char *text = hn_part_cell(env_of(report), &env_columns[i]);
        if (strcmp(text, "-") == 0)
            continue;
        g_string_append_printf(out, "<dt>%s<dd>", env_columns[i].header);
        html_text(out, text);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "</dl>\n");
}

/* The report for programs; nothing in it ends the element. */
static void html_json(GString *out, HnReport *report)
{
    g_autofree char *json = hn_report_json(report);
    g_autoptr(GString) text = g_string_new(json);
    g_string_replace(text, "<", "\\u003c", 0);
    g_string_append_printf(out, "<script type=\"application/json\" id=report>\n%s</script>\n", text->str);
}

char *hn_report_html(HnReport *report)
{
    GString *out = g_string_new("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
                                "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>");
    g_autofree char *title = title_of(report);
    g_autofree char *date = hn_part_cell(env_of(report), &env_columns[0]);
    g_autofree char *cpu = hn_part_cell(env_of(report), &env_columns[1]);
    html_text(out, title);
    g_string_append_printf(out, "</title>\n<style>\n%s</style></head><body>\n<h1>", style);
    html_text(out, title);
    g_string_append(out, "</h1>\n<p class=sub>");
    html_text(out, cpu);
    g_string_append_printf(out, ", %s, hone %s</p>\n", date, hn_version());
    for (guint i = 0; i < report->parts->len; i++)
        html_part(out, report, i);
    html_env(out, report);
    html_json(out, report);
    g_string_append(out, "</body></html>\n");
    return g_string_free(out, FALSE);
}
