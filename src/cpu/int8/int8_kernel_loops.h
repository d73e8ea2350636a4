/*
 * Tiles of bytes at one instruction level with vectors (int8_level.h), for int8_kernel.c.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx2
#endif
#include "cpu/int8/int8_kernel.h"
#include "cpu/int8/int8_level.h"

#define IVEC HN_JOIN(IVEC, HN_LEVEL)
#define ISET HN_JOIN(ISET, HN_LEVEL)
#define IADD HN_JOIN(IADD, HN_LEVEL)
#define ILOAD HN_JOIN(ILOAD, HN_LEVEL)
#define ISTORE HN_JOIN(ISTORE, HN_LEVEL)
#define DOT(sum, a, b) (pairs ? HN_JOIN(HN_PAIR_DOT, HN_LEVEL)(sum, a, b) : HN_JOIN(HN_INT8_DOT, HN_LEVEL)(sum, a, b))
#define TWO HN_JOIN(HN_INT8_TWO, HN_LEVEL)
#define LANES HN_JOIN(HN_INT8_LANES, HN_LEVEL)
#define ROWS HN_JOIN(HN_INT8_ROWS, HN_LEVEL)

#define PER_BASE 3 /* rows: so many are addressed from one register, and two with the step */
#define B_STEP (2 * LANES * HN_INT8_GROUP)

/* A group of `rows` rows, from base[i] of every third one, into the sums. */
#define ADD_GROUP(sum, base, step, at, b)                                                    \
    {                                                                                        \
        const IVEC b0 = ILOAD(b), b1 = vectors > 1 ? ILOAD((b) + B_STEP / 2) : b0;           \
        HN_UNROLL                                                                            \
        for (int r = 0; r < rows; r++) {                                                     \
            int32_t four;                                                                    \
            memcpy(&four, (base)[r / PER_BASE] + r % PER_BASE * (step) + (at), sizeof four); \
            const IVEC v = ISET(four);                                                       \
            (sum)[0][r] = DOT((sum)[0][r], v, b0);                                           \
            if (vectors > 1)                                                                 \
                (sum)[1][r] = DOT((sum)[1][r], v, b1);                                       \
        }                                                                                    \
    }

/* The same of a group and the next one; B is read from memory, for registers are few. */
#define ADD_TWO(sum, base, step, b)                                                                         \
    {                                                                                                       \
        HN_UNROLL                                                                                           \
        for (int r = 0; r < rows; r++) {                                                                    \
            int32_t four[2];                                                                                \
            memcpy(four, (base)[r / PER_BASE] + r % PER_BASE * (step), sizeof four);                        \
            const IVEC v = ISET(four[0]), w = ISET(four[1]);                                                \
            (sum)[0][r] = TWO((sum)[0][r], v, ILOAD(b), w, ILOAD((b) + B_STEP));                            \
            if (vectors > 1)                                                                                \
                (sum)[1][r] = TWO((sum)[1][r], v, ILOAD((b) + B_STEP / 2), w, ILOAD((b) + B_STEP * 3 / 2)); \
        }                                                                                                   \
    }

/* rows, vectors, pairs and two are constants after inlining. Few sums are taken in several chains, for each addition
 * waits for the one before. */
static inline __attribute__((always_inline)) HN_TARGET void
HN_V(int8_kernel)(const HnInt8Kernel *t, const int rows, const int vectors, const gboolean pairs, const gboolean two)
{
    const int chains = rows * vectors <= 2 ? 4 : rows * vectors <= 6 ? 2 : 1, bases = (rows + PER_BASE - 1) / PER_BASE;
    IVEC sum[4][2][HN_INT8_MAX_ROWS];
    const int8_t *b = t->b;
    const int64_t step = t->step;
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[0][0][r] = ILOAD(t->begin);
        if (vectors > 1)
            sum[0][1][r] = ILOAD(t->begin + LANES);
        HN_UNROLL
        for (int k = 1; k < chains; k++)
            sum[k][0][r] = sum[k][1][r] = ISET(0);
    }
    for (int64_t s = 0; s < t->segs; s++) {
        const uint8_t *base[4];
        HN_UNROLL
        for (int i = 0; i < bases; i++)
            base[i] = t->a + t->seg_at[s] + i * PER_BASE * step;
        int64_t g = t->groups;
        for (; two && g >= 2; g -= 2, b += 2 * B_STEP) {
            ADD_TWO(sum[0], base, step, b)
            HN_UNROLL
            for (int i = 0; i < bases; i++)
                base[i] += 2 * HN_INT8_GROUP;
        }
        for (; chains > 1 && g >= chains; g -= chains, b += chains * B_STEP) {
            HN_UNROLL
            for (int k = 0; k < chains; k++)
                ADD_GROUP(sum[k], base, step, k * HN_INT8_GROUP, b + k * B_STEP)
            HN_UNROLL
            for (int i = 0; i < bases; i++)
                base[i] += chains * HN_INT8_GROUP;
        }
        for (; g > 0; g--, b += B_STEP) {
            ADD_GROUP(sum[0], base, step, 0, b)
            HN_UNROLL
            for (int i = 0; i < bases; i++)
                base[i] += HN_INT8_GROUP;
        }
    }
    for (int64_t g = 0; g < t->more; g++, b += B_STEP) {
        const uint8_t *base[4];
        HN_UNROLL
        for (int i = 0; i < bases; i++)
            base[i] = t->a + t->more_at[g] + i * PER_BASE * step;
        ADD_GROUP(sum[0], base, step, 0, b)
    }
    HN_UNROLL
    for (int r = 0; r < rows; r++) {
        HN_UNROLL
        for (int k = 1; k < chains; k++) {
            sum[0][0][r] = IADD(sum[0][0][r], sum[k][0][r]);
            if (vectors > 1)
                sum[0][1][r] = IADD(sum[0][1][r], sum[k][1][r]);
        }
        ISTORE(t->c + r * 2 * LANES, sum[0][0][r]);
        if (vectors > 1)
            ISTORE(t->c + r * 2 * LANES + LANES, sum[0][1][r]);
    }
}

#define ONE_TILE(name, n, vectors, pairs, two)                    \
    static HN_TARGET void HN_V(name##_##n)(const HnInt8Kernel *t) \
    {                                                             \
        HN_V(int8_kernel)(t, n, vectors, pairs, two);             \
    }
#define TILE(n)                            \
    ONE_TILE(byte_one, n, 1, FALSE, FALSE) \
    ONE_TILE(byte_two, n, 2, FALSE, FALSE) \
    ONE_TILE(pair_one, n, 1, TRUE, FALSE)  \
    ONE_TILE(pair_two, n, 2, TRUE, FALSE)  \
    ONE_TILE(both_one, n, 1, FALSE, TRUE)  \
    ONE_TILE(both_two, n, 2, FALSE, TRUE)
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if HN_JOIN(HN_INT8_ROWS, HN_LEVEL) > 6
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#endif

static const HnInt8KernelFn HN_V(byte_fns)[6][HN_INT8_MAX_ROWS] = {
#define SIX(v) HN_V(v##_1), HN_V(v##_2), HN_V(v##_3), HN_V(v##_4), HN_V(v##_5), HN_V(v##_6)
#define MORE(v) HN_V(v##_7), HN_V(v##_8), HN_V(v##_9), HN_V(v##_10), HN_V(v##_11), HN_V(v##_12)
#if HN_JOIN(HN_INT8_ROWS, HN_LEVEL) > 6
    { SIX(byte_one), MORE(byte_one) }, { SIX(byte_two), MORE(byte_two) }, { SIX(pair_one), MORE(pair_one) },
    { SIX(pair_two), MORE(pair_two) }, { SIX(both_one), MORE(both_one) }, { SIX(both_two), MORE(both_two) },
#else
    { SIX(byte_one) }, { SIX(byte_two) }, { SIX(pair_one) }, { SIX(pair_two) }, { SIX(both_one) }, { SIX(both_two) },
#endif
};

#undef IVEC
#undef ISET
#undef IADD
#undef PER_BASE
#undef B_STEP
#undef ADD_GROUP
#undef ADD_TWO
#undef ILOAD
#undef ISTORE
#undef DOT
#undef TWO
#undef LANES
#undef ROWS
#undef TILE
#undef ONE_TILE
#undef SIX
#undef MORE
