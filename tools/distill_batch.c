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

/* --- memory beside steps ------------------------------------------------------------------------------------------ */

int distill_at_once(const Distill *q, int parts, const HnData *d)
{
    const int of = q->auto_part > 0 ? 1 : MAX(parts, 1); /* students that are chosen among have parts of their own */
    return (int)CLAMP(q->batch / of, 1, hn_data_count(d));
}

static HnSample *load_first(const HnData *d, int n, GError **error)
{
    g_autofree int64_t *index = g_new(int64_t, n);
    for (int i = 0; i < n; i++)
        index[i] = i;
    return hn_data_load_batch(d, index, n, error);
}

/* Of batches that are loaded ahead, and the one that is at work. */
static gsize loaded(const HnSample *s)
{
    gsize bytes = s->label != NULL ? s->label->bytes : 0;
    for (int i = 0; i < s->n; i++)
        bytes += s->in[i] != NULL ? s->in[i]->bytes : 0;
    return 3 * bytes;
}

/* The teacher keeps the memory that runs of batches of one size take; what it says of all samples of d is kept, too. */
static gboolean ask_teacher(const Distill *q, HnTensor *const *in, int64_t n, const HnData *d, gsize *kept,
                            GError **error)
{
    if (q->teacher == NULL)
        return TRUE;
    g_autofree HnTensor **values = g_new0(HnTensor *, hn_forward_count(q->teacher) + 1);
    const gboolean ok = hn_forward_run(q->teacher, in, values, error);
    for (guint i = 0; ok && i < hn_forward_count(q->teacher); i++)
        *kept += values[i]->bytes * (gsize)(hn_data_count(d) / n + 1);
    hn_targets_clear(&q->targets, values);
    return ok;
}

/* What comes and goes with each time that a student is judged: runs, in memory that nobody counts, tell. The last batch
 * may be a smaller one. */
static gboolean judging(const Distill *q, const HnSample *some, const HnSample *last, gsize *bytes, GError **error)
{
    HnForwardOptions o = distill_forward(q);
    HnBudget *counts = o.budget = hn_budget_new(0);
    g_autofree HnTensor **values = g_new0(HnTensor *, q->objectives->len + 1);
    HnModel *student = distill_student(q, error);
    HnForward *f = student != NULL ? hn_forward_new(student, q->judged_by, &o, error) : NULL;
    gboolean ok = f != NULL && hn_forward_run(f, some->in, values, error);
    hn_targets_clear(&q->judge_targets, values);
    ok = ok && (last == NULL || hn_forward_run(f, last->in, values, error));
    hn_targets_clear(&q->judge_targets, values);
    hn_forward_free(f);
    *bytes = hn_budget_peak(counts);
    hn_budget_unref(counts);
    return ok;
}

gboolean distill_taken(const Distill *q, int parts, gsize *bytes, GError **error)
{
    gsize judge = 0, kept = 0;
    const int n = distill_at_once(q, parts, q->judged), rest = (int)(hn_data_count(q->judged) % n);
    *bytes = hn_budget_used(q->ctx->budget);
    if (q->ctx->common.mem_limit == 0 || q->backend->memory != NULL)
        return TRUE;
    g_autoptr(HnSample) learned = load_first(q->data, distill_at_once(q, parts, q->data), error);
    g_autoptr(HnSample) judged = learned != NULL ? load_first(q->judged, n, error) : NULL;
    g_autoptr(HnSample) last = judged != NULL && rest > 0 ? load_first(q->judged, rest, error) : NULL;
    if (judged == NULL || (rest > 0 && last == NULL) ||
        !ask_teacher(q, learned->in, learned->count, q->data, &kept, error) ||
        !ask_teacher(q, judged->in, judged->count, q->judged, &kept, error) || !judging(q, judged, last, &judge, error))
        return FALSE;
    /* the best so far, those that are judged, as they are read and as they were learned, and to be written */
    const gsize weights = 4 * g_bytes_get_size(q->file);
    const gsize held = loaded(learned) / 3 + loaded(judged) / 3 + (last != NULL ? loaded(last) / 3 : 0);
    *bytes = hn_budget_used(q->ctx->budget) - held + kept + weights + judge + loaded(q->sample) + loaded(judged);
    return TRUE;
}

/* --- --batch auto ------------------------------------------------------------------------------------------------- */

typedef struct {
    Distill *q;
    guint64 step_ns;  /* of the size that was tried last; 0: it was only planned */
    gint64 tried;     /* the largest of which steps were made */
    gboolean slow;    /* larger ones are only planned, ... */
    gboolean confirm; /* ... but for this one */
    GError *why;      /* the last one did not fit; NULL: it did */
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
    g_clear_error(&s->why);
    if (g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))
        s->why = g_steal_pointer(&cause);
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
        hn_tool_no_batch(parts, s.why, &cause);
    g_clear_error(&s.why);
    if (cause != NULL) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    keep_batch(q, n);
    return distill_open_batches(q, error);
}
