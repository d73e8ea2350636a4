/* hone-distill: batches, and, with --batch auto, how large they can be. */
#include "base/clock.h"
#include "base/text.h"
#include "hone_distill.h"

#define STEP_NS 1000000000 /* sizes whose steps take longer are not timed while the largest is looked for */
#define LEAST_STEPS 8      /* of an epoch: with fewer, however many fit, nothing is learned */

gboolean distill_open_batches(Distill *q, GError **error)
{
    const int64_t samples = hn_data_count(q->data);
    const HnBatchesOptions o = { .batch = (int)MIN(q->batch, samples),
                                 .threads = 1,
                                 .shuffle = TRUE,
                                 .seed = q->ctx->common.seed,
                                 .augment = q->augment,
                                 .budget = q->ctx->budget };
    if (o.batch < q->batch)
        hn_context_warn(q->ctx, "there are %d samples to learn from: a batch is all of them", o.batch);
    hn_batches_free(q->batches);
    hn_sample_free(q->sample);
    q->sample = NULL;
    if ((q->batches = hn_batches_new(q->data, &o, error)) == NULL ||
        (q->sample = hn_batches_next(q->batches, NULL, error)) == NULL)
        return FALSE;
    return hn_batches_go(q->batches, (HnBatchPlace){ 0, 0 }, error);
}

/* --- --batch auto ------------------------------------------------------------------------------------------------- */

typedef struct {
    Distill *q;
    guint64 step_ns;  /* of the size that was tried last; 0: it was only planned */
    gint64 tried;     /* the largest of which steps were made */
    gboolean slow;    /* larger ones are only planned, ... */
    gboolean confirm; /* ... but for this one */
} Search;

/* Two steps, the second of which is timed. They change what nobody keeps. */
static gboolean try_steps(Search *s, HnTrainer *t, GError **error)
{
    const Distill *q = s->q;
    g_autoptr(GPtrArray) compared = distill_compared(q, t);
    const HnFeed feed = { t, q->batches, q->data, &q->targets, (HnType *const *)compared->pdata };
    guint64 began = 0;
    for (int i = 0; i < 2; i++) {
        HnStepLoss made;
        began = hn_now_ns();
        if (!hn_feed_step(&feed, q->rule->lr, &made, error))
            return FALSE;
    }
    s->step_ns = hn_now_ns() - began;
    s->slow = 2 * s->step_ns >= STEP_NS;
    return TRUE;
}

static void tell(const Search *s, const HnTrainer *t)
{
    HnForecast f;
    hn_trainer_forecast(t, &f);
    g_autofree char *needs = hn_text_size(f.needed);
    g_autofree char *speed =
        s->step_ns > 0 ? g_strdup_printf(", %.4g samples/s", s->q->batch * 1e9 / (double)s->step_ns) : g_strdup("");
    hn_context_note(s->q->ctx, 0, "batch %d: %s%s", s->q->batch, needs, speed);
}

/* HnToolFitsFn */
static gboolean fits(gpointer data, gint64 batch, GError **error)
{
    Search *s = data;
    GError *cause = NULL;
    s->q->batch = (int)batch;
    s->step_ns = 0;
    hn_progress_tell(&s->q->ctx->progress, "finding the batch", (guint64)batch, 0);
    HnDevice *device = distill_open_batches(s->q, &cause) ? hn_device_new(s->q->backend, &cause) : NULL;
    HnTrainer *t = device != NULL ? distill_trainer(s->q, device, distill_why_keep(s->q) != NULL, &cause) : NULL;
    gboolean ok = t != NULL;
    if (ok && s->q->backend->computes && (s->confirm || !s->slow))
        ok = try_steps(s, t, &cause);
    if (ok)
        tell(s, t);
    s->tried = ok && s->step_ns > 0 ? MAX(s->tried, batch) : s->tried;
    hn_trainer_free(t);
    hn_device_unref(device);
    if (g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))
        g_clear_error(&cause);
    if (cause != NULL)
        g_propagate_error(error, cause);
    return ok;
}

/* Options that may be filled in: what was found stands in the recipe, and for whoever goes on. */
static DistillParams *to_fill(Distill *q)
{
    q->filled = *q->p;
    q->p = &q->filled;
    return &q->filled;
}

static void keep_batch(Distill *q, gint64 n)
{
    q->batch = (int)n;
    q->batch_text = g_strdup_printf("%d", q->batch);
    to_fill(q)->batch = q->batch_text;
}

void distill_keep_parts(Distill *q)
{
    if (q->parts_asked > 0)
        return;
    g_free(q->parts_text);
    q->parts_text = g_strdup_printf("%d", q->parts);
    to_fill(q)->micro_batches = q->parts_text;
}

gboolean distill_find_batch(Distill *q, GError **error)
{
    Search s = { .q = q };
    GError *cause = NULL;
    const gint64 most = MAX(hn_data_count(q->data) / LEAST_STEPS, 1), parts = MAX(q->parts_asked, 1);
    if (!q->any_batch || q->batch_text != NULL)
        return TRUE;
    q->step_limit = hn_tool_step_limit(q->ctx);
    gint64 n = hn_tool_largest_batch(q->ctx, parts, &most, fits, &s, &cause);
    s.confirm = TRUE;
    for (gboolean tried = s.tried == n; n > 0 && !tried && cause == NULL && !(tried = fits(&s, n, &cause));)
        n = n / parts / 2 * parts;
    if (n == 0 && cause == NULL)
        hn_tool_no_batch(parts, &cause);
    if (cause != NULL) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    keep_batch(q, n);
    return distill_open_batches(q, error);
}
