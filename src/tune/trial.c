#include "tune/trial.h"

#include <math.h>

#include "check/speedup.h"
#include "tune/timing.h"

#define TIMING_SECONDS 0.2 /* of profiling, for each form of the model in each round, at most ... */
#define TIMING_LEAST 0.1   /* ... and at least, as in the first one, which shows how long a run takes: ... */
#define TIMING_RUNS 1000   /* ... no more of them are needed */
#define TIMING_ROUNDS 3
#define RACE_SECONDS 1.0 /* of each side at most */

static char *name_of(const HnTune *t, gconstpointer plan)
{
    return t->job.hash(plan);
}

static HnModel *build(const HnTune *t, gconstpointer plan, GError **error)
{
    return t->job.build(t->job.data, plan, error);
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

/* What the journal knows of the plan, or finds out now. */
static const HnTried *tried(HnTune *t, gconstpointer plan, const char *what, GError **error)
{
    g_autofree char *name = name_of(t, plan);
    const HnTried *known = hn_journal_tried(t->journal, name);
    HnScore score;
    if (known != NULL)
        return known;
    g_autoptr(HnModel) m = build(t, plan, error);
    if (m == NULL || !(t->job.score != NULL ? t->job.score(t->job.data, plan, m, &score, error)
                                            : hn_scorer_run(t->scorer, m, &score, error)))
        return NULL;
    HnTried *now = g_new0(HnTried, 1);
    now->plan = g_steal_pointer(&name);
    now->what = g_strdup(what);
    now->score = score;
    now->bytes = hn_model_weight_bytes(m);
    now->f32 = t->job.left_alone(t->job.data, plan);
    return hn_journal_add_tried(t->journal, now, error) ? now : NULL;
}

void hn_tune_point(HnTune *t, const char *what, gconstpointer plan, const HnOutcome *o)
{
    g_autofree char *name = name_of(t, plan);
    const HnParetoPoint p = { .what = (char *)what,
                              .plan = name,
                              .score = o->score,
                              .drop = o->drop,
                              .met = o->met,
                              .bytes = o->bytes,
                              .ms = t->job.expected_ms(t->job.data, plan),
                              .predicted = TRUE };
    hn_pareto_add(t->points, &p);
}

void hn_tune_choose(HnTune *t, gconstpointer plan)
{
    g_autofree char *name = name_of(t, plan);
    hn_pareto_choose(t->points, name);
}

gboolean hn_tune_try(HnTune *t, gconstpointer plan, const char *what, gboolean is_point, HnOutcome *out, GError **error)
{
    if (hn_progress_stop(t->progress, error))
        return FALSE;
    const HnTried *found = tried(t, plan, what, error);
    if (found == NULL)
        return FALSE;
    *out = (HnOutcome){ .score = found->score,
                        .drop = hn_goals_drop(t->goals, &found->score, t->original, NULL),
                        .part = hn_goals_part(t->goals, &found->score, t->original),
                        .met = hn_goals_met(t->goals, &found->score, t->original),
                        .bytes = found->bytes };
    if (is_point && hn_pareto_find(t->points, found->plan) != NULL) /* the same by another way */
        return TRUE;
    t->trials++;
    if (t->job.tried != NULL)
        t->job.tried(t->job.data, plan, t->trials, what, &out->score, out->drop);
    if (is_point)
        hn_tune_point(t, what, plan, out);
    return TRUE;
}

/* --- times -------------------------------------------------------------------------------------------------------- */

typedef struct {
    char *name;
    HnModel *model; /* NULL: is known */
    HnNodeTimes *best;
} Timed;

/* The round in which all of it took least: what the machine did beside it is in the others. */
static gboolean time_round(HnTune *t, Timed *at, GError **error)
{
    const double enough = at->best != NULL ? at->best->total_ms * 1e-3 * TIMING_RUNS : 0; /* seconds */
    const HnTimingOptions o = { .backend = t->backend,
                                .threads = t->threads,
                                .in = hn_scorer_inputs(t->scorer),
                                .seconds = CLAMP(enough, TIMING_LEAST, TIMING_SECONDS),
                                .budget = hn_tune_memory(t->budget),
                                .progress = t->progress };
    HnNodeTimes *now = hn_node_times_measure(at->model, &o, error);
    if (now == NULL)
        return FALSE;
    if (at->best != NULL && at->best->total_ms <= now->total_ms) {
        hn_node_times_free(now);
        return TRUE;
    }
    hn_node_times_free(at->best);
    at->best = now;
    return TRUE;
}

gboolean hn_tune_times(HnTune *t, const gconstpointer *plans, guint n, const HnNodeTimes **out, GError **error)
{
    g_autofree Timed *at = g_new0(Timed, n);
    gboolean ok = TRUE;
    hn_progress_tell(t->progress, "timing", 0, 0);
    for (guint i = 0; i < n; i++) {
        at[i].name = name_of(t, plans[i]);
        if (ok && hn_journal_times(t->journal, at[i].name) == NULL)
            ok = (at[i].model = build(t, plans[i], error)) != NULL;
    }
    for (guint k = 0; ok && k < TIMING_ROUNDS * n; k++)
        ok = at[k % n].model == NULL || time_round(t, &at[k % n], error);
    for (guint i = 0; i < n; i++) {
        if (ok && at[i].best != NULL)
            ok = hn_journal_add_times(t->journal, at[i].name, g_steal_pointer(&at[i].best), error);
        out[i] = ok ? hn_journal_times(t->journal, at[i].name) : NULL;
        hn_node_times_free(at[i].best);
        hn_model_free(at[i].model);
        g_free(at[i].name);
    }
    return ok;
}

gboolean hn_tune_race(HnTune *t, gconstpointer before, gconstpointer after, double most, double useful,
                      HnEffect *effect, GError **error)
{
    g_autofree char *a = name_of(t, before), *b = name_of(t, after);
    HnSpeedup speedup;
    if (hn_journal_race(t->journal, a, b, effect))
        return TRUE;
    g_autoptr(HnModel) ma = build(t, before, error);
    g_autoptr(HnModel) mb = ma != NULL ? build(t, after, error) : NULL;
    const HnSpeedupOptions o = { .threads = t->threads,
                                 .seconds = RACE_SECONDS,
                                 .limit = most,
                                 .useful = useful,
                                 .budget = hn_tune_memory(t->budget),
                                 .progress = t->progress };
    if (mb == NULL || !hn_measure_speedup(ma, mb, t->backend, hn_scorer_inputs(t->scorer), &o, &speedup, error) ||
        hn_progress_stop(t->progress, error))
        return FALSE;
    *effect = speedup.effect;
    return hn_journal_add_race(t->journal, a, b, effect, error);
}
