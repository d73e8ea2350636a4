#include "quant/search.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "perf/profile.h"

#define TIMING_SECONDS 1.0 /* of profiling, for each form of the model */
#define TIMING_ROUNDS 3

typedef struct {
    const HnSearchOptions *o;
    const HnQuantPlan *base;
    HnSearch *out;
    guint64 end; /* ns; 0: no limit */
} Search;

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

/* --- trials ------------------------------------------------------------------------------------------------------- */

static gboolean try_plan(Search *s, const HnQuantPlan *p, const char *what, HnScore *score, double *drop,
                         GError **error)
{
    HnQuantLog log;
    if (s->o->progress != NULL && hn_progress_stop(s->o->progress, error))
        return FALSE;
    if (s->o->known == NULL || !s->o->known(s->o->data, p, score)) {
        g_autoptr(HnModel) m = hn_quant_build(p, s->o, &log, error);
        if (m == NULL || !hn_scorer_run(s->o->scorer, m, score, error))
            return FALSE;
    }
    *drop = hn_score_drop(s->o->metric, score, &s->out->original);
    s->out->trials++;
    const HnTrial t = { p, s->out->trials, what, *score, *drop };
    if (s->o->trial != NULL)
        s->o->trial(s->o->data, &t);
    return TRUE;
}

/* A plan with the forms of the base for those nodes that `wanted` marks. */
static HnQuantPlan *plan_of(const Search *s, const gboolean *wanted)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->base);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const HnSensitivity *n = s->out->nodes->pdata[i];
        if (!wanted[i])
            hn_quant_plan_set_form(p, n->name, HN_FORM_F32);
    }
    return p;
}

/* Noise over signal, of which a smaller one is better whatever the metric. */
static double noise_of(const HnSensitivity *n)
{
    return n->tried && !isnan(n->alone.sqnr) ? -n->alone.sqnr : -INFINITY;
}

static gint by_noise(gconstpointer a, gconstpointer b)
{
    const double x = noise_of(*(HnSensitivity *const *)a), y = noise_of(*(HnSensitivity *const *)b);
    return (x < y) - (x > y);
}

static gboolean try_alone(Search *s, GError **error)
{
    const guint n = s->out->nodes->len;
    for (guint i = 0; i < n && !is_late(s); i++) {
        HnSensitivity *node = s->out->nodes->pdata[i];
        g_autofree gboolean *wanted = g_new0(gboolean, n);
        g_autofree char *what = g_strdup_printf("only '%s'", node->name);
        wanted[i] = TRUE;
        g_autoptr(HnQuantPlan) p = plan_of(s, wanted);
        hn_progress_tell(s->o->progress, "sensitivity", i, n);
        if (!try_plan(s, p, what, &node->alone, &node->drop, error))
            return FALSE;
        node->tried = TRUE;
    }
    return TRUE;
}

/* The plan without the `k` most sensitive nodes. */
static gboolean try_without(Search *s, GPtrArray *order, guint k, HnQuantPlan **p, HnScore *score, double *drop,
                            GError **error)
{
    g_autofree gboolean *wanted = g_new0(gboolean, s->out->nodes->len);
    g_autofree char *what = g_strdup_printf("without %u", k);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        guint place = 0;
        g_ptr_array_find(order, s->out->nodes->pdata[i], &place);
        wanted[i] = place >= k;
    }
    *p = plan_of(s, wanted);
    return try_plan(s, *p, what, score, drop, error);
}

static void keep(Search *s, HnQuantPlan *p, const HnScore *score, double drop)
{
    hn_quant_plan_free(s->out->plan);
    s->out->plan = p;
    s->out->score = *score;
    s->out->drop = drop;
}

/* As few of the most sensitive nodes as possible stay f32. */
static gboolean find_prefix(Search *s, GError **error)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_ptr_array_extend(order, s->out->nodes, NULL, NULL);
    g_ptr_array_sort(order, by_noise);
    const guint n = order->len;
    guint bad = 0, good = n;
    for (guint k = 1; bad + 1 < good && !is_late(s);) {
        HnQuantPlan *p = NULL;
        HnScore score;
        double drop;
        if (!try_without(s, order, k, &p, &score, &drop, error)) {
            hn_quant_plan_free(p);
            return FALSE;
        }
        if (drop <= s->o->max_drop) {
            good = k;
            keep(s, p, &score, drop);
        } else {
            bad = k;
            hn_quant_plan_free(p);
        }
        k = good == n ? MIN(2 * k, (bad + n) / 2) : (bad + good) / 2; /* doubled at first, then halved */
        k = MAX(k, bad + 1);
    }
    return TRUE;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnSession *session;
    HnTensor *const *in;
    HnTensor **out;
    int n_out;
} Run;

static gboolean run_once(gpointer data, guint64 i, GError **error)
{
    Run *r = data;
    (void)i;
    for (int k = 0; k < r->n_out; k++)
        g_clear_pointer(&r->out[k], hn_tensor_unref);
    return hn_session_run(r->session, r->in, r->out, error);
}

/* Own time of each node by the name of its first output, ms. Integers that are converted for a node are its own. */
static GHashTable *times_of(Search *s, HnModel *m, GError **error)
{
    const HnSessionOptions so = { .threads = s->o->threads, .budget = s->o->budget };
    g_autoptr(HnSession) session = hn_session_new(m, s->o->backend, &so, error);
    if (session == NULL)
        return NULL;
    Run r = { session, hn_scorer_inputs(s->o->scorer, 0), NULL, hn_session_n_outputs(session) };
    const HnProfileOptions po = { .run = run_once, .data = &r, .seconds = TIMING_SECONDS };
    HnProfile profile;
    GHashTable *times = NULL;
    r.out = g_new0(HnTensor *, (gsize)r.n_out + 1);
    hn_profile_init(&profile, session);
    if (hn_profile_measure(&profile, &po, s->o->progress, error)) {
        hn_profile_finish(&profile, NULL);
        times = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        for (guint i = 0; i < profile.rows->len; i++) {
            const HnProfileRow *row = profile.rows->pdata[i];
            const HnValue *v = row->node != NULL ? hn_node_out(row->node, 0) : NULL;
            if (v != NULL && isfinite(row->ms))
                g_hash_table_insert(times, g_strdup(v->name), g_memdup2(&row->ms, sizeof row->ms));
        }
    }
    hn_profile_clear(&profile);
    for (int k = 0; k < r.n_out; k++)
        hn_tensor_unref(r.out[k]);
    g_free(r.out);
    return times;
}

static double total(GHashTable *times)
{
    GHashTableIter iter;
    gpointer ms;
    double sum = 0;
    g_hash_table_iter_init(&iter, times);
    while (g_hash_table_iter_next(&iter, NULL, &ms))
        sum += *(const double *)ms;
    return sum;
}

static double time_of(GHashTable *times, const char *name)
{
    const double *ms = g_hash_table_lookup(times, name);
    return ms != NULL ? *ms : NAN;
}

/* Nodes whose integer form takes longer go back to f32, round by round, while that makes the whole faster. */
static gboolean drop_slow(Search *s, GError **error)
{
    g_autoptr(HnModel) f32 = s->o->open(s->o->data, error);
    g_autoptr(GHashTable) before = f32 != NULL ? times_of(s, f32, error) : NULL;
    double least = INFINITY;
    if (before == NULL)
        return FALSE;
    for (int round = 0; round < TIMING_ROUNDS && s->out->plan != NULL && !is_late(s); round++) {
        HnQuantLog log;
        g_autoptr(HnModel) m = hn_quant_build(s->out->plan, s->o, &log, error);
        g_autoptr(GHashTable) after = m != NULL ? times_of(s, m, error) : NULL;
        g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(s->out->plan);
        guint slow = 0;
        if (after == NULL)
            return FALSE;
        if (total(after) >= least)
            break;
        least = total(after);
        for (guint i = 0; i < s->out->nodes->len; i++) {
            HnSensitivity *n = s->out->nodes->pdata[i];
            n->f32_ms = time_of(before, n->name);
            if (g_hash_table_lookup(p->forms, n->name) == NULL)
                continue;
            n->int_ms = time_of(after, n->name);
            if (!(n->int_ms > n->f32_ms))
                continue;
            hn_quant_plan_set_form(p, n->name, HN_FORM_F32);
            n->why = "slower";
            slow++;
        }
        HnScore score;
        double drop;
        if (slow == 0)
            break;
        if (!try_plan(s, p, "without slower ones", &score, &drop, error))
            return FALSE;
        if (drop > s->o->max_drop)
            break;
        keep(s, g_steal_pointer(&p), &score, drop);
    }
    return TRUE;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static gboolean list_nodes(Search *s, GError **error)
{
    g_autoptr(HnModel) m = s->o->open(s->o->data, error);
    if (m == NULL)
        return FALSE;
    g_autoptr(GPtrArray) found = hn_quant_candidates(m);
    for (guint i = 0; i < found->len; i++) {
        const HnNode *n = found->pdata[i];
        if (hn_quant_plan_form(s->base, n) == HN_FORM_F32)
            continue;
        HnSensitivity *x = g_new0(HnSensitivity, 1);
        x->name = g_strdup(hn_node_out(n, 0)->name);
        x->op = g_strdup(n->op_type);
        x->weight_bytes = (double)hn_node_in(n, 1)->weight->bytes;
        x->f32_ms = x->int_ms = x->drop = NAN;
        g_ptr_array_add(s->out->nodes, x);
    }
    return TRUE;
}

static void set_forms(Search *s)
{
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = s->out->nodes->pdata[i];
        n->form = s->out->plan != NULL ? (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(s->out->plan->forms, n->name))
                                       : HN_FORM_F32;
        if (n->form != HN_FORM_F32)
            n->why = NULL;
        else if (n->why == NULL)
            n->why = "error";
    }
}

gboolean hn_quant_search(const HnQuantPlan *base, const HnSearchOptions *o, HnSearch *out, GError **error)
{
    Search s = { o, base, out, o->seconds > 0 ? hn_now_ns() + (guint64)(o->seconds * 1e9) : 0 };
    HnScore score;
    double drop;
    *out = (HnSearch){ .nodes = g_ptr_array_new_with_free_func(sensitivity_free) };
    hn_scorer_original(o->scorer, &out->original);
    if (!list_nodes(&s, error))
        return FALSE;
    if (out->nodes->len == 0)
        return TRUE;
    if (!try_plan(&s, base, "all", &score, &drop, error))
        return FALSE;
    const gboolean enough = drop <= o->max_drop;
    if (enough)
        keep(&s, hn_quant_plan_copy(base), &score, drop);
    if ((!enough || o->all_alone) && !try_alone(&s, error))
        return FALSE;
    if (!enough && !find_prefix(&s, error))
        return FALSE;
    if (out->plan != NULL && o->by_time && !drop_slow(&s, error))
        return FALSE;
    set_forms(&s);
    return TRUE;
}
