#pragma once

#include <stdint.h>

/* x and y: [sets][size], a set being a group of a sample; of `each` channels of `inner` elements */
typedef struct {
    uint64_t x, scale, bias, y;
    uint64_t partial; /* f32[sets, parts, 2]: mean and sum of squares about it, where there are several parts */
    int64_t sets, size, parts, part;
    int64_t groups, each, inner;
    float epsilon;
    int32_t vector;    /* four elements at a time, which are of one channel */
    int32_t per_group; /* scale and bias are those of groups, not of channels */
} HnCudaGroupNormArgs;
