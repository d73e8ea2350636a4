/* hone-export: a model simplified, converted, cut, and proved to compute the same before it is written. */
#include "hone_export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "check/guard.h"
#include "check/recipe.h"
#include "ir/copy.h"
#include "ir/sparse.h"
#include "op/op.h"
#include "pass/expand_contrib.h"
#include "pass/zipmap.h"

#define WHAT "the new model"
#define SLOWER 1.03    /* of the time: what is not written, of halves and with --bench */
#define HALF_SAMPLES 4 /* made-up ones, where precision is converted: each has other numbers that come out worst */

const ExportParams export_defaults = { .level = 2, .fold_limit = (gint64)HN_FOLD_BYTES, .rtol = NAN, .atol = NAN };

static const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(ExportParams, output), "write the model to PATH, '-' is stdout",
      "PATH" },
    { "level", 0, 0, G_OPTION_ARG_INT, HN_FIELD(ExportParams, level),
      "0: rewrite nothing, 1: only remove and merge, 2: other operators may take over, 3: even where that is slower "
      "elsewhere (default: 2)",
      "N" },
    { "only", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, only), "run this pass only; may be repeated",
      "PASS" },
    { "skip", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, skip), "leave this pass out; may be repeated",
      "PASS" },
    { "list-passes", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, list_passes), "list the passes, and end", NULL },
    { "explain", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, explain),
      "say which condition broke where a pass nearly matched", NULL },
    { "opset", 0, 0, G_OPTION_ARG_INT64, HN_FIELD(ExportParams, opset), "convert to this opset, 7 to 28", "N" },
    { "keep-functions", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, keep_functions),
      "leave calls of the model's own functions as they are", NULL },
    { "to-core", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, to_core),
      "write operators of ONNX Runtime's own domain as those of the default one", NULL },
    { "no-zipmap", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, no_zipmap),
      "outputs that are maps from labels to scores become tensors of the scores", NULL },
    { "to", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(ExportParams, to),
      "convert the precision: f16, bf16 or f32; what would overflow or vanish stays f32; slower or larger halves are "
      "not "
      "written",
      "TYPE" },
    { "keep-io", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, keep_io),
      "with --to: inputs and outputs keep their types", NULL },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, dim), "fix a dimension, such as batch=8",
      "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, shapes),
      "fix shapes of inputs, such as x:1x3x224x224", "LIST" },
    { "free", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, free),
      "make a fixed dimension free, as x:0=batch; may be repeated", "INPUT:AXIS=NAME" },
    { "rename", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, rename),
      "call an input or output otherwise; may be repeated", "OLD=NEW" },
    { "nhwc-input", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, nhwc_input),
      "the input takes pictures with their channels last; may be repeated", "INPUT" },
    { "u8-input", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, u8_input),
      "the input takes bytes; what --mean and --scale say becomes part of the model; may be repeated", "INPUT" },
    { "top-k", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, top_k),
      "the K best of an output, and which they are, instead of all scores", "K[@OUTPUT]" },
    { "softmax", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (gpointer)export_on_softmax,
      "scores become probabilities", "OUTPUT" },
    { "softmax-of", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ExportParams, softmax), "", "OUTPUT" },
    { "infer-shapes", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, infer_shapes),
      "declare the type of every value in the file", NULL },
    { "extract", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(ExportParams, extract),
      "keep what lies between these values only: A,B:C,D; nothing before or after the colon means the model's own",
      "IN:OUT" },
    { "external", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(ExportParams, external),
      "weights go into the model (inline), beside it (one-file), or beside it beyond 2 GB (auto; the default)",
      "WHERE" },
    { "clear-metadata", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, clear_metadata),
      "drop doc strings, metadata and the producer's name, and leave no recipe", NULL },
    { "fold-limit", 0, 0, G_OPTION_ARG_INT64, HN_FIELD(ExportParams, fold_limit),
      "largest constant that is made where its inputs are shorter, in bytes (default: 1048576)", "N" },
    { "check", 0, 0, G_OPTION_ARG_INT, HN_FIELD(ExportParams, samples),
      "compare with the original on N samples (default: made-up ones of two shapes, or 8 of --data)", "N" },
    { "no-check", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, no_check), "do not compare with the original", NULL },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ExportParams, data),
      "samples to compare on: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-' or random[:N]",
      "SRC" },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(ExportParams, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list] in every sample; may be repeated",
      "NAME=VALUE" },
    { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(ExportParams, rtol),
      "relative tolerance (default: 1e-3; 4e-3 for models with f16)", "R" },
    { "atol", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(ExportParams, atol),
      "absolute tolerance (default: 1e-4 of the largest magnitude; 2e-3 for models with f16)", "A" },
    { "keep-repro", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ExportParams, repro),
      "write a minimal model for each rewrite that changed results, into DIR", "DIR" },
    { "bench", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, bench),
      "measure latency before and after, interleaved; slower by more than 3 % is not written", NULL },
    { "allow-larger", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, allow_larger),
      "write although the file is more than a twentieth longer, and the model not faster", NULL },
    { "force", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ExportParams, force), "write although a guard was missed", NULL },
    { "replay", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ExportParams, replay),
      "do again what the recipe in model FILE says, and write it where the same bytes come of it; see hone-replay",
      "FILE" },
    HN_TOOL_DATA_ENTRIES(ExportParams, from),
    G_OPTION_ENTRY_NULL,
};

/* Switches that have no part in the result; what names files has none anyway. */
static const char *const left_out[] = { HN_TOOL_DATA_NAMES, "list-passes", "explain", "bench", NULL };

const HnRecorded export_recorded = { .entries = entries, .left_out = left_out, .defaults = &export_defaults };

/* --- options ------------------------------------------------------------------------------------------------------ */

static gboolean check_passes(char **names, const char *option, GError **error)
{
    for (char **n = names; n != NULL && *n != NULL; n++) {
        if (hn_pass_find(*n) != NULL)
            continue;
        g_autoptr(GPtrArray) known = g_ptr_array_new();
        for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++)
            g_ptr_array_add(known, (gpointer)(*p)->name);
        g_ptr_array_add(known, NULL);
        g_autofree char *words = hn_nearest_words(*n, (const char *const *)known->pdata);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "option '--%s': there is no pass '%s'%s; '--list-passes' lists all", option, *n, words);
        return FALSE;
    }
    return TRUE;
}

static gboolean parse_to(Export *e, GError **error)
{
    static const HnDtype types[] = { HN_F16, HN_BF16, HN_F32 };
    if (e->p->to == NULL)
        return !e->p->keep_io || hn_tool_usage(error, "'--keep-io' is for '--to'");
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++)
        if (!strcmp(e->p->to, hn_dtype_name(types[i])))
            e->to = types[i];
    return e->to != HN_UNDEFINED || hn_tool_usage(error, "option '--to' is one of f16, bf16, f32");
}

static gboolean check_options(Export *e, GError **error)
{
    const ExportParams *p = e->p;
    const gboolean checks = p->data != NULL || p->input != NULL || p->samples > 0;
    if (p->no_check && (checks || p->bench || p->repro != NULL))
        return hn_tool_usage(error,
                             "'--no-check' excludes '--check', '--data', '--input', '--bench' and '--keep-repro'");
    if (p->bench && p->keep_functions)
        return hn_tool_usage(error,
                             "'--bench' runs models with their functions unfolded: it excludes '--keep-functions'");
    if (p->to_core && p->keep_functions)
        return hn_tool_usage(error, "'--to-core' looks into functions: it excludes '--keep-functions'");
    if (p->samples < 0 || p->level < 0 || p->fold_limit < 0 || p->rtol < 0 || p->atol < 0)
        return hn_tool_usage(error, "a number of samples, a level, a limit and a tolerance are not negative");
    if (p->opset != 0 && (p->opset < 7 || p->opset > HN_OPSET_MAX)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--opset': a number from 7 to %d", HN_OPSET_MAX);
        return FALSE;
    }
    return check_passes(p->only, "only", error) && check_passes(p->skip, "skip", error) &&
           hn_tool_parse_external(e->p->external, &e->external, error) && parse_to(e, error);
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static HnModel *open_model(gpointer data, GError **error)
{
    Export *e = data;
    if (e->faced.model != NULL)
        return hn_model_copy(e->faced.model);
    const HnOnnxOptions o = { .budget = e->ctx->budget, .verify_data = !e->verified };
    e->verified = TRUE;
    HnModel *m =
        e->bytes != NULL ? hn_onnx_read_bytes(e->bytes, NULL, &o, error) : hn_onnx_read_file(e->path, &o, error);
    if (m != NULL && e->p->no_zipmap)
        hn_unzip_maps(m);
    return m;
}

/* All of the names, which commas separate, are values of g; nothing is NULL. */
static gboolean are_values(const HnGraph *g, const char *text, gsize n, char ***names)
{
    g_autofree char *list = g_strndup(text, n);
    *names = NULL;
    if (n == 0)
        return TRUE;
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    for (char **p = parts; *p != NULL; p++)
        if (!g_hash_table_contains(g->values, *p))
            return FALSE;
    *names = g_steal_pointer(&parts);
    return TRUE;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* USAGE: the first name that is no value, of a text in which no colon has values on both sides. */
static gboolean no_value(const HnGraph *g, const char *text, GError **error)
{
    g_auto(GStrv) asked = g_strsplit_set(text, ":,", -1);
    char **name = asked;
    while (*name != NULL && (**name == '\0' || g_hash_table_contains(g->values, *name)))
        name++;
    guint n;
    g_autofree char **names = (char **)g_hash_table_get_keys_as_array(g->values, &n);
    qsort(names, n, sizeof *names, compare_names); /* an order that does not hang on how they lie in the table */
    g_autofree char *words = hn_nearest_words(*name != NULL ? *name : text, (const char *const *)names);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--extract': the model's graph has no value '%s'%s",
                *name != NULL ? *name : text, words);
    return FALSE;
}

/* Names may hold colons: the colon is the one with values on both sides. */
static gboolean parse_extract(Export *e, const HnModel *m, GError **error)
{
    const char *text = e->p->extract;
    for (const char *colon = strchr(text, ':'); colon != NULL; colon = strchr(colon + 1, ':')) {
        if (are_values(m->graph, text, (gsize)(colon - text), &e->in) &&
            are_values(m->graph, colon + 1, strlen(colon + 1), &e->out))
            return TRUE;
        g_clear_pointer(&e->in, g_strfreev);
    }
    if (strchr(text, ':') != NULL)
        return no_value(m->graph, text, error);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--extract': '%s' is not of the form IN:OUT", text);
    return FALSE;
}

/* What may not grow: the file, or the piece of it that is wanted. Where growing is what the user asked for it is said,
 * and nothing else. */
static gboolean limit_size(Export *e, GError **error)
{
    const ExportParams *p = e->p;
    gsize piece = 0;
    const gboolean piece_only = p->extract != NULL || export_has_face(e);
    if (p->allow_larger || p->force || e->to != HN_UNDEFINED || p->fold_limit > (gint64)HN_FOLD_BYTES)
        return TRUE;
    if (piece_only && !hn_onnx_size(e->original, e->ctx->budget, &piece, error))
        return FALSE;
    e->o.file_bytes = piece_only ? piece : e->file_before - MIN(e->orphaned, e->file_before);
    return TRUE;
}

/* A replay only compares where no output is named. */
static gboolean writes(const Export *e)
{
    return e->recipe == NULL || e->p->output != NULL;
}

/* "hone-export MODEL OUT" does as well. */
static const char *model_of(Export *e, GError **error)
{
    if (e->ctx->n_args != 2 || e->p->output != NULL || e->p->replay != NULL)
        return hn_tool_one_model(e->ctx, error);
    ((ExportParams *)e->ctx->params)->output = g_strdup(e->ctx->args[1]);
    return e->ctx->args[0];
}

static gboolean prepare(Export *e, GError **error)
{
    if (e->p->replay != NULL && !export_read_recipe(e, error))
        return FALSE;
    const ExportParams *p = e->p;
    if (!check_options(e, error) || (e->path = model_of(e, error)) == NULL ||
        (e->backend = hn_tool_backend(e->ctx, error)) == NULL ||
        (e->shapes = hn_tool_shapes(p->dim, p->shapes, error)) == NULL)
        return FALSE;
    if (!strcmp(e->path, "-") && (!hn_context_take_stdin(e->ctx, "the model", error) ||
                                  (e->bytes = hn_stdin_bytes(e->ctx->budget, error)) == NULL))
        return FALSE;
    if (p->data != NULL && !strcmp(p->data, "-") && !hn_context_take_stdin(e->ctx, "the data", error))
        return FALSE;
    if (writes(e) && (p->output == NULL || hn_out_is_stdout(p->output)) &&
        !hn_context_take_stdout(e->ctx, "the model", error))
        return FALSE;
    if (!e->backend->computes && !p->no_check)
        return hn_tool_usage(error, "a device that computes nothing cannot check results: add '--no-check'");
    g_autoptr(HnModel) m = open_model(e, error);
    if (m == NULL || !(p->extract != NULL ? parse_extract(e, m, error) : hn_tool_has_outputs(m, e->path, error)))
        return FALSE;
    hn_tool_warn_speed_only(e->ctx, e->path, m);
    e->file_before = m->file_bytes;
    e->orphaned = e->bytes == NULL ? hn_orphaned_bytes(m, e->path) : 0;
    if (!export_make_face(e, m, error))
        return FALSE;
    const gboolean cut = !export_has_face(e); /* what is cut out was cut out before */
    e->o = (HnExportOptions){
        .open = open_model,
        .data = e,
        .extract_in = cut ? (const char *const *)e->in : NULL,
        .extract_out = cut ? (const char *const *)e->out : NULL,
        .fix = p->dim != NULL || p->shapes != NULL ? e->shapes : NULL,
        .opset = p->opset,
        .keep_functions = p->keep_functions,
        .to_core = p->to_core,
        .pass = { .level = p->level,
                  .only = (const char *const *)p->only,
                  .skip = (const char *const *)p->skip,
                  .fold_bytes = (gsize)p->fold_limit,
                  .explain = p->explain,
                  .budget = e->ctx->budget,
                  .progress = &e->ctx->progress },
        .to = e->to,
        .keep_io = p->keep_io,
        .half_tol = fmax(1e-2, p->rtol),
        .growth = e->growth,
        .threads = e->ctx->common.threads,
        .infer_shapes = p->infer_shapes,
        .clear_metadata = p->clear_metadata,
        .tolerance = { .rtol = p->rtol, .atol = p->atol, .part = NAN },
        .backend = e->backend,
        .progress = &e->ctx->progress,
    };
    e->original = hn_export_original(&e->o, error);
    e->unfolds = e->original != NULL && (e->original->functions->len > 0 || hn_count_contrib(e->original) > 0);
    e->sparse = e->original != NULL && hn_model_has_sparse(e->original);
    return e->original != NULL && export_take_inputs(e, e->original, error) && limit_size(e, error);
}

/* --- work --------------------------------------------------------------------------------------------------------- */

/* Free dimensions have the sizes that they have in what is given. */
static void take_sizes(Export *e, const HnModel *m)
{
    e->given_shapes = hn_shapes_copy(e->overrides ? NULL : e->shapes);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        const HnTensor *t = hn_tool_input(&e->given, v->name);
        for (int a = 0; t != NULL && a < t->ndim && hn_type_rank(v->type) == t->ndim; a++)
            if (v->type->dims[a].sym != NULL)
                hn_shapes_set_dim(e->given_shapes, v->type->dims[a].sym, t->dims[a]);
    }
}

gboolean export_take_inputs(Export *e, const HnModel *m, GError **error)
{
    if (e->p->input == NULL || e->given.names != NULL)
        return TRUE;
    if (!hn_tool_inputs(e->ctx, m, &e->p->from, e->path, e->shapes, e->p->input, &e->given, error))
        return FALSE;
    if (e->given.feeds->pdata[0] != NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "option '--input': '%s' is an initializer, which stays as it is", (char *)e->given.feeds->pdata[0]);
        return FALSE;
    }
    e->given_names = g_ptr_array_new();
    for (guint i = 0; i < e->given.names->len; i++)
        g_ptr_array_add(e->given_names, e->given.names->pdata[i]);
    g_ptr_array_add(e->given_names, NULL);
    take_sizes(e, m);
    return TRUE;
}

/* Runs the original. Where that cannot be done nothing is written, unless the user can do without. */
static gboolean open_check(Export *e, GError **error)
{
    const ExportParams *p = e->p;
    if (p->no_check)
        return TRUE;
    e->vo = (HnSamplesOptions){
        .backend = e->backend,
        .threads = e->ctx->common.threads,
        .seed = e->ctx->common.seed,
        .source = p->data,
        .preprocess = e->preprocess,
        .cache = p->from.cache,
        .samples = p->samples == 0 && e->to != HN_UNDEFINED && p->data == NULL ? HALF_SAMPLES : p->samples,
        .shapes = e->given_shapes != NULL ? e->given_shapes : e->shapes,
        .given_names = e->given_names != NULL ? (const char *const *)e->given_names->pdata : NULL,
        .given = e->given.names != NULL ? (HnTensor *const *)e->given.tensors->pdata : NULL,
        .budget = e->ctx->budget,
        .progress = &e->ctx->progress,
    };
    GError *failure = NULL;
    e->verify = hn_verify_new(e->original, &e->vo, &failure);
    if (e->verify != NULL) {
        hn_verify_tolerance(e->verify, &e->o.tolerance);
        return TRUE;
    }
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_UNSUPPORTED))
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "there is nothing to compare with, since the original cannot be run%s: %s; '--no-check' writes "
                    "without comparing",
                    p->data == NULL ? " on made-up data" : "", failure->message);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    g_clear_error(&failure);
    return FALSE;
}

static gboolean make_repro_dir(Export *e, GError **error)
{
    if (e->p->repro == NULL)
        return TRUE;
    if (g_mkdir_with_parents(e->p->repro, 0777) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot make folder '%s'", e->p->repro);
        return FALSE;
    }
    e->o.repro = g_strconcat(e->p->repro, "/", NULL);
    return TRUE;
}

static void tell_blocked(const Export *e)
{
    for (guint i = 0; i < e->x.blocked->len; i++)
        hn_context_warn(e->ctx, "%s", (const char *)e->x.blocked->pdata[i]);
}

static void tell_dropped(const Export *e)
{
    for (guint i = 0; i < e->x.dropped->len; i++) {
        const HnDropped *d = e->x.dropped->pdata[i];
        hn_context_warn(e->ctx, "pass '%s' was undone at '%s'%s%s%s: %s%s%s", d->pass, d->site, *d->op ? " (" : "",
                        d->op, *d->op ? ")" : "", d->why, d->repro != NULL ? "; see " : "",
                        d->repro != NULL ? d->repro : "");
    }
}

static gboolean is_half(const Export *e)
{
    return e->to == HN_F16 || e->to == HN_BF16;
}

/* Running a model unfolds its functions and spells operators out: where they are to stay a copy runs. */
static gboolean measure(Export *e, const HnSpeedupOptions *o, GError **error)
{
    const gboolean unfolds = e->x.model->functions->len > 0 || hn_count_contrib(e->x.model) > 0;
    g_autoptr(HnModel) copy = unfolds ? hn_model_copy(e->x.model) : NULL;
    return hn_export_speedup(&e->o, e->verify, copy != NULL ? copy : e->x.model, o, &e->speedup, error);
}

/* Says so where a conversion gains nothing. What is slower is not written, of halves and with --bench. */
static gboolean guard_speed(Export *e, GError **error)
{
    const HnSpeedupOptions o = {
        .threads = e->ctx->common.threads,
        .seconds = e->p->bench ? 10 : 5,
        .limit = SLOWER,
        .budget = e->ctx->budget,
        .progress = &e->ctx->progress,
    };
    e->has_speedup = e->x.has_speedup;
    e->speedup = e->x.speedup;
    if (e->verify == NULL || (!e->p->bench && e->to == HN_UNDEFINED))
        return TRUE;
    if (!measure(e, &o, error))
        return FALSE;
    e->has_speedup = TRUE;
    if (e->to != HN_UNDEFINED && e->speedup.pointless) {
        g_autofree char *text = hn_speedup_describe(&e->speedup);
        hn_context_warn(e->ctx, "the conversion to %s gains nothing here: %s", e->p->to, text);
    }
    const gboolean judged = e->p->bench || is_half(e);
    return !judged || e->p->force || hn_guard_speed(&e->speedup.effect, SLOWER, WHAT, error);
}

/* Of halves; of all else the export itself sees to it (HnExportOptions.file_bytes). */
static gboolean guard_size(const Export *e, gsize bytes, GError **error)
{
    const ExportParams *p = e->p;
    const guint64 most = hn_guard_room(e->file_before - MIN(e->orphaned, e->file_before));
    if (!is_half(e) || p->force || p->allow_larger || p->extract != NULL)
        return TRUE;
    return bytes <= most || (e->has_speedup && e->speedup.faster) ||
           hn_guard_smaller(bytes, e->file_before, WHAT, error);
}

/* The first sample, on what was written. */
static gboolean guard_written(gpointer data, HnModel *m, GError **error)
{
    const Export *e = data;
    const HnSessionOptions o = { .threads = e->ctx->common.threads, .budget = e->ctx->budget };
    HnTensor *const *in = e->verify != NULL ? hn_samples_inputs(hn_verify_samples(e->verify), 0) : NULL;
    return hn_guard_runs(m, e->backend, &o, in, WHAT, error);
}

static gboolean write_model(Export *e, GError **error)
{
    const char *path = e->p->output != NULL ? e->p->output : "-";
    guint64 bytes = 0;
    if (e->sparse && hn_model_store_sparse(e->x.model, e->ctx->budget, error) < 0)
        return FALSE;
    if (!export_add_recipe(e, error) ||
        (e->recipe != NULL && !hn_recipe_check_bytes(e->p->replay, e->x.model, e->ctx->budget, error)))
        return FALSE;
    if (!hn_onnx_size(e->x.model, e->ctx->budget, &e->file_after, error) || !guard_size(e, e->file_after, error))
        return FALSE;
    if (!writes(e))
        return TRUE;
    const HnOnnxWriteOptions o = {
        .external = e->external, .budget = e->ctx->budget, .bytes = &bytes, .check = guard_written, .data = e
    };
    if (hn_progress_stop(&e->ctx->progress, error) || !hn_onnx_write_file(e->x.model, path, &o, error))
        return FALSE;
    e->file_after = hn_out_is_stdout(path) ? 0 : bytes;
    return TRUE;
}

static const HnShapes *sizes(const Export *e)
{
    return e->verify != NULL ? hn_samples_sizes(hn_verify_samples(e->verify), 0) : e->shapes;
}

/* What there is to tell of the original; then it goes, for the others to have its memory. */
static gboolean leave_original(Export *e, GError **error)
{
    if (e->verify != NULL && e->unfolds) { /* running it has done that */
        hn_model_free(e->original);
        if ((e->original = hn_export_original(&e->o, error)) == NULL)
            return FALSE;
    }
    hn_facts(e->original, sizes(e), e->ctx->budget, &e->before);
    g_clear_pointer(&e->original, hn_model_free);
    return TRUE;
}

/* Running the original, rewriting and comparing, racing, writing. */
static void phase(const Export *e, guint k)
{
    const gboolean races = e->p->bench || e->to != HN_UNDEFINED, runs = !e->p->no_check;
    hn_bar_phase(e->ctx->bar, k - (k > 1 && !runs) - (k > 3 && (!races || !runs)), 2u + runs + (runs && races));
}

static gboolean work(Export *e, GError **error)
{
    if (!make_repro_dir(e, error) || (e->recipe != NULL && !export_check_input(e, error)))
        return FALSE;
    phase(e, 1);
    if (!open_check(e, error) || (e->recipe != NULL && !export_check_samples(e, error)) || !leave_original(e, error))
        return FALSE;
    GError *failure = NULL;
    phase(e, 2);
    const gboolean made = hn_export(&e->o, e->verify, &e->x, &failure);
    tell_dropped(e);
    if (!made) {
        tell_blocked(e);
        g_propagate_error(error, failure);
        return FALSE;
    }
    hn_facts(e->x.model, sizes(e), e->ctx->budget, &e->after);
    phase(e, 3);
    if (!guard_speed(e, error))
        return FALSE;
    phase(e, 4);
    return write_model(e, error) && export_report(e, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    Export e = { .ctx = ctx, .p = ctx->params };
    if (e.p->list_passes)
        return export_list_passes(ctx, error);
    gboolean ok = prepare(&e, error) && work(&e, error);
    hn_facts_clear(&e.before);
    hn_facts_clear(&e.after);
    hn_exported_clear(&e.x);
    export_clear_replayed(&e);
    export_clear_face(&e);
    hn_tool_inputs_clear(&e.given);
    g_clear_pointer(&e.given_names, g_ptr_array_unref);
    hn_shapes_free(e.given_shapes);
    hn_verify_free(e.verify);
    hn_preprocess_free(e.preprocess);
    hn_model_free(e.original);
    hn_shapes_free(e.shapes);
    g_free((char *)e.o.repro);
    g_strfreev(e.in);
    g_strfreev(e.out);
    if (e.bytes != NULL)
        g_bytes_unref(e.bytes);
    return ok;
}

static const char *const usual[] = { "output",  "to",      "opset", "dim",     "shapes", "data",     "no-check",
                                     "explain", "threads", "json",  "verbose", "help",   "help-all", NULL };

static const HnTool tool = {
    .name = EXPORT_TOOL,
    .summary = "simplify and convert a model, and prove that it computes the same",
    .usage = "[OPTIONS] MODEL [-o] OUT",
    .usual = usual,
    .examples = "hone-export model.onnx -o small.onnx\n"
                "hone-export model.onnx --to f16 --data samples/ -o half.onnx",
    .details =
        "The new model is run against the original before it is written. A rewrite that breaks the model or "
        "changes its results is found, undone and named; the others stay.\n\n"
        "Exit status: 0 written; 1 bad model or data, or the output cannot be written; 2 usage; 3 results, speed or "
        "length missed a guard, nothing written; 4 unsupported, as an original that cannot be run, or a node that has "
        "no equivalent in the opset asked for; 5 too noisy to tell whether it is slower; "
        "6 a limit was reached; 130 interrupted.",
    .options = entries,
    .params_size = sizeof(ExportParams),
    .defaults = &export_defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
