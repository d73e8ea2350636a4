/*
 * Parameters of Clip, for its record and for backends; and what Relu and Clip hold numbers within.
 */
#pragma once

#include "op/op.h"

typedef struct {
    gboolean attrs; /* before opset 11: the bounds are those below, else inputs 1 and 2 */
    gboolean has_min, has_max;
    float min, max;
} HnClip;

/* The number that input i of a node is, into *x, which stays where the input is absent. FALSE: it is no constant, or
 * not one number. */
typedef gboolean (*HnReadBound)(gconstpointer of, int i, double *x);

/*
 * What a Relu or Clip with these parameters holds numbers within: min(max(x, lo), hi). A bound that is absent leaves
 * *lo or *hi as it was. Afterwards lo <= hi: where a file has them the other way round, hi is all that comes out, as
 * ONNX says. FALSE: another operator, or bounds that are not known or not numbers.
 */
gboolean hn_op_bounds(const HnOp *op, const HnClip *p, HnReadBound read, gconstpointer of, double *lo, double *hi);
