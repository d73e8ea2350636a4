#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "op/hyper.h"
#include "run/timer.h"
#include "train/gradient_sum.h"
#include "train/loss_scale.h"
#include "train/open_batch.h"
#include "train/update_graph.h"

#define CHEAP 0.08 /* part of a step's time that recomputation may take where no limit asks for it */

struct HnTrainer {
    HnTrainerOptions o;
    HnUpdateRule rule; /* o.rule, which asks for the norm in f16, too */
    gboolean bf16;     /* HnSessionOptions.bf16 */
    HnTensor *scale;   /* of losses; NULL: they are not scaled */
    HnStepGraph *graph;
    HnEngine *engine;
    HnSession *session;
    HnModel *update; /* of several micro-batches; else NULL, as what follows */
    HnEngine *update_engine;
    HnSession *update_session;
    HnGradientSum *sum;
    guint n_gradients;
    int64_t batch;    /* samples; 0: nothing is cut */
    HnType **targets; /* of a batch */
    HnTensor **in, **out, **update_in, **update_out;
    HnTensor *numbers, *state, **factors;
    GArray *states;      /* State: in the order of the variables */
    HnSnapshot *moments; /* that each run moves */
    GPtrArray *stored;   /* HnTensor *: what hn_trainer_learned() made, by number; NULL: nothing */
    int64_t steps;
    HnForecast forecast;
};

void hn_trainer_free(HnTrainer *t)
{
    if (t == NULL)
        return;
    hn_gradient_sum_free(t->sum);
    if (t->states != NULL)
        g_array_unref(t->states);
    if (t->stored != NULL)
        g_ptr_array_unref(t->stored);
    hn_snapshot_free(t->moments);
    hn_session_free(t->update_session);
    hn_session_free(t->session);
    if (t->update_engine != NULL)
        hn_engine_unref(t->update_engine);
    if (t->engine != NULL)
        hn_engine_unref(t->engine);
    hn_model_free(t->update);
    for (guint i = 0; t->graph != NULL && i < t->graph->n_objectives; i++) {
        if (t->targets != NULL)
            hn_type_unref(t->targets[i]);
        if (t->factors != NULL)
            hn_tensor_unref(t->factors[i]);
    }
    hn_tensor_unref(t->numbers);
    hn_tensor_unref(t->scale);
    hn_tensor_unref(t->state);
    hn_step_graph_free(t->graph);
    g_free(t->targets);
    g_free(t->factors);
    g_free(t->in);
    g_free(t->out);
    g_free(t->update_in);
    g_free(t->update_out);
    g_free(t);
}

/* --- cutting a batch ---------------------------------------------------------------------------------------------- */

static gboolean is_cut(const HnTrainer *t, int ndim, int64_t first)
{
    return t->batch > 0 && ndim > 0 && first == t->batch;
}

/* That type for one micro-batch. */
static HnType *part_of(const HnTrainer *t, const HnType *whole)
{
    int64_t dims[HN_MAX_RANK];
    hn_type_is_fixed(whole, dims);
    if (is_cut(t, whole->rank, dims[0]))
        dims[0] /= t->o.micro;
    return hn_type_fixed(whole->dtype, whole->rank, dims);
}

/* That type for a batch of micro-batches; one with the batch axis first. */
static HnType *whole_of(const HnTrainer *t, const HnType *part)
{
    int64_t dims[HN_MAX_RANK];
    hn_type_is_fixed(part, dims);
    if (t->batch > 0 && part->rank > 0 && dims[0] == t->batch / t->o.micro)
        dims[0] *= t->o.micro;
    return hn_type_fixed(part->dtype, part->rank, dims);
}

/* Rows of x that micro-batch k has, without a copy. */
static HnTensor *slice(const HnTrainer *t, HnTensor *x, int k)
{
    if (!is_cut(t, x->ndim, x->ndim > 0 ? x->dims[0] : 0))
        return hn_tensor_ref(x);
    int64_t dims[HN_MAX_RANK];
    memcpy(dims, x->dims, (gsize)x->ndim * sizeof *dims);
    dims[0] /= t->o.micro;
    return hn_tensor_new_borrowed(x->dtype, x->ndim, dims, (char *)x->data + (gsize)k * (x->bytes / (gsize)t->o.micro));
}

static gboolean find_batch(HnTrainer *t, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    if (t->o.micro <= 1) {
        t->o.micro = 1;
        return TRUE;
    }
    if (t->o.in[0]->rank == 0 || !hn_type_is_fixed(t->o.in[0], dims) || dims[0] <= 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_SHAPE,
                            "the first input has no axis of samples to be cut into micro-batches");
        return FALSE;
    }
    if (dims[0] % t->o.micro != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                    "a batch of %" PRId64 " samples cannot be cut into %d micro-batches of one size", dims[0],
                    t->o.micro);
        return FALSE;
    }
    t->batch = dims[0];
    return TRUE;
}

/* --- states ------------------------------------------------------------------------------------------------------- */

typedef struct {
    char *name;
    HnTensor *tensor; /* of an engine that the trainer holds */
} State;

static void state_clear(gpointer state)
{
    g_free(((State *)state)->name);
}

/* Variables of an engine that are its own. */
static void list_states(HnTrainer *t, const GArray *variables, HnEngine *e)
{
    for (guint i = 0; i < variables->len; i++) {
        const HnVariable *v = &g_array_index(variables, HnVariable, i);
        const State s = { g_strdup(v->name), hn_engine_variable(e, v->name) };
        if (v->elements == NULL)
            g_array_append_val(t->states, s);
        else
            g_free(s.name);
    }
}

/* NULL: there is none. */
static HnTensor *find_state(const HnTrainer *t, const char *name)
{
    for (guint i = 0; i < t->states->len; i++)
        if (strcmp(g_array_index(t->states, State, i).name, name) == 0)
            return g_array_index(t->states, State, i).tensor;
    return NULL;
}

guint hn_trainer_n_states(const HnTrainer *t)
{
    return t->states->len;
}

HnTensor *hn_trainer_state(const HnTrainer *t, guint i, const char **name)
{
    const State *s = &g_array_index(t->states, State, i);
    *name = s->name;
    return s->tensor;
}

void hn_trainer_wrote(HnTrainer *t, int64_t steps)
{
    t->steps = steps;
    hn_engine_wrote(t->engine);
    if (t->update_engine != NULL)
        hn_engine_wrote(t->update_engine);
}

gboolean hn_trainer_fetch(const HnTrainer *t, GError **error)
{
    return hn_engine_fetch(t->engine, error) && (t->update_engine == NULL || hn_engine_fetch(t->update_engine, error));
}

gsize hn_trainer_bytes(const HnTrainer *t)
{
    gsize bytes = 0;
    for (guint i = 0; i < t->states->len; i++)
        bytes += g_array_index(t->states, State, i).tensor->bytes;
    return bytes;
}

/* --- running moments -----------------------------------------------------------------------------------------------
 * A run moves them before its loss is known: behind one that shall change nothing they become what they were.
 */

static gboolean make_snapshot(HnTrainer *t, GError **error)
{
    const GPtrArray *names = t->graph->statistics;
    t->moments = hn_snapshot_new(t->session, (const char *const *)names->pdata, names->len, t->o.budget, error);
    return t->moments != NULL;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static gboolean make_graph(HnTrainer *t, HnModel *work, GError **error)
{
    guint n = 0;
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    hn_model_drop_defaults(work);
    work = hn_train_open_batch(work, t->o.in, t->o.budget);
    for (n = 0; n < work->graph->inputs->len; n++)
        g_ptr_array_add(in, part_of(t, t->o.in[n]));
    const HnStepGraphOptions o = { .objectives = t->o.objectives,
                                   .labels = t->o.labels,
                                   .rule = t->o.micro > 1 ? NULL : t->o.rule,
                                   .trainable = t->o.trainable,
                                   .keep_statistics = t->o.keep_statistics,
                                   .straight = t->o.straight,
                                   .half = t->bf16 ? HN_UNDEFINED : t->o.half,
                                   .in = (HnType *const *)in->pdata,
                                   .fixed = t->o.fixed };
    if ((t->graph = hn_step_graph_new(work, &o, error)) == NULL)
        return FALSE;
    const HnGraph *g = t->graph->model->graph;
    t->targets = g_new0(HnType *, t->graph->n_objectives + 1);
    for (guint i = 0; i < t->graph->n_objectives; i++)
        t->targets[i] = whole_of(t, ((HnValue *)g->inputs->pdata[(guint)t->graph->target_in + i])->type);
    return TRUE;
}

/* plan_only: of no budget, and without memory for values. */
static HnSession *open_session(HnTrainer *t, HnModel *m, HnDevice *device, const HnVariable *variables,
                               gboolean plan_only, HnEngine **engine, GError **error)
{
    HnBudget *budget = plan_only ? NULL : t->o.budget;
    const HnEngineOptions eo = { .budget = budget, .variables = variables };
    const HnSessionOptions so = { .threads = t->o.threads,
                                  .bf16 = t->bf16,
                                  .round_halves = hn_dtype_is_half(t->o.half) && !t->bf16,
                                  .seed = t->o.seed,
                                  .budget = budget,
                                  .plan_only = plan_only,
                                  .plan_cache = 1 };
    if ((*engine = hn_engine_new(m, device, &eo, error)) == NULL)
        return NULL;
    g_autoptr(HnSession) s = hn_session_new_on(*engine, &so, error);
    if (s == NULL)
        return NULL;
    g_autoptr(GPtrArray) types = g_ptr_array_new();
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        g_ptr_array_add(types, hn_session_input(s, i)->type);
    g_ptr_array_add(types, NULL);
    return hn_session_prepare(s, (HnType *const *)types->pdata, error) ? g_steal_pointer(&s) : NULL;
}

static gboolean make_numbers(HnTrainer *t, GError **error)
{
    const guint n = t->graph->n_objectives;
    const int64_t four = 4;
    t->numbers = hn_tensor_new(HN_F32, 1, &four, NULL, error);
    t->state = hn_tensor_ints((const int64_t[]){ (int64_t)t->o.seed, 0 }, 2);
    t->factors = g_new0(HnTensor *, n + 1);
    for (guint i = 0; i < n; i++)
        t->factors[i] = hn_tensor_scalar_f32(0);
    t->in = g_new0(HnTensor *, t->graph->model->graph->inputs->len + 1);
    t->out = g_new0(HnTensor *, t->graph->model->graph->outputs->len + 1);
    return t->numbers != NULL;
}

static HnUpdatedWeight *updated_weights(HnTrainer *t)
{
    HnUpdatedWeight *list = g_new0(HnUpdatedWeight, t->graph->trained->len + 1);
    for (guint i = 0; i < t->graph->trained->len; i++) {
        const HnTrained *w = &g_array_index(t->graph->trained, HnTrained, i);
        if (w->gradient != NULL)
            list[t->n_gradients++] = (HnUpdatedWeight){ .name = w->name,
                                                        .elements = hn_engine_variable(t->engine, w->name),
                                                        .scale = w->least != NULL };
    }
    return list;
}

/* The averages of the second graph are those of the weights. */
static void take_averages(HnTrainer *t, const HnUpdatedWeight *weights)
{
    for (guint i = 0, k = 0; i < t->graph->trained->len; i++) {
        HnTrained *w = &g_array_index(t->graph->trained, HnTrained, i);
        if (w->gradient != NULL)
            w->average = weights[k++].average;
    }
}

/* The second graph of several micro-batches. */
static gboolean make_update(HnTrainer *t, HnDevice *device, GError **error)
{
    if (t->o.micro <= 1)
        return TRUE;
    g_autofree HnUpdatedWeight *weights = updated_weights(t);
    g_autoptr(GArray) variables = NULL;
    t->update = hn_update_graph_new(t->o.rule, weights, t->n_gradients, t->o.budget, &variables, error);
    take_averages(t, weights);
    if (t->update == NULL)
        return FALSE;
    t->update_session = open_session(t, t->update, device, (const HnVariable *)(void *)variables->data, FALSE,
                                     &t->update_engine, error);
    t->update_in = g_new0(HnTensor *, t->n_gradients + 2);
    t->update_out = g_new0(HnTensor *, t->update->graph->outputs->len + 1);
    t->sum = hn_gradient_sum_new(t->n_gradients, t->o.threads, t->o.budget);
    if (t->update_session != NULL)
        list_states(t, variables, t->update_engine);
    return t->update_session != NULL;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnTrainer *t;
    HnDevice *device;
} Planning;

static const HnVariable *variables_of(const HnTrainer *t)
{
    return (const HnVariable *)(void *)t->graph->variables->data;
}

/* NULL: it has none. */
static HnTensor *weight_of(const HnTrainer *t, const char *name)
{
    const HnValue *v = name != NULL ? g_hash_table_lookup(t->graph->model->graph->values, name) : NULL;
    return v != NULL ? v->weight : NULL;
}

/* HnRecomputeOptions.plan: nothing is computed, so that variables are the weights themselves, not copies of them. */
static HnSession *plan_only(HnModel *m, gpointer data, GError **error)
{
    const Planning *p = data;
    HnEngine *engine = NULL;
    g_autofree HnVariable *variables =
        g_memdup2(variables_of(p->t), (p->t->graph->variables->len + 1) * sizeof(HnVariable));
    for (HnVariable *v = variables; v->name != NULL; v++)
        v->elements = v->elements != NULL ? v->elements : weight_of(p->t, v->name);
    HnSession *s = open_session(p->t, m, p->device, variables, TRUE, &engine, error);
    if (engine != NULL)
        hn_engine_unref(engine);
    return s;
}

static gsize bytes_of_weight(const HnTrainer *t, const char *name)
{
    const HnTensor *w = weight_of(t, name);
    return w != NULL ? w->bytes : 0;
}

/* Bytes of the gradients of all weights. */
static gsize bytes_of_gradients(const HnTrainer *t)
{
    gsize bytes = 0;
    for (guint i = 0; i < t->graph->trained->len; i++) {
        const HnTrained *w = &g_array_index(t->graph->trained, HnTrained, i);
        bytes += w->gradient != NULL ? bytes_of_weight(t, w->name) : 0;
    }
    return bytes;
}

/* Of several micro-batches: their gradients, and the sums of these that are held at once. */
static gsize bytes_of_sums(const HnTrainer *t)
{
    return t->o.micro > 1 ? bytes_of_gradients(t) * (1 + hn_gradient_sum_levels((guint)t->o.micro)) : 0;
}

/* Bytes of the variables: states that the update of micro-batches has are not there yet, and follow from its rule. */
static gsize bytes_of_variables(const HnTrainer *t)
{
    const gsize states = (gsize)t->o.rule->op->optimizer.states + (t->o.rule->ema > 0 ? 1 : 0);
    gsize bytes = t->o.micro > 1 ? bytes_of_gradients(t) * states : 0;
    for (guint i = 0; i < t->graph->variables->len; i++)
        bytes += bytes_of_weight(t, g_array_index(t->graph->variables, HnVariable, i).name);
    return bytes;
}

static gboolean plan_memory(HnTrainer *t, HnDevice *device, GError **error)
{
    HnRecomputed made;
    Planning planning = { t, device };
    const gsize own = bytes_of_variables(t) + bytes_of_sums(t);
    const gsize left = t->o.limit > t->o.taken ? t->o.limit - t->o.taken : 0;
    if (!t->o.checkpoint && t->o.limit == 0)
        return TRUE;
    const HnRecomputeOptions o = { .limit = t->o.limit == 0 ? G_MAXSIZE
                                            : own < left    ? left - own
                                                            : 1,
                                   .segments = t->o.segments,
                                   .part = t->o.micro > 1 ? 0 : CHEAP,
                                   .never = !t->o.checkpoint,
                                   .plan = plan_only,
                                   .data = &planning };
    if (!hn_recompute(t->graph->model, &o, &made, error))
        return FALSE;
    t->forecast = (HnForecast){ made.plain + own, made.arena + own, made.nodes, made.part };
    if (made.fits)
        return TRUE;
    g_autofree char *needs = hn_text_size(t->forecast.needed), *limit = hn_text_size(t->o.limit),
                    *part = hn_text_size(left), *leaves = g_strdup_printf(", which leaves %s", part);
    g_set_error(
        error, HN_ERROR, HN_ERROR_BUDGET,
        "a step needs %s of memory, weights and states of the optimizer included, more than the limit of %s%s%s", needs,
        limit, t->o.taken > 0 ? leaves : "", t->o.checkpoint ? ", whatever is computed twice" : "");
    return FALSE;
}

HnTrainer *hn_trainer_new(HnModel *work, HnDevice *device, const HnTrainerOptions *o, GError **error)
{
    g_autoptr(HnTrainer) t = g_new0(HnTrainer, 1);
    t->o = *o;
    t->rule = *o->rule;
    t->o.rule = &t->rule;
    t->bf16 = o->half == HN_BF16 && device->backend->widens;
    if (o->half == HN_F16) {
        t->scale = hn_loss_scale_new(o->scale_every);
        t->rule.clip = t->rule.clip > 0 ? t->rule.clip : INFINITY;
    }
    t->states = g_array_new(FALSE, FALSE, sizeof(State));
    t->stored = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_array_set_clear_func(t->states, state_clear);
    if (!find_batch(t, error)) {
        hn_model_free(work);
        return NULL;
    }
    if (!make_graph(t, work, error) || !make_numbers(t, error) || !plan_memory(t, device, error))
        return NULL;
    t->session = open_session(t, t->graph->model, device, variables_of(t), FALSE, &t->engine, error);
    if (t->session == NULL)
        return NULL;
    list_states(t, t->graph->variables, t->engine);
    if (!make_snapshot(t, error) || !make_update(t, device, error))
        return NULL;
    const State scale = { g_strdup("loss scale"), t->scale };
    if (t->scale != NULL)
        g_array_append_val(t->states, scale);
    else
        g_free(scale.name);
    t->o.in = NULL;
    t->o.fixed = NULL;
    return g_steal_pointer(&t);
}

/* --- what it is --------------------------------------------------------------------------------------------------- */

HnType *hn_trainer_target(const HnTrainer *t, guint i)
{
    return t->targets[i];
}

HnType *hn_trainer_compared(const HnTrainer *t, guint i)
{
    return whole_of(t, t->graph->compared[i]);
}

int64_t hn_trainer_classes(const HnTrainer *t, guint i)
{
    const HnObjective *o = t->o.objectives->pdata[i];
    return hn_objective_classes(o, t->graph->compared[i]);
}

guint hn_trainer_weights(const HnTrainer *t, int64_t *elements)
{
    guint n = 0;
    *elements = 0;
    for (guint i = 0; i < t->graph->trained->len; i++) {
        const HnTrained *w = &g_array_index(t->graph->trained, HnTrained, i);
        if (w->gradient == NULL)
            continue;
        n++;
        *elements += hn_engine_variable(t->engine, w->name)->n;
    }
    return n;
}

gboolean hn_trainer_in_place(const HnTrainer *t)
{
    return hn_in_place_any(t->graph->in_place);
}

guint hn_trainer_statistics(const HnTrainer *t)
{
    return t->graph->statistics->len;
}

HnSession *hn_trainer_session(const HnTrainer *t)
{
    return t->session;
}

int64_t hn_trainer_steps(const HnTrainer *t)
{
    return t->steps;
}

void hn_trainer_forecast(const HnTrainer *t, HnForecast *forecast)
{
    *forecast = t->forecast;
    if (forecast->needed > 0)
        return;
    forecast->plain = forecast->needed = hn_trainer_arena(t) + hn_trainer_bytes(t);
}

gsize hn_trainer_arena(const HnTrainer *t)
{
    HnSessionStats stats, update = { 0 };
    hn_session_stats(t->session, &stats);
    if (t->update_session != NULL)
        hn_session_stats(t->update_session, &update);
    return stats.arena_bytes + update.arena_bytes + bytes_of_sums(t);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void unref_all(HnTensor **t, guint n)
{
    for (guint i = 0; i < n; i++)
        g_clear_pointer(&t[i], hn_tensor_unref);
}

/* Forward and backward of micro-batch k; the results are in t->out. */
static gboolean run_part(HnTrainer *t, HnTensor *const *in, HnTensor *const *targets, int k, GError **error)
{
    const HnStepGraph *g = t->graph;
    const guint n_in = g->model->graph->inputs->len;
    for (guint i = 0; i < g->n_in; i++)
        t->in[i] = slice(t, in[i], k);
    ((int64_t *)t->state->data)[1] = t->steps * t->o.micro + k; /* each has random numbers of its own */
    t->in[g->state_in] = hn_tensor_ref(t->state);
    for (guint i = 0; i < g->n_objectives; i++) {
        t->in[(guint)g->target_in + i] = slice(t, targets[i], k);
        t->in[(guint)g->factor_in + i] = hn_tensor_ref(t->factors[i]);
    }
    if (g->numbers_in >= 0)
        t->in[g->numbers_in] = hn_tensor_ref(t->numbers);
    const gboolean ok = hn_session_run(t->session, t->in, t->out, error);
    unref_all(t->in, n_in);
    return ok;
}

double hn_trainer_scale(const HnTrainer *t, int64_t *skipped)
{
    *skipped = t->scale != NULL ? (int64_t)hn_tensor_get_f64(t->scale, HN_LOSS_SCALE_SKIPPED) : 0;
    return t->scale != NULL ? hn_tensor_get_f64(t->scale, HN_LOSS_SCALE) : 1;
}

static void add_losses(const HnTrainer *t, double *loss)
{
    int64_t skipped;
    const double scale = hn_trainer_scale(t, &skipped);
    for (guint i = 0; i < t->graph->n_objectives; i++)
        *loss += hn_tensor_get_f64(t->out[i], 0) * hn_tensor_get_f64(t->factors[i], 0) / scale;
}

static gboolean update(HnTrainer *t, HnStepLoss *made, GError **error)
{
    const guint n_out = t->update->graph->outputs->len;
    HnTensor *const *sums = hn_gradient_sum_finish(t->sum, error);
    if (sums == NULL)
        return FALSE;
    memcpy(t->update_in, sums, t->n_gradients * sizeof *sums);
    t->update_in[t->n_gradients] = t->numbers;
    if (!isfinite(made->loss))
        return TRUE;
    if (!hn_session_run(t->update_session, t->update_in, t->update_out, error))
        return FALSE;
    if (t->o.rule->clip > 0)
        made->norm = hn_tensor_get_f64(t->update_out[0], 0);
    unref_all(t->update_out, n_out);
    hn_engine_replaced(t->engine);
    return TRUE;
}

static void set_numbers(HnTrainer *t, HnTensor *const *targets, double lr)
{
    int64_t skipped;
    const double scale = hn_trainer_scale(t, &skipped);
    hn_update_rule_numbers(t->o.rule, lr, t->steps + 1 - skipped, t->numbers->data);
    hn_tensor_set_f64(t->numbers, HN_HYPER_SCALE, 1 / scale);
    for (guint i = 0; i < t->graph->n_objectives; i++) {
        const HnObjective *o = t->o.objectives->pdata[i];
        const int64_t count = hn_objective_count(o, targets[i], t->graph->compared[i]);
        hn_tensor_set_f64(t->factors[i], 0, o->weight / (double)MAX(count, 1) * scale);
    }
}

static gboolean run_parts(HnTrainer *t, HnTensor *const *in, HnTensor *const *targets, HnStepLoss *made, GError **error)
{
    const HnStepGraph *g = t->graph;
    const guint n_out = g->model->graph->outputs->len;
    for (int k = 0; k < t->o.micro; k++) {
        if (!run_part(t, in, targets, k, error))
            return FALSE;
        add_losses(t, &made->loss);
        if (g->norm_out >= 0)
            made->norm = hn_tensor_get_f64(t->out[g->norm_out], 0);
        const gboolean ok = t->sum == NULL || hn_gradient_sum_add(t->sum, t->out + g->gradient_out, error);
        unref_all(t->out, n_out);
        if (!ok)
            return FALSE;
    }
    return t->sum == NULL || update(t, made, error);
}

gboolean hn_trainer_step(HnTrainer *t, HnTensor *const *in, HnTensor *const *targets, double lr, HnStepLoss *made,
                         GError **error)
{
    *made = (HnStepLoss){ 0, NAN, FALSE };
    set_numbers(t, targets, lr);
    gboolean ok = hn_snapshot_take(t->moments, error) && run_parts(t, in, targets, made, error);
    if (!ok)
        hn_snapshot_restore(t->moments, NULL);
    else if (!isfinite(made->loss) || (t->o.rule->clip > 0 && !isfinite(made->norm)))
        ok = hn_snapshot_restore(t->moments, error);
    if (ok && t->scale != NULL && isfinite(made->loss)) {
        made->skipped = !isfinite(made->norm);
        hn_loss_scale_heard(t->scale, !made->skipped);
    }
    t->steps += ok;
    return ok;
}

/* --- what is not finite ------------------------------------------------------------------------------------------- */

typedef struct {
    HnSession *session;
    char *name; /* once it is found */
    void *room;
} Search;

/* Only as many numbers as the slot has: of a layout with gaps that is f32, those in the gaps, too. */
static gboolean all_finite(Search *f, const HnPort *p)
{
    const HnTensor *t = p->slot != NULL ? p->slot->tensor : NULL;
    const HnLayout *layout = t != NULL ? p->slot->layout : NULL;
    if (t == NULL || (t->dtype != HN_F32 && (!hn_dtype_is_half(t->dtype) || layout != NULL)))
        return TRUE;
    const int64_t n = layout != NULL ? (int64_t)(layout->bytes / sizeof(float)) : t->n;
    f->room = g_realloc(f->room, (gsize)n * sizeof(float) + 1);
    if (!hn_session_read(f->session, p->slot, f->room, NULL))
        return TRUE;
    g_autoptr(HnTensor) x = hn_tensor_new_borrowed(t->dtype, 1, &n, f->room);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(hn_tensor_get_f64(x, i)))
            return FALSE;
    return TRUE;
}

/* HnTimer.after */
static void look(const HnStep *s, gpointer data)
{
    Search *f = data;
    for (int k = 0; f->name == NULL && s->origin != NULL && k < s->n_out; k++)
        if (!all_finite(f, &s->out[k]))
            f->name = g_strdup(hn_node_label(s->origin));
}

char *hn_trainer_find_nonfinite(HnTrainer *t, HnTensor *const *in, HnTensor *const *targets)
{
    Search f = { .session = t->session };
    HnTimer timer = { .after = look, .data = &f };
    if (!hn_snapshot_take(t->moments, NULL))
        return NULL;
    hn_session_set_timer(t->session, &timer);
    for (int k = 0; k < t->o.micro && f.name == NULL && run_part(t, in, targets, k, NULL); k++)
        unref_all(t->out, t->graph->model->graph->outputs->len);
    hn_session_set_timer(t->session, NULL);
    unref_all(t->out, t->graph->model->graph->outputs->len);
    g_free(timer.spans);
    g_free(f.room);
    hn_snapshot_restore(t->moments, NULL);
    return f.name;
}

/* --- what it learned ---------------------------------------------------------------------------------------------- */

/* The value of that name in g or in a graph inside it that has elements of that form; NULL: there is none. */
static HnValue *find_weight(const HnGraph *g, const char *name, const HnTensor *like)
{
    HnValue *v = g_hash_table_lookup(g->values, name);
    const HnTensor *t = v != NULL ? hn_trainable_elements(v) : NULL;
    if (t != NULL && t->dtype == like->dtype && t->n == like->n)
        return v;
    v = NULL;
    for (guint i = 0; v == NULL && i < g->inner->len; i++)
        v = find_weight(g->inner->pdata[i], name, like);
    return v;
}

gboolean hn_trainer_put(HnModel *m, const char *name, const HnTensor *elements, GError **error)
{
    HnValue *v = find_weight(m->graph, name, elements);
    g_autoptr(HnTensor) copy = v != NULL ? hn_tensor_copy(elements, m->budget, error) : NULL;
    if (copy != NULL)
        hn_trainable_set(v, copy);
    return v == NULL || copy != NULL;
}

guint hn_trainer_n_learned(const HnTrainer *t)
{
    return t->graph->trained->len + t->graph->statistics->len + t->graph->products->len;
}

/* As the step has it; NULL: no loss depends on it. */
static HnTensor *now(const HnTrainer *t, const HnTrained *w, gboolean averages)
{
    return w->gradient == NULL ? NULL : find_state(t, averages && w->average != NULL ? w->average : w->name);
}

/* A scale as it is used; NULL: it is not learned, or there is no memory. */
static HnTensor *scale_now(const HnTrainer *t, const HnGridScale *s, gboolean averages, GError **error)
{
    for (guint i = 0; s->start != NULL && i < t->graph->trained->len; i++) {
        const HnTrained *w = &g_array_index(t->graph->trained, HnTrained, i);
        const HnTensor *x = w->least != NULL && strcmp(w->name, s->name) == 0 ? now(t, w, averages) : NULL;
        if (x != NULL)
            return hn_scale_used(x, w->least, t->o.budget, error);
    }
    return NULL;
}

static HnTensor *grid_scale(const HnTrainer *t, const HnGrid *g, gboolean averages, GError **error)
{
    g_autoptr(HnTensor) scale = scale_now(t, &g->scale, averages, error), by = scale_now(t, &g->by, averages, error);
    return hn_grid_scale(g, scale, by, t->o.budget, error);
}

/* As the file has it: integers of their grid, a scale as it is used. */
static HnTensor *as_stored(const HnTrainer *t, const HnTrained *w, gboolean averages, GError **error)
{
    const HnTensor *x = now(t, w, averages);
    if (x == NULL || w->grid == NULL)
        return x != NULL ? hn_scale_used(x, w->least, t->o.budget, error) : NULL;
    g_autoptr(HnTensor) scale = grid_scale(t, w->grid, averages, error);
    return scale != NULL ? hn_fake_integers(&w->grid->form, x, scale, w->grid->zero, t->o.budget, error) : NULL;
}

/* Keeps x, number i, which may be NULL. */
static HnTensor *keep(const HnTrainer *t, guint i, HnTensor *x)
{
    if (t->stored->len <= i)
        g_ptr_array_set_size(t->stored, (gint)hn_trainer_n_learned(t));
    if (t->stored->pdata[i] != NULL)
        hn_tensor_unref(t->stored->pdata[i]);
    t->stored->pdata[i] = x;
    return x;
}

HnTensor *hn_trainer_learned(const HnTrainer *t, guint i, gboolean averages, const char **name, GError **error)
{
    const HnStepGraph *g = t->graph;
    const guint n = g->trained->len, product = n + g->statistics->len;
    const char *in_graph;
    if (!hn_trainer_fetch(t, error))
        return NULL;
    if (i >= product) {
        *name = g->products->pdata[i - product];
        return keep(t, i, grid_scale(t, hn_in_place_product(g->in_place, i - product, &in_graph), averages, error));
    }
    if (i >= n) {
        *name = g->statistics->pdata[i - n];
        return find_state(t, *name);
    }
    const HnTrained *w = &g_array_index(g->trained, HnTrained, i);
    *name = w->origin;
    return w->grid == NULL && w->least == NULL ? now(t, w, averages) : keep(t, i, as_stored(t, w, averages, error));
}

gboolean hn_trainer_store(const HnTrainer *t, HnModel *m, gboolean averages, GError **error)
{
    for (guint i = 0; i < hn_trainer_n_learned(t); i++) {
        const char *name;
        GError *failure = NULL;
        const HnTensor *x = hn_trainer_learned(t, i, averages, &name, &failure);
        if (failure != NULL) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        if (x != NULL && !hn_trainer_put(m, name, x, error))
            return FALSE;
    }
    return TRUE;
}
