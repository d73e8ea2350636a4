/* hone-bench --train: a step of training as a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hone_bench.h"
#include "perf/ticks.h"

#define MOST_SAMPLES (1 << 20)
#define STEP_NS 1000000000 /* sizes whose steps take longer are not timed while the largest is looked for */
#define PHASE_RUNS 5       /* steps that are timed phase by phase, of which the median counts */

/* HnToolReadFn */
static HnModel *read_again(gpointer data, GError **error)
{
    const Subject *s = data;
    return hn_onnx_read_bytes(s->bytes, s->folder, &(HnOnnxOptions){ .budget = s->b->ctx->budget }, error);
}

gboolean instance_train(const Subject *s, Instance *x, GError **error)
{
    *x = (Instance){ .training = s->training, .n_sets = s->n_sets };
    HnDtype half;
    if (hn_tool_train_precision(s->b->ctx, s->point->precision, &half, error))
        x->trainer = hn_tool_trainer_new(s->training, read_again, (gpointer)s, s->backend, s->threads, half, error);
    return x->trainer != NULL;
}

gboolean instance_step(Instance *x, guint64 i, GError **error)
{
    if (!hn_tool_train(x->training, x->trainer, i, &x->last_loss, error))
        return FALSE;
    if (x->n_losses < BENCH_LOSSES)
        x->losses[x->n_losses++] = x->last_loss;
    return TRUE;
}

static void tell_forecast(const Subject *s)
{
    const HnForecast *f = &s->forecast;
    g_autofree char *needs = hn_text_size(f->needed), *plain = hn_text_size(f->plain);
    hn_context_note(s->b->ctx, 0, "'%s': a step will take %s, weights and states of the optimizer included", s->label,
                    needs);
    if (f->nodes > 0)
        hn_context_note(s->b->ctx, 0, "%u nodes are computed twice, about %.1f %% of the time, instead of %s", f->nodes,
                        f->part * 100, plain);
}

gboolean subject_open_training(Subject *s, GError **error)
{
    const Bench *b = s->b;
    if (!(s->training = hn_tool_training_new(b->ctx, &b->p->training, error)))
        return FALSE;
    if (s->point->batch > 0)
        hn_tool_training_set_batch(s->training, (int)s->point->batch, s->point->step_limit);
    if (!hn_tool_training_open(s->training, s->model, &b->p->from, s->path, b->p->data, s->point->shapes, BENCH_SETS,
                               &s->data, &s->names, error))
        return FALSE;
    s->n_sets = hn_tool_training_sets(s->training);
    for (guint k = 0; k < s->n_sets; k++)
        s->sets[k] = hn_tool_training_set(s->training, k);
    guint64 t = hn_now_ns();
    if (!instance_train(s, &s->first, error))
        return FALSE;
    hn_trainer_forecast(s->first.trainer, &s->forecast);
    if ((b->p->training.checkpoint || b->ctx->common.mem_limit) && !s->point->searching)
        tell_forecast(s);
    hn_session_stats(hn_trainer_session(s->first.trainer), &s->stats);
    s->phases[BENCH_OPTIMIZE] = s->stats.optimize_ms;
    s->phases[BENCH_PREPARE] = MAX((double)(hn_now_ns() - t) / 1e6 - s->stats.optimize_ms, 0);
    return TRUE;
}

/* --- phases ------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Where the time of a step goes: each step of the session counts for the phase of its node. Reorders count for the
 * phase that they are in the middle of. */
static void add_spans(const HnTimer *timer, const HnTicks *ticks, double ms[HN_PHASES])
{
    HnPhase now = HN_PHASE_FORWARD;
    for (gsize i = 0; i < timer->n; i++) {
        const HnSpan *span = &timer->spans[i];
        now = span->node != NULL ? hn_step_graph_phase(span->node) : now;
        if (span->depth == 0)
            ms[now] += (double)(span->end - span->start) * ticks->ns / 1e6;
    }
}

void subject_time_training(Subject *s)
{
    double ms[HN_PHASES][PHASE_RUNS] = { { 0 } };
    HnTimer timer = { 0 };
    HnTicks ticks;
    HnSession *session = hn_trainer_session(s->first.trainer);
    hn_ticks_start(&timer, &ticks);
    hn_session_set_timer(session, &timer);
    for (int k = 0; k < PHASE_RUNS; k++) {
        double one[HN_PHASES] = { 0 };
        timer.n = 0;
        if (!instance_step(&s->first, (guint64)k, NULL))
            break;
        add_spans(&timer, &ticks, one);
        for (int p = 0; p < HN_PHASES; p++)
            ms[p][k] = one[p];
    }
    hn_session_set_timer(session, NULL);
    g_free(timer.spans);
    for (int p = 0; p < HN_PHASES; p++) {
        qsort(ms[p], PHASE_RUNS, sizeof ms[p][0], by_value);
        s->train_ms[p] = ms[p][PHASE_RUNS / 2];
    }
}

void bench_report_training(const Subject *s, JsonObject *row)
{
    static const char *const names[HN_PHASES] = { "forward_ms", "backward_ms", "update_ms" };
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "loss", hn_tool_training_loss(s->training));
    json_object_set_string_member(o, "optimizer", hn_tool_training_optimizer(s->training));
    json_object_set_boolean_member(o, "synthetic_targets", hn_tool_training_synthetic(s->training));
    json_object_set_int_member(o, "micro_batches", hn_tool_training_parts(s->training));
    json_object_set_int_member(o, "weights", s->train_weights);
    json_object_set_int_member(o, "elements", s->train_elements);
    json_object_set_int_member(o, "forecast_bytes", (gint64)s->forecast.needed);
    json_object_set_int_member(o, "recomputed_nodes", s->forecast.nodes);
    json_object_set_double_member(o, "recomputed_part", s->forecast.part);
    for (int p = 0; p < HN_PHASES; p++)
        json_object_set_double_member(o, names[p], s->has_measured ? s->train_ms[p] : NAN);
    JsonArray *losses = json_array_new();
    for (guint i = 0; i < s->n_losses; i++)
        json_array_add_double_element(losses, s->losses[i]);
    json_object_set_array_member(o, "losses", losses);
    json_object_set_double_member(o, "last_loss", s->last_loss);
    json_object_set_object_member(row, "train", o);
}

void subject_retire_training(Subject *s)
{
    hn_session_stats(hn_trainer_session(s->first.trainer), &s->stats);
    s->stats.arena_bytes = hn_trainer_arena(s->first.trainer);
    s->train_weights = hn_trainer_weights(s->first.trainer, &s->train_elements);
    s->state_bytes = hn_trainer_bytes(s->first.trainer);
    s->n_losses = s->first.n_losses;
    memcpy(s->losses, s->first.losses, sizeof s->losses);
    s->last_loss = s->first.last_loss;
}

/* --- --batch auto ------------------------------------------------------------------------------------------------- */

typedef struct {
    Bench *b;
    Point *point;
    gint64 most;      /* samples that there are */
    guint64 step_ns;  /* of the size that was tried last; 0: it was only planned */
    gint64 tried;     /* the largest of which steps were made */
    gboolean slow;    /* larger ones are only planned, ... */
    gboolean confirm; /* ... but for this one */
    GError *why;      /* the last one did not fit; NULL: it did */
} BatchSearch;

static void tell_batch(const BatchSearch *q, const Subject *s)
{
    g_autofree char *needs = hn_text_size(s->forecast.needed);
    g_autofree char *speed =
        q->step_ns > 0 ? g_strdup_printf(", %.4g samples/s", (double)q->point->batch * 1e9 / (double)q->step_ns) : NULL;
    hn_context_note(q->b->ctx, 0, "batch %" G_GINT64_FORMAT ": %s%s", q->point->batch, needs, speed ? speed : "");
}

/* Two steps, the second of which is timed. */
static gboolean try_steps(BatchSearch *q, Subject *s, GError **error)
{
    guint64 t = 0;
    for (guint64 i = 0; i < 2; i++) {
        t = hn_now_ns();
        if (!instance_step(&s->first, i, error))
            return FALSE;
    }
    q->step_ns = hn_now_ns() - t;
    q->slow = 2 * q->step_ns >= STEP_NS;
    return TRUE;
}

/* HnToolFitsFn */
static gboolean batch_fits(gpointer data, gint64 batch, GError **error)
{
    BatchSearch *q = data;
    Subject s;
    GError *cause = NULL;
    q->point->batch = batch;
    q->step_ns = 0;
    subject_init(&s, q->b, q->point, 0);
    hn_progress_tell(&q->b->ctx->progress, "finding the batch", (guint64)batch, 0);
    gboolean ok = subject_open(&s, &cause);
    if (s.data && !hn_data_synthetic(s.data))
        q->most = hn_data_count(s.data);
    if (ok && q->b->backend->computes && (q->confirm || !q->slow))
        ok = try_steps(q, &s, &cause);
    if (ok)
        tell_batch(q, &s);
    q->tried = ok && q->step_ns > 0 ? MAX(q->tried, batch) : q->tried;
    subject_clear(&s);
    g_clear_error(&q->why);
    if (g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))
        q->why = g_steal_pointer(&cause);
    if (cause)
        g_propagate_error(error, cause);
    return ok;
}

gboolean bench_batch_of_training(Bench *b, Point *point, GError **error)
{
    BatchSearch q = { .b = b, .point = point, .most = MOST_SAMPLES };
    GError *cause = NULL;
    int asked;
    if (!hn_tool_parse_count("--micro-batches", b->p->training.micro_batches, &asked, error))
        return FALSE;
    const gint64 parts = MAX(asked, 1);
    point->step_limit = hn_tool_step_limit(b->ctx);
    point->searching = TRUE;
    gint64 n = hn_tool_largest_batch(b->ctx, parts, &q.most, batch_fits, &q, &cause);
    gboolean tried = !b->backend->computes || q.tried == n;
    for (q.confirm = TRUE; n > 0 && !tried && !cause && !(tried = batch_fits(&q, n, &cause));)
        n = n / parts / 2 * parts;
    point->searching = FALSE;
    point->batch = n;
    if (n == 0 && !cause)
        hn_tool_no_batch(parts, q.why, error);
    else if (cause)
        g_propagate_error(error, cause);
    g_clear_error(&q.why);
    return n > 0 && !cause;
}
