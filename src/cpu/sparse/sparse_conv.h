/*
 * Convolutions whose constant weights are mostly 0, in plain layout: f32, one group, 1 or 2 spatial axes.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_sparse_conv;
