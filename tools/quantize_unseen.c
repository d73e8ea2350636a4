/*
 * hone-quantize: what the result does on samples that it was not made from.
 *
 * Eight samples and more are split: those that are scored have no part in ranges and repairs. Of fewer all serve for
 * both, and what a plan loses is what models lose that are made in the same way of all samples but one, each on the
 * one that was left out: its ranges, their method and its repairs never saw it (cross-validation). Which repairs serve
 * is decided on all of them.
 */
#include <math.h>

#include "base/each.h"
#include "hone_quantize.h"
#include "ir/copy.h"
#include "perf/stats.h"

#define MOST_DB 120 /* of a sample where next to nothing differs */

/* Without one of the samples. */
struct QuantizeFold {
    HnData *data;
    HnModel *prepared;
    HnQuantPlan *base;
};

gboolean quantize_wants_folds(const Quantize *q)
{
    return q->held_first == 0 && q->held >= 2 && q->p->calib != NULL && q->recipe == NULL && q->choice.command == NULL;
}

/* Samples are few, and something was made from them. */
static gboolean is_seen(const Quantize *q)
{
    const gboolean ranges = q->by_ranges && q->p->ranges == NULL && !q->plan_spans;
    return q->held_first == 0 && q->p->calib != NULL && (ranges || q->repairs.kept != 0);
}

int quantize_workers(const Quantize *q)
{
    return q->ctx->common.mem_limit > 0 ? 1 : (int)MIN(q->ctx->common.threads, q->held);
}

/* q as it is without sample i. */
static Quantize apart(const Quantize *q, int64_t i)
{
    Quantize rest = *q;
    rest.data = q->folds[i].data;
    rest.calib = rest.held = q->calib - 1;
    rest.method = q->method_without != NULL ? q->method_without[i] : q->method;
    rest.prepared = q->folds[i].prepared;
    rest.base = q->folds[i].base;
    return rest;
}

typedef struct {
    Quantize *q;
    int workers;
    guint repairs;  /* those that each fold does for itself */
    GError **error; /* [q->held] */
} Folds;

/* As all samples but i show them. */
static gboolean spans_of(Quantize *rest, int64_t i, GError **error)
{
    return rest->shown != NULL ? quantize_spans_without(rest, (guint64)i, error) : quantize_spans(rest, error);
}

/* Beside others: it tells nobody how far it is. */
static void make_fold(gpointer data, gint64 i)
{
    const Folds *all = data;
    Quantize *q = all->q;
    QuantizeFold *f = &q->folds[i];
    HnContext ctx = *q->ctx;
    ctx.progress.fn = NULL;
    ctx.common.quiet = TRUE;
    ctx.common.threads = MAX(ctx.common.threads / all->workers, 1);
    Quantize rest = apart(q, i);
    rest.ctx = &ctx;
    rest.so.data = &rest;
    rest.so.budget = &rest.limits;
    rest.so.progress = &ctx.progress;
    if (!hn_tune_late(&rest.limits) && spans_of(&rest, i, &all->error[i]))
        quantize_repair_as(&rest, &rest.base, all->repairs, &all->error[i]);
    f->prepared = rest.prepared;
    f->base = rest.base;
}

typedef struct {
    const Quantize *q;
    const HnQuantPlan *plan;
} Made;

static void take_forms(HnQuantPlan *to, const HnQuantPlan *from)
{
    GHashTableIter it;
    gpointer name, form;
    g_hash_table_remove_all(to->forms);
    g_hash_table_iter_init(&it, from->forms);
    while (g_hash_table_iter_next(&it, &name, &form))
        hn_quant_plan_set_form(to, name, (HnQuantForm)GPOINTER_TO_INT(form));
}

/* The plan as it would be without sample i. */
static HnModel *made_without(gpointer data, int64_t i, GError **error)
{
    const Made *m = data;
    HnQuantLog log;
    Quantize rest = apart(m->q, i);
    rest.so.data = &rest;
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(rest.base);
    take_forms(p, m->plan);
    return hn_quant_build(p, &rest.so, &log, error);
}

static gboolean score_apart(const Quantize *q, const HnQuantPlan *p, double *db, HnScore *score, GError **error)
{
    Made made = { q, p };
    const HnScorerEach each = { made_without, &made, quantize_workers(q), db };
    return hn_scorer_run_each(q->scorer, &each, score, error);
}

static gboolean score_of(gpointer data, const HnQuantPlan *p, HnScore *score, GError **error)
{
    const Quantize *q = data;
    g_autofree double *db = g_new0(double, (gsize)q->held + 1);
    return score_apart(q, p, db, score, error);
}

/* What follows from sums over samples, all folds get from one pass over them: nobody's sums but its own lack a sample.
 * Where units are other ones in each fold, so are the numbers that are summed. */
static gboolean round_folds(Quantize *q, Folds *all, GError **error)
{
    const guint rounding = 1u << HN_REPAIR_ROUNDING, units = 1u << HN_REPAIR_EQUALIZE | 1u << HN_REPAIR_SMOOTH;
    if ((all->repairs & rounding) == 0 || (all->repairs & units) != 0 || q->ctx->common.mem_limit > 0)
        return TRUE;
    g_autofree HnQuantPlan **plans = g_new0(HnQuantPlan *, (gsize)q->held);
    for (int64_t i = 0; i < q->held; i++)
        plans[i] = q->folds[i].base;
    all->repairs &= ~rounding;
    return quantize_round_without(q, plans, error);
}

gboolean quantize_make_folds(Quantize *q, GError **error)
{
    q->seen = is_seen(q);
    if (!q->seen || !quantize_wants_folds(q))
        return TRUE;
    q->folds = g_new0(QuantizeFold, (gsize)q->held);
    for (int64_t i = 0; i < q->held; i++)
        q->folds[i] =
            (QuantizeFold){ hn_data_without(q->data, i), hn_model_copy(q->untouched), hn_quant_plan_copy(q->blank) };
    g_autofree GError **failed = g_new0(GError *, (gsize)q->held);
    Folds all = { q, quantize_workers(q), q->repairs.kept, failed };
    GError *failure = NULL;
    hn_progress_tell(&q->ctx->progress, "leaving samples out", 0, 0);
    if (round_folds(q, &all, &failure))
        hn_each(q->held, all.workers, make_fold, &all);
    for (int64_t i = 0; i < q->held; i++) {
        if (failure == NULL)
            failure = g_steal_pointer(&failed[i]);
        g_clear_error(&failed[i]);
    }
    if (failure != NULL || hn_tune_late(&q->limits) || !quantize_has_room(q, q->trial_bytes)) {
        quantize_clear_folds(q);
        if (failure == NULL || g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) { /* of time, or of memory */
            g_clear_error(&failure);
            return TRUE;
        }
        g_propagate_error(error, failure);
        return FALSE;
    }
    q->so.score = score_of;
    return TRUE;
}

void quantize_clear_folds(Quantize *q)
{
    for (int64_t i = 0; q->folds != NULL && i < q->held; i++) {
        hn_quant_plan_free(q->folds[i].base);
        hn_model_free(q->folds[i].prepared);
        hn_data_free(q->folds[i].data);
    }
    g_clear_pointer(&q->folds, g_free);
}

static gboolean look(Quantize *q, double *db, HnScore *score, GError **error)
{
    return q->folds != NULL ? score_apart(q, q->search.plan, db, score, error)
                            : hn_scorer_look(q->scorer, q->result, db, score, error);
}

/* Of a plan that is insisted on nothing may be known before. What a program says of it is not looked for. */
static void take_score(Quantize *q, const HnScore *score)
{
    if (!q->looked || q->search.scored || q->choice.command != NULL)
        return;
    q->search.scored = TRUE;
    q->search.score = *score;
    q->search.drop = hn_goals_drop(&q->so.goals, score, &q->search.original, NULL);
}

gboolean quantize_look(Quantize *q, GError **error)
{
    const int64_t n = q->held;
    GError *failure = NULL;
    HnScore score;
    g_autofree double *db = g_new0(double, (gsize)n + 1);
    hn_tune_phase(&q->limits, 1, quantize_reserve_write(q));
    q->looked = look(q, db, &score, &failure);
    take_score(q, &score);
    (void)hn_tune_phase_end(&q->limits);
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) /* of time or memory: the verdict stands without it */
        g_clear_error(&failure);
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    q->mean_db = 0;
    for (int64_t i = 0; i < n; i++) {
        db[i] = CLAMP(db[i], -MOST_DB, MOST_DB);
        q->mean_db += db[i] / (double)n;
    }
    hn_prediction_interval(db, (gsize)n, &q->lo_db, &q->hi_db);
    return TRUE;
}
