/*
 * ConvTranspose with results channels last, as products of rows of channels with packed weights.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_convtranspose_gemm;
