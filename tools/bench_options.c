/* hone-bench: what its options mean together. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/plot.h"
#include "hone_bench.h"

#define MAX_RUNS 1000000000000 /* of --runs */
#define MAX_POINTS 10000

static gboolean parse_length(const BenchParams *p, HnMeasureOptions *o, GError **error)
{
    *o = (HnMeasureOptions){ .until = HN_UNTIL_INTERVAL, .seconds = BENCH_LIMIT_S, .precision = 0.01 };
    if ((p->runs != -1) + (p->time != NULL) + (p->ci != NULL) > 1)
        return hn_tool_usage(error, "options '--runs', '--time' and '--ci' exclude each other");
    if (p->runs != -1) {
        o->until = HN_UNTIL_RUNS;
        o->runs = (guint64)p->runs;
        return (p->runs >= 1 && p->runs <= MAX_RUNS) ||
               hn_tool_usage(error, "option '--runs' needs a number from 1 on");
    }
    if (p->time) {
        o->until = HN_UNTIL_TIME;
        if (!hn_parse_seconds(p->time, &o->seconds, error)) {
            g_prefix_error(error, "option '--time': ");
            return FALSE;
        }
        return (o->seconds > 0 && o->seconds <= 1e9) || hn_tool_usage(error, "option '--time' needs a time above 0");
    }
    if (p->ci && !hn_parse_percent(p->ci, &o->precision, error)) {
        g_prefix_error(error, "option '--ci': ");
        return FALSE;
    }
    return (o->precision > 0 && o->precision < 1) ||
           hn_tool_usage(error, "option '--ci' needs a part of the median, such as 1%");
}

static gboolean parse_part(const char *option, const char *text, double *x, GError **error)
{
    double part;
    if (!text)
        return TRUE;
    if (!hn_parse_percent(text, &part, error)) {
        g_prefix_error(error, "option '%s': ", option);
        return FALSE;
    }
    if (!(part > 0 && part < 1)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '%s' needs a part above 0, such as 2%%", option);
        return FALSE;
    }
    *x = part;
    return TRUE;
}

/* The index of text in words (NULL at the end), `otherwise` where it is NULL. -1: USAGE. */
static int parse_word(const char *option, const char *text, const char *const *words, int otherwise, GError **error)
{
    if (!text)
        return otherwise;
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    g_autofree char *known = g_strjoinv(", ", (char **)words);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '%s': '%s' is none of %s", option, text, known);
    return -1;
}

static gboolean parse_words(Bench *b, GError **error)
{
    const BenchParams *p = b->p;
    static const char *const noise[] = { "warn", "fail", NULL };
    static const char *const hints[] = { "latency", "throughput", NULL };
    static const char *const io[] = { "reuse", "copy", NULL };
    int on_noise = parse_word("--on-noise", p->on_noise, noise, b->gate > 0, error);
    int hint = on_noise < 0 ? -1 : parse_word("--hint", p->hint, hints, 0, error);
    int copies = hint < 0 ? -1 : parse_word("--io", p->io, io, 0, error);
    if (copies < 0)
        return FALSE;
    b->fail_on_noise = on_noise == 1;
    b->copies = copies == 1;
    b->streams = p->streams ? p->streams : hint == 1 ? 0 : 1;
    if (p->streams < 0 || p->streams > BENCH_STREAMS) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--streams' needs a number from 1 to %d", BENCH_STREAMS);
        return FALSE;
    }
    if (p->batch_max && strcmp(p->batch_max, "auto") != 0 &&
        !hn_parse_int(p->batch_max, 1, G_MAXINT32, &b->batch_limit, error)) {
        g_prefix_error(error, "option '--batch-max': ");
        return FALSE;
    }
    if (p->batch_max && !b->batch_limit)
        b->batch_limit = G_MAXINT32;
    if (p->batch_max && !b->ctx->common.mem_limit)
        return hn_tool_usage(error, "option '--batch-max' needs '--mem-limit'");
    return !p->batch_max || b->ctx->n_args == 1 || hn_tool_usage(error, "option '--batch-max' is for one model");
}

/* What follows the last n slashes of path. */
static const char *tail(const char *path, int n)
{
    const char *p = path + strlen(path);
    while (p > path && !(p[-1] == '/' && --n == 0))
        p--;
    return p;
}

/* As few parts of each path as make them differ; "model.onnx" says nothing beside the folder's name. */
static char **make_labels(char *const *paths, int n)
{
    int parts = 1;
    for (int i = 0; i < n; i++)
        if (!strcmp(tail(paths[i], 1), "model.onnx"))
            parts = 2;
    for (gboolean same = TRUE; same && parts < 8; parts += same) {
        g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
        g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
        same = FALSE;
        for (int i = 0; i < n; i++) /* a model that is named twice cannot be told apart from itself */
            same |= g_hash_table_add(known, paths[i]) && !g_hash_table_add(seen, (gpointer)tail(paths[i], parts));
    }
    char **labels = g_new0(char *, n + 1);
    for (int i = 0; i < n; i++) {
        g_autofree char *name = g_strdup(strcmp(paths[i], "-") ? tail(paths[i], parts) : "stdin");
        if (parts > 1 && g_str_has_suffix(name, "/model.onnx"))
            name[strlen(name) - strlen("/model.onnx")] = 0;
        labels[i] = g_filename_display_name(name);
    }
    return labels;
}

/* --- points ------------------------------------------------------------------------------------------------------ */

typedef struct {
    char *name;     /* of a dimension; NULL: --threads */
    GArray *values; /* gint64 */
} Axis;

static void axis_clear(gpointer data)
{
    Axis *a = data;
    g_free(a->name);
    g_array_unref(a->values);
}

static gboolean has_axis(const GArray *axes, const char *name)
{
    for (guint i = 0; i < axes->len; i++)
        if (strcmp(g_array_index(axes, Axis, i).name, name) == 0)
            return TRUE;
    return FALSE;
}

/* The dimensions that have several values, in the order of the command line, and the threads. */
static gboolean make_axes(const Bench *b, GArray *axes, GError **error)
{
    for (char **p = b->p->dim; p && *p; p++) {
        const char *eq = strrchr(*p, '=');
        if (!eq || eq == *p) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--dim': '%s' is not of the form NAME=N", *p);
            return FALSE;
        }
        Axis a = { .values = hn_parse_ints(eq + 1, 0, G_MAXINT64, error) };
        if (!a.values) {
            g_prefix_error(error, "option '--dim': ");
            return FALSE;
        }
        a.name = g_strndup(*p, (gsize)(eq - *p));
        const gboolean known = has_axis(axes, a.name);
        g_array_append_val(axes, a);
        if (known) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "option '--dim' names '%s' twice; several values of one are a list, such as %s=1,8", a.name,
                        a.name);
            return FALSE;
        }
    }
    Axis threads = { NULL, g_array_ref(b->ctx->common.thread_list) };
    g_array_append_val(axes, threads);
    return TRUE;
}

static Point *make_point(const Bench *b, const GArray *axes, guint index, GError **error)
{
    Point *point = g_new0(Point, 1);
    g_autoptr(GString) label = g_string_new(NULL);
    int swept = 0;
    point->precision = b->p->precision ? b->p->precision : "model";
    point->shapes = hn_tool_shapes(NULL, b->p->shapes, error);
    for (guint i = axes->len; point->shapes && i-- > 0;) { /* the last axis changes fastest */
        const Axis *a = &g_array_index(axes, Axis, i);
        gint64 value = g_array_index(a->values, gint64, index % a->values->len);
        index /= a->values->len;
        if (a->name)
            hn_shapes_set_dim(point->shapes, a->name, value);
        else
            point->threads = (int)value;
        if (a->values->len == 1)
            continue;
        g_autofree char *one = a->name ? g_strdup_printf("%s=%" G_GINT64_FORMAT, a->name, value)
                                       : g_strdup_printf("t=%" G_GINT64_FORMAT, value);
        g_string_prepend(label, label->len ? "," : "");
        g_string_prepend(label, one);
        point->x = swept++ ? NAN : (double)value;
        g_free(point->x_name);
        point->x_name = isnan(point->x) ? NULL : g_strdup(a->name ? a->name : "threads");
    }
    if (swept == 0)
        point->x = NAN;
    point->label = g_strdup(label->str);
    return point;
}

static void point_free(gpointer data)
{
    Point *point = data;
    hn_shapes_free(point->shapes);
    g_free(point->label);
    g_free(point->x_name);
    g_free(point->batch_dim);
    g_free(point);
}

static gboolean make_points(Bench *b, GError **error)
{
    g_autoptr(GArray) axes = g_array_new(FALSE, FALSE, sizeof(Axis));
    g_array_set_clear_func(axes, axis_clear);
    guint n = 1;
    if (!make_axes(b, axes, error))
        return FALSE;
    for (guint i = 0; i < axes->len; i++) {
        guint values = g_array_index(axes, Axis, i).values->len;
        if (values == 0 || values > MAX_POINTS / n) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the sweep has more than %d points", MAX_POINTS);
            return FALSE;
        }
        n *= values;
    }
    b->points = g_ptr_array_new_with_free_func(point_free);
    for (guint i = 0; i < n; i++) {
        Point *point = make_point(b, axes, i, error);
        g_ptr_array_add(b->points, point);
        if (!point->shapes)
            return FALSE;
    }
    return TRUE;
}

void bench_points_free(Bench *b)
{
    if (b->points)
        g_ptr_array_unref(b->points);
    g_strfreev(b->labels);
    g_clear_error(&b->verdict);
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

static gboolean take_stdin(Bench *b, GError **error)
{
    HnContext *ctx = b->ctx;
    gboolean data_stdin = b->p->data && !strcmp(b->p->data, "-");
    for (int i = 0; i < ctx->n_args; i++)
        if (!strcmp(ctx->args[i], "-") && !hn_context_take_stdin(ctx, "the model", error))
            return FALSE;
    if (data_stdin && ctx->n_args > 1)
        return hn_tool_usage(error, "data from stdin serves one model, not several");
    if ((data_stdin || ctx->stdin_user) && b->points->len > 1)
        return hn_tool_usage(error, "stdin is read once, and not for each point of a sweep");
    if (data_stdin && b->p->batch_max)
        return hn_tool_usage(error, "option '--batch-max' is for random data");
    return !data_stdin || hn_context_take_stdin(ctx, "the data", error);
}

static gboolean check_training(const Bench *b, GError **error)
{
    const BenchParams *p = b->p;
    if (!hn_tool_train_check(&p->training, error))
        return FALSE;
    if (hn_tool_train_any_batch(&p->training) && (b->ctx->n_args > 1 || g_strcmp0(p->data, "-") == 0))
        return hn_tool_usage(error, "option '--batch auto' is for one model, and for data that can be read again");
    return !p->training.train || (b->streams == 1 && !p->batch_max && !p->input && !b->copies) ||
           hn_tool_usage(error, "option '--train' goes with one stream, and without '--batch-max', '--input' and "
                                "'--io copy'");
}

gboolean bench_options(Bench *b, GError **error)
{
    HnContext *ctx = b->ctx;
    const BenchParams *p = b->p;
    if (ctx->n_args == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "no model is named; '%s --help' tells how", ctx->tool->name);
        return FALSE;
    }
    if (!hn_warmup_parse(p->warmup ? p->warmup : "auto", &b->warmup, error)) {
        g_prefix_error(error, "option '--warmup': ");
        return FALSE;
    }
    b->margin = 0.02;
    b->ci_given = p->ci != NULL;
    if (!parse_length(p, &b->measure, error) || !parse_part("--margin", p->margin, &b->margin, error) ||
        !parse_part("--fail-if-slower", p->fail_if_slower, &b->gate, error))
        return FALSE;
    if (!parse_words(b, error) || (p->plot && !hn_plot_check(p->plot, error)))
        return FALSE;
    if (b->gate > 0 && ctx->n_args == 1)
        return hn_tool_usage(error, "option '--fail-if-slower' needs two models or more");
    if (ctx->n_args > HN_MAX_SIDES) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "at most %d models can be compared", HN_MAX_SIDES);
        return FALSE;
    }
    b->measure.warm = b->warmup.kind == HN_WARMUP_AUTO || b->warmup.runs > 0 || b->warmup.seconds > 0;
    if (!make_points(b, error) || !take_stdin(b, error))
        return FALSE;
    if (!check_training(b, error))
        return FALSE;
    b->backend = hn_tool_backend(ctx, error);
    if (!b->backend || !hn_tool_precision(b->ctx, b->p->precision, error))
        return FALSE;
    b->labels = make_labels(ctx->args, ctx->n_args);
    return TRUE;
}
