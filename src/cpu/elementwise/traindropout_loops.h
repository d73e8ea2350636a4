/*
 * Masks and what they keep, for traindropout.c at one instruction level.
 */
#include "base/philox.h"
#include "cpu/core/cpu_level.h"
#include "cpu/elementwise/traindropout.h"

#define ROUND(k)                                                                           \
    {                                                                                      \
        const uint64_t p0 = (uint64_t)HN_PHILOX_M0 * c0, p1 = (uint64_t)HN_PHILOX_M1 * c2; \
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ ((uint32_t)d->seed + (k)*HN_PHILOX_W0);           \
        c1 = (uint32_t)p1;                                                                 \
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ ((uint32_t)(d->seed >> 32) + (k)*HN_PHILOX_W1);   \
        c3 = (uint32_t)p0;                                                                 \
    }

/* The random bits of HN_DROP_CHUNK elements from `first` on. */
static HN_TARGET void HN_V(random_words)(const HnDrop *d, uint64_t first, uint32_t *word)
{
    const uint64_t counter = first / 4;
    for (uint32_t i = 0; i < HN_DROP_CHUNK / 4; i++) {
        uint32_t c0 = (uint32_t)counter + i, c1 = (uint32_t)(counter >> 32), c2 = d->step, c3 = d->salt;
        ROUND(0u)
        ROUND(1u)
        ROUND(2u)
        ROUND(3u)
        ROUND(4u)
        ROUND(5u)
        ROUND(6u)
        ROUND(7u)
        ROUND(8u)
        ROUND(9u)
        word[4 * i] = c0;
        word[4 * i + 1] = c1;
        word[4 * i + 2] = c2;
        word[4 * i + 3] = c3;
    }
}

/* n elements from `first` on, which is a multiple of HN_DROP_CHUNK. */
static HN_TARGET void HN_V(drop)(const HnDrop *d, const float *x, float *y, int64_t first, int64_t n)
{
    uint32_t word[HN_DROP_CHUNK];
    for (int64_t at = 0; at < n; at += HN_DROP_CHUNK) {
        const int64_t m = MIN(HN_DROP_CHUNK, n - at);
        HN_V(random_words)(d, (uint64_t)(first + at), word);
        HN_IVDEP
        for (int64_t i = 0; i < m; i++) {
            const float v = x[at + i] * d->scale;
            y[at + i] = word[i] < d->threshold ? 0 : v;
        }
    }
}

#undef ROUND
