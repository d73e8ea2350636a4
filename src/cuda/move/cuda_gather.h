/*
 * Index tensors of Gather and Scatter operators on the device.
 */
#pragma once

#include "cuda/move/cuda_gather_args.h"
#include "cuda/move/cuda_strided.h"

G_BEGIN_DECLS

/* In prepare: input i of the step as indices that may turn out to be outside. */
gboolean hn_cuda_indices_new(HnStep *s, int i, HnCudaIndices *at, GError **error);
/* The form in which each index of input 1, along `axis` of input 0, says where an element is. */
gboolean hn_cuda_elements_new(HnStep *s, int axis, HnCudaElementsArgs *a, GError **error);

G_END_DECLS
