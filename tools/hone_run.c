/* hone-run: compute a model's outputs, and compare them with what they should be. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "check/tensor_diff.h"
#include "check/metric.h"
#include "data/interface.h"
#include "data/npy.h"
#include "data/npz.h"
#include "data/testset.h"
#include "hone_run.h"

typedef struct {
    char *data, *out, *test_data, *metric, *labels, *image;
    char **input, **dim, **shapes;
    double rtol, atol, min_cos;
    int batch;
    gboolean strict, print;
    char *precision;
    char **loop;
    gint64 steps, stop_token;
    int top_k;
    double temperature, top_p;
    HnToolDataParams from;
} Params;

static const Params defaults = {
    .rtol = NAN, .atol = NAN, .min_cos = NAN, .batch = 1, .stop_token = -1, .temperature = NAN, .top_p = 1
};

static const GOptionEntry entries[] = {
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, data),
      "samples: a test set or a folder of them, FILE.npz, FILE.npy, a folder of these, '-' or random[:N]", "SRC" },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(Params, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list], an initializer too; may be repeated",
      "NAME=VALUE" },
    { "out", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, out), "write results to DIR/test_data_set_N/output_K.pb",
      "DIR" },
    { "test-data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, test_data),
      "run a test set, or a folder of them, and compare with the outputs in it", "DIR" },
    { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, rtol), "relative tolerance (default: 1e-3)", "R" },
    { "atol", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, atol), "absolute tolerance (default: 1e-5)", "A" },
    { "min-cos", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, min_cos),
      "judge by the cosine between outputs instead: at least C", "C" },
    { "print", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, print),
      "print what came out as a table, as on a terminal, in place of writing it to stdout", NULL },
    { "labels", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, labels),
      "names of classes, one a line, for the table; implies --print", "FILE" },
    { "image", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, image),
      "write the first output that is a picture or mask as PNG", "FILE" },
    { "metric", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(Params, metric),
      "print how often the first output is right about the labels of the data: top1, top5", "NAME" },
    { "batch", 0, 0, G_OPTION_ARG_INT, HN_FIELD(Params, batch), "samples run together (default: 1)", "N" },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, dim),
      "a dimension of random data, such as batch=8 (default: 1)", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, shapes),
      "shapes of random data, such as x:1x3x224x224", "LIST" },
    { "steps", 0, 0, G_OPTION_ARG_INT64, HN_FIELD(Params, steps),
      "run N times, outputs fed back as '--loop' says, or as names of a decoder's inputs and outputs do", "N" },
    { "loop", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, loop),
      "what '--steps' feeds back: OUT=IN, present.*=past.*, logits:argmax=ids, logits:sample=ids, @ones=IN, "
      "@positions=IN; may be repeated",
      "RULE" },
    { "temperature", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, temperature),
      "draw tokens, from logits divided by T (default: 1; without it the likeliest)", "T" },
    { "sample-from", 0, 0, G_OPTION_ARG_INT, HN_FIELD(Params, top_k), "draw from the K likeliest tokens (default: all)",
      "K" },
    { "sample-share", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, top_p),
      "draw from the fewest tokens that are likely by P together (default: 1)", "P" },
    { "stop-token", 0, 0, G_OPTION_ARG_INT64, HN_FIELD(Params, stop_token), "end where token ID comes out", "ID" },
    { "precision", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(Params, precision),
      "compute in these types: model, bf16 (default: model)", "TYPE" },
    { "strict", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, strict), "fail where a node would run on ref", NULL },
    HN_TOOL_DATA_ENTRIES(Params, from),
    G_OPTION_ENTRY_NULL,
};

typedef struct {
    HnContext *ctx;
    const Params *p;
    HnModel *model;
    HnShapes *shapes;
    HnToolInputs given;
    const HnBackend *backend;
    HnSession *session;
    HnData *data;
    int *fed, n_fed; /* input of the session that input i of a sample is */
    RunLoop *loop;   /* of --steps; NULL: one run a sample */
    int n_out;
    const char **names; /* of outputs, then "tokens" where a loop makes them */
    HnTolerance tolerance;
    int top;              /* k of --metric, 0: not asked for */
    int64_t right, total; /* of --metric */
    GPtrArray **results;  /* per output, what stdout will carry: HnTensor * per batch. NULL: nothing */
    int64_t done;         /* batches */
    gboolean prints;
    RunPrint print;
    const char *image_output, *image_range; /* of --image: which output, and how it became colours; NULL: not yet */
    JsonArray *tests, *outputs;
    int n_wrong; /* outputs that are not equal */
    char *first_wrong;
} Run;

/* --- options ----------------------------------------------------------------------------------------------------- */

static gboolean check_options(const Params *p, GError **error)
{
    gboolean tolerance = !isnan(p->rtol) || !isnan(p->atol) || !isnan(p->min_cos);
    if (p->test_data && p->data)
        return hn_tool_usage(error, "options '--data' and '--test-data' exclude each other");
    if (p->test_data && p->metric)
        return hn_tool_usage(error, "option '--metric' needs labels, which the test sets of '--test-data' have not");
    if (tolerance && !p->test_data)
        return hn_tool_usage(error, "a tolerance is for '--test-data', which is not given");
    if (!isnan(p->min_cos) && !isnan(p->atol))
        return hn_tool_usage(error, "options '--atol' and '--min-cos' exclude each other");
    if (p->rtol < 0 || p->atol < 0)
        return hn_tool_usage(error, "a tolerance is not negative");
    if (p->min_cos > 1 || p->min_cos < -1)
        return hn_tool_usage(error, "option '--min-cos': a cosine is between -1 and 1");
    if (p->batch < 1)
        return hn_tool_usage(error, "option '--batch': at least one sample runs at a time");
    const gboolean draws = !isnan(p->temperature) || p->top_k || p->top_p != 1;
    if (p->steps < 0 || (p->loop && p->steps == 0))
        return hn_tool_usage(error, "option '--steps': how often the model is run, at least once");
    if ((draws || p->stop_token != -1) && p->steps == 0)
        return hn_tool_usage(error, "options that draw tokens are for '--steps', which is not given");
    if (p->temperature < 0 || p->top_k < 0 || !(p->top_p > 0 && p->top_p <= 1) || p->stop_token < -1)
        return hn_tool_usage(error, "options '--temperature', '--sample-from', '--stop-token' are not negative, and "
                                    "'--sample-share' is above 0 and at most 1");
    if (p->test_data && p->batch > 1)
        return hn_tool_usage(error, "option '--batch': the sets of '--test-data' run one by one");
    return TRUE;
}

static gboolean writes_stdout(const Params *p)
{
    return !p->out && !p->test_data && !p->metric && !p->image && !p->print && !p->labels;
}

/* A table, also where a terminal would get bytes. */
static gboolean wants_table(const Params *p)
{
    const gboolean elsewhere = p->out || p->test_data || p->metric;
    return p->print || p->labels || (!elsewhere && isatty(STDOUT_FILENO));
}

/* --- set-up ------------------------------------------------------------------------------------------------------ */

/* A pipe, socket or file that may hold data: not a terminal, not /dev/null. */
static gboolean stdin_may_hold_data(void)
{
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 && !S_ISCHR(st.st_mode);
}

/* What to read samples from; NULL without an error where --input gives everything. */
static gboolean find_source(Run *r, HnValue *const *inputs, int n, int n_open, const char **source, GError **error)
{
    const Params *p = r->p;
    *source = p->test_data ? p->test_data : p->data;
    if (*source)
        return strcmp(*source, "-") || hn_context_take_stdin(r->ctx, "the data", error);
    if (n_open == 0)
        return TRUE;
    if (n_open > 1 || r->ctx->stdin_user || !stdin_may_hold_data()) {
        g_autofree char *words = hn_inputs_words(inputs, (guint)n);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "there is no data: name it with '--data', '--input' or '--test-data'%s", words);
        return FALSE;
    }
    *source = "-";
    return hn_context_take_stdin(r->ctx, "the data", error);
}

static gboolean open_data(Run *r, GError **error)
{
    const int all = hn_session_n_inputs(r->session);
    int n = 0, n_open = 0;
    g_autofree HnValue **inputs = g_new0(HnValue *, MAX(all, 1));
    r->fed = g_new0(int, MAX(all, 1));
    for (int i = 0; i < all; i++) {
        inputs[n] = (HnValue *)hn_session_input(r->session, i);
        const gboolean given = hn_tool_input(&r->given, inputs[n]->name) != NULL;
        if (r->loop && !given && run_loop_makes(r->loop, i))
            continue;
        n_open += !given;
        r->fed[n++] = i;
    }
    r->n_fed = n;
    const char *source;
    if (!find_source(r, inputs, n, n_open, &source, error))
        return FALSE;
    r->data = hn_tool_open_feed(r->ctx,
                                &(HnToolFeed){ .from = &r->p->from,
                                               .path = r->ctx->args[0],
                                               .source = source,
                                               .shapes = r->shapes,
                                               .sizes = r->p->dim || r->p->shapes ? "'--dim' and '--shapes'" : NULL,
                                               .given = &r->given },
                                inputs, n, error);
    return r->data != NULL;
}

static gboolean open_loop(Run *r, const HnSessionOptions *o, GError **error)
{
    const Params *p = r->p;
    const RunLoopOptions lo = { .rules = (const char *const *)p->loop,
                                .sample = !isnan(p->temperature) || p->top_k || p->top_p != 1,
                                .picking = { .temperature = isnan(p->temperature) ? 1 : p->temperature,
                                             .top_p = p->top_p,
                                             .top_k = p->top_k,
                                             .seed = r->ctx->common.seed },
                                .steps = p->steps,
                                .stop = p->stop_token,
                                .session = o };
    r->loop = run_loop_new(r->session, r->model, &lo, error);
    return r->loop != NULL;
}

static gboolean prepare(Run *r, GError **error)
{
    HnContext *ctx = r->ctx;
    const Params *p = r->p;
    const char *path = hn_tool_one_model(ctx, error);
    if (!path || !check_options(p, error) || (p->metric && !hn_metric_parse(p->metric, &r->top, error)))
        return FALSE;
    gboolean both = !strcmp(path, "-") && p->data && !strcmp(p->data, "-");
    if (both)
        return hn_tool_usage(error, "the model and the data cannot both come from stdin");
    const HnBackend *backend = r->backend = hn_tool_backend(ctx, error);
    if (!backend)
        return FALSE;
    if (!backend->computes) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device '%s' computes nothing that could be written",
                    backend->name);
        return FALSE;
    }
    r->prints = wants_table(p);
    if (writes_stdout(p) && !r->prints && !hn_context_take_stdout(ctx, "the result", error))
        return FALSE;
    r->shapes = hn_tool_precision(ctx, p->precision, error) ? hn_tool_shapes(p->dim, p->shapes, error) : NULL;
    r->model = r->shapes ? hn_tool_read_model(ctx, path, error) : NULL;
    if (!r->model || !hn_tool_inputs(ctx, r->model, &p->from, path, r->shapes, p->input, &r->given, error))
        return FALSE;
    HnSessionOptions o = { .threads = ctx->common.threads,
                           .strict = p->strict,
                           .strict_math = ctx->common.strict_math,
                           .bf16 = p->precision && !strcmp(p->precision, "bf16"),
                           .seed = ctx->common.seed,
                           .budget = ctx->budget,
                           .feeds = (const char *const *)r->given.feeds->pdata,
                           .lasting = p->steps > 0 };
    r->session = hn_session_new(r->model, backend, &o, error);
    if (!r->session || (p->steps > 0 && !open_loop(r, &o, error)))
        return FALSE;
    r->n_out = hn_session_n_outputs(r->session);
    r->names = g_new0(const char *, r->n_out + 2);
    for (int k = 0; k < r->n_out; k++)
        r->names[k] = hn_session_output(r->session, k)->name;
    if (r->loop && run_loop_has_tokens(r->loop))
        r->names[r->n_out++] = "tokens";
    if (r->prints && !run_print_init(&r->print, p->labels, ctx->budget, error))
        return FALSE;
    if (writes_stdout(p) && !r->prints) {
        r->results = g_new0(GPtrArray *, r->n_out + 1);
        for (int k = 0; k < r->n_out; k++)
            r->results[k] = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    }
    r->tests = json_array_new();
    r->outputs = json_array_new();
    return open_data(r, error);
}

static void run_clear(Run *r)
{
    for (int k = 0; r->results && r->results[k]; k++)
        g_ptr_array_unref(r->results[k]);
    g_clear_pointer(&r->tests, json_array_unref);
    g_clear_pointer(&r->outputs, json_array_unref);
    run_print_clear(&r->print);
    hn_data_free(r->data);
    run_loop_free(r->loop);
    hn_session_free(r->session);
    hn_tool_inputs_clear(&r->given);
    hn_shapes_free(r->shapes);
    hn_model_free(r->model);
    g_free(r->fed);
    g_free(r->results);
    g_free(r->names);
    g_free(r->first_wrong);
}

/* --- what is done with the outputs of a batch -------------------------------------------------------------------- */

static void add_row(Run *r, const HnSample *s, int k, const HnTensor *got, const HnDiff *d)
{
    g_autofree char *set = g_path_get_basename(s->name), *type = hn_tensor_describe(got);
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "set", set);
    json_object_set_string_member(row, "output", r->names[k]);
    json_object_set_string_member(row, "type", type);
    json_object_set_boolean_member(row, "equal", d->equal);
    json_object_set_double_member(row, "max_abs", d->max_abs);
    json_object_set_double_member(row, "max_rel", d->max_rel);
    json_object_set_double_member(row, "cos", d->cos);
    json_object_set_int_member(row, "elements", d->n);
    json_object_set_int_member(row, "wrong", d->n_wrong);
    if (d->worst >= 0) {
        g_autofree char *at = hn_index_describe(got, d->worst);
        json_object_set_string_member(row, "worst_at", at);
    } else {
        json_object_set_null_member(row, "worst_at");
    }
    json_object_set_double_member(row, "got", d->got);
    json_object_set_double_member(row, "want", d->want);
    json_array_add_object_element(r->tests, row);
}

static void compare_one(Run *r, const HnSample *s, int k, const HnTensor *got, const HnTensor *want)
{
    HnDiff d;
    if (!hn_compare(got, want, &r->tolerance, &d) && r->n_wrong++ == 0) {
        g_autofree char *what = hn_diff_describe(&d, got, want, &r->tolerance);
        r->first_wrong = g_strdup_printf("output '%s' is not what '%s' expects: %s", r->names[k], s->name, what);
    }
    add_row(r, s, k, got, &d);
}

static gboolean compare(Run *r, const HnSample *s, HnTensor *const *out, GError **error)
{
    g_autofree HnTensor **want = g_new0(HnTensor *, r->n_out + 1);
    g_autofree const HnType **types = g_new0(const HnType *, r->n_out + 1);
    const int n_out = hn_session_n_outputs(r->session);
    for (int k = 0; k < n_out; k++)
        types[k] = hn_session_output(r->session, k)->type;
    if (!hn_testset_read(s->name, "output", n_out, types, want, r->ctx->budget, error))
        return FALSE;
    int n = 0;
    for (int k = 0; k < n_out; k++) {
        if (!want[k])
            continue;
        compare_one(r, s, k, out[k], want[k]);
        hn_tensor_unref(want[k]);
        n++;
    }
    if (n == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no output_0.pb to compare with", s->name);
    return n > 0;
}

static gboolean measure(Run *r, const HnSample *s, HnTensor *const *out, GError **error)
{
    if (!s->label) {
        g_set_error(
            error, HN_ERROR, HN_ERROR_USAGE,
            "option '--metric' needs labels, but '%s' has none: an array 'label', a folder for each class, or a list",
            s->name);
        return FALSE;
    }
    if (r->n_out == 0)
        return hn_tool_usage(error, "option '--metric': the model has no outputs");
    if (hn_metric_topk(out[0], s->label, r->top, &r->right, &r->total, error))
        return TRUE;
    g_prefix_error(error, "output '%s' with '%s': ", r->names[0], s->name);
    return FALSE;
}

static gboolean keep(Run *r, HnTensor *const *out, int64_t batches, GError **error)
{
    for (int k = 0; k < r->n_out; k++) {
        /* the session's own memory is good enough when nothing runs after this */
        HnTensor *t = batches == 1 ? hn_tensor_ref(out[k]) : hn_tensor_copy(out[k], r->ctx->budget, error);
        if (!t)
            return FALSE;
        g_ptr_array_add(r->results[k], t);
    }
    return TRUE;
}

static gboolean write_set(Run *r, HnTensor *const *out, GError **error)
{
    g_autofree char *name = g_strdup_printf("test_data_set_%" PRId64, r->done);
    g_autofree char *folder = g_build_filename(r->p->out, name, NULL);
    return hn_testset_write(folder, "output", r->n_out, out, r->names, error);
}

static void list_outputs(Run *r, HnTensor *const *out)
{
    for (int k = 0; k < r->n_out; k++) {
        g_autofree char *type = hn_tensor_describe(out[k]);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", r->names[k]);
        json_object_set_string_member(row, "type", type);
        json_array_add_object_element(r->outputs, row);
    }
}

/* Tables and pictures. */
static gboolean show(Run *r, const HnSample *s, HnTensor *const *out, int64_t batches, GError **error)
{
    for (int k = r->loop && run_loop_has_tokens(r->loop) ? r->n_out - 1 : 0; r->prints && k < r->n_out; k++)
        if (out[k] != NULL)
            run_print_add(&r->print, s, r->names[k], out[k]);
    r->print.runs++;
    for (int k = 0; r->p->image && k < r->n_out; k++) {
        if (out[k] == NULL || !run_image_fits(out[k]) || (r->image_output && r->image_output != r->names[k]))
            continue;
        r->image_output = r->names[k];
        return run_image_write(out[k], r->p->image, batches > 1, s->index, r->ctx->budget, &r->image_range, error);
    }
    if (r->p->image)
        g_set_error(
            error, HN_ERROR, HN_ERROR_USAGE,
            "option '--image': no output of '%s' is a picture or a mask, of 1 or 3 channels or a class a channel",
            s->name);
    return !r->p->image;
}

/* All outputs of the model for a sample; of a loop those of its last step, then the tokens. */
static gboolean compute(Run *r, const HnSample *s, HnTensor **out, GError **error)
{
    const int n = hn_session_n_inputs(r->session);
    if (!r->loop)
        return hn_session_run(r->session, s->in, out, error);
    g_autofree HnTensor **in = g_new0(HnTensor *, n + 1);
    for (int i = 0; i < r->n_fed; i++)
        in[r->fed[i]] = s->in[i];
    return run_loop_run(r->loop, r->ctx, in, out, error);
}

static gboolean run_one(Run *r, const HnSample *s, int64_t batches, GError **error)
{
    g_autofree HnTensor **out = g_new0(HnTensor *, r->n_out + 1);
    if (!compute(r, s, out, error))
        return FALSE;
    if (r->done == 0) {
        list_outputs(r, out);
        hn_tool_note_refs(r->ctx, r->session, r->backend);
    }
    gboolean ok = (!r->p->test_data || compare(r, s, out, error)) && (!r->top || measure(r, s, out, error)) &&
                  (!r->results || keep(r, out, batches, error)) && show(r, s, out, batches, error) &&
                  (!r->p->out || write_set(r, out, error));
    for (int k = 0; k < r->n_out; k++)
        hn_tensor_unref(out[k]);
    r->done++;
    return ok;
}

static gboolean run_all(Run *r, GError **error)
{
    HnDataIterOptions o = { .batch = r->p->batch, .threads = 1 };
    g_autoptr(HnDataIter) it = hn_data_iter_new(r->data, &o);
    int64_t batches = hn_data_iter_batches(it);
    while (r->done < batches) {
        g_autoptr(HnSample) s = NULL;
        if (hn_progress_stop(&r->ctx->progress, error) || !(s = hn_data_iter_next(it, error)) ||
            !run_one(r, s, batches, error))
            return FALSE;
        hn_progress_tell(&r->ctx->progress, "running samples", (guint64)r->done, (guint64)batches);
    }
    return TRUE;
}

/* --- results on stdout ------------------------------------------------------------------------------------------- */

/* Dims of an output over all batches: their first axes one behind the other, scalars as an axis of their own. */
static gboolean joined_dims(const GPtrArray *parts, const char *name, int *ndim, int64_t *dims, GError **error)
{
    const HnTensor *first = parts->pdata[0];
    *ndim = parts->len > 1 ? MAX(first->ndim, 1) : first->ndim;
    if (*ndim > HN_MAX_RANK) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "output '%s' has too many dimensions", name);
        return FALSE;
    }
    memcpy(dims, first->dims, (gsize)first->ndim * sizeof dims[0]);
    if (parts->len == 1)
        return TRUE;
    dims[0] = 0;
    for (guint i = 0; i < parts->len; i++) {
        const HnTensor *t = parts->pdata[i];
        gboolean same = t->dtype == first->dtype && t->ndim == first->ndim &&
                        (t->ndim < 2 || !memcmp(t->dims + 1, dims + 1, (gsize)(t->ndim - 1) * sizeof dims[0]));
        if (!same) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                        "output '%s' differs in shape from sample to sample: write the samples apart with '--out'",
                        name);
            return FALSE;
        }
        dims[0] += t->ndim ? t->dims[0] : 1;
    }
    return TRUE;
}

static gboolean write_npy(const GPtrArray *parts, const char *name, GError **error)
{
    int ndim;
    int64_t dims[HN_MAX_RANK];
    const HnTensor *first = parts->pdata[0];
    if (!joined_dims(parts, name, &ndim, dims, error))
        return FALSE;
    g_autoptr(GBytes) header = hn_npy_header(first->dtype, ndim, dims, error);
    if (!header) {
        g_prefix_error(error, "output '%s': ", name);
        return FALSE;
    }
    g_autoptr(HnOutFile) out = hn_out_open("-", error);
    if (!out || !hn_out_write(out, g_bytes_get_data(header, NULL), g_bytes_get_size(header), error))
        return FALSE;
    for (guint i = 0; i < parts->len; i++) {
        const HnTensor *t = parts->pdata[i];
        if (!hn_out_write(out, t->data, t->bytes, error))
            return FALSE;
    }
    return hn_out_commit(out, error);
}

/* Many parts become one tensor in their array. */
static gboolean join_parts(Run *r, GPtrArray *parts, const char *name, GError **error)
{
    int ndim;
    int64_t dims[HN_MAX_RANK];
    if (parts->len == 1)
        return TRUE;
    const HnTensor *first = parts->pdata[0];
    if (!joined_dims(parts, name, &ndim, dims, error))
        return FALSE;
    if (hn_tensor_is_list(first) || hn_dtype_bits(first->dtype) % 8) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "output '%s': an .npz cannot hold elements of type %s", name,
                    hn_dtype_name(first->dtype));
        return FALSE;
    }
    HnTensor *all = hn_tensor_new_uninit(first->dtype, ndim, dims, r->ctx->budget, error);
    if (!all)
        return FALSE;
    int64_t at = 0;
    for (guint i = 0; i < parts->len; i++) {
        const HnTensor *t = parts->pdata[i];
        hn_tensor_copy_elements(all, at, t, 0, t->n);
        at += t->n;
    }
    g_ptr_array_set_size(parts, 0);
    g_ptr_array_add(parts, all);
    return TRUE;
}

static gboolean write_text(const HnTensor *t, const char *name, GError **error)
{
    g_autoptr(HnOutFile) out = hn_out_open("-", error);
    if (out && !hn_npy_write(out, t, error)) {
        g_prefix_error(error, "output '%s': ", name);
        return FALSE;
    }
    return out && hn_out_commit(out, error);
}

static gboolean write_stdout(Run *r, GError **error)
{
    const int one = r->n_out == 1 ? 0 : r->loop && run_loop_has_tokens(r->loop) ? r->n_out - 1 : -1;
    const HnTensor *first = one >= 0 ? r->results[one]->pdata[0] : NULL;
    if (first != NULL && !hn_tensor_is_list(first) && first->dtype != HN_STRING)
        return write_npy(r->results[one], r->names[one], error);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free), tensors = g_ptr_array_new();
    for (int k = 0; k < r->n_out; k++) {
        if (!join_parts(r, r->results[k], r->names[k], error))
            return FALSE;
        hn_npz_flatten(r->names[k], r->results[k]->pdata[0], names, tensors);
    }
    if (first != NULL && first->dtype == HN_STRING)
        return write_text(tensors->pdata[0], r->names[0], error);
    return hn_npz_write("-", (const char *const *)names->pdata, (HnTensor *const *)tensors->pdata, (int)names->len,
                        r->ctx->budget, error);
}

/* --- report ------------------------------------------------------------------------------------------------------ */

static const HnColumn test_columns[] = {
    { "set", "set", HN_COL_TEXT },
    { "output", "output", HN_COL_TEXT },
    { "type", "type", HN_COL_TEXT },
    { "max_abs", "worst", HN_COL_NUMBER },
    { "max_rel", "relative", HN_COL_NUMBER | HN_COL_MINOR },
    { "cos", "cosine", HN_COL_NUMBER },
    { "wrong", "wrong", HN_COL_INT },
    { "elements", "of", HN_COL_INT },
    { "worst_at", "at", HN_COL_TEXT },
    { "equal", "equal", HN_COL_TEXT },
    { 0 },
};

static const HnColumn output_columns[] = {
    { "name", "output", HN_COL_TEXT },
    { "type", "type", HN_COL_TEXT },
    { 0 },
};

static void report_metric(Run *r, HnReport *report)
{
    double share = r->total ? (double)r->right / (double)r->total : NAN;
    JsonObject *metric = json_object_new();
    json_object_set_string_member(metric, "name", r->p->metric);
    json_object_set_double_member(metric, "value", share);
    json_object_set_int_member(metric, "right", r->right);
    json_object_set_int_member(metric, "samples", r->total);
    json_object_set_object_member(hn_report_root(report), "metric", metric);
    hn_report_line(report, "%s: %.2f %% (%" PRId64 " of %" PRId64 ")", r->p->metric, 100 * share, r->right, r->total);
}

static gboolean write_report(Run *r, GError **error)
{
    const Params *p = r->p;
    const HnCommon *c = &r->ctx->common;
    if (!p->test_data && !p->metric && !c->json && !c->csv && !r->prints)
        return TRUE;
    g_autoptr(HnReport) report =
        hn_report_new(r->ctx, "hone.run/1", &(HnReportEnv){ .onednn = hn_tool_onednn(r->backend) });
    JsonObject *root = hn_report_root(report), *tolerance = json_object_new();
    json_object_set_string_member(root, "model", r->ctx->args[0]);
    json_object_set_string_member(root, "data", hn_data_source(r->data));
    json_object_set_boolean_member(root, "synthetic", hn_data_synthetic(r->data));
    json_object_set_int_member(root, "samples", hn_data_count(r->data));
    json_object_set_array_member(root, "outputs", json_array_ref(r->outputs));
    if (p->test_data) {
        json_object_set_double_member(tolerance, "rtol", isnan(p->min_cos) ? r->tolerance.rtol : NAN);
        json_object_set_double_member(tolerance, "atol", isnan(p->min_cos) ? r->tolerance.atol : NAN);
        json_object_set_double_member(tolerance, "min_cos", r->tolerance.min_cos);
        json_object_set_object_member(root, "tolerance", json_object_ref(tolerance));
        json_object_set_array_member(root, "tests", json_array_ref(r->tests));
        json_object_set_boolean_member(root, "equal", r->n_wrong == 0);
        hn_report_table(report, "tests", test_columns);
    } else if (!r->prints && (!p->metric || c->csv)) {
        hn_report_table(report, "outputs", output_columns);
    }
    if (r->prints && !run_print_report(&r->print, report, error)) {
        json_object_unref(tolerance);
        return FALSE;
    }
    if (p->image)
        hn_report_line(report, "%s: output '%s', %s", p->image, r->image_output, r->image_range);
    json_object_unref(tolerance);
    if (p->metric)
        report_metric(r, report);
    if (r->loop)
        run_loop_report(r->loop, report);
    return hn_report_write(report, error);
}

static gboolean finish(Run *r, GError **error)
{
    if ((r->results && !write_stdout(r, error)) || !write_report(r, error))
        return FALSE;
    if (r->n_wrong == 0)
        return TRUE;
    g_autofree char *more = r->n_wrong > 1 ? g_strdup_printf(" (and %d more)", r->n_wrong - 1) : NULL;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s%s", r->first_wrong, more ? more : "");
    return FALSE;
}

static gboolean run(HnContext *ctx, GError **error)
{
    Run r = { .ctx = ctx, .p = ctx->params };
    r.tolerance = (HnTolerance){ .rtol = isnan(r.p->rtol) ? 1e-3 : r.p->rtol,
                                 .atol = isnan(r.p->atol) ? 1e-5 : r.p->atol,
                                 .min_cos = r.p->min_cos };
    GError *cause = NULL;
    gboolean ok = prepare(&r, error);
    if (ok && !run_all(&r, &cause)) {
        ok = FALSE;
        hn_data_explain(r.data, &cause);
        /* what is known of a comparison or metric that was interrupted is shown */
        if (g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED) && !r.results && r.done > 0)
            write_report(&r, NULL);
        g_propagate_error(error, cause);
    }
    ok = ok && finish(&r, error);
    run_clear(&r);
    return ok;
}

static const char *const usual[] = { "data",   "input",   "out",  "test-data", "labels", "metric",   "dim",
                                     "shapes", "threads", "json", "verbose",   "help",   "help-all", NULL };

static const HnTool tool = {
    .name = "hone-run",
    .summary = "compute the outputs of an ONNX model, or compare them with expected ones",
    .usage = "[OPTIONS] MODEL",
    .usual = usual,
    .examples = "hone-run model.onnx --data samples.npz --out results/\n"
                "hone-run model.onnx --test-data test_data_set_0",
    .details =
        "One output goes to stdout as .npy, several as .npz. Without --data, the one input of a model is read from "
        "stdin as .npy: hone-run model.onnx < x.npy > y.npy\n\n"
        "Exit status: 0 done and, with --test-data, equal; 1 bad model or data; 2 usage; 3 not equal; 4 "
        "unsupported; 6 a limit was reached.",
    .options = entries,
    .params_size = sizeof(Params),
    .defaults = &defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
