/* hone-prune: how good what was pruned is, and repairs of weights, each kept where it is better. */
#include <math.h>

#include "hone_prune.h"
#include "prune/moments.h"

/* --- on samples that had no part in it ---------------------------------------------------------------------------- */

gboolean prune_score(HnScorer *by, const HnPruned *p, HnScore *s, GError **error)
{
    g_autoptr(HnModel) m = hn_pruned_model(p, error);
    return m != NULL && hn_scorer_run(by, m, s, error);
}

static void free_folds(HnPruned **folds, int64_t n)
{
    for (int64_t i = 0; folds != NULL && i < n; i++)
        hn_pruned_free(folds[i]);
    g_free(folds);
}

void prune_clear_folds(Prune *q)
{
    free_folds(g_steal_pointer(&q->folds), q->held);
}

/* Of all samples but one, *rest. */
static HnPruneOptions fold_options(const Prune *q, int64_t i, HnData **rest)
{
    HnPruneOptions o = q->o;
    *rest = hn_data_without(q->data, i);
    o.data = *rest;
    o.n = q->calib - 1;
    return o;
}

gboolean prune_leaves_out(const Prune *q)
{
    return q->held_first == 0 && q->held >= 2 && q->choice.command == NULL;
}

static gboolean make_folds(Prune *q, GError **error)
{
    prune_clear_folds(q);
    if (!prune_leaves_out(q))
        return TRUE;
    q->folds = g_new0(HnPruned *, (gsize)q->held + 1);
    for (int64_t i = 0; i < q->held; i++) {
        g_autoptr(HnData) rest = NULL;
        const HnPruneOptions o = fold_options(q, i, &rest);
        hn_progress_tell(&q->ctx->progress, "leaving samples out", (guint64)i, (guint64)q->held);
        if ((q->folds[i] = prune_by(q, &o, q->pruned->kept, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

static HnModel *made_without(gpointer data, int64_t i, GError **error)
{
    const Prune *q = data;
    return hn_pruned_model(q->folds[i], error);
}

/* Of what is pruned so, on samples that had no part in it where that is possible. */
static gboolean judge(Prune *q, HnScore *s, GError **error)
{
    const HnScorerEach each = { .made = made_without, .data = q, .workers = 1 };
    return q->folds != NULL ? hn_scorer_run_each(q->scorer, &each, s, error)
                            : prune_score(q->scorer, q->pruned, s, error);
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

static double spread_db(const HnScorer *s, int k)
{
    return -10 * log10(hn_scorer_output(s, k)->lost);
}

/* The scorer whose samples are those that weights were fitted to; NULL: there is none. */
static HnScorer *scorer_of_seen(const Prune *q)
{
    return q->folds != NULL ? q->scorer : q->chooser;
}

gboolean prune_look_at_outputs(Prune *q, GError **error)
{
    gboolean little = FALSE;
    for (int k = 0; q->scorer != NULL && k < hn_scorer_n_outputs(q->scorer); k++) {
        const PruneOutput o = { *hn_scorer_output(q->scorer, k), spread_db(q->scorer, k), NAN };
        g_array_append_val(q->outputs, o);
        little = little || o.db < PRUNE_LITTLE;
    }
    HnScorer *seen = scorer_of_seen(q);
    HnScore s;
    if (!(little || q->folds != NULL) || seen == NULL || q->recipe != NULL)
        return TRUE;
    if (!hn_scorer_look(seen, q->result, NULL, &s, error))
        return FALSE;
    for (guint k = 0; k < q->outputs->len; k++)
        g_array_index(q->outputs, PruneOutput, k).seen = spread_db(seen, (int)k);
    return TRUE;
}

/* --- repairs ------------------------------------------------------------------------------------------------------ */

/* What repairs change; both are taken over together. */
typedef struct {
    HnPruned *pruned, **folds;
} Repaired;

static void swap(Prune *q, Repaired *r)
{
    const Repaired mine = { q->pruned, q->folds };
    q->pruned = r->pruned;
    q->folds = r->folds;
    *r = mine;
}

static void repaired_clear(const Prune *q, Repaired *r)
{
    hn_pruned_free(r->pruned);
    free_folds(r->folds, q->held);
}

typedef HnPruned *(*RepairFn)(const HnPruned *p, const HnPruneOptions *o, GError **error);

static HnPruned *without_fits(const HnPruned *p, G_GNUC_UNUSED const HnPruneOptions *o, G_GNUC_UNUSED GError **error)
{
    return hn_pruned_copy(p, FALSE);
}

static HnPruned *with_norm(const HnPruned *p, const HnPruneOptions *o, GError **error)
{
    return hn_pruned_matched(p, o, TRUE, error);
}

static HnPruned *with_bias(const HnPruned *p, const HnPruneOptions *o, GError **error)
{
    return hn_pruned_matched(p, o, FALSE, error);
}

/* Made of q's, by the samples that each was made by. */
static gboolean make_repaired(const Prune *q, RepairFn fn, Repaired *r, GError **error)
{
    if ((r->pruned = fn(q->pruned, &q->o, error)) == NULL)
        return FALSE;
    r->folds = q->folds != NULL ? g_new0(HnPruned *, (gsize)q->held + 1) : NULL;
    for (int64_t i = 0; q->folds != NULL && i < q->held; i++) {
        g_autoptr(HnData) rest = NULL;
        const HnPruneOptions o = fold_options(q, i, &rest);
        if ((r->folds[i] = fn(q->folds[i], &o, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

static void note_repair(Prune *q, const char *name, double before, double after)
{
    const PruneRepair r = { .name = name, .kept = after > before, .before = before, .after = after };
    g_array_append_val(q->repairs, r);
}

static gboolean last_is_kept(const Prune *q)
{
    return q->repairs->len == 0 || g_array_index(q->repairs, PruneRepair, q->repairs->len - 1).kept;
}

/* New weights by least squares, which q->pruned has, against those that were there. */
static gboolean judge_fit(Prune *q, Repaired *plain, GError **error)
{
    HnScore without;
    if (!make_repaired(q, without_fits, plain, error))
        return FALSE;
    swap(q, plain);
    if (!judge(q, &without, error))
        return FALSE;
    swap(q, plain);
    if (!judge(q, &q->score, error))
        return FALSE;
    note_repair(q, "fit", without.sqnr, q->score.sqnr);
    if (last_is_kept(q))
        return TRUE;
    swap(q, plain);
    return judge(q, &q->score, error); /* what the report says of outputs is of the last run */
}

static gboolean try_moments(Prune *q, const char *name, RepairFn fn, Repaired *r, GError **error)
{
    HnScore after;
    if (!make_repaired(q, fn, r, error))
        return FALSE;
    swap(q, r);
    if (!judge(q, &after, error))
        return FALSE;
    note_repair(q, name, q->score.sqnr, after.sqnr);
    if (last_is_kept(q)) {
        q->score = after;
        return TRUE;
    }
    swap(q, r);
    return judge(q, &q->score, error);
}

static gboolean repair_fit(Prune *q, GError **error)
{
    Repaired plain = { NULL, NULL };
    const gboolean ok = q->pruned->fitted > 0 ? judge_fit(q, &plain, error) : judge(q, &q->score, error);
    repaired_clear(q, &plain);
    return ok;
}

static gboolean repair_moments(Prune *q, const char *name, RepairFn fn, GError **error)
{
    Repaired r = { NULL, NULL };
    const gboolean ok = try_moments(q, name, fn, &r, error);
    repaired_clear(q, &r);
    return ok;
}

/* The score of q->pruned, each repair kept where it is better. */
gboolean prune_repair(Prune *q, GError **error)
{
    g_array_set_size(q->repairs, 0);
    if (!make_folds(q, error) || !repair_fit(q, error))
        return FALSE;
    const gboolean instead = q->instead && !last_is_kept(q) && q->o.data != NULL;
    return (!(q->norm || instead) || repair_moments(q, "norm", with_norm, error)) &&
           (!(q->bias || instead) || repair_moments(q, "bias", with_bias, error));
}

/* --- kept for later ----------------------------------------------------------------------------------------------- */

void prune_take_judged(Prune *q, PruneJudged *j)
{
    prune_judged_clear(j);
    *j = (PruneJudged){ g_steal_pointer(&q->pruned), g_steal_pointer(&q->folds), q->held, q->score, q->repairs };
    q->repairs = g_array_new(FALSE, FALSE, sizeof(PruneRepair));
}

gboolean prune_put_judged(Prune *q, PruneJudged *j, GError **error)
{
    prune_clear_folds(q);
    hn_pruned_free(q->pruned);
    g_array_unref(q->repairs);
    q->pruned = j->pruned;
    q->folds = j->folds;
    q->repairs = j->repairs;
    *j = (PruneJudged){ 0 };
    return judge(q, &q->score, error); /* what the report says of outputs is of the last run */
}

void prune_judged_clear(PruneJudged *j)
{
    hn_pruned_free(j->pruned);
    free_folds(j->folds, j->n_folds);
    g_clear_pointer(&j->repairs, g_array_unref);
    *j = (PruneJudged){ 0 };
}
