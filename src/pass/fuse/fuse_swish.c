/*
 * Swish (opset 24), x * sigmoid(alpha * x), and SwiGLU (28), that times something else.
 *
 * Level 3: ONNX Runtime (1.31) has no kernel of its own for Swish and takes 1.2 to 2 times as long as for Sigmoid and
 * Mul, which it fuses itself; it does not know opset 28.
 */
#include "op/activation.h"
#include "pass/pattern.h"

/* Leaf i of the product is the sigmoid of a multiple of leaf x. */
static gboolean is_gate(const HnRewrite *r, const HnGraph *g, const HnSgemm *p, int i, const HnValue *x, double *alpha)
{
    double shift;
    const HnNode *s = hn_pattern_maker(g, p->leaf[i], &hn_op_sigmoid);
    HnValue *v = s != NULL ? hn_node_in(s, 0) : NULL;
    *alpha = 1;
    if (v == NULL || v == x || !hn_rw_single(v))
        return v == x && v != NULL;
    return hn_pattern_line(r, g, v, x, alpha, &shift) == x && shift == 0;
}

static gboolean fuse_swiglu(HnRewrite *r, HnNode *n)
{
    for (int i = 0; i < 2; i++) {
        HnNode *s = hn_pattern_maker(n->graph, hn_node_in(n, i), &hn_op_swish);
        HnValue *b = hn_node_in(n, 1 - i);
        if (s == NULL || s->graph != n->graph)
            continue;
        if (!hn_rw_same_shape(r, hn_node_in(s, 0), b))
            return hn_rw_miss(r, n, "'%s' has another shape than the gate", b->name);
        if (!hn_rw_can(n->graph, &hn_op_swiglu, 28))
            return hn_rw_miss(r, n, "SwiGLU needs opset 28, and the model has %" PRId64, hn_rw_opset(n->graph));
        if (!hn_rw_go(r, n))
            return FALSE;
        HnNode *glu = hn_rw_add(r, n, "SwiGLU", HN_INS(hn_node_in(s, 0), b));
        hn_node_set_float(glu, "alpha", (float)((const HnActivation *)s->params)->a);
        return hn_rw_take(r, glu, n);
    }
    return FALSE;
}

static gboolean fuse_swish(HnRewrite *r, HnNode *n)
{
    HnSgemm p;
    double alpha;
    if (n->op != &hn_op_mul)
        return FALSE;
    if (!hn_rw_lowers(r) && fuse_swiglu(r, n)) /* a product is computed along with others */
        return TRUE;
    if (!hn_pattern_product(r, n->graph, hn_node_out(n, 0), &p) || p.n != 2 || p.factor != 1)
        return FALSE;
    for (int i = 0; i < 2; i++) {
        HnValue *x = p.leaf[1 - i];
        if (!is_gate(r, n->graph, &p, i, x, &alpha))
            continue;
        if (!hn_pattern_is_float(r, x))
            return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", x->name);
        if (!hn_rw_can(n->graph, &hn_op_swish, 24))
            return hn_rw_miss(r, n, "Swish needs opset 24, and the model has %" PRId64, hn_rw_opset(n->graph));
        if (!hn_rw_go(r, n))
            return FALSE;
        HnNode *swish = hn_rw_add(r, n, "Swish", HN_INS(x));
        if (alpha != 1)
            hn_node_set_float(swish, "alpha", (float)alpha);
        return hn_rw_take(r, swish, n);
    }
    return FALSE;
}

const HnPass hn_pass_fuse_swish = {
    .name = "fuse-swish",
    .summary = "Swish (opset 24) and SwiGLU (28) where they are spelled out with Sigmoid; slower in ONNX Runtime",
    .level = 3,
    .node = fuse_swish,
};
