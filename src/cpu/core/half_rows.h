/*
 * Conversions of f16 and bf16 at the speed of memory, for kernels that compute in f32 whatever a tensor's float type.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

/* n elements from one type to the other; the half type is HN_F16 or HN_BF16. Rounded to nearest, ties to even. */
void hn_cpu_half_to_f32(HnDtype half, float *to, const uint16_t *from, int64_t n);
void hn_cpu_half_from_f32(HnDtype half, uint16_t *to, const float *from, int64_t n);

G_END_DECLS
