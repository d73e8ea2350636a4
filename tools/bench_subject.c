/* hone-bench: opening models, with the time and memory that it takes, and running them. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "check/outputs.h"
#include "hone_bench.h"
#include "onnx/onnx.h"

#define PAGE 4096
#define MOVED_FILE ((gsize)256 << 20) /* a larger file is not copied to move its weights */
#define PAD 65536                     /* bytes, at most */

static guint64 private_bytes(void)
{
    HnMem mem;
    guint64 n = hn_mem_private();
    return n || !hn_mem_read(&mem) ? n : mem.anon;
}

guint64 bench_peak_rss(void)
{
    HnMem mem;
    return hn_mem_read(&mem) ? mem.peak_rss : 0;
}

guint64 subject_growth(const Subject *s)
{
    guint64 now = private_bytes(), not_ours = s->before + s->of_data;
    return now > not_ours ? now - not_ours : 0;
}

gint64 subject_batch(const Subject *s, guint set)
{
    const HnSample *sample = s->sets[set];
    for (int i = 0; i < sample->n; i++)
        if (sample->in[i] && sample->in[i]->ndim > 0)
            return sample->in[i]->dims[0];
    return 1;
}

static double lap_ms(guint64 *since)
{
    guint64 then = *since;
    *since = hn_now_ns();
    return (double)(*since - then) / 1e6;
}

/* --- instances --------------------------------------------------------------------------------------------------- */

static HnSessionOptions session_options(const Subject *s)
{
    HnContext *ctx = s->b->ctx;
    return (HnSessionOptions){ .threads = s->threads,
                               .strict = s->b->p->strict,
                               .strict_math = ctx->common.strict_math,
                               .bf16 = !strcmp(s->point->precision, "bf16"),
                               .seed = ctx->common.seed,
                               .budget = ctx->budget,
                               .feeds = (const char *const *)s->given.feeds->pdata,
                               .plan_cache = s->plans,
                               .keeps_io = s->point->io == BENCH_DEVICE };
}

static HnSession *new_session(const Subject *s, HnModel *model, GError **error)
{
    const HnSessionOptions o = session_options(s);
    return hn_session_new(model, s->backend, &o, error);
}

/* Places for inputs and outputs of an instance that has its session. */
static void instance_places(Instance *x, const Subject *s)
{
    x->n_in = hn_session_n_inputs(x->session);
    x->n_out = hn_session_n_outputs(x->session);
    x->io = s->point->io;
    x->out = g_new0(HnTensor *, x->n_out + 1);
    x->copy_in = g_new0(HnTensor *, x->n_in + 1);
    x->copy_out = g_new0(HnTensor *, x->n_out + 1);
}

/* The file's bytes in memory of their own, at the start of a page as a mapping is. NULL: not here. */
static GBytes *moved_bytes(const Subject *s)
{
    gsize n = g_bytes_get_size(s->bytes);
    if (n == 0 || n > MOVED_FILE || s->b->ctx->common.mem_limit)
        return NULL;
    void *copy = aligned_alloc(PAGE, (n + PAGE - 1) / PAGE * PAGE);
    if (!copy)
        return NULL;
    memcpy(copy, g_bytes_get_data(s->bytes, NULL), n);
    return g_bytes_new_with_free_func(copy, n, free, copy);
}

static gboolean plan_all(const Subject *s, Instance *x, GError **error)
{
    for (guint k = 0; k < (s->vary ? x->n_sets : 1); k++)
        if (!hn_outputs_plan(x->session, x->in[k], error))
            return FALSE;
    return TRUE;
}

gboolean instance_share(const Subject *s, Instance *x, GError **error)
{
    const HnSessionOptions o = session_options(s);
    *x = (Instance){ .session = hn_session_new_on(hn_session_engine(s->first.session), &o, error) };
    if (!x->session)
        return FALSE;
    instance_places(x, s);
    for (; x->n_sets < s->n_sets; x->n_sets++)
        x->in[x->n_sets] = s->sets[x->n_sets]->in;
    return plan_all(s, x, error);
}

gboolean instance_open(const Subject *s, Instance *x, GError **error)
{
    if (s->training)
        return instance_train(s, x, error);
    HnBudget *budget = s->b->ctx->budget;
    *x = (Instance){ .own = TRUE, .pad = g_malloc(64 + g_random_int_range(0, PAD / 64) * 64) };
    g_autoptr(GBytes) copy = moved_bytes(s);
    x->model = hn_onnx_read_bytes(copy ? copy : s->bytes, s->folder, &(HnOnnxOptions){ .budget = budget }, error);
    x->session = x->model ? new_session(s, x->model, error) : NULL;
    if (!x->session)
        return FALSE;
    instance_places(x, s);
    for (; x->n_sets < s->n_sets; x->n_sets++) {
        HnTensor *const *from = s->sets[x->n_sets]->in;
        x->in[x->n_sets] = g_new0(HnTensor *, x->n_in + 1);
        for (int i = 0; i < x->n_in; i++)
            if (from[i] && !(x->in[x->n_sets][i] = hn_tensor_copy(from[i], budget, error))) {
                x->n_sets++;
                return FALSE;
            }
    }
    return plan_all(s, x, error);
}

void instance_clear(Instance *x)
{
    for (guint k = 0; x->own && k < x->n_sets; k++) {
        for (int i = 0; i < x->n_in; i++)
            hn_tensor_unref(x->in[k][i]);
        g_free(x->in[k]);
    }
    hn_trainer_free(x->trainer);
    hn_session_free(x->session);
    hn_model_free(x->model);
    g_free(x->out);
    g_free(x->copy_in);
    g_free(x->copy_out);
    g_free(x->pad);
    *x = (Instance){ 0 };
}

static void unref_all(HnTensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        hn_tensor_unref(t[i]);
        t[i] = NULL;
    }
}

static gboolean copy_all(HnTensor *const *from, HnTensor **to, int n, GError **error)
{
    for (int i = 0; i < n; i++)
        if (from[i] && !(to[i] = hn_tensor_copy(from[i], NULL, error)))
            return FALSE;
    return TRUE;
}

/* The run itself, with what belongs to it. */
static gboolean run_inside(Instance *x, guint64 i, HnTensor *const *in, GError **error)
{
    if (x->trainer)
        return instance_step(x, i, error);
    if (x->io == BENCH_COPY)
        return copy_all(in, x->copy_in, x->n_in, error) && hn_session_run(x->session, x->copy_in, x->out, error) &&
               copy_all(x->out, x->copy_out, x->n_out, error);
    return hn_session_run(x->session, x->io == BENCH_FRESH ? x->copy_in : in, x->out, error);
}

gboolean instance_run(gpointer data, guint64 i, guint64 *start, guint64 *end, GError **error)
{
    Instance *x = data;
    HnTensor *const *in = x->in[i % x->n_sets]; /* NULL in training */
    gboolean ok = x->io != BENCH_FRESH || copy_all(in, x->copy_in, x->n_in, error);
    *start = hn_now_ns();
    ok = ok && run_inside(x, i, in, error);
    *end = hn_now_ns();
    unref_all(x->out, x->n_out);
    if (x->io == BENCH_COPY || x->io == BENCH_FRESH) {
        unref_all(x->copy_in, x->n_in);
        unref_all(x->copy_out, x->n_out);
    }
    return ok;
}

/* --- subjects ---------------------------------------------------------------------------------------------------- */

void subject_init(Subject *s, Bench *b, const Point *point, int model)
{
    const int of = b->second ? 0 : model; /* argument */
    *s = (Subject){ .b = b, .point = point, .path = b->ctx->args[of], .number = (guint)model };
    s->backend = b->second && model > 0 ? b->second : b->backend;
    s->streams = point->streams ? point->streams : b->streams ? b->streams : point->threads;
    s->threads = MAX(1, point->threads / s->streams);
    s->plans = BENCH_SETS;
    const char *device = b->second ? s->backend->name : "", *at = point->label;
    s->label = g_strdup_printf("%s%s%s%s%s", b->labels[of], *device ? " " : "", device, *at ? " " : "", at);
    for (int k = 0; k < BENCH_PHASES; k++)
        s->phases[k] = NAN;
}

static gboolean read_model(Subject *s, GError **error)
{
    HnBudget *budget = s->b->ctx->budget;
    gboolean is_stdin = !strcmp(s->path, "-");
    guint64 t = hn_now_ns();
    s->bytes = hn_file_bytes(s->path, budget, error);
    s->phases[BENCH_READ] = lap_ms(&t);
    if (!s->bytes)
        return FALSE;
    s->folder = is_stdin ? NULL : g_path_get_dirname(s->path);
    const HnOnnxOptions o = { .budget = budget, .verify_data = s->b->ctx->common.verify_data };
    s->model = hn_onnx_read_bytes(s->bytes, s->folder, &o, error);
    s->phases[BENCH_PARSE] = lap_ms(&t);
    if (!s->model)
        g_prefix_error(error, "'%s': ", is_stdin ? "stdin" : s->path);
    else if (!s->b->checked)
        hn_tool_warn_speed_only(s->b->ctx, s->path, s->model);
    return s->model != NULL;
}

static gboolean open_data(Subject *s, GError **error)
{
    const BenchParams *p = s->b->p;
    const gboolean sized = p->dim || p->shapes || p->batch_max;
    int n;
    g_autofree HnValue **inputs = hn_tool_session_inputs(s->first.session, &n);
    s->names = g_new0(const char *, n + 1);
    for (int i = 0; i < n; i++)
        s->names[i] = inputs[i]->name;
    s->data = hn_tool_open_feed(s->b->ctx,
                                &(HnToolFeed){ .from = &p->from,
                                               .path = s->path,
                                               .source = p->data,
                                               .shapes = s->point->shapes,
                                               .sizes = sized ? "'--dim', '--shapes' and '--batch-max'" : NULL,
                                               .given = &s->given },
                                inputs, n, error);
    if (!s->data)
        return FALSE;
    gint64 count = hn_data_count(s->data);
    if (count < 1) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no samples", hn_data_source(s->data));
        return FALSE;
    }
    while (s->n_sets < MIN(count, BENCH_SETS)) {
        HnSample *set = hn_data_load(s->data, s->n_sets, error);
        if (!set)
            return FALSE;
        s->first.in[s->n_sets] = set->in;
        s->sets[s->n_sets++] = set;
        s->first.n_sets = s->n_sets;
        s->vary = s->vary || !hn_tool_same_shapes(s->sets[0], set);
    }
    return TRUE;
}

/* --precision f32 is no other than the model's own where that has no narrower floats. */
static gboolean check_precision(const Subject *s, GError **error)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, s->model->graph->values);
    while (!strcmp(s->point->precision, "f32") && g_hash_table_iter_next(&iter, NULL, &value)) {
        const HnValue *v = value;
        HnDtype dtype = v->weight ? v->weight->dtype : hn_type_dtype(v->type);
        if (dtype != HN_F16 && dtype != HN_BF16)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "option '--precision': '%s' is %s, and is computed as that, not in f32", v->name,
                    hn_dtype_name(dtype));
        return FALSE;
    }
    return TRUE;
}

static gboolean subject_is_open(Subject *s)
{
    s->opened = subject_growth(s);
    s->peak_rss = bench_peak_rss();
    return s->ready = TRUE;
}

gboolean subject_open(Subject *s, GError **error)
{
    const Bench *b = s->b;
#ifdef __GLIBC__
    malloc_trim(0); /* what an earlier model left in the heap would hide what this one needs */
#endif
    hn_mem_reset_peak();
    s->before = private_bytes();
    subject_device_before(s);
    if (!read_model(s, error) || !check_precision(s, error))
        return FALSE;
    guint64 mark = private_bytes();
    if (!hn_tool_inputs(b->ctx, s->model, &b->p->from, s->path, s->point->shapes, b->p->input, &s->given, error))
        return FALSE;
    guint64 now = private_bytes();
    s->of_data = now - MIN(mark, now);
    if (b->p->training.train)
        return subject_open_training(s, error) && subject_is_open(s);

    guint64 t = hn_now_ns();
    s->first.session = new_session(s, s->model, error);
    if (!s->first.session)
        return FALSE;
    double made_ms = lap_ms(&t);
    instance_places(&s->first, s);

    mark = private_bytes();
    if (!open_data(s, error))
        return FALSE;
    now = private_bytes();
    s->of_data += now - MIN(mark, now);

    t = hn_now_ns();
    if (!hn_outputs_plan(s->first.session, s->first.in[0], error))
        return FALSE;
    made_ms += lap_ms(&t);
    hn_session_stats(s->first.session, &s->stats);
    s->phases[BENCH_OPTIMIZE] = s->stats.optimize_ms;
    s->phases[BENCH_PREPARE] = MAX(made_ms - s->stats.optimize_ms, 0);
    for (guint k = 1; s->vary && k < s->n_sets; k++)
        if (!hn_outputs_plan(s->first.session, s->first.in[k], error))
            return FALSE;
    return subject_is_open(s);
}

void subject_retire(Subject *s)
{
    if (s->training)
        subject_retire_training(s);
    else
        hn_session_stats(s->first.session, &s->stats);
    instance_clear(&s->first);
}

void subject_clear(Subject *s)
{
    instance_clear(&s->first);
    for (guint k = 0; !s->training && k < s->n_sets; k++)
        hn_sample_free(s->sets[k]);
    hn_tool_training_free(s->training); /* which owns its samples */
    hn_data_free(s->data);
    hn_tool_inputs_clear(&s->given);
    hn_model_free(s->model);
    hn_outliers_clear(&s->outliers);
    g_free(s->measured.raw);
    g_free(s->round_ms);
    g_bytes_unref(s->bytes);
    g_free(s->folder);
    g_free(s->names);
    g_free(s->label);
}

gboolean subject_open_beside(Subject *s, const Subject *other, GError **error)
{
    const Bench *b = s->b;
    s->first.session = other->first.session;
    instance_places(&s->first, s);
    return hn_tool_inputs(b->ctx, other->model, &b->p->from, s->path, s->point->shapes, b->p->input, &s->given,
                          error) &&
           open_data(s, error);
}

void subject_clear_beside(Subject *s)
{
    s->first.session = NULL;
    subject_clear(s);
}

/* --- --batch-max ------------------------------------------------------------------------------------------------- */

/* Whether a batch can be opened and run once; FALSE without an error: it needs more memory than there may be. */
static gboolean fits(Bench *b, const Point *point, int model, const char *dim, gint64 batch, GError **error)
{
    Subject s;
    GError *cause = NULL;
    guint64 start, end;
    subject_init(&s, b, point, model);
    hn_shapes_set_dim(point->shapes, dim, batch);
    hn_progress_tell(&b->ctx->progress, "finding the batch", (guint64)batch, 0);
    gboolean ok = subject_open(&s, &cause) && (!s.backend->computes || instance_run(&s.first, 0, &start, &end, &cause));
    const guint64 limit = b->ctx->common.mem_limit; /* 0: that of the device's memory alone */
    if (ok && limit > 0 && subject_growth(&s) + s.of_data > limit)
        ok = FALSE;
    subject_clear(&s);
    if (g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))
        g_clear_error(&cause);
    if (cause)
        g_propagate_error(error, cause);
    return ok;
}

/* The name of the first input's first dimension. */
static char *batch_dim(Bench *b, const Point *point, int model, GError **error)
{
    Subject s;
    char *dim = NULL;
    subject_init(&s, b, point, model);
    if (subject_open(&s, error)) {
        const HnValue *v = s.first.n_in ? hn_session_input(s.first.session, 0) : NULL;
        const HnType *t = v ? v->type : NULL;
        if (hn_type_is_tensor(t) && t->rank > 0 && !t->dims[0].known && t->dims[0].sym)
            dim = g_strdup(t->dims[0].sym);
        else
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "option '--batch-max': the first dimension of the first input has no name to vary it by");
    }
    subject_clear(&s);
    return dim;
}

gint64 bench_batch_max(Bench *b, const Point *point, int model, char **dim, GError **error)
{
    GError *cause = NULL;
    g_autofree char *name = batch_dim(b, point, model, error);
    if (!name)
        return 0;
    gint64 good = 0, bad = b->batch_limit + 1;
    for (gint64 n = 1; good + 1 < bad && !hn_progress_stop(&b->ctx->progress, &cause);) {
        if (fits(b, point, model, name, n, &cause))
            good = n;
        else if (cause)
            break;
        else
            bad = n;
        /* doubling until it is too much, then halving down to 2 % of it: one more sample changes little */
        if (bad <= b->batch_limit && (bad - good) * 50 <= bad)
            break;
        n = bad > b->batch_limit ? MIN(good * 2, b->batch_limit) : good + (bad - good) / 2;
    }
    if (cause) {
        g_propagate_error(error, cause);
        return 0;
    }
    if (good == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "not even a batch of one fits the memory");
        return 0;
    }
    hn_shapes_set_dim(point->shapes, name, good);
    *dim = g_steal_pointer(&name);
    return good;
}
