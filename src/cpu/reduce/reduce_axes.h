/*
 * The kernel of all reductions of f32, over any axes.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_reduce;
