/*
 * What the gradients of Conv and ConvTranspose share: each is the other's adjoint.
 */
#pragma once

#include "op/conv.h"
#include "op/tape.h"

G_BEGIN_DECLS

/* A node with the plan's strides, pads, dilations and groups, all written down. */
HnNode *hn_conv_backward(HnTape *t, const HnConvPlan *p, const char *op, const char *domain, int n_in,
                         HnValue *const *in, int n_out);
/* The sum over all but channels, shaped like input 2. */
void hn_conv_bias_grad(HnTape *t);

G_END_DECLS
