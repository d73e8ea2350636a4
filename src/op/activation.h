/*
 * Parameters of the operators in activation.c, for their records and for backends.
 */
#pragma once

#include "op/op.h"

typedef struct {
    double a, b;   /* alpha; beta, gamma or bias */
    gboolean tanh; /* Gelu: the approximation */
} HnActivation;

/* Does the attribute `approximate` of Gelu, and of its gradient, say tanh? */
gboolean hn_activation_gelu_tanh(HnBind *b);
