/*
 * The kernel for convolutions with one channel to a group, which conv.c lists.
 */
#pragma once

#include "cpu/cpu.h"

extern const HnKernel hn_cpu_depthwise;
