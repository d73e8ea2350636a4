#include "cli/report.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/jsonread.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/report_parts.h"

static void part_clear(gpointer data)
{
    HnPart *part = data;
    g_free(part->name);
    g_free(part->text);
}

/* Where and when, and by what command. */
static void set_env(const HnContext *ctx, const HnReportEnv *env, JsonObject *e)
{
    struct utsname name;
    g_autofree char *cpu = hn_cpu_model(NULL), *governor = hn_cpu_governor(NULL);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    g_autofree char *kernel = uname(&name) == 0 ? g_strdup_printf("%s %s", name.sysname, name.release) : NULL;
    const double quota = hn_cpu_quota(NULL);
    JsonArray *command = json_array_new();
    for (char **arg = ctx->argv; arg && *arg; arg++)
        json_array_add_string_element(command, *arg);
    json_object_set_string_member(e, "cpu", cpu);
    json_object_set_string_member(e, "isa", hn_cpu_isa_name(hn_cpu_isa()));
    json_object_set_int_member(e, "threads", ctx->common.threads);
    json_object_set_double_member(e, "quota", quota > 0 ? quota : NAN);
    json_object_set_string_member(e, "onednn", env->onednn);
    json_object_set_string_member(e, "device", env->device ? env->device : ctx->common.device);
    json_object_set_string_member(e, "governor", governor);
    json_object_set_double_member(e, "load", ctx->load);
    json_object_set_string_member(e, "kernel", kernel);
    json_object_set_string_member(e, "date", date);
    json_object_set_array_member(e, "command", command);
}

HnReport *hn_report_new(HnContext *ctx, const char *schema, const HnReportEnv *env)
{
    HnReport *r = g_new0(HnReport, 1);
    r->ctx = ctx;
    r->parts = g_array_new(FALSE, TRUE, sizeof(HnPart));
    g_array_set_clear_func(r->parts, part_clear);
    r->root = json_node_init_object(json_node_alloc(), json_object_new());
    json_object_unref(json_node_get_object(r->root)); /* the node holds it */

    JsonObject *e = json_object_new(), *root = hn_report_root(r);
    set_env(ctx, env, e);
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

static void add_table(HnReport *report, const char *path, const HnColumn *columns, gboolean csv, guint top)
{
    HnPart part = { .kind = HN_PART_TABLE, .name = g_strdup(path), .columns = columns, .csv = csv, .top = top };
    g_array_append_val(report->parts, part);
}

void hn_report_table(HnReport *report, const char *path, const HnColumn *columns)
{
    add_table(report, path, columns, FALSE, 0);
}

void hn_report_top_table(HnReport *report, const char *path, const HnColumn *columns, guint top)
{
    add_table(report, path, columns, FALSE, top);
}

void hn_report_csv_table(HnReport *report, const char *path, const HnColumn *columns)
{
    add_table(report, path, columns, TRUE, 0);
}

static void add_text(HnReport *report, HnPartKind kind, const char *name, const char *format, va_list args)
{
    g_autofree char *text = g_strdup_vprintf(format, args);
    HnPart part = { .kind = kind, .name = name ? hn_text_clean(name) : NULL, .text = hn_text_clean(text) };
    g_array_append_val(report->parts, part);
}

void hn_report_line(HnReport *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_text(report, HN_PART_LINE, NULL, format, args);
    va_end(args);
}

void hn_report_fact(HnReport *report, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_text(report, HN_PART_FACT, name, format, args);
    va_end(args);
}

void hn_report_section(HnReport *report, const char *title)
{
    HnPart part = { .kind = HN_PART_SECTION, .name = hn_text_clean(title) };
    g_array_append_val(report->parts, part);
}

void hn_report_plot(HnReport *report, const char *caption, const char *commands)
{
    HnPart part = { .kind = HN_PART_PLOT, .name = hn_text_clean(caption), .text = g_strdup(commands) };
    g_array_append_val(report->parts, part);
}

JsonArray *hn_part_rows(const HnReport *report, const HnPart *part)
{
    JsonNode *node = hn_json_find(report->root, part->name);
    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

guint hn_part_shown(const HnReport *report, const HnPart *part)
{
    JsonArray *rows = hn_part_rows(report, part);
    const guint n = rows ? json_array_get_length(rows) : 0;
    return part->csv || !part->columns->key ? 0 : part->top ? MIN(n, part->top) : n;
}

gboolean hn_column_is_text(const HnColumn *column)
{
    const HnColumnKind kind = column->kind & ~HN_COL_MINOR;
    return kind == HN_COL_TEXT || kind == HN_COL_PROSE;
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

char *hn_part_cell(JsonNode *row, const HnColumn *column)
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
    const HnPart *part = NULL;
    for (guint i = 0; i < report->parts->len; i++) {
        const HnPart *p = &g_array_index(report->parts, HnPart, i);
        if (p->kind == HN_PART_TABLE && (!part || (p->csv && !part->csv)))
            part = p;
    }
    if (!part)
        return g_string_free(out, FALSE);
    for (const HnColumn *c = part->columns; c->key; c++)
        put_field(out, c->key, !c[1].key);
    JsonArray *rows = hn_part_rows(report, part);
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

/* For a file, or a stdout that nobody looks at as a table. */
static char *render(HnReport *report, HnFormat format)
{
    switch (format) {
    case HN_FORMAT_JSON:
        return hn_report_json(report);
    case HN_FORMAT_CSV:
        return hn_report_csv(report);
    case HN_FORMAT_MD:
        return hn_report_md(report);
    case HN_FORMAT_HTML:
        return hn_report_html(report);
    default:
        return hn_report_text(report, 0, FALSE);
    }
}

static gboolean save_as(HnReport *report, HnFormat format, const char *file, GError **error)
{
    g_autofree char *text = render(report, format);
    return save(file, text, error);
}

/* To the file of --report. */
static gboolean save_report(HnReport *report, GError **error)
{
    const char *file = report->ctx->common.report;
    HnFormat format;
    return file == NULL || !hn_format_parse(strrchr(file, '.') + 1, &format) || save_as(report, format, file, error);
}

/* What options name: FALSE in *talk where stdout is taken by one of them. */
static gboolean save_asked(HnReport *report, gboolean *talk, GError **error)
{
    const HnCommon *c = &report->ctx->common;
    const gboolean page = c->format == HN_FORMAT_MD || c->format == HN_FORMAT_HTML;
    *talk = !page && !(c->json && !c->json_file) && !(c->csv && !c->csv_file);
    if (c->json && !save_as(report, HN_FORMAT_JSON, c->json_file, error))
        return FALSE;
    if (c->csv && !save_as(report, HN_FORMAT_CSV, c->csv_file, error))
        return FALSE;
    return save_report(report, error) && (!page || save_as(report, c->format, NULL, error));
}

gboolean hn_report_write(HnReport *report, GError **error)
{
    const gboolean taken = report->ctx->stdout_user != NULL;
    gboolean talk;
    hn_bar_wipe(report->ctx->bar);
    if (!save_asked(report, &talk, error))
        return FALSE;
    if (!talk || report->ctx->common.quiet)
        return TRUE;
    const int fd = taken ? STDERR_FILENO : STDOUT_FILENO;
    const char *no_color = g_getenv("NO_COLOR");
    const gboolean bold = isatty(fd) && !(no_color && *no_color) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
    g_autofree char *text = hn_report_text(report, hn_terminal_width(fd), bold);
    if (!taken)
        return save(NULL, text, error);
    put_stderr(text);
    return TRUE;
}
