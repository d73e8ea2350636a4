/* hone-prune: what its command line says. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/text.h"
#include "hone_prune.h"

const PruneParams prune_defaults = { .samples = 512, .ratio = NAN, .sparsity = NAN };

const GOptionEntry prune_entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, output), "write the model to PATH, '-' is stdout",
      "PATH" },
    { "calib", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, calib),
      "samples, labels are not needed: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-'",
      "SRC" },
    { "samples", 0, 0, G_OPTION_ARG_INT, HN_FIELD(PruneParams, samples),
      "use at most N samples, drawn as --seed says (default: 512)", "N" },
    { "structured", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(PruneParams, structured), "whole channels go (default)", NULL },
    { "flops", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, flops),
      "operations that are left: a part of those there are (0.5x), or a number (2G)", "N" },
    { "latency", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, latency),
      "time of a run: a part of what it is (0.7x), or a time (8ms)", "T" },
    { "size", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, size),
      "bytes of the file: a part (0.5x), or bytes (5MB)", "SIZE" },
    { "ratio", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(PruneParams, ratio),
      "part of the channels that leaves each class that may go", "R" },
    { "sparsity", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(PruneParams, sparsity),
      "channels stay: this part of the weights becomes 0, where that costs least", "S" },
    { "pattern", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, pattern),
      "zeros lie as they come (unstructured, default), in 4 or 16 outputs of an input (4x1, 16x1), or are 2 of 4 "
      "inputs (2:4)",
      "NAME" },
    { "layers", 0, 0, G_OPTION_ARG_INT, HN_FIELD(PruneParams, layers),
      "first N blocks go as a whole, those that are missed least: branches of sums, and layers that make as many "
      "numbers as they read",
      "N" },
    { "max-drop", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, max_drop_text),
      "largest loss of the metric; without another budget as much goes as it allows", "P%" },
    { "metric", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, metric),
      "top1, r2, cos, sqnr, scores or cmd:PROGRAM, or a list of NAME@OUTPUT (default: by what each output holds)",
      "NAME" },
    { "score", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, score),
      "which channels go: obs (default), l1, l2, bn-scale, wanda, taylor (by gradients), random", "NAME" },
    { "repair", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, repair),
      "auto, none, or a list of fit (weights anew by least squares), norm and bias (channels' means and spreads, "
      "means) and heal (learned from the dense model's results), each kept where that lowers the error (default: "
      "auto: fit, else norm and bias)",
      "LIST" },
    { "finetune", 0, 0, G_OPTION_ARG_INT, HN_FIELD(PruneParams, finetune),
      "learn N epochs from labels and the dense model's results, kept where that is better", "N" },
    { "steps", 0, 0, G_OPTION_ARG_INT, HN_FIELD(PruneParams, steps),
      "prune in N rounds, with repairs between them, where that is better (default: 1)", "N" },
    { "augment", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, augment),
      "change samples at random while learning: shift:2,flip-x,noise:0.01", "LIST" },
    { "round", 0, 0, G_OPTION_ARG_INT, HN_FIELD(PruneParams, round),
      "widths are multiples of N, fewer of classes with few channels (default: numbers of a vector)", "N" },
    { "exclude", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, exclude),
      "leave classes alone that a tensor whose name matches belongs to", "REGEX" },
    { "analyze", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(PruneParams, analyze),
      "say what each class loses at each width, write no model", NULL },
    { "explain", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(PruneParams, explain),
      "list the classes of channels, and why others have to stay; write no model", NULL },
    { "store", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, store),
      "dense (default), or sparse: weights that are shorter so as indices and values, which not every runtime reads",
      "HOW" },
    { "external", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, external),
      "auto: weights beside the model where it exceeds 2 GB (default); inline; one-file: PATH.HASH.data", "WHERE" },
    { "plan", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, plan),
      "take widths, zeros and blocks from a file of --write-plan, or widths from one of --analyze --json, and search "
      "nothing",
      "FILE" },
    { "write-plan", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, write_plan),
      "write the plan that was found, as JSON", "FILE" },
    { "time-budget", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(PruneParams, time_budget),
      "end after T (30s, 10m) with the best that was found by then", "T" },
    { "journal", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, journal),
      "note what was tried in FILE, 'none' in no file (default: OUT.journal)", "FILE" },
    { "resume", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(PruneParams, resume),
      "go on with the journal of a run that ended early", NULL },
    { "timing-cache", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, timing_cache),
      "keep times that decide in FILE, 'none' in no file (default: in the user's cache)", "FILE" },
    { "replay", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(PruneParams, replay),
      "do again what the recipe in model FILE says, and write it where the same bytes come of it; see hone-replay",
      "FILE" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(PruneParams, dim), "fix a dimension of --calib random",
      "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(PruneParams, shapes),
      "fix shapes of inputs of --calib random", "LIST" },
    { "speed-only", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(PruneParams, speed_only),
      "without samples: a model that is good for measuring speed and nothing else", NULL },
    { "force", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(PruneParams, force), "write although a guard was missed", NULL },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(PruneParams, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list] in every sample; may be repeated",
      "NAME=VALUE" },
    HN_TOOL_DATA_ENTRIES(PruneParams, from),
    G_OPTION_ENTRY_NULL,
};

static const char *const left_out[] = {
    HN_TOOL_DATA_NAMES, "analyze", "explain", "force", "resume", "time-budget", NULL
};

const HnRecorded prune_recorded = {
    .entries = prune_entries, .left_out = left_out, .program = "metric", .defaults = &prune_defaults
};

/* "0.5x": a part; else what `parse` makes of it. */
static gboolean parse_limit(Prune *q, const char *option, const char *text, PruneBudget kind, GError **error)
{
    gboolean ok;
    q->budget = kind;
    q->absolute = !g_str_has_suffix(text, "x");
    if (!q->absolute) {
        g_autofree char *number = g_strndup(text, strlen(text) - 1);
        ok = hn_parse_double(number, 0, 1, &q->limit, error) && q->limit > 0;
    } else if (kind == PRUNE_LATENCY) {
        ok = hn_parse_duration(text, &q->limit, error) && q->limit > 0;
    } else {
        guint64 n = 0;
        ok = hn_parse_size(text, &n, error) && n > 0;
        q->limit = (double)n;
    }
    if (ok)
        return TRUE;
    if (error != NULL && *error == NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' leaves nothing", text);
    g_prefix_error(error, "option '%s': ", option);
    return FALSE;
}

static const struct {
    const char *name;
    int rows, of_four;
} patterns[] = { { "unstructured", 1, 0 }, { "4x1", 4, 0 }, { "16x1", 16, 0 }, { "2:4", 1, 2 } };

/* FALSE: no pattern has that name. */
static gboolean take_pattern(Prune *q, const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(patterns); i++)
        if (strcmp(patterns[i].name, name) == 0) {
            q->budget = PRUNE_ZEROS;
            q->pattern = patterns[i].name;
            q->zeros = (HnZerosOptions){ .rows = patterns[i].rows, .of_four = patterns[i].of_four };
            return TRUE;
        }
    return FALSE;
}

/* What is of channels has no part in zeros. */
static gboolean zeros_alone(const Prune *q, GError **error)
{
    if (q->p->structured)
        return hn_tool_usage(error, "zeros leave all channels: they exclude '--structured'");
    if (q->by == HN_PRUNE_BN || q->by == HN_PRUNE_TAYLOR)
        return hn_tool_usage(error, "'--score bn-scale' and 'taylor' are of channels, not of single weights");
    return q->p->steps < 2 || hn_tool_usage(error, "'--steps' is for channels: zeros come in rounds of their own");
}

static gboolean parse_zeros(Prune *q, GError **error)
{
    const PruneParams *p = q->p;
    if (!take_pattern(q, p->pattern != NULL ? p->pattern : patterns[0].name))
        return hn_tool_usage(error, "option '--pattern' is one of unstructured, 4x1, 16x1, 2:4");
    q->limit = q->zeros.of_four > 0 ? PRUNE_OF_FOUR : p->sparsity;
    if (!zeros_alone(q, error))
        return FALSE;
    if (q->zeros.of_four > 0)
        return isnan(p->sparsity) || p->sparsity == PRUNE_OF_FOUR ||
               hn_tool_usage(error, "'--pattern 2:4' makes half of the weights 0, no other part");
    if (isnan(p->sparsity))
        return hn_tool_usage(error, "how many weights are to become 0? '--sparsity' says so");
    return (p->sparsity > 0 && p->sparsity < 1) || hn_tool_usage(error, "option '--sparsity' is between 0 and 1");
}

/* What was chosen before is the budget. */
static gboolean parse_chosen(Prune *q, GError **error)
{
    const char *pattern = prune_chosen_pattern(q);
    q->budget = PRUNE_PLANNED;
    if (pattern == NULL)
        return TRUE;
    if (take_pattern(q, pattern))
        return zeros_alone(q, error);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has a pattern '%s' that is none", prune_chosen_path(q),
                pattern);
    return FALSE;
}

static gboolean parse_budget(Prune *q, GError **error)
{
    const PruneParams *p = q->p;
    const gboolean zeros = !isnan(p->sparsity) || p->pattern != NULL;
    const int given = (p->flops != NULL) + (p->latency != NULL) + (p->size != NULL) + !isnan(p->ratio) + zeros;
    if (q->plan != NULL && (given > 0 || p->layers > 0 || p->analyze || p->explain))
        return hn_tool_usage(error, "'--plan' says what goes: it excludes '--flops', '--latency', '--size', "
                                    "'--ratio', '--sparsity', '--pattern', '--layers', '--analyze' and '--explain'");
    if (q->plan != NULL || (q->recipe != NULL && given == 0))
        return parse_chosen(q, error);
    if (given > 1)
        return hn_tool_usage(error, "one of '--flops', '--latency', '--size', '--ratio' and '--sparsity' can be met at "
                                    "a time");
    if (zeros)
        return parse_zeros(q, error);
    if (given == 0 && p->layers > 0 && p->max_drop_text == NULL)
        q->budget = PRUNE_LAYERS;
    if (given == 0 && p->layers == 0 && p->max_drop_text == NULL && !p->analyze && !p->explain)
        return hn_tool_usage(error, "how much is to go? '--flops', '--latency', '--size', '--ratio', '--sparsity', "
                                    "'--layers' or '--max-drop' says so");
    if (!isnan(p->ratio)) {
        q->budget = PRUNE_RATIO;
        q->limit = p->ratio;
        return (p->ratio > 0 && p->ratio < 1) || hn_tool_usage(error, "option '--ratio' is between 0 and 1");
    }
    return p->flops != NULL     ? parse_limit(q, "--flops", p->flops, PRUNE_FLOPS, error)
           : p->latency != NULL ? parse_limit(q, "--latency", p->latency, PRUNE_LATENCY, error)
           : p->size != NULL    ? parse_limit(q, "--size", p->size, PRUNE_SIZE, error)
                                : TRUE;
}

static gboolean parse_repair(Prune *q, GError **error)
{
    const char *list = q->p->repair != NULL ? q->p->repair : "auto";
    g_auto(GStrv) names = g_strsplit(list, ",", -1);
    const struct {
        const char *name;
        gboolean *wanted;
    } repairs[] = { { "fit", &q->fit }, { "norm", &q->norm }, { "bias", &q->bias }, { "heal", &q->heal } };
    q->fit = q->instead = !strcmp(list, "auto");
    if (q->fit || !strcmp(list, "none"))
        return TRUE;
    for (int i = 0; names[i] != NULL; i++) {
        guint k = 0;
        while (k < G_N_ELEMENTS(repairs) && strcmp(names[i], repairs[k].name) != 0)
            k++;
        if (k == G_N_ELEMENTS(repairs))
            return hn_tool_usage(error, "option '--repair' is auto, none, or a list of fit, norm, bias, heal");
        *repairs[k].wanted = TRUE;
    }
    return TRUE;
}

static gboolean parse_store(Prune *q, GError **error)
{
    const char *how = q->p->store != NULL ? q->p->store : "dense";
    q->store_sparse = strcmp(how, "sparse") == 0;
    return q->store_sparse || !strcmp(how, "dense") || hn_tool_usage(error, "option '--store' is one of dense, sparse");
}

gboolean prune_parse(Prune *q, GError **error)
{
    const PruneParams *p = q->p;
    q->max_drop = NAN;
    if (p->score != NULL && !hn_prune_score_parse(p->score, &q->by))
        return hn_tool_usage(error, "option '--score' is one of obs, l1, l2, bn-scale, wanda, taylor, random");
    if (p->max_drop_text != NULL && !hn_parse_percent(p->max_drop_text, &q->max_drop, error)) {
        g_prefix_error(error, "option '--max-drop': ");
        return FALSE;
    }
    /* what is made again takes the time that it takes */
    if (p->time_budget != NULL && q->recipe == NULL && !hn_parse_seconds(p->time_budget, &q->limits.seconds, error)) {
        g_prefix_error(error, "option '--time-budget': ");
        return FALSE;
    }
    if (p->time_budget != NULL && q->recipe == NULL && !(q->limits.seconds > 0))
        return hn_tool_usage(error, "option '--time-budget' is above 0");
    if (p->samples < 1 || p->round < 0 || p->layers < 0 || p->finetune < 0 || p->steps < 0)
        return hn_tool_usage(error, "a number of samples, channels, blocks, epochs and steps is positive");
    q->vector = p->round > 0 ? p->round : hn_cpu_isa() >= HN_ISA_AVX512 ? 16 : 8;
    if (p->speed_only && p->calib != NULL)
        return hn_tool_usage(error, "'--speed-only' is for want of samples: it excludes '--calib'");
    if (p->calib == NULL && !p->speed_only && !p->explain)
        return hn_tool_no_data(q->ctx,
                               "without '--calib' nobody knows what is lost; '--speed-only' makes a model for "
                               "measuring speed",
                               error);
    if (p->speed_only && (q->by == HN_PRUNE_TAYLOR || p->steps > 1 || p->finetune > 0))
        return hn_tool_usage(error, "'--speed-only' has no samples: it excludes '--score taylor', '--steps' and "
                                    "'--finetune'");
    if (p->speed_only && (p->max_drop_text != NULL || p->metric != NULL))
        return hn_tool_usage(error, "'--speed-only' measures no loss: it excludes '--max-drop' and '--metric'");
    if (p->metric != NULL && !hn_metric_choice_parse(p->metric, &q->choice, error)) {
        g_prefix_error(error, "option '--metric': ");
        return FALSE;
    }
    return hn_tool_parse_external(p->external, &q->external, error) && parse_budget(q, error) &&
           parse_repair(q, error) && parse_store(q, error);
}
