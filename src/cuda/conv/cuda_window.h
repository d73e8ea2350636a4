/*
 * Windows over 1 to 3 spatial axes, as the kernels of convolutions and pools take them.
 */
#pragma once

#include "cuda/conv/cuda_window_args.h"
#include "cuda/core/cuda_kernel.h"
#include "op/window.h"

G_BEGIN_DECLS

/* Why n axes cannot be such; NULL: they can. */
const char *hn_cuda_reject_axes(int n, const HnWindowAxis *axis);
void hn_cuda_axes(int n, const HnWindowAxis *axis, HnCudaWindowAxis *to);
/* Inputs and outputs are f32, f16 or bf16 and not empty. */
const char *hn_cuda_reject_values(const HnStep *s);

G_END_DECLS
