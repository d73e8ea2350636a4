/* hone-distill: the student, data, the teacher, and what trains. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "check/recipe.h"
#include "data/distinct.h"
#include "hone_distill.h"
#include "train/init.h"
#include "train/init_batch.h"
#include "train/micro.h"
#include "train/train_data.h"

#define SLACK 1.02       /* of memory that is counted: the rest is small */
#define ON_GRID 0.3      /* times the usual rate: weights and scales that move a little move integers */
#define FEW_SAMPLES 300  /* of which batches' moments say little */
#define SMALL_BATCH 8    /* the same */
#define LEAST_SPLIT 20   /* samples: fewer are not split */
#define MOST_JUDGED 1024 /* samples that were trained with, to judge by where there are no others */

/* --- the student -------------------------------------------------------------------------------------------------- */

static HnModel *read_bytes(const Distill *q, GBytes *bytes, GError **error)
{
    const HnOnnxOptions o = { .budget = q->ctx->budget, .verify_data = q->ctx->common.verify_data };
    return hn_onnx_read_bytes(bytes, q->folder, &o, error);
}

static HnTrainableOptions trainable(const Distill *q)
{
    return (HnTrainableOptions){ q->p->freeze, q->p->train };
}

HnModel *distill_student(const Distill *q, GError **error)
{
    return read_bytes(q, q->start != NULL ? q->start : q->file, error);
}

/* Or of the teacher, where it is made of that. */
static const char *path_of_student(const Distill *q)
{
    return q->auto_part > 0 ? q->p->teacher : q->p->student;
}

static gboolean open_student(Distill *q, GError **error)
{
    const char *path = path_of_student(q);
    if (strcmp(path, "-") == 0 && !hn_context_take_stdin(q->ctx, "the student", error))
        return FALSE;
    q->file = hn_file_bytes(path, q->ctx->budget, error);
    q->folder = g_path_get_dirname(path);
    if (q->file == NULL)
        return FALSE;
    if ((q->plain = distill_student(q, error)) == NULL) {
        g_prefix_error(error, "'%s': ", path);
        return FALSE;
    }
    hn_tool_warn_speed_only(q->ctx, path, q->plain);
    if (!hn_tool_has_outputs(q->plain, path, error))
        return FALSE;
    q->inputs = hn_train_inputs(q->plain);
    return TRUE;
}

/* --- data --------------------------------------------------------------------------------------------------------- */

static HnData *open_source(const Distill *q, const char *source, GError **error)
{
    const HnDataOptions o = { .budget = q->ctx->budget, .seed = q->ctx->common.seed, .rows = TRUE, .drop_rest = TRUE };
    if (strcmp(source, "-") == 0 && !hn_context_take_stdin(q->ctx, "the samples", error))
        return NULL;
    g_autoptr(HnData) d = hn_tool_open_fed_data(q->ctx, q->plain, q->p->input, &q->p->from, path_of_student(q), source,
                                                (HnValue *const *)q->inputs->pdata, (int)q->inputs->len, &o, error);
    if (d == NULL)
        return NULL;
    if (hn_data_count(d) == 0 || hn_data_count(d) > G_MAXUINT32) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' holds no samples, or too many", source);
        return NULL;
    }
    if (hn_data_synthetic(d)) {
        hn_tool_usage(error, "made-up samples are nothing to learn from");
        return NULL;
    }
    return g_steal_pointer(&d);
}

/* The first n of an order that follows from the seed, or those behind them. */
static HnData *some_of(const Distill *q, int64_t first, int64_t n)
{
    const int64_t all = hn_data_count(q->all);
    g_autofree uint32_t *order = g_new(uint32_t, (gsize)all);
    g_autofree int64_t *index = g_new(int64_t, (gsize)n + 1);
    HnRng rng = hn_rng(q->ctx->common.seed);
    for (int64_t i = 0; i < all; i++)
        order[i] = (uint32_t)i;
    hn_rng_shuffle(&rng, order, (uint32_t)all);
    for (int64_t i = 0; i < n; i++)
        index[i] = order[first + i];
    return hn_data_some(q->all, index, n);
}

/* Whoever is judged by what it learned from looks better than it is. */
static gboolean leave_out_copies(Distill *q, GError **error)
{
    if (q->val == NULL)
        return TRUE;
    HnData *others = hn_data_unlike(q->val, q->data, error);
    if (others == NULL)
        return FALSE;
    const int64_t of = hn_data_count(q->val), n = of - hn_data_count(others);
    if (n == 0) {
        hn_data_free(others);
        return TRUE;
    }
    hn_context_warn(q->ctx, "of %" PRId64 " samples to judge by %" PRId64 " are among those that are learned from, %s",
                    of, n, n < of ? "and are left out" : "which leaves none");
    q->val_all = q->val;
    q->val = others;
    if (n == of)
        g_clear_pointer(&q->val, hn_data_free);
    return TRUE;
}

static void choose_judged(Distill *q)
{
    const int64_t n = hn_data_count(q->data);
    g_autofree int64_t *first = g_new(int64_t, MOST_JUDGED);
    for (int64_t i = 0; i < MIN(n, MOST_JUDGED); i++)
        first[i] = i;
    q->judged = q->val != NULL ? q->val : hn_data_some(q->data, first, MIN(n, MOST_JUDGED));
    if (q->val == NULL)
        hn_context_warn(q->ctx, "no samples are held out: the student is judged by those that it learns from");
}

static gboolean split(Distill *q, GError **error)
{
    const int64_t all = hn_data_count(q->all);
    int64_t held = 0;
    if (q->p->val != NULL && (q->val = open_source(q, q->p->val, error)) == NULL)
        return FALSE;
    if (q->val == NULL && all >= LEAST_SPLIT && q->p->val_part > 0)
        held = MAX((int64_t)((double)all * q->p->val_part), 1);
    if (held > 0)
        q->val = some_of(q, 0, held);
    q->data = some_of(q, held, all - held);
    if (!leave_out_copies(q, error))
        return FALSE;
    choose_judged(q);
    return TRUE;
}

/* --- new weights -------------------------------------------------------------------------------------------------- */

/* They are made in a copy, which is bound; the file's own graph gets them by name. */
static gboolean draw_weights(const Distill *q, HnModel *m, GError **error)
{
    const HnTrainableOptions o = trainable(q);
    g_autoptr(HnModel) work = distill_student(q, error);
    if (work == NULL || !hn_init_weights(work, &o, q->init_seed, error))
        return FALSE;
    g_autoptr(GArray) all = hn_trainable_list(work, &o, error);
    for (guint i = 0; all != NULL && i < all->len; i++) {
        const HnTrainableWeight *w = &g_array_index(all, HnTrainableWeight, i);
        if (w->why != HN_WHY_TYPE && !hn_trainer_put(m, w->v->name, hn_trainable_elements(w->v), error))
            return FALSE;
    }
    return all != NULL;
}

static gboolean settle_weights(const Distill *q, HnModel *m, GError **error)
{
    const HnInitBatch o = { .backend = q->backend,
                            .threads = q->ctx->common.threads,
                            .budget = q->ctx->budget,
                            .trainable = trainable(q),
                            .in = q->sample->in };
    HnModel *work = distill_student(q, error);
    return work != NULL && hn_init_by_batch(m, work, &o, error);
}

static gboolean keep_start(Distill *q, const HnModel *m, GError **error)
{
    g_clear_pointer(&q->start, g_bytes_unref);
    q->start = hn_onnx_write_bytes(m, q->ctx->budget, error);
    return q->start != NULL;
}

static gboolean init_student(Distill *q, GError **error)
{
    if (!q->init)
        return TRUE;
    g_autoptr(HnModel) m = distill_student(q, error);
    return m != NULL && draw_weights(q, m, error) && keep_start(q, m, error) && settle_weights(q, m, error) &&
           keep_start(q, m, error);
}

/* --- the teacher -------------------------------------------------------------------------------------------------- */

HnForwardOptions distill_forward(const Distill *q)
{
    return (HnForwardOptions){
        .backend = q->backend, .threads = q->ctx->common.threads, .budget = q->ctx->budget, .inputs = q->inputs
    };
}

static gboolean read_teacher_file(Distill *q, GError **error)
{
    const char *path = q->p->teacher;
    if (path == NULL)
        return TRUE;
    if (strcmp(path, "-") == 0 && !hn_context_take_stdin(q->ctx, "the teacher", error))
        return FALSE;
    q->teacher_file = hn_file_bytes(path, q->ctx->budget, error);
    q->teacher_folder = g_path_get_dirname(path);
    HnModel *m = NULL;
    if (q->teacher_file == NULL || !distill_read_teacher(q, &m, error))
        return FALSE;
    hn_tool_warn_speed_only(q->ctx, path, m);
    const gboolean ok = hn_tool_has_outputs(m, path, error);
    hn_model_free(m);
    return ok;
}

gboolean distill_read_teacher(const Distill *q, HnModel **m, GError **error)
{
    *m = NULL;
    if (q->p->teacher == NULL)
        return TRUE;
    const HnOnnxOptions o = { .budget = q->ctx->budget, .verify_data = q->ctx->common.verify_data };
    *m = hn_onnx_read_bytes(q->teacher_file, q->teacher_folder, &o, error);
    if (*m == NULL)
        g_prefix_error(error, "'%s': ", q->p->teacher);
    return *m != NULL;
}

static gboolean open_teacher(Distill *q, GError **error)
{
    HnForwardOptions o = distill_forward(q);
    q->targets = (HnTargets){ .objectives = q->objectives, .budget = q->ctx->budget };
    q->judged_by = g_ptr_array_new();
    for (guint i = 0; i < q->n_judged; i++)
        g_ptr_array_add(q->judged_by, q->objectives->pdata[i]);
    q->judge_targets = (HnTargets){ .objectives = q->judged_by, .budget = q->ctx->budget };
    if (q->p->teacher == NULL)
        return TRUE;
    HnModel *m;
    if (!distill_read_teacher(q, &m, error))
        return FALSE;
    o.like = q->plain->graph;
    if ((q->teacher = hn_forward_new(m, q->objectives, &o, error)) == NULL) {
        g_prefix_error(error, "'%s': ", q->p->teacher);
        return FALSE;
    }
    q->targets.teacher = q->judge_targets.teacher = q->teacher;
    return TRUE;
}

/* --- the trainer -------------------------------------------------------------------------------------------------- */

/* Of distill_trainer(). */
typedef struct {
    Distill *q;
    HnDevice *device;
    gboolean keep_statistics;
} Making;

/* With what there is of a trainer by now, all that is to come beside it still fits: it holds more than a step takes. */
static gboolean leaves_room(const Distill *q, gsize needed, GError **error)
{
    const guint64 limit = q->ctx->common.mem_limit;
    needed = (gsize)(SLACK * (double)needed);
    if (limit == 0 || q->backend->memory != NULL || needed <= limit)
        return TRUE;
    g_autofree char *all = hn_text_size(needed), *most = hn_text_size(limit);
    g_set_error(error, HN_ERROR, HN_ERROR_BUDGET,
                "a step and what is kept beside it need %s of memory, more than the limit of %s", all, most);
    return FALSE;
}

/* HnMicroOptions.make */
static HnTrainer *make_trainer(int parts, gpointer data, GError **error)
{
    const Making *k = data;
    const Distill *q = k->q;
    gsize taken;
    if (!distill_taken(q, parts, &taken, error))
        return NULL;
    const gsize before = hn_budget_used(q->ctx->budget);
    g_autoptr(GPtrArray) types = hn_train_types(q->sample, error);
    HnModel *work = types != NULL ? distill_student(q, error) : NULL;
    if (work == NULL)
        return NULL;
    if (!distill_add_maps(q, work, error)) {
        hn_model_free(work);
        return NULL;
    }
    const HnTrainerOptions o = { .objectives = q->objectives,
                                 .rule = q->rule,
                                 .trainable = trainable(q),
                                 .keep_statistics = k->keep_statistics,
                                 .straight = q->p->straight,
                                 .in = (HnType *const *)types->pdata,
                                 .micro = parts,
                                 .threads = q->ctx->common.threads,
                                 .half = q->half,
                                 .seed = q->ctx->common.seed,
                                 .budget = q->ctx->budget,
                                 .checkpoint = TRUE,
                                 .limit = q->step_limit > 0 ? q->step_limit : q->ctx->common.mem_limit,
                                 .taken = taken };
    HnTrainer *t = hn_trainer_new(work, k->device, &o, error);
    if (t == NULL || leaves_room(q, taken + hn_budget_used(q->ctx->budget) - before, error))
        return t;
    hn_trainer_free(t);
    return NULL;
}

/* HnMicroOptions.apart: of what losses look at inside the model, pairs alone are looked at. */
static gboolean are_apart(gpointer data)
{
    const Distill *q = ((const Making *)data)->q;
    for (guint i = 0; i < q->n_judged; i++) {
        const char *name = ((const HnObjective *)q->objectives->pdata[i])->value;
        const HnValue *v = name != NULL ? hn_graph_find(q->plain->graph, name) : NULL;
        if (name != NULL && (v == NULL || !v->is_output))
            return FALSE;
    }
    HnModel *work = distill_student(q, NULL);
    if (work != NULL)
        distill_show_pairs(q, work);
    return work != NULL && hn_micro_apart(work, q->backend, q->sample->in);
}

HnTrainer *distill_trainer(Distill *q, HnDevice *device, gboolean keep_statistics, GError **error)
{
    Making k = { q, device, keep_statistics };
    const HnMicroOptions o = { .batch = q->sample->count,
                               .fit = q->parts_asked == HN_TOOL_AUTO && q->ctx->common.mem_limit > 0,
                               .make = make_trainer,
                               .apart = are_apart,
                               .data = &k,
                               .whole = q->backend->memory != NULL };
    if (q->parts_asked > 0 || q->any_batch) /* in small enough parts any batch fits */
        q->parts = MAX(q->parts_asked, 1);
    return q->parts > 0 ? make_trainer(q->parts, &k, error) : hn_micro_trainer(&o, &q->parts, error);
}

static void note_forecast(const Distill *q)
{
    HnForecast f;
    hn_trainer_forecast(q->trainer, &f);
    g_autofree char *needed = hn_text_size(f.needed), *plain = hn_text_size(f.plain);
    if (f.nodes > 0)
        hn_context_note(q->ctx, 1, "a step takes %s instead of %s: %u nodes are computed twice", needed, plain,
                        f.nodes);
    else
        hn_context_note(q->ctx, 1, "a step takes %s", plain);
}

const char *distill_why_keep(const Distill *q)
{
    if (q->p->freeze_bn)
        return "as '--freeze-bn' says";
    if (q->p->train_bn || q->init)
        return NULL;
    if (hn_data_count(q->data) < FEW_SAMPLES)
        return "since there are less than 300 samples";
    return q->sample->count / MAX(q->parts, 1) < SMALL_BATCH ? "since a micro-batch has less than 8 samples" : NULL;
}

GPtrArray *distill_compared(const Distill *q, const HnTrainer *t)
{
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < q->objectives->len; i++)
        g_ptr_array_add(all, hn_trainer_compared(t, i));
    return all;
}

static gboolean open_trainer(Distill *q, GError **error)
{
    q->parts = 0;
    if (!distill_find_batch(q, error) || (q->device = hn_device_new(q->backend, error)) == NULL ||
        (q->trainer = distill_trainer(q, q->device, FALSE, error)) == NULL)
        return FALSE;
    distill_keep_parts(q);
    const char *why = distill_why_keep(q);
    if (why != NULL && hn_trainer_statistics(q->trainer) > 0) {
        q->keep_statistics = TRUE;
        q->kept_why = why;
        hn_trainer_free(q->trainer);
        if ((q->trainer = distill_trainer(q, q->device, TRUE, error)) == NULL)
            return FALSE;
        if (!q->p->freeze_bn)
            hn_context_warn(q->ctx, "normalizations keep their means and variances, %s; see '--train-bn'", why);
    }
    if (q->backend->memory != NULL)
        hn_tool_note_refs(q->ctx, hn_trainer_session(q->trainer), q->backend);
    if (hn_trainer_in_place(q->trainer) && q->p->lr == NULL && isnan(hn_terms_get(q->rule->terms, "lr")))
        q->rule->lr *= ON_GRID;
    note_forecast(q);
    q->compared = distill_compared(q, q->trainer);
    HnType *const *compared = (HnType *const *)q->compared->pdata;
    return hn_targets_check(&q->targets, q->data, compared, error) &&
           (q->judged == NULL || hn_targets_check(&q->targets, q->judged, compared, error));
}

static HnJudgeOptions judge_options(const Distill *q)
{
    return (HnJudgeOptions){ .data = q->judged,
                             .targets = &q->judge_targets,
                             .forward = distill_forward(q),
                             .batch = distill_at_once(q, q->parts, q->judged),
                             .blind = q->p->no_labels,
                             .progress = &q->ctx->progress };
}

static gboolean take_hashes(Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    HnBudget *budget = q->ctx->budget;
    const char *student = path_of_student(q);
    const HnData *val = q->val_all != NULL ? q->val_all : q->val;
    GBytes *from_stdin = strcmp(student, "-") == 0 ? q->file : NULL;
    return (q->student_hash = hn_recipe_hash_model(student, from_stdin, budget, error)) != NULL &&
           (p->teacher == NULL ||
            (q->teacher_hash = hn_recipe_hash_model(p->teacher, strcmp(p->teacher, "-") == 0 ? q->teacher_file : NULL,
                                                    budget, error)) != NULL) &&
           (q->data_hash = hn_recipe_hash_data(q->all, hn_data_count(q->all), error)) != NULL &&
           (p->val == NULL || (q->val_hash = hn_recipe_hash_data(val, hn_data_count(val), error)) != NULL);
}

/* Why: where files say how many samples they take, one such sample at a time is what they surely take. */
static void say_batch(const Distill *q, GError **error)
{
    const HnValue *v = q->sample != NULL && q->inputs->len > 0 ? q->inputs->pdata[0] : NULL;
    const HnTensor *t = v != NULL ? q->sample->in[0] : NULL;
    if (t == NULL || t->ndim < 1 || hn_type_rank(v->type) < 1)
        return;
    if (!v->type->dims[0].known || v->type->dims[0].n == t->dims[0])
        return;
    if (g_error_matches(*error, HN_ERROR, HN_ERROR_BUDGET) || g_error_matches(*error, HN_ERROR, HN_ERROR_INTERRUPTED))
        return;
    g_prefix_error(error,
                   "input '%s' is declared with a first axis of %" PRId64 ", and a batch has %" PRId64
                   ", which '--batch 1' avoids: ",
                   v->name, v->type->dims[0].n, t->dims[0]);
}

static gboolean open_student_and_data(Distill *q, GError **error)
{
    if (!open_student(q, error))
        return FALSE;
    if (q->p->list_trainable)
        return TRUE;
    if (!read_teacher_file(q, error) || (q->all = open_source(q, q->p->data, error)) == NULL || !split(q, error) ||
        !distill_open_batches(q, error))
        return FALSE;
    return take_hashes(q, error) && distill_check_recipe(q, error);
}

static gboolean open_what_learns(Distill *q, GError **error)
{
    if (!distill_make_students(q, error) || (q->derived == NULL && !init_student(q, error)) ||
        !distill_choose_losses(q, error) || !distill_open_pairs(q, error) || !open_teacher(q, error))
        return FALSE;
    const gboolean chosen = q->derived == NULL || q->timing;
    if ((chosen && !open_trainer(q, error)) || !distill_open_cache(q, error))
        return FALSE;
    const HnJudgeOptions o = judge_options(q);
    q->judge = hn_judge_new(&o);
    return chosen || (distill_choose_student(q, error) && init_student(q, error) && open_trainer(q, error));
}

gboolean distill_open(Distill *q, GError **error)
{
    if (!open_student_and_data(q, error))
        return FALSE;
    if (q->p->list_trainable || open_what_learns(q, error))
        return TRUE;
    if (error != NULL)
        say_batch(q, error);
    return FALSE;
}

void distill_clear(Distill *q)
{
    if (q->log != NULL)
        fclose(q->log);
    hn_fit_free(q->fit);
    hn_judge_free(q->judge);
    hn_batches_free(q->batches);
    hn_trainer_free(q->trainer);
    hn_device_unref(q->device);
    hn_teacher_cache_free(q->cache);
    hn_forward_free(q->teacher);
    hn_sample_free(q->sample);
    if (q->judged != q->val)
        hn_data_free(q->judged);
    hn_data_free(q->val);
    hn_data_free(q->val_all);
    hn_data_free(q->data);
    hn_data_free(q->all);
    g_clear_pointer(&q->compared, g_ptr_array_unref);
    g_clear_pointer(&q->inputs, g_ptr_array_unref);
    g_clear_pointer(&q->judged_by, g_ptr_array_unref);
    g_clear_pointer(&q->objectives, g_ptr_array_unref);
    g_clear_pointer(&q->pairs, g_array_unref);
    hn_model_free(q->plain);
    distill_auto_free(q->derived);
    distill_tune_free(q->tune);
    g_clear_pointer(&q->start, g_bytes_unref);
    g_clear_pointer(&q->file, g_bytes_unref);
    g_clear_pointer(&q->teacher_file, g_bytes_unref);
    g_free(q->teacher_folder);
    hn_update_rule_free(q->rule);
    hn_augment_free(q->augment);
    g_free(q->folder);
    g_free(q->student_hash);
    g_free(q->data_hash);
    g_free(q->val_hash);
    g_free(q->teacher_hash);
    g_free(q->recipe_hash);
    g_free(q->made);
    g_free(q->narrower);
    g_free(q->batch_text);
    g_free(q->parts_text);
    distill_clear_replayed(q);
}
