/*
 * Max and Min with numbers become Relu and Clip, of x and a multiple of x LeakyRelu; so does Where by the sign of x.
 */
#include "pass/pattern.h"

static gboolean is_two(const HnNode *n, const HnOp *op)
{
    return n->op == op && n->in->len == 2 && hn_node_in(n, 0) != NULL && hn_node_in(n, 1) != NULL;
}

/* min(max(x, lo), hi), or the other way round. */
static gboolean fuse_clip(HnRewrite *r, HnNode *n)
{
    double lo, hi, outer, inner;
    HnValue *v = hn_pattern_with_number(r, n, &outer);
    const HnNode *m = v != NULL && v->graph == n->graph && hn_rw_single(v) ? v->producer : NULL;
    if (m == NULL || m->graph != n->graph)
        return FALSE;
    HnValue *x = NULL;
    if (is_two(m, n->op == &hn_op_min ? &hn_op_max : &hn_op_min))
        x = hn_pattern_with_number(r, m, &inner);
    else if (n->op == &hn_op_min && m->op == &hn_op_relu && hn_pattern_bounds(r, m, &inner, &hi))
        x = hn_node_in(m, 0);
    if (x == NULL)
        return FALSE;
    lo = n->op == &hn_op_min ? inner : outer;
    hi = n->op == &hn_op_min ? outer : inner;
    if (!(lo <= hi))
        return hn_rw_miss(r, n, "the lower bound %g is above %g", lo, hi);
    if (!hn_dtype_in(hn_rw_dtype(r, x), HN_T_FLOATS))
        return hn_rw_miss(r, n, "'%s' is of no float type", x->name);
    if (!hn_rw_can(n->graph, &hn_op_clip, 6) || !hn_rw_go(r, n))
        return FALSE;
    if (hn_rw_opset(n->graph) >= 11)
        return hn_rw_take(r,
                          hn_rw_add(r, n, "Clip",
                                    HN_INS(x, hn_pattern_scalar(r, n->graph, "min", x, lo),
                                           hn_pattern_scalar(r, n->graph, "max", x, hi))),
                          n);
    HnNode *clip = hn_rw_add(r, n, "Clip", HN_INS(x));
    hn_node_set_float(clip, "min", (float)lo);
    hn_node_set_float(clip, "max", (float)hi);
    return hn_rw_take(r, clip, n);
}

static gboolean fuse_relu(HnRewrite *r, HnNode *n)
{
    double zero;
    HnValue *x = hn_pattern_with_number(r, n, &zero);
    if (x == NULL || zero != 0)
        return FALSE;
    if (!hn_dtype_in(hn_rw_dtype(r, x), HN_T_FLOATS))
        return hn_rw_miss(r, n, "'%s' is of no float type", x->name);
    return hn_rw_can(n->graph, &hn_op_relu, 6) && hn_rw_go(r, n) &&
           hn_rw_take(r, hn_rw_add(r, n, "Relu", HN_INS(x)), n);
}

/* n is x where that is positive and v, a multiple of x, where it is negative. */
static gboolean fuse_leaky(HnRewrite *r, HnNode *n, HnValue *x, HnValue *v, double least, double most)
{
    HnSgemm p;
    if (x == v || !hn_rw_single(v) || !hn_pattern_product(r, n->graph, v, &p) || p.n != 1 || p.leaf[0] != x)
        return FALSE;
    if (!(p.factor >= least && p.factor <= most))
        return hn_rw_miss(r, n, "the slope %g is outside of [%g, %g]", p.factor, least, most);
    if (!hn_pattern_is_float(r, x))
        return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", x->name);
    if (!hn_rw_can(n->graph, &hn_op_leakyrelu, 6) || !hn_rw_go(r, n))
        return FALSE;
    HnNode *leaky = hn_rw_add(r, n, "LeakyRelu", HN_INS(x));
    hn_node_set_float(leaky, "alpha", (float)p.factor);
    return hn_rw_take(r, leaky, n);
}

/* Where(x > 0, x, a * x), and what says the same. */
static gboolean fuse_where(HnRewrite *r, HnNode *n)
{
    double zero;
    const HnValue *c = hn_node_in(n, 0);
    const HnNode *m = c->graph == n->graph && hn_rw_single(c) ? c->producer : NULL;
    if (m == NULL || m->graph != n->graph)
        return FALSE;
    const gboolean more = m->op == &hn_op_greater || m->op == &hn_op_greaterorequal;
    if (!more && m->op != &hn_op_less && m->op != &hn_op_lessorequal)
        return FALSE;
    HnValue *x = hn_node_in(m, 0), *positive = hn_node_in(n, more ? 1 : 2), *negative = hn_node_in(n, more ? 2 : 1);
    if (positive != x || !hn_pattern_number(r, hn_node_in(m, 1), x, &zero) || zero != 0)
        return FALSE;
    return fuse_leaky(r, n, x, negative, -1e30, 1e30);
}

static gboolean fuse_min_max(HnRewrite *r, HnNode *n)
{
    if (n->op == &hn_op_where)
        return fuse_where(r, n);
    if (!is_two(n, &hn_op_max) && !is_two(n, &hn_op_min))
        return FALSE;
    if (fuse_clip(r, n))
        return TRUE;
    HnValue *a = hn_node_in(n, 0), *b = hn_node_in(n, 1);
    return n->op == &hn_op_max && (fuse_relu(r, n) || fuse_leaky(r, n, a, b, 0, 1) || fuse_leaky(r, n, b, a, 0, 1));
}

const HnPass hn_pass_fuse_min_max = {
    .name = "fuse-min-max",
    .summary = "Clip, Relu and LeakyRelu where they are spelled out with Max, Min or Where",
    .level = 1,
    .node = fuse_min_max,
};
