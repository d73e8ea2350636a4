/*
 * Inputs that have to be of one shape, without broadcasting.
 */
#pragma once

#include "op/op.h"

/* Of inputs 0 to n - 1, those that are there. Failure: "inputs 0 and 2 have different shapes". */
void hn_infer_one_shape(HnInfer *x, int n);
gboolean hn_eval_one_shape(HnEval *e, int n);
