/*
 * Functions that do nothing to what a function before made: Relu of Relu, Abs of Exp, Ceil of Round; and those that
 * take back what it did: Neg of Neg, Not of Not.
 */
#include "pass/shapes.h"

/* Operators whose results have a property. */
static const HnOp *const whole[] = { &hn_op_ceil, &hn_op_floor, &hn_op_round, &hn_op_sign, NULL };
static const HnOp *const not_negative[] = { &hn_op_relu,
                                            &hn_op_abs,
                                            &hn_op_exp,
                                            &hn_op_sigmoid,
                                            &hn_op_hardsigmoid,
                                            &hn_op_softmax,
                                            &hn_op_softplus,
                                            &hn_op_hardmax,
                                            &hn_op_reducel1,
                                            &hn_op_reducel2,
                                            &hn_op_reducesumsquare,
                                            &hn_op_globallppool,
                                            NULL };
static const HnOp *const of_sign[] = { &hn_op_sign, NULL };

static const struct {
    const HnOp *op;
    const HnOp *const *behind;
} idle[] = {
    { &hn_op_ceil, whole },   { &hn_op_floor, whole },       { &hn_op_round, whole },
    { &hn_op_sign, of_sign }, { &hn_op_relu, not_negative }, { &hn_op_abs, not_negative },
};

static const HnOp *const inverses[] = { &hn_op_neg, &hn_op_not, &hn_op_bitwisenot };

/* The operator of the node that makes v, in v's own graph. */
static const HnOp *made_by(const HnValue *v)
{
    return v->producer != NULL && v->producer_out == 0 && v->producer->graph == v->graph ? v->producer->op : NULL;
}

static gboolean eliminate_repeated(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const HnOp *before = x != NULL ? made_by(x) : NULL;
    if (n->op == NULL || before == NULL || !hn_value_is_read(y))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(idle); i++)
        for (const HnOp *const *op = idle[i].behind; n->op == idle[i].op && *op != NULL; op++)
            if (before == *op)
                return hn_rw_bypass(r, n, y, x);
    for (gsize i = 0; i < G_N_ELEMENTS(inverses); i++)
        if (n->op == inverses[i] && before == n->op)
            return hn_rw_bypass(r, n, y, hn_node_in(x->producer, 0));
    if (n->op == &hn_op_abs && before == &hn_op_neg && hn_rw_go(r, n)) {
        hn_rw_set_in(r, n, 0, hn_node_in(x->producer, 0));
        return hn_rw_done(r, n);
    }
    return FALSE;
}

const HnPass hn_pass_eliminate_repeated = {
    .name = "eliminate-repeated",
    .summary = "remove functions that do nothing to what is Relu'd, rounded, positive, ... already",
    .level = 1,
    .node = eliminate_repeated,
};
