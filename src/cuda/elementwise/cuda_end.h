/*
 * Element-wise nodes that a convolution or a product computes along, for its host code.
 */
#pragma once

#include "cuda/elementwise/cuda_end_args.h"
#include "cuda/core/cuda_kernel.h"

G_BEGIN_DECLS

/* HnKernel.fuses: the step's fused nodes are such as cuda_end.cuh computes. */
gboolean hn_cuda_end_fits(const HnStep *s);
/* The same with channels along another axis than 1. */
gboolean hn_cuda_end_fits_axis(const HnStep *s, int axis);
/* None of the fused nodes takes long: what has few warps to compute results with leaves these to a kernel of their own.
 */
gboolean hn_cuda_end_is_short(const HnStep *s);
/* How x lies under the result of fused node k, which adds x, from *port, to the result so far; HN_CUDA_END_NONE: it
 * does something else. */
int32_t hn_cuda_end_adds(const HnStep *s, int k, int axis, int *port);
/* In prepare: reads the fused nodes, which fit; ports whose numbers it takes from the host are marked as unread. */
void hn_cuda_end_init(HnStep *s, HnCudaEnd *e, int axis);
/* In prepare: operands of the shape of a result that is channels last come so, too. */
void hn_cuda_end_last(HnStep *s);
/* The step reads port i as such an operand. */
gboolean hn_cuda_end_beside(const HnStep *s, int i);
/* In run: fills in the addresses. */
void hn_cuda_end_place(const HnStep *s, HnCudaEnd *e);

G_END_DECLS
