/*
 * Kernels of Conv that do not take all of them, in files of their own.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "op/conv.h"

G_BEGIN_DECLS

/* Why no kernel of a convolution takes the step; NULL: `p` says what it computes, one result at least. */
const char *hn_cuda_conv_reject(const HnStep *s, HnConvPlan *p);

/* Channels last takes less time than plain_ns, that of the kernel which reads and makes plain values. */
gboolean hn_cuda_conv_last_pays(const HnStep *s, double plain_ns);

extern const HnKernel hn_cuda_conv_depthwise, hn_cuda_conv_last, hn_cuda_conv_packed;

G_END_DECLS
