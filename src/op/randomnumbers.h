/*
 * Parameters of the random operators, and the random bits behind each of their numbers.
 */
#pragma once

#include "base/philox.h"
#include "op/op.h"

typedef struct {
    gboolean has_seed;
    uint64_t seed; /* bits of attribute `seed` */
    HnDtype dtype; /* of the result; HN_UNDEFINED: that of the input */
    double a, b;   /* low and high, or mean and standard deviation */
    int64_t draws; /* Multinomial: for each row */
    int ndim;      /* of `dims`, where the shape is an attribute */
    int64_t dims[HN_MAX_RANK];
} HnRandom;

/* 64 bits each for elements 2 * pair and 2 * pair + 1: those of Philox 4x32-10 for the key and counter `pair`, so that
 * an element's number does not depend on the others, nor on how the work is spread. */
static inline void hn_random_pair(uint64_t key, uint64_t pair, uint64_t bits[2])
{
    uint32_t word[4] = { (uint32_t)pair, (uint32_t)(pair >> 32), 0, 0 };
    hn_philox(key, word);
    bits[0] = (uint64_t)word[1] << 32 | word[0];
    bits[1] = (uint64_t)word[3] << 32 | word[2];
}

/* [0,1) in steps of 2^-digits: as many as a type's numbers have, none becomes 1 when it is rounded. */
static inline double hn_random_unit(uint64_t bits, int digits)
{
    return (double)(bits >> (64 - digits)) / (double)((uint64_t)1 << digits);
}
