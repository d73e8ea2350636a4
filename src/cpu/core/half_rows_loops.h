/*
 * bf16 loops, for half_rows.c at one instruction level.
 */
#include "base/half.h"
#include "cpu/core/cpu_level.h"

static HN_TARGET void HN_V(widen_bf16)(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = hn_bf16_to_f32(from[i]);
}

static HN_TARGET void HN_V(narrow_bf16)(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = hn_bf16_from_f32(from[i]);
}
