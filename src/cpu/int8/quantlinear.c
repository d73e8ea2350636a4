/*
 * QuantConv and QuantMatMul.
 */
#include "cpu/int8/int8_conv.h"
#include "cpu/int8/int8_winograd.h"
#include "cpu/core/cpu_kernel.h"

const HnKernel *const hn_cpu_quantconv[] = { &hn_cpu_int8_depthwise, &hn_cpu_int8_group, &hn_cpu_sparse_int8_conv,
                                             &hn_cpu_int8_winograd,  &hn_cpu_int8_conv,  NULL };
const HnKernel *const hn_cpu_quantmatmul[] = { &hn_cpu_sparse_int8_matmul, &hn_cpu_int8_matmul, NULL };
