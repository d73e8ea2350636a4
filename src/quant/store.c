#include "quant/store.h"

#include "perf/contest.h"

#define MOST_TIME 1.02 /* of the plan's so far */
#define MOST_SKIPPED 4 /* weights that the goals do not allow */

static HnQuantForm form_in(const HnQuantPlan *p, const HnSensitivity *n)
{
    return (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, n->name));
}

/* A weight, and the f32 nodes that read it: it goes from the file when none of them wants floats. */
typedef struct {
    const HnValue *weight;
    GPtrArray *nodes; /* HnSensitivity * */
} Unit;

static void unit_free(gpointer unit)
{
    g_ptr_array_unref(((Unit *)unit)->nodes);
    g_free(unit);
}

static gint by_bytes(gconstpointer a, gconstpointer b)
{
    const gsize x = (*(Unit *const *)a)->weight->weight->bytes, y = (*(Unit *const *)b)->weight->weight->bytes;
    return (x < y) - (x > y);
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

static void add_node(GPtrArray *units, HnSensitivity *n, const HnValue *weight)
{
    for (guint i = 0; i < units->len; i++)
        if (((const Unit *)units->pdata[i])->weight == weight) {
            g_ptr_array_add(((Unit *)units->pdata[i])->nodes, n);
            return;
        }
    Unit *u = g_new0(Unit, 1);
    *u = (Unit){ weight, g_ptr_array_new() };
    g_ptr_array_add(u->nodes, n);
    g_ptr_array_add(units, u);
}

/* Of nodes that are f32 and could have weights of 8 bits, the largest first. */
static GPtrArray *list_f32(const HnSearchState *s)
{
    GPtrArray *units = g_ptr_array_new_with_free_func(unit_free);
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    hn_graph_foreach_node(s->model->graph, add_name, nodes);
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = hn_search_node(s, i);
        const HnNode *node = g_hash_table_lookup(nodes, n->name);
        if (form_in(s->out->plan, n) == HN_FORM_F32 && !hn_search_pinned(s, n) && node != NULL &&
            hn_quant_form_fit(node, HN_FORM_W8, &s->base->o) == HN_FORM_W8)
            add_node(units, n, hn_quant_weight(node));
    }
    g_ptr_array_sort(units, by_bytes); /* a merge sort: what is equal stays in order */
    return units;
}

/* What was found. */
typedef struct {
    HnQuantPlan *plan; /* NULL: the one that the search had */
    HnOutcome outcome;
    guint nodes; /* that are stored in 8 bits */
} Stored;

/* Units [from, to) in 8 bits, too; *met: they stay. */
static gboolean try_units(HnSearchState *s, const GPtrArray *units, guint from, guint to, Stored *found, gboolean *met,
                          GError **error)
{
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(found->plan != NULL ? found->plan : s->out->plan);
    guint nodes = found->nodes;
    HnOutcome o;
    for (guint i = from; i < to; i++) {
        const Unit *u = units->pdata[i];
        for (guint k = 0; k < u->nodes->len; k++)
            hn_quant_plan_set_form(p, ((const HnSensitivity *)u->nodes->pdata[k])->name, HN_FORM_W8);
        nodes += u->nodes->len;
    }
    g_autofree char *what = g_strdup_printf("%u stored in 8 bits", nodes);
    if (!hn_tune_try(&s->tune, p, what, TRUE, &o, error))
        return FALSE;
    *met = o.met;
    if (!o.met)
        return TRUE;
    hn_quant_plan_free(found->plan);
    *found = (Stored){ g_steal_pointer(&p), o, nodes };
    return TRUE;
}

/* As many of units [from, ...) as the goals allow in a row; *next: the one behind those, which they do not allow. */
static gboolean find_row(HnSearchState *s, const GPtrArray *units, guint from, Stored *found, guint *next,
                         GError **error)
{
    guint good = from, bad = units->len + 1;
    for (guint to = units->len; good + 1 < bad && !hn_tune_late(s->o->budget); to = (good + bad) / 2) {
        gboolean met;
        if (!try_units(s, units, good, to, found, &met, error))
            return FALSE;
        *(met ? &good : &bad) = to;
    }
    *next = good;
    return TRUE;
}

/* One that loses too much does not keep the smaller ones from it. */
static gboolean find_most(HnSearchState *s, const GPtrArray *units, Stored *found, GError **error)
{
    guint from = 0;
    for (int skipped = 0; from < units->len && skipped <= MOST_SKIPPED; skipped++) {
        guint next;
        if (hn_tune_late(s->o->budget))
            return TRUE;
        if (!find_row(s, units, from, found, &next, error))
            return FALSE;
        from = next + 1;
    }
    return TRUE;
}

/* p is no slower than what the search found so far; *keep. */
static gboolean race(HnSearchState *s, const HnQuantPlan *p, gboolean *keep, GError **error)
{
    HnEffect effect;
    *keep = TRUE;
    if (!s->o->by_time)
        return TRUE;
    if (!hn_tune_race(&s->tune, s->out->plan, p, MOST_TIME, 0, &effect, error))
        return FALSE;
    *keep = effect.effect <= MOST_TIME && hn_decide(&effect, MOST_TIME) != HN_LOST;
    return TRUE;
}

gboolean hn_search_store(HnSearchState *s, GError **error)
{
    if (s->out->plan == NULL || s->out->slower || !computes(s))
        return TRUE;
    g_autoptr(GPtrArray) units = list_f32(s);
    Stored found = { .plan = NULL };
    gboolean keep = FALSE;
    gboolean ok = find_most(s, units, &found, error);
    ok = ok && (found.plan == NULL || race(s, found.plan, &keep, error));
    if (ok && keep)
        return hn_search_keep(s, found.plan, &found.outcome, error);
    hn_quant_plan_free(found.plan);
    return ok;
}
