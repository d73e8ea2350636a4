/*
 * Tiles of the gradient of weights at one instruction level, for convweightgrad.c. Sums have names of their own, as in
 * cpu/gemm/gemm_kernel_loops.h: p##i and q##i for the two vectors of row i.
 */
#include "cpu/conv/weight_grad.h"
#include "cpu/core/vec.h"

#define TWO_ROWS_plain 6 /* of two vectors each: the sums and one of a and two of b fill the registers */
#define TWO_ROWS_avx2 6
#define TWO_ROWS_avx512 12

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define LOAD_LAST(p) (whole ? HN_VLOAD(p) : HN_VLOAD_N(p, tail))
#define BEGIN(i) HN_VEC p##i = HN_VSET(0), q##i = p##i;
#define RESUME(i)                                              \
    if (i < rows) {                                            \
        p##i = HN_VLOAD(t->c + i * t->c_pitch);                \
        if (two)                                               \
            q##i = HN_VLOAD(t->c + i * t->c_pitch + HN_LANES); \
    }
#define ADD(i)                           \
    if (i < rows) {                      \
        const HN_VEC v = HN_VSET(a[i]);  \
        p##i = HN_VFMA(v, b0, p##i);     \
        if (two)                         \
            q##i = HN_VFMA(v, b1, q##i); \
    }
#define END(i)                                                 \
    if (i < rows) {                                            \
        HN_VSTORE(t->c + i * t->c_pitch, p##i);                \
        if (two)                                               \
            HN_VSTORE(t->c + i * t->c_pitch + HN_LANES, q##i); \
    }

/* rows, two (vectors of b) and whole (the last one is) are constants after inlining. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(tile)(const HnWeightGradTile *t, const int rows,
                                                                       const gboolean two, const gboolean whole)
{
    const int tail = two ? t->cols - HN_LANES : t->cols;
    const int64_t a_step = t->a_step, b_step = t->b_step;
    EACH_ROW(BEGIN)
    if (!t->fresh) {
        EACH_ROW(RESUME)
    }
    for (int64_t line = 0; line < t->lines; line++) {
        const float *a = t->a[line] + t->a_at, *b = t->b[line] + t->b_at;
        for (int64_t k = t->n; k > 0; k--, a += a_step, b += b_step) {
            const HN_VEC b0 = two ? HN_VLOAD(b) : LOAD_LAST(b), b1 = two ? LOAD_LAST(b + HN_LANES) : b0;
            EACH_ROW(ADD)
        }
    }
    EACH_ROW(END)
}

#define TILE(n)                                                    \
    static HN_TARGET void HN_V(one_##n)(const HnWeightGradTile *t) \
    {                                                              \
        if (t->cols == HN_LANES)                                   \
            HN_V(tile)(t, n, FALSE, TRUE);                         \
        else                                                       \
            HN_V(tile)(t, n, FALSE, FALSE);                        \
    }
#define TILE_OF_TWO(n)                                             \
    static HN_TARGET void HN_V(two_##n)(const HnWeightGradTile *t) \
    {                                                              \
        if (t->cols == 2 * HN_LANES)                               \
            HN_V(tile)(t, n, TRUE, TRUE);                          \
        else                                                       \
            HN_V(tile)(t, n, TRUE, FALSE);                         \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE_OF_TWO(1)
TILE_OF_TWO(2)
TILE_OF_TWO(3)
TILE_OF_TWO(4)
TILE_OF_TWO(5)
TILE_OF_TWO(6)
#if HN_JOIN(TWO_ROWS, HN_LEVEL) > 6
TILE_OF_TWO(7)
TILE_OF_TWO(8)
TILE_OF_TWO(9)
TILE_OF_TWO(10)
TILE_OF_TWO(11)
TILE_OF_TWO(12)
#endif

static const HnWeightGradFn HN_V(tiles)[2][HN_WEIGHT_GRAD_ROWS] = {
#define SIX(v) HN_V(v##_1), HN_V(v##_2), HN_V(v##_3), HN_V(v##_4), HN_V(v##_5), HN_V(v##_6)
#define MORE(v) HN_V(v##_7), HN_V(v##_8), HN_V(v##_9), HN_V(v##_10), HN_V(v##_11), HN_V(v##_12)
    { SIX(one), MORE(one) },
#if HN_JOIN(TWO_ROWS, HN_LEVEL) > 6
    { SIX(two), MORE(two) },
#else
    { SIX(two) },
#endif
};

/* --- sums of rows --- */

/* `vectors`, a constant after inlining, side by side: memory is read in its own order. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(sum_some)(float *to, const float *from, int64_t pitch,
                                                                           int64_t n, const int vectors)
{
    HN_VEC sum[8];
    HN_UNROLL
    for (int v = 0; v < vectors; v++)
        sum[v] = HN_VLOAD(to + v * HN_LANES);
    for (int64_t i = 0; i < n; i++, from += pitch) {
        HN_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] = HN_VADD(sum[v], HN_VLOAD(from + v * HN_LANES));
    }
    HN_UNROLL
    for (int v = 0; v < vectors; v++)
        HN_VSTORE(to + v * HN_LANES, sum[v]);
}

static HN_TARGET void HN_V(sum_rows)(float *to, const float *from, int64_t pitch, int64_t n, int64_t cols)
{
    int64_t j = 0;
    for (; j + 8 * HN_LANES <= cols; j += 8 * HN_LANES)
        HN_V(sum_some)(to + j, from + j, pitch, n, 8);
    for (; j + 2 * HN_LANES <= cols; j += 2 * HN_LANES)
        HN_V(sum_some)(to + j, from + j, pitch, n, 2);
    for (; j + HN_LANES <= cols; j += HN_LANES)
        HN_V(sum_some)(to + j, from + j, pitch, n, 1);
    for (int64_t i = 0; j < cols && i < n; i++)
        for (int64_t k = j; k < cols; k++)
            to[k] += from[i * pitch + k];
}

/* n pixels of `channels` floats each, side by side; what lies some pixels on is on its way meanwhile. */
static HN_TARGET void HN_V(copy_pixels)(float *to, const float *from, int64_t pitch, int64_t n, int64_t channels)
{
    for (int64_t i = 0; i < n; i++, from += pitch, to += channels) {
        int64_t c = 0;
        for (; c + HN_LANES <= channels; c += HN_LANES) {
            __builtin_prefetch(from + 16 * pitch + c);
            HN_VSTORE(to + c, HN_VLOAD(from + c));
        }
        for (; c < channels; c++)
            to[c] = from[c];
    }
}

#undef EACH_ROW
#undef LOAD_LAST
#undef BEGIN
#undef RESUME
#undef ADD
#undef END
#undef TILE
#undef TILE_OF_TWO
#undef SIX
#undef MORE
