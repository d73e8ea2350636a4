/*
 * A ConvTranspose of stride 1, which the gradient of a convolution's source is, is a convolution with the weights
 * turned: their taps in reverse, input and output channels exchanged. Kernels of convolutions take both, and differ in
 * where they find a weight. What all kernels of convolutions in f32 ask of a step stands here, too.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "op/conv.h"

G_BEGIN_DECLS

/* Whose plan a kernel computes by. */
typedef enum {
    HN_CONV_PLAIN,     /* a Conv's */
    HN_CONV_TURNED,    /* that of the convolution that a ConvTranspose of stride 1 is */
    HN_CONV_TRANSPOSE, /* a ConvTranspose's: axes of the convolution that it is the adjoint of (op/conv.h) */
} HnConvKind;

/* Why a kernel of f32 with at most so many spatial axes cannot compute s, as each of them asks first; NULL: nothing
 * speaks against it, and *plan is filled. */
const char *hn_conv_reject(const HnStep *s, HnConvKind kind, int axes, HnConvPlan *plan);

/* The convolution that s, a Conv or (turned) a ConvTranspose, is. FALSE: the window does not fit, or strides. */
gboolean hn_conv_plan_of(const HnStep *s, gboolean turned, HnConvPlan *plan, GError **error);

/* Elements from the first weight to that of tap 0 from input channel i of a group to output channel m of all groups;
 * the next tap is *step further on. */
static inline int64_t hn_conv_weight_at(const HnConvPlan *p, gboolean turned, int64_t m, int64_t i, int64_t *step)
{
    const int64_t in = p->in_channels, out = p->out_channels;
    *step = turned ? -1 : 1;
    return turned ? ((m / out * in + i) * out + m % out + 1) * p->taps - 1 : (m * in + i) * p->taps;
}

G_END_DECLS
