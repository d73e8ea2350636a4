/*
 * What kernels need to know of the reductions.
 */
#pragma once

#include "op/op.h"

typedef struct {
    const int64_t *axes; /* of the attribute; NULL: none, or an input */
    int64_t n_axes;
    gboolean keepdims, noop, from_input;
} HnReduce;

/* Which axes of x are reduced: [rank] of them. `axes` is input 1 or NULL. FALSE: some are outside the rank. */
gboolean hn_reduce_mask(const HnReduce *p, const HnTensor *x, const HnTensor *axes, gboolean *mask);
/* The same of SumLike: those along which x was broadcast from `like`. */
void hn_reduce_mask_like(const HnTensor *x, const HnTensor *like, gboolean *mask);

/* The input as [outer, n, inner] where the reduced axes lie side by side: the sizes of the three. `axes` is input 1 or
 * NULL. FALSE: the axes lie apart, or are outside the rank. */
gboolean hn_reduce_rows(const HnReduce *p, const HnTensor *x, const HnTensor *axes, int64_t rows[3]);

/* HnOp.grad (op/reduce_grad.c) */
void hn_reducesum_grad(struct HnTape *t);
void hn_reducemean_grad(struct HnTape *t);
void hn_reducepick_grad(struct HnTape *t);
void hn_reduceprod_grad(struct HnTape *t);
void hn_reducel1_grad(struct HnTape *t);
void hn_reducel2_grad(struct HnTape *t);
void hn_reducesumsquare_grad(struct HnTape *t);
void hn_reducelogsum_grad(struct HnTape *t);
void hn_reducelogsumexp_grad(struct HnTape *t);
