/*
 * Constants that are added one after the other, or multiplied, are one: (x + a) - b = x + (a - b),
 * (x * a) / b = x * (a / b). Not where the sum is so much smaller than a and b that their rounding shows, and not
 * where a product leaves the type's range.
 */
#include <math.h>

#include "op/elementwise.h"
#include "pass/shapes.h"

/* x + c or x * c; `back`: - c, or / c. */
typedef struct {
    HnValue *x, *c;
    gboolean product, back;
} Step;

static gboolean step_of(const HnRewrite *r, const HnNode *n, Step *s)
{
    s->product = n->op == &hn_op_mul || n->op == &hn_op_div;
    s->back = n->op == &hn_op_sub || n->op == &hn_op_div;
    if ((!s->product && n->op != &hn_op_add && n->op != &hn_op_sub) || n->version < 7)
        return FALSE;
    for (int i = 1; i >= (s->back ? 1 : 0); i--) {
        s->c = hn_node_in(n, i);
        s->x = hn_node_in(n, 1 - i);
        if (hn_rw_const(r, s->c) != NULL && hn_rw_const(r, s->x) == NULL)
            return s->x != NULL;
    }
    return FALSE;
}

/* One element, or the other's dimensions: what both broadcast to. NULL: neither. */
static const HnTensor *larger(const HnTensor *a, const HnTensor *b)
{
    gboolean same = a->ndim == b->ndim;
    for (int i = 0; i < a->ndim && same; i++)
        same = a->dims[i] == b->dims[i];
    if (same || (b->n == 1 && b->ndim <= a->ndim))
        return a;
    return a->n == 1 && a->ndim <= b->ndim ? b : NULL;
}

/* Result for one element; NAN: not to be put together. */
static double together(double a, double b, const Step *s, const Step *t)
{
    if (s->product) {
        const double c = (s->back ? 1 / a : a) * (t->back ? 1 / b : b);
        return a != 0 && b != 0 ? c : (double)NAN;
    }
    const double p = s->back ? -a : a, q = t->back ? -b : b;
    return fabs(p + q) >= 0.25 * MAX(fabs(p), fabs(q)) ? p + q : (double)NAN;
}

static double largest(HnDtype d)
{
    return d == HN_F16 ? 6e4 : 1e37;
}

static double smallest(HnDtype d)
{
    return d == HN_F16 ? 1e-4 : 1e-37;
}

static HnTensor *put_together(HnRewrite *r, const HnTensor *a, const HnTensor *b, const Step *s, const Step *t)
{
    const HnTensor *like = larger(a, b);
    g_autoptr(HnTensor) c = hn_tensor_new(like->dtype, like->ndim, like->dims, hn_rw_budget(r), NULL);
    for (int64_t i = 0; c != NULL && i < c->n; i++) {
        const double v =
            together(hn_tensor_get_f64(a, a->n == 1 ? 0 : i), hn_tensor_get_f64(b, b->n == 1 ? 0 : i), s, t);
        if (isnan(v) || fabs(v) > largest(c->dtype) || (s->product && fabs(v) < smallest(c->dtype)))
            return NULL;
        hn_tensor_set_f64(c, i, v);
    }
    return g_steal_pointer(&c);
}

static gboolean merge_scalars(HnRewrite *r, HnNode *n)
{
    Step s, t;
    if (n->op == NULL || !hn_value_is_read(hn_node_out(n, 0)) || !step_of(r, n, &t))
        return FALSE;
    const HnNode *first = t.x->producer;
    if (first == NULL || first->graph != n->graph || first->op == NULL || !step_of(r, first, &s) ||
        s.product != t.product)
        return FALSE;
    const HnTensor *a = hn_rw_const(r, s.c), *b = hn_rw_const(r, t.c);
    if (!hn_dtype_in(a->dtype, HN_T_FLOATS) || a->dtype != b->dtype || larger(a, b) == NULL)
        return hn_rw_miss(r, n, "the constants are no floats, or of different shapes");
    if (!hn_rw_single(t.x))
        return hn_rw_miss(r, n, "'%s' is used by others too", t.x->name);
    g_autoptr(HnTensor) c = put_together(r, a, b, &s, &t);
    if (c == NULL)
        return hn_rw_miss(r, n, "the constants take each other back, or leave the type's range");
    if (!hn_rw_go(r, n))
        return FALSE;
    HnValue *w = hn_rw_weight(r, n->graph, t.c->name, g_steal_pointer(&c));
    return hn_rw_take(r, hn_rw_add(r, n, s.product ? "Mul" : "Add", HN_INS(s.x, w)), n);
}

const HnPass hn_pass_merge_scalars = {
    .name = "merge-scalars",
    .summary = "one constant instead of two that are added or multiplied",
    .level = 1,
    .node = merge_scalars,
};
