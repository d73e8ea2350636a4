/*
 * Steps of f16 and bf16 by the operator's f32 kernels. Constants are converted once, in prepare; other inputs and the
 * results go through scratch memory. An operator gets it by listing it behind its f32 kernels.
 */
#pragma once

#include "cpu/cpu.h"

extern const HnKernel hn_cpu_half_step;
