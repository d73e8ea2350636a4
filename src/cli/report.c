#include "cli/report.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/jsonread.h"
#include "base/text.h"
#include "cli/json.h"

#define GAP 2         /* blanks between columns */
#define LEAST_TEXT 7  /* a text column is not cut below this */
#define GOOD_TEXT 16  /* nor below this while there are minor columns to leave out */
#define HIDDEN (-GAP) /* width of what is left out */

/* a line of text, or a table */
typedef struct {
    char *line;
    char *path;
    const HnColumn *columns;
    gboolean csv; /* for CSV alone */
    guint top;    /* rows shown in the text; 0: all */
} Part;

struct HnReport {
    HnContext *ctx;
    JsonNode *root;
    GArray *parts;
};

static void part_clear(gpointer data)
{
    Part *part = data;
    g_free(part->line);
    g_free(part->path);
}

HnReport *hn_report_new(HnContext *ctx, const char *schema, const HnReportEnv *env)
{
    HnReport *r = g_new0(HnReport, 1);
    r->ctx = ctx;
    r->parts = g_array_new(FALSE, TRUE, sizeof(Part));
    g_array_set_clear_func(r->parts, part_clear);
    r->root = json_node_init_object(json_node_alloc(), json_object_new());
    json_object_unref(json_node_get_object(r->root)); /* the node holds it */

    JsonObject *e = json_object_new(), *root = hn_report_root(r);
    g_autofree char *cpu = hn_cpu_model(NULL);
    double quota = hn_cpu_quota(NULL);
    json_object_set_string_member(e, "cpu", cpu);
    json_object_set_string_member(e, "isa", hn_cpu_isa_name(hn_cpu_isa()));
    json_object_set_int_member(e, "threads", ctx->common.threads);
    json_object_set_double_member(e, "quota", quota > 0 ? quota : NAN);
    json_object_set_string_member(e, "onednn", env->onednn);
    json_object_set_string_member(e, "device", env->device ? env->device : ctx->common.device);
    json_object_set_string_member(root, "schema", schema);
    json_object_set_string_member(root, "hone", hn_version());
    json_object_set_object_member(root, "env", e);
    return r;
}

void hn_report_free(HnReport *report)
{
    if (!report)
        return;
    json_node_unref(report->root);
    g_array_unref(report->parts);
    g_free(report);
}

JsonObject *hn_report_root(HnReport *report)
{
    return json_node_get_object(report->root);
}

void hn_report_table(HnReport *report, const char *path, const HnColumn *columns)
{
    Part part = { .path = g_strdup(path), .columns = columns };
    g_array_append_val(report->parts, part);
}

void hn_report_top_table(HnReport *report, const char *path, const HnColumn *columns, guint top)
{
    Part part = { .path = g_strdup(path), .columns = columns, .top = top };
    g_array_append_val(report->parts, part);
}

void hn_report_csv_table(HnReport *report, const char *path, const HnColumn *columns)
{
    Part part = { .path = g_strdup(path), .columns = columns, .csv = TRUE };
    g_array_append_val(report->parts, part);
}

void hn_report_line(HnReport *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    Part part = { .line = hn_text_clean(text) };
    g_array_append_val(report->parts, part);
}

static JsonArray *table_rows(HnReport *report, const Part *part)
{
    JsonNode *node = hn_json_find(report->root, part->path);
    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static gboolean is_number(JsonNode *node)
{
    GType type = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
    return type == G_TYPE_INT64 || (type == G_TYPE_DOUBLE && isfinite(json_node_get_double(node)));
}

static char *number_cell(JsonNode *node, HnColumnKind kind)
{
    double x = json_node_get_double(node);
    switch (kind) {
    case HN_COL_MS:
        return hn_text_time(x * 1e-3);
    case HN_COL_BYTES:
        return x >= 0 && x < 0x1p63 ? hn_text_size((guint64)x) : hn_text_number(x);
    case HN_COL_PERCENT:
        return hn_text_percent(x);
    case HN_COL_NUMBER:
        return hn_text_number(x);
    default:
        return json_node_get_value_type(node) == G_TYPE_INT64
                   ? g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node))
                   : hn_json_number(x);
    }
}

/* what a cell shows: "-" for null and for what is missing */
static char *cell_text(JsonNode *row, const HnColumn *column)
{
    JsonNode *node = hn_json_find(row, column->key);
    if (is_number(node))
        return number_cell(node, column->kind & ~HN_COL_MINOR);
    if (node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
        return hn_text_clean(json_node_get_string(node));
    if (node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_BOOLEAN)
        return g_strdup(json_node_get_boolean(node) ? "yes" : "no");
    if (node && (JSON_NODE_HOLDS_ARRAY(node) || JSON_NODE_HOLDS_OBJECT(node))) {
        g_autofree char *text = hn_json_text(node);
        g_strdelimit(text, "\n", ' ');
        return hn_text_clean(g_strstrip(text));
    }
    return g_strdup("-");
}

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

static void put_table(GString *out, HnReport *report, const Part *part, int limit, gboolean bold)
{
    JsonArray *rows = table_rows(report, part);
    guint n_rows = rows ? json_array_get_length(rows) : 0;
    int n = 0;
    if (part->top)
        n_rows = MIN(n_rows, part->top);
    while (part->columns[n].key)
        n++;
    if (!n_rows || !n)
        return;

    g_autofree int *widths = g_new0(int, n);
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    for (int c = 0; c < n; c++)
        widths[c] = text_width(part->columns[c].header);
    for (guint i = 0; i < n_rows; i++) {
        for (int c = 0; c < n; c++) {
            char *text = cell_text(json_array_get_element(rows, i), &part->columns[c]);
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

char *hn_report_text(HnReport *report, int width, gboolean bold)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < report->parts->len; i++) {
        const Part *part = &g_array_index(report->parts, Part, i);
        if (part->line)
            hn_terminal_wrap(out, part->line, width);
        else if (!part->csv)
            put_table(out, report, part, width, bold);
    }
    return g_string_free(out, FALSE);
}

/* A field of RFC 4180, lines ended by \n: quoted where it has a comma, a quote or a line break. */
static void put_field(GString *out, const char *s, gboolean last)
{
    if (s[strcspn(s, ",\"\r\n")]) {
        g_string_append_c(out, '"');
        for (; *s; s++)
            g_string_append(out, *s == '"' ? "\"\"" : (char[]){ *s, 0 });
        g_string_append_c(out, '"');
    } else {
        g_string_append(out, s);
    }
    g_string_append_c(out, last ? '\n' : ',');
}

/* Names come out of files: without what a terminal acts upon, and a spreadsheet, which takes what begins like a formula
 * for one, gets a quote before it. */
static char *csv_text(const char *text)
{
    g_autofree char *clean = hn_text_clean(text);
    return g_strconcat(*clean && strchr("=+-@", *clean) ? "'" : "", clean, NULL);
}

static char *csv_cell(JsonNode *row, const HnColumn *column)
{
    JsonNode *node = hn_json_find(row, column->key);
    if (!node || JSON_NODE_HOLDS_NULL(node))
        return g_strdup("");
    if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
        return csv_text(json_node_get_string(node));
    if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_DOUBLE && !is_number(node))
        return g_strdup("");
    return g_strchomp(hn_json_text(node));
}

char *hn_report_csv(HnReport *report)
{
    GString *out = g_string_new(NULL);
    const Part *part = NULL;
    for (guint i = 0; i < report->parts->len; i++) {
        const Part *p = &g_array_index(report->parts, Part, i);
        if (p->path && (!part || (p->csv && !part->csv)))
            part = p;
    }
    if (!part)
        return g_string_free(out, FALSE);
    for (const HnColumn *c = part->columns; c->key; c++)
        put_field(out, c->key, !c[1].key);
    JsonArray *rows = table_rows(report, part);
    for (guint i = 0; rows && i < json_array_get_length(rows); i++) {
        for (const HnColumn *c = part->columns; c->key; c++) {
            g_autofree char *text = csv_cell(json_array_get_element(rows, i), c);
            put_field(out, text, !c[1].key);
        }
    }
    return g_string_free(out, FALSE);
}

char *hn_report_json(HnReport *report)
{
    return hn_json_text(report->root);
}

static gboolean save(const char *file, const char *text, GError **error)
{
    return hn_out_save(file ? file : "-", text, strlen(text), error);
}

/* talk on stderr: what cannot be written there is lost */
static void put_stderr(const char *text)
{
    gsize len = strlen(text);
    for (gsize at = 0; at < len;) {
        ssize_t n = write(STDERR_FILENO, text + at, len - at);
        if (n <= 0)
            return;
        at += (gsize)n;
    }
}

gboolean hn_report_write(HnReport *report, GError **error)
{
    const HnCommon *common = &report->ctx->common;
    gboolean taken = report->ctx->stdout_user != NULL;
    hn_bar_wipe(report->ctx->bar);
    if (common->json) {
        g_autofree char *text = hn_report_json(report);
        if (!save(common->json_file, text, error))
            return FALSE;
    }
    if (common->csv) {
        g_autofree char *text = hn_report_csv(report);
        if (!save(common->csv_file, text, error))
            return FALSE;
    }
    if ((common->json && !common->json_file) || (common->csv && !common->csv_file))
        return TRUE; /* stdout has it */
    if (common->quiet)
        return TRUE;
    int fd = taken ? STDERR_FILENO : STDOUT_FILENO;
    const char *no_color = g_getenv("NO_COLOR");
    gboolean bold = isatty(fd) && !(no_color && *no_color) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
    g_autofree char *text = hn_report_text(report, hn_terminal_width(fd), bold);
    if (!taken)
        return save(NULL, text, error);
    put_stderr(text);
    return TRUE;
}
