#include "pass/pattern.h"

#include <math.h>

#include "op/clip.h"
#include "op/reduce.h"
#include "pass/shapes.h"

#define DEEPEST 12 /* nodes from a result to a leaf */

HnNode *hn_pattern_maker(const HnGraph *g, const HnValue *v, const HnOp *op)
{
    return v != NULL && v->graph == g && hn_rw_single(v) ? hn_rw_maker(v, op) : NULL;
}

gboolean hn_pattern_number(const HnRewrite *r, const HnValue *v, const HnValue *like, double *x)
{
    const HnTensor *t = hn_rw_const(r, v);
    return t != NULL && t->n == 1 && hn_rw_number(r, v, x) && (t->ndim == 0 || t->ndim <= hn_rw_rank(r, like));
}

HnValue *hn_pattern_with_number(const HnRewrite *r, const HnNode *n, double *x)
{
    HnValue *a = hn_node_in(n, 0), *b = hn_node_in(n, 1);
    return hn_pattern_number(r, b, a, x) ? a : hn_pattern_number(r, a, b, x) ? b : NULL;
}

gboolean hn_pattern_near(const HnRewrite *r, const HnValue *v, double a, double b)
{
    const double step = hn_rw_dtype(r, v) == HN_BF16  ? 1e-2
                        : hn_rw_dtype(r, v) == HN_F16 ? 1e-3
                        : hn_rw_dtype(r, v) == HN_F64 ? 1e-12
                                                      : 1e-6;
    return fabs(a - b) <= step * fabs(b);
}

gboolean hn_pattern_is_float(const HnRewrite *r, const HnValue *v)
{
    const HnTypeMask lowered = hn_rw_lowers(r) ? HN_BIT(HN_BF16) : 0; /* files have what other runtimes have */
    return hn_dtype_in(hn_rw_dtype(r, v), HN_BIT(HN_F32) | HN_BIT(HN_F16) | lowered);
}

typedef struct {
    const HnRewrite *r;
    const HnNode *n;
} Reader;

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const Reader *p = of;
    const HnValue *v = hn_node_in(p->n, i);
    return v == NULL || hn_rw_number(p->r, v, x);
}

gboolean hn_pattern_bounds(const HnRewrite *r, const HnNode *n, double *lo, double *hi)
{
    *lo = -(double)INFINITY;
    *hi = (double)INFINITY;
    return n->op != NULL && hn_op_bounds(n->op, n->params, read_bound, &(Reader){ r, n }, lo, hi);
}

int hn_pattern_axis(const HnRewrite *r, const HnNode *n)
{
    gboolean mark[HN_MAX_RANK];
    int axis = -1;
    if (!((const HnReduce *)n->params)->keepdims || !hn_shapes_reduced(r, n, mark))
        return -1;
    for (int i = 0; i < hn_rw_rank(r, hn_node_in(n, 0)); i++) {
        if (mark[i] && axis >= 0)
            return -1;
        axis = mark[i] ? i : axis;
    }
    return axis;
}

gboolean hn_pattern_counts_up(const HnRewrite *r, const HnValue *v, int64_t n)
{
    const HnTensor *t = hn_rw_known(r, v);
    if (t == NULL || t->ndim == 0 || t->n != n || t->dims[t->ndim - 1] != n)
        return FALSE;
    for (int64_t i = 0; i < n; i++)
        if (hn_tensor_get_i64(t, i) != i)
            return FALSE;
    return TRUE;
}

HnValue *hn_pattern_scalar(HnRewrite *r, HnGraph *g, const char *stem, const HnValue *v, double x)
{
    HnTensor *t = hn_tensor_new(hn_rw_dtype(r, v), 0, NULL, NULL, NULL);
    if (t != NULL)
        hn_tensor_set_f64(t, 0, x);
    return hn_rw_weight(r, g, stem, t);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

static gboolean add_leaf(HnSgemm *p, HnValue *v, int times)
{
    for (int i = 0; i < times; i++) {
        if (p->n == HN_PATTERN_LEAVES)
            return FALSE;
        p->leaf[p->n++] = v;
    }
    return TRUE;
}

static gboolean grow(const HnRewrite *r, const HnGraph *g, HnValue *v, HnSgemm *p, int depth)
{
    double x;
    HnNode *n = v->producer;
    if (n == NULL || v->graph != g || v->producer_out != 0)
        return add_leaf(p, v, 1);
    if (depth == DEEPEST || (depth > 0 && !hn_rw_single(v)))
        return add_leaf(p, v, 1);
    if (n->op == &hn_op_mul) {
        HnValue *a = hn_pattern_with_number(r, n, &x);
        if (a != NULL) {
            p->factor *= x;
            return grow(r, g, a, p, depth + 1);
        }
        return grow(r, g, hn_node_in(n, 0), p, depth + 1) && grow(r, g, hn_node_in(n, 1), p, depth + 1);
    }
    if (n->op == &hn_op_div && hn_pattern_number(r, hn_node_in(n, 1), hn_node_in(n, 0), &x) && x != 0) {
        p->factor /= x;
        return grow(r, g, hn_node_in(n, 0), p, depth + 1);
    }
    if (n->op == &hn_op_neg) {
        p->factor = -p->factor;
        return grow(r, g, hn_node_in(n, 0), p, depth + 1);
    }
    if (n->op == &hn_op_pow && hn_pattern_number(r, hn_node_in(n, 1), hn_node_in(n, 0), &x) && (x == 2 || x == 3))
        return add_leaf(p, hn_node_in(n, 0), (int)x);
    return add_leaf(p, v, 1);
}

gboolean hn_pattern_product(const HnRewrite *r, const HnGraph *g, HnValue *v, HnSgemm *p)
{
    *p = (HnSgemm){ .factor = 1 };
    return v != NULL && grow(r, g, v, p, 0);
}

gboolean hn_product_take(HnSgemm *p, const HnValue *x)
{
    for (int i = 0; i < p->n; i++) {
        if (p->leaf[i] != x)
            continue;
        p->leaf[i] = p->leaf[--p->n];
        return TRUE;
    }
    return FALSE;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

HnValue *hn_pattern_line(const HnRewrite *r, const HnGraph *g, HnValue *v, const HnValue *stop, double *scale,
                         double *shift)
{
    *scale = 1;
    *shift = 0;
    for (int depth = 0; depth < DEEPEST && v != NULL && v != stop; depth++) {
        const HnNode *n = v->producer;
        double x;
        HnValue *u = NULL;
        if (n == NULL || v->graph != g || v->producer_out != 0 || (depth > 0 && !hn_rw_single(v)))
            break;
        if (n->op == &hn_op_neg) {
            *scale = -*scale;
            u = hn_node_in(n, 0);
        } else if (n->op == &hn_op_mul && (u = hn_pattern_with_number(r, n, &x)) != NULL) {
            *scale *= x;
        } else if (n->op == &hn_op_add && (u = hn_pattern_with_number(r, n, &x)) != NULL) {
            *shift += *scale * x;
        } else if (n->op == &hn_op_div && hn_pattern_number(r, hn_node_in(n, 1), hn_node_in(n, 0), &x) && x != 0) {
            *scale /= x;
            u = hn_node_in(n, 0);
        } else if (n->op == &hn_op_sub && hn_pattern_number(r, hn_node_in(n, 1), hn_node_in(n, 0), &x)) {
            *shift -= *scale * x;
            u = hn_node_in(n, 0);
        } else if (n->op == &hn_op_sub && hn_pattern_number(r, hn_node_in(n, 0), hn_node_in(n, 1), &x)) {
            *shift += *scale * x;
            *scale = -*scale;
            u = hn_node_in(n, 1);
        } else {
            break;
        }
        v = u;
    }
    return v;
}
