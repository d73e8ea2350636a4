/* hone-diff: two models, or one on two devices, on the same data: where do they begin to differ. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "check/layer_diff.h"
#include "cli/plot.h"
#include "cli/report.h"
#include "common.h"
#include "backends.h"

typedef struct {
    gboolean per_layer;
    char *data, *device_b, *precision, *max_isa;
    char **input, **dim, **shapes;
    double min_sqnr, min_cos;
    int samples, top;
    HnToolDataParams from;
} Params;

static const Params defaults = { .min_sqnr = NAN, .min_cos = NAN };

static const GOptionEntry entries[] = {
    { "per-layer", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, per_layer),
      "compare every tensor that both models have, not their outputs alone", NULL },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, data),
      "samples: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-' or random[:N] (default: "
      "random)",
      "SRC" },
    { "samples", 0, 0, G_OPTION_ARG_INT, HN_FIELD(Params, samples), "only the first N samples", "N" },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(Params, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list]; may be repeated", "NAME=VALUE" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, dim),
      "a dimension of random data, such as batch=8 (default: 1)", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, shapes),
      "shapes of random data, such as x:1x3x224x224", "LIST" },
    { "device-b", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(Params, device_b),
      "what computes the second model (default: as --device)", "DEVICE" },
    { "precision", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(Params, precision),
      "what the second model computes in, as of hone-run, or both: bf16 beside what the model says (default: model)",
      "[TYPE,]TYPE" },
    { "max-isa", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(Params, max_isa),
      "instructions that the second model may use at most, or both: none, avx2, avx512, vnni, bf16 or amx",
      "[LEVEL,]LEVEL" },
    { "top", 0, 0, G_OPTION_ARG_INT, HN_FIELD(Params, top), "show the N worst tensors only", "N" },
    { "min-sqnr", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, min_sqnr),
      "fail (3) where an output's signal-to-noise ratio is below DB decibels", "DB" },
    { "min-cos", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, min_cos),
      "fail (3) where the cosine between two outputs is below C", "C" },
    HN_TOOL_DATA_ENTRIES(Params, from),
    G_OPTION_ENTRY_NULL,
};

typedef struct {
    HnContext *ctx;
    const Params *p;
    const HnBackend *backend[2];
    const char *precision[2];
    HnIsa isa[2];
    GStrv precisions, levels; /* as options name them */
    HnModel *model[2];
    const char *path[2];
    HnShapes *shapes;
    HnToolInputs given;
    HnLayerDiff *steps;
    HnData *data;
    int64_t done; /* samples */
} Diff;

/* --- set-up ------------------------------------------------------------------------------------------------------- */

/* Options that make the two sides different. */
static int n_ways(const Diff *d)
{
    const Params *p = d->p;
    return (d->ctx->common.device_b != NULL) + (p->device_b != NULL) + (p->precision != NULL) + (p->max_isa != NULL);
}

static gboolean exclude(const Diff *d, GError **error)
{
    const Params *p = d->p;
    const char *device = p->device_b != NULL ? "--device-b" : d->ctx->common.device_b != NULL ? "--device" : NULL;
    const char *one = p->precision != NULL ? "--precision" : p->max_isa != NULL ? "--max-isa" : "--device";
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' excludes '%s': one thing at a time is compared", one,
                device != NULL ? device : "--max-isa");
    return FALSE;
}

/* "A,B", or "B": of the second side alone. */
static gboolean find_pair(const char *option, const char *text, GStrv *list, const char **pair, GError **error)
{
    if (text == NULL)
        return TRUE;
    *list = g_strsplit(text, ",", -1);
    const guint n = g_strv_length(*list);
    if (n == 0 || n > 2) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '%s': '%s' is neither one nor two", option, text);
        return FALSE;
    }
    pair[0] = n == 2 ? (*list)[0] : NULL;
    pair[1] = (*list)[n - 1];
    return TRUE;
}

static gboolean find_precisions(Diff *d, GError **error)
{
    if (!find_pair("--precision", d->p->precision, &d->precisions, d->precision, error))
        return FALSE;
    return hn_tool_precision(d->ctx, d->precision[0], error) && hn_tool_precision(d->ctx, d->precision[1], error);
}

static gboolean find_level(const char *name, HnIsa *isa, GError **error)
{
    if (!hn_cpu_isa_parse(name, isa)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--max-isa': '%s' is none of " HN_ISA_NAMES, name);
        return FALSE;
    }
    if (*isa <= hn_cpu_isa())
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "option '--max-isa': there is no '%s' here, the most is '%s'",
                name, hn_cpu_isa_name(hn_cpu_isa()));
    return FALSE;
}

static gboolean find_levels(Diff *d, GError **error)
{
    const char *names[2] = { NULL, NULL };
    if (!find_pair("--max-isa", d->p->max_isa, &d->levels, names, error))
        return FALSE;
    for (int i = 0; i < 2; i++) {
        d->isa[i] = hn_cpu_isa();
        if (names[i] != NULL && !find_level(names[i], &d->isa[i], error))
            return FALSE;
    }
    if (d->p->max_isa != NULL && strcmp(d->ctx->common.device, "cpu") != 0)
        return hn_tool_usage(error, "'--max-isa' is for device 'cpu'");
    return TRUE;
}

static gboolean check_options(Diff *d, GError **error)
{
    const HnContext *ctx = d->ctx;
    const Params *p = d->p;
    if (ctx->n_args == 0 || (ctx->n_args == 1 && n_ways(d) == 0))
        return hn_tool_usage(error, "name two models, or one and '--device-b', '--precision' or '--max-isa'");
    if (n_ways(d) > 1)
        return exclude(d, error);
    if (!find_precisions(d, error) || !find_levels(d, error))
        return FALSE;
    if (ctx->n_args > 2) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "two models are enough: what is '%s'?", ctx->args[2]);
        return FALSE;
    }
    d->path[0] = ctx->args[0];
    d->path[1] = ctx->args[ctx->n_args - 1];
    if (!strcmp(d->path[0], "-") && !strcmp(d->path[1], "-"))
        return hn_tool_usage(error, "only one model can come from stdin, and be read once");
    if (p->samples < 0 || p->top < 0)
        return hn_tool_usage(error, "a number of samples or tensors is not negative");
    if (p->min_cos > 1 || p->min_cos < -1)
        return hn_tool_usage(error, "option '--min-cos': a cosine is between -1 and 1");
    return TRUE;
}

static gboolean find_backends(Diff *d, GError **error)
{
    d->backend[0] = hn_tool_backend(d->ctx, error);
    if (d->backend[0] == NULL)
        return FALSE;
    const char *second = d->p->device_b != NULL ? d->p->device_b : d->ctx->common.device_b;
    d->backend[1] = second != NULL ? hn_backend_find(second, error) : d->backend[0];
    for (int i = 0; i < 2; i++) {
        if (d->backend[i] == NULL)
            return FALSE;
        if (!d->backend[i]->computes) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device '%s' computes nothing that could be compared",
                        d->backend[i]->name);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean open_data(Diff *d, GError **error)
{
    const Params *p = d->p;
    if (p->data != NULL && !strcmp(p->data, "-") && !hn_context_take_stdin(d->ctx, "the data", error))
        return FALSE;
    const int n = hn_layer_diff_n_inputs(d->steps);
    g_autofree HnValue **inputs = g_new0(HnValue *, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        inputs[i] = (HnValue *)hn_layer_diff_input(d->steps, i);
    d->data = hn_tool_open_feed(d->ctx,
                                &(HnToolFeed){ .from = &p->from,
                                               .path = d->path[0],
                                               .source = hn_tool_gives_all(&d->given, inputs, n) ? NULL : p->data,
                                               .shapes = d->shapes,
                                               .sizes = p->dim || p->shapes ? "'--dim' and '--shapes'" : NULL,
                                               .given = &d->given },
                                inputs, n, error);
    return d->data != NULL;
}

static gboolean prepare(Diff *d, GError **error)
{
    if (!check_options(d, error) || !find_backends(d, error) ||
        (d->shapes = hn_tool_shapes(d->p->dim, d->p->shapes, error)) == NULL)
        return FALSE;
    for (int i = 0; i < 2; i++)
        if ((d->model[i] = hn_tool_read_model(d->ctx, d->path[i], error)) == NULL)
            return FALSE;
    if (!hn_tool_inputs(d->ctx, d->model[0], &d->p->from, d->path[0], d->shapes, d->p->input, &d->given, error))
        return FALSE;
    if (d->given.feeds->pdata[0] != NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "option '--input': '%s' is an initializer, which stays as it is", (char *)d->given.feeds->pdata[0]);
        return FALSE;
    }
    HnLayerDiffOptions o = { .per_layer = d->p->per_layer,
                             .threads = d->ctx->common.threads,
                             .strict_math = d->ctx->common.strict_math,
                             .seed = d->ctx->common.seed,
                             .budget = d->ctx->budget,
                             .progress = &d->ctx->progress };
    HnSide side[2];
    for (int i = 0; i < 2; i++)
        side[i] = (HnSide){ .model = d->model[i],
                            .backend = d->backend[i],
                            .bf16 = g_strcmp0(d->precision[i], "bf16") == 0,
                            .max_isa = 1 + (int)d->isa[i] };
    d->steps = hn_layer_diff_new(&side[0], &side[1], &o, error);
    return d->steps != NULL && open_data(d, error);
}

static void diff_clear(Diff *d)
{
    hn_data_free(d->data);
    hn_layer_diff_free(d->steps);
    if (d->given.names != NULL)
        hn_tool_inputs_clear(&d->given);
    hn_shapes_free(d->shapes);
    g_strfreev(d->precisions);
    g_strfreev(d->levels);
    hn_model_free(d->model[0]);
    hn_model_free(d->model[1]);
}

static gboolean run_all(Diff *d, GError **error)
{
    int64_t n = hn_data_count(d->data);
    if (d->p->samples > 0)
        n = MIN(n, d->p->samples);
    while (d->done < n) {
        if (hn_progress_stop(&d->ctx->progress, error))
            return FALSE;
        g_autoptr(HnSample) s = hn_data_load(d->data, d->done, error);
        if (s == NULL)
            return FALSE;
        for (int i = 0; i < 2 && d->done == 0; i++)
            hn_tool_note_device(d->ctx, d->model[i], d->backend[i], s->in);
        if (!hn_layer_diff_run(d->steps, s->in, error)) {
            if (error != NULL && !g_error_matches(*error, HN_ERROR, HN_ERROR_INTERRUPTED) && n > 1)
                g_prefix_error(error, "sample '%s': ", s->name);
            return FALSE;
        }
        d->done++;
    }
    return TRUE;
}

/* --- report ------------------------------------------------------------------------------------------------------- */

static const HnColumn layer_columns[] = {
    { "name", "tensor", HN_COL_TEXT },
    { "op", "node", HN_COL_TEXT },
    { "accumulated.max_abs", "worst", HN_COL_NUMBER },
    { "accumulated.sqnr_db", "SQNR dB", HN_COL_NUMBER },
    { "isolated.max_abs", "alone", HN_COL_NUMBER },
    { "isolated.sqnr_db", "SQNR dB", HN_COL_NUMBER },
    { "mark", "", HN_COL_TEXT },
    { 0 },
};

static const HnColumn output_columns[] = {
    { "name", "output", HN_COL_TEXT },
    { "type", "type", HN_COL_TEXT },
    { "accumulated.max_abs", "worst", HN_COL_NUMBER },
    { "accumulated.max_rel", "relative", HN_COL_NUMBER },
    { "accumulated.sqnr_db", "SQNR dB", HN_COL_NUMBER },
    { "accumulated.cos", "cosine", HN_COL_NUMBER },
    { "mark", "", HN_COL_TEXT },
    { 0 },
};

static const HnColumn csv_columns[] = {
    { "name", "tensor", HN_COL_TEXT },
    { "name_b", "tensor of B", HN_COL_TEXT },
    { "node", "node", HN_COL_TEXT },
    { "op", "operator", HN_COL_TEXT },
    { "type", "type", HN_COL_TEXT },
    { "type_b", "type of B", HN_COL_TEXT },
    { "matched_by", "matched by", HN_COL_TEXT },
    { "accumulated.max_abs", "worst", HN_COL_NUMBER },
    { "accumulated.max_rel", "relative", HN_COL_NUMBER },
    { "accumulated.cos", "cosine", HN_COL_NUMBER },
    { "accumulated.sqnr_db", "SQNR dB", HN_COL_NUMBER },
    { "isolated.max_abs", "worst alone", HN_COL_NUMBER },
    { "isolated.max_rel", "relative", HN_COL_NUMBER },
    { "isolated.cos", "cosine", HN_COL_NUMBER },
    { "isolated.sqnr_db", "SQNR dB", HN_COL_NUMBER },
    { "mark", "mark", HN_COL_TEXT },
    { 0 },
};

/* The lower the worse; NaN (only one side is finite) is the worst, no comparison the best. */
static double score(const HnTensorError *e)
{
    return e->samples == 0 ? INFINITY : isnan(e->sqnr) ? -INFINITY : e->sqnr;
}

static double row_score(const HnLayerDiffRow *r)
{
    return r->differs ? -INFINITY : MIN(score(&r->accumulated), score(&r->isolated));
}

/* The worst row by one of the errors, NULL where there is no difference at all. */
static const HnLayerDiffRow *worst_row(const Diff *d, gboolean isolated)
{
    const HnLayerDiffRow *worst = NULL;
    for (guint i = 0; i < hn_layer_diff_rows(d->steps); i++) {
        const HnLayerDiffRow *r = hn_layer_diff_row(d->steps, i);
        const HnTensorError *e = isolated ? &r->isolated : &r->accumulated;
        const HnTensorError *w = worst == NULL ? NULL : isolated ? &worst->isolated : &worst->accumulated;
        if (e->samples > 0 && e->max_abs > 0 && (w == NULL || score(e) < score(w)))
            worst = r;
    }
    return worst;
}

static void set_error(JsonObject *row, const char *name, const HnTensorError *e)
{
    if (e->samples == 0) {
        json_object_set_null_member(row, name);
        return;
    }
    JsonObject *o = json_object_new();
    json_object_set_boolean_member(o, "equal", e->max_abs == 0); /* bit by bit or not: -0 equals 0 */
    json_object_set_double_member(o, "max_abs", e->max_abs);
    json_object_set_double_member(o, "max_rel", e->max_rel);
    json_object_set_double_member(o, "cos", e->cos);
    json_object_set_double_member(o, "sqnr_db", e->sqnr);
    json_object_set_object_member(row, name, o);
}

static JsonObject *row_object(const HnLayerDiffRow *r, const char *mark)
{
    static const char *const by[] = { "name", "position", "order" };
    const HnNode *n = r->match.b->producer;
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "name", r->match.a->name);
    json_object_set_string_member(o, "name_b", r->match.b->name);
    json_object_set_string_member(o, "node", hn_node_label(n));
    json_object_set_string_member(o, "op", n->op_type);
    json_object_set_string_member(o, "type", r->type_a);
    json_object_set_string_member(o, "type_b", r->type_b);
    json_object_set_string_member(o, "matched_by", by[r->match.by]);
    json_object_set_boolean_member(o, "output", r->is_output);
    json_object_set_boolean_member(o, "comparable", !r->differs);
    json_object_set_boolean_member(o, "rescaled", r->rescaled);
    set_error(o, "accumulated", &r->accumulated);
    set_error(o, "isolated", &r->isolated);
    json_object_set_string_member(o, "mark", mark);
    return o;
}

/* Is the row among the --top worst? Of equal ones the first. */
static gboolean shown(const Diff *d, guint i)
{
    const HnLayerDiffRow *r = hn_layer_diff_row(d->steps, i);
    int before = 0;
    if (r->type_a == NULL) /* not seen, as where nothing ran to the end */
        return FALSE;
    for (guint k = 0; k < hn_layer_diff_rows(d->steps) && d->p->top > 0; k++) {
        double a = row_score(hn_layer_diff_row(d->steps, k)), b = row_score(r);
        before += a < b || (a == b && k < i);
    }
    return d->p->top == 0 || before < d->p->top;
}

static void worst_line(HnReport *report, const HnLayerDiffRow *r, gboolean isolated)
{
    if (r == NULL)
        return;
    const HnTensorError *e = isolated ? &r->isolated : &r->accumulated;
    hn_report_line(report, "worst %s: %.3g dB, off by up to %.3g, in '%s' (%s)", isolated ? "on its own" : "of all",
                   e->sqnr, e->max_abs, r->match.b->name, r->match.b->producer->op_type);
}

/* "f32[2,3]" beside "u8[2,3]", or beside "f32[3,2]". */
static const char *why_not(const HnLayerDiffRow *r)
{
    const char *a = r->type_a != NULL ? strchr(r->type_a, '[') : NULL;
    const char *b = r->type_b != NULL ? strchr(r->type_b, '[') : NULL;
    if (g_strcmp0(a, b) != 0)
        return "other shape";
    return g_strcmp0(r->type_a, r->type_b) != 0 ? "other type" : "other units";
}

static void add_tensors(const Diff *d, HnReport *report)
{
    const HnLayerDiffRow *all = worst_row(d, FALSE), *own = worst_row(d, TRUE);
    JsonArray *rows = json_array_new();
    guint n = 0, equal = 0, differ = 0, rescaled = 0;
    for (guint i = 0; i < hn_layer_diff_rows(d->steps); i++) {
        const HnLayerDiffRow *r = hn_layer_diff_row(d->steps, i);
        n += r->type_a != NULL;
        equal += r->accumulated.samples > 0 && r->accumulated.max_abs == 0 && !r->differs;
        differ += r->differs;
        rescaled += r->rescaled;
        const char *mark = r->differs             ? why_not(r)
                           : r == all && r == own ? "< worst, alone too"
                           : r == all             ? "< worst"
                           : r == own             ? "< worst alone"
                                                  : "";
        if (shown(d, i))
            json_array_add_object_element(rows, row_object(r, mark));
    }
    JsonObject *root = hn_report_root(report), *counts = json_object_new();
    json_object_set_array_member(root, "tensors", rows);
    json_object_set_int_member(counts, "compared", n);
    json_object_set_int_member(counts, "equal", equal);
    json_object_set_int_member(counts, "not_comparable", differ);
    json_object_set_int_member(counts, "only_a", hn_layer_diff_unmatched(d->steps, 0));
    json_object_set_int_member(counts, "only_b", hn_layer_diff_unmatched(d->steps, 1));
    json_object_set_object_member(root, "counts", counts);
    hn_report_line(report, "%u tensor%s compared on %" PRId64 " sample%s: %u equal, %u with other shape or type", n,
                   n == 1 ? "" : "s", d->done, d->done == 1 ? "" : "s", equal, differ);
    if (d->p->per_layer)
        hn_report_line(report, "only in the first model: %u, only in the second: %u",
                       hn_layer_diff_unmatched(d->steps, 0), hn_layer_diff_unmatched(d->steps, 1));
    if (rescaled > 0)
        hn_report_line(report, "%u tensor%s in units that a tool had changed: compared in those of the original",
                       rescaled, rescaled == 1 ? "" : "s");
    if (hn_data_synthetic(d->data))
        hn_report_line(report, "the data are made up: real samples ('--data') may differ otherwise");
    worst_line(report, all, FALSE);
    worst_line(report, own, TRUE);
}

static guint put_ratios(GString *out, const Diff *d, gboolean isolated)
{
    guint n = 0;
    for (guint i = 0; i < hn_layer_diff_rows(d->steps); i++) {
        const HnLayerDiffRow *r = hn_layer_diff_row(d->steps, i);
        const HnTensorError *e = isolated ? &r->isolated : &r->accumulated;
        if (e->samples == 0 || r->differs || !isfinite(e->sqnr))
            continue;
        g_string_append_printf(out, "%u ", i + 1);
        hn_plot_number(out, e->sqnr, '\n');
        n++;
    }
    g_string_append(out, "e\n");
    return n;
}

/* How the ratio falls from tensor to tensor; what is equal has none. */
static void add_plot(const Diff *d, HnReport *report)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *name_a = g_path_get_basename(d->path[0]), *name_b = g_path_get_basename(d->path[1]);
    g_autofree char *a = hn_plot_text(name_a), *b = hn_plot_text(name_b);
    g_string_append_printf(out,
                           "set title \"%s against %s\"\nset xlabel 'tensor, in the order of computing'\n"
                           "set ylabel 'SQNR, dB'\nset xrange [0:%u]\nplot '-' using 1:2 with linespoints title "
                           "\"after all before it\", '-' using 1:2 with linespoints title \"alone\"\n",
                           b, a, hn_layer_diff_rows(d->steps) + 1);
    if (put_ratios(out, d, FALSE) + put_ratios(out, d, TRUE) > 1)
        hn_report_plot(report, "Signal-to-noise ratio of each tensor that is not equal", out->str);
}

static gboolean write_report(const Diff *d, GError **error)
{
    gboolean cpu = d->backend[0] != d->backend[1] && hn_tool_onednn(d->backend[0]) == NULL;
    g_autoptr(HnReport) report =
        hn_report_new(d->ctx, "hone.diff/1", &(HnReportEnv){ .onednn = hn_tool_onednn(d->backend[cpu]) });
    JsonObject *root = hn_report_root(report);
    json_object_set_string_member(root, "a", d->path[0]);
    json_object_set_string_member(root, "b", d->path[1]);
    json_object_set_string_member(root, "device_a", d->backend[0]->name);
    json_object_set_string_member(root, "device_b", d->backend[1]->name);
    json_object_set_string_member(root, "precision_a", d->precision[0] != NULL ? d->precision[0] : "model");
    json_object_set_string_member(root, "precision_b", d->precision[1] != NULL ? d->precision[1] : "model");
    json_object_set_string_member(root, "max_isa_a", hn_cpu_isa_name(d->isa[0]));
    json_object_set_string_member(root, "max_isa_b", hn_cpu_isa_name(d->isa[1]));
    json_object_set_boolean_member(root, "per_layer", d->p->per_layer);
    json_object_set_string_member(root, "data", hn_data_source(d->data));
    json_object_set_boolean_member(root, "synthetic", hn_data_synthetic(d->data));
    json_object_set_int_member(root, "samples", d->done);
    hn_report_section(report, d->p->per_layer ? "Tensors" : "Outputs");
    hn_report_table(report, "tensors", d->p->per_layer ? layer_columns : output_columns);
    hn_report_csv_table(report, "tensors", csv_columns);
    if (d->p->per_layer)
        add_plot(d, report);
    hn_report_section(report, "Summary");
    add_tensors(d, report);
    json_object_set_int_member(root, "peak_bytes", (gint64)hn_budget_peak(d->ctx->budget));
    return hn_report_write(report, error);
}

/* --- guards ------------------------------------------------------------------------------------------------------- */

static gboolean guard(const Diff *d, GError **error)
{
    const Params *p = d->p;
    for (guint i = 0; i < hn_layer_diff_rows(d->steps); i++) {
        const HnLayerDiffRow *r = hn_layer_diff_row(d->steps, i);
        const HnTensorError *e = &r->accumulated;
        if (!r->is_output || (isnan(p->min_sqnr) && isnan(p->min_cos)))
            continue;
        if (r->differs || e->samples == 0)
            g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "output '%s' is %s, but %s in the other model",
                        r->match.a->name, r->type_a, r->type_b);
        else if (!isnan(p->min_sqnr) && !(e->sqnr >= p->min_sqnr))
            g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "output '%s' differs by %.4g dB, less than %g",
                        r->match.a->name, e->sqnr, p->min_sqnr);
        else if (!isnan(p->min_cos) && !(e->cos >= p->min_cos))
            g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "output '%s' has a cosine of %.6g, below %g", r->match.a->name,
                        e->cos, p->min_cos);
        else
            continue;
        return FALSE;
    }
    return TRUE;
}

static gboolean run(HnContext *ctx, GError **error)
{
    Diff d = { .ctx = ctx, .p = ctx->params };
    GError *cause = NULL;
    gboolean ok = prepare(&d, &cause);
    if (ok) {
        ok = run_all(&d, &cause);
        if (ok)
            ok = write_report(&d, &cause) && guard(&d, &cause);
        else if (g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED))
            write_report(&d, NULL); /* what is known so far */
    }
    hn_data_explain(d.data, &cause);
    if (cause != NULL)
        g_propagate_error(error, cause);
    diff_clear(&d);
    return ok;
}

static const char *const usual[] = { "per-layer", "data", "dim",     "shapes", "device-b", "min-sqnr",
                                     "threads",   "json", "verbose", "help",   "help-all", NULL };

static const HnTool tool = {
    .name = "hone-diff",
    .summary = "find where two models, or one on two devices, begin to differ",
    .usage = "[OPTIONS] MODEL [MODEL]",
    .usual = usual,
    .examples = "hone-diff model.onnx int8.onnx --per-layer --data samples.npz\n"
                "hone-diff model.onnx --device-b ref",
    .details = "Outputs of both models are compared on the same data; with --per-layer all tensors that both have are, "
               "once as each model computes them, once with the layer alone fed by the first model.\n\n"
               "Exit status: 0 done; 1 bad model or data; 2 usage; 3 outputs differ more than --min-sqnr or --min-cos "
               "allow; 4 unsupported; 6 a limit was reached; 130 interrupted.",
    .options = entries,
    .params_size = sizeof(Params),
    .defaults = &defaults,
    .two_devices = TRUE,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
