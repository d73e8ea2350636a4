/*
 * Philox 4x32-10: 128 random bits from a counter and a key, any of them without the ones before (J. Salmon et al.,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 */
#pragma once

#include <stdint.h>

#define HN_PHILOX_ROUNDS 10
/* multipliers, and what is added to the key from round to round */
#define HN_PHILOX_M0 0xD2511F53u
#define HN_PHILOX_M1 0xCD9E8D57u
#define HN_PHILOX_W0 0x9E3779B9u
#define HN_PHILOX_W1 0xBB67AE85u

/* word: the counter, then the random bits */
static inline void hn_philox(uint64_t key, uint32_t word[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int r = 0; r < HN_PHILOX_ROUNDS; r++, k0 += HN_PHILOX_W0, k1 += HN_PHILOX_W1) {
        const uint64_t p0 = (uint64_t)HN_PHILOX_M0 * word[0], p1 = (uint64_t)HN_PHILOX_M1 * word[2];
        word[0] = (uint32_t)(p1 >> 32) ^ word[1] ^ k0;
        word[1] = (uint32_t)p1;
        word[2] = (uint32_t)(p0 >> 32) ^ word[3] ^ k1;
        word[3] = (uint32_t)p0;
    }
}
