/*
 * ConvTranspose of few output channels: products with all taps at once, which are added where they overlap.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

extern const HnKernel hn_cpu_convtranspose_columns;
