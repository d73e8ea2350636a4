#include "cpu/sparse/sparse_cost.h"

#define OF_FOUR 1.6       /* a product of a strip of four, so many of tiles */
#define OF_ONE 2.3        /* of one output; */
#define OF_ONE_WINDOW 4.5 /* ... of windows */
#define OF_ENTRY 2.0      /* an entry and a strip as such, for each block of columns */
#define OF_STRIP 8.0
#define OF_TURN 4.0 /* a vector that is turned round */
#define OF_REORDER 8.0
#define OF_REORDER_FAR 35.0 /* ... of what is not in the caches */
#define FAR 262144          /* elements */

gboolean hn_sparse_weights_stay(const HnStep *s, int i)
{
    const HnSlot *w = s->in[i].slot;
    return w->constant && !w->variable && w->layout == NULL && w->tensor->data != NULL;
}

gboolean hn_sparse_pays(const HnSparseCount *count, const HnSparseWork *work)
{
    const int64_t most = hn_sparse_columns(), lanes = hn_sparse_lanes();
    const double blocks = (double)((work->columns + most - 1) / most);
    const double vectors = (double)((work->columns + lanes - 1) / lanes);
    const double four = (double)count->entries4 * HN_SPARSE_STRIP, one = (double)count->entries1;
    const double entries = (double)(count->entries4 + count->entries1);
    double sparse = vectors * (four * OF_FOUR + one * (work->window ? OF_ONE_WINDOW : OF_ONE)) +
                    blocks * (entries * OF_ENTRY + (double)count->strips * OF_STRIP);
    if (work->turned)
        sparse += vectors * (double)(count->inputs + count->outs) * OF_TURN;
    sparse += (double)work->reorder / (double)lanes * (work->reorder > FAR ? OF_REORDER_FAR : OF_REORDER);
    return sparse < (double)(count->outs * count->inputs) * work->dense / (double)lanes;
}
