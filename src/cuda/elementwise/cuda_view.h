/*
 * How operands and result of an element-wise step lie: plain, or channels last where most of them do.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"

G_BEGIN_DECLS

/* Tensors without elements, whose plain order is that of the elements in memory. */
typedef struct {
    HnTensor *z;
    int n;
    HnTensor *x[]; /* NULL: not read */
} HnCudaView;

/* In prepare: chooses, and says so in the step's ports. */
HnCudaView *hn_cuda_view_new(HnStep *s);
void hn_cuda_view_free(HnCudaView *v);

G_END_DECLS
