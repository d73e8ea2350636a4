/* hone-profile: where a model's time and memory go, node by node. */
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "ir/ir_text.h"
#include "perf/trace.h"
#include "hone_profile.h"

#define MAX_RUNS 1000000000 /* of --runs */

static const ProfileParams defaults = { .runs = -1, .top = PROFILE_TOP };

static const GOptionEntry entries[] = {
    { "warmup", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(ProfileParams, warmup),
      "before measuring: auto (until times settle), a number of runs, or a time such as 200ms (default: auto)", "W" },
    { "time", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(ProfileParams, time),
      "measure for this time, and at least 6 profiled and 6 unprofiled runs (default: 2s, and up to 10s until the "
      "medians are known within 1 %)",
      "T" },
    { "runs", 'n', 0, G_OPTION_ARG_INT64, HN_FIELD(ProfileParams, runs), "measure N profiled and N unprofiled runs",
      "N" },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ProfileParams, data),
      "samples: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-' or random[:N] "
      "(default: random)",
      "SRC" },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(ProfileParams, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list], an initializer too; may be repeated",
      "NAME=VALUE" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ProfileParams, dim),
      "a dimension of random data, such as batch=8 (default: 1)", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(ProfileParams, shapes),
      "shapes of random data, such as x:1x3x224x224", "LIST" },
    { "top", 0, 0, G_OPTION_ARG_INT, HN_FIELD(ProfileParams, top), "nodes in the table; 0: all (default: 15)", "N" },
    { "weights", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ProfileParams, weights),
      "report zeros, range and dead channels of each weight", NULL },
    { "trace", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ProfileParams, trace),
      "write profiled runs as Chrome trace events, for Perfetto", "FILE" },
    { "folded", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ProfileParams, folded), "write folded stacks, for flame graphs",
      "FILE" },
    { "compare", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ProfileParams, compare),
      "the change of each node against an earlier report of --json", "OLD.json" },
    { "advise", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ProfileParams, advise),
      "try what would make it faster with --time or --runs too, and where runs are long", NULL },
    { "no-advise", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ProfileParams, no_advise), "try nothing", NULL },
    { "measure-roofline", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ProfileParams, remeasure),
      "measure what the machine can do again, instead of taking it from the cache", NULL },
    { "lowered", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ProfileParams, lowered),
      "print what runs instead, as text: a graph for each plan, in which operators stand for the nodes that are "
      "computed "
      "as one",
      NULL },
    { "strict", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(ProfileParams, strict), "fail where a node would run on ref", NULL },
    HN_TOOL_TRAIN_ENTRIES(ProfileParams, training),
    HN_TOOL_DATA_ENTRIES(ProfileParams, from),
    G_OPTION_ENTRY_NULL,
};

/* --- options --------------------------------------------------------------------------------------------- */

static gboolean parse_length(Profiling *f, GError **error)
{
    const ProfileParams *p = f->p;
    if (p->runs != -1 && p->time)
        return hn_tool_usage(error, "options '--runs' and '--time' exclude each other");
    if (p->runs != -1 && (p->runs < 1 || p->runs > MAX_RUNS))
        return hn_tool_usage(error, "option '--runs' needs a number from 1 on");
    f->seconds = PROFILE_SECONDS;
    if (p->time && !hn_parse_seconds(p->time, &f->seconds, error)) {
        g_prefix_error(error, "option '--time': ");
        return FALSE;
    }
    return (f->seconds > 0 && f->seconds <= 1e9) || hn_tool_usage(error, "option '--time' needs a time above 0");
}

static gboolean check_options(Profiling *f, GError **error)
{
    HnContext *ctx = f->ctx;
    const ProfileParams *p = f->p;
    if (!(f->path = hn_tool_one_model(ctx, error)))
        return FALSE;
    if (!hn_warmup_parse(p->warmup ? p->warmup : "auto", &f->warmup, error)) {
        g_prefix_error(error, "option '--warmup': ");
        return FALSE;
    }
    if (!parse_length(f, error) || !hn_tool_train_check(&p->training, error))
        return FALSE;
    if (hn_tool_train_any_batch(&p->training))
        return hn_tool_usage(error, "option '--batch' is a number here: hone-bench --train finds the largest");
    if (p->training.train && p->input)
        return hn_tool_usage(error, "options '--train' and '--input' exclude each other");
    if (p->top < 0)
        return hn_tool_usage(error, "option '--top' needs a number from 0 on");
    if (p->trace && p->folded && !strcmp(p->trace, p->folded))
        return hn_tool_usage(error, "'--trace' and '--folded' need two files");
    if (p->advise && p->no_advise)
        return hn_tool_usage(error, "options '--advise' and '--no-advise' exclude each other");
    if (p->compare && !strcmp(p->compare, "-") && !hn_context_take_stdin(ctx, "the earlier report", error))
        return FALSE;
    if (p->lowered && !hn_context_take_stdout(ctx, "the lowered graph", error))
        return FALSE;
    if (p->trace && hn_out_is_stdout(p->trace) && !hn_context_take_stdout(ctx, "the trace", error))
        return FALSE;
    if (p->folded && hn_out_is_stdout(p->folded) && !hn_context_take_stdout(ctx, "the stacks", error))
        return FALSE;
    if (p->data && !strcmp(p->data, "-") && !hn_context_take_stdin(ctx, "the data", error))
        return FALSE;
    if (!(f->backend = hn_tool_backend(ctx, error)))
        return FALSE;
    if (!f->backend->computes) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device '%s' computes nothing that could be profiled",
                    ctx->common.device);
        return FALSE;
    }
    return (f->shapes = hn_tool_shapes(p->dim, p->shapes, error)) != NULL;
}

/* "mnist-8" of ".../mnist-8/model.onnx", else the file's name. */
static char *make_label(const char *path)
{
    if (!strcmp(path, "-"))
        return g_strdup("stdin");
    g_autofree char *base = g_path_get_basename(path), *folder = g_path_get_dirname(path);
    g_autofree char *above = g_path_get_basename(folder);
    return g_filename_display_name(!strcmp(base, "model.onnx") && strcmp(above, ".") ? above : base);
}

/* The path as on a command line. */
static char *quote(const char *path)
{
    return g_regex_match_simple("^[A-Za-z0-9_./+-]+$", path, 0, 0) ? g_strdup(path) : g_shell_quote(path);
}

/* --- opening --------------------------------------------------------------------------------------------- */

static void find_kinds(Profiling *f)
{
    for (guint k = 0; k < f->n_sets; k++) {
        while (!hn_tool_same_shapes(f->sets[f->kinds[k]], f->sets[k]))
            f->kinds[k]++;
        f->shapes_vary |= f->kinds[k] > 0;
    }
}

/* HnProfileOptions.kind */
static guint kind_of_set(gpointer data, guint64 i)
{
    const Profiling *f = data;
    return f->kinds[i % f->n_sets];
}

static gboolean load_sets(Profiling *f, GError **error)
{
    gint64 count = hn_data_count(f->data);
    if (count < 1) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no samples", hn_data_source(f->data));
        return FALSE;
    }
    while (f->n_sets < MIN(count, PROFILE_SETS)) {
        HnSample *set = hn_data_load(f->data, f->n_sets, error);
        if (!set)
            return FALSE;
        f->sets[f->n_sets++] = set;
    }
    find_kinds(f);
    return TRUE;
}

static gboolean open_data(Profiling *f, GError **error)
{
    const ProfileParams *p = f->p;
    int n;
    g_autofree HnValue **inputs = hn_tool_session_inputs(f->session, &n);
    f->data = hn_tool_open_feed(f->ctx,
                                &(HnToolFeed){ .from = &p->from,
                                               .path = f->path,
                                               .source = p->data,
                                               .shapes = f->shapes,
                                               .sizes = p->dim || p->shapes ? "'--dim' and '--shapes'" : NULL,
                                               .given = &f->given },
                                inputs, n, error);
    return f->data && load_sets(f, error);
}

/* HnToolReadFn */
static HnModel *read_again(gpointer data, GError **error)
{
    const Profiling *f = data;
    return hn_tool_read_model(f->ctx, f->path, error);
}

static gboolean open_training(Profiling *f, GError **error)
{
    HnContext *ctx = f->ctx;
    if (!(f->training = hn_tool_training_new(ctx, &f->p->training, error)) ||
        !hn_tool_training_open(f->training, f->model, &f->p->from, f->path, f->p->data, f->shapes, PROFILE_SETS,
                               &f->data, &f->names, error))
        return FALSE;
    f->n_sets = hn_tool_training_sets(f->training);
    for (guint k = 0; k < f->n_sets; k++)
        f->sets[k] = hn_tool_training_set(f->training, k);
    f->trainer = hn_tool_trainer_new(f->training, read_again, f, f->backend, ctx->common.threads, HN_UNDEFINED, error);
    f->session = f->trainer ? hn_trainer_session(f->trainer) : NULL;
    return f->session != NULL;
}

static gboolean open_model(Profiling *f, GError **error)
{
    HnContext *ctx = f->ctx;
    if (!(f->model = hn_tool_read_model(ctx, f->path, error)) ||
        !hn_tool_inputs(ctx, f->model, &f->p->from, f->path, f->shapes, f->p->input, &f->given, error))
        return FALSE;
    if (f->p->training.train)
        return open_training(f, error);
    HnSessionOptions o = { .threads = ctx->common.threads,
                           .strict = f->p->strict,
                           .strict_math = ctx->common.strict_math,
                           .seed = ctx->common.seed,
                           .budget = ctx->budget,
                           .feeds = (const char *const *)f->given.feeds->pdata,
                           .plan_cache = PROFILE_SETS };
    if (profile_on_device(f))
        f->backend->state(f->backend->index, NULL, &f->device_before);
    f->session = hn_session_new(f->model, f->backend, &o, error);
    if (!f->session)
        return FALSE;
    f->n_out = hn_session_n_outputs(f->session);
    f->out = g_new0(HnTensor *, f->n_out + 1);
    return open_data(f, error);
}

/* --- measuring ------------------------------------------------------------------------------------------- */

static gboolean run_set(gpointer data, guint64 i, GError **error)
{
    Profiling *f = data;
    double loss;
    if (f->trainer)
        return hn_tool_train(f->training, f->trainer, i, &loss, error);
    if (!hn_session_run(f->session, f->sets[i % f->n_sets]->in, f->out, error))
        return FALSE;
    for (int k = 0; k < f->n_out; k++)
        hn_tensor_unref(f->out[k]);
    return TRUE;
}

/* HnRunner.run, for the warm-up. */
static gboolean run_stamped(gpointer data, guint64 i, guint64 *start, guint64 *end, GError **error)
{
    *start = hn_now_ns();
    gboolean ok = run_set(data, i, error);
    *end = hn_now_ns();
    return ok;
}

static void measure_machine(Profiling *f)
{
    hn_roofline_get(f->ctx->common.threads, NULL, f->p->remeasure, f->ctx->budget, &f->roofline);
    if (!profile_on_device(f))
        return;
    HnDevice *device = hn_engine_device(hn_session_engine(f->session));
    HnDeviceState state;
    hn_device_bytes(f->session, &f->device_before, &f->device_bytes);
    f->backend->state(f->backend->index, device->handle, &state);
    hn_roofline_device(device, &state, NULL, f->p->remeasure, &f->there);
}

/* The first run of all, and on a device that keeps records the first two for each kind of inputs: what is recorded in
 * the second one may make no records later where none are kept now. */
static gboolean run_first(Profiling *f, GError **error)
{
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(HnDeviceRecord));
    g_autoptr(GArray) work = g_array_new(FALSE, FALSE, sizeof(HnStepWork));
    g_autofree char *why = NULL, *lost = NULL;
    const gboolean traced = profile_on_device(f) && hn_session_trace_device(f->session, &why);
    gboolean ok = TRUE;
    for (guint k = 0; ok && k < (traced ? f->n_sets : 1); k++)
        for (int run = 0; ok && f->kinds[k] == k && run < (traced ? 2 : 1); run++)
            ok = run_set(f, k, error);
    if (traced)
        hn_session_device_records(f->session, records, work, &lost);
    return ok;
}

static gboolean measure(Profiling *f, GError **error)
{
    const HnProgress *progress = &f->ctx->progress;
    HnRunner runner = { run_stamped, f, f->n_sets };
    HnWarmedUp warmed;
    hn_progress_tell(progress, "measuring the machine", 0, 0);
    if (!run_first(f, error))
        return FALSE;
    measure_machine(f);
    if (hn_progress_stop(progress, error) || !hn_warm_up(&runner, &f->warmup, progress, &warmed, error))
        return FALSE;
    hn_tool_note_refs(f->ctx, f->session, f->backend);
    HnProfileOptions o = { .run = run_set,
                           .kind = f->shapes_vary ? kind_of_set : NULL,
                           .data = f,
                           .runs = f->p->runs > 0 ? (guint64)f->p->runs : 0,
                           .seconds = f->seconds,
                           .precision = f->p->time ? 0 : PROFILE_PRECISION,
                           .limit = PROFILE_LIMIT,
                           .trace_spans = f->p->trace ? HN_TRACE_SPANS : 0,
                           .records = TRUE };
    HnNoiseMark before, after;
    hn_profile_init(&f->profile, f->session);
    hn_noise_mark(NULL, &before);
    hn_device_noise_begin(&f->device_noise, f->backend, hn_engine_device(hn_session_engine(f->session))->handle);
    if (!hn_profile_measure(&f->profile, &o, progress, error))
        return FALSE;
    hn_noise_mark(NULL, &after);
    hn_noise_between(&before, &after, &f->noise);
    hn_device_noise_end(&f->device_noise, f->backend, hn_engine_device(hn_session_engine(f->session))->handle);
    if (!hn_progress_stop(progress, NULL) && !hn_profile_errors(&f->profile, run_set, f, error))
        return FALSE;
    hn_profile_finish(&f->profile, &f->roofline, profile_on_device(f) ? &f->there : NULL);
    profile_try(f);
    return TRUE;
}

/* --- what runs ------------------------------------------------------------------------------------------- */

#define SHOWN_ELEMENTS 16 /* of a weight; of larger ones there is the type */

typedef struct {
    const HnLowered *last;
    GString *text;
} Lowered;

/* HnStepFn. Steps of a plan follow each other, but for those of sub-graphs. */
static void add_lowered(const HnStep *s, int depth, gpointer data)
{
    Lowered *l = data;
    if (depth > 0 || s->low == l->last)
        return;
    g_autoptr(HnModel) m = hn_lowered_model(s->low);
    hn_model_print(m, SHOWN_ELEMENTS, l->text);
    l->last = s->low;
}

static gboolean print_lowered(Profiling *f, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (!run_set(f, 0, error))
        return FALSE;
    hn_session_foreach_step(f->session, add_lowered, &(Lowered){ NULL, text });
    return hn_out_save("-", text->str, text->len, error);
}

/* --- all of it ------------------------------------------------------------------------------------------- */

static gboolean tell(Profiling *f, GError **error)
{
    const ProfileParams *p = f->p;
    GError *interrupted = NULL;
    gboolean stopped = hn_progress_stop(&f->ctx->progress, &interrupted);
    if ((p->trace && !hn_trace_write(&f->profile, f->label, p->trace, error)) ||
        (p->folded && !hn_folded_write(&f->profile, f->label, p->folded, error)) || !profile_report(f, error)) {
        g_clear_error(&interrupted);
        return FALSE;
    }
    if (stopped)
        g_propagate_error(error, interrupted);
    return !stopped;
}

static void profiling_clear(Profiling *f)
{
    hn_profile_clear(&f->profile);
    for (guint k = 0; !f->training && k < f->n_sets; k++)
        hn_sample_free(f->sets[k]);
    hn_tool_training_free(f->training); /* which owns its samples */
    hn_data_free(f->data);
    if (f->trainer)
        hn_trainer_free(f->trainer);
    else
        hn_session_free(f->session);
    g_free(f->names);
    hn_tool_inputs_clear(&f->given);
    hn_model_free(f->model);
    hn_shapes_free(f->shapes);
    g_free(f->out);
    g_free(f->label);
    g_free(f->quoted);
    g_clear_pointer(&f->trials, g_array_unref);
    g_clear_pointer(&f->old, json_object_unref);
}

static gboolean run(HnContext *ctx, GError **error)
{
    Profiling f = { .ctx = ctx, .p = ctx->params };
    gboolean ok = check_options(&f, error);
    if (ok) {
        f.label = make_label(f.path);
        f.quoted = quote(f.path);
        ok = profile_read_old(&f, error) && open_model(&f, error) &&
             (f.p->lowered ? print_lowered(&f, error) : measure(&f, error) && tell(&f, error));
    }
    hn_data_explain(f.data, error);
    profiling_clear(&f);
    return ok;
}

static const char *const usual[] = { "runs",    "time",    "data", "dim",     "shapes", "top",      "trace",
                                     "compare", "threads", "json", "verbose", "help",   "help-all", NULL };

static const HnTool tool = {
    .name = "hone-profile",
    .summary = "show where a model's time and memory go, node by node",
    .usage = "[OPTIONS] MODEL",
    .usual = usual,
    .examples = "hone-profile -t1 model.onnx\n"
                "hone-profile model.onnx --trace trace.json",
    .details = "Profiled and unprofiled runs take turns. Without --data they are fed random numbers, free "
               "dimensions 1 or the smallest that work. With -v the report says why faster kernels refused the nodes "
               "in the table.\n\n"
               "Exit status: 0 done; 1 bad model or data; 2 usage; 4 unsupported; 6 a limit was reached; 130 "
               "interrupted, and what was measured until then is printed.",
    .options = entries,
    .params_size = sizeof(ProfileParams),
    .defaults = &defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
