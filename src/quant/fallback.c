#include "quant/fallback.h"

#include <math.h>

#include "quant/int8_partition.h"

#define BACK 8           /* nodes that are tried to be given back, without a limit of time */
#define LITTLE 2.0       /* of the limits: so much more is a little */
#define NEAR 12          /* nodes that are tried to be left out next */
#define LEAVES 4         /* of them, one after the other */
#define RATES 24         /* prices of error that are tried, each twice the one before */
#define HALVINGS 4       /* between two of them */
#define COS_LIMIT 0.001  /* of a cosine that is no goal */
#define LEAST_COST 0.002 /* of the model's time: what giving up a node costs at least */

/* What f32 costs for the node, as a part of the model's time, or of its weights where time is not asked for. */
static double cost_of(const HnSearchState *s, const HnSensitivity *n)
{
    if (s->f32 == NULL)
        return n->weight_bytes / fmax(s->weight_bytes, 1) + LEAST_COST;
    const double lost = n->f32_ms - n->int_ms, part = isfinite(lost) && s->f32_ms > 0 ? fmax(lost, 0) / s->f32_ms : 0;
    return exp2(rint(log2(part + LEAST_COST))); /* powers of 2: times that differ a little make the same order */
}

/* What the node uses up of the limits. A cosine's distance from 1 grows with the square of an error, so that it adds
 * up, and so does the square of what scores change by; the worst cosine sees kinds of numbers that the mean leaves to
 * other measures. */
static double error_of(const HnSearchState *s, const HnSensitivity *n)
{
    const HnGoals *g = &s->o->goals;
    double most = COS_LIMIT, rest = 0;
    if (!n->tried)
        return 0;
    for (int i = 0; i < g->n; i++) {
        const HnMetric metric = g->goal[i].metric;
        const double part = hn_score_drop(metric, &n->alone, &s->out->original) / fmax(g->goal[i].most, 1e-9);
        if (metric == HN_METRIC_COS || metric == HN_METRIC_R2) /* half of r2's loss is the cosine's */
            most = fmax(g->goal[i].most, 1e-9) / (metric == HN_METRIC_R2 ? 2 : 1);
        if (metric != HN_METRIC_COS && isfinite(part) && part > 0)
            rest += metric == HN_METRIC_SCORES || metric == HN_METRIC_SQNR ? part * part : part;
    }
    const double mean = 1 - n->alone.cos, worst = 1 - n->alone.worst_cos;
    return rest + (isfinite(mean) && isfinite(worst) ? (fmax(mean, 0) + fmax(worst, 0)) / most : 0);
}

/* Error that f32 saves, for what it costs. */
static double gain_of(const HnSearchState *s, const HnSensitivity *n)
{
    return hn_search_pinned(s, n) ? -1 : error_of(s, n) / cost_of(s, n);
}

static gint by_gain(gconstpointer a, gconstpointer b, gpointer data)
{
    const double x = gain_of(data, *(HnSensitivity *const *)a), y = gain_of(data, *(HnSensitivity *const *)b);
    return (x < y) - (x > y);
}

gboolean hn_search_alone(HnSearchState *s, GError **error)
{
    const guint n = s->out->nodes->len;
    for (guint i = 0; i < n && !hn_tune_late(s->o->budget); i++) {
        HnSensitivity *node = hn_search_node(s, i);
        g_autofree gboolean *wanted = g_new0(gboolean, n);
        g_autofree char *what = g_strdup_printf("only '%s'", node->name);
        HnOutcome o;
        wanted[i] = TRUE;
        g_autoptr(HnQuantPlan) p = hn_search_plan(s, wanted, FALSE);
        hn_progress_tell(s->o->progress, "sensitivity", i, n);
        if (!hn_tune_try(&s->tune, p, what, FALSE, &o, error))
            return FALSE;
        node->tried = TRUE;
        node->alone = o.score;
        node->drop = o.drop;
    }
    return TRUE;
}

/* The plan without the `k` first nodes of the order. */
static gboolean try_without(HnSearchState *s, GPtrArray *order, guint k, HnQuantPlan **p, HnOutcome *o, GError **error)
{
    g_autofree gboolean *wanted = g_new0(gboolean, s->out->nodes->len);
    g_autofree char *what = g_strdup_printf("without %u", k);
    g_autoptr(GHashTable) first = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < k; i++)
        g_hash_table_add(first, order->pdata[i]);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const HnSensitivity *n = hn_search_node(s, i);
        wanted[i] = !g_hash_table_contains(first, n) || hn_search_pinned(s, n);
    }
    *p = hn_search_plan(s, wanted, TRUE);
    return hn_tune_try(&s->tune, *p, what, TRUE, o, error);
}

/* As few as possible of the first nodes of the order stay f32. */
static gboolean find_prefix(HnSearchState *s, GPtrArray *order, GError **error)
{
    const guint n = order->len;
    guint bad = 0, good = n;
    for (guint k = 1; bad + 1 < good && !hn_tune_late(s->o->budget);) {
        g_autoptr(HnQuantPlan) p = NULL;
        HnOutcome o;
        if (!try_without(s, order, k, &p, &o, error))
            return FALSE;
        if (o.met) {
            good = k;
            if (!hn_search_keep(s, g_steal_pointer(&p), &o, error))
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
static gboolean leave_one(HnSearchState *s, GPtrArray *order, HnQuantPlan **plan, double *part, GError **error)
{
    g_autoptr(HnQuantPlan) best = NULL;
    guint n = 0;
    for (guint i = 0; i < order->len && n < NEAR && !hn_tune_late(s->o->budget); i++) {
        const HnSensitivity *node = order->pdata[i];
        HnOutcome o;
        if (!hn_search_has(s, *plan, node) || hn_search_pinned(s, node))
            continue;
        n++;
        g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(*plan);
        g_autofree char *what =
            g_strdup_printf("without %u, '%s' too", s->out->nodes->len - hn_search_forms(s, *plan) + 1, node->name);
        hn_quant_plan_set_form(p, node->name, node->less);
        if (!hn_tune_try(&s->tune, p, what, TRUE, &o, error))
            return FALSE;
        if (o.part >= *part)
            continue;
        *part = o.part;
        hn_quant_plan_free(best);
        best = hn_quant_plan_copy(p);
        if (o.met)
            return hn_search_keep(s, g_steal_pointer(&p), &o, error);
    }
    hn_quant_plan_free(*plan);
    *plan = g_steal_pointer(&best);
    return TRUE;
}

/* Where a plan loses little more than it may, a few nodes are looked for without which it does not. */
static gboolean leave_few(HnSearchState *s, GPtrArray *order, const HnQuantPlan *from, double part, GError **error)
{
    HnQuantPlan *plan = part <= LITTLE ? hn_quant_plan_copy(from) : NULL;
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < LEAVES && plan != NULL && s->out->plan == NULL && !hn_tune_late(s->o->budget); i++)
        ok = leave_one(s, order, &plan, &part, error);
    hn_quant_plan_free(plan);
    return ok;
}

/* The plan that takes least time, with conversions, where error counts as so many ms a piece. */
static HnQuantPlan *plan_at(HnSearchState *s, double rate)
{
    g_autoptr(GHashTable) penalty = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    const HnPartitionOptions o = {
        .f32 = s->f32, .integers = s->all, .pinned = s->o->pinned, .penalty = penalty, .bonus = HN_SEARCH_BONUS
    };
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const double ms = rate * error_of(s, hn_search_node(s, i));
        g_hash_table_insert(penalty, hn_search_node(s, i)->name, g_memdup2(&ms, sizeof ms));
    }
    return hn_partition_choose(s->base, s->model, &o);
}

/* *met: it is within the goals, or a plan near it, and kept. */
static gboolean try_rate(HnSearchState *s, GPtrArray *order, double rate, gboolean *met, GError **error)
{
    g_autoptr(HnQuantPlan) p = plan_at(s, rate);
    HnOutcome o;
    g_autofree char *what = g_strdup_printf("%u of %u", hn_search_forms(s, p), s->out->nodes->len);
    *met = FALSE;
    if (hn_search_forms(s, p) == 0)
        return TRUE;
    if (!hn_tune_try(&s->tune, p, what, TRUE, &o, error))
        return FALSE;
    *met = o.met;
    if (o.met)
        return hn_search_keep(s, g_steal_pointer(&p), &o, error);
    if (s->out->plan != NULL)
        return TRUE;
    const gboolean ok = leave_few(s, order, p, o.part, error);
    *met = s->out->plan != NULL;
    return ok;
}

/* The lowest price of error whose plan will do, where time is known. */
static gboolean find_rate(HnSearchState *s, GPtrArray *order, GError **error)
{
    double all = 0, bad = 0, good = 0;
    for (guint i = 0; i < s->out->nodes->len; i++)
        all += error_of(s, hn_search_node(s, i));
    if (s->f32 == NULL || !(all > 0))
        return TRUE;
    for (int k = 0; k < RATES && good == 0 && !hn_tune_late(s->o->budget);
         k++) { /* all errors together: LEAST_COST at first */
        const double rate = exp2(k) * LEAST_COST * s->f32->total_ms / all;
        gboolean met;
        if (!try_rate(s, order, rate, &met, error))
            return FALSE;
        bad = met ? bad : rate;
        good = met ? rate : 0;
    }
    for (int k = 0; k < HALVINGS && good > 0 && !hn_tune_late(s->o->budget); k++) {
        const double rate = bad > 0 ? sqrt(bad * good) : good / 2;
        gboolean met;
        if (!try_rate(s, order, rate, &met, error))
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

static HnQuantPlan *plan_with(const HnSearchState *s, const HnSensitivity *n)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->out->plan);
    hn_quant_plan_set_form(p, n->name, (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(s->base->forms, n->name)));
    return p;
}

/* Those that make the plan faster, or smaller where time is not asked for, most first. */
static GArray *list_left(const HnSearchState *s)
{
    GArray *left = g_array_new(FALSE, FALSE, sizeof(Left));
    const double now = hn_search_ms(s, s->out->plan);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        Left l = { hn_search_node(s, i), 0 };
        if (hn_search_has(s, s->out->plan, l.node))
            continue;
        g_autoptr(HnQuantPlan) p = plan_with(s, l.node);
        l.ms = isnan(now) ? -cost_of(s, l.node) : hn_search_ms(s, p);
        if (isnan(now) || l.ms < now)
            g_array_append_val(left, l);
    }
    g_array_sort(left, by_ms);
    return left;
}

/* What stays f32 is tried in its form again, one by one. */
static gboolean give_back(HnSearchState *s, GError **error)
{
    if (s->out->plan == NULL)
        return TRUE;
    g_autoptr(GArray) left = list_left(s);
    const guint most = s->o->budget != NULL && s->o->budget->seconds > 0 ? left->len : MIN(left->len, BACK);
    for (guint i = 0; i < most && !hn_tune_late(s->o->budget); i++) {
        const HnSensitivity *n = g_array_index(left, Left, i).node;
        g_autoptr(HnQuantPlan) p = plan_with(s, n);
        g_autofree char *what = g_strdup_printf("'%s' again", n->name);
        HnOutcome o;
        if (!hn_tune_try(&s->tune, p, what, TRUE, &o, error) ||
            (o.met && !hn_search_keep(s, g_steal_pointer(&p), &o, error)))
            return FALSE;
    }
    return TRUE;
}

static gint by_noise(gconstpointer a, gconstpointer b, gpointer data)
{
    const HnSensitivity *x = *(HnSensitivity *const *)a, *y = *(HnSensitivity *const *)b;
    const double p = x->noise / cost_of(data, x), q = y->noise / cost_of(data, y);
    return (p < q) - (p > q);
}

gboolean hn_search_quick(HnSearchState *s, GError **error)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_ptr_array_extend(order, s->out->nodes, NULL, NULL);
    g_ptr_array_sort_with_data(order, by_noise, s);
    return find_prefix(s, order, error);
}

gboolean hn_search_by_error(HnSearchState *s, double part, GError **error)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_ptr_array_extend(order, s->out->nodes, NULL, NULL);
    g_ptr_array_sort_with_data(order, by_gain, s);
    if (!leave_few(s, order, s->base, part, error) || (s->out->plan == NULL && !find_rate(s, order, error)))
        return FALSE;
    if (s->out->plan == NULL && !find_prefix(s, order, error))
        return FALSE;
    return give_back(s, error);
}
