/*
 * Kernels of values channels last that are no product: pools, means of planes, depthwise convolutions, nearest
 * elements. Each takes what the kernel of plain values takes, too, whose reject() says so where x lies channels last.
 */
#pragma once

#include "cuda/core/cuda_layout.h"

G_BEGIN_DECLS

/* x lies channels last, which is not plain, and `last` takes the step. */
gboolean hn_cuda_goes_last(const HnStep *s, const HnKernel *last);
#define HN_CUDA_GOES_LAST "channels last, as x lies"

/* A convolution reads v, of so many channels, channels last in the end, through nodes that take it as it lies. */
gboolean hn_cuda_last_is_wanted(const HnValue *v, int64_t channels);

extern const HnKernel hn_cuda_max_pool_last, hn_cuda_mean_pool_last, hn_cuda_global_max_last, hn_cuda_global_mean_last;
extern const HnKernel hn_cuda_reduce_last, hn_cuda_conv_depthwise_last, hn_cuda_nearest_last, hn_cuda_concat_last;
/* The same of a concatenation: most of its inputs do. */
gboolean hn_cuda_concat_goes_last(const HnStep *s);
extern const HnKernel hn_cuda_split_last, hn_cuda_slice_last;

G_END_DECLS
