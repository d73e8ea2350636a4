/* hone-bench: how long a model takes, and what it costs to open and to keep. */
#include "hone_bench.h"

#include <string.h>

static const BenchParams defaults = { .runs = -1 };

static const GOptionEntry entries[] = {
    { "warmup", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, warmup),
      "before measuring: auto (until times settle), a number of runs, or a time such as 200ms (default: auto)", "W" },
    { "ci", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, ci),
      "stop when the median's 95 % interval is within P of it, after 10 s at the latest (default: 1%)", "P" },
    { "time", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, time),
      "measure for this time, such as 3s, and at least 6 runs, whatever the interval", "T" },
    { "runs", 'n', 0, G_OPTION_ARG_INT64, HN_FIELD(BenchParams, runs), "measure so many runs", "N" },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(BenchParams, data),
      "samples: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-' or random[:N] "
      "(default: random)",
      "SRC" },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(BenchParams, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list], an initializer too; may be repeated",
      "NAME=VALUE" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(BenchParams, dim),
      "a dimension of random data, such as batch=8, or one after the other: batch=1,8,32 (default: 1)", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(BenchParams, shapes),
      "shapes of random data, such as x:1x3x224x224, or one after the other: x:1x3x224x224/1x3x320x320", "LIST" },
    { "churn", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(BenchParams, churn),
      "what a new shape costs: all shapes of '--shapes' and '--dim' in one session, planned, kept, and planned again",
      NULL },
    { "strict", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(BenchParams, strict), "fail where a node would run on ref", NULL },
    { "batch-max", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, batch_max),
      "take the largest batch that fits --mem-limit, or a device's memory: auto, or N at most", "N" },
    { "steps", 0, 0, G_OPTION_ARG_INT64, HN_FIELD(BenchParams, steps),
      "measure N runs in a row, outputs fed back as '--loop' says, or as names of a decoder's inputs and outputs do",
      "N" },
    { "loop", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(BenchParams, loop),
      "what '--steps' feeds back: OUT=IN, present.*=past.*, logits:argmax=ids, @ones=IN, @positions=IN; may be "
      "repeated",
      "RULE" },
    { "precision", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, precision),
      "compute in these types: model, f32, bf16, with --train f16, or one after the other: model,bf16 (default: model)",
      "TYPE" },
    { "hint", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, hint),
      "latency: one run at a time; throughput: as many as there are threads (default: latency)", "MODE" },
    { "streams", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, streams),
      "run N instances at once, which share the threads, or one number after the other: 1,2,4", "N" },
    { "io", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, io),
      "reuse or host: inputs stay where they are; fresh: they are in new memory; copy: copying in and out counts, too; "
      "device: they and results stay in its memory; several are a list (default: reuse)",
      "HOW" },
    { "margin", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, margin),
      "several models: less than P is no difference (default: 2%)", "P" },
    { "instances", 0, 0, G_OPTION_ARG_INT, HN_FIELD(BenchParams, instances),
      "open the model N times and share the runs among them: what a baseline should be made of", "N" },
    { "baseline", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(BenchParams, baseline),
      "compare with the times in a report that --json has written; end with 5 where these are of another machine or "
      "model",
      "FILE" },
    { "raw", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(BenchParams, raw), "have the time of each run in the JSON", NULL },
    { "fail-if-slower", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, fail_if_slower),
      "exit with 3 where a model is slower than the first one, or than --baseline, by more than P, and with 5 where "
      "that "
      "cannot be told",
      "P" },
    { "on-noise", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(BenchParams, on_noise),
      "where it is too noisy to decide: warn, or fail with exit status 5 (default: warn; fail with --fail-if-slower)",
      "WHAT" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(BenchParams, plot),
      "draw the times with gnuplot, into FILE.svg or FILE.png", "FILE" },
    HN_TOOL_TRAIN_ENTRIES(BenchParams, training),
    HN_TOOL_DATA_ENTRIES(BenchParams, from),
    G_OPTION_ENTRY_NULL,
};

/* All that is asked for at one point. */
static gboolean bench_point(Bench *b, Point *point, GError **error)
{
    const int n = bench_sides(b);
    if (b->p->batch_max) {
        g_autofree char *dim = NULL;
        gint64 batch = bench_batch_max(b, point, 0, &dim, error);
        if (!batch)
            return FALSE;
        char *label = g_strdup_printf("%s%s%s=%" G_GINT64_FORMAT, point->label, *point->label ? "," : "", dim, batch);
        g_free(point->label);
        point->label = label;
        point->batch_dim = g_steal_pointer(&dim);
        point->batch = batch;
    }
    if (hn_tool_train_any_batch(&b->p->training) && !bench_batch_of_training(b, point, error))
        return FALSE;
    const gboolean computes = b->backend->computes && (!b->second || b->second->computes);
    if (n > 1 && b->streams == 1 && computes)
        return bench_compare(b, point, error);
    for (int i = 0; i < n; i++)
        if (!bench_alone(b, point, i, error))
            return FALSE;
    return TRUE;
}

static gboolean check_model(Bench *b, int i, GError **error)
{
    Subject s;
    GError *cause = NULL;
    subject_init(&s, b, b->points->pdata[0], i);
    const gboolean ok = subject_open(&s, &cause);
    hn_data_explain(s.data, &cause);
    if (!ok && s.model && !g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED))
        g_prefix_error(&cause, "'%s': ", s.path);
    if (!ok)
        g_propagate_error(error, cause);
    subject_clear(&s);
    return ok;
}

/* Of several models each is opened, with its data, before the first is measured: what is wrong with the last one is
 * said at once. What comes from stdin can be read once only. */
static gboolean check_models(Bench *b, GError **error)
{
    const int n = bench_sides(b);
    for (int i = 0; i < n && n > 1; i++) {
        hn_progress_tell(&b->ctx->progress, "checking files", (guint64)i, (guint64)n);
        if (hn_progress_stop(&b->ctx->progress, error))
            return FALSE;
        if (strcmp(b->ctx->args[b->second ? 0 : i], "-") != 0 && !check_model(b, i, error))
            return FALSE;
    }
    b->checked = n > 1 && b->ctx->stdin_user == NULL;
    return TRUE;
}

static gboolean run(HnContext *ctx, GError **error)
{
    Bench b = { .ctx = ctx, .p = ctx->params };
    gboolean ok = bench_options(&b, error);
    if (ok && bench_apart_is_asked()) {
        ok = bench_apart_answer(&b, error);
    } else if (ok && b.p->steps > 0) {
        ok = bench_loop(&b, error);
    } else if (ok && b.p->churn) {
        ok = bench_churn(&b, error);
    } else if (ok && (ok = check_models(&b, error))) {
        b.report = bench_report_new(&b);
        for (guint i = 0; i < b.points->len && ok; i++)
            ok = bench_point(&b, b.points->pdata[i], error);
        /* what is known is shown, although another model failed or Ctrl-C ended it */
        ok = bench_report_write(b.report, ok ? error : NULL) && ok;
        bench_report_free(b.report);
    }
    if (ok && b.verdict) {
        g_propagate_error(error, g_steal_pointer(&b.verdict));
        ok = FALSE;
    }
    bench_clear(&b);
    return ok;
}

/* A step's arena, weights and states: what a plan can be chosen by. */
static gboolean counts_memory(const void *params)
{
    return ((const BenchParams *)params)->training.train;
}

static const char *const usual[] = { "runs",           "time",    "data", "dim",     "shapes", "hint",     "baseline",
                                     "fail-if-slower", "threads", "json", "verbose", "help",   "help-all", NULL };

static const HnTool tool = {
    .name = "hone-bench",
    .summary = "measure the latency, start-up and memory of ONNX models",
    .usage = "[OPTIONS] MODEL...",
    .usual = usual,
    .examples = "hone-bench model.onnx --dim batch=1,8 --threads 2\n"
                "hone-bench old.onnx new.onnx --fail-if-slower 3%\n"
                "hone-bench model.onnx --baseline old.json --fail-if-slower 5%",
    .details = "Without --data a model is fed random numbers, free dimensions 1 or the smallest that work. Several "
               "models are compared with "
               "the first one. --dim and --threads take lists.\n\n"
               "Exit status: 0 done; 1 bad model or data; 2 usage; 3 slower than --fail-if-slower allows; 4 "
               "unsupported; 5 too noisy; 6 a limit was reached; 130 interrupted, and what was measured until then is "
               "printed.",
    .options = entries,
    .params_size = sizeof(BenchParams),
    .defaults = &defaults,
    .sweeps_threads = TRUE,
    .two_devices = TRUE,
    .counts_memory = counts_memory,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
