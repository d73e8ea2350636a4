#include "run/int8_forms.h"

#include "op/ops.h"

const HnInt8Inputs *hn_int8_inputs(const HnStep *s)
{
    static const struct {
        const HnOp *op;
        HnInt8Inputs in;
    } forms[] = {
        { &hn_op_quantconv, { 0, 1, 2, 3, 4, 5, 6, 7, 8, FALSE, TRUE } },
        { &hn_op_quantmatmul, { 0, 1, 2, 3, 4, 5, 6, 7, 8, TRUE, TRUE } },
        { &hn_op_qlinearconv, { 0, 1, 2, 3, 4, 5, 8, 6, 7, FALSE, FALSE } },
        { &hn_op_qlinearmatmul, { 0, 1, 2, 3, 4, 5, -1, 6, 7, TRUE, FALSE } },
        { &hn_op_convinteger, { 0, -1, 2, 1, -1, 3, -1, -1, -1, FALSE, FALSE } },
        { &hn_op_matmulinteger, { 0, -1, 2, 1, -1, 3, -1, -1, -1, TRUE, FALSE } },
    };
    guint i = 0;
    while (forms[i].op != s->op)
        i++;
    return &forms[i].in;
}

const HnTensor *hn_int8_input(const HnStep *s, int i)
{
    return i >= 0 ? hn_step_in(s, i) : NULL;
}
