/* What hone-bench and hone-profile share where they train. */
#include "train_setup.h"

#include <string.h>

#include "base/text.h"
#include "train/micro.h"

#define MAX_SEGMENTS 100000 /* of --checkpoint */
#define FREE_PART 0.8       /* of the memory that is free, with --batch auto */

struct HnToolTraining {
    HnContext *ctx;
    const HnToolTrainParams *p;
    GPtrArray *objectives, *types; /* HnObjective *; HnType * of a batch */
    HnUpdateRule *rule;
    GPtrArray *sets;    /* HnSample * */
    GPtrArray *targets; /* HnTensor *: set by set, one for each objective; made with the first trainer */
    const HnData *data; /* that they come from */
    gboolean synthetic;
    int batch, parts; /* 0: not known */
    gsize limit;      /* of a step; 0: any */
};

gboolean hn_tool_parse_count(const char *option, const char *text, int *n, GError **error)
{
    gint64 count = 0;
    *n = g_strcmp0(text, "auto") == 0 ? HN_TOOL_AUTO : 0;
    if (text == NULL || *n == HN_TOOL_AUTO)
        return TRUE;
    if (!hn_parse_int(text, 1, G_MAXINT32, &count, error)) {
        g_prefix_error(error, "option '%s': ", option);
        return FALSE;
    }
    *n = (int)count;
    return TRUE;
}

/* segments: 0: as the limit asks, -1: none. */
static gboolean parse_checkpoint(const char *text, int *segments, GError **error)
{
    gint64 n = 0;
    *segments = strcmp(text, "none") == 0 ? -1 : 0;
    if (*segments < 0 || strcmp(text, "auto") == 0)
        return TRUE;
    if (!hn_parse_int(text, 1, MAX_SEGMENTS, &n, error)) {
        g_prefix_error(error, "option '--checkpoint': ");
        return FALSE;
    }
    *segments = (int)n;
    return TRUE;
}

gboolean hn_tool_train_check(const HnToolTrainParams *p, GError **error)
{
    const gboolean texts = p->loss || p->optimizer || p->freeze || p->checkpoint;
    const gboolean numbers = p->freeze_bn || p->batch || p->micro_batches;
    int segments, n;
    if (!p->train && (texts || numbers))
        return hn_tool_usage(error, "options '--loss', '--optimizer', '--batch', '--micro-batches', '--freeze', "
                                    "'--freeze-bn' and '--checkpoint' need '--train'");
    if (p->checkpoint && !parse_checkpoint(p->checkpoint, &segments, error))
        return FALSE;
    if (!hn_tool_parse_count("--batch", p->batch, &n, error) ||
        !hn_tool_parse_count("--micro-batches", p->micro_batches, &n, error))
        return FALSE;
    return n != HN_TOOL_AUTO || !hn_tool_train_any_batch(p) ||
           hn_tool_usage(error,
                         "of '--batch' and '--micro-batches' one can be 'auto': in small enough parts any batch fits");
}

gint64 hn_tool_largest_batch(const HnContext *ctx, gint64 parts, const gint64 *most, HnToolFitsFn fits, gpointer data,
                             GError **error)
{
    gint64 good = 0, bad = 0; /* of each part */
    for (gint64 n = 1; n > good && n != bad && !hn_progress_stop(&ctx->progress, error);) {
        GError *cause = NULL;
        if (fits(data, n * parts, &cause))
            good = n;
        else
            bad = n;
        if (cause) {
            g_propagate_error(error, cause);
            return 0;
        }
        if (bad > 0 && (bad - good) * 4 <= bad)
            break;
        n = bad > 0 ? good + (bad - good) / 2 : MIN(2 * good, *most / parts);
    }
    return good * parts;
}

void hn_tool_no_batch(gint64 parts, const GError *why, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "not even a step of one sample%s fits the memory limit%s%s",
                parts > 1 ? " in each micro-batch" : "", why ? ": " : "", why ? why->message : "");
}

gsize hn_tool_step_limit(const HnContext *ctx)
{
    const guint64 limit = ctx->common.mem_limit;
    return limit > 0 ? limit : (gsize)((double)hn_mem_available() * FREE_PART);
}

gboolean hn_tool_train_any_batch(const HnToolTrainParams *p)
{
    return g_strcmp0(p->batch, "auto") == 0;
}

void hn_tool_training_set_batch(HnToolTraining *t, int batch, gsize limit)
{
    t->batch = batch;
    t->limit = limit;
}

void hn_tool_training_free(HnToolTraining *t)
{
    if (!t)
        return;
    g_ptr_array_unref(t->targets);
    g_ptr_array_unref(t->sets);
    g_clear_pointer(&t->objectives, g_ptr_array_unref);
    g_clear_pointer(&t->types, g_ptr_array_unref);
    hn_update_rule_free(t->rule);
    g_free(t);
}

const char *hn_tool_training_loss(const HnToolTraining *t)
{
    return t->p->loss ? t->p->loss : "ce";
}

const char *hn_tool_training_optimizer(const HnToolTraining *t)
{
    return t->p->optimizer ? t->p->optimizer : "adamw";
}

HnToolTraining *hn_tool_training_new(HnContext *ctx, const HnToolTrainParams *p, GError **error)
{
    HnToolTraining *t = g_new0(HnToolTraining, 1);
    *t = (HnToolTraining){ .ctx = ctx,
                           .p = p,
                           .sets = g_ptr_array_new_with_free_func((GDestroyNotify)hn_sample_free),
                           .targets = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
                           .limit = ctx->common.mem_limit };
    if (hn_tool_parse_count("--batch", p->batch, &t->batch, error) &&
        (t->objectives = hn_objectives_parse(hn_tool_training_loss(t), error)) != NULL &&
        (t->rule = hn_update_rule_parse(hn_tool_training_optimizer(t), error)) != NULL)
        return t;
    hn_tool_training_free(t);
    return NULL;
}

guint hn_tool_training_sets(const HnToolTraining *t)
{
    return t->sets->len;
}

HnSample *hn_tool_training_set(const HnToolTraining *t, guint k)
{
    return t->sets->pdata[k];
}

gboolean hn_tool_training_synthetic(const HnToolTraining *t)
{
    return t->synthetic;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

/* The first dimension of the first input is the batch, where the model leaves it open. */
static void set_batch(const HnToolTraining *t, const GPtrArray *inputs, HnShapes *shapes)
{
    const HnType *type = inputs->len > 0 ? ((HnValue *)inputs->pdata[0])->type : NULL;
    if (t->batch > 0 && hn_type_is_tensor(type) && type->rank > 0 && type->dims[0].sym != NULL)
        hn_shapes_set_dim(shapes, type->dims[0].sym, t->batch);
}

static gboolean load_batches(HnToolTraining *t, const HnData *data, guint most, GError **error)
{
    const gint64 samples = hn_data_count(data);
    const int batch = t->batch > 0 && !hn_data_synthetic(data) ? t->batch : 1;
    g_autofree int64_t *index = g_new(int64_t, batch);
    if (samples < batch) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' has %" G_GINT64_FORMAT " samples, fewer than a batch of %d",
                    hn_data_source(data), samples, batch);
        return FALSE;
    }
    for (gint64 at = 0; at + batch <= samples && t->sets->len < most; at += batch) {
        for (int i = 0; i < batch; i++)
            index[i] = at + i;
        HnSample *set = hn_data_load_batch(data, index, batch, error);
        if (!set)
            return FALSE;
        g_ptr_array_add(t->sets, set);
        if (!hn_tool_same_shapes(t->sets->pdata[0], set)) {
            g_set_error_literal(error, HN_ERROR, HN_ERROR_SHAPE, "batches to train with are all of one shape");
            return FALSE;
        }
    }
    return TRUE;
}

gboolean hn_tool_training_open(HnToolTraining *t, const HnModel *m, const HnToolDataParams *from, const char *path,
                               const char *source, HnShapes *shapes, guint most, HnData **data, const char ***names,
                               GError **error)
{
    g_autoptr(GPtrArray) inputs = hn_train_inputs(m);
    const HnDataOptions o = {
        .budget = t->ctx->budget, .seed = t->ctx->common.seed, .shapes = shapes, .rows = TRUE, .drop_rest = TRUE
    };
    *names = g_new0(const char *, inputs->len + 1);
    for (guint i = 0; i < inputs->len; i++)
        (*names)[i] = ((HnValue *)inputs->pdata[i])->name;
    set_batch(t, inputs, shapes);
    *data = hn_tool_open_data(t->ctx, from, path, source ? source : "random", (HnValue *const *)inputs->pdata,
                              (int)inputs->len, &o, error);
    t->data = *data;
    return *data && load_batches(t, *data, most, error) && (t->types = hn_train_types(t->sets->pdata[0], error));
}

/* Labels of the data, or made-up ones of random data and of losses that want another model's results. */
static gboolean make_targets(HnToolTraining *t, const HnTrainer *trainer, GError **error)
{
    HnBudget *budget = t->ctx->budget;
    for (guint k = 0; k < t->sets->len && t->targets->len < t->sets->len * t->objectives->len; k++)
        for (guint i = 0; i < t->objectives->len; i++) {
            const gint64 classes = hn_trainer_classes(trainer, i);
            const HnSample *set = t->sets->pdata[k];
            const gboolean made_up = !set->label || (classes == 0 && hn_dtype_in(set->label->dtype, HN_T_INTS));
            g_autoptr(HnType) compared = hn_trainer_compared(trainer, i);
            HnTensor *target = made_up
                                   ? hn_train_random_target(hn_trainer_target(trainer, i), classes,
                                                            t->ctx->common.seed + k, budget, error)
                                   : hn_target_given(t->objectives->pdata[i], t->data, set, compared, budget, error);
            if (!target)
                return FALSE;
            t->synthetic = t->synthetic || made_up;
            g_ptr_array_add(t->targets, target);
        }
    return TRUE;
}

/* --- trainers ----------------------------------------------------------------------------------------------------- */

typedef struct {
    HnToolTraining *t;
    HnToolReadFn read;
    gpointer data;
    const HnBackend *backend;
    int threads;
    HnDtype half;
} Making;

/* HnMicroOptions.make */
static HnTrainer *make_trainer(int parts, gpointer data, GError **error)
{
    const Making *m = data;
    HnToolTraining *t = m->t;
    g_autofree HnTensor **fixed = hn_train_fixed((HnSample *const *)t->sets->pdata, t->sets->len);
    g_autoptr(HnDevice) device = hn_device_new(m->backend, error);
    int segments = 0;
    if (!device || (t->p->checkpoint && !parse_checkpoint(t->p->checkpoint, &segments, error)))
        return NULL;
    HnModel *work = m->read(m->data, error);
    if (!work)
        return NULL;
    const HnTrainerOptions o = { .objectives = t->objectives,
                                 .labels = ((const HnSample *)t->sets->pdata[0])->label,
                                 .rule = t->rule,
                                 .trainable = { t->p->freeze, NULL },
                                 .keep_statistics = t->p->freeze_bn,
                                 .in = (HnType *const *)t->types->pdata,
                                 .fixed = fixed,
                                 .micro = parts,
                                 .threads = m->threads,
                                 .half = m->half,
                                 .seed = t->ctx->common.seed,
                                 .budget = t->ctx->budget,
                                 .checkpoint = segments >= 0,
                                 .segments = MAX(segments, 0),
                                 .limit = t->limit };
    return hn_trainer_new(work, device, &o, error);
}

/* HnMicroOptions.apart: losses that compare values inside the model are not looked at. */
static gboolean are_apart(gpointer data)
{
    const Making *m = data;
    const HnSample *set = m->t->sets->pdata[0];
    for (guint i = 0; i < m->t->objectives->len; i++)
        if (((const HnObjective *)m->t->objectives->pdata[i])->value != NULL)
            return FALSE;
    HnModel *work = m->read(m->data, NULL);
    return work != NULL && hn_micro_apart(work, m->backend, set->in);
}

static int64_t samples_of(const HnToolTraining *t)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *type = t->types->len > 0 ? t->types->pdata[0] : NULL;
    return type != NULL && type->rank > 0 && hn_type_is_fixed(type, dims) ? dims[0] : 0;
}

HnTrainer *hn_tool_trainer_new(HnToolTraining *t, HnToolReadFn read, gpointer data, const HnBackend *backend,
                               int threads, HnDtype half, GError **error)
{
    Making m = { t, read, data, backend, threads, half };
    int asked = 0;
    if (t->parts == 0 && !hn_tool_parse_count("--micro-batches", t->p->micro_batches, &asked, error))
        return NULL;
    const HnMicroOptions o = { .batch = samples_of(t),
                               .fit = asked == HN_TOOL_AUTO && t->limit > 0,
                               .make = make_trainer,
                               .apart = are_apart,
                               .data = &m,
                               .whole = backend->memory != NULL };
    if (asked == 0 && hn_tool_train_any_batch(t->p)) /* in small enough parts any batch fits */
        asked = 1;
    t->parts = asked > 0 ? asked : t->parts;
    g_autoptr(HnTrainer) trainer =
        t->parts > 0 ? make_trainer(t->parts, &m, error) : hn_micro_trainer(&o, &t->parts, error);
    return trainer && make_targets(t, trainer, error) ? g_steal_pointer(&trainer) : NULL;
}

int hn_tool_training_parts(const HnToolTraining *t)
{
    return MAX(t->parts, 1);
}

gboolean hn_tool_train(const HnToolTraining *t, HnTrainer *trainer, guint64 i, double *loss, GError **error)
{
    const guint k = (guint)(i % t->sets->len);
    HnStepLoss made;
    const HnSample *set = t->sets->pdata[k];
    HnTensor *const *targets = (HnTensor *const *)t->targets->pdata + k * t->objectives->len;
    if (!hn_trainer_step(trainer, set->in, targets, t->rule->lr, &made, error))
        return FALSE;
    *loss = made.loss;
    return TRUE;
}
