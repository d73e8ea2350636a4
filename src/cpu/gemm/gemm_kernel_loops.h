/*
 * Tiles and packing at one instruction level, for gemm_kernel.c.
 */
#include "cpu/core/turn_vec.h"

#include "cpu/gemm/gemm_kernel_tile.h"

#define LANES HN_LANES

/* k rows of a whole panel, `row` bytes apart. */
static HN_TARGET void HN_V(pack)(float *to, const char *from, int64_t row, int64_t k)
{
    for (int64_t i = 0; i < k; i++, to += 2 * LANES, from += row) {
        const float *const in = (gconstpointer)from; /* perhaps misaligned */
        HN_VSTORE(to, HN_VLOAD(in));
        HN_VSTORE(to + LANES, HN_VLOAD(in + LANES));
    }
}

/* k rows of a panel whose columns, `col` bytes apart, are adjacent in memory; `width` of them, then zeros. */
static HN_TARGET void HN_V(pack_columns)(float *to, const char *from, int64_t col, int64_t k, int64_t width)
{
    for (int64_t half = 0; half < 2; half++, to += LANES, from += LANES * col, width -= LANES)
        for (int64_t i = 0; i < k; i += LANES) {
            const int some = (int)MIN(k - i, LANES);
            HN_VEC v[LANES];
            for (int c = 0; c < LANES; c++) {
                const float *const in = (gconstpointer)(from + c * col);
                v[c] = c >= width ? HN_VSET(0) : some == LANES ? HN_VLOAD(in + i) : HN_VLOAD_N(in + i, some);
            }
            HN_V(turn_vectors)(v);
            for (int r = 0; r < some; r++)
                HN_VSTORE(to + (i + r) * 2 * LANES, v[r]);
        }
}

/* to[k][n] from k rows of n <= HN_GEMM_KERNEL_MAX_ROWS adjacent elements each, `pitch` apart. Whole vectors, of which
 * the next rows overwrite the rest, as long as there are such rows. */
static HN_TARGET void HN_V(pack_strip)(float *to, const float *from, int64_t pitch, int64_t k, int n)
{
    for (; k > LANES && n <= LANES && pitch >= LANES; k--, to += n, from += pitch)
        HN_VSTORE(to, HN_VLOAD(from));
    for (; k > 0; k--, to += n, from += pitch) {
        int i = 0;
        for (; i + LANES <= n; i += LANES)
            HN_VSTORE(to + i, HN_VLOAD(from + i));
        if (i < n) {
            const HN_VEC v = HN_VLOAD_N(from + i, n - i);
            HN_VSTORE_N(to + i, v, n - i);
        }
    }
}

/* Three planes are what images have. */
static HN_TARGET void HN_V(interleave)(float *restrict to, const float *restrict from, int64_t plane, int64_t planes,
                                       int64_t n)
{
    if (planes == 3) {
        const float *restrict second = from + plane, *restrict third = second + plane;
        for (int64_t i = 0; i < n; i++) {
            to[3 * i] = from[i];
            to[3 * i + 1] = second[i];
            to[3 * i + 2] = third[i];
        }
        return;
    }
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = 0; i < n; i++)
            to[i * planes + p] = from[p * plane + i];
}

#undef LANES
