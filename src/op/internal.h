/* Shared by op.c, infer.c and eval.c; of no use outside. */
#pragma once

#include "op/op.h"

/* "node 'x' (Conv): " in front of a failure of bind, infer or ref, which is given away. */
void hn_op_propagate(GError **error, GError *failure, const HnNode *n);
/* Types of a letter in the newest opset. */
HnTypeMask hn_op_mask(const HnOp *op, char letter);
