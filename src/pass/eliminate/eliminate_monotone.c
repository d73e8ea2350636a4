/*
 * Which element is the largest does not change under a function that grows with its argument: Softmax in front of
 * ArgMax, a positive factor in front of TopK of which only the indices are used, ...
 *
 * Functions that are flat in float arithmetic where large numbers differ (Sigmoid, Tanh) stay: they make ties.
 */
#include "op/argmax.h"
#include "op/softmax.h"
#include "op/topk.h"
#include "pass/shapes.h"

/* What n asks of: along which axis (from the front), and for the largest or smallest how many. */
typedef struct {
    int axis, rank;
    gboolean smallest, one;
} Ask;

static gboolean asks(const HnRewrite *r, const HnNode *n, Ask *q)
{
    int64_t axis, k[1];
    int count;
    q->rank = hn_rw_rank(r, hn_node_in(n, 0));
    if (n->op == &hn_op_argmax || n->op == &hn_op_argmin) {
        axis = ((const HnArg *)n->params)->axis;
        q->smallest = n->op == &hn_op_argmin;
        q->one = TRUE;
    } else if (n->op == &hn_op_topk && !hn_value_is_read(hn_node_out(n, 0))) {
        const HnTopK *p = n->params;
        axis = p->axis;
        q->smallest = p->smallest;
        q->one = p->input ? hn_rw_ints(r, hn_node_in(n, 1), k, 1, &count) && count == 1 && k[0] == 1 : p->k == 1;
    } else {
        return FALSE;
    }
    q->axis = hn_axis(axis, q->rank);
    return q->rank > 0 && q->axis >= 0;
}

static gboolean along(const HnNode *softmax, const Ask *q)
{
    const HnSoftmax *p = softmax->params;
    const int64_t axis = p->axis + (p->axis < 0 ? q->rank : 0);
    return p->flatten ? q->axis >= axis : q->axis == axis;
}

/* What f grows with; NULL: it does not grow, or makes too many ties. */
static HnValue *grows_with(HnRewrite *r, const HnNode *f, const Ask *q)
{
    double number;
    if (f->op == &hn_op_logsoftmax)
        return along(f, q) ? hn_node_in(f, 0) : NULL;
    if (f->op == &hn_op_softmax) /* the small ones may all be 0 */
        return along(f, q) && q->one && !q->smallest ? hn_node_in(f, 0) : NULL;
    if (f->op == &hn_op_exp) /* the same */
        return q->one && !q->smallest && !hn_dtype_is_half(hn_rw_dtype(r, hn_node_in(f, 0))) ? hn_node_in(f, 0) : NULL;
    if (f->op != &hn_op_mul && f->op != &hn_op_div)
        return NULL;
    for (int i = f->op == &hn_op_mul ? 0 : 1; i < 2; i++) {
        HnValue *x = hn_node_in(f, 1 - i);
        if (hn_rw_number(r, hn_node_in(f, i), &number) && number > 1e-3 && number < 1e3 &&
            hn_dtype_in(hn_rw_dtype(r, x), HN_BIT(HN_F32) | HN_BIT(HN_F64)) &&
            hn_rw_same_shape(r, x, hn_node_out(f, 0)))
            return x;
    }
    return NULL;
}

static gboolean eliminate_monotone(HnRewrite *r, HnNode *n)
{
    Ask q;
    HnValue *x = hn_node_in(n, 0);
    const HnNode *f = x != NULL && x->producer != NULL && x->graph == n->graph ? x->producer : NULL;
    if (f == NULL || f->op == NULL || n->op == NULL || !asks(r, n, &q))
        return FALSE;
    HnValue *before = grows_with(r, f, &q);
    if (before == NULL || hn_rw_dtype(r, before) != hn_rw_dtype(r, x))
        return FALSE;
    if (!hn_rw_single(x))
        return hn_rw_miss(r, n, "'%s' is used by others too", x->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    hn_rw_set_in(r, n, 0, before);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_eliminate_monotone = {
    .name = "eliminate-monotone",
    .summary = "remove Softmax, Exp, positive factors in front of ArgMax, ArgMin and the indices of TopK",
    .level = 1,
    .node = eliminate_monotone,
};
