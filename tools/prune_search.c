/* hone-prune: which widths, or how many zeros by layer: the best of several choices, or as much as --max-drop allows.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "hone_prune.h"

#define NEAREST 0.03 /* of the operations: how near a search by loss comes to what is allowed */

/* --- what is chosen ----------------------------------------------------------------------------------------------- */

/* Widths, and zeros by layer. */
typedef struct {
    int *keep;
    double *part;       /* NULL: no zeros */
    HnPruned *made;     /* with them; NULL: not yet */
    PruneJudged judged; /* the same, repaired; made NULL: not yet */
} Choice;

static void choice_clear(Choice *c)
{
    g_free(c->keep);
    g_free(c->part);
    hn_pruned_free(c->made);
    prune_judged_clear(&c->judged);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Choice, choice_clear)

/* As they are in q now; made is taken. */
static void choose(Choice *c, const Prune *q, HnPruned *made)
{
    choice_clear(c);
    *c = (Choice){ .keep = g_memdup2(q->keep, (q->map->classes->len + 1u) * sizeof *q->keep),
                   .part = g_memdup2(q->zeros_part, q->map->layers->len * sizeof *q->zeros_part),
                   .made = made };
}

/* Pruned so, and repaired. */
static gboolean settle(Prune *q, Choice *c, GError **error)
{
    memcpy(q->keep, c->keep, (q->map->classes->len + 1u) * sizeof *q->keep);
    if (c->part != NULL)
        memcpy(q->zeros_part, c->part, q->map->layers->len * sizeof *q->zeros_part);
    if (c->judged.pruned != NULL)
        return prune_put_judged(q, &c->judged, error);
    hn_pruned_free(q->pruned);
    q->pruned = c->made != NULL ? g_steal_pointer(&c->made) : prune_by(q, &q->o, q->keep, error);
    return q->pruned != NULL && (q->scorer == NULL || prune_repair(q, error));
}

/* Is s, which `by` (NULL: a journal) found, within --max-drop? */
static gboolean is_within(const Prune *q, HnScorer *by, const HnScore *s)
{
    HnGoals goals = { 0 };
    HnScore original;
    if (isnan(q->max_drop) || by == NULL)
        return TRUE;
    hn_scorer_original(by, &original);
    hn_scorer_goals(by, q->max_drop, &goals);
    return hn_goals_met(&goals, s, &original);
}

/* --- several choices ---------------------------------------------------------------------------------------------- */

/* The score of q's widths on the samples that layers are fitted to; *made is NULL where it was known. */
static gboolean try_choice(Prune *q, HnPruned **made, HnScore *s, GError **error)
{
    g_autofree char *hash = prune_hash(q, q->keep, "fitted");
    g_autoptr(HnPruned) p = NULL;
    *made = NULL;
    if (prune_known_score(q, hash, s))
        return TRUE;
    if (!prune_open_chooser(q, error) || (p = prune_by(q, &q->o, q->keep, error)) == NULL ||
        !prune_score(q->chooser, p, s, error) || !prune_note_score(q, hash, "widths", s, error))
        return FALSE;
    *made = g_steal_pointer(&p);
    return TRUE;
}

/* Is there time for another choice behind one that took so long, and for repairing what is taken? */
static gboolean has_time(const Prune *q, guint64 since)
{
    const double one = (double)(hn_now_ns() - since) * 1e-9;
    return hn_tune_left(&q->limits) - prune_reserve(q) > one * (2 + (double)(prune_leaves_out(q) ? q->held : 0));
}

/* Of several choices of widths the one with the least error on the samples that layers are fitted to. */
static gboolean prune_best(Prune *q, GError **error)
{
    const guint n = prune_n_widths(q);
    double least = INFINITY;
    g_auto(Choice) kept = { 0 };
    g_autofree int *last = NULL;
    guint64 since = hn_now_ns();
    for (guint i = 0; i < n && (i == 0 || has_time(q, since)); i++) {
        HnScore s = { 0 };
        HnPruned *made = NULL;
        since = hn_now_ns();
        if (!prune_find_widths(q, i, error))
            return FALSE;
        if (last != NULL && q->budget != PRUNE_ZEROS && !memcmp(last, q->keep, q->map->classes->len * sizeof *last))
            continue;
        g_free(last);
        last = g_memdup2(q->keep, (q->map->classes->len + 1u) * sizeof *last);
        if (n > 1) {
            g_autofree char *what = g_strdup_printf("widths %u of %u", i + 1, n);
            if (!try_choice(q, &made, &s, error) ||
                !prune_note_point(q, what, NULL, q->keep, &s, NAN, is_within(q, q->chooser, &s), error)) {
                hn_pruned_free(made);
                return FALSE;
            }
            hn_context_note(q->ctx, 1, "%s: %.2f dB", what, s.sqnr);
        }
        const double noise = prune_widths_noise(q, i, &s);
        if (kept.keep == NULL || noise < least) {
            choose(&kept, q, made);
            least = noise;
        } else {
            hn_pruned_free(made);
        }
    }
    return settle(q, &kept, error);
}

/* --- a search by loss --------------------------------------------------------------------------------------------- */

/* q->score of q's widths. What is too bad where each sample had a part in it is not made again without each of them. */
static gboolean judge_part(Prune *q, GError **error)
{
    g_autofree char *hash = prune_hash(q, q->keep, "held out");
    if (prune_known_score(q, hash, &q->score))
        return TRUE;
    if ((q->pruned = prune_by(q, &q->o, q->keep, error)) == NULL)
        return FALSE;
    if (prune_leaves_out(q)) {
        if (!prune_score(q->scorer, q->pruned, &q->score, error))
            return FALSE;
        if (!is_within(q, q->scorer, &q->score))
            return prune_note_score(q, hash, "part", &q->score, error);
    }
    return prune_repair(q, error) && prune_note_score(q, hash, "part", &q->score, error);
}

/* Widths for that part of the operations, pruned and scored: are the goals met? */
static gboolean try_part(Prune *q, double part, gboolean *met, GError **error)
{
    HnGoals goals = { 0 };
    double cost;
    g_clear_pointer(&q->pruned, hn_pruned_free);
    prune_clear_folds(q);
    if (!prune_widths_for(q, part, &cost, error) || !judge_part(q, error))
        return FALSE;
    *met = is_within(q, q->scorer, &q->score);
    g_autofree char *what = g_strdup_printf("%.3g of the operations", part);
    if (!prune_note_point(q, what, NULL, q->keep, &q->score, NAN, *met, error))
        return FALSE;
    hn_scorer_goals(q->scorer, q->max_drop, &goals);
    hn_context_note(q->ctx, 1, "%.3f of the operations: drop %.3g %%, %.2f dB%s", part,
                    hn_goals_drop(&goals, &q->score, &q->original, NULL) * 100, q->score.sqnr,
                    *met ? "" : ", too much");
    return TRUE;
}

static gboolean nothing_met(const Prune *q, double part, GError **error)
{
    if (part < PRUNE_WORTH)
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET,
                    "the time of '--time-budget' was over before widths with a loss of at most %.3g %% were found",
                    q->max_drop * 100);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "with a loss of at most %.3g %% more than %.3g of the operations stay, which is not worth it: at "
                    "most %.3g of the time is asked of the result where nothing else is said",
                    q->max_drop * 100, part, PRUNE_WORTH);
    return FALSE;
}

/* As few operations as --max-drop allows, as long as the result may be fast enough to be written. */
static gboolean search(Prune *q, GError **error)
{
    double lo = 0, hi = 1;
    g_auto(Choice) best = { 0 };
    for (guint64 i = 0; hi - lo > NEAREST && lo < PRUNE_WORTH; i++) {
        const double part = (lo + hi) / 2;
        GError *failure = NULL;
        gboolean met;
        hn_progress_tell(&q->ctx->progress, "search", i, (guint64)ceil(-log2(NEAREST)));
        if (hn_progress_stop(&q->ctx->progress, &failure) || !try_part(q, part, &met, &failure)) {
            if (hn_tune_was_cut(&q->limits, &failure))
                break;
            g_propagate_error(error, failure);
            return FALSE;
        }
        if (met) {
            choose(&best, q, NULL);
            if (q->largest == NULL) /* memory is not limited */
                prune_take_judged(q, &best.judged);
        }
        *(met ? &hi : &lo) = part;
    }
    return best.keep != NULL ? settle(q, &best, error) : nothing_met(q, lo, error);
}

gboolean prune_choose(Prune *q, GError **error)
{
    return q->budget == PRUNE_NO_BUDGET && q->recipe == NULL ? search(q, error) : prune_best(q, error);
}
