/*
 * Functions of one number: their loops, and the kernel of them all. Pow by a constant is one of them.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

/* y = f(x), which may lie in one place; what a and b are is the function's. */
typedef void (*HnUnaryFn)(const float *x, float *y, int64_t n, float a, float b);
typedef struct {
    HnUnaryFn fn;
    float a, b;
} HnUnary;

/* What is known of an operator's input ahead. */
typedef struct {
    const HnTensor *known; /* elements that do not change; NULL: they do */
    gboolean present;
} HnOperand;

/* The loop of an operator, in this processor's vectors. Or why there is none. */
const char *hn_unary_of(const HnOp *op, const void *params, const HnOperand *in, int n_in, HnUnary *u);

extern const HnKernel hn_cpu_unary;
