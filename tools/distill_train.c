/* hone-distill: training, from the first step or from a checkpoint to the last epoch. */
#include <math.h>

#include "base/clock.h"
#include "hone_distill.h"

static HnModel *anew(gpointer data, GError **error)
{
    return distill_student(data, error);
}

static void tell_step(gpointer data, const HnFitStep *s)
{
    const Distill *q = data;
    const int64_t batch = q->sample->count, epoch = (s->steps - 1) / hn_batches_per_epoch(q->batches) + 1;
    const GArray *epochs = hn_fit_epochs(q->fit);
    const char *metric = NULL;
    double best = NAN;
    if (hn_fit_best(q->fit) > 0)
        best = distill_metric(&g_array_index(epochs, HnEpoch, hn_fit_best(q->fit) - 1).judged, &metric);
    g_autofree char *also = metric != NULL ? g_strdup_printf(", best %s %.4g", metric, best) : g_strdup("");
    g_autofree char *what =
        g_strdup_printf("epoch %" G_GINT64_FORMAT "/%d, loss %.4g%s", epoch, q->p->epochs, s->running, also);
    hn_progress_tell(&q->ctx->progress, what, (guint64)(s->steps * batch), (guint64)(s->of * batch));
    distill_log_step(q, s, epoch);
}

static void tell_epoch(gpointer data, const HnEpoch *e)
{
    const Distill *q = data;
    const char *metric;
    const double value = distill_metric(&e->judged, &metric);
    distill_log_epoch(q, e);
    g_autofree char *also = isnan(e->judged.top1) && isnan(e->judged.agreement)
                                ? NULL
                                : g_strdup_printf(", %s %.2f %%", metric, 100 * value);
    hn_context_note(q->ctx, 1, "epoch %" G_GINT64_FORMAT ": loss %.4g, validation %.4g%s%s", e->epoch, e->loss,
                    e->judged.loss, also != NULL ? also : "", e->best ? ", best" : "");
}

static void set_schedule(Distill *q)
{
    HnLrSchedule *s = &q->schedule;
    s->steps = hn_batches_per_epoch(q->batches) * q->p->epochs;
    s->warmup = MIN((int64_t)(q->warmup < 1 ? q->warmup * (double)s->steps : q->warmup), s->steps);
}

static HnFeed feed_of(const Distill *q)
{
    return (HnFeed){ q->trainer, q->batches, q->data, &q->targets, (HnType *const *)q->compared->pdata };
}

static HnFitOptions fit_options(Distill *q)
{
    const DistillParams *p = q->p;
    return (HnFitOptions){ .feed = feed_of(q),
                           .judge = q->judge,
                           .student = anew,
                           .stepped = tell_step,
                           .judged = tell_epoch,
                           .data = q,
                           .epochs = p->epochs,
                           .patience = p->patience,
                           .schedule = q->schedule,
                           .lr = q->lr,
                           .averages = q->rule->ema > 0,
                           .last = p->last,
                           .checkpoint = p->checkpoint != NULL ? p->checkpoint : p->resume,
                           .every = p->checkpoint_every,
                           .recipe = q->recipe_hash,
                           .made = q->made,
                           .budget = q->ctx->budget,
                           .progress = &q->ctx->progress };
}

static gboolean find_lr(Distill *q, GError **error)
{
    const HnFeed feed = feed_of(q);
    q->lr = q->rule->lr;
    if (!q->lr_auto)
        return TRUE;
    if (!hn_lr_range(&feed, &q->range, error))
        return FALSE;
    q->lr = q->range.lr;
    hn_context_note(q->ctx, 1, "learning rate %.3g, a tenth of that with the least loss in %d steps", q->lr,
                    q->range.steps);
    return TRUE;
}

static gboolean judge_now(Distill *q, HnModel *m, HnJudgement *made, GError **error)
{
    return m != NULL && hn_judge_run(q->judge, m, made, error);
}

gboolean distill_judge_fit(const Distill *run, Distill *judge, HnJudgement *made, GError **error)
{
    HnModel *m = distill_student(run, error);
    if (m == NULL || !hn_fit_store(run->fit, m, error)) {
        hn_model_free(m);
        return FALSE;
    }
    return judge_now(judge, m, made, error);
}

/* What is named twice may not be there yet: whoever runs a command again and again begins once. Neither need it where
 * the run that it goes on with was still trying settings. */
gboolean distill_goes_on(const Distill *q)
{
    const DistillParams *p = q->p;
    if (p->resume == NULL || g_file_test(p->resume, G_FILE_TEST_EXISTS))
        return p->resume != NULL;
    return !q->begins && g_strcmp0(p->checkpoint, p->resume) != 0;
}

gboolean distill_train(Distill *q, GError **error)
{
    const gboolean resume = distill_goes_on(q);
    set_schedule(q);
    if (!judge_now(q, distill_student(q, error), &q->before, error) || (!resume && !find_lr(q, error)))
        return FALSE;
    const HnFitOptions o = fit_options(q);
    q->fit = hn_fit_new(&o);
    if (!distill_open_log(q, resume, error))
        return FALSE;
    if (resume && !hn_fit_resume(q->fit, q->p->resume, error))
        return FALSE;
    q->resumed = hn_trainer_steps(q->trainer);
    q->lr = hn_fit_lr(q->fit);
    if (resume)
        hn_context_note(q->ctx, 1, "goes on behind step %" G_GINT64_FORMAT, q->resumed);
    q->began_ns = hn_now_ns();
    if (!hn_fit_run(q->fit, error))
        return FALSE;
    q->seconds_ns = hn_now_ns() - q->began_ns;
    hn_bar_wipe(q->ctx->bar);
    return distill_close_log(q, error);
}

static void tell_trial(gpointer data, const HnFitStep *s)
{
    const Distill *q = data;
    hn_progress_tell(&q->ctx->progress, "trying settings", (guint64)s->steps, (guint64)s->of);
}

gboolean distill_try(Distill *q, GError **error)
{
    set_schedule(q);
    q->lr = q->rule->lr;
    HnFitOptions o = fit_options(q);
    o.judge = NULL;
    o.judged = NULL;
    o.stepped = tell_trial;
    o.patience = 0;
    o.checkpoint = NULL;
    q->fit = hn_fit_new(&o);
    return hn_fit_run(q->fit, error);
}
