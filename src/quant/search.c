#include "quant/search.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "check/lockstep.h"
#include "quant/plan_file.h"
#include "quant/region.h"
#include "quant/timing.h"

#define TIMING_SECONDS 0.4 /* of profiling, for each form of the model in each round */
#define TIMING_ROUNDS 3
#define RACE_SECONDS 2.0 /* of each side at most */
#define ROUNDS 3         /* of choosing by time */
#define FASTER 0.99      /* a race is won with at most that part of the time */
#define BACK 8           /* nodes that are tried to be given back, without a limit of time */
#define LITTLE 2.0       /* of the limits: so much more is a little */
#define NEAR 12          /* nodes that are tried to be left out next */
#define LEAVES 4         /* of them, one after the other */
#define RATES 24         /* prices of error that are tried, each twice the one before */
#define HALVINGS 4       /* between two of them */
#define LEAST_COST 0.002 /* of the model's time: what giving up a node costs at least */

/* Part of its time that a node in integers may take longer, tried one after the other: where the first choice makes the
 * whole slower than it was, fewer nodes go. */
static const double bonuses[] = { 0.03, 0.15, 0.4 };

typedef struct {
    const HnSearchOptions *o;
    const HnQuantPlan *base;
    HnSearch *out;
    HnJournal *journal;
    guint64 end;    /* ns; 0: no limit */
    HnModel *model; /* prepared, to look at */
    const HnNodeTimes *f32, *all;
    double f32_ms; /* sum of f32's nodes */
} Search;

typedef struct {
    HnScore score;
    double drop, part; /* hn_goals_part() */
    gboolean met;
    guint64 bytes;
} Outcome;

static void sensitivity_free(gpointer data)
{
    HnSensitivity *s = data;
    g_free(s->name);
    g_free(s->op);
    g_free(s);
}

void hn_search_clear(HnSearch *s)
{
    g_clear_pointer(&s->nodes, g_ptr_array_unref);
    g_clear_pointer(&s->points, g_ptr_array_unref);
    g_clear_pointer(&s->plan, hn_quant_plan_free);
}

HnModel *hn_quant_build(const HnQuantPlan *p, const HnSearchOptions *o, HnQuantLog *log, GError **error)
{
    g_autoptr(HnModel) m = o->open(o->data, error);
    if (m == NULL)
        return NULL;
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    hn_quant_spread(spread, m);
    return hn_quant_apply(spread, m, o->budget, log, error) ? g_steal_pointer(&m) : NULL;
}

static gboolean is_late(Search *s)
{
    if (s->end != 0 && hn_now_ns() > s->end)
        s->out->out_of_time = TRUE;
    return s->out->out_of_time;
}

static HnSensitivity *node_at(const Search *s, guint i)
{
    return s->out->nodes->pdata[i];
}

static gboolean has_form(const HnQuantPlan *p, const HnSensitivity *n)
{
    return g_hash_table_contains(p->forms, n->name);
}

static gboolean is_pinned(const Search *s, const HnSensitivity *n)
{
    return s->o->pinned != NULL && g_hash_table_contains(s->o->pinned, n->name);
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

static GPtrArray *left_alone(const Search *s, const HnQuantPlan *p)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (!has_form(p, node_at(s, i)))
            g_ptr_array_add(names, g_strdup(node_at(s, i)->name));
    return names;
}

/* What the journal knows of the plan, or finds out now. */
static const HnTried *tried(Search *s, const HnQuantPlan *p, const char *what, GError **error)
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
    t->bytes = hn_weight_bytes(m);
    t->f32 = left_alone(s, p);
    return hn_journal_add_tried(s->journal, t, error) ? t : NULL;
}

static double predicted_ms(const Search *s, const HnQuantPlan *p)
{
    const HnRegionOptions o = { .f32 = s->f32, .integers = s->all };
    return s->all != NULL ? hn_region_ms(p, s->model, &o) : NAN;
}

static void add_point(Search *s, const char *what, const HnQuantPlan *plan, const Outcome *o)
{
    g_autofree char *hash = hn_quant_plan_hash(plan);
    const HnPoint p = { .what = (char *)what,
                        .plan = hash,
                        .score = o->score,
                        .drop = o->drop,
                        .met = o->met,
                        .bytes = o->bytes,
                        .ms = predicted_ms(s, plan),
                        .predicted = TRUE };
    hn_points_add(s->out->points, &p);
}

static gboolean try_plan(Search *s, const HnQuantPlan *p, const char *what, gboolean is_point, Outcome *out,
                         GError **error)
{
    if (s->o->progress != NULL && hn_progress_stop(s->o->progress, error))
        return FALSE;
    const HnTried *t = tried(s, p, what, error);
    if (t == NULL)
        return FALSE;
    *out = (Outcome){ t->score, hn_goals_drop(&s->o->goals, &t->score, &s->out->original, NULL),
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
        add_point(s, what, p, out);
    return TRUE;
}

/* p is the best plan so far; taken. */
static gboolean keep(Search *s, HnQuantPlan *p, const Outcome *o, GError **error)
{
    hn_quant_plan_free(s->out->plan);
    s->out->plan = p;
    s->out->score = o->score;
    s->out->drop = o->drop;
    g_autofree char *hash = hn_quant_plan_hash(p);
    hn_points_choose(s->out->points, hash);
    return s->o->improved == NULL || s->o->improved(s->o->data, p, error);
}

/* Shifts of biases make up for what all nodes of the base do together: others need others (HnSearchOptions.refine). */
static HnQuantPlan *apart(HnQuantPlan *p)
{
    g_hash_table_remove_all(p->shifts);
    return p;
}

/* A plan with the forms of the base for those nodes that `wanted` marks. */
static HnQuantPlan *plan_of(const Search *s, const gboolean *wanted)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->base);
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (!wanted[i])
            hn_quant_plan_set_form(p, node_at(s, i)->name, HN_FORM_F32);
    return apart(p);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

static HnQuantPlan *without_forms(const HnQuantPlan *p)
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
static gboolean time_round(Search *s, Timed *t, GError **error)
{
    const HnTimingOptions o = { .backend = s->o->backend,
                                .threads = s->o->threads,
                                .in = hn_scorer_inputs(s->o->scorer, 0),
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
static gboolean times_of(Search *s, const HnQuantPlan *const *plans, guint n, const HnNodeTimes **out, GError **error)
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
static gboolean race(Search *s, const HnQuantPlan *before, const HnQuantPlan *after, double *effect, GError **error)
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
    if (mb == NULL || !hn_measure_gain(ma, mb, s->o->backend, hn_scorer_inputs(s->o->scorer, 0), &o, &gain, error) ||
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
static gboolean time_all(Search *s, GError **error)
{
    g_autoptr(HnQuantPlan) none = without_forms(s->base);
    if (s->f32 != NULL)
        return TRUE;
    const HnQuantPlan *const plans[] = { none, s->base };
    const HnNodeTimes *times[2];
    if (!times_of(s, plans, 2, times, error))
        return FALSE;
    s->f32 = times[0];
    s->all = times[1];
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = node_at(s, i);
        n->f32_ms = ms_at(s->f32, n->name);
        n->int_ms = hn_node_integer_ms(s->all, n->name, s->base->o.integers);
        s->f32_ms += isfinite(n->f32_ms) ? n->f32_ms : 0;
    }
    return TRUE;
}

static guint forms_of(const Search *s, const HnQuantPlan *p)
{
    guint n = 0;
    for (guint i = 0; i < s->out->nodes->len; i++)
        n += has_form(p, node_at(s, i));
    return n;
}

/* --- by error ----------------------------------------------------------------------------------------------------- */

/* What f32 costs for the node, as a part of the model's time, or of its weights where time is not asked for. */
static double cost_of(const Search *s, const HnSensitivity *n)
{
    double all = 0;
    for (guint i = 0; i < s->out->nodes->len; i++)
        all += node_at(s, i)->weight_bytes;
    if (s->f32 == NULL)
        return n->weight_bytes / fmax(all, 1) + LEAST_COST;
    const double lost = n->f32_ms - n->int_ms, part = isfinite(lost) && s->f32_ms > 0 ? fmax(lost, 0) / s->f32_ms : 0;
    return exp2(rint(log2(part + LEAST_COST))); /* powers of 2: times that differ a little make the same order */
}

/* The distance of a cosine from 1 grows with the square of an error, so that it adds up; the worst one sees kinds of
 * numbers that the mean leaves to other measures. */
static double error_of(const HnSensitivity *n)
{
    const double mean = 1 - n->alone.cos, worst = 1 - n->alone.worst_cos;
    return n->tried && isfinite(mean) && isfinite(worst) ? fmax(mean, 0) + fmax(worst, 0) : 0;
}

/* Error that f32 saves, for what it costs. */
static double gain_of(const Search *s, const HnSensitivity *n)
{
    return is_pinned(s, n) ? -1 : error_of(n) / cost_of(s, n);
}

static gint by_gain(gconstpointer a, gconstpointer b, gpointer data)
{
    const double x = gain_of(data, *(HnSensitivity *const *)a), y = gain_of(data, *(HnSensitivity *const *)b);
    return (x < y) - (x > y);
}

static gboolean try_alone(Search *s, GError **error)
{
    const guint n = s->out->nodes->len;
    for (guint i = 0; i < n && !is_late(s); i++) {
        HnSensitivity *node = node_at(s, i);
        g_autofree gboolean *wanted = g_new0(gboolean, n);
        g_autofree char *what = g_strdup_printf("only '%s'", node->name);
        Outcome o;
        wanted[i] = TRUE;
        g_autoptr(HnQuantPlan) p = plan_of(s, wanted);
        hn_progress_tell(s->o->progress, "sensitivity", i, n);
        if (!try_plan(s, p, what, FALSE, &o, error))
            return FALSE;
        node->tried = TRUE;
        node->alone = o.score;
        node->drop = o.drop;
    }
    return TRUE;
}

/* The plan without the `k` first nodes of the order. */
static gboolean try_without(Search *s, GPtrArray *order, guint k, HnQuantPlan **p, Outcome *o, GError **error)
{
    g_autofree gboolean *wanted = g_new0(gboolean, s->out->nodes->len);
    g_autofree char *what = g_strdup_printf("without %u", k);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        guint place = 0;
        g_ptr_array_find(order, node_at(s, i), &place);
        wanted[i] = place >= k || is_pinned(s, node_at(s, i));
    }
    *p = plan_of(s, wanted);
    return try_plan(s, *p, what, TRUE, o, error);
}

/* As few as possible of the first nodes of the order stay f32. */
static gboolean find_prefix(Search *s, GPtrArray *order, GError **error)
{
    const guint n = order->len;
    guint bad = 0, good = n;
    for (guint k = 1; bad + 1 < good && !is_late(s);) {
        g_autoptr(HnQuantPlan) p = NULL;
        Outcome o;
        if (!try_without(s, order, k, &p, &o, error))
            return FALSE;
        if (o.met) {
            good = k;
            if (!keep(s, g_steal_pointer(&p), &o, error))
                return FALSE;
        } else {
            bad = k;
        }
        k = good == n ? MIN(2 * k, (bad + n) / 2) : (bad + good) / 2; /* doubled at first, then halved */
        k = MAX(k, bad + 1);
    }
    return TRUE;
}

/* One more node is left out of the plan: the one of those that promise most without which it loses least. *part: of the
 * plan, then of the new one. */
static gboolean leave_one(Search *s, GPtrArray *order, HnQuantPlan **plan, double *part, GError **error)
{
    g_autoptr(HnQuantPlan) best = NULL;
    guint n = 0;
    for (guint i = 0; i < order->len && n < NEAR && !is_late(s); i++) {
        const HnSensitivity *node = order->pdata[i];
        Outcome o;
        if (!has_form(*plan, node) || is_pinned(s, node))
            continue;
        n++;
        g_autoptr(HnQuantPlan) p = apart(hn_quant_plan_copy(*plan));
        g_autofree char *what =
            g_strdup_printf("without %u, '%s' too", s->out->nodes->len - forms_of(s, *plan) + 1, node->name);
        hn_quant_plan_set_form(p, node->name, HN_FORM_F32);
        if (!try_plan(s, p, what, TRUE, &o, error))
            return FALSE;
        if (o.part >= *part)
            continue;
        *part = o.part;
        hn_quant_plan_free(best);
        best = hn_quant_plan_copy(p);
        if (o.met)
            return keep(s, g_steal_pointer(&p), &o, error);
    }
    hn_quant_plan_free(*plan);
    *plan = g_steal_pointer(&best);
    return TRUE;
}

/* Where all nodes together lose little more than they may, a few are looked for without which they do not. */
static gboolean leave_few(Search *s, GPtrArray *order, double part, GError **error)
{
    HnQuantPlan *plan = part <= LITTLE ? hn_quant_plan_copy(s->base) : NULL;
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < LEAVES && plan != NULL && s->out->plan == NULL && !is_late(s); i++)
        ok = leave_one(s, order, &plan, &part, error);
    hn_quant_plan_free(plan);
    return ok;
}

/* The plan that takes least time, with conversions, where error counts as so many ms a piece. */
static HnQuantPlan *plan_at(Search *s, double rate)
{
    g_autoptr(GHashTable) penalty = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    const HnRegionOptions o = {
        .f32 = s->f32, .integers = s->all, .pinned = s->o->pinned, .penalty = penalty, .bonus = bonuses[0]
    };
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const double ms = rate * error_of(node_at(s, i));
        g_hash_table_insert(penalty, node_at(s, i)->name, g_memdup2(&ms, sizeof ms));
    }
    return apart(hn_region_choose(s->base, s->model, &o));
}

/* *met: it is within the goals, and kept. */
static gboolean try_rate(Search *s, double rate, gboolean *met, GError **error)
{
    g_autoptr(HnQuantPlan) p = plan_at(s, rate);
    Outcome o;
    g_autofree char *what = g_strdup_printf("%u of %u", forms_of(s, p), s->out->nodes->len);
    *met = FALSE;
    if (forms_of(s, p) == 0)
        return TRUE;
    if (!try_plan(s, p, what, TRUE, &o, error))
        return FALSE;
    *met = o.met;
    return !o.met || keep(s, g_steal_pointer(&p), &o, error);
}

/* The lowest price of error whose plan will do, where time is known. */
static gboolean find_rate(Search *s, GError **error)
{
    double all = 0, bad = 0, good = 0;
    for (guint i = 0; i < s->out->nodes->len; i++)
        all += error_of(node_at(s, i));
    if (s->f32 == NULL || !(all > 0))
        return TRUE;
    for (int k = 0; k < RATES && good == 0 && !is_late(s); k++) { /* all errors together: LEAST_COST at first */
        const double rate = exp2(k) * LEAST_COST * s->f32->total_ms / all;
        gboolean met;
        if (!try_rate(s, rate, &met, error))
            return FALSE;
        bad = met ? bad : rate;
        good = met ? rate : 0;
    }
    for (int k = 0; k < HALVINGS && good > 0 && !is_late(s); k++) {
        const double rate = bad > 0 ? sqrt(bad * good) : good / 2;
        gboolean met;
        if (!try_rate(s, rate, &met, error))
            return FALSE;
        bad = met ? bad : rate;
        good = met ? rate : good;
    }
    return TRUE;
}

/* A node that is f32 in the plan so far, and what the plan would take with it in its form. */
typedef struct {
    const HnSensitivity *node;
    double ms;
} Left;

static gint by_ms(gconstpointer a, gconstpointer b)
{
    const Left *x = a, *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

static HnQuantPlan *plan_with(const Search *s, const HnSensitivity *n)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->out->plan);
    hn_quant_plan_set_form(p, n->name, (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(s->base->forms, n->name)));
    return p;
}

/* Those that make the plan faster, or smaller where time is not asked for, most first. */
static GArray *list_left(const Search *s)
{
    GArray *left = g_array_new(FALSE, FALSE, sizeof(Left));
    const double now = predicted_ms(s, s->out->plan);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        Left l = { node_at(s, i), 0 };
        if (has_form(s->out->plan, l.node))
            continue;
        g_autoptr(HnQuantPlan) p = plan_with(s, l.node);
        l.ms = isnan(now) ? -cost_of(s, l.node) : predicted_ms(s, p);
        if (isnan(now) || l.ms < now)
            g_array_append_val(left, l);
    }
    g_array_sort(left, by_ms);
    return left;
}

/* What stays f32 is tried in its form again, one by one. */
static gboolean give_back(Search *s, GError **error)
{
    if (s->out->plan == NULL)
        return TRUE;
    g_autoptr(GArray) left = list_left(s);
    const guint most = s->o->seconds > 0 ? left->len : MIN(left->len, BACK);
    for (guint i = 0; i < most && !is_late(s); i++) {
        const HnSensitivity *n = g_array_index(left, Left, i).node;
        g_autoptr(HnQuantPlan) p = plan_with(s, n);
        g_autofree char *what = g_strdup_printf("'%s' again", n->name);
        Outcome o;
        if (!try_plan(s, p, what, TRUE, &o, error) || (o.met && !keep(s, g_steal_pointer(&p), &o, error)))
            return FALSE;
    }
    return TRUE;
}

static gboolean settle_by_error(Search *s, double part, GError **error)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_ptr_array_extend(order, s->out->nodes, NULL, NULL);
    g_ptr_array_sort_with_data(order, by_gain, s);
    if (!leave_few(s, order, part, error) || (s->out->plan == NULL && !find_rate(s, error)))
        return FALSE;
    if (s->out->plan == NULL && !find_prefix(s, order, error))
        return FALSE;
    return give_back(s, error);
}

/* --- by time ------------------------------------------------------------------------------------------------------ */

/* Times of nodes that have just been measured in integers are worth more than those before. */
static HnNodeTimes *merged(const HnNodeTimes *before, const HnNodeTimes *now)
{
    HnNodeTimes *t = hn_node_times_new();
    const HnNodeTimes *const both[] = { before, now };
    t->total_ms = now->total_ms;
    for (int k = 0; k < 2; k++) {
        GHashTableIter iter;
        gpointer name, at;
        g_hash_table_iter_init(&iter, both[k]->nodes);
        while (g_hash_table_iter_next(&iter, &name, &at))
            g_hash_table_insert(t->nodes, g_strdup(name), g_memdup2(at, sizeof(HnNodeTime)));
    }
    return t;
}

static void mark_slower(Search *s, const HnQuantPlan *before, const HnQuantPlan *now)
{
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (has_form(before, node_at(s, i)) && !has_form(now, node_at(s, i)))
            node_at(s, i)->why = "slower";
}

/* p instead of the plan so far, where it is faster. *won tells. */
static gboolean challenge(Search *s, HnQuantPlan *p, gboolean *won, GError **error)
{
    Outcome o;
    double effect;
    *won = FALSE;
    if (!try_plan(s, p, "without slower ones", TRUE, &o, error))
        return FALSE;
    if (!o.met || (s->o->most_bytes > 0 && o.bytes > s->o->most_bytes))
        return TRUE;
    if (!race(s, s->out->plan, p, &effect, error))
        return FALSE;
    *won = effect <= FASTER;
    if (!*won)
        return TRUE;
    mark_slower(s, s->out->plan, p);
    return keep(s, hn_quant_plan_copy(p), &o, error);
}

/* One round; *more: something went. */
static gboolean drop_slow(Search *s, const HnNodeTimes *ints, gboolean *more, GError **error)
{
    guint before = forms_of(s, s->out->plan), fewest = G_MAXUINT;
    *more = FALSE;
    for (gsize k = 0; k < G_N_ELEMENTS(bonuses) && !*more && !is_late(s); k++) {
        const HnRegionOptions o = { .f32 = s->f32, .integers = ints, .pinned = s->o->pinned, .bonus = bonuses[k] };
        g_autoptr(HnQuantPlan) p = apart(hn_region_choose(s->out->plan, s->model, &o));
        const guint left = forms_of(s, p);
        if (left == before)
            break;
        if (left == fewest) /* the same as with a smaller bonus */
            continue;
        fewest = left;
        if (!challenge(s, p, more, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean settle_by_time(Search *s, GError **error)
{
    g_autoptr(HnNodeTimes) ints = NULL;
    for (int round = 0; round < ROUNDS && !is_late(s); round++) {
        gboolean more;
        const HnQuantPlan *plan = s->out->plan;
        const HnNodeTimes *now;
        if (!times_of(s, &plan, 1, &now, error))
            return FALSE;
        HnNodeTimes *both = merged(ints != NULL ? ints : s->all, now);
        hn_node_times_free(ints);
        ints = both;
        if (!drop_slow(s, ints, &more, error))
            return FALSE;
        s->out->slower = more && forms_of(s, s->out->plan) == 0;
        if (!more || s->out->slower)
            break;
    }
    return TRUE;
}

/* What depends on the plan as a whole is made again for the one found, and kept where it loses no more. */
static gboolean refine(Search *s, GError **error)
{
    if (s->o->refine == NULL || s->out->plan == NULL || s->out->slower ||
        forms_of(s, s->out->plan) == forms_of(s, s->base))
        return TRUE;
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(s->out->plan);
    Outcome o;
    if (!s->o->refine(s->o->data, &p, error) || !try_plan(s, p, "refined", TRUE, &o, error))
        return FALSE;
    return !o.met || o.drop > s->out->drop || keep(s, g_steal_pointer(&p), &o, error);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static double int_bytes(const HnNode *n, HnQuantForm form)
{
    const HnTensor *w = hn_quant_weight(n)->weight;
    return (double)w->n * (form == HN_FORM_W4 ? 0.5 : 1);
}

static gboolean list_nodes(Search *s, GError **error)
{
    HnModel *m = s->model = s->o->open(s->o->data, error);
    if (m == NULL)
        return FALSE;
    g_autoptr(GPtrArray) found = hn_quant_candidates(m);
    for (guint i = 0; i < found->len; i++) {
        const HnNode *n = found->pdata[i];
        const HnQuantForm form = hn_quant_plan_form(s->base, n);
        if (form == HN_FORM_F32)
            continue;
        HnSensitivity *x = g_new0(HnSensitivity, 1);
        x->name = g_strdup(hn_quant_name(n));
        x->op = g_strdup(n->op_type);
        x->weight_bytes = (double)hn_quant_weight(n)->weight->bytes;
        x->int_bytes = int_bytes(n, form);
        x->f32_ms = x->int_ms = x->drop = x->accumulated = NAN;
        g_ptr_array_add(s->out->nodes, x);
    }
    const Outcome f32 = { .score = s->out->original, .met = TRUE, .bytes = hn_weight_bytes(m) };
    g_autoptr(HnQuantPlan) none = without_forms(s->base);
    add_point(s, "f32", none, &f32);
    g_autoptr(GHashTable) regions = hn_regions(s->base, m);
    for (guint i = 0; i < s->out->nodes->len; i++)
        node_at(s, i)->region = GPOINTER_TO_UINT(g_hash_table_lookup(regions, node_at(s, i)->name));
    return TRUE;
}

/* Errors at nodes' outputs, of one sample. */
static gboolean accumulate(Search *s, GError **error)
{
    HnQuantLog log;
    g_autoptr(HnModel) f32 = s->o->open(s->o->data, error);
    g_autoptr(HnModel) m = f32 != NULL ? hn_quant_build(s->base, s->o, &log, error) : NULL;
    const HnLockstepOptions o = {
        .per_layer = TRUE, .threads = s->o->threads, .budget = s->o->budget, .progress = s->o->progress
    };
    const HnSide a = { f32, s->o->backend }, b = { m, s->o->backend };
    g_autoptr(HnLockstep) l = m != NULL ? hn_lockstep_new(&a, &b, &o, error) : NULL;
    if (l == NULL || !hn_lockstep_run(l, hn_scorer_inputs(s->o->scorer, 0), error))
        return FALSE;
    g_autoptr(GHashTable) rows = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < hn_lockstep_rows(l); i++)
        g_hash_table_insert(rows, hn_lockstep_row(l, i)->match.a->name, (gpointer)hn_lockstep_row(l, i));
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const HnLockstepRow *row = g_hash_table_lookup(rows, node_at(s, i)->name);
        if (row != NULL && row->accumulated.samples > 0)
            node_at(s, i)->accumulated = row->accumulated.sqnr;
    }
    return TRUE;
}

static void set_forms(Search *s)
{
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = node_at(s, i);
        n->form = s->out->plan != NULL ? (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(s->out->plan->forms, n->name))
                                       : HN_FORM_F32;
        if (n->form != HN_FORM_F32)
            n->why = NULL;
        else if (n->why == NULL)
            n->why = "error";
    }
}

static gboolean search(Search *s, GError **error)
{
    const HnSearchOptions *o = s->o;
    Outcome all;
    if (!list_nodes(s, error))
        return FALSE;
    if (s->out->nodes->len == 0)
        return TRUE;
    if (o->by_time && (!o->fixed || o->all_alone) && !time_all(s, error))
        return FALSE;
    if (!try_plan(s, s->base, o->fixed ? "the plan" : "all", TRUE, &all, error) ||
        (all.met && !keep(s, hn_quant_plan_copy(s->base), &all, error)))
        return FALSE;
    if (o->accumulated && !accumulate(s, error))
        return FALSE;
    if ((!all.met && !o->fixed) || o->all_alone)
        if (!try_alone(s, error))
            return FALSE;
    if (!o->fixed && !all.met && !settle_by_error(s, all.part, error))
        return FALSE;
    if (!o->fixed && o->by_time && s->out->plan != NULL && !settle_by_time(s, error))
        return FALSE;
    if (!o->fixed && !refine(s, error))
        return FALSE;
    set_forms(s);
    hn_points_finish(s->out->points, s->journal);
    return TRUE;
}

gboolean hn_quant_search(const HnQuantPlan *base, const HnSearchOptions *o, HnSearch *out, GError **error)
{
    g_autoptr(HnJournal) own = o->journal == NULL ? hn_journal_new() : NULL;
    Search s = { .o = o,
                 .base = base,
                 .out = out,
                 .journal = own != NULL ? own : o->journal,
                 .end = o->seconds > 0 ? hn_now_ns() + (guint64)(o->seconds * 1e9) : 0 };
    *out = (HnSearch){ .nodes = g_ptr_array_new_with_free_func(sensitivity_free), .points = hn_points_new() };
    hn_scorer_original(o->scorer, &out->original);
    const gboolean ok = search(&s, error);
    hn_model_free(s.model);
    return ok;
}
