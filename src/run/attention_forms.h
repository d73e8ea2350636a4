/*
 * Attention and FusedAttention: where a step's queries, keys, values and results lie, for the kernels of all backends.
 */
#pragma once

#include "op/attention.h"
#include "run/backend.h"

G_BEGIN_DECLS

/* Of queries, keys, values and results, and how many keys and values the cache holds. A reason where the shapes do not
 * fit; that of the mask is not looked at. */
const char *hn_attention_forms(const HnStep *s, HnAttentionForm f[4], int64_t *past);
/* The same of FusedAttention, and the mask's elements from one batch, head, query and key to the next: 0 where they
 * share them, or there is no mask. */
const char *hn_fused_attention_forms(const HnStep *s, HnAttentionForm f[4], int64_t mask[4]);
/* The same of its booleans, f being its forms. */
const char *hn_fused_attention_keep(const HnStep *s, const HnAttentionForm f[4], int64_t keep[4]);

G_END_DECLS
