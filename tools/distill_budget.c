/* hone-distill: how long it will take, and, with --time-budget, what there is time for. */
#include <math.h>

#include "base/clock.h"
#include "base/jsonread.h"
#include "base/text.h"
#include "hone_distill.h"

#define TIMED_STEPS 3
#define JUDGED 0.35         /* of a step: a forward pass of as many samples */
#define SURE 0.9            /* of the budget: a machine is not as fast all the time */
#define LEARNING 0.5        /* of the time at least is for the run behind the trials */
#define FORECAST "forecast" /* in the journal */

HnHalving distill_halving(guint n, int epochs)
{
    return (HnHalving){ .n = n, .first = MAX((int)(DISTILL_FIRST_PART * epochs), 1), .most = epochs };
}

gboolean distill_time_steps(const Distill *q, const HnFeed *feed, double *seconds, GError **error)
{
    guint64 began = 0;
    for (int i = 0; i <= TIMED_STEPS; i++) {
        HnStepLoss made;
        if (i == 1) /* the first one packs weights */
            began = hn_now_ns();
        if (hn_progress_stop(&q->ctx->progress, error) || !hn_feed_step(feed, q->rule->lr, &made, error))
            return FALSE;
    }
    *seconds = (double)(hn_now_ns() - began) / 1e9 / TIMED_STEPS;
    return hn_batches_go(feed->batches, (HnBatchPlace){ 0, 0 }, error);
}

gboolean distill_measure(const Distill *q, guint64 began_ns, DistillCost *c, GError **error)
{
    const HnFeed feed = { q->trainer, q->batches, q->data, &q->targets, (HnType *const *)q->compared->pdata };
    double step;
    c->open_s = (double)(hn_now_ns() - began_ns) / 1e9;
    if (!distill_time_steps(q, &feed, &step, error))
        return FALSE;
    const double judged = (double)hn_data_count(q->judged) / (double)q->sample->count;
    c->epoch_s = step * ((double)hn_batches_per_epoch(q->batches) + JUDGED * judged);
    c->choosing = distill_choosing(q);
    return TRUE;
}

/* --- what there is time for --------------------------------------------------------------------------------------- */

static double trials_s(const DistillCost *c, guint n, int epochs)
{
    guint trials;
    const HnHalving h = distill_halving(n, epochs);
    return n < 2 ? 0 : (double)hn_halving_length(&h, &trials) * c->epoch_s + trials * c->open_s;
}

static double learning_s(const DistillCost *c, int epochs)
{
    return (1 + c->choosing) * c->epoch_s * epochs;
}

static void fit(DistillCost *c, double seconds)
{
    const int most = c->epochs;
    const guint asked = c->settings;
    if (trials_s(c, asked, most) + learning_s(c, most) <= seconds)
        return;
    const double learning = asked > 1 ? LEARNING * seconds : seconds;
    c->epochs = (int)CLAMP(floor(learning / learning_s(c, 1)), 1, most);
    while (c->settings > 2 && trials_s(c, c->settings, c->epochs) + learning_s(c, c->epochs) > seconds)
        c->settings--;
}

static void tell(const Distill *q, const DistillCost *c, int epochs)
{
    g_autofree char *trials = hn_text_time(c->trials_s), *learning = hn_text_time(c->learning_s);
    if (c->epochs < epochs)
        hn_context_note(q->ctx, 0, "there is time for %d of %d epochs", c->epochs, epochs);
    if (c->settings > 1)
        hn_context_note(q->ctx, 0, "to try %u settings takes about %s, and %s that the best one learns", c->settings,
                        trials, learning);
    else
        hn_context_note(q->ctx, 0, "all takes about %s", learning);
}

static gboolean note(const DistillCost *c, HnJournal *journal, GError **error)
{
    JsonObject *o = json_object_new();
    json_object_set_int_member(o, "epochs", c->epochs);
    json_object_set_int_member(o, "settings", c->settings);
    json_object_set_double_member(o, "trials_s", c->trials_s);
    json_object_set_double_member(o, "learning_s", c->learning_s);
    return hn_journal_add_found(journal, FORECAST, o, error);
}

static double known_at(JsonObject *o, const char *name, double least, double most)
{
    double x;
    return hn_json_number_at(o, name, &x) ? CLAMP(x, least, most) : least;
}

gboolean distill_known_cost(const HnJournal *journal, DistillCost *c)
{
    JsonObject *o = hn_journal_found(journal, FORECAST);
    if (o == NULL)
        return FALSE;
    c->epochs = (int)known_at(o, "epochs", 1, c->epochs);
    c->settings = (guint)known_at(o, "settings", 0, c->settings);
    c->trials_s = known_at(o, "trials_s", 0, G_MAXDOUBLE);
    c->learning_s = known_at(o, "learning_s", 0, G_MAXDOUBLE);
    return TRUE;
}

gboolean distill_plan_time(const Distill *q, double seconds, DistillCost *c, HnJournal *journal, GError **error)
{
    const int epochs = c->epochs;
    const double passed = (double)(hn_now_ns() - q->ctx->since_ns) / 1e9;
    if (seconds > 0)
        fit(c, SURE * seconds - passed - c->open_s);
    c->trials_s = trials_s(c, c->settings, c->epochs);
    c->learning_s = learning_s(c, c->epochs);
    tell(q, c, epochs);
    return note(c, journal, error);
}
