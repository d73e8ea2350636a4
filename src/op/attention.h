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

/* Which tensors of FusedAttention have tokens in front of heads. */
enum { HN_BY_TOKEN_Q = 1, HN_BY_TOKEN_K = 2, HN_BY_TOKEN_V = 4, HN_BY_TOKEN_Y = 8 };

/* Params of FusedAttention (domain "hone"). */
typedef struct {
    float key_scale, scale;
    int64_t by_token;
    gboolean guard;    /* probabilities that are NaN count as zeros */
    float fill;        /* score in the place of those that are not kept */
    gboolean inverted; /* KEEP is TRUE where scores are not kept */
} HnFusedAttention;

enum { HN_FUSED_Q, HN_FUSED_K, HN_FUSED_V, HN_FUSED_MASK, HN_FUSED_KEEP, HN_FUSED_INPUTS };

/* Where its vectors lie: dims [batch, heads, length, size], or by token [batch, length, heads, size]; of rank 3 [batch,
 * length, size], or [length, batch, size]. Strides in elements; a vector's are adjacent. */
typedef struct {
    int64_t batch, heads, length, size;
    int64_t s_batch, s_head, s_token;
} HnAttentionForm;

HnAttentionForm hn_attention_form(int ndim, const int64_t *dims, gboolean by_token);
/* The same of an operand of Attention: [batch, heads, length, size], or [batch, length, heads * size]. FALSE: it has
 * another rank, or does not hold so many heads. */
gboolean hn_attention_operand(const HnTensor *t, int64_t heads, HnAttentionForm *f);

G_END_DECLS
