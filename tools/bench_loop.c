/* hone-bench --steps: a model that is fed its own outputs, as hone-run --steps does: the first step, which reads the
 * prompt, apart from the others. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "cli/report.h"
#include "hone_bench.h"
#include "run/feedback.h"

#define REPEATS 5     /* of the whole loop, at least, ... */
#define SECONDS 2     /* ... for so long, unless options say otherwise */
#define MOST 1000000  /* times that are kept */
#define LAST_PART 0.1 /* of the steps, told apart: what a step takes in the end */

typedef struct {
    Bench *b;
    const Point *point;
    const char *path, *label;
    HnModel *model;
    HnToolInputs given;
    HnSession *session;
    GArray *feeds;
    HnLoop *loop;
    HnTensor **in; /* of the session; NULL where a rule makes it */
    HnSample *sample;
    HnData *data;
    gint64 rows;                         /* tokens of the prompt; 0: no rule makes tokens */
    GArray *first, *rest, *last, *total; /* double: ms of each step, or of each loop */
    double opened_ms;                    /* the first loop, which plans */
    guint64 loops;
    gint64 steps; /* of each */
    char *why;
} Generation;

static void generation_clear(Generation *g)
{
    hn_loop_free(g->loop);
    hn_session_free(g->session);
    hn_sample_free(g->sample);
    hn_data_free(g->data);
    hn_tool_inputs_clear(&g->given);
    hn_model_free(g->model);
    if (g->feeds)
        g_array_unref(g->feeds);
    GArray *const times[] = { g->first, g->rest, g->last, g->total };
    for (gsize i = 0; i < G_N_ELEMENTS(times); i++)
        g_array_unref(times[i]);
    g_free(g->in);
    g_free(g->why);
}

/* Data for the inputs that no rule makes. */
static gboolean open_inputs(Generation *g, GError **error)
{
    const Bench *b = g->b;
    const int n = hn_session_n_inputs(g->session);
    g_autofree HnValue **inputs = g_new0(HnValue *, n + 1);
    g_autofree int *at = g_new0(int, n + 1);
    int count = 0;
    g->in = g_new0(HnTensor *, n + 1);
    for (int i = 0; i < n; i++) {
        const HnFeed *f = hn_feeds_of(g->feeds, i);
        inputs[count] = (HnValue *)hn_session_input(g->session, i);
        if (f && !hn_tool_input(&g->given, inputs[count]->name) && hn_feeds_make(g->feeds, f))
            continue;
        at[count++] = i;
    }
    g->data = hn_tool_open_feed(b->ctx,
                                &(HnToolFeed){ .from = &b->p->from,
                                               .path = g->path,
                                               .source = b->p->data,
                                               .shapes = g->point->shapes,
                                               .given = &g->given },
                                inputs, count, error);
    g->sample = g->data ? hn_data_load(g->data, 0, error) : NULL;
    for (int i = 0; g->sample && i < count; i++) {
        const HnFeed *f = hn_feeds_of(g->feeds, at[i]);
        g->in[at[i]] = g->sample->in[i];
        if (f && f->kind == HN_FEED_TOKEN && g->in[at[i]] && g->in[at[i]]->ndim > 0)
            g->rows = g->in[at[i]]->dims[g->in[at[i]]->ndim - 1];
    }
    return g->sample != NULL;
}

static gboolean open_generation(Generation *g, GError **error)
{
    const Bench *b = g->b;
    HnContext *ctx = b->ctx;
    g->model = hn_tool_read_model(ctx, g->path, error);
    if (!g->model ||
        !hn_tool_inputs(ctx, g->model, &b->p->from, g->path, g->point->shapes, b->p->input, &g->given, error))
        return FALSE;
    const HnSessionOptions o = { .threads = g->point->threads,
                                 .strict = b->p->strict,
                                 .strict_math = ctx->common.strict_math,
                                 .bf16 = !strcmp(g->point->precision, "bf16"),
                                 .seed = ctx->common.seed,
                                 .budget = ctx->budget,
                                 .feeds = (const char *const *)g->given.feeds->pdata,
                                 .lasting = TRUE };
    g->session = hn_session_new(g->model, b->backend, &o, error);
    g->feeds = !g->session  ? NULL
               : b->p->loop ? hn_feeds_parse(g->session, (const char *const *)b->p->loop, error)
                            : hn_feeds_usual(g->session, FALSE);
    if (g->feeds && g->feeds->len == 0)
        return hn_tool_usage(error, "option '--steps': the names of inputs and outputs do not say what is fed back: "
                                    "name it with '--loop'");
    if (!g->feeds || !open_inputs(g, error))
        return FALSE;
    g->loop = hn_loop_new(g->session, g->model,
                          &(HnLoopOptions){ .feeds = g->feeds,
                                            .picking = { .temperature = 1, .top_p = 1, .seed = ctx->common.seed },
                                            .steps = b->p->steps,
                                            .stop = -1,
                                            .session = o });
    return TRUE;
}

static void keep(GArray *times, double ms)
{
    if (times->len < MOST)
        g_array_append_val(times, ms);
}

/* All steps once; the first time nothing is kept. */
static gboolean run_loop(Generation *g, gboolean counts, GError **error)
{
    const guint64 start = hn_now_ns();
    const gint64 steps = g->b->p->steps, late = (gint64)((double)steps * (1 - LAST_PART));
    if (!hn_loop_start(g->loop, g->in, error))
        return FALSE;
    for (guint64 t = hn_now_ns(), now; !hn_loop_done(g->loop); t = now) {
        if (hn_progress_stop(&g->b->ctx->progress, error) || !hn_loop_step(g->loop, error))
            return FALSE;
        now = hn_now_ns();
        const gint64 done = hn_loop_steps(g->loop);
        const double ms = (double)(now - t) / 1e6;
        if (counts)
            keep(done == 1 ? g->first : g->rest, ms);
        if (counts && done > 1 && done > late)
            keep(g->last, ms);
    }
    const double ms = (double)(hn_now_ns() - start) / 1e6;
    g->steps = hn_loop_steps(g->loop);
    if (counts)
        keep(g->total, ms);
    else
        g->opened_ms = ms;
    g->loops += counts;
    return TRUE;
}

static gboolean enough(const Generation *g, guint64 since)
{
    const HnMeasureOptions *o = &g->b->measure;
    const double seconds = (double)(hn_now_ns() - since) / 1e9;
    if (o->until == HN_UNTIL_RUNS)
        return g->loops >= o->runs;
    return g->loops >= REPEATS && seconds >= (o->until == HN_UNTIL_TIME ? o->seconds : SECONDS);
}

static int by_size(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(GArray *times, double part)
{
    g_array_sort(times, by_size);
    return times->len ? g_array_index(times, double, (guint)(part * (times->len - 1) + 0.5)) : NAN;
}

static void add_row(Generation *g, JsonArray *rows)
{
    JsonObject *row = json_object_new();
    const double token = bench_quantile(g->rest, 0.5);
    json_object_set_string_member(row, "model", g->path);
    json_object_set_string_member(row, "name", g->label);
    json_object_set_int_member(row, "threads", g->point->threads);
    json_object_set_int_member(row, "prompt", g->rows);
    json_object_set_int_member(row, "steps", g->steps);
    json_object_set_int_member(row, "loops", (gint64)g->loops);
    json_object_set_double_member(row, "opened_ms", g->opened_ms);
    json_object_set_double_member(row, "prefill_ms", bench_quantile(g->first, 0.5));
    json_object_set_double_member(row, "token_ms", token);
    json_object_set_double_member(row, "token_p95_ms", bench_quantile(g->rest, 0.95));
    json_object_set_double_member(row, "last_ms", bench_quantile(g->last, 0.5));
    json_object_set_double_member(row, "total_ms", bench_quantile(g->total, 0.5));
    json_object_set_double_member(row, "per_s", 1e3 / token);
    if (g->why)
        json_object_set_string_member(row, "planned", g->why);
    else
        json_object_set_null_member(row, "planned");
    json_array_add_object_element(rows, row);
}

static gboolean measure(Bench *b, const Point *point, int i, JsonArray *rows, GString *notes, GError **error)
{
    g_autofree char *label =
        *point->label ? g_strdup_printf("%s %s", b->labels[i], point->label) : g_strdup(b->labels[i]);
    Generation g = { .b = b, .point = point, .path = b->ctx->args[i], .label = label };
    g.first = g_array_new(FALSE, FALSE, sizeof(double));
    g.rest = g_array_new(FALSE, FALSE, sizeof(double));
    g.last = g_array_new(FALSE, FALSE, sizeof(double));
    g.total = g_array_new(FALSE, FALSE, sizeof(double));
    gboolean ok = open_generation(&g, error) && run_loop(&g, FALSE, error);
    for (const guint64 since = hn_now_ns(); ok && !enough(&g, since);) {
        ok = run_loop(&g, TRUE, error);
        hn_progress_tell(&b->ctx->progress, "loops", g.loops, 0);
    }
    if (ok) {
        g.why = g_strdup(hn_loop_plans(g.loop));
        add_row(&g, rows);
        if (g.why)
            g_string_append_printf(notes, "%s: each step is planned for its shapes: %s\n", label, g.why);
    }
    generation_clear(&g);
    return ok;
}

static const HnColumn columns[] = {
    { "name", "generation", HN_COL_TEXT },
    { "prompt", "prompt", HN_COL_INT },
    { "steps", "steps", HN_COL_INT },
    { "prefill_ms", "first", HN_COL_MS },
    { "token_ms", "others", HN_COL_MS },
    { "token_p95_ms", "p95", HN_COL_MS },
    { "last_ms", "in the end", HN_COL_MS },
    { "total_ms", "all", HN_COL_MS },
    { "per_s", "a second", HN_COL_NUMBER },
    { "opened_ms", "all, cold", HN_COL_MS },
    { 0 },
};

gboolean bench_loop_check(const Bench *b, GError **error)
{
    const BenchParams *p = b->p;
    if (p->steps < 0 || (p->loop && p->steps == 0))
        return hn_tool_usage(error, "option '--steps': how often the model is run, at least once");
    if (p->steps == 0)
        return TRUE;
    if (b->streams > 1 || p->batch_max || p->training.train || p->plot || b->gate > 0)
        return hn_tool_usage(error, "option '--steps' goes with one stream, and without '--train', '--batch-max', "
                                    "'--plot' and '--fail-if-slower'");
    return TRUE;
}

gboolean bench_loop(Bench *b, GError **error)
{
    JsonArray *rows = json_array_new();
    g_autoptr(GString) notes = g_string_new(NULL);
    gboolean ok = TRUE;
    for (guint k = 0; k < b->points->len && ok; k++)
        for (int i = 0; i < b->ctx->n_args && ok; i++)
            ok = measure(b, b->points->pdata[k], i, rows, notes, error);
    ok = bench_report_rows(b, "generation", rows, columns, notes->str, ok ? error : NULL) && ok;
    json_array_unref(rows);
    return ok;
}
