/*
 * What is better than most, for topk.c at one instruction level. A key is larger for what comes first in the result.
 */
#include <glib.h>
#include <stdint.h>
#include <string.h>

#include "cpu/core/cpu_level.h"

#define BLOCK 16

/* flip: -1 where the smallest come first, else 0 */
static inline HN_TARGET int32_t HN_V(key_of)(float x, int32_t flip)
{
    const float v = x + 0.0f; /* of -0, too */
    int32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits ^= (bits >> 31) & INT32_MAX;
    return (v != v ? INT32_MAX : bits) ^ flip;
}

/* The best key of each lane: of elements i, i + lanes, ... */
static HN_TARGET void HN_V(best_of_lanes)(int32_t *restrict best, const float *restrict x, int64_t n, int64_t lanes,
                                          int32_t flip)
{
    for (int64_t i = 0; i < lanes; i++)
        best[i] = HN_V(key_of)(x[i], flip);
    for (x += lanes, n -= lanes; n >= lanes; n -= lanes, x += lanes)
        for (int64_t i = 0; i < lanes; i++) {
            const int32_t key = HN_V(key_of)(x[i], flip);
            best[i] = key > best[i] ? key : best[i];
        }
}

/* The k-th best of n keys */
static HN_TARGET int32_t HN_V(bar_of)(const int32_t *key, int64_t n, int64_t k)
{
    int32_t bar = INT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        const int32_t at = key[i];
        int32_t better = 0;
        for (int64_t j = 0; j < n; j++)
            better += key[j] > at;
        if (better < k && at < bar)
            bar = at;
    }
    return bar;
}

/* Keys and places, the earlier one the larger, of elements that are not below the bar; returns how many, or more than
 * `most`, of which h has room for a block. */
static HN_TARGET int64_t HN_V(above)(int64_t *restrict h, const float *restrict x, int64_t n, int32_t bar, int32_t flip,
                                     int64_t most)
{
    int64_t m = 0, i = 0;
    for (; i + BLOCK <= n && m <= most; i += BLOCK) {
        int32_t key[BLOCK], any = 0;
        for (int j = 0; j < BLOCK; j++) {
            key[j] = HN_V(key_of)(x[i + j], flip);
            any |= key[j] >= bar;
        }
        for (int j = 0; any != 0 && j < BLOCK; j++) {
            h[m] = (int64_t)((uint64_t)(uint32_t)key[j] << 32 | (uint32_t) ~(uint32_t)(i + j));
            m += key[j] >= bar;
        }
    }
    for (; i < n && m <= most; i++) {
        const int32_t key = HN_V(key_of)(x[i], flip);
        h[m] = (int64_t)((uint64_t)(uint32_t)key << 32 | (uint32_t) ~(uint32_t)i);
        m += key >= bar;
    }
    return m;
}

/* The k largest of m numbers, which all differ, in order */
static HN_TARGET void HN_V(put_in_order)(uint64_t *restrict to, int64_t k, const int64_t *restrict h, int64_t m)
{
    for (int64_t i = 0; i < m; i++) {
        int64_t before = 0;
        for (int64_t j = 0; j < m; j++)
            before += h[j] > h[i];
        if (before < k)
            to[before] = (uint64_t)h[i];
    }
}
#undef BLOCK
