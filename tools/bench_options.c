/* hone-bench: what its options mean together. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/plot.h"
#include "backends.h"
#include "hone_bench.h"

#define MAX_RUNS 1000000000000 /* of --runs */

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

#define MOST_SLOWER 1e4 /* of --fail-if-slower: 10,000 times */

static gboolean parse_part(const char *option, const char *text, double most, double *x, GError **error)
{
    double part;
    if (!text)
        return TRUE;
    if (!hn_parse_percent(text, &part, error)) {
        g_prefix_error(error, "option '%s': ", option);
        return FALSE;
    }
    if (!(part > 0 && part < most)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '%s' needs a part above 0 and below %.0f %%, such as 2%%",
                    option, most * 100);
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

static gboolean parse_streams(Bench *b, GError **error)
{
    g_autoptr(GArray) list = hn_parse_ints(b->p->streams, 1, BENCH_STREAMS, error);
    if (!list) {
        g_prefix_error(error, "option '--streams': ");
        return FALSE;
    }
    b->streams = 1;
    for (guint i = 0; i < list->len; i++)
        b->streams = MAX(b->streams, (int)g_array_index(list, gint64, i));
    return TRUE;
}

static gboolean parse_words(Bench *b, GError **error)
{
    const BenchParams *p = b->p;
    static const char *const noise[] = { "warn", "fail", NULL };
    static const char *const hints[] = { "latency", "throughput", NULL };
    int on_noise = parse_word("--on-noise", p->on_noise, noise, b->gate > 0, error);
    int hint = on_noise < 0 ? -1 : parse_word("--hint", p->hint, hints, 0, error);
    if (hint < 0)
        return FALSE;
    b->fail_on_noise = on_noise == 1;
    b->streams = hint == 1 ? 0 : 1;
    if (p->streams && !parse_streams(b, error))
        return FALSE;
    if (p->batch_max && strcmp(p->batch_max, "auto") != 0 &&
        !hn_parse_int(p->batch_max, 1, G_MAXINT32, &b->batch_limit, error)) {
        g_prefix_error(error, "option '--batch-max': ");
        return FALSE;
    }
    if (p->batch_max && !b->batch_limit)
        b->batch_limit = G_MAXINT32;
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
    return !p->training.train || (b->streams == 1 && !p->batch_max && !p->input && !p->io) ||
           hn_tool_usage(error, "option '--train' goes with one stream, and without '--batch-max', '--input' and "
                                "'--io'");
}

static gboolean check_instances(const Bench *b, GError **error)
{
    const BenchParams *p = b->p;
    if (p->instances != 0 && (p->instances < 2 || p->instances > HN_MAX_ROUNDS)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--instances' needs a number from 2 to %d", HN_MAX_ROUNDS);
        return FALSE;
    }
    if (!p->baseline && !p->instances)
        return TRUE;
    const HnContext *ctx = b->ctx;
    if (ctx->n_args == 1 && b->streams == 1 && strcmp(ctx->args[0], "-") != 0 &&
        strcmp(ctx->common.device, "null") != 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                "option '%s' is for one model in a file, one stream and a device that computes",
                p->baseline ? "--baseline" : "--instances");
    return FALSE;
}

int bench_sides(const Bench *b)
{
    return b->second ? 2 : b->ctx->n_args;
}

/* Other options choose what is measured of one device. */
static gboolean goes_with_two_devices(const Bench *b)
{
    const BenchParams *p = b->p;
    if (b->ctx->n_args > 1 || b->streams != 1 || strcmp(b->ctx->args[0], "-") == 0)
        return FALSE;
    if (p->batch_max || hn_tool_train_any_batch(&p->training))
        return FALSE;
    return !p->baseline && !p->instances && !p->steps;
}

/* --device A,B */
static gboolean open_second(Bench *b, GError **error)
{
    const char *name = b->ctx->common.device_b;
    if (!name)
        return TRUE;
    if (!goes_with_two_devices(b))
        return hn_tool_usage(error, "two devices are for one model in a file, without '--streams', '--batch-max', "
                                    "'--batch auto', '--baseline', '--instances' and '--steps'");
    return (b->second = hn_backend_find(name, error)) != NULL;
}

/* What is for devices with memory of their own, or without. */
static gboolean check_device(const Bench *b, GError **error)
{
    const gboolean apart = b->backend->memory != NULL && (!b->second || b->second->memory != NULL);
    if (b->p->batch_max && !b->ctx->common.mem_limit && !apart)
        return hn_tool_usage(error, "option '--batch-max' needs '--mem-limit'");
    for (guint i = 0; i < b->points->len && !apart; i++)
        if (((const Point *)b->points->pdata[i])->io == BENCH_DEVICE) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "option '--io': device '%s' has no memory of its own that inputs could stay in",
                        b->ctx->common.device);
            return FALSE;
        }
    return TRUE;
}

void bench_clear(Bench *b)
{
    bench_points_free(b);
    g_strfreev(b->labels);
    for (int i = 0; i < HN_MAX_SIDES; i++)
        g_free(b->hash[i]);
    g_clear_pointer(&b->baseline, json_node_unref);
    g_clear_error(&b->verdict);
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
    if (!parse_length(p, &b->measure, error) || !parse_part("--margin", p->margin, 1, &b->margin, error) ||
        !parse_part("--fail-if-slower", p->fail_if_slower, MOST_SLOWER, &b->gate, error))
        return FALSE;
    if (!parse_words(b, error) || (p->plot && !hn_plot_check(p->plot, error)))
        return FALSE;
    if (b->gate > 0 && ctx->n_args == 1 && !p->baseline && !ctx->common.device_b)
        return hn_tool_usage(error, "option '--fail-if-slower' needs two models or devices or more, or '--baseline'");
    if (ctx->n_args > HN_MAX_SIDES) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "at most %d models can be compared", HN_MAX_SIDES);
        return FALSE;
    }
    b->measure.raw = p->raw;
    b->measure.warm = b->warmup.kind == HN_WARMUP_AUTO || b->warmup.runs > 0 || b->warmup.seconds > 0;
    if (!bench_points(b, error) || !take_stdin(b, error))
        return FALSE;
    if (!check_training(b, error) || !check_instances(b, error) || !bench_loop_check(b, error) ||
        !bench_churn_check(b, error))
        return FALSE;
    b->backend = hn_tool_backend(ctx, error);
    if (!b->backend || !open_second(b, error) || !check_device(b, error) ||
        (p->baseline && !bench_baseline_read(b, error)))
        return FALSE;
    b->labels = make_labels(ctx->args, ctx->n_args);
    return TRUE;
}
