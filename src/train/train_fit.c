#include "train/train_fit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "train/checkpoint.h"

#define STATE "state" /* kinds of tensors in a checkpoint */
#define BEST "best"
#define MADE "made" /* in what a checkpoint is about */

typedef struct {
    char *name;
    HnTensor *tensor;
} Kept;

struct HnFit {
    HnFitOptions o;
    GArray *epochs; /* HnEpoch */
    GArray *kept;   /* Kept, of the best epoch */
    int64_t best;   /* that epoch; 0: none yet */
    double loss;    /* sum over steps of the epoch that is under way */
    int64_t losses; /* as many */
};

static void kept_clear(gpointer kept)
{
    g_free(((Kept *)kept)->name);
    hn_tensor_unref(((Kept *)kept)->tensor);
}

HnFit *hn_fit_new(const HnFitOptions *o)
{
    HnFit *f = g_new0(HnFit, 1);
    f->o = *o;
    f->epochs = g_array_new(FALSE, TRUE, sizeof(HnEpoch));
    f->kept = g_array_new(FALSE, FALSE, sizeof(Kept));
    g_array_set_clear_func(f->kept, kept_clear);
    return f;
}

void hn_fit_free(HnFit *f)
{
    if (f == NULL)
        return;
    g_array_unref(f->epochs);
    g_array_unref(f->kept);
    g_free(f);
}

const GArray *hn_fit_epochs(const HnFit *f)
{
    return f->epochs;
}

double hn_fit_lr(const HnFit *f)
{
    return f->o.lr;
}

int64_t hn_fit_best(const HnFit *f)
{
    return f->best;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* node: of a loss that is not finite, the label of the first node that made such a number; NULL: nobody asks */
static gboolean feed(const HnFeed *f, double lr, HnStepLoss *made, char **node, GError **error)
{
    g_autofree HnTensor **targets = g_new0(HnTensor *, f->targets->objectives->len + 1);
    g_autoptr(HnSample) s = hn_batches_next(f->batches, NULL, error);
    if (s == NULL || !hn_batch_finite(f->data, s, error) ||
        !hn_targets_make(f->targets, f->data, s, f->compared, targets, error))
        return FALSE;
    const gboolean ok = hn_trainer_step(f->trainer, s->in, targets, lr, made, error);
    if (ok && node != NULL && !isfinite(made->loss))
        *node = hn_trainer_find_nonfinite(f->trainer, s->in, targets);
    hn_targets_clear(f->targets, targets);
    return ok;
}

gboolean hn_feed_step(const HnFeed *f, double lr, HnStepLoss *made, GError **error)
{
    return feed(f, lr, made, NULL, error);
}

static gboolean step(HnFit *f, HnEpoch *e, GError **error)
{
    const int64_t at = hn_trainer_steps(f->o.feed.trainer) + 1;
    HnStepLoss made;
    g_autofree char *node = NULL;
    e->lr = f->o.lr * hn_lr_factor(&f->o.schedule, at);
    e->steps = at;
    if (!feed(&f->o.feed, e->lr, &made, &node, error))
        return FALSE;
    if (!isfinite(made.loss)) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "step %" PRId64 ": the loss is not finite, from node '%s' on, at a learning rate of %.3g: a lower "
                    "'--lr' or '--clip 1' may help",
                    at, node != NULL ? node : "?", e->lr);
        return FALSE;
    }
    f->loss += made.loss;
    f->losses++;
    if (f->o.stepped != NULL)
        f->o.stepped(f->o.data, &(HnFitStep){ .steps = at,
                                              .of = f->o.schedule.steps,
                                              .lr = e->lr,
                                              .loss = made.loss,
                                              .running = f->loss / (double)f->losses });
    return TRUE;
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

/* The weights as they are now. */
static gboolean keep(HnFit *f, GError **error)
{
    g_array_set_size(f->kept, 0);
    for (guint i = 0; i < hn_trainer_n_learned(f->o.feed.trainer); i++) {
        const char *name;
        GError *failure = NULL;
        const HnTensor *t = hn_trainer_learned(f->o.feed.trainer, i, f->o.averages, &name, &failure);
        if (t == NULL && failure == NULL)
            continue;
        const Kept k = { g_strdup(name), t != NULL ? hn_tensor_copy(t, f->o.budget, &failure) : NULL };
        g_array_append_val(f->kept, k);
        if (k.tensor == NULL) {
            g_propagate_error(error, failure);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean hn_fit_store(const HnFit *f, HnModel *m, GError **error)
{
    if (f->kept->len == 0)
        return hn_trainer_store(f->o.feed.trainer, m, f->o.averages, error);
    for (guint i = 0; i < f->kept->len; i++) {
        const Kept *k = &g_array_index(f->kept, Kept, i);
        if (!hn_trainer_put(m, k->name, k->tensor, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean judge(HnFit *f, HnEpoch *e, GError **error)
{
    if (f->o.judge == NULL)
        return TRUE;
    HnModel *m = f->o.student(f->o.data, error);
    if (m == NULL)
        return FALSE;
    if (hn_trainer_store(f->o.feed.trainer, m, f->o.averages, error))
        return hn_judge_run(f->o.judge, m, &e->judged, error);
    hn_model_free(m);
    return FALSE;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static JsonObject *epoch_out(const HnEpoch *e)
{
    JsonObject *o = json_object_new();
    json_object_set_int_member(o, "steps", e->steps);
    hn_json_set_number(o, "loss", e->loss);
    hn_json_set_number(o, "lr", e->lr);
    hn_json_set_number(o, "judged_loss", e->judged.loss);
    hn_json_set_number(o, "judged_top1", e->judged.top1);
    hn_json_set_number(o, "judged_agreement", e->judged.agreement);
    json_object_set_int_member(o, "samples", e->judged.samples);
    json_object_set_boolean_member(o, "best", e->best);
    return o;
}

/* NaN where there is none. */
static double number_at(JsonObject *o, const char *name)
{
    double x;
    return hn_json_number_at(o, name, &x) ? x : NAN;
}

static int64_t count_at(JsonObject *o, const char *name)
{
    const double x = number_at(o, name);
    return x >= 0 && x < 1e15 ? (int64_t)x : 0;
}

static void epoch_in(HnFit *f, JsonObject *o)
{
    const HnEpoch e = { .epoch = f->epochs->len + 1,
                        .steps = count_at(o, "steps"),
                        .loss = number_at(o, "loss"),
                        .lr = number_at(o, "lr"),
                        .judged = { number_at(o, "judged_loss"), number_at(o, "judged_top1"),
                                    number_at(o, "judged_agreement"), count_at(o, "samples") },
                        .best = hn_json_is_switch(hn_json_at(o, "best")) && json_object_get_boolean_member(o, "best") };
    g_array_append_val(f->epochs, e);
}

static void fill_about(const HnFit *f, JsonObject *o)
{
    const HnBatchPlace at = hn_batches_place(f->o.feed.batches);
    JsonArray *epochs = json_array_new();
    for (guint i = 0; i < f->epochs->len; i++)
        json_array_add_object_element(epochs, epoch_out(&g_array_index(f->epochs, HnEpoch, i)));
    json_object_set_string_member(o, "recipe", f->o.recipe);
    if (f->o.made != NULL)
        json_object_set_string_member(o, MADE, f->o.made);
    json_object_set_int_member(o, "steps", hn_trainer_steps(f->o.feed.trainer));
    json_object_set_int_member(o, "epoch", at.epoch);
    json_object_set_int_member(o, "batch", at.batch);
    json_object_set_int_member(o, "best", f->best);
    hn_json_set_number(o, "lr", f->o.lr);
    hn_json_set_number(o, "loss", f->loss);
    json_object_set_int_member(o, "losses", f->losses);
    json_object_set_array_member(o, "epochs", epochs);
}

static gboolean save(const HnFit *f, GError **error)
{
    if (f->o.checkpoint == NULL)
        return TRUE;
    if (!hn_trainer_fetch(f->o.feed.trainer, error))
        return FALSE;
    g_autoptr(HnCheckpoint) c = hn_checkpoint_new();
    fill_about(f, c->about);
    for (guint i = 0; i < hn_trainer_n_states(f->o.feed.trainer); i++) {
        const char *name;
        HnTensor *t = hn_trainer_state(f->o.feed.trainer, i, &name);
        hn_checkpoint_add(c, STATE, name, t);
    }
    for (guint i = 0; i < f->kept->len; i++) {
        const Kept *k = &g_array_index(f->kept, Kept, i);
        hn_checkpoint_add(c, BEST, k->name, k->tensor);
    }
    return hn_checkpoint_write(c, f->o.checkpoint, f->o.budget, error);
}

static gboolean read_states(HnFit *f, const HnCheckpoint *c, GError **error)
{
    HnTrainer *t = f->o.feed.trainer;
    for (guint i = 0; i < hn_trainer_n_states(t); i++) {
        const char *name;
        HnTensor *to = hn_trainer_state(t, i, &name);
        g_autoptr(HnTensor) from = hn_checkpoint_find(c, STATE, name, to, error);
        if (from == NULL)
            return FALSE;
        memcpy(to->data, from->data, to->bytes);
    }
    hn_trainer_wrote(t, count_at(c->about, "steps"));
    return TRUE;
}

static gboolean read_best(HnFit *f, const HnCheckpoint *c, GError **error)
{
    f->best = count_at(c->about, "best");
    if (f->best == 0 || !keep(f, error))
        return f->best == 0;
    for (guint i = 0; i < f->kept->len; i++) {
        Kept *k = &g_array_index(f->kept, Kept, i);
        HnTensor *from = hn_checkpoint_find(c, BEST, k->name, k->tensor, error);
        if (from == NULL)
            return FALSE;
        hn_tensor_unref(k->tensor);
        k->tensor = from;
    }
    return TRUE;
}

char *hn_fit_made(const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(HnCheckpoint) c = hn_checkpoint_read(path, budget, error);
    const char *made = c != NULL ? hn_json_string_at(c->about, MADE) : NULL;
    return c == NULL ? NULL : g_strdup(made != NULL ? made : "");
}

gboolean hn_fit_resume(HnFit *f, const char *path, GError **error)
{
    g_autoptr(HnCheckpoint) c = hn_checkpoint_read(path, f->o.budget, error);
    if (c == NULL)
        return FALSE;
    if (g_strcmp0(hn_json_string_at(c->about, "recipe"), f->o.recipe) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "'%s' was written with other options, another student or other data, so that it cannot go on here",
                    path);
        return FALSE;
    }
    JsonArray *epochs = hn_json_array_at(c->about, "epochs");
    for (guint i = 0; epochs != NULL && i < json_array_get_length(epochs); i++) {
        JsonObject *o = hn_json_object(json_array_get_element(epochs, i));
        if (o != NULL)
            epoch_in(f, o);
    }
    const HnBatchPlace at = { count_at(c->about, "epoch"), count_at(c->about, "batch") };
    f->loss = number_at(c->about, "loss");
    f->losses = count_at(c->about, "losses");
    f->o.lr = number_at(c->about, "lr");
    const int64_t judged = f->epochs->len;
    if ((at.epoch == judged || (at.epoch == judged + 1 && at.batch == 0)) && isfinite(f->loss) && f->o.lr > 0)
        return read_states(f, c, error) && read_best(f, c, error) && hn_batches_go(f->o.feed.batches, at, error);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' contradicts itself", path);
    return FALSE;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static gboolean end_epoch(HnFit *f, HnEpoch *e, GError **error)
{
    const HnEpoch *best = f->best > 0 ? &g_array_index(f->epochs, HnEpoch, f->best - 1) : NULL;
    e->loss = f->loss / (double)MAX(f->losses, 1);
    if (!judge(f, e, error)) {
        save(f, NULL);
        return FALSE;
    }
    e->best = best == NULL || f->o.judge == NULL || hn_judgement_better(&e->judged, &best->judged);
    if (e->best || f->o.last) {
        if (!keep(f, error))
            return FALSE;
        f->best = e->epoch;
    }
    g_array_append_val(f->epochs, *e);
    f->loss = (double)(f->losses = 0);
    if (f->o.judged != NULL)
        f->o.judged(f->o.data, e);
    return save(f, error);
}

/* The rest of the epoch that is under way. */
static gboolean run_epoch(HnFit *f, HnEpoch *e, GError **error)
{
    const int64_t every = f->o.every;
    e->steps = hn_trainer_steps(f->o.feed.trainer);
    e->lr = f->o.lr * hn_lr_factor(&f->o.schedule, e->steps);
    while (hn_batches_place(f->o.feed.batches).epoch < e->epoch) {
        if (!step(f, e, error) || (every > 0 && e->steps % every == 0 && !save(f, error)))
            return FALSE;
        if (hn_progress_stop(f->o.progress, error)) {
            save(f, NULL); /* what there is by now is not lost */
            return FALSE;
        }
    }
    return TRUE;
}

/* No epoch was the best for so long. */
static gboolean ended_early(const HnFit *f)
{
    int64_t best = 0;
    for (guint i = 0; i < f->epochs->len; i++)
        if (g_array_index(f->epochs, HnEpoch, i).best)
            best = i + 1;
    return f->o.patience > 0 && f->epochs->len - best >= f->o.patience;
}

gboolean hn_fit_run(HnFit *f, GError **error)
{
    while (f->epochs->len < f->o.epochs && !ended_early(f)) {
        HnEpoch e = { .epoch = f->epochs->len + 1, .judged = { NAN, NAN, NAN, 0 } };
        if (!run_epoch(f, &e, error) || !end_epoch(f, &e, error))
            return FALSE;
    }
    return TRUE;
}
