/* hone-quantize: what its command line says. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/text.h"
#include "quant/qoperator.h"
#include "hone_quantize.h"

const QuantizeParams quantize_defaults = {
    .samples = 64, .bits = 8, .block = 32, .min_speedup = 1, .percentile = 99.99
};

const GOptionEntry quantize_entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, output),
      "write the model to PATH, '-' is stdout", "PATH" },
    { "calib", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, calib),
      "samples: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-'; the last quarter is held "
      "out and decides; random[:N] is no data",
      "SRC" },
    { "mode", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, mode),
      "static: activations and weights (default); dynamic: both, activations as they come; weights: weights only",
      "MODE" },
    { "format", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, format),
      "qdq: QuantizeLinear and DequantizeLinear around operators on floats (default); qoperator: operators on "
      "integers; or "
      "the format of the report, as below",
      "FORMAT" },
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
      "top1, r2, cos, sqnr, scores or cmd:PROGRAM, or a list of NAME@OUTPUT (default: by what each output holds)",
      "NAME" },
    { "max-drop", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, max_drop_text),
      "largest loss of the metric (default: 1%, of cos 0.1%, of r2 0.2%, of scores 2%)", "P%" },
    { "min-speedup", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(QuantizeParams, min_speedup),
      "how many times faster than f32 the result has to be (default: 1)", "X" },
    { "bits", 0, 0, G_OPTION_ARG_INT, HN_FIELD(QuantizeParams, bits), "of --mode weights: 8 or 4 (default: 8)", "N" },
    { "block", 0, 0, G_OPTION_ARG_INT, HN_FIELD(QuantizeParams, block),
      "4-bit weights that share a scale: 32, 64 or 128 (default: 32)", "N" },
    { "per-tensor", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, per_tensor),
      "one scale for a whole weight instead of one for each channel (default of --format qoperator)", NULL },
    { "per-channel", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, per_channel),
      "one scale for each channel (default of --format qdq)", NULL },
    { "activations", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, activations),
      "their type, u8 or s8 (default: u8)", "TYPE" },
    { "symmetric", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, symmetric),
      "activations with their zero in the middle", NULL },
    { "target", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, target),
      "vnni, avx2, any or this: whether 16-bit sums may saturate, for which weights get 7 bits where they could "
      "(default: any)",
      "CPU" },
    { "repair", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, repair),
      "auto, none, or some of rounding,equalize,smooth,ranges,bias (default: auto, each where it lowers the error)",
      "LIST" },
    { "exclude", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, exclude),
      "leave nodes alone whose name or first output matches", "REGEX" },
    { "only-ops", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, only_ops),
      "leave nodes alone whose operator is none of these: Conv,Gemm", "LIST" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(QuantizeParams, set),
      "nodes whose name or first output matches get this form, f32, int8, dynamic, w8 or w4, and keep it",
      "REGEX=FORM" },
    { "plan", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, plan),
      "take the forms of nodes, and ranges where it has some, from a file of --write-plan, or of --analyze --json",
      "FILE" },
    { "write-plan", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, write_plan),
      "write the plan that was found, as JSON", "FILE" },
    { "time-budget", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, time_budget),
      "end after T (30s, 10m), from start to written file, with the best that was found until then", "T" },
    { "size", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, size),
      "largest file: bytes (500K, 2MiB), or a part of the one given", "SIZE|P%" },
    { "journal", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, journal),
      "note what was tried in FILE, 'none' in no file (default: OUT.journal)", "FILE" },
    { "resume", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, resume),
      "go on with the journal of a run that ended early", NULL },
    { "timing-cache", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, timing_cache),
      "keep times that decide in FILE, 'none' in no file (default: hone/timings.jsonl in the user's cache)", "FILE" },
    { "external", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(QuantizeParams, external),
      "auto: weights beside the model where it exceeds 2 GB (default); inline; one-file: PATH.HASH.data", "WHERE" },
    { "replay", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(QuantizeParams, replay),
      "do again what the recipe in model FILE says, and write it where the same bytes come of it; see hone-replay",
      "FILE" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(QuantizeParams, dim), "a dimension of random data", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(QuantizeParams, shapes), "shapes of random data", "LIST" },
    { "analyze", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, analyze),
      "print what each node loses and gains alone, and write nothing", NULL },
    { "speed-only", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, speed_only),
      "without data: ranges from made-up samples, which the file says; for measuring speed", NULL },
    { "allow-larger", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, allow_larger),
      "write although the file is not smaller", NULL },
    { "force", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(QuantizeParams, force), "write although a guard was missed", NULL },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(QuantizeParams, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list] in every sample; may be repeated",
      "NAME=VALUE" },
    HN_TOOL_DATA_ENTRIES(QuantizeParams, from),
    G_OPTION_ENTRY_NULL,
};

/* Switches that have no part in the result; what names files has none anyway. */
static const char *const left_out[] = { HN_TOOL_DATA_NAMES, "resume", "analyze", "allow-larger", NULL };

const HnRecorded quantize_recorded = {
    .entries = quantize_entries, .left_out = left_out, .program = "metric", .defaults = &quantize_defaults
};

#define GUESSED "ranges that are guessed give wrong results; '--speed-only' makes a model to measure speed with"

/* Numbers out of thin air, as hn_data_open() has them, are no data. */
static gboolean made_up(const char *source)
{
    return source == NULL || !strcmp(source, "random") || g_str_has_prefix(source, "random:");
}

gboolean quantize_parse_mode(Quantize *q, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *mode = p->mode != NULL ? p->mode : "static";
    q->weights_only = !strcmp(mode, "weights");
    q->by_ranges = !strcmp(mode, "static");
    q->form = q->by_ranges ? HN_FORM_INT8 : !q->weights_only ? HN_FORM_DYNAMIC : p->bits == 4 ? HN_FORM_W4 : HN_FORM_W8;
    if (!q->by_ranges && !q->weights_only && strcmp(mode, "dynamic"))
        return hn_tool_usage(error, "option '--mode' is one of static, dynamic, weights");
    if (p->bits != 8 && (p->bits != 4 || !q->weights_only))
        return hn_tool_usage(error, "option '--bits' is 8, or 4 with '--mode weights'");
    if (p->block != 32 && p->block != 64 && p->block != 128)
        return hn_tool_usage(error, "option '--block' is one of 32, 64, 128");
    if (q->by_ranges && made_up(p->calib) && !p->speed_only)
        return hn_tool_no_data(q->ctx,
                               p->calib == NULL ? "no samples are named with '--calib': " GUESSED
                                                : "'--calib random' makes samples up: " GUESSED,
                               error);
    q->has_data = !made_up(p->calib);
    if (p->ranges != NULL && (p->write_ranges != NULL || !q->by_ranges))
        return hn_tool_usage(error, "'--ranges' is for '--mode static', and excludes '--write-ranges'");
    if (p->format != NULL && !q->by_ranges)
        return hn_tool_usage(error, "'--format' is for '--mode static': the other modes have one form each");
    if (p->plan != NULL && (p->ranges != NULL || p->repair != NULL || p->set != NULL))
        return hn_tool_usage(error, "'--plan' says all: it excludes '--ranges', '--repair' and '--set'");
    if (!made_up(p->calib) && p->speed_only)
        return hn_tool_usage(error, "'--speed-only' is for models without data");
    /* what is made again takes the time that it takes */
    if (p->time_budget != NULL && q->recipe == NULL && !hn_parse_seconds(p->time_budget, &q->limits.seconds, error))
        return FALSE;
    return hn_tool_parse_external(q->p->external, &q->external, error);
}

static gboolean parse_format(Quantize *q, HnQuantOptions *o, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *format = p->format != NULL ? p->format : "qdq";
    o->integers = !strcmp(format, "qoperator");
    if (!o->integers && strcmp(format, "qdq"))
        return hn_tool_usage(error, "option '--format' is one of qdq, qoperator");
    if (p->per_tensor && p->per_channel)
        return hn_tool_usage(error, "'--per-tensor' excludes '--per-channel'");
    o->per_tensor = p->per_tensor || (o->integers && !p->per_channel);
    return hn_quant_check(o, q->form == HN_FORM_DYNAMIC, error);
}

static gboolean parse_target(Quantize *q, HnQuantOptions *o, GError **error)
{
    const char *target = q->p->target != NULL ? q->p->target : "any";
    if (!strcmp(target, "any") || !strcmp(target, "avx2"))
        o->reduced = TRUE;
    else if (!strcmp(target, "this"))
        o->reduced = hn_cpu_isa() < HN_ISA_VNNI;
    else if (strcmp(target, "vnni"))
        return hn_tool_usage(error, "option '--target' is one of vnni, avx2, any, this");
    return TRUE;
}

/* The model has been read. */
static gboolean parse_size(Quantize *q, GError **error)
{
    const char *text = q->p->size;
    double part;
    if (text == NULL)
        return TRUE;
    if (!g_str_has_suffix(text, "%"))
        return hn_parse_size(text, &q->most_bytes, error);
    if (!hn_parse_percent(text, &part, error))
        return FALSE;
    if (!(part > 0 && part <= 1))
        return hn_tool_usage(error, "option '--size' is a number of bytes, or a part of the file up to 100%");
    q->most_bytes = (guint64)(part * (double)q->file_before);
    return TRUE;
}

gboolean quantize_parse_options(Quantize *q, HnQuantOptions *o, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *activations = p->activations != NULL ? p->activations : "u8";
    *o = (HnQuantOptions){ .activations = HN_U8, .symmetric = p->symmetric, .block = p->block };
    if (!strcmp(activations, "s8"))
        o->activations = HN_I8;
    else if (strcmp(activations, "u8"))
        return hn_tool_usage(error, "option '--activations' is one of u8, s8");
    if (p->metric != NULL && !hn_metric_choice_parse(p->metric, &q->choice, error))
        return FALSE;
    q->max_drop = NAN;
    if (p->max_drop_text != NULL && !hn_parse_percent(p->max_drop_text, &q->max_drop, error))
        return FALSE;
    if (p->method != NULL && strcmp(p->method, "auto") && !hn_calib_method_parse(p->method, &q->method, error))
        return FALSE;
    if (p->samples < 1 || !(p->min_speedup > 0) || !(p->percentile > 50 && p->percentile <= 100))
        return hn_tool_usage(error, "a number of samples and a speed-up are positive, a percentile is from 50 to 100");
    return parse_size(q, error) && parse_format(q, o, error) && parse_target(q, o, error);
}
