/*
 * Products of rows with one list of sparse_cell.h at one level of instructions.
 */
#include "cpu/core/vec.h"
#include "cpu/gemm/rnn_cell.h"

#define VECTORS (HN_RNN_CELL / HN_LANES)
#define CHAINS 4 /* sums of one row: one alone waits for the multiply-add before it */

HN_TARGET static void HN_V(add_row)(float *sum, const float *x, const float *w, const int32_t *at, int64_t n)
{
    HN_VEC s[CHAINS][VECTORS];
    int64_t k = 0;
    HN_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        s[0][v] = HN_VLOAD(sum + v * HN_LANES);
        s[1][v] = s[2][v] = s[3][v] = HN_VSET(0);
    }
    for (; k + CHAINS <= n; k += CHAINS, w += CHAINS * HN_RNN_CELL) {
        HN_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            const HN_VEC a = HN_VSET(x[at[k + i]]);
            HN_UNROLL
            for (int v = 0; v < VECTORS; v++)
                s[i][v] = HN_VFMA(a, HN_VLOAD(w + i * HN_RNN_CELL + v * HN_LANES), s[i][v]);
        }
    }
    for (; k < n; k++, w += HN_RNN_CELL) {
        const HN_VEC a = HN_VSET(x[at[k]]);
        HN_UNROLL
        for (int v = 0; v < VECTORS; v++)
            s[0][v] = HN_VFMA(a, HN_VLOAD(w + v * HN_LANES), s[0][v]);
    }
    HN_UNROLL
    for (int v = 0; v < VECTORS; v++)
        HN_VSTORE(sum + v * HN_LANES, HN_VADD(HN_VADD(s[0][v], s[1][v]), HN_VADD(s[2][v], s[3][v])));
}

/* Four rows, which share the loads of weights. */
HN_TARGET static void HN_V(add_four)(float *const *sums, const float *const *x, const float *w, const int32_t *at,
                                     int64_t n)
{
    HN_VEC s[4][VECTORS];
    HN_UNROLL
    for (int r = 0; r < 4; r++) {
        HN_UNROLL
        for (int v = 0; v < VECTORS; v++)
            s[r][v] = HN_VLOAD(sums[r] + v * HN_LANES);
    }
    for (int64_t k = 0; k < n; k++, w += HN_RNN_CELL) {
        const int32_t i = at[k];
        HN_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const HN_VEC b = HN_VLOAD(w + v * HN_LANES);
            HN_UNROLL
            for (int r = 0; r < 4; r++)
                s[r][v] = HN_VFMA(HN_VSET(x[r][i]), b, s[r][v]);
        }
    }
    HN_UNROLL
    for (int r = 0; r < 4; r++) {
        HN_UNROLL
        for (int v = 0; v < VECTORS; v++)
            HN_VSTORE(sums[r] + v * HN_LANES, s[r][v]);
    }
}

#undef VECTORS
#undef CHAINS
