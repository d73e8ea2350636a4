/*
 * Parameters of Attention.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

/* What output QK shows: products, after the soft cap, with bias, or probabilities. */
typedef enum { HN_QK_RAW, HN_QK_CAPPED, HN_QK_BIASED, HN_QK_SOFTMAX } HnQkMode;

typedef struct {
    double scale;              /* NaN: 1 / sqrt(head size) */
    double softcap;            /* 0: none */
    int64_t q_heads, kv_heads; /* 0: not given */
    int64_t left, right;       /* window: keys before and after the query's own; -1: unbounded */
    HnQkMode mode;
    gboolean causal;
    gboolean short_mask; /* a mask may end before the keys do */
} HnAttention;

G_END_DECLS
