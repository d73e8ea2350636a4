/*
 * Functions of one number: their loops, and the kernel of them all. Pow by a constant is one of them.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "run/element_program.h"

/* y = f(x), which may lie in one place; what a and b are is the function's. */
typedef void (*HnUnaryFn)(const float *x, float *y, int64_t n, float a, float b);
typedef struct {
    HnUnaryFn fn;
    float a, b;
} HnUnary;

/* The loop of f, in this processor's vectors. */
HnUnary hn_unary_fn(const HnElementFn *f);
/* The loop of an operator, in this processor's vectors. Or why there is none. */
const char *hn_unary_of(const HnOp *op, const void *params, const HnOperand *in, int n_in, HnUnary *u);

extern const HnKernel hn_cpu_unary;
