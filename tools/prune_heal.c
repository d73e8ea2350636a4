/* hone-prune: what is learned: weights of the pruned model with which it does what the dense one does. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "hone_prune.h"
#include "ir/copy.h"
#include "op/op.h"
#include "train/targets.h"
#include "train/train_data.h"

#define BATCH 64
#define TEMPERATURE "2"
#define EPOCHS 3   /* of the samples, at least */
#define STEPS 1500 /* where that many are cheap */
#define WORK 3e12  /* operations of a forward pass, all steps together: cheap */
#define EPOCHS_BETWEEN 20
#define FORWARDS 4 /* in a step, beside the dense model's */
#define TRIAL 0.05 /* of the steps: how long each rate is tried */
#define TRIALS_AT_LEAST 8
#define NOT_WORSE 1.5 /* times the least loss: in the end small steps take away what large ones add to it */
#define ENDS_AT 0.02  /* of the rate */

static const double rates[] = { 1e-2, 3e-3, 1e-3, 3e-4 }; /* from the largest on */

/* One way of learning: with what the dense model makes as targets, and with labels beside it. */
typedef struct {
    const Prune *q;
    HnAugment *augment;
    gboolean labels;
    int batch, parts; /* samples in a batch, and of how many runs it is made where the model fixes its first axis */
    int64_t rows;     /* of a batch: length of the first axis */
    HnSample *first;  /* a batch */
    GPtrArray *types; /* of it */
    GPtrArray *objectives;
    int *output;       /* by objective: output of the model; -1: labels */
    gboolean *softmax; /* by objective: what it compares is made by a softmax */
    HnUpdateRule *rule;
    HnDevice *device;
    HnSession *dense;
} Lesson;

static void lesson_clear(Lesson *s)
{
    hn_session_free(s->dense);
    hn_device_unref(s->device);
    hn_update_rule_free(s->rule);
    g_clear_pointer(&s->objectives, g_ptr_array_unref);
    g_clear_pointer(&s->types, g_ptr_array_unref);
    hn_sample_free(s->first);
    hn_augment_free(s->augment);
    g_free(s->output);
    g_free(s->softmax);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Lesson, lesson_clear)

/* --- what is compared --------------------------------------------------------------------------------------------- */

/* The last axis of v is what a softmax made. */
static gboolean is_softmax(const HnValue *v)
{
    const HnNode *n = v->producer;
    if (n == NULL || n->op == NULL || n->op->range.kind != HN_R_EXPONENTS || n->in->len != 1)
        return FALSE;
    const HnAttr *axis = hn_node_attr(n, "axis");
    return axis == NULL || axis->i == -1 || (hn_type_is_tensor(v->type) && axis->i == v->type->rank - 1);
}

/* A loss for each output of f32, in order, and one of labels. */
static gboolean find_objectives(Lesson *s, GError **error)
{
    const GPtrArray *outputs = s->q->dense->graph->outputs;
    g_autoptr(GString) text = g_string_new(NULL);
    guint n = 0;
    s->output = g_new0(int, outputs->len + 2u);
    s->softmax = g_new0(gboolean, outputs->len + 2u);
    for (guint i = 0; i < outputs->len; i++) {
        const HnValue *v = outputs->pdata[i];
        if (!hn_type_is_tensor(v->type) || v->type->dtype != HN_F32)
            continue;
        s->softmax[n] = is_softmax(v);
        s->output[n] = (int)i;
        g_string_append_printf(text, "%s%s", n > 0 ? "+" : "", s->softmax[n] ? "kl:temperature=" TEMPERATURE : "mse");
        n++;
    }
    if (n == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s': none of its outputs is one of f32 to learn from",
                    s->q->path);
        return FALSE;
    }
    s->output[n] = -1;
    if (s->labels)
        g_string_append(text, "+ce");
    if ((s->objectives = hn_objectives_parse(text->str, error)) == NULL)
        return FALSE;
    for (guint i = 0; i < n; i++) {
        HnObjective *o = s->objectives->pdata[i];
        o->value = g_strdup(((HnValue *)outputs->pdata[s->output[i]])->name);
    }
    return TRUE;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

/* Samples in a batch: one by one, where the model fixes how many rows its inputs have. */
static void size_batches(Lesson *s)
{
    const GPtrArray *inputs = s->q->dense->graph->inputs;
    gboolean fixed = FALSE;
    for (guint i = 0; i < inputs->len; i++) {
        const HnType *t = ((HnValue *)inputs->pdata[i])->type;
        fixed = fixed || (hn_type_is_tensor(t) && t->rank > 0 && t->dims[0].sym == NULL && t->dims[0].n > 0);
    }
    s->batch = (int)CLAMP(s->q->calib / 2, 1, BATCH);
    s->parts = fixed ? s->batch : 1;
}

static gboolean open_samples(Lesson *s, GError **error)
{
    const Prune *q = s->q;
    int64_t index[BATCH];
    size_batches(s);
    for (int i = 0; i < s->batch; i++)
        index[i] = i;
    s->first = hn_data_load_batch(q->lessons, index, s->batch, error);
    if (s->first == NULL || (s->types = hn_train_types(s->first, error)) == NULL)
        return FALSE;
    s->rows = s->first->n > 0 && s->first->in[0]->ndim > 0 ? s->first->in[0]->dims[0] : 0;
    if (q->p->augment == NULL)
        return TRUE;
    int n;
    HnValue *const *inputs = hn_data_inputs(q->lessons, &n);
    s->augment = hn_augment_parse(q->p->augment, error);
    return s->augment != NULL && hn_augment_check(s->augment, inputs, n, error);
}

/* Part k of what has a row for each of a batch, without a copy; other tensors as they are. */
static HnTensor *part_of(const Lesson *s, HnTensor *t, int k)
{
    int64_t dims[HN_MAX_RANK];
    if (s->parts == 1 || t->ndim == 0 || t->dims[0] != s->rows)
        return hn_tensor_ref(t);
    memcpy(dims, t->dims, (gsize)t->ndim * sizeof *dims);
    dims[0] /= s->parts;
    const gsize bytes = t->bytes / (gsize)s->parts;
    return hn_tensor_new_borrowed(t->dtype, t->ndim, dims, (char *)t->data + (gsize)k * bytes);
}

/* What a softmax read, but for a number that is the same in each row. */
static void take_logarithms(HnTensor *t)
{
    float *x = t->data;
    for (int64_t i = 0; i < t->n; i++)
        x[i] = logf(fmaxf(x[i], FLT_MIN));
}

static gboolean copy_part(const Lesson *s, HnTensor *to, const HnTensor *from, int k, GError **error)
{
    if (from->dtype == to->dtype && from->bytes * (gsize)s->parts == to->bytes) {
        memcpy((char *)to->data + (gsize)k * from->bytes, from->data, from->bytes);
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                "'%s': its outputs do not have a row for each sample, and cannot be learned from", s->q->path);
    return FALSE;
}

/* What the dense model makes of part k, into the targets. */
static gboolean ask(const Lesson *s, const HnSample *batch, int k, HnTensor **targets, GError **error)
{
    const int n_out = hn_session_n_outputs(s->dense);
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
                         out = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (int i = 0; i < batch->n; i++)
        g_ptr_array_add(in, part_of(s, batch->in[i], k));
    g_ptr_array_set_size(out, n_out);
    gboolean ok = hn_session_run(s->dense, (HnTensor *const *)in->pdata, (HnTensor **)out->pdata, error);
    for (guint i = 0; i < s->objectives->len && ok; i++)
        if (s->output[i] >= 0)
            ok = copy_part(s, targets[i], out->pdata[s->output[i]], k, error);
    return ok;
}

static GPtrArray *targets_of(const Lesson *s, const HnTrainer *t, const HnSample *batch, GError **error)
{
    g_autoptr(GPtrArray) targets = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint i = 0; i < s->objectives->len; i++) {
        int64_t dims[HN_MAX_RANK];
        HnType *type = hn_trainer_target(t, i);
        hn_type_is_fixed(type, dims);
        g_autoptr(HnType) compared = hn_trainer_compared(t, i);
        HnTensor *one = s->output[i] < 0 ? hn_target_given(s->objectives->pdata[i], s->q->lessons, batch, compared,
                                                           s->q->ctx->budget, error)
                                         : hn_tensor_new(type->dtype, type->rank, dims, s->q->ctx->budget, error);
        if (one == NULL)
            return NULL;
        g_ptr_array_add(targets, one);
    }
    for (int k = 0; k < s->parts; k++)
        if (!ask(s, batch, k, (HnTensor **)targets->pdata, error))
            return NULL;
    for (guint i = 0; i < s->objectives->len; i++)
        if (s->softmax[i] && s->output[i] >= 0)
            take_logarithms(targets->pdata[i]);
    return g_steal_pointer(&targets);
}

/* Squares of errors count as parts of what the first batch's outputs vary by. */
static gboolean weigh(Lesson *s, const HnTrainer *t, GError **error)
{
    g_autoptr(GPtrArray) targets = targets_of(s, t, s->first, error);
    for (guint i = 0; targets != NULL && i < s->objectives->len; i++) {
        HnObjective *o = s->objectives->pdata[i];
        HnTargetSums sums = { 0 };
        hn_target_sums_add(&sums, targets->pdata[i]);
        if (s->output[i] >= 0 && !s->softmax[i])
            o->weight = hn_target_sums_weight(&sums);
    }
    return targets != NULL;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* Weights that are 0 stay so: which of a variable's elements those are. */
typedef struct {
    HnTensor *weight; /* of the trainer */
    GArray *zeros;    /* int64_t */
} Mask;

static void mask_clear(gpointer mask)
{
    g_array_unref(((Mask *)mask)->zeros);
}

/* Of weights with several axes: a bias may be 0 by chance. */
static GArray *masks_of(const HnModel *m, const HnTrainer *t)
{
    GArray *masks = g_array_new(FALSE, FALSE, sizeof(Mask));
    g_array_set_clear_func(masks, mask_clear);
    for (guint i = 0; i < hn_trainer_n_states(t); i++) {
        const char *name;
        HnTensor *w = hn_trainer_state(t, i, &name);
        const HnValue *v = hn_graph_find(m->graph, name);
        if (v == NULL || v->weight == NULL || v->weight->n != w->n || w->ndim < 2 || w->dtype != HN_F32)
            continue;
        Mask mask = { w, g_array_new(FALSE, FALSE, sizeof(int64_t)) };
        for (int64_t e = 0; e < w->n; e++)
            if (((const float *)w->data)[e] == 0)
                g_array_append_val(mask.zeros, e);
        g_array_append_val(masks, mask);
    }
    return masks;
}

static gboolean keep_zeros(HnTrainer *t, const GArray *masks, GError **error)
{
    gboolean any = FALSE;
    for (guint i = 0; i < masks->len && !any; i++)
        any = g_array_index(masks, Mask, i).zeros->len > 0;
    if (!any)
        return TRUE;
    if (!hn_trainer_fetch(t, error))
        return FALSE;
    for (guint i = 0; i < masks->len; i++) {
        const Mask *m = &g_array_index(masks, Mask, i);
        for (guint k = 0; k < m->zeros->len; k++)
            ((float *)m->weight->data)[g_array_index(m->zeros, int64_t, k)] = 0;
    }
    hn_trainer_wrote(t, hn_trainer_steps(t));
    return TRUE;
}

static HnTrainer *trainer_new(const Lesson *s, const HnModel *m, GError **error)
{
    g_autofree HnTensor **fixed = hn_train_fixed((HnSample *const *)&s->first, 1);
    const HnTrainerOptions o = { .objectives = s->objectives,
                                 .rule = s->rule,
                                 .keep_statistics = TRUE,
                                 .in = (HnType *const *)s->types->pdata,
                                 .fixed = fixed,
                                 .micro = s->parts,
                                 .threads = s->q->ctx->common.threads,
                                 .seed = s->q->ctx->common.seed,
                                 .budget = s->q->ctx->budget };
    return hn_trainer_new(hn_model_copy(m), s->device, &o, error);
}

typedef struct {
    double lr;
    int64_t steps;
    gboolean constant; /* else a cosine */
    double loss;       /* out: mean of the second half; infinite where a step's was not finite */
    const char *what;
} Course;

static gboolean step(const Lesson *s, HnTrainer *t, HnBatches *batches, double lr, double *loss, GError **error)
{
    g_autoptr(HnSample) batch = hn_batches_next(batches, NULL, error);
    g_autoptr(GPtrArray) targets = batch != NULL ? targets_of(s, t, batch, error) : NULL;
    HnStepLoss made;
    if (targets == NULL || !hn_trainer_step(t, batch->in, (HnTensor *const *)targets->pdata, lr, &made, error))
        return FALSE;
    *loss = made.loss;
    return TRUE;
}

/* A trainer that has gone through the course; NULL: error. */
static HnTrainer *train(const Lesson *s, const HnModel *m, Course *c, GError **error)
{
    const HnLrSchedule schedule = { .curve = c->constant ? HN_LR_CONSTANT : HN_LR_COSINE,
                                    .warmup = c->steps / 20,
                                    .steps = c->steps,
                                    .last = ENDS_AT };
    const HnBatchesOptions bo = { .batch = s->batch,
                                  .shuffle = TRUE,
                                  .seed = s->q->ctx->common.seed,
                                  .augment = s->augment,
                                  .budget = s->q->ctx->budget };
    g_autoptr(HnBatches) batches = hn_batches_new(s->q->lessons, &bo, error);
    g_autoptr(HnTrainer) t = batches != NULL ? trainer_new(s, m, error) : NULL;
    g_autoptr(GArray) masks = t != NULL ? masks_of(m, t) : NULL;
    double sum = 0;
    for (int64_t i = 0; i < c->steps && t != NULL; i++) {
        double loss;
        hn_progress_tell(&s->q->ctx->progress, c->what, (guint64)i, (guint64)c->steps);
        if (hn_progress_stop(&s->q->ctx->progress, error) ||
            !step(s, t, batches, c->lr * hn_lr_factor(&schedule, i + 1), &loss, error) || !keep_zeros(t, masks, error))
            return NULL;
        sum += i >= c->steps / 2 ? loss : 0;
    }
    c->loss = isfinite(sum) ? sum / (double)MAX(c->steps - c->steps / 2, 1) : INFINITY;
    return g_steal_pointer(&t);
}

/* The largest rate whose loss after a few steps is not far from the least. */
static gboolean find_rate(const Lesson *s, const HnModel *m, int64_t steps, double *rate, GError **error)
{
    double loss[G_N_ELEMENTS(rates)], least = INFINITY;
    guint best = G_N_ELEMENTS(rates) - 1;
    for (guint i = 0; i < G_N_ELEMENTS(rates); i++) {
        Course c = { rates[i], MAX((int64_t)(TRIAL * (double)steps), TRIALS_AT_LEAST), TRUE, 0, "learning rates" };
        g_autoptr(HnTrainer) t = train(s, m, &c, error);
        if (t == NULL)
            return FALSE;
        hn_context_note(s->q->ctx, 1, "rate %g: loss %.4g", c.lr, c.loss);
        loss[i] = c.loss;
        least = fmin(least, c.loss);
    }
    for (guint i = best; i-- > 0;)
        best = loss[i] <= NOT_WORSE * least && isfinite(least) ? i : best;
    *rate = rates[best];
    return TRUE;
}

static gboolean open_lesson(Lesson *s, const HnModel *m, GError **error)
{
    const Prune *q = s->q;
    const HnSessionOptions o = { .threads = q->ctx->common.threads, .budget = q->ctx->budget };
    if (!open_samples(s, error) || !find_objectives(s, error) ||
        (s->rule = hn_update_rule_parse("adamw:weight_decay=0", error)) == NULL ||
        (s->device = hn_device_new(q->backend, error)) == NULL ||
        (s->dense = hn_session_new(q->dense, q->backend, &o, error)) == NULL)
        return FALSE;
    g_autoptr(HnTrainer) t = trainer_new(s, m, error);
    return t != NULL && weigh(s, t, error);
}

/* By how much work they are, or as is said: epochs of labels are of all samples, others of those that layers are fitted
 * to, so that they take no longer where there are many. */
static int64_t steps_of(const Lesson *s, int epochs)
{
    const int64_t epoch = MAX((s->labels ? hn_data_count(s->q->lessons) : s->q->calib) / s->batch, 1);
    const double one = (double)s->batch * (FORWARDS * s->q->flops_after + s->q->flops_before);
    return epochs > 0 ? epochs * epoch : MAX(EPOCHS * epoch, (int64_t)fmin(STEPS, WORK / fmax(one, 1)));
}

HnModel *prune_learn(const Prune *q, const HnModel *m, const char *what, int epochs, gboolean labels, GError **error)
{
    g_auto(Lesson) s = { .q = q, .labels = labels };
    if (!open_lesson(&s, m, error))
        return NULL;
    Course c = { .steps = steps_of(&s, epochs), .what = what };
    if (!find_rate(&s, m, c.steps, &c.lr, error))
        return NULL;
    g_autoptr(HnTrainer) t = train(&s, m, &c, error);
    g_autoptr(HnModel) learned = t != NULL ? hn_model_copy(m) : NULL;
    if (learned == NULL || !hn_trainer_store(t, learned, FALSE, error))
        return NULL;
    hn_context_note(q->ctx, 1, "%s: %" G_GINT64_FORMAT " steps at %g, loss %.4g", what, c.steps, c.lr, c.loss);
    return g_steal_pointer(&learned);
}

/* Is it better than what is there, on samples that are held out? */
static gboolean is_better(const HnScore *now, const HnScore *before, gboolean labels)
{
    const gboolean classes = !isnan(now->top1) && !isnan(before->top1);
    if (classes && now->top1 != before->top1)
        return now->top1 > before->top1 && (labels || now->sqnr > before->sqnr);
    return now->sqnr > before->sqnr;
}

gboolean prune_heal_between(gpointer data, HnModel **m, GError **error)
{
    const Prune *q = data;
    HnScore before, after;
    if (!q->heal)
        return TRUE;
    g_autoptr(HnModel) learned = prune_learn(q, *m, "heal between", EPOCHS_BETWEEN, FALSE, error);
    if (learned == NULL || !hn_scorer_run(q->scorer, *m, &before, error) ||
        !hn_scorer_run(q->scorer, learned, &after, error))
        return FALSE;
    if (is_better(&after, &before, FALSE)) {
        hn_model_free(*m);
        *m = g_steal_pointer(&learned);
    }
    return TRUE;
}

/* q->result becomes m, where that is better. */
static gboolean judge(Prune *q, const char *name, HnModel *m, gboolean labels, GError **error)
{
    g_autoptr(HnModel) taken = m;
    HnScore s;
    if (!hn_scorer_run(q->scorer, m, &s, error))
        return FALSE;
    const PruneRepair r = {
        .name = name, .kept = is_better(&s, &q->score, labels), .before = q->score.sqnr, .after = s.sqnr
    };
    g_array_append_val(q->repairs, r);
    if (!r.kept) /* what the report says of outputs is of the last run */
        return hn_scorer_run(q->scorer, q->result, &s, error);
    q->score = s;
    hn_model_free(q->result);
    q->result = g_steal_pointer(&taken);
    return TRUE;
}

static gboolean heal(Prune *q, const char *name, GError **error)
{
    HnModel *m = prune_learn(q, q->result, name, 0, FALSE, error);
    return m != NULL && judge(q, name, m, FALSE, error);
}

static gboolean finetune(Prune *q, const char *name, GError **error)
{
    HnModel *m = prune_learn(q, q->result, name, q->p->finetune, TRUE, error);
    return m != NULL && judge(q, name, m, TRUE, error);
}

static gboolean in_steps(Prune *q, const char *name, GError **error)
{
    HnModel *m = hn_prune_in_rounds(q->map, &q->o, q->pruned->kept, q->p->steps, error);
    return m != NULL && judge(q, name, m, FALSE, error);
}

gboolean prune_in_steps(Prune *q, GError **error)
{
    return q->p->steps < 2 || q->scorer == NULL || q->map->classes->len == 0 ||
           prune_in_time(q, "steps", in_steps, error);
}

gboolean prune_heal(Prune *q, GError **error)
{
    return q->scorer == NULL || ((!q->heal || prune_in_time(q, "heal", heal, error)) &&
                                 (q->p->finetune == 0 || prune_in_time(q, "finetune", finetune, error)));
}
