/*
 * Element-wise kernels of plain operands that broadcast as numpy's do.
 */
#pragma once

#include "cpu/cpu.h"

extern const HnKernel hn_cpu_broadcast;
