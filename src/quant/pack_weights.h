/*
 * Weights as integers.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

/* q and the scale with which scale * q stands for the weight: one for each place along `axis`, or a single one. */
typedef struct {
    HnTensor *q, *scale, *zero; /* zero: of q's type and scale's shape */
    int axis;                   /* of scale; -1: there is a single one */
    int block;                  /* elements along `axis` that share a scale; 0: all of a channel */
    int64_t reduced;            /* channels with a smaller range */
} HnPacked;

/*
 * s8 weights in [-127, 127], symmetric: w [..., C, ...] with channels along `axis`, or axis -1 for a single scale.
 * least is a lower bound of each channel's scale (as many as there are scales; NULL: none).
 *
 * u8 activations times s8 weights are summed in pairs of 16 bits by processors without VNNI: 255 * (|a| + |b|) must not
 * exceed 32767. With `reduce` a channel's range is made as much smaller as its neighbouring weights ask for, down to
 * [-63, 63] at most; with `reduce_all` it is that everywhere. Errors: BUDGET.
 */
gboolean hn_pack_s8(const HnTensor *w, int axis, const float *least, gboolean reduce, gboolean reduce_all,
                    HnBudget *budget, HnPacked *out, GError **error);

/* u4 (s4 where symmetric) with a scale and zero point for each `block` elements along `axis`, which is summed over.
 * Errors: BUDGET. */
gboolean hn_pack_4(const HnTensor *w, int axis, int block, gboolean symmetric, HnBudget *budget, HnPacked *out,
                   GError **error);

/* i32 of b, [C], in units of unit[c]; NULL: a number does not fit, or no memory. */
HnTensor *hn_pack_bias(const HnTensor *b, const double *unit, HnBudget *budget);

void hn_packed_clear(HnPacked *p);

G_END_DECLS
