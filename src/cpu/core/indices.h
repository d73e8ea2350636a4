/*
 * Index tensors of Gather and Scatter operators.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

G_BEGIN_DECLS

/* to[i] += k * scale, k the index at place first + i * every of t (i32 or i64), counted from the back where negative.
 * FALSE: one is outside an axis of n, an error that names the step's node. */
gboolean hn_indices_add(const HnStep *s, const HnTensor *t, int64_t first, int64_t every, int64_t count, int64_t n,
                        int64_t scale, int64_t *to, GError **error);
/* Places that tuples of indices stand for: count of them, of `depth` indices each, into axes of sizes dims whose
 * distances are strides. */
gboolean hn_indices_tuples(const HnStep *s, const HnTensor *t, int depth, const int64_t *dims, const int64_t *strides,
                           int64_t *to, GError **error);

G_END_DECLS
