/*
 * hone-bench --churn: what a shape costs that a session has not met. One session keeps the plans of all shapes; another
 * one, on the same packed weights, keeps one only, so that it plans each shape anew whenever its turn comes.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "check/outputs.h"
#include "cli/report.h"
#include "hone_bench.h"

#define ROUNDS 5  /* at least, ... */
#define SECONDS 2 /* ... for so long, unless options say otherwise */

/* Of a shape; ms. */
typedef struct {
    Subject subject;                 /* at its point: the first one's is opened, others lie beside it */
    double plan, run;                /* when it came for the first time */
    gint64 arena;                    /* bytes that its plan brought */
    GArray *again_plan, *again_run;  /* double: in the session that had dropped its plan */
    GArray *turn_run, *repeated_run; /* behind another shape, and behind itself */
} Shape;

typedef struct {
    Bench *b;
    Shape *shapes;
    guint n, opened;
    Instance forgets; /* session with one plan; its inputs are those of the shape whose turn it is */
    guint64 rounds;
} Churn;

static GArray *times_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(double));
}

static void churn_clear(Churn *c)
{
    instance_clear(&c->forgets);
    for (guint k = c->opened; k-- > 0;) { /* the first one's session is everybody's */
        Shape *s = &c->shapes[k];
        GArray *const times[] = { s->again_plan, s->again_run, s->turn_run, s->repeated_run };
        for (gsize i = 0; i < G_N_ELEMENTS(times); i++)
            g_array_unref(times[i]);
        if (k > 0)
            subject_clear_beside(&s->subject);
        else
            subject_clear(&s->subject);
    }
    g_free(c->shapes);
}

static gboolean timed_run(Instance *x, double *ms, GError **error)
{
    guint64 start, end;
    if (!instance_run(x, 0, &start, &end, error))
        return FALSE;
    *ms = (double)(end - start) / 1e6;
    return TRUE;
}

static gboolean timed_plan(HnSession *session, const Instance *of, double *ms, GError **error)
{
    const guint64 start = hn_now_ns();
    if (!hn_outputs_plan(session, of->in[0], error))
        return FALSE;
    *ms = (double)(hn_now_ns() - start) / 1e6;
    return TRUE;
}

/* A shape comes for the first time: its plan and its first run. */
static gboolean meet(Churn *c, const Point *point, int model, GError **error)
{
    Shape *s = &c->shapes[c->opened];
    Subject *subject = &s->subject, *first = &c->shapes[0].subject;
    HnSessionStats before = { 0 }, after;
    subject_init(subject, c->b, point, model);
    s->again_plan = times_new();
    s->again_run = times_new();
    s->turn_run = times_new();
    s->repeated_run = times_new();
    s->run = NAN;
    if (c->opened++ == 0) {
        subject->plans = (int)c->n;
        if (!subject_open(subject, error))
            return FALSE;
        s->plan = subject->phases[BENCH_OPTIMIZE] + subject->phases[BENCH_PREPARE];
    } else {
        hn_session_stats(first->first.session, &before);
        if (!subject_open_beside(subject, first, error) ||
            !timed_plan(first->first.session, &subject->first, &s->plan, error))
            return FALSE;
    }
    if (subject->backend->computes && !timed_run(&subject->first, &s->run, error))
        return FALSE;
    hn_session_stats(first->first.session, &after);
    s->arena = (gint64)after.arena_bytes - (gint64)before.arena_bytes;
    return TRUE;
}

/* What is run next in the session that forgets. */
static void turn_to(Churn *c, const Shape *s)
{
    memcpy(c->forgets.in, s->subject.first.in, sizeof c->forgets.in);
}

static gboolean run_round(Churn *c, gboolean counts, GError **error)
{
    for (guint k = 0; k < c->n; k++) {
        Shape *s = &c->shapes[k];
        double plan, again = 0, turn = 0, repeated = 0;
        const gboolean computes = s->subject.backend->computes;
        if (hn_progress_stop(&c->b->ctx->progress, error))
            return FALSE;
        turn_to(c, s);
        if (!timed_plan(c->forgets.session, &s->subject.first, &plan, error))
            return FALSE;
        if (computes && (!timed_run(&c->forgets, &again, error) || !timed_run(&s->subject.first, &turn, error) ||
                         !timed_run(&s->subject.first, &repeated, error)))
            return FALSE;
        if (!counts)
            continue;
        g_array_append_val(s->again_plan, plan);
        if (!computes)
            continue;
        g_array_append_val(s->again_run, again);
        g_array_append_val(s->turn_run, turn);
        g_array_append_val(s->repeated_run, repeated);
    }
    return TRUE;
}

static gboolean enough(const Churn *c, guint64 since)
{
    const HnMeasureOptions *o = &c->b->measure;
    const double seconds = (double)(hn_now_ns() - since) / 1e9;
    if (o->until == HN_UNTIL_RUNS)
        return c->rounds >= o->runs;
    return c->rounds >= ROUNDS && seconds >= (o->until == HN_UNTIL_TIME ? o->seconds : SECONDS);
}

static void add_row(Churn *c, Shape *s, JsonArray *rows)
{
    const Subject *subject = &s->subject;
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "model", subject->path);
    json_object_set_string_member(row, "name", subject->label);
    json_object_set_int_member(row, "threads", subject->point->threads);
    json_object_set_int_member(row, "rounds", (gint64)c->rounds);
    json_object_set_double_member(row, "plan_ms", s->plan);
    json_object_set_double_member(row, "run_ms", s->run);
    json_object_set_double_member(row, "again_plan_ms", bench_quantile(s->again_plan, 0.5));
    json_object_set_double_member(row, "again_run_ms", bench_quantile(s->again_run, 0.5));
    json_object_set_double_member(row, "turn_ms", bench_quantile(s->turn_run, 0.5));
    json_object_set_double_member(row, "repeated_ms", bench_quantile(s->repeated_run, 0.5));
    json_object_set_int_member(row, "arena_bytes", s->arena);
    json_array_add_object_element(rows, row);
}

/* Are they of one session, at other shapes? */
static gboolean beside(const Point *a, const Point *b)
{
    return a->threads == b->threads && a->io == b->io && strcmp(a->precision, b->precision) == 0;
}

/* The points from this one on that one session meets, in their order, taken out of `left`. */
static GPtrArray *take_points(GPtrArray *left)
{
    GPtrArray *points = g_ptr_array_new();
    const Point *first = left->pdata[0];
    for (guint i = 0; i < left->len;)
        if (beside(first, left->pdata[i]))
            g_ptr_array_add(points, g_ptr_array_remove_index(left, i));
        else
            i++;
    return points;
}

static gboolean measure(Bench *b, const GPtrArray *points, int model, JsonArray *rows, GError **error)
{
    Churn c = { .b = b, .shapes = g_new0(Shape, points->len), .n = points->len };
    GError *cause = NULL;
    gboolean ok = TRUE;
    for (guint k = 0; k < c.n && ok; k++)
        ok = meet(&c, points->pdata[k], model, &cause);
    if (ok) {
        Subject *first = &c.shapes[0].subject;
        first->plans = 1;
        ok = instance_share(first, &c.forgets, &cause) && run_round(&c, FALSE, &cause);
    }
    for (const guint64 since = hn_now_ns(); ok && !enough(&c, since);) {
        ok = run_round(&c, TRUE, &cause);
        c.rounds += ok;
        hn_progress_tell(&b->ctx->progress, "rounds", c.rounds, 0);
    }
    for (guint k = 0; k < c.n && c.rounds > 0; k++)
        add_row(&c, &c.shapes[k], rows);
    if (cause && c.opened > 0)
        hn_data_explain(c.shapes[c.opened - 1].subject.data, &cause);
    if (cause && !g_error_matches(cause, HN_ERROR, HN_ERROR_INTERRUPTED))
        g_prefix_error(&cause, "'%s': ", b->ctx->args[model]);
    if (cause)
        g_propagate_error(error, cause);
    churn_clear(&c);
    return ok;
}

static const HnColumn columns[] = {
    { "name", "shapes", HN_COL_TEXT },
    { "plan_ms", "new: plan", HN_COL_MS },
    { "run_ms", "run", HN_COL_MS },
    { "again_plan_ms", "anew: plan", HN_COL_MS },
    { "again_run_ms", "run", HN_COL_MS },
    { "turn_ms", "kept: run", HN_COL_MS },
    { "repeated_ms", "repeated", HN_COL_MS },
    { "arena_bytes", "memory", HN_COL_BYTES | HN_COL_MINOR },
    { 0 },
};

/* What a session that meets several shapes has no part in. */
static gboolean asks_for_more(const Bench *b)
{
    const BenchParams *p = b->p;
    if (p->data || b->ctx->stdin_user || b->streams != 1 || b->ctx->common.device_b)
        return TRUE;
    if (p->batch_max || p->training.train || p->steps > 0 || p->plot)
        return TRUE;
    if (p->raw || p->margin || b->fail_on_noise)
        return TRUE;
    return p->baseline || p->instances || b->gate > 0;
}

gboolean bench_churn_check(const Bench *b, GError **error)
{
    if (!b->p->churn)
        return TRUE;
    if (asks_for_more(b))
        return hn_tool_usage(error, "option '--churn' goes with models in files, random data and one stream, and "
                                    "without '--train', '--batch-max', '--steps', '--plot', '--baseline', "
                                    "'--instances', '--fail-if-slower', '--on-noise', '--margin' and '--raw'");
    for (guint i = 0; i < b->points->len; i++)
        for (guint k = i + 1; k < b->points->len; k++)
            if (beside(b->points->pdata[i], b->points->pdata[k]))
                return TRUE;
    return hn_tool_usage(error, "option '--churn' needs several shapes, such as '--dim batch=1,8' or "
                                "'--shapes x:1x16/1x64'");
}

gboolean bench_churn(Bench *b, GError **error)
{
    JsonArray *rows = json_array_new();
    g_autoptr(GPtrArray) left = g_ptr_array_new();
    gboolean ok = TRUE;
    g_ptr_array_extend(left, b->points, NULL, NULL);
    while (left->len > 0 && ok) {
        g_autoptr(GPtrArray) points = take_points(left);
        for (int i = 0; i < b->ctx->n_args && ok; i++)
            ok = measure(b, points, i, rows, error);
    }
    ok = bench_report_rows(b, "churn", rows, columns,
                           "new: the shape comes for the first time; the first row's plan also packs the weights\n"
                           "anew: its plan was dropped, and is made again; kept: another shape ran in between",
                           ok ? error : NULL) &&
         ok;
    json_array_unref(rows);
    return ok;
}
