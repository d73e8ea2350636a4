/* hone-bench --train: a step of training as a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hone_bench.h"
#include "perf/ticks.h"
#include "train/train_data.h"

#define PHASE_RUNS 5 /* steps that are timed phase by phase, of which the median counts */

/* What all instances of a subject share. */
struct BenchTraining {
    GPtrArray *objectives, *types; /* HnObjective *; HnType * of a batch */
    HnUpdateRule *rule;
    HnTensor **targets[BENCH_SETS]; /* by sample, then objective; made with the first trainer */
    guint n_sets;
    gboolean synthetic; /* targets are made up */
};

void bench_training_free(BenchTraining *t)
{
    if (t == NULL)
        return;
    for (guint k = 0; k < t->n_sets; k++) {
        for (guint i = 0; i < t->objectives->len; i++)
            hn_tensor_unref(t->targets[k][i]);
        g_free(t->targets[k]);
    }
    g_clear_pointer(&t->objectives, g_ptr_array_unref);
    g_clear_pointer(&t->types, g_ptr_array_unref);
    hn_update_rule_free(t->rule);
    g_free(t);
}

/* --- data --------------------------------------------------------------------------------------------------------- */

/* The first dimension of the first input is the batch, where the model leaves it open. */
static void set_batch(const Subject *s, const GPtrArray *inputs)
{
    const HnType *type = inputs->len > 0 ? ((HnValue *)inputs->pdata[0])->type : NULL;
    if (s->b->p->batch > 0 && hn_type_is_tensor(type) && type->rank > 0 && type->dims[0].sym != NULL)
        hn_shapes_set_dim(s->point->shapes, type->dims[0].sym, s->b->p->batch);
}

/* Batches of samples in their order. */
static gboolean load_batches(Subject *s, GError **error)
{
    const gint64 samples = hn_data_count(s->data);
    const int batch = s->b->p->batch > 0 && !hn_data_synthetic(s->data) ? s->b->p->batch : 1;
    if (samples < batch) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' has %" G_GINT64_FORMAT " samples, fewer than a batch of %d",
                    hn_data_source(s->data), samples, batch);
        return FALSE;
    }
    for (gint64 at = 0; at + batch <= samples && s->n_sets < BENCH_SETS; at += batch) {
        g_autofree int64_t *index = g_new(int64_t, batch);
        for (int i = 0; i < batch; i++)
            index[i] = at + i;
        HnSample *set = hn_data_load_batch(s->data, index, batch, error);
        if (set == NULL)
            return FALSE;
        s->sets[s->n_sets++] = set;
        if (!hn_tool_same_shapes(s->sets[0], set)) {
            g_set_error_literal(error, HN_ERROR, HN_ERROR_SHAPE, "batches to train with are all of one shape");
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean open_batches(Subject *s, GError **error)
{
    const Bench *b = s->b;
    g_autoptr(GPtrArray) inputs = hn_train_inputs(s->model);
    const HnDataOptions o = { .budget = b->ctx->budget,
                              .seed = b->ctx->common.seed,
                              .shapes = s->point->shapes,
                              .rows = TRUE,
                              .drop_rest = TRUE };
    s->names = g_new0(const char *, inputs->len + 1);
    for (guint i = 0; i < inputs->len; i++)
        s->names[i] = ((HnValue *)inputs->pdata[i])->name;
    set_batch(s, inputs);
    s->data =
        hn_data_open(b->p->data ? b->p->data : "random", (HnValue *const *)inputs->pdata, (int)inputs->len, &o, error);
    return s->data != NULL && load_batches(s, error);
}

/* Labels of the data, or made-up ones of random data and of losses that want another model's results. */
static gboolean make_targets(Subject *s, const HnTrainer *trainer, GError **error)
{
    BenchTraining *t = s->training;
    HnBudget *budget = s->b->ctx->budget;
    for (; t->n_sets < s->n_sets; t->n_sets++) {
        t->targets[t->n_sets] = g_new0(HnTensor *, t->objectives->len + 1);
        for (guint i = 0; i < t->objectives->len; i++) {
            const gint64 classes = hn_trainer_classes(trainer, i);
            const HnSample *set = s->sets[t->n_sets];
            const gboolean made_up = set->label == NULL || (classes == 0 && hn_dtype_in(set->label->dtype, HN_T_INTS));
            t->synthetic = t->synthetic || made_up;
            HnTensor *target = made_up ? hn_train_random_target(hn_trainer_target(trainer, i), classes,
                                                                s->b->ctx->common.seed + t->n_sets, budget, error)
                                       : hn_train_target(set, hn_trainer_target(trainer, i), budget, error);
            if ((t->targets[t->n_sets][i] = target) == NULL) {
                t->n_sets++;
                return FALSE;
            }
        }
    }
    return TRUE;
}

/* --- instances ---------------------------------------------------------------------------------------------------- */

static BenchTraining *parse(const BenchParams *p, GError **error)
{
    BenchTraining *t = g_new0(BenchTraining, 1);
    if ((t->objectives = hn_objectives_parse(p->loss ? p->loss : "ce", error)) != NULL &&
        (t->rule = hn_update_rule_parse(p->optimizer ? p->optimizer : "adamw", error)) != NULL)
        return t;
    if (t->objectives == NULL)
        t->objectives = g_ptr_array_new();
    bench_training_free(t);
    return NULL;
}

gboolean instance_train(const Subject *s, Instance *x, GError **error)
{
    const Bench *b = s->b;
    const BenchTraining *t = s->training;
    *x = (Instance){ 0 };
    g_autofree HnTensor **fixed = hn_train_fixed(s->sets, s->n_sets);
    HnModel *work = hn_onnx_read_bytes(s->bytes, s->folder, &(HnOnnxOptions){ .budget = b->ctx->budget }, error);
    g_autoptr(HnDevice) device = work != NULL ? hn_device_new(b->backend, 0, error) : NULL;
    const HnTrainerOptions o = { .objectives = t->objectives,
                                 .rule = t->rule,
                                 .trainable = { b->p->freeze, NULL },
                                 .keep_statistics = b->p->freeze_bn,
                                 .in = (HnType *const *)t->types->pdata,
                                 .fixed = fixed,
                                 .micro = b->p->micro_batches,
                                 .threads = s->threads,
                                 .bf16 = !strcmp(s->point->precision, "bf16"),
                                 .seed = b->ctx->common.seed,
                                 .budget = b->ctx->budget };
    if (device == NULL) {
        hn_model_free(work);
        return FALSE;
    }
    if ((x->trainer = hn_trainer_new(work, device, &o, error)) == NULL)
        return FALSE;
    x->lr = t->rule->lr;
    x->training = t;
    for (; x->n_sets < s->n_sets; x->n_sets++)
        x->in[x->n_sets] = s->sets[x->n_sets]->in;
    return TRUE;
}

gboolean instance_step(Instance *x, guint64 i, GError **error)
{
    const guint k = (guint)(i % x->n_sets);
    HnStepLoss made;
    if (!hn_trainer_step(x->trainer, x->in[k], x->training->targets[k], x->lr, &made, error))
        return FALSE;
    if (x->n_losses < BENCH_LOSSES)
        x->losses[x->n_losses++] = made.loss;
    x->last_loss = made.loss;
    return TRUE;
}

gboolean subject_open_training(Subject *s, GError **error)
{
    if ((s->training = parse(s->b->p, error)) == NULL || !open_batches(s, error) ||
        (s->training->types = hn_train_types(s->sets[0], error)) == NULL)
        return FALSE;
    guint64 t = hn_now_ns();
    if (!instance_train(s, &s->first, error) || !make_targets(s, s->first.trainer, error))
        return FALSE;
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
    json_object_set_string_member(o, "loss", s->b->p->loss ? s->b->p->loss : "ce");
    json_object_set_string_member(o, "optimizer", s->b->p->optimizer ? s->b->p->optimizer : "adamw");
    json_object_set_boolean_member(o, "synthetic_targets", s->training->synthetic);
    json_object_set_int_member(o, "micro_batches", MAX(s->b->p->micro_batches, 1));
    json_object_set_int_member(o, "weights", s->train_weights);
    json_object_set_int_member(o, "elements", s->train_elements);
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
    s->train_weights = hn_trainer_weights(s->first.trainer, &s->train_elements);
    s->state_bytes = hn_trainer_bytes(s->first.trainer);
    s->n_losses = s->first.n_losses;
    memcpy(s->losses, s->first.losses, sizeof s->losses);
    s->last_loss = s->first.last_loss;
}
