#include "base/rng.h"

#include <math.h>

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

HnRng hn_rng(uint64_t seed)
{
    HnRng rng = { .spare = NAN };
    for (int i = 0; i < 4; i++)
        rng.s[i] = splitmix(&seed);
    return rng;
}

HnRng hn_rng_split(const HnRng *rng, uint64_t stream)
{
    uint64_t a = rng->s[0] ^ rotate(rng->s[1], 17) ^ rotate(rng->s[2], 34) ^ rotate(rng->s[3], 51);
    return hn_rng(splitmix(&a) ^ splitmix(&stream));
}

uint64_t hn_rng_u64(HnRng *rng)
{
    uint64_t *s = rng->s, result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

float hn_rng_float(HnRng *rng)
{
    return (float)(hn_rng_u64(rng) >> 40) * 0x1p-24f;
}

double hn_rng_double(HnRng *rng)
{
    return (double)(hn_rng_u64(rng) >> 11) * 0x1p-53;
}

double hn_rng_range(HnRng *rng, double lo, double hi)
{
    double x = lo + (hi - lo) * hn_rng_double(rng);
    return x < hi ? x : lo; /* the sum may round up to hi */
}

int64_t hn_rng_int(HnRng *rng, int64_t lo, int64_t hi)
{
    g_assert(lo <= hi);
    uint64_t last = (uint64_t)hi - (uint64_t)lo, mask = UINT64_MAX, x;
    if (last == UINT64_MAX)
        return (int64_t)hn_rng_u64(rng);
    while (mask >> 1 >= last && mask)
        mask >>= 1;
    do
        x = hn_rng_u64(rng) & mask;
    while (x > last);
    return (int64_t)((uint64_t)lo + x);
}

/* Marsaglia's polar method: two values at a time */
double hn_rng_normal(HnRng *rng)
{
    double u, v, s;
    if (!isnan(rng->spare)) {
        s = rng->spare;
        rng->spare = NAN;
        return s;
    }
    do {
        u = 2 * hn_rng_double(rng) - 1;
        v = 2 * hn_rng_double(rng) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    s = sqrt(-2 * log(s) / s);
    rng->spare = v * s;
    return u * s;
}

void hn_rng_shuffle(HnRng *rng, uint32_t *index, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)hn_rng_int(rng, 0, i - 1), t = index[i - 1];
        index[i - 1] = index[j];
        index[j] = t;
    }
}
