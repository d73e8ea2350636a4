/*
 * What histogram.c does with each element, at one level of instructions.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/level.h"
#include "check/histogram.h"

/* Keys are f32 bits as integers in the order of the numbers; -0 is one below +0. Counted are those between these two.
 */
#define KEY_OF_INFINITY 0x7f800000
#define KEY_OF_MASK ((int32_t)0xb8801fff) /* of HN_MASK, -65504 */
#define KEYS ((uint32_t)KEY_OF_INFINITY - (uint32_t)KEY_OF_MASK - 1)

/* Keys of the least and the largest number that is to be counted; how many are not; how many are exactly 0. */
HN_TARGET static void HN_V(survey)(const float *x, int n, int32_t *least, int32_t *most, int32_t *out, int32_t *zeros)
{
    int32_t lo = INT32_MAX, hi = INT32_MIN, odd = 0, zero = 0;
    HN_OMP(omp simd reduction(min : lo) reduction(max : hi) reduction(+ : odd, zero))
    for (int i = 0; i < n; i++) {
        int32_t u;
        memcpy(&u, x + i, sizeof u);
        const int32_t key = u ^ ((u >> 31) & INT32_MAX);
        const int32_t not = -(int32_t)((uint32_t)key - (uint32_t)(KEY_OF_MASK + 1) >= KEYS); /* all bits or none */
        const int32_t low = (key & ~not ) | (INT32_MAX & not ), high = (key & ~not ) | (INT32_MIN & not );
        lo = low < lo ? low : lo;
        hi = high > hi ? high : hi;
        odd -= not ;
        zero += (u & INT32_MAX) == 0;
    }
    *least = lo;
    *most = hi;
    *out = odd;
    *zeros = zero;
}

/* at[i]: the bin of x[i], those of numbers below 0 behind the others; |x[i]| * scale < HN_HISTOGRAM_BINS */
HN_TARGET static void HN_V(place)(const float *x, int n, float scale, uint16_t *at)
{
    for (int i = 0; i < n; i++) {
        const int32_t k = (int32_t)(fabsf(x[i]) * scale);
        at[i] = (uint16_t)(x[i] < 0 ? k + HN_HISTOGRAM_BINS : k);
    }
}
