/*
 * Integer kernels with constant weights; see int8_conv.c.
 */
#pragma once

#include "run/backend.h"

extern const HnKernel hn_cpu_int8_conv;
extern const HnKernel hn_cpu_int8_depthwise;
/* Groups of 4, 8 or 16 channels. */
extern const HnKernel hn_cpu_int8_group;
extern const HnKernel hn_cpu_int8_matmul;
/* The same two of weights that are mostly 0: ahead of others, where that pays. */
extern const HnKernel hn_cpu_sparse_int8_conv;
extern const HnKernel hn_cpu_sparse_int8_matmul;
/* MaxPool of bytes. */
extern const HnKernel hn_cpu_int8_maxpool;
