/*
 * Rows are lanes where there are many, trees are lanes for a single row: 64 of either at a time, so that the loads of
 * some hide the latency of others. In vectors a step is two gathers of cells of 64 bits, one of keys, a comparison and
 * an addition. Walks take as many steps as the nearest leaf is away, and then look now and then whether all lanes stand
 * still.
 */
#include "cpu/trees/trees_walk.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/sanitize.h"

#define HN_LOOPS "cpu/trees/trees_walk_loops.h"
#include "base/every_level.h"

#define LOOK 2 /* steps between looks whether all lanes stand still */

#if HN_SANITIZE_ADDRESS || HN_SANITIZE_THREAD
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* --- plain ------------------------------------------------------------------------------------------------------- */

#define SIDE 8 /* walks side by side */

static inline int32_t step_plain(const HnTreeCell *cell, const int32_t *keys, int bits, int32_t at)
{
    const HnTreeCell c = cell[at];
    return (int32_t)(c.next >> bits) + (keys[c.next & ((1u << bits) - 1)] > c.key);
}

static void rows_plain(int32_t *leaf, const HnPackedTrees *p, const HnTreePlace *t, const int32_t *keys, int32_t stride,
                       int n)
{
    const HnTreeCell *cell = p->cell + t->first;
    const int bits = p->bits;
    for (int r = 0; r < n; r += SIDE) {
        const int32_t *row[SIDE];
        int32_t at[SIDE] = { 0 };
        for (int j = 0; j < SIDE; j++)
            row[j] = keys + (gsize)MIN(r + j, n - 1) * (gsize)stride;
        for (int32_t d = 0; d < t->depth; d++) {
            UNROLL
            for (int j = 0; j < SIDE; j++)
                at[j] = step_plain(cell, row[j], bits, at[j]);
        }
        for (int j = 0; j < SIDE && r + j < n; j++)
            leaf[r + j] = at[j];
    }
}

static void trees_plain(int32_t *leaf, const HnPackedTrees *p, const int32_t *keys, int64_t from, int n)
{
    const int bits = p->bits;
    for (int i = 0; i < n; i += SIDE) {
        const HnTreeCell *cell[SIDE];
        int32_t at[SIDE] = { 0 }, depth = 0;
        for (int j = 0; j < SIDE; j++) {
            const HnTreePlace *t = &p->place[from + MIN(i + j, n - 1)];
            cell[j] = p->cell + t->first;
            depth = MAX(depth, t->depth);
        }
        for (int32_t d = 0; d < depth; d++) {
            UNROLL
            for (int j = 0; j < SIDE; j++)
                at[j] = step_plain(cell[j], keys, bits, at[j]);
        }
        for (int j = 0; j < SIDE && i + j < n; j++)
            leaf[i + j] = at[j] + (int32_t)p->place[from + i + j].first;
    }
}

#if defined(__x86_64__)
/* --- AVX2 -------------------------------------------------------------------------------------------------------- */

#define VECS_avx2 4
typedef struct {
    __m256i mask, one;
    __m128i bits;
} Consts_avx2;

/* Of 8 lanes. */
static inline HN_TARGET_avx2 __m256i step_avx2(const HnTreeCell *cell, const int32_t *keys, __m256i row, __m256i at,
                                               const Consts_avx2 *k, __m256i base)
{
    const long long *from = (const long long *)(const void *)cell;
    const __m256i order = _mm256_permute4x64_epi64(at, 0xd8); /* what the shuffles below turn back */
    const __m256 lo = _mm256_castsi256_ps(_mm256_i32gather_epi64(from, _mm256_castsi256_si128(order), 8));
    const __m256 hi = _mm256_castsi256_ps(_mm256_i32gather_epi64(from, _mm256_extracti128_si256(order, 1), 8));
    const __m256i key = _mm256_castps_si256(_mm256_shuffle_ps(lo, hi, 0x88));
    const __m256i next = _mm256_castps_si256(_mm256_shuffle_ps(lo, hi, 0xdd));
    const __m256i x = _mm256_i32gather_epi32(keys, _mm256_add_epi32(row, _mm256_and_si256(next, k->mask)), 4);
    const __m256i child = _mm256_add_epi32(_mm256_srl_epi32(next, k->bits), base);
    return _mm256_sub_epi32(child, _mm256_cmpgt_epi32(x, key));
}

static inline HN_TARGET_avx2 Consts_avx2 consts_avx2(const HnPackedTrees *p)
{
    return (Consts_avx2){ _mm256_set1_epi32((int)((1u << p->bits) - 1)), _mm256_set1_epi32(1),
                          _mm_cvtsi32_si128(p->bits) };
}

/* VECS vectors, as far as `depth`; from `least` on until no lane moves. */
static inline HN_TARGET_avx2 void walk_avx2(const HnTreeCell *cell, const int32_t *keys, const __m256i *row,
                                            __m256i *at, const Consts_avx2 *k, const __m256i *base, int32_t least,
                                            int32_t depth)
{
    int32_t d = 0;
    for (; d < least; d++) {
        UNROLL
        for (int v = 0; v < VECS_avx2; v++)
            at[v] = step_avx2(cell, keys, row[v], at[v], k, base[v]);
    }
    for (; d < depth; d++) {
        __m256i moved = _mm256_setzero_si256();
        UNROLL
        for (int v = 0; v < VECS_avx2; v++) {
            const __m256i next = step_avx2(cell, keys, row[v], at[v], k, base[v]);
            moved = _mm256_or_si256(moved, _mm256_xor_si256(next, at[v]));
            at[v] = next;
        }
        if (_mm256_testz_si256(moved, moved))
            return;
    }
}

static HN_TARGET_avx2 void rows_avx2(int32_t *leaf, const HnPackedTrees *p, const HnTreePlace *t, const int32_t *keys,
                                     int32_t stride, int n)
{
    const Consts_avx2 k = consts_avx2(p);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), last = _mm256_set1_epi32(n - 1);
    const __m256i width = _mm256_set1_epi32(stride);
    for (int r = 0; r < n; r += VECS_avx2 * 8) {
        __m256i at[VECS_avx2], row[VECS_avx2], base[VECS_avx2];
        for (int v = 0; v < VECS_avx2; v++) {
            const __m256i own = _mm256_min_epi32(_mm256_add_epi32(lanes, _mm256_set1_epi32(r + 8 * v)), last);
            row[v] = _mm256_mullo_epi32(own, width);
            at[v] = base[v] = _mm256_setzero_si256();
        }
        walk_avx2(p->cell + t->first, keys, row, at, &k, base, t->least, t->depth);
        for (int v = 0; v < VECS_avx2; v++)
            _mm256_storeu_si256((__m256i *)(void *)(leaf + r + 8 * v), at[v]);
    }
}

static HN_TARGET_avx2 void trees_avx2(int32_t *leaf, const HnPackedTrees *p, const int32_t *keys, int64_t from, int n)
{
    const Consts_avx2 k = consts_avx2(p);
    const HnTreeGroup *group = &p->group[from / HN_WALK_TREES];
    for (int i = 0; i < n; i += VECS_avx2 * 8) {
        __m256i at[VECS_avx2], row[VECS_avx2], base[VECS_avx2];
        const int32_t *first = p->roots + from + i;
        for (int v = 0; v < VECS_avx2; v++) {
            at[v] = base[v] = _mm256_loadu_si256((const __m256i *)(const void *)(first + 8 * v));
            row[v] = _mm256_setzero_si256();
        }
        walk_avx2(p->cell, keys, row, at, &k, base, group->least, group->depth);
        for (int v = 0; v < VECS_avx2; v++)
            _mm256_storeu_si256((__m256i *)(void *)(leaf + i + 8 * v), at[v]);
    }
}

/* --- AVX-512 ----------------------------------------------------------------------------------------------------- */

#define VECS_avx512 4
typedef struct {
    __m512i mask, one, even, odd;
    __m128i bits;
} Consts_avx512;

static inline HN_TARGET_avx512 Consts_avx512 consts_avx512(const HnPackedTrees *p)
{
    return (Consts_avx512){ _mm512_set1_epi32((int)((1u << p->bits) - 1)), _mm512_set1_epi32(1),
                            _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                            _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31),
                            _mm_cvtsi32_si128(p->bits) };
}

/* Of 16 lanes. */
static inline HN_TARGET_avx512 __m512i step_avx512(const HnTreeCell *cell, const int32_t *keys, __m512i row, __m512i at,
                                                   const Consts_avx512 *k, __m512i base)
{
    const __m512i lo = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), cell, 8);
    const __m512i hi = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), cell, 8);
    const __m512i key = _mm512_permutex2var_epi32(lo, k->even, hi), next = _mm512_permutex2var_epi32(lo, k->odd, hi);
    const __m512i x = _mm512_i32gather_epi32(_mm512_add_epi32(row, _mm512_and_si512(next, k->mask)), keys, 4);
    const __m512i child = _mm512_add_epi32(_mm512_srl_epi32(next, k->bits), base);
    return _mm512_mask_add_epi32(child, _mm512_cmpgt_epi32_mask(x, key), child, k->one);
}

static inline HN_TARGET_avx512 void walk_avx512(const HnTreeCell *cell, const int32_t *keys, const __m512i *row,
                                                __m512i *at, const Consts_avx512 *k, const __m512i *base, int32_t least,
                                                int32_t depth)
{
    int32_t d = 0;
    for (; d < least; d++) {
        UNROLL
        for (int v = 0; v < VECS_avx512; v++)
            at[v] = step_avx512(cell, keys, row[v], at[v], k, base[v]);
    }
    for (; d < depth; d++) {
        __mmask16 moved = 0;
        UNROLL
        for (int v = 0; v < VECS_avx512; v++) {
            const __m512i next = step_avx512(cell, keys, row[v], at[v], k, base[v]);
            moved |= _mm512_cmpneq_epi32_mask(next, at[v]);
            at[v] = next;
        }
        if (moved == 0)
            return;
    }
}

static HN_TARGET_avx512 void rows_avx512(int32_t *leaf, const HnPackedTrees *p, const HnTreePlace *t,
                                         const int32_t *keys, int32_t stride, int n)
{
    const Consts_avx512 k = consts_avx512(p);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i last = _mm512_set1_epi32(n - 1), width = _mm512_set1_epi32(stride);
    __m512i at[VECS_avx512], row[VECS_avx512], base[VECS_avx512];
    for (int v = 0; v < VECS_avx512; v++) {
        const __m512i own = _mm512_min_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(16 * v)), last);
        row[v] = _mm512_mullo_epi32(own, width);
        at[v] = base[v] = _mm512_setzero_si512();
    }
    walk_avx512(p->cell + t->first, keys, row, at, &k, base, t->least, t->depth);
    for (int v = 0; v < VECS_avx512; v++)
        _mm512_storeu_si512(leaf + 16 * v, at[v]);
}

static HN_TARGET_avx512 void trees_avx512(int32_t *leaf, const HnPackedTrees *p, const int32_t *keys, int64_t from,
                                          int n)
{
    (void)n; /* there are places for whole groups */
    const Consts_avx512 k = consts_avx512(p);
    __m512i at[VECS_avx512], row[VECS_avx512], base[VECS_avx512];
    const HnTreeGroup *group = &p->group[from / HN_WALK_TREES];
    const int32_t *first = p->roots + from;
    for (int v = 0; v < VECS_avx512; v++) {
        at[v] = base[v] = _mm512_loadu_si512(first + 16 * v);
        row[v] = _mm512_setzero_si512();
    }
    walk_avx512(p->cell, keys, row, at, &k, base, group->least, group->depth);
    for (int v = 0; v < VECS_avx512; v++)
        _mm512_storeu_si512(leaf + 16 * v, at[v]);
}
#else
#define rows_avx2 rows_plain
#define trees_avx2 trees_plain
#define rows_avx512 rows_plain
#define trees_avx512 trees_plain
#endif

const HnTreeWalks *hn_tree_walks(void)
{
    static const HnTreeWalks walks[HN_LEVELS] = {
        { rows_plain, trees_plain, make_keys_plain, add_values_plain, sum_values_plain },
        { rows_avx2, trees_avx2, make_keys_avx2, add_values_avx2, sum_values_avx2 },
        { rows_avx512, trees_avx512, make_keys_avx512, add_values_avx512, sum_values_avx512 },
    };
    return &walks[hn_cpu_level()];
}
