/*
 * Clip next to Clip, Relu, Max or Min with a constant is one Clip:
 *     clip(clip(x, a, b), c, d) = clip(x, clip(a, c, d), clip(b, c, d)).
 */
#include <math.h>

#include "pass/pattern.h"
#include "pass/shapes.h"

/* Bounds of what n does to *x; infinite where there is none. */
typedef struct {
    HnValue *x;
    double lo, hi;
    gboolean clip; /* is a Clip: without a bound it stops at the type's last number */
} Bounds;

/* Max or Min of x and a number that does not broadcast it. */
static gboolean bounded_by(const HnRewrite *r, const HnNode *n, Bounds *b)
{
    for (int i = 0; i < 2 && n->in->len == 2; i++) {
        const HnValue *c = hn_node_in(n, i);
        double *to = n->op == &hn_op_max ? &b->lo : &b->hi;
        if (hn_rw_number(r, c, to) && hn_rw_rank(r, c) <= MAX(hn_rw_rank(r, hn_node_in(n, 1 - i)), 0)) {
            b->x = hn_node_in(n, 1 - i);
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean bounds_of(const HnRewrite *r, const HnNode *n, Bounds *b)
{
    *b = (Bounds){ hn_node_in(n, 0), -INFINITY, INFINITY, n->op == &hn_op_clip };
    if (hn_pattern_bounds(r, n, &b->lo, &b->hi))
        return TRUE;
    if ((n->op != &hn_op_max && n->op != &hn_op_min) || !bounded_by(r, n, b))
        return FALSE;
    return !isnan(b->lo) && !isnan(b->hi);
}

static double clip(double v, const Bounds *b)
{
    return v < b->lo ? (b->lo > b->hi ? b->hi : b->lo) : v > b->hi ? b->hi : v;
}

static HnValue *limit(HnRewrite *r, HnNode *n, const char *stem, HnDtype dtype, double v)
{
    HnTensor *t = isinf(v) ? NULL : hn_tensor_new(dtype, 0, NULL, hn_rw_budget(r), NULL);
    if (isinf(v))
        return NULL;
    if (t != NULL)
        hn_tensor_set_f64(t, 0, v);
    return hn_rw_weight(r, n->graph, stem, t);
}

static gboolean merge_clips(HnRewrite *r, HnNode *n)
{
    Bounds a, b;
    if (n->op == NULL || !hn_value_is_read(hn_node_out(n, 0)) || !bounds_of(r, n, &b) || b.x == NULL)
        return FALSE;
    const HnNode *first = b.x->producer;
    if (first == NULL || first->op == NULL || first->graph != n->graph || !bounds_of(r, first, &a) || a.x == NULL)
        return FALSE;
    const HnDtype dtype = hn_rw_dtype(r, b.x);
    const int64_t opset = hn_rw_opset(n->graph);
    const double lo = clip(a.lo, &b), hi = clip(a.hi, &b);
    if (!hn_dtype_in(dtype, HN_T_FLOATS) && !(opset >= 12 && hn_dtype_in(dtype, HN_BIT(HN_I32) | HN_BIT(HN_I8))))
        return FALSE; /* others do not fit into a double, or are not known to Clip */
    if (opset < 6 || (!a.clip && !b.clip))
        return FALSE;
    if (!hn_rw_single(b.x))
        return hn_rw_miss(r, n, "'%s' is used by others too", b.x->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *c;
    if (opset >= 11) {
        c = hn_rw_add(r, n, "Clip", HN_INS(a.x, limit(r, n, "min", dtype, lo), limit(r, n, "max", dtype, hi)));
    } else {
        c = hn_rw_add(r, n, "Clip", HN_INS(a.x));
        if (!isinf(lo))
            hn_node_set_float(c, "min", (float)lo);
        if (!isinf(hi))
            hn_node_set_float(c, "max", (float)hi);
    }
    return hn_rw_take(r, c, n);
}

const HnPass hn_pass_merge_clips = {
    .name = "merge-clips",
    .summary = "one Clip instead of two, or of Clip next to Relu, Max or Min with a constant",
    .level = 1,
    .node = merge_clips,
};
