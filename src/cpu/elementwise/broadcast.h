/*
 * Element-wise kernels of plain operands that broadcast as numpy's do.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "run/element_codes.h"

/* Rows of two operands: n elements of z from x and y, which advance by sx and sy, 0 or 1. */
typedef void (*HnRowFn)(void *z, const void *x, const void *y, int64_t n, int sx, int sy);
/* The rows of f32 of an HN_PAIR. */
HnRowFn hn_broadcast_pair(HnElementCode code);

extern const HnKernel hn_cpu_broadcast;
