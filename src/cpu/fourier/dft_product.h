/*
 * Convolutions and matrix products whose constant weights spell out a discrete Fourier transform (dft_table.h),
 * computed as one.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_dft_conv, hn_cpu_dft_matmul;
