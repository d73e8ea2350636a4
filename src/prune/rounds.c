#include "prune/rounds.h"

#include <math.h>
#include <string.h>

#include "op/infer.h"

/* Channels that class k of a round's model keeps: of n in the dense model `last` stay in the end. */
static int width_after(int n, int last, int round, int rounds)
{
    return round == rounds ? last : MAX(last, (int)lrint(n * pow((double)last / n, (double)round / rounds)));
}

/* keep[] of a round, whose classes have the names of the first round's. */
static int *widths_of(const HnPruneMap *first, const int *last, const HnPruneMap *map, int round, int rounds)
{
    int *keep = g_new(int, map->classes->len + 1u);
    for (guint i = 0; i < map->classes->len; i++) {
        const HnPruneClass *k = map->classes->pdata[i];
        keep[i] = k->n;
        for (guint c = 0; c < first->classes->len; c++) {
            const HnPruneClass *dense = first->classes->pdata[c];
            if (strcmp(dense->name, k->name) == 0)
                keep[i] = MIN(k->n, width_after(dense->n, last[c], round, rounds));
        }
    }
    return keep;
}

static HnModel *run_round(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, GError **error)
{
    g_autoptr(HnPruned) p = hn_prune_run(map, o, keep, error);
    g_autoptr(HnModel) m = p != NULL ? hn_pruned_model(p, error) : NULL;
    return m != NULL && hn_graph_infer(m->graph, FALSE, error) ? g_steal_pointer(&m) : NULL;
}

HnModel *hn_prune_in_rounds(const HnPruneMap *map, const HnPruneOptions *o, const int *keep, int rounds, GError **error)
{
    g_autofree int *first = widths_of(map, keep, map, 1, rounds);
    g_autoptr(HnModel) m = run_round(map, o, first, error);
    HnPruneOptions later = *o;
    later.wanted = NULL;
    for (int round = 2; round <= rounds && m != NULL; round++) {
        if (o->learner != NULL && o->learner->heal != NULL && !o->learner->heal(o->learner->data, &m, error))
            return NULL;
        if (!hn_graph_infer(m->graph, FALSE, error))
            return NULL;
        g_autoptr(HnPruneMap) next = hn_prune_map_new(m, o->budget, error);
        g_autofree int *widths = next != NULL ? widths_of(map, keep, next, round, rounds) : NULL;
        HnModel *less = next != NULL ? run_round(next, &later, widths, error) : NULL;
        g_clear_pointer(&next, hn_prune_map_free);
        hn_model_free(m);
        m = less;
    }
    return g_steal_pointer(&m);
}
