/* Plans tried, timed and raced: what the journal knows is not done again. */
#include "quant/trial.h"

#include <math.h>

#include "base/clock.h"
#include "quant/plan_file.h"
#include "quant/region.h"

#define TIMING_SECONDS 0.4 /* of profiling, for each form of the model in each round */
#define TIMING_ROUNDS 3
#define RACE_SECONDS 2.0 /* of each side at most */

gboolean hn_search_late(HnSearchState *s)
{
    if (s->end != 0 && hn_now_ns() > s->end)
        s->out->out_of_time = TRUE;
    return s->out->out_of_time;
}

HnSensitivity *hn_search_node(const HnSearchState *s, guint i)
{
    return s->out->nodes->pdata[i];
}

static HnQuantForm form_in(const HnQuantPlan *p, const HnSensitivity *n)
{
    return (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, n->name));
}

gboolean hn_search_has(const HnSearchState *s, const HnQuantPlan *p, const HnSensitivity *n)
{
    return form_in(p, n) == form_in(s->base, n);
}

gboolean hn_search_pinned(const HnSearchState *s, const HnSensitivity *n)
{
    return s->o->pinned != NULL && g_hash_table_contains(s->o->pinned, n->name);
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

static GPtrArray *left_alone(const HnSearchState *s, const HnQuantPlan *p)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (form_in(p, hn_search_node(s, i)) == HN_FORM_F32)
            g_ptr_array_add(names, g_strdup(hn_search_node(s, i)->name));
    return names;
}

/* What the journal knows of the plan, or finds out now. */
static const HnTried *tried(HnSearchState *s, const HnQuantPlan *p, const char *what, GError **error)
{
    g_autofree char *hash = hn_quant_plan_hash(p);
    const HnTried *known = hn_journal_tried(s->journal, hash);
    HnQuantLog log;
    HnScore score;
    if (known != NULL)
        return known;
    g_autoptr(HnModel) m = hn_quant_build(p, s->o, &log, error);
    if (m == NULL || !hn_scorer_run(s->o->scorer, m, &score, error))
        return NULL;
    HnTried *t = g_new0(HnTried, 1);
    t->plan = g_steal_pointer(&hash);
    t->what = g_strdup(what);
    t->score = score;
    t->bytes = hn_model_weight_bytes(m);
    t->f32 = left_alone(s, p);
    return hn_journal_add_tried(s->journal, t, error) ? t : NULL;
}

double hn_search_ms(const HnSearchState *s, const HnQuantPlan *p)
{
    const HnRegionOptions o = { .f32 = s->f32, .integers = s->all };
    return s->all != NULL ? hn_region_ms(p, s->model, &o) : NAN;
}

void hn_search_point(HnSearchState *s, const char *what, const HnQuantPlan *plan, const HnOutcome *o)
{
    g_autofree char *hash = hn_quant_plan_hash(plan);
    const HnPoint p = { .what = (char *)what,
                        .plan = hash,
                        .score = o->score,
                        .drop = o->drop,
                        .met = o->met,
                        .bytes = o->bytes,
                        .ms = hn_search_ms(s, plan),
                        .predicted = TRUE };
    hn_points_add(s->out->points, &p);
}

gboolean hn_search_try(HnSearchState *s, const HnQuantPlan *p, const char *what, gboolean is_point, HnOutcome *out,
                       GError **error)
{
    if (s->o->progress != NULL && hn_progress_stop(s->o->progress, error))
        return FALSE;
    const HnTried *t = tried(s, p, what, error);
    if (t == NULL)
        return FALSE;
    *out = (HnOutcome){ t->score, hn_goals_drop(&s->o->goals, &t->score, &s->out->original, NULL),
                        hn_goals_part(&s->o->goals, &t->score, &s->out->original),
                        hn_goals_met(&s->o->goals, &t->score, &s->out->original), t->bytes };
    g_autofree char *hash = hn_quant_plan_hash(p);
    if (is_point && hn_points_find(s->out->points, hash) != NULL) /* the same by another way */
        return TRUE;
    s->out->trials++;
    const HnTrial trial = { p, s->out->trials, what, out->score, out->drop };
    if (s->o->trial != NULL)
        s->o->trial(s->o->data, &trial);
    if (is_point)
        hn_search_point(s, what, p, out);
    return TRUE;
}

/* p is the best plan so far; taken. */
gboolean hn_search_keep(HnSearchState *s, HnQuantPlan *p, const HnOutcome *o, GError **error)
{
    hn_quant_plan_free(s->out->plan);
    s->out->plan = p;
    s->out->score = o->score;
    s->out->drop = o->drop;
    g_autofree char *hash = hn_quant_plan_hash(p);
    hn_points_choose(s->out->points, hash);
    return s->o->improved == NULL || s->o->improved(s->o->data, p, error);
}

HnQuantPlan *hn_search_plan(const HnSearchState *s, const gboolean *wanted, gboolean less)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->base);
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (!wanted[i])
            hn_quant_plan_set_form(p, hn_search_node(s, i)->name, less ? hn_search_node(s, i)->less : HN_FORM_F32);
    return p;
}

/* --- times -------------------------------------------------------------------------------------------------------- */

HnQuantPlan *hn_search_none(const HnQuantPlan *p)
{
    HnQuantPlan *none = hn_quant_plan_copy(p);
    g_hash_table_remove_all(none->forms);
    return none;
}

typedef struct {
    char *hash;
    HnModel *model; /* NULL: is known */
    HnNodeTimes *best;
} Timed;

/* The round in which all of it took least: what the machine did beside it is in the others. */
static gboolean time_round(HnSearchState *s, Timed *t, GError **error)
{
    const HnTimingOptions o = { .backend = s->o->backend,
                                .threads = s->o->threads,
                                .in = hn_scorer_inputs(s->o->scorer),
                                .seconds = TIMING_SECONDS,
                                .budget = s->o->budget,
                                .progress = s->o->progress };
    HnNodeTimes *now = hn_node_times_measure(t->model, &o, error);
    if (now == NULL)
        return FALSE;
    if (t->best != NULL && t->best->total_ms <= now->total_ms) {
        hn_node_times_free(now);
        return TRUE;
    }
    hn_node_times_free(t->best);
    t->best = now;
    return TRUE;
}

/* Own times of nodes with each plan carried out; they are the journal's. Plans take turns. */
gboolean hn_search_times(HnSearchState *s, const HnQuantPlan *const *plans, guint n, const HnNodeTimes **out,
                         GError **error)
{
    g_autofree Timed *t = g_new0(Timed, n);
    HnQuantLog log;
    gboolean ok = TRUE;
    hn_progress_tell(s->o->progress, "timing", 0, 0);
    for (guint i = 0; i < n; i++) {
        t[i].hash = hn_quant_plan_hash(plans[i]);
        if (ok && hn_journal_times(s->journal, t[i].hash) == NULL)
            ok = (t[i].model = hn_quant_build(plans[i], s->o, &log, error)) != NULL;
    }
    for (guint k = 0; ok && k < TIMING_ROUNDS * n; k++)
        ok = t[k % n].model == NULL || time_round(s, &t[k % n], error);
    for (guint i = 0; i < n; i++) {
        if (ok && t[i].best != NULL)
            ok = hn_journal_add_times(s->journal, t[i].hash, g_steal_pointer(&t[i].best), error);
        out[i] = ok ? hn_journal_times(s->journal, t[i].hash) : NULL;
        hn_node_times_free(t[i].best);
        hn_model_free(t[i].model);
        g_free(t[i].hash);
    }
    return ok;
}

/* Time of `after` over that of `before`. */
gboolean hn_search_race(HnSearchState *s, const HnQuantPlan *before, const HnQuantPlan *after, double *effect,
                        GError **error)
{
    g_autofree char *a = hn_quant_plan_hash(before), *b = hn_quant_plan_hash(after);
    HnQuantLog log;
    HnGain gain;
    if (hn_journal_race(s->journal, a, b, effect))
        return TRUE;
    g_autoptr(HnModel) ma = hn_quant_build(before, s->o, &log, error);
    g_autoptr(HnModel) mb = ma != NULL ? hn_quant_build(after, s->o, &log, error) : NULL;
    const HnGainOptions o = {
        .threads = s->o->threads, .seconds = RACE_SECONDS, .budget = s->o->budget, .progress = s->o->progress
    };
    if (mb == NULL || !hn_measure_gain(ma, mb, s->o->backend, hn_scorer_inputs(s->o->scorer), &o, &gain, error) ||
        (s->o->progress != NULL && hn_progress_stop(s->o->progress, error)))
        return FALSE;
    *effect = gain.effect.effect;
    return hn_journal_add_race(s->journal, a, b, *effect, error);
}

static double ms_at(const HnNodeTimes *t, const char *name)
{
    const HnNodeTime *at = hn_node_time(t, name);
    return at != NULL ? at->ms : NAN;
}

/* All nodes as f32, and all candidates as integers. */
gboolean hn_search_time_all(HnSearchState *s, GError **error)
{
    g_autoptr(HnQuantPlan) none = hn_search_none(s->base);
    if (s->f32 != NULL)
        return TRUE;
    const HnQuantPlan *const plans[] = { none, s->base };
    const HnNodeTimes *times[2];
    if (!hn_search_times(s, plans, 2, times, error))
        return FALSE;
    s->f32 = times[0];
    s->all = times[1];
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = hn_search_node(s, i);
        n->f32_ms = ms_at(s->f32, n->name);
        n->int_ms = hn_node_integer_ms(s->all, n->name, s->base->o.integers);
        s->f32_ms += isfinite(n->f32_ms) ? n->f32_ms : 0;
    }
    return TRUE;
}

guint hn_search_forms(const HnSearchState *s, const HnQuantPlan *p)
{
    guint n = 0;
    for (guint i = 0; i < s->out->nodes->len; i++)
        n += hn_search_has(s, p, hn_search_node(s, i));
    return n;
}
