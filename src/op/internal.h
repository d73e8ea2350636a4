/* Shared by op.c, infer.c and eval.c; of no use outside. */
#pragma once

#include "op/op.h"

/* "node 'x' (Conv): " in front of a failure of bind, infer or ref, which is given away. */
void hn_op_propagate(GError **error, GError *failure, const HnNode *n);
/* Letter of input or output i in a record's `in` or `out`; *same is FALSE where types under a repeated letter may
 * differ. */
char hn_op_letter(const char *letters, int i, gboolean *same);
