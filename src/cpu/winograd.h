/*
 * Convolutions with 3x3 kernels in fewer products, after Winograd: conv.c lists the kernel before the direct ones.
 */
#pragma once

#include "cpu/cpu.h"

extern const HnKernel hn_cpu_winograd;
