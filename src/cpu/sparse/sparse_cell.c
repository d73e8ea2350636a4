#include "cpu/sparse/sparse_cell.h"

#include <string.h>

#include "cpu/gemm/rnn_cell.h"

#define HN_LOOPS "cpu/sparse/sparse_cell_loops.h"
#include "base/every_level.h"

#define MOST_LISTED 0.45 /* of all vectors: more are as fast without lists */
#define LEAST 4096       /* weights: fewer take no time in any way */

/* Of direction d, the first weight of a panel's gate. */
static const char *weights_of(const HnSparseCell *c, const HnTensor *w, int64_t d, int64_t panel, int64_t gate)
{
    const int64_t row = (d * c->gates + gate) * c->units + panel * HN_RNN_CELL;
    return (const char *)w->data + (gsize)(row * c->inputs) * sizeof(float);
}

/* Input i's weights of the panel's units, and 0 for those that there are not; FALSE: all are 0. */
static gboolean get_vector(const HnSparseCell *c, const char *from, int64_t panel, int64_t i, float *vector)
{
    const int64_t units = MIN(HN_RNN_CELL, c->units - panel * HN_RNN_CELL);
    gboolean any = FALSE;
    memset(vector, 0, HN_RNN_CELL * sizeof *vector);
    for (int64_t u = 0; u < units; u++) {
        memcpy(&vector[u], from + (gsize)(u * c->inputs + i) * sizeof(float), sizeof(float));
        any = any || vector[u] != 0;
    }
    return any;
}

/* Goes through all lists in order, and fills those of `first`, `at` and `to` that are not NULL; returns how many
 * entries. */
static int64_t fill(const HnSparseCell *c, const HnTensor *w, int64_t *first, int32_t *at, float *to)
{
    int64_t n = 0, list = 0;
    float vector[HN_RNN_CELL];
    for (int64_t d = 0; d < c->directions; d++)
        for (int64_t p = 0; p < c->panels; p++)
            for (int64_t g = 0; g < c->gates; g++, list++) {
                const char *from = weights_of(c, w, d, p, g);
                if (first != NULL)
                    first[list] = n;
                for (int64_t i = 0; i < c->inputs; i++) {
                    if (!get_vector(c, from, p, i, vector))
                        continue;
                    if (at != NULL)
                        at[n] = (int32_t)i;
                    if (to != NULL)
                        memcpy(to + n * HN_RNN_CELL, vector, sizeof vector);
                    n++;
                }
            }
    if (first != NULL)
        first[list] = n;
    return n;
}

HnSparseCell *hn_sparse_cell_new(const HnTensor *w, int gates)
{
    const int64_t units = w->dims[1] / gates, panels = (units + HN_RNN_CELL - 1) / HN_RNN_CELL;
    if (w->n < LEAST || w->dims[2] > G_MAXINT32)
        return NULL;
    HnSparseCell *c = g_new0(HnSparseCell, 1);
    *c = (HnSparseCell){
        .directions = w->dims[0], .panels = panels, .gates = gates, .units = units, .inputs = w->dims[2]
    };
    const int64_t lists = c->directions * panels * gates, entries = fill(c, w, NULL, NULL, NULL);
    if ((double)entries > MOST_LISTED * (double)(lists * c->inputs)) {
        g_free(c);
        return NULL;
    }
    c->first = g_new(int64_t, (gsize)lists + 1);
    c->at = g_new(int32_t, (gsize)entries + 1);
    fill(c, w, c->first, c->at, NULL);
    return c;
}

void hn_sparse_cell_free(HnSparseCell *c)
{
    if (c == NULL)
        return;
    g_free(c->first);
    g_free(c->at);
    g_free(c);
}

gsize hn_sparse_cell_bytes(const HnSparseCell *c)
{
    const int64_t entries = c->first[c->directions * c->panels * c->gates];
    return (gsize)(MAX(entries, 1) * HN_RNN_CELL) * sizeof(float);
}

void hn_sparse_cell_pack(const HnSparseCell *c, void *to, const HnTensor *w)
{
    fill(c, w, NULL, NULL, to);
}

typedef void (*RowFn)(float *sum, const float *x, const float *w, const int32_t *at, int64_t n);
typedef void (*FourFn)(float *const *sums, const float *const *x, const float *w, const int32_t *at, int64_t n);

void hn_sparse_cell_add(const HnSparseCell *c, const float *packed, int64_t list, float *const *sums,
                        const float *const *x, int n)
{
    static const RowFn row[HN_LEVELS] = HN_TABLE_OF_LEVELS(add_row);
    static const FourFn four[HN_LEVELS] = HN_TABLE_OF_LEVELS(add_four);
    const int level = hn_cpu_level();
    const int64_t from = c->first[list], entries = c->first[list + 1] - from;
    const float *w = packed + from * HN_RNN_CELL;
    int r = 0;
    for (; r + 4 <= n; r += 4)
        four[level](sums + r, x + r, w, c->at + from, entries);
    for (; r < n; r++)
        row[level](sums[r], x[r], w, c->at + from, entries);
}
