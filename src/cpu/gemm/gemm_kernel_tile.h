/*
 * Tiles at one instruction level, for gemm_kernel_loops.h, and for gemm_pairs.c, which says TILE_NAME(name) and
 * TILE_TARGET of functions, and TILE_FMA(v, b, sum): the products of the words v and b added to sum. Whoever has more
 * rows than the level, or other panels, says TILE_MANY and TILE_PITCH, floats from a row of a panel to the next.
 *
 * Sums have names of their own, p##i and q##i for the two vectors of row i: arrays of them would live in memory. Few
 * rows have too few sums to hide an addition's latency: they have a second set r, s for every other k.
 */
#include "cpu/gemm/gemm_kernel.h"
#include "cpu/gemm/gemm_tile_run.h"
#include "cpu/core/post_vec.h"
#include "cpu/core/vec.h"

#define TILE_ROWS_plain 6 /* with two vectors each: the sums, two of B and one of A fill the registers */
#define TILE_ROWS_avx2 6
#define TILE_ROWS_avx512 12

#ifndef TILE_NAME /* the level's own */
#define TILE_NAME HN_V
#define TILE_TARGET HN_TARGET
#define TILE_FMA HN_VFMA
#endif
#ifndef TILE_MANY /* rows as at AVX-512, whose registers they take */
#define TILE_MANY (HN_JOIN(TILE_ROWS, HN_LEVEL) > 6)
#define TILE_PITCH (2 * HN_LANES)
#endif
#define LANES HN_LANES
#if defined(__clang__)
#define TWICE _Pragma("clang loop unroll_count(2)")
#else
#define TWICE _Pragma("GCC unroll 2")
#endif
#define LEAST_TO_COME 64 /* products a sum: fewer end before a line of C is there, and asking for it takes time */
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define LOAD_TAIL(p) (whole ? HN_VLOAD(p) : HN_VLOAD_N(p, tail))
#define BEGIN(i) HN_VEC p##i = begin0, q##i = begin1, r##i = HN_VSET(0), s##i = r##i;
#define RESUME(i)                                      \
    if (i < rows) {                                    \
        const float *const from = c + i * c_pitch;     \
        p##i = two ? HN_VLOAD(from) : LOAD_TAIL(from); \
        if (two)                                       \
            q##i = LOAD_TAIL(from + LANES);            \
    }
#define COME(i)                                                                                         \
    for (int line = 0; i < rows && line < (two ? 2 : 1) * LANES; line += 16) /* of C, for the stores */ \
        __builtin_prefetch(c + i * c_pitch + line, 1, 3);
#define COME_CLOSER(from, to) /* lines; one vector leaves no time for it */ \
    for (int line = from; two && line < (to); line++)                       \
        __builtin_prefetch(next + 16 * line, 0, 2);
#define POINT(i) const float *const a##i = i < rows ? a[i] + at : NULL;
#define ADD_AT(i, at)                         \
    if (i < rows) {                           \
        const HN_VEC v = HN_VSET(a##i[(at)]); \
        p##i = TILE_FMA(v, b0, p##i);         \
        if (two)                              \
            q##i = TILE_FMA(v, b1, q##i);     \
    }
#define FIRST(i) ADD_AT(i, ka)
#define FIRST_0(i) ADD_AT(i, k)
#define FIRST_1(i) ADD_AT(i, k + 1)
#define FIRST_2(i) ADD_AT(i, k + 2)
#define FIRST_3(i) ADD_AT(i, k + 3)
/* Of four k in a row. */
#define ONE_OF_FOUR(j, ADD)                                                     \
    {                                                                           \
        const float *const row = b + (j)*b_pitch;                               \
        const HN_VEC b0 = HN_VLOAD(row), b1 = two ? HN_VLOAD(row + LANES) : b0; \
        EACH_ROW(ADD)                                                           \
    }
#define SECOND(i)                                 \
    if (i < rows) {                               \
        const HN_VEC v = HN_VSET(a##i[ka + a_k]); \
        r##i = TILE_FMA(v, b0, r##i);             \
        if (two)                                  \
            s##i = TILE_FMA(v, b1, s##i);         \
    }
#define JOIN(i)                         \
    if (i < rows) {                     \
        p##i = HN_VADD(p##i, r##i);     \
        if (two)                        \
            q##i = HN_VADD(q##i, s##i); \
    }
#define SUM(i)                                                        \
    if (i < rows) {                                                   \
        const float *const from = add + i * add_pitch;                \
        p##i = HN_VADD(p##i, two ? HN_VLOAD(from) : LOAD_TAIL(from)); \
        if (two)                                                      \
            q##i = HN_VADD(q##i, LOAD_TAIL(from + LANES));            \
    }
#define POST(i, KIND)                              \
    if (i < rows) {                                \
        p##i = HN_V(post)(KIND, p##i, u0, w0);     \
        if (two)                                   \
            q##i = HN_V(post)(KIND, q##i, u1, w1); \
    }
#define POST_CLIP(i) POST(i, HN_POST_CLIP)
#define POST_LEAKY(i) POST(i, HN_POST_LEAKY)
#define POST_RAMP(i) POST(i, HN_POST_RAMP)
#define POST_GATE(i) POST(i, HN_POST_GATE)
#define POST_SCALE(i) POST(i, HN_POST_SCALE)
#define POST_SHIFT(i) POST(i, HN_POST_SHIFT)
#define LIMITED(v) HN_VMIN(hi, HN_VMAX(lo, v)) /* of a NaN, the second operand */
#define WHOLE(i)                                               \
    if (i < rows) {                                            \
        HN_VSTORE(c + i * c_pitch, LIMITED(p##i));             \
        if (two)                                               \
            HN_VSTORE(c + i * c_pitch + LANES, LIMITED(q##i)); \
    }
#define RAGGED(i)                                          \
    if (i < rows) {                                        \
        const HN_VEC v = LIMITED(p##i), w = LIMITED(q##i); \
        float *const to = c + i * c_pitch;                 \
        if (two)                                           \
            HN_VSTORE(to, v);                              \
        else                                               \
            HN_VSTORE_N(to, v, tail);                      \
        if (two)                                           \
            HN_VSTORE_N(to + LANES, w, tail);              \
    }

/* rows and two (more columns than one vector) are constants after inlining. */
static inline __attribute__((always_inline)) TILE_TARGET void TILE_NAME(tile)(const HnGemmKernelArgs *t, const int rows,
                                                                              const gboolean two)
{
    const int tail = two ? t->cols - LANES : t->cols; /* columns of the last vector */
    const gboolean whole = tail == LANES, few = rows < HN_GEMM_KERNEL_FEW;
    float *const c = t->c;
    const int64_t a_k = t->a_k != 0 ? t->a_k : 1, c_pitch = t->c_pitch;
    const int64_t b_pitch = rows <= HN_GEMM_KERNEL_LOOSE_ROWS ? t->b_pitch : TILE_PITCH;
    HN_VEC begin0 = HN_VSET(0), begin1 = begin0;
    if (t->bias != NULL) {
        begin0 = two ? HN_VLOAD(t->bias) : LOAD_TAIL(t->bias);
        begin1 = two ? LOAD_TAIL(t->bias + LANES) : begin0;
    }
    EACH_ROW(BEGIN)
    if (t->taps * t->k >= LEAST_TO_COME) {
        EACH_ROW(COME)
    }
    if (t->accumulate) {
        EACH_ROW(RESUME)
    }
    for (int64_t tap = 0; tap < t->taps; tap++) {
        const float *const *a = t->a + tap * t->a_tap;
        const int64_t at = t->a_at + tap * t->a_step;
        const float *b = t->b + tap * t->b_tap;
        EACH_ROW(POINT)
        int64_t k = 0, ka = 0;
        for (; few && k + 2 <= t->k; k += 2, ka += 2 * a_k, b += 2 * b_pitch) {
            {
                const HN_VEC b0 = HN_VLOAD(b), b1 = two ? HN_VLOAD(b + LANES) : b0;
                EACH_ROW(FIRST)
            }
            const HN_VEC b0 = HN_VLOAD(b + b_pitch), b1 = two ? HN_VLOAD(b + b_pitch + LANES) : b0;
            EACH_ROW(SECOND)
        }
        const float *next = t->next != NULL ? t->next : b; /* no branch in the loop */
        const int64_t next_step = t->next != NULL ? t->next_step : 0;
#if HN_LANES == 8
        if (two && rows >= 4 && rows <= 6 && a_k == 1 && t->k >= 4) {
            k = t->k & ~(int64_t)3;
            const HnTileRun run = { a, 4 * at, b, 4 * b_pitch, k, next, 16 * next_step, next_step > 4 ? 64 : 0 };
            if (rows == 4)
                HN_TILE_RUN(&run, 4);
            else if (rows == 5)
                HN_TILE_RUN(&run, 5);
            else
                HN_TILE_RUN(&run, 6);
            b += k * b_pitch;
            next += k * next_step;
        }
#endif
        if (!few && a_k == 1)
            for (; k + 4 <= t->k; k += 4, b += 4 * b_pitch, next += 4 * next_step) {
                COME_CLOSER(0, 1)
                if (next_step > 4)
                    COME_CLOSER(1, 2)
                if (next_step > 8)
                    COME_CLOSER(2, 4)
                if (next_step > 16)
                    COME_CLOSER(4, 8)
                ONE_OF_FOUR(0, FIRST_0)
                ONE_OF_FOUR(1, FIRST_1)
                ONE_OF_FOUR(2, FIRST_2)
                ONE_OF_FOUR(3, FIRST_3)
            }
        ka = few ? ka : k * a_k;
        TWICE
        for (; k < t->k; k++, ka += a_k, b += b_pitch, next += next_step) {
            COME_CLOSER(0, 2 * LANES / 16)
            const HN_VEC b0 = HN_VLOAD(b), b1 = two ? HN_VLOAD(b + LANES) : b0;
            EACH_ROW(FIRST)
        }
    }
    if (few) {
        EACH_ROW(JOIN)
    }
    if (t->add != NULL) {
        const float *const add = t->add;
        const int64_t add_pitch = t->add_pitch;
        EACH_ROW(SUM)
    }
    for (int k = 0; k < t->posts; k++) {
        const HnPost *const o = &t->post[k];
        const int64_t c0 = t->channel, c1 = c0 + LANES, n0 = two ? LANES : tail;
        const HN_VEC u0 = HN_V(post_operand)(o->scale, o->a, c0, n0), w0 = HN_V(post_operand)(o->shift, o->b, c0, n0);
        const HN_VEC u1 = two ? HN_V(post_operand)(o->scale, o->a, c1, tail) : u0;
        const HN_VEC w1 = two ? HN_V(post_operand)(o->shift, o->b, c1, tail) : w0;
        switch (o->kind) {
        case HN_POST_CLIP:
            EACH_ROW(POST_CLIP)
            break;
        case HN_POST_LEAKY:
            EACH_ROW(POST_LEAKY)
            break;
        case HN_POST_RAMP:
            EACH_ROW(POST_RAMP)
            break;
        case HN_POST_GATE:
            EACH_ROW(POST_GATE)
            break;
        case HN_POST_SCALE:
            EACH_ROW(POST_SCALE)
            break;
        case HN_POST_SHIFT:
            EACH_ROW(POST_SHIFT)
            break;
        case HN_POST_SIGMOID: /* not in registers */
        case HN_POST_SWISH:
        case HN_POST_GELU:
        case HN_POST_GELU_TANH:
            break;
        }
    }
    const HN_VEC lo = HN_VSET(t->lo), hi = HN_VSET(t->hi); /* not before: registers are few */
    if (whole) {
        EACH_ROW(WHOLE)
    } else {
        EACH_ROW(RAGGED)
    }
}

#define TILE(n)                                                           \
    static TILE_TARGET void TILE_NAME(one_##n)(const HnGemmKernelArgs *t) \
    {                                                                     \
        TILE_NAME(tile)(t, n, FALSE);                                     \
    }                                                                     \
    static TILE_TARGET void TILE_NAME(two_##n)(const HnGemmKernelArgs *t) \
    {                                                                     \
        TILE_NAME(tile)(t, n, TRUE);                                      \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if TILE_MANY
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#endif

static const HnGemmKernelFn TILE_NAME(fns)[2][HN_GEMM_KERNEL_MAX_ROWS] = {
#define SIX(v) \
    TILE_NAME(v##_1), TILE_NAME(v##_2), TILE_NAME(v##_3), TILE_NAME(v##_4), TILE_NAME(v##_5), TILE_NAME(v##_6)
#define MORE(v) \
    TILE_NAME(v##_7), TILE_NAME(v##_8), TILE_NAME(v##_9), TILE_NAME(v##_10), TILE_NAME(v##_11), TILE_NAME(v##_12)
#if TILE_MANY
    { SIX(one), MORE(one) },
    { SIX(two), MORE(two) },
#else
    { SIX(one) },
    { SIX(two) },
#endif
};

#undef TWICE
#undef EACH_ROW
#undef LOAD_TAIL
#undef BEGIN
#undef RESUME
#undef COME
#undef COME_CLOSER
#undef LEAST_TO_COME
#undef POINT
#undef ADD_AT
#undef FIRST
#undef FIRST_0
#undef FIRST_1
#undef FIRST_2
#undef FIRST_3
#undef ONE_OF_FOUR
#undef SECOND
#undef JOIN
#undef SUM
#undef POST
#undef POST_CLIP
#undef POST_LEAKY
#undef POST_RAMP
#undef POST_GATE
#undef POST_SCALE
#undef POST_SHIFT
#undef LIMITED
#undef WHOLE
#undef RAGGED
#undef TILE
#undef SIX
#undef MORE
#undef LANES
#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_FMA
#undef TILE_MANY
#undef TILE_PITCH
