/*
 * Gelu where it is spelled out, with erf or with its approximation by tanh (opset 20):
 *     x / 2 * (1 + erf(x / sqrt(2)))
 *     x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), or with x * (1 + 0.044715 * x^2)
 */
#include <math.h>

#include "pass/pattern.h"

#define CUBIC 0.044715

/* v is 1 + f(u) for an operator f: u. */
static HnValue *one_plus(const HnRewrite *r, const HnGraph *g, const HnValue *v, const HnOp *f)
{
    double one;
    const HnNode *add = hn_pattern_maker(g, v, &hn_op_add);
    HnValue *w = add != NULL ? hn_pattern_with_number(r, add, &one) : NULL;
    const HnNode *n = w != NULL && one == 1 ? hn_pattern_maker(g, w, f) : NULL;
    return n != NULL ? hn_node_in(n, 0) : NULL;
}

/* v, which nobody else reads, is factor * x^n. */
static gboolean is_power(const HnRewrite *r, const HnGraph *g, HnValue *v, const HnValue *x, int n, double factor)
{
    HnSgemm p;
    if (!hn_rw_single(v) || !hn_pattern_product(r, g, v, &p) || p.n != n)
        return FALSE;
    for (int i = 0; i < n; i++)
        if (!hn_product_take(&p, x))
            return FALSE;
    return hn_pattern_near(r, x, p.factor, factor);
}

/* v is x + CUBIC * x^3. */
static gboolean is_cubic(const HnRewrite *r, const HnGraph *g, const HnValue *v, const HnValue *x)
{
    const HnNode *add = hn_pattern_maker(g, v, &hn_op_add);
    if (add == NULL || (hn_node_in(add, 0) != x && hn_node_in(add, 1) != x))
        return FALSE;
    return is_power(r, g, hn_rw_other(add, x), x, 3, CUBIC);
}

/* v is 1 + CUBIC * x^2. */
static gboolean is_square(const HnRewrite *r, const HnGraph *g, const HnValue *v, const HnValue *x)
{
    double one;
    const HnNode *add = hn_pattern_maker(g, v, &hn_op_add);
    HnValue *w = add != NULL ? hn_pattern_with_number(r, add, &one) : NULL;
    return w != NULL && one == 1 && is_power(r, g, w, x, 2, CUBIC);
}

static gboolean is_tanh_argument(const HnRewrite *r, const HnGraph *g, HnValue *u, const HnValue *x)
{
    HnSgemm p;
    if (!hn_rw_single(u) || !hn_pattern_product(r, g, u, &p) || !hn_pattern_near(r, x, p.factor, 0.7978845608028654))
        return FALSE;
    if (p.n == 1)
        return is_cubic(r, g, p.leaf[0], x);
    return p.n == 2 && hn_product_take(&p, x) && is_square(r, g, p.leaf[0], x);
}

static gboolean is_erf_argument(const HnRewrite *r, const HnGraph *g, HnValue *u, const HnValue *x)
{
    return is_power(r, g, u, x, 1, 0.7071067811865476);
}

/* The function's argument where `factors`, the product without 1 + ..., is half of it: x itself. */
static HnValue *half_of(const HnRewrite *r, const HnSgemm *p, int without)
{
    HnValue *x = p->n == 2 ? p->leaf[1 - without] : NULL;
    return x != NULL && hn_pattern_near(r, x, p->factor, 0.5) ? x : NULL;
}

static gboolean fuse_gelu(HnRewrite *r, HnNode *n)
{
    HnSgemm p;
    const HnGraph *g = n->graph;
    if ((n->op != &hn_op_mul && n->op != &hn_op_div) || !hn_pattern_product(r, g, hn_node_out(n, 0), &p))
        return FALSE;
    for (int i = 0; i < p.n && p.n == 2; i++) {
        HnValue *x = half_of(r, &p, i), *e = one_plus(r, g, p.leaf[i], &hn_op_erf);
        HnValue *t = e == NULL ? one_plus(r, g, p.leaf[i], &hn_op_tanh) : NULL;
        if (x == NULL || (e == NULL && t == NULL))
            continue;
        if (e != NULL ? !is_erf_argument(r, g, e, x) : !is_tanh_argument(r, g, t, x))
            return hn_rw_miss(r, n, "the argument of %s is another one than Gelu's", e != NULL ? "erf" : "tanh");
        if (!hn_pattern_is_float(r, x))
            return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", x->name);
        if (!hn_rw_can(g, &hn_op_gelu, 20))
            return hn_rw_miss(r, n, "Gelu needs opset 20, and the model has %" PRId64, hn_rw_opset(g));
        if (!hn_rw_go(r, n))
            return FALSE;
        HnNode *gelu = hn_rw_add(r, n, "Gelu", HN_INS(x));
        if (t != NULL)
            hn_node_set_string(gelu, "approximate", "tanh");
        return hn_rw_take(r, gelu, n);
    }
    return FALSE;
}

const HnPass hn_pass_fuse_gelu = {
    .name = "fuse-gelu",
    .summary = "Gelu where it is spelled out with Erf or Tanh (opset 20)",
    .level = 2,
    .node = fuse_gelu,
};
