/*
 * Element-wise kernels of plain operands that broadcast as numpy's do.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

/* Rows of two operands: n elements of z from x and y, which advance by sx and sy, 0 or 1. */
typedef void (*HnRowFn)(void *z, const void *x, const void *y, int64_t n, int sx, int sy);
/* The rows of an operator on elements of a type; NULL: there are none. f16 and bf16 are rows of f32. */
HnRowFn hn_broadcast_rows(const HnOp *op, HnDtype d);

extern const HnKernel hn_cpu_broadcast;
