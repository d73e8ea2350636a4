/*
 * HnElementwise: a program (run/element_program.h) over rows of f32, some thousand elements at a time, which stay in
 * the first cache from the first instruction to the last.
 */
#pragma once

#include "run/element_program.h"

G_BEGIN_DECLS

typedef struct HnElementwise HnElementwise;

/* For the nodes of a step's group, each of which was taken. */
HnElementwise *hn_elementwise_new(const HnStep *s);
void hn_elementwise_free(HnElementwise *p);

int hn_elementwise_registers(const HnElementwise *p);
double hn_elementwise_flops(const HnElementwise *p); /* rough, of one element */
/* n elements: at[i] is where operand i begins, step[i] what it advances by, 0 or 1 (registers and the result: 1). */
void hn_elementwise_run(const HnElementwise *p, float *const *at, const int *step, int64_t n);

G_END_DECLS
