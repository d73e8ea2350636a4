/*
 * Sums of a strip at one instruction level, for sparse_rows.c. Sums have names of their own, as in
 * cpu/gemm/gemm_kernel_loops.h: a to d for four outputs of vectors 0 to 5.
 */
#include "cpu/core/vec.h"
#include "cpu/sparse/sparse_rows.h"

#define LANES HN_LANES
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define AT(p, i) (i == vectors - 1 && !whole ? HN_VLOAD_N((p) + i * LANES, tail) : HN_VLOAD((p) + i * LANES))
#define BEGIN(i) HN_VEC a##i = begin0, b##i = begin1, c##i = begin2, d##i = begin3;
#define LOAD(i) const HN_VEC v##i = i < vectors ? AT(x, i) : begin0;
#define INTO(r, i)   \
    if (i < vectors) \
        r##i = HN_VFMA(v, v##i, r##i);
#define INTO_A(i) INTO(a, i)
#define INTO_B(i) INTO(b, i)
#define INTO_C(i) INTO(c, i)
#define INTO_D(i) INTO(d, i)
#define END(r, i, row)                                                    \
    if (i < vectors) {                                                    \
        if (add != NULL)                                                  \
            r##i = HN_VADD(r##i, AT(add + row * c->add_pitch, i));        \
        r##i = HN_VMIN(hi, HN_VMAX(lo, r##i)); /* of a NaN, the second */ \
        if (i == vectors - 1 && !whole)                                   \
            HN_VSTORE_N(y + row * c->y_pitch + i * LANES, r##i, tail);    \
        else                                                              \
            HN_VSTORE(y + row * c->y_pitch + i * LANES, r##i);            \
    }
#define END_A(i) END(a, i, 0)
#define END_B(i) END(b, i, 1)
#define END_C(i) END(c, i, 2)
#define END_D(i) END(d, i, 3)
#define ONE(i)       \
    if (i < vectors) \
        a##i = HN_VFMA(v, AT(x, i), a##i);
#define OTHER(i)     \
    if (i < vectors) \
        b##i = HN_VFMA(u, AT(z, i), b##i);
#define JOIN(i) a##i = HN_VADD(a##i, b##i);
/* What strips have in common, and where the results of one lie. */
#define ALL                                                \
    const HN_VEC lo = HN_VSET(c->lo), hi = HN_VSET(c->hi); \
    const int tail = c->tail;                              \
    const float none[HN_SPARSE_STRIP] = { 0 };
#define STRIP                                                                                \
    const float *const bias = c->bias != NULL ? c->bias + s->first : none, *w = c->w + s->w; \
    const int32_t *const at = c->at + s->at;                                                 \
    const float *const add = c->add != NULL ? c->add + s->first * c->add_pitch : NULL;       \
    float *const y = c->tile ? c->y : c->y + s->first * c->y_pitch;

/* Strips of four outputs. */
__attribute__((always_inline)) HN_TARGET static inline void HN_V(four)(const HnSparseCall *c, const HnSparseStrip *s,
                                                                       const HnSparseStrip *end, const int vectors,
                                                                       const gboolean whole)
{
    ALL for (; s < end; s++)
    {
        STRIP
        const HN_VEC begin0 = HN_VSET(bias[0]), begin1 = HN_VSET(bias[1]), begin2 = HN_VSET(bias[2]),
                     begin3 = HN_VSET(bias[3]);
        EACH(BEGIN)
        for (int64_t k = 0; k < s->n; k++, w += HN_SPARSE_STRIP) {
            const float *const x = c->x + at[k];
            EACH(LOAD)
            HN_VEC v = HN_VSET(w[0]);
            EACH(INTO_A)
            v = HN_VSET(w[1]);
            EACH(INTO_B)
            v = HN_VSET(w[2]);
            EACH(INTO_C)
            v = HN_VSET(w[3]);
            EACH(INTO_D)
        }
        EACH(END_A)
        EACH(END_B)
        EACH(END_C)
        EACH(END_D)
    }
}

/* Single outputs; every other entry has sums of its own, to hide an addition's latency. */
__attribute__((always_inline)) HN_TARGET static inline void HN_V(one)(const HnSparseCall *c, const HnSparseStrip *s,
                                                                      const HnSparseStrip *end, const int vectors,
                                                                      const gboolean whole)
{
    ALL for (; s < end; s++)
    {
        STRIP
        const HN_VEC begin0 = HN_VSET(bias[0]), begin1 = HN_VSET(0), begin2 = begin1, begin3 = begin1;
        EACH(BEGIN)
        int64_t k = 0;
        for (; k + 2 <= s->n; k += 2) {
            const float *const x = c->x + at[k], *const z = c->x + at[k + 1];
            const HN_VEC v = HN_VSET(w[k]), u = HN_VSET(w[k + 1]);
            EACH(ONE)
            EACH(OTHER)
        }
        if (k < s->n) {
            const float *const x = c->x + at[k];
            const HN_VEC v = HN_VSET(w[k]);
            EACH(ONE)
        }
        EACH(JOIN)
        EACH(END_A)
        (void)c0, (void)c1, (void)c2, (void)c3, (void)c4, (void)c5;
        (void)d0, (void)d1, (void)d2, (void)d3, (void)d4, (void)d5;
    }
}

/* Rows of six vectors. */
HN_TARGET static void HN_V(copy)(float *to, int64_t to_pitch, const float *from, int64_t from_pitch, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++, to += to_pitch, from += from_pitch) {
        const HN_VEC a = HN_VLOAD(from), b = HN_VLOAD(from + LANES), c = HN_VLOAD(from + 2 * LANES),
                     d = HN_VLOAD(from + 3 * LANES), e = HN_VLOAD(from + 4 * LANES), f = HN_VLOAD(from + 5 * LANES);
        HN_VSTORE(to, a);
        HN_VSTORE(to + LANES, b);
        HN_VSTORE(to + 2 * LANES, c);
        HN_VSTORE(to + 3 * LANES, d);
        HN_VSTORE(to + 4 * LANES, e);
        HN_VSTORE(to + 5 * LANES, f);
    }
}

#define SHAPE_OF(name, of, n, whole)                                                                          \
    HN_TARGET static void HN_V(name)(const HnSparseCall *c, const HnSparseStrip *s, const HnSparseStrip *end) \
    {                                                                                                         \
        HN_V(of)(c, s, end, n, whole);                                                                        \
    }
#define SHAPE(n)                             \
    SHAPE_OF(four##n, four, n, TRUE)         \
    SHAPE_OF(four##n##_tail, four, n, FALSE) \
    SHAPE_OF(one##n, one, n, TRUE)           \
    SHAPE_OF(one##n##_tail, one, n, FALSE)
SHAPE(1)
SHAPE(2)
SHAPE(3)
SHAPE(4)
SHAPE(5)
SHAPE(6)

#undef LANES
#undef EACH
#undef AT
#undef BEGIN
#undef LOAD
#undef INTO
#undef INTO_A
#undef INTO_B
#undef INTO_C
#undef INTO_D
#undef END
#undef END_A
#undef END_B
#undef END_C
#undef END_D
#undef ONE
#undef OTHER
#undef JOIN
#undef ALL
#undef STRIP
#undef SHAPE_OF
#undef SHAPE
