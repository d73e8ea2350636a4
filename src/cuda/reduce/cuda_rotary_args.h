#pragma once

#include <stdint.h>

#include "cuda/core/complaint_args.h"

/* x and y: vectors of `head` elements, of batch * heads * length; cosine and sine: [places][half], or, without ids,
 * [batch][length][half]; ids: i64[batch][length], or 0 */
typedef struct {
    uint64_t x, cosine, sine, ids, y;
    int64_t batch, heads, length, head, half;
    int64_t s_batch, s_head, s_token; /* strides of x and y in elements */
    int64_t places;
    HnCudaComplaint complaint; /* of ids */
    int32_t interleaved;
} HnCudaRotaryArgs;
