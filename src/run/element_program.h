/*
 * HnElementProgram: element-wise nodes as a list of instructions over f32, for whoever executes it: rows of numbers on
 * the CPU, a kernel that interprets it on a device. Truth values are 0 and 1.
 *
 * Operands are numbered: the ports of the step that the nodes read, the program's registers, and last its result.
 */
#pragma once

#include "run/backend.h"
#include "run/element_codes.h"

G_BEGIN_DECLS

/* A function of one number; what a and b are is the function's. */
typedef struct {
    HnElementCode code;
    float a, b;
} HnElementFn;

/* What is known of an operator's input ahead. */
typedef struct {
    const HnTensor *known; /* elements that do not change; NULL: they do */
    gboolean present;
} HnOperand;

/* The function that an operator is, or why it is none. */
const char *hn_element_fn(const HnOp *op, const void *params, const HnOperand *in, int n_in, HnElementFn *f);

typedef struct {
    HnElementFn fn;
    int n_arg, arg[3], result;
} HnElementDo;

typedef struct {
    int n, n_ports, n_registers;
    double flops; /* rough, of one element */
    HnElementDo *at;
} HnElementProgram;

/* Can a program have this node? As HnBackend.group_takes. */
gboolean hn_element_takes(const HnNode *n, const HnType *const *in, HnTensor *const *known, const HnType *out);
/* For the nodes of a step's group, or for its one node: each was taken, or is a function of one number, or SwiGLU. */
HnElementProgram *hn_element_program_new(const HnStep *s);
void hn_element_program_free(HnElementProgram *p);

G_END_DECLS
