/* hone-bench --train: a step of training as a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hone_bench.h"
#include "perf/ticks.h"

#define PHASE_RUNS 5 /* steps that are timed phase by phase, of which the median counts */

gboolean instance_train(const Subject *s, Instance *x, GError **error)
{
    const Bench *b = s->b;
    *x = (Instance){ .training = s->training, .n_sets = s->n_sets };
    HnModel *work = hn_onnx_read_bytes(s->bytes, s->folder, &(HnOnnxOptions){ .budget = b->ctx->budget }, error);
    x->trainer = work ? hn_tool_trainer_new(s->training, work, b->backend, s->threads,
                                            !strcmp(s->point->precision, "bf16"), error)
                      : NULL;
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
    if (!(s->training = hn_tool_training_new(b->ctx, &b->p->training, error)) ||
        !hn_tool_training_open(s->training, s->model, b->p->data, s->point->shapes, BENCH_SETS, &s->data, &s->names,
                               error))
        return FALSE;
    s->n_sets = hn_tool_training_sets(s->training);
    for (guint k = 0; k < s->n_sets; k++)
        s->sets[k] = hn_tool_training_set(s->training, k);
    guint64 t = hn_now_ns();
    if (!instance_train(s, &s->first, error))
        return FALSE;
    hn_trainer_forecast(s->first.trainer, &s->forecast);
    if (b->p->training.checkpoint || b->ctx->common.mem_limit)
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
    json_object_set_int_member(o, "micro_batches", MAX(s->b->p->training.micro_batches, 1));
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
