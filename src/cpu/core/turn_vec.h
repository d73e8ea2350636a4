/*
 * Squares of HN_LANES vectors of HN_LANES words each at one instruction level, whose rows become columns.
 */
#include "cpu/core/vec.h"

/* Vectors of one column of a matrix each become vectors of one row each: each turn moves the lowest bit of a
 * lane's number to the top of its vector's. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(turn_vectors)(HN_VEC *v)
{
    HN_VEC w[HN_LANES];
    HN_UNROLL
    for (int turn = 1; turn < HN_LANES; turn *= 2) {
        HN_UNROLL
        for (int i = 0; i < HN_LANES / 2; i++) {
            w[i] = HN_VEVEN(v[2 * i], v[2 * i + 1]);
            w[i + HN_LANES / 2] = HN_VODD(v[2 * i], v[2 * i + 1]);
        }
        HN_UNROLL
        for (int i = 0; i < HN_LANES; i++)
            v[i] = w[i];
    }
}
