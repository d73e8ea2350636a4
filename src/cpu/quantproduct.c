/*
 * QuantConv and QuantMatMul.
 */
#include "cpu/byte_conv.h"
#include "cpu/byte_winograd.h"
#include "cpu/cpu.h"

const HnKernel *const hn_cpu_quantconv[] = { &hn_cpu_byte_depthwise, &hn_cpu_byte_winograd, &hn_cpu_byte_conv, NULL };
const HnKernel *const hn_cpu_quantmatmul[] = { &hn_cpu_byte_matmul, NULL };
