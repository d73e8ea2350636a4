#include "quant/store.h"

#include "perf/contest.h"

#define MOST_TIME 1.02 /* of the plan's so far */

static HnQuantForm form_in(const HnQuantPlan *p, const HnSensitivity *n)
{
    return (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, n->name));
}

static gint by_bytes(gconstpointer a, gconstpointer b)
{
    const HnSensitivity *x = *(HnSensitivity *const *)a, *y = *(HnSensitivity *const *)b;
    return (x->weight_bytes < y->weight_bytes) - (x->weight_bytes > y->weight_bytes);
}

static void add_name(HnNode *n, gpointer data)
{
    g_hash_table_insert(data, (gpointer)hn_quant_name(n), n);
}

static gboolean computes(const HnSearchState *s)
{
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const HnQuantForm form = form_in(s->out->plan, hn_search_node(s, i));
        if (form == HN_FORM_INT8 || form == HN_FORM_DYNAMIC)
            return TRUE;
    }
    return FALSE;
}

/* Nodes that are f32 and could have weights of 8 bits, the largest first. */
static GPtrArray *list_f32(const HnSearchState *s)
{
    GPtrArray *left = g_ptr_array_new();
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    hn_graph_foreach_node(s->model->graph, add_name, nodes);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = hn_search_node(s, i);
        const HnNode *node = g_hash_table_lookup(nodes, n->name);
        if (form_in(s->out->plan, n) == HN_FORM_F32 && !hn_search_pinned(s, n) && node != NULL &&
            hn_quant_form_fit(node, HN_FORM_W8, &s->base->o) == HN_FORM_W8)
            g_ptr_array_add(left, n);
    }
    g_ptr_array_sort(left, by_bytes);
    return left;
}

/* The first `k` of them in 8 bits. */
static gboolean try_first(HnSearchState *s, const GPtrArray *left, guint k, HnQuantPlan **p, HnOutcome *o,
                          GError **error)
{
    g_autofree char *what = g_strdup_printf("%u stored in 8 bits", k);
    *p = hn_quant_plan_copy(s->out->plan);
    for (guint i = 0; i < k; i++)
        hn_quant_plan_set_form(*p, ((const HnSensitivity *)left->pdata[i])->name, HN_FORM_W8);
    return hn_tune_try(&s->tune, *p, what, TRUE, o, error);
}

/* As many of the first as the goals allow. *best: NULL where not even one. */
static gboolean find_most(HnSearchState *s, const GPtrArray *left, HnQuantPlan **best, HnOutcome *outcome,
                          GError **error)
{
    guint good = 0, bad = left->len + 1;
    for (guint k = left->len; good + 1 < bad && !hn_tune_late(s->o->budget); k = (good + bad) / 2) {
        g_autoptr(HnQuantPlan) p = NULL;
        HnOutcome o;
        if (!try_first(s, left, k, &p, &o, error))
            return FALSE;
        if (!o.met) {
            bad = k;
            continue;
        }
        good = k;
        *outcome = o;
        hn_quant_plan_free(*best);
        *best = g_steal_pointer(&p);
    }
    return TRUE;
}

gboolean hn_search_store(HnSearchState *s, GError **error)
{
    if (s->out->plan == NULL || s->out->slower || !computes(s))
        return TRUE;
    g_autoptr(GPtrArray) left = list_f32(s);
    g_autoptr(HnQuantPlan) best = NULL;
    HnOutcome o;
    HnEffect effect;
    if (left->len == 0 || !find_most(s, left, &best, &o, error))
        return left->len == 0;
    if (best == NULL)
        return TRUE;
    if (s->o->by_time && !hn_tune_race(&s->tune, s->out->plan, best, MOST_TIME, &effect, error))
        return FALSE;
    if (s->o->by_time && (effect.effect > MOST_TIME || hn_decide(&effect, MOST_TIME) == HN_LOST))
        return TRUE;
    return hn_search_keep(s, g_steal_pointer(&best), &o, error);
}
