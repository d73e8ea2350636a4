/*
 * The gradient of Relu or Clip behind a BatchNormalization becomes part of that of the normalization, which knows from
 * its input what was cut off: a pass over memory less, and one value less that has to stay until then.
 */
#include <math.h>

#include "lower/lower.h"
#include "op/batchnorm.h"
#include "pass/pattern.h"

/* m normalizes as n, a gradient, says: by given moments, or by the batch's. */
static gboolean same_kind(const HnNode *m, const HnNode *n)
{
    const HnBatchNormGrad *p = n->params;
    const HnBatchNorm *q = m->params;
    if (!p->frozen)
        return m->op == &hn_op_batchnormtrain;
    return m->op == &hn_op_batchnormalization && !q->training && q->epsilon == p->epsilon;
}

/* v is what the normalization makes whose gradient n is. */
static gboolean is_norm_of(const HnValue *v, const HnNode *n)
{
    const HnNode *m = v->producer;
    if (m == NULL || m->op == NULL || v->producer_out != 0 || !same_kind(m, n))
        return FALSE;
    const gboolean frozen = m->op == &hn_op_batchnormalization;
    gboolean same = hn_node_in(n, 5) != NULL;
    for (int i = 3; i < 5; i++)
        same = same && hn_node_in(n, i) == (frozen ? hn_node_in(m, i) : hn_node_out(m, i));
    for (int i = 0; i < 3; i++)
        same = same && hn_node_in(n, i == 2 ? 5 : i + 1) == hn_node_in(m, i);
    return same;
}

/* v says where a value of n's normalization lies above `lo`, or below `hi`: that bound. */
static gboolean bound_of(const HnRewrite *r, const HnNode *n, const HnValue *v, const HnOp *compare, double *x)
{
    const HnNode *c = hn_pattern_maker(n->graph, v, compare);
    return c != NULL && is_norm_of(hn_node_in(c, 0), n) && hn_rw_number(r, hn_node_in(c, 1), x);
}

/* The condition is that of Clip. */
static gboolean clips(const HnRewrite *r, const HnNode *n, const HnValue *v, double *lo, double *hi)
{
    const HnNode *both = hn_pattern_maker(n->graph, v, &hn_op_and);
    *lo = -INFINITY;
    *hi = INFINITY;
    if (both != NULL)
        return bound_of(r, n, hn_node_in(both, 0), &hn_op_greaterorequal, lo) &&
               bound_of(r, n, hn_node_in(both, 1), &hn_op_lessorequal, hi);
    return bound_of(r, n, v, &hn_op_greaterorequal, lo) || bound_of(r, n, v, &hn_op_lessorequal, hi);
}

/* The condition is that of Relu: its result is above 0. */
static gboolean relus(const HnRewrite *r, const HnNode *n, const HnValue *v)
{
    const HnNode *c = hn_pattern_maker(n->graph, v, &hn_op_greater);
    const HnNode *relu = c != NULL ? hn_rw_maker(hn_node_in(c, 0), &hn_op_relu) : NULL;
    double zero;
    return relu != NULL && is_norm_of(hn_node_in(relu, 0), n) && hn_rw_number(r, hn_node_in(c, 1), &zero) && zero == 0;
}

static gboolean batchnorm_mask(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_batchnormgrad || ((const HnBatchNormGrad *)n->params)->mask != HN_MASK_NONE)
        return FALSE;
    const HnNode *where = hn_pattern_maker(n->graph, hn_node_in(n, 0), &hn_op_where);
    double other, lo = -INFINITY, hi = INFINITY;
    if (where == NULL || !hn_rw_number(r, hn_node_in(where, 2), &other) || other != 0 ||
        !hn_rw_same_shape(r, hn_node_in(where, 1), hn_node_in(n, 1)))
        return FALSE;
    const gboolean relu = relus(r, n, hn_node_in(where, 0));
    if (!relu && !clips(r, n, hn_node_in(where, 0), &lo, &hi))
        return hn_rw_miss(r, n, "'%s' is no activation of its normalization", hn_node_in(where, 0)->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, hn_node_in(where, 1));
    hn_node_set_string(n, "mask", relu ? "relu" : "clip");
    if (lo > -INFINITY)
        hn_node_set_float(n, "lo", (float)lo);
    if (hi < INFINITY)
        hn_node_set_float(n, "hi", (float)hi);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_batchnorm_mask = {
    .name = "batchnorm-mask",
    .summary = "the gradient of an activation behind BatchNormalization within that of the normalization",
    .level = 2,
    .node = batchnorm_mask,
};
