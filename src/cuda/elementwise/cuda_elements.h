/*
 * The kernels of element-wise programs: of groups, and of single nodes.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"

extern const HnKernel hn_cuda_group, hn_cuda_elements;
