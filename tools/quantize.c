/* hone-quantize: a model in integers, where that is right, smaller and faster; else nothing. */
#include "quantize.h"

#include <malloc.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "onnx/onnx.h"
#include "quant/prepare.h"
#include "quant/table.h"

#define MMAP_FROM (1 << 17) /* bytes: memory of this size and more goes back to the system when it is freed */

static const QuantizeParams defaults = { .samples = 64, .bits = 8, .block = 32, .min_speedup = 1, .percentile = 99.99 };

static const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, output),
      "write the model to PATH, '-' is stdout", "PATH" },
    { "calib", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, calib),
      "samples: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-'; the last quarter is held "
      "out "
      "and decides",
      "SRC" },
    { "mode", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, mode),
      "static: activations and weights (default with --calib); weights: weights only", "MODE" },
    { "calib-method", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, method),
      "auto, minmax, percentile, entropy or mse (default: auto, the one with the least error)", "METHOD" },
    { "percentile", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(QuantizeParams, percentile),
      "of --calib-method percentile (default: 99.99)", "P" },
    { "ranges", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, ranges),
      "take ranges from a file of --write-ranges instead of looking at samples", "FILE" },
    { "write-ranges", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, write_ranges),
      "write the ranges that were found, as JSON", "FILE" },
    { "samples", 0, 0, G_OPTION_ARG_INT, HN_FIELD(QuantizeParams, samples), "use at most N samples (default: 64)",
      "N" },
    { "metric", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, metric),
      "top1, cos or sqnr (default: top1 where the output is class scores, else cos)", "NAME" },
    { "max-drop", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, max_drop_text),
      "largest loss of the metric (default: 1%, of the cosine 0.1%)", "P%" },
    { "min-speedup", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(QuantizeParams, min_speedup),
      "how many times faster than f32 the result has to be (default: 1)", "X" },
    { "bits", 0, 0, G_OPTION_ARG_INT, HN_FIELD(QuantizeParams, bits), "of --mode weights: 8 or 4 (default: 8)", "N" },
    { "block", 0, 0, G_OPTION_ARG_INT, HN_FIELD(QuantizeParams, block),
      "4-bit weights that share a scale: 32, 64 or 128 (default: 32)", "N" },
    { "per-tensor", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, per_tensor),
      "one scale for a whole weight instead of one for each channel", NULL },
    { "activations", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, activations),
      "their type, u8 or s8 (default: u8)", "TYPE" },
    { "symmetric", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, symmetric),
      "activations with their zero in the middle", NULL },
    { "target", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, target),
      "vnni, avx2, any or this: whether 16-bit sums may saturate, for which weights get 7 bits where they could "
      "(default: any)",
      "CPU" },
    { "exclude", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, exclude),
      "leave nodes alone whose name or first output matches", "REGEX" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(QuantizeParams, dim), "a dimension of random data", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(QuantizeParams, shapes), "shapes of random data", "LIST" },
    { "analyze", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, analyze),
      "print what each node loses and gains alone, and write nothing", NULL },
    { "speed-only", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, speed_only),
      "without data: ranges from made-up samples, which the file says; for measuring speed", NULL },
    { "allow-larger", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, allow_larger),
      "write although the file is not smaller", NULL },
    { "force", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, force), "write although a guard was missed", NULL },
    G_OPTION_ENTRY_NULL,
};

static gboolean usage(GError **error, const char *text)
{
    g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, text);
    return FALSE;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static gboolean parse_mode(Quantize *q, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *mode = p->mode != NULL ? p->mode : "static";
    q->weights_only = !strcmp(mode, "weights");
    if (!q->weights_only && strcmp(mode, "static"))
        return usage(error, "option '--mode' is one of static, weights");
    if (p->bits != 8 && (p->bits != 4 || !q->weights_only))
        return usage(error, "option '--bits' is 8, or 4 with '--mode weights'");
    if (p->block != 32 && p->block != 64 && p->block != 128)
        return usage(error, "option '--block' is one of 32, 64, 128");
    if (!q->weights_only && p->calib == NULL && !p->speed_only)
        return usage(error, "no samples are named with '--calib': ranges that are guessed give wrong results; "
                            "'--speed-only' makes a model to measure speed with");
    if (p->ranges != NULL && (p->write_ranges != NULL || q->weights_only))
        return usage(error, "'--ranges' excludes '--write-ranges' and '--mode weights'");
    if (p->calib != NULL && p->speed_only)
        return usage(error, "'--speed-only' is for models without data");
    return TRUE;
}

static gboolean parse_target(Quantize *q, HnQuantOptions *o, GError **error)
{
    const char *target = q->p->target != NULL ? q->p->target : "any";
    if (!strcmp(target, "any") || !strcmp(target, "avx2"))
        o->reduced = TRUE;
    else if (!strcmp(target, "this"))
        o->reduced = hn_cpu_isa() < HN_ISA_VNNI;
    else if (strcmp(target, "vnni"))
        return usage(error, "option '--target' is one of vnni, avx2, any, this");
    return TRUE;
}

static gboolean parse_options(Quantize *q, HnQuantOptions *o, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *activations = p->activations != NULL ? p->activations : "u8";
    *o = (HnQuantOptions){
        .activations = HN_U8, .symmetric = p->symmetric, .per_tensor = p->per_tensor, .block = p->block
    };
    if (!strcmp(activations, "s8"))
        o->activations = HN_I8;
    else if (strcmp(activations, "u8"))
        return usage(error, "option '--activations' is one of u8, s8");
    if (p->metric != NULL && !(q->metric_set = hn_metric_name_parse(p->metric, &q->metric, error)))
        return FALSE;
    q->max_drop = NAN;
    if (p->max_drop_text != NULL && !hn_parse_percent(p->max_drop_text, &q->max_drop, error))
        return FALSE;
    if (p->method != NULL && strcmp(p->method, "auto") && !hn_calib_method_parse(p->method, &q->method, error))
        return FALSE;
    if (p->samples < 1 || !(p->min_speedup > 0) || !(p->percentile > 50 && p->percentile <= 100))
        return usage(error, "a number of samples and a speed-up are positive, a percentile is from 50 to 100");
    return parse_target(q, o, error);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static HnModel *open_prepared(gpointer data, GError **error)
{
    const Quantize *q = data;
    const HnOnnxOptions o = { .budget = q->ctx->budget };
    g_autoptr(HnModel) m = hn_onnx_read_bytes(q->prepared, NULL, &o, error);
    return m != NULL && hn_graph_infer(m->graph, FALSE, error) ? g_steal_pointer(&m) : NULL;
}

/* The model as it was given. */
static HnModel *open_given(const Quantize *q, GError **error)
{
    const HnOnnxOptions o = { .budget = q->ctx->budget };
    return q->file != NULL ? hn_onnx_read_bytes(q->file, NULL, &o, error) : hn_onnx_read_file(q->path, &o, error);
}

static gboolean prepare_model(Quantize *q, GError **error)
{
    const gboolean four = q->weights_only && q->p->bits == 4;
    if (!strcmp(q->path, "-") && (!hn_context_take_stdin(q->ctx, "the model", error) ||
                                  (q->file = hn_stdin_bytes(q->ctx->budget, error)) == NULL))
        return FALSE;
    HnModel *m = open_given(q, error);
    if (m == NULL)
        return FALSE;
    q->file_before = m->file_bytes;
    g_autoptr(HnModel) ready = hn_quant_prepare(m, four ? 21 : 13, q->ctx->budget, &q->ctx->progress, error);
    if (ready == NULL || (q->prepared = hn_onnx_write_bytes(ready, q->ctx->budget, error)) == NULL)
        return FALSE;
    return (q->f32 = open_prepared(q, error)) != NULL;
}

static gboolean is_excluded(const Quantize *q, const GRegex *exclude, const HnNode *n)
{
    (void)q;
    return exclude != NULL && (g_regex_match(exclude, hn_node_label(n), 0, NULL) ||
                               g_regex_match(exclude, hn_node_out(n, 0)->name, 0, NULL));
}

/* Every node that may be quantized is, unless the user says otherwise. */
static gboolean base_plan(Quantize *q, GError **error)
{
    HnQuantOptions o;
    const HnQuantForm form = !q->weights_only ? HN_FORM_INT8 : q->p->bits == 4 ? HN_FORM_W4 : HN_FORM_W8;
    g_autoptr(GRegex) exclude = NULL;
    if (!parse_options(q, &o, error) ||
        (q->p->exclude != NULL && (exclude = g_regex_new(q->p->exclude, 0, 0, error)) == NULL))
        return FALSE;
    q->base = hn_quant_plan_new(&o);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(q->f32);
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        if (!is_excluded(q, exclude, n) && (form != HN_FORM_W4 || hn_node_in(n, 1)->weight->ndim == 2))
            hn_quant_plan_set_form(q->base, hn_node_out(n, 0)->name, form);
    }
    if (g_hash_table_size(q->base->forms) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "the model has no node whose weights could be quantized");
        return FALSE;
    }
    return TRUE;
}

/* --- data --------------------------------------------------------------------------------------------------------- */

static gboolean open_data(Quantize *q, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *source = p->calib != NULL ? p->calib : "random:8";
    g_autoptr(HnSession) s =
        hn_session_new(q->f32, &hn_backend_null, &(HnSessionOptions){ .budget = q->ctx->budget }, error);
    if (s == NULL || (!strcmp(source, "-") && !hn_context_take_stdin(q->ctx, "the samples", error)))
        return FALSE;
    const int n = hn_session_n_inputs(s);
    g_autofree HnValue **inputs = g_new0(HnValue *, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        inputs[i] = (HnValue *)hn_session_input(s, i);
    const HnDataOptions o = { .budget = q->ctx->budget, .seed = q->ctx->common.seed, .shapes = q->shapes };
    q->data = hn_data_open(source, inputs, n, &o, error);
    if (q->data == NULL)
        return FALSE;
    const int64_t all = MIN(hn_data_count(q->data), p->samples);
    q->held = all < 4 ? all : MAX(all / 4, 2); /* too few to be split: they serve for both */
    q->held_first = all - q->held;
    q->calib = all < 4 ? all : q->held_first;
    if (all > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' holds no samples", source);
    return FALSE;
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

static gboolean watch(Quantize *q, HnCalibrator *c, GError **error)
{
    for (int64_t i = 0; i < q->calib; i++) {
        g_autoptr(HnSample) s = hn_data_load(q->data, i, error);
        hn_progress_tell(&q->ctx->progress, "calibrating", (guint64)i, (guint64)q->calib);
        if (s == NULL || (i == 0 && !hn_calibrator_prepare(c, s->in, &q->forecast, error)))
            return FALSE;
        if (i == 0) {
            g_autofree char *text = hn_text_size(q->forecast);
            hn_context_note(q->ctx, 1, "calibration needs %s, whatever the number of samples", text);
        }
        if (!hn_calibrator_run(c, s->in, error))
            return FALSE;
    }
    return TRUE;
}

static void set_spans(const Quantize *q, const HnCalibrator *c, const GPtrArray *values, HnCalibMethod method,
                      HnQuantPlan *p)
{
    const HnQuantizer quantizer = hn_quantizer_of(&p->o);
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        const HnHistogram *h = hn_calibrator_get(c, v->name);
        HnQuantSpan span = { 0, 0 };
        if ((v->producer == NULL || v->producer->op == NULL || !hn_quant_span_fixed(v->producer, &span)) && h != NULL)
            hn_quant_span_of(h, method, q->p->percentile, &quantizer, &span);
        hn_quant_plan_set_span(p, v->name, span.lo, span.hi);
    }
}

/* The method with the least error of the whole model on the samples held out. */
static gboolean choose_method(Quantize *q, const HnCalibrator *c, const GPtrArray *values, GError **error)
{
    const gboolean given = q->p->method != NULL && strcmp(q->p->method, "auto");
    double best = -INFINITY;
    g_autoptr(HnQuantPlan) chosen = NULL;
    for (int k = 0; k < HN_CALIB_METHODS && !given; k++) {
        g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(q->base);
        HnQuantLog log;
        HnScore score;
        set_spans(q, c, values, (HnCalibMethod)k, p);
        g_autoptr(HnModel) m = hn_quant_build(p, &q->so, &log, error);
        if (m == NULL || !hn_scorer_run(q->scorer, m, &score, error))
            return FALSE;
        hn_context_note(q->ctx, 1, "%s: %.2f dB, cosine %.6f", hn_calib_method_name((HnCalibMethod)k), score.sqnr,
                        score.cos);
        if (score.sqnr > best) {
            best = score.sqnr;
            q->method = (HnCalibMethod)k;
        }
    }
    set_spans(q, c, values, q->method, q->base);
    return TRUE;
}

static gboolean write_ranges(const Quantize *q, const HnCalibrator *c, GError **error)
{
    const HnCalibTableOptions o = { q->method, q->p->percentile, hn_quantizer_of(&q->base->o),
                                    hn_data_source(q->data) };
    if (q->p->write_ranges == NULL)
        return TRUE;
    JsonNode *table = hn_calib_table(c, &o);
    g_autofree char *text = json_to_string(table, TRUE);
    json_node_unref(table);
    return hn_out_save(q->p->write_ranges, text, strlen(text), error);
}

static gboolean read_ranges(const Quantize *q, GError **error)
{
    g_autoptr(GBytes) bytes = hn_file_bytes(q->p->ranges, q->ctx->budget, error);
    g_autoptr(JsonParser) parser = json_parser_new();
    GError *cause = NULL;
    gsize n = 0;
    const char *text = bytes != NULL ? g_bytes_get_data(bytes, &n) : NULL;
    if (bytes == NULL)
        return FALSE;
    if (!json_parser_load_from_data(parser, text != NULL ? text : "", (gssize)n, &cause)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no JSON: %s", q->p->ranges, cause->message);
        g_error_free(cause);
        return FALSE;
    }
    if (hn_calib_table_apply(json_parser_get_root(parser), q->base, error))
        return TRUE;
    g_prefix_error(error, "'%s': ", q->p->ranges);
    return FALSE;
}

static gboolean calibrate(Quantize *q, GError **error)
{
    if (q->p->ranges != NULL)
        return read_ranges(q, error);
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(q->base);
    hn_quant_spread(spread, q->f32);
    g_autoptr(GPtrArray) values = hn_quant_wanted(spread, q->f32);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < values->len; i++)
        g_ptr_array_add(names, ((const HnValue *)values->pdata[i])->name);
    g_ptr_array_add(names, NULL);
    const HnCalibrateOptions o = { .values = (const char *const *)names->pdata,
                                   .threads = q->ctx->common.threads,
                                   .seed = q->ctx->common.seed,
                                   .budget = q->ctx->budget,
                                   .progress = &q->ctx->progress };
    g_autoptr(HnCalibrator) c = hn_calibrator_new(q->f32, q->backend, &o, error);
    return c != NULL && watch(q, c, error) && choose_method(q, c, values, error) && write_ranges(q, c, error);
}

/* --- work --------------------------------------------------------------------------------------------------------- */

static gboolean open_scorer(Quantize *q, GError **error)
{
    const HnScorerOptions o = { .backend = q->backend,
                                .threads = q->ctx->common.threads,
                                .budget = q->ctx->budget,
                                .progress = &q->ctx->progress };
    g_autoptr(HnModel) given = open_given(q, error); /* not the prepared one: what preparing broke would not be seen */
    if (given == NULL)
        return FALSE;
    q->scorer = hn_scorer_new(given, q->data, q->held_first, q->held, &o, error);
    if (q->scorer == NULL)
        return FALSE;
    if (!q->metric_set)
        q->metric = hn_scorer_has_classes(q->scorer) ? HN_METRIC_TOP1 : HN_METRIC_COS;
    if (isnan(q->max_drop))
        q->max_drop = q->metric == HN_METRIC_COS ? 0.001 : 0.01;
    q->so = (HnSearchOptions){ .open = open_prepared,
                               .data = q,
                               .scorer = q->scorer,
                               .metric = q->metric,
                               .max_drop = q->max_drop,
                               .by_time = !q->weights_only,
                               .all_alone = q->p->analyze,
                               .backend = q->backend,
                               .threads = q->ctx->common.threads,
                               .budget = q->ctx->budget,
                               .progress = &q->ctx->progress };
    return TRUE;
}

static gboolean guard_speed(Quantize *q, GError **error)
{
    const HnGainOptions o = {
        .threads = q->ctx->common.threads, .seconds = 5, .budget = q->ctx->budget, .progress = &q->ctx->progress
    };
    if (!hn_measure_gain(q->f32, q->result, q->backend, hn_scorer_inputs(q->scorer, 0), &o, &q->gain, error))
        return FALSE;
    q->has_gain = TRUE;
    const double most = q->weights_only ? 1.02 : fmin(1 / q->p->min_speedup, 1);
    if (q->gain.effect.effect <= most || q->p->force)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "the quantized model takes %.3f of the time of f32, more than %.3f",
                q->gain.effect.effect, most);
    return FALSE;
}

static gboolean write_model(Quantize *q, GError **error)
{
    const char *path = q->p->output != NULL ? q->p->output : "-";
    g_autoptr(GBytes) bytes = hn_onnx_write_bytes(q->result, q->ctx->budget, error);
    if (bytes == NULL)
        return FALSE;
    q->file_after = g_bytes_get_size(bytes);
    if (q->file_after >= q->file_before && !q->p->force && !q->p->allow_larger) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "the quantized model has %" G_GUINT64_FORMAT " bytes, not less than %" G_GUINT64_FORMAT,
                    q->file_after, q->file_before);
        return FALSE;
    }
    return !hn_progress_stop(&q->ctx->progress, error) &&
           hn_onnx_write_file(q->result, path, &(HnOnnxWriteOptions){ .budget = q->ctx->budget }, error);
}

static gboolean refuse(Quantize *q, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "no part of the model can be quantized within a loss of %g %% (%s)",
                q->max_drop * 100, hn_metric_name(q->metric));
    return FALSE;
}

static gboolean work(Quantize *q, GError **error)
{
    const QuantizeParams *p = q->p;
    if (!parse_mode(q, error) || (q->path = hn_tool_one_model(q->ctx, error)) == NULL ||
        (q->backend = hn_tool_backend(q->ctx, error)) == NULL ||
        (q->shapes = hn_tool_shapes(p->dim, p->shapes, error)) == NULL)
        return FALSE;
    if (!p->analyze && (p->output == NULL || !strcmp(p->output, "-")) &&
        !hn_context_take_stdout(q->ctx, "the model", error))
        return FALSE;
    if (!prepare_model(q, error) || !base_plan(q, error) || !open_data(q, error) || !open_scorer(q, error) ||
        (!q->weights_only && !calibrate(q, error)) || !hn_quant_search(q->base, &q->so, &q->search, error))
        return FALSE;
    if (p->analyze)
        return quantize_report(q, error);
    if (q->search.plan == NULL && p->force)
        q->search.plan = hn_quant_plan_copy(q->base);
    if (q->search.plan == NULL || g_hash_table_size(q->search.plan->forms) == 0)
        return refuse(q, error);
    q->result = hn_quant_build(q->search.plan, &q->so, &q->log, error);
    return q->result != NULL && guard_speed(q, error) && write_model(q, error) && quantize_report(q, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    Quantize q = { .ctx = ctx, .p = ctx->params };
    mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    const gboolean ok = work(&q, error);
    hn_search_clear(&q.search);
    hn_scorer_free(q.scorer);
    hn_data_free(q.data);
    hn_quant_plan_free(q.base);
    hn_model_free(q.result);
    hn_model_free(q.f32);
    hn_shapes_free(q.shapes);
    g_clear_pointer(&q.prepared, g_bytes_unref);
    g_clear_pointer(&q.file, g_bytes_unref);
    return ok;
}

static const HnTool tool = {
    .name = "hone-quantize",
    .summary = "make a model of integers, where that is right, smaller and faster",
    .usage = "[OPTIONS] MODEL --calib SRC -o OUT",
    .details =
        "Ranges come from samples; what integers lose is measured on samples held out, and nodes that lose too much, "
        "or are not faster, stay as they are. Nothing is written unless the result is smaller, faster and within "
        "--max-drop.\n\n"
        "Exit status: 0 written; 1 bad model or data; 2 usage; 3 a guard was missed, nothing written; 4 unsupported; "
        "6 a limit was reached; 130 interrupted.",
    .options = entries,
    .params_size = sizeof(QuantizeParams),
    .defaults = &defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
