#include "prune/taylor.h"

#include <math.h>

/* Weight times gradient, over all that the layer multiplies channel `place` of class c by. */
static double change_of(const HnPruneMap *map, const HnPruneLayer *l, const HnTensor *gradient, int c, int place)
{
    const HnLinearRows *p = &l->rows;
    const float *w = p->w->data, *dw = gradient->data;
    g_autoptr(GArray) at = g_array_new(FALSE, FALSE, sizeof(int64_t));
    double sum = 0;
    for (int64_t g = 0; g < p->groups; g++) {
        g_array_set_size(at, 0);
        hn_prune_inputs(map, l, c, place, g, at);
        for (guint i = 0; i < at->len; i++)
            for (int64_t o = 0; o < p->outs; o++) {
                const int64_t e = (g * p->outs + o) * p->row + g_array_index(at, int64_t, i) * p->col;
                sum += (double)w[e] * (double)dw[e];
            }
    }
    return sum;
}

void hn_prune_taylor_add(const HnPruneMap *map, HnTensor *const *gradients, double *score)
{
    for (guint c = 0; c < map->classes->len; c++) {
        const HnPruneClass *k = map->classes->pdata[c];
        for (int place = 0; place < k->n; place++) {
            double sum = 0;
            for (guint i = 0; i < k->layers->len; i++) {
                const int layer = g_array_index(k->layers, int, i);
                if (gradients[layer] != NULL)
                    sum += change_of(map, map->layers->pdata[layer], gradients[layer], (int)c, place);
            }
            score[g_array_index(k->group->classes, int, place)] += isfinite(sum) ? fabs(sum) : 0;
        }
    }
}
