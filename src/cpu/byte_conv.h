/*
 * Integer kernels with constant weights; see byte_conv.c.
 */
#pragma once

#include "run/backend.h"

extern const HnKernel hn_cpu_byte_conv;
extern const HnKernel hn_cpu_byte_depthwise;
extern const HnKernel hn_cpu_byte_matmul;
/* MaxPool of bytes. */
extern const HnKernel hn_cpu_byte_maxpool;
/* Bytes as the numbers that input 1 says: a reorder. */
extern const HnKernel hn_cpu_byte_numbers;
