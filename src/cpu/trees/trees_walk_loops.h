/*
 * Loops of trees_walk.c that the compiler makes vectors of, at one instruction level.
 */
#include "cpu/core/cpu_level.h"
#include "cpu/trees/trees_walk.h"

static HN_TARGET void HN_V(make_keys)(int32_t *keys, int32_t stride, const HnPackedTrees *p, const float *x,
                                      int64_t features, int64_t n)
{
    const HnTreeColumn *column = p->column;
    const int32_t columns = (int32_t)p->n_columns;
    for (int64_t r = 0; r < n; r++) {
        int32_t *restrict k = keys + r * stride;
        const float *restrict row = x + r * features;
        for (int32_t c = 0; c < columns; c++) {
            const float v = row[column[c].feature];
            const int32_t key = hn_tree_key32(v);
            k[c] = v == v ? key : column[c].nan;
        }
    }
}

/* The sum over trees, 8 sums at a time. */
static HN_TARGET double HN_V(sum_values)(const HnCellValue *restrict value, const int32_t *restrict leaf, int64_t n)
{
    double sum[8] = { 0 };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sum[j] += (double)value[leaf[i + j]].value;
    for (; i < n; i++)
        sum[i % 8] += (double)value[leaf[i]].value;
    for (int width = 4; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            sum[j] += sum[j + width];
    return sum[0];
}

static HN_TARGET void HN_V(add_values)(double *restrict sum, const HnCellValue *restrict value,
                                       const int32_t *restrict leaf, int n)
{
    for (int i = 0; i < n; i++)
        sum[i] += (double)value[leaf[i]].value;
}
