#include "prune/count.h"

#include "check/outputs.h"
#include "perf/step_facts.h"

typedef struct {
    double flops;
    GHashTable *by_node; /* may be NULL */
} Count;

static void count_step(const HnStep *s, int depth, gpointer data)
{
    Count *c = data;
    HnCost cost;
    (void)depth;
    if (s->node == NULL || !hn_step_has_types(s))
        return;
    hn_step_cost(s, &cost);
    c->flops += cost.flops;
    const HnValue *v = s->origin != NULL ? hn_node_result(s->origin) : NULL;
    if (c->by_node == NULL || v == NULL)
        return;
    double *of = g_hash_table_lookup(c->by_node, v->name);
    if (of == NULL)
        g_hash_table_insert(c->by_node, g_strdup(v->name), of = g_new0(double, 1));
    *of += cost.flops;
}

gboolean hn_prune_flops(HnModel *m, HnTensor *const *in, HnBudget *budget, GHashTable *by_node, double *flops,
                        GError **error)
{
    g_autoptr(HnSession) s =
        hn_session_new(m, &hn_backend_null, &(HnSessionOptions){ .threads = 1, .budget = budget }, error);
    if (s == NULL)
        return FALSE;
    Count c = { 0, by_node };
    if (!hn_outputs_plan(s, in, error))
        return FALSE;
    hn_session_foreach_step(s, count_step, &c);
    *flops = c.flops;
    return TRUE;
}

gboolean hn_prune_flops_of_layers(HnModel *base, HnTensor *const *in, HnBudget *budget, HnPruneCosts *costs,
                                  GError **error)
{
    g_autoptr(GHashTable) by_node = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (!hn_prune_flops(base, in, budget, by_node, &costs->rest, error))
        return FALSE;
    for (guint i = 0; i < costs->map->layers->len; i++) {
        const HnPruneLayer *l = costs->map->layers->pdata[i];
        const double *of = g_hash_table_lookup(by_node, hn_node_out(l->node, 0)->name);
        costs->layer[i] = of != NULL ? *of : 0;
        costs->rest -= costs->layer[i];
    }
    for (guint i = 0; i < costs->others->len; i++) {
        HnPruneOther *o = costs->others->pdata[i];
        const double *of = g_hash_table_lookup(by_node, o->node);
        o->cost = of != NULL ? *of : 0;
        costs->rest -= o->cost;
    }
    return TRUE;
}

HnModel *hn_prune_narrow(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, GError **error)
{
    HnPruneOptions plain = *o;
    plain.data = NULL;
    plain.fit = FALSE;
    plain.score = HN_PRUNE_RANDOM;
    g_autoptr(HnPruned) p = hn_prune_run(map, &plain, keep, error);
    return p != NULL ? hn_pruned_model(p, error) : NULL;
}
