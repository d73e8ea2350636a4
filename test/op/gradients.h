/*
 * Gradients of records, written by hn_reverse() and run on ref, against differences of the operator's own ref: in f64
 * where the operator has it, for the cases of test/op, with fixed and with symbolic shapes.
 */
#pragma once

#include <stdint.h>

#include "case.h"

/* TAP, one line for each record with a gradient; NULL: all operators. How many fail. */
int hn_check_gradients(const HnCaseList *const *lists, guint n, const char *only, uint64_t seed);
