/*
 * What the gradients of the normalizations share: x^ = (x - mean) / deviation over some axes, g the gradient of x^.
 *
 *     dx = (g - mean(g) - x^ mean(g x^)) / deviation      (without mean(g) where no mean is taken off)
 *
 * S. Ioffe, C. Szegedy, "Batch normalization", 2015, section 3.
 */
#pragma once

#include "op/tape.h"

G_BEGIN_DECLS

typedef struct {
    int64_t axes[HN_MAX_RANK];
    int n;
    double epsilon;
    gboolean centred;   /* the mean is taken off */
    HnValue *hat, *inv; /* made by hn_norm_hat(): x^, 1 / deviation */
} HnNormGrad;

void hn_norm_hat(HnTape *t, HnNormGrad *g, HnValue *x);
HnValue *hn_norm_dx(HnTape *t, const HnNormGrad *g, HnValue *dhat);
/* v [C] beside axis 1 of `rank` axes, and the sum of v over all other axes, shaped like input i. */
HnValue *hn_norm_by_channel(HnTape *t, HnValue *v, int rank);
HnValue *hn_norm_channel_sum(HnTape *t, HnValue *v, int i, int rank);

G_END_DECLS
