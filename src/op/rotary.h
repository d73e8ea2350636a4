/*
 * Parameters of RotaryEmbedding.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef struct {
    int64_t heads, dim; /* 0: not given; the whole head */
    gboolean interleaved;
} HnRotary;

/* Sizes, and strides of x in elements; head vectors are contiguous. */
typedef struct {
    int64_t batch, heads, length, head;
    int64_t half; /* of the elements of a head that are turned */
    int64_t s_batch, s_head, s_token;
} HnRotaryForm;

/* Why the inputs do not fit each other; NULL: *f is filled in. The caches hold [positions, half], and ids a position
 * per token; or, where ids is NULL, [batch, length, half]. */
const char *hn_rotary_form(const HnRotary *p, const HnTensor *x, const HnTensor *cosine, const HnTensor *sine,
                           const HnTensor *ids, HnRotaryForm *f);

G_END_DECLS
