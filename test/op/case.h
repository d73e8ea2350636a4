/*
 * Cases of an operator. The harness (check.c) runs each through infer and ref and compares with `want`; then through
 * every kernel of every backend that accepts it and compares with ref, with guard zones around outputs; then with
 * f16, bf16 and other types that the record admits where no `want` is given. A failure prints the line to run it again.
 *
 * Inputs are separated by blanks:  f32[2,3]            random elements from the seed
 *                                  f32[2,3]@0:1        random within [lo,hi] (integers: both ends included)
 *                                  f32[2,3]@0:1:5      of 5 values there, equally far apart
 *                                  i64[2]={0,-1}       given elements; f32={1.5} is a scalar; inf, nan, true, false
 *                                  string[2]={'a','b c'}
 *                                  seq{f32[2] f32[3]@0:1}  a sequence; opt{...} or opt{} an optional
 *                                  map{i64[2]={1,2} f32[2]={3,4}}
 *                                  -                   absent
 *                                  !i64[2]={0,-1}      a weight: known to infer as a constant
 * Attributes, by blanks:           axis=1 alpha=0.5 pads=[0,1,0,1] mode='linear' value=f32[1]={3}
 * (a number with a point or exponent is a float, without one an int; [1,2] ints, [1.0,2.0] floats, ['a','b'] strings)
 */
#pragma once

#include <glib.h>

#include "base/error.h"

typedef struct {
    const char *in;
    const char *attrs; /* NULL: none */
    const char
        *want; /* outputs by blanks, all elements given; an output written as f32[2,3] has its shape checked only */
    int opset; /* 0: newest */
    int n_out; /* named outputs; 0: as many as `want` has, else 1 */
    double rtol, atol; /* of `want` and of kernels against ref; 0,0: exact for integers, 1e-5/1e-6 for floats */
    gboolean own;      /* what ONNX leaves open (the order of NaN): other forms of the operator may differ */
    gboolean refused;  /* bind, infer or ref must fail ... */
    HnError code;      /* ... with this code */
} HnCase;

typedef struct {
    const char *op;
    const HnCase *cases;
    guint n;
} HnCaseList;

#define HN_CASES(symbol, name, array)          \
    extern const HnCaseList hn_cases_##symbol; \
    const HnCaseList hn_cases_##symbol = { name, array, G_N_ELEMENTS(array) }
