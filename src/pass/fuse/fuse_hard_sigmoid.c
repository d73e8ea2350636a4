/*
 * HardSigmoid, max(0, min(1, alpha * x + beta)), where it is spelled out with Clip; and HardSwish (opset 14), x times
 * that with alpha = 1 / 6 and beta = 1 / 2. Before opset 14 the product with x stays.
 */
#include "op/activation.h"
#include "pass/pattern.h"

/* max(0, min(1, alpha * x + beta)) */
typedef struct {
    HnValue *x;
    double alpha, beta;
} Ramp;

/* factor * v is a ramp. With `stop`, of that value if it can be. */
static gboolean is_ramp(const HnRewrite *r, const HnGraph *g, const HnValue *v, const HnValue *stop, double factor,
                        Ramp *ramp)
{
    double lo, hi;
    const HnNode *n = v->graph == g && v->producer_out == 0 ? v->producer : NULL;
    if (n != NULL && n->op == &hn_op_hardsigmoid && factor == 1) {
        const HnActivation *p = n->params;
        *ramp = (Ramp){ hn_node_in(n, 0), p->a, p->b };
        return TRUE;
    }
    if (n == NULL || n->op != &hn_op_clip || hn_node_in(n, 0) == NULL || !hn_pattern_bounds(r, n, &lo, &hi))
        return FALSE;
    if (lo * factor != 0 || !hn_pattern_near(r, v, hi * factor, 1))
        return FALSE;
    ramp->x = hn_node_in(n, 0);
    ramp->alpha = 1;
    ramp->beta = 0;
    if (hn_rw_single(ramp->x) && ramp->x != stop)
        ramp->x = hn_pattern_line(r, g, ramp->x, stop, &ramp->alpha, &ramp->beta);
    ramp->alpha *= factor;
    ramp->beta *= factor;
    return TRUE;
}

static HnNode *add_ramp(HnRewrite *r, HnNode *before, const Ramp *ramp)
{
    HnNode *n = hn_rw_add(r, before, "HardSigmoid", HN_INS(ramp->x));
    hn_node_set_float(n, "alpha", (float)ramp->alpha);
    hn_node_set_float(n, "beta", (float)ramp->beta);
    return n;
}

/* n alone is a ramp, and more than a Clip. */
static gboolean fuse_one(HnRewrite *r, HnNode *n, const HnValue *v, double factor)
{
    Ramp ramp;
    if (v->producer == NULL || v->producer->op != &hn_op_clip || !is_ramp(r, n->graph, v, NULL, factor, &ramp) ||
        (ramp.alpha == 1 && ramp.beta == 0))
        return FALSE;
    if (!hn_pattern_is_float(r, ramp.x) || !hn_rw_same_shape(r, ramp.x, hn_node_out(n, 0)))
        return hn_rw_miss(r, n, "'%s' is neither f32 nor f16, or of another shape", ramp.x->name);
    if (!hn_rw_can(n->graph, &hn_op_hardsigmoid, 6) || !hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take(r, add_ramp(r, n, &ramp), n);
}

/* n is x times a ramp, which is leaf i of the product. */
static gboolean fuse_product(HnRewrite *r, HnNode *n, const HnSgemm *p, int i)
{
    HnValue *x = p->leaf[1 - i], *v = p->leaf[i];
    Ramp ramp;
    if (!hn_rw_single(v) || !is_ramp(r, n->graph, v, x, p->factor, &ramp))
        return FALSE;
    const gboolean swish = ramp.x == x && hn_pattern_near(r, x, ramp.alpha, 1.0 / 6) &&
                           hn_pattern_near(r, x, ramp.beta, 0.5) && hn_rw_can(n->graph, &hn_op_hardswish, 14);
    if (v->producer->op == &hn_op_hardsigmoid && !swish)
        return FALSE;
    if (!hn_pattern_is_float(r, ramp.x) || !hn_rw_same_shape(r, ramp.x, v))
        return hn_rw_miss(r, n, "'%s' is neither f32 nor f16, or of another shape", ramp.x->name);
    if ((!swish && ramp.alpha == 1 && ramp.beta == 0) || !hn_rw_go(r, n))
        return FALSE;
    if (swish)
        return hn_rw_take(r, hn_rw_add(r, n, "HardSwish", HN_INS(x)), n);
    HnValue *y = hn_rw_out(r, add_ramp(r, n, &ramp), v->name);
    return hn_rw_take(r, hn_rw_add(r, n, "Mul", HN_INS(x, y)), n);
}

static gboolean fuse_hard_sigmoid(HnRewrite *r, HnNode *n)
{
    HnSgemm p;
    if (n->op == &hn_op_clip)
        return fuse_one(r, n, hn_node_out(n, 0), 1);
    if ((n->op != &hn_op_mul && n->op != &hn_op_div) || !hn_pattern_product(r, n->graph, hn_node_out(n, 0), &p))
        return FALSE;
    if (p.n == 1)
        return hn_rw_single(p.leaf[0]) && fuse_one(r, n, p.leaf[0], p.factor);
    return p.n == 2 && (fuse_product(r, n, &p, 0) || fuse_product(r, n, &p, 1));
}

const HnPass hn_pass_fuse_hard_sigmoid = {
    .name = "fuse-hard-sigmoid",
    .summary = "HardSigmoid and HardSwish where they are spelled out with Clip",
    .level = 2,
    .node = fuse_hard_sigmoid,
};
