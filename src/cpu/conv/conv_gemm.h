/*
 * Convolutions of any size, stride, dilation and grouping with results channels last, as products of rows of channels
 * with packed weights.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_conv_gemm, hn_cpu_conv_gemm_turned; /* of ConvTranspose: cpu/conv/turned.h */
