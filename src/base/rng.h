/*
 * HnRng: a seeded generator of pseudo-random numbers, the same on every machine.
 *
 * xoshiro256++ by D. Blackman and S. Vigna (2019, "Scrambled linear pseudorandom number generators"), its state filled
 * by SplitMix64. One generator belongs to one thread; hn_rng_split() gives a thread or tensor one of its own.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct {
    uint64_t s[4];
    double spare; /* second value of a pair of normals, NaN: none */
} HnRng;

HnRng hn_rng(uint64_t seed);
HnRng hn_rng_split(const HnRng *rng, uint64_t stream); /* does not advance rng */

uint64_t hn_rng_u64(HnRng *rng);
float hn_rng_float(HnRng *rng);                               /* [0,1), 24 random bits */
double hn_rng_double(HnRng *rng);                             /* [0,1), 53 random bits */
double hn_rng_range(HnRng *rng, double lo, double hi);        /* [lo,hi) */
int64_t hn_rng_int(HnRng *rng, int64_t lo, int64_t hi);       /* lo <= x <= hi, without bias */
double hn_rng_normal(HnRng *rng);                             /* mean 0, standard deviation 1 */
void hn_rng_shuffle(HnRng *rng, uint32_t *index, uint32_t n); /* any order equally likely */

G_END_DECLS
