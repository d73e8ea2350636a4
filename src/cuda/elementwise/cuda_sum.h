/*
 * Sum and Mean of any number of floats: the kernel.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"

extern const HnKernel hn_cuda_sums;
