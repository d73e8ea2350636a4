/*
 * What operators do with axes that grow, and what of it holds where the axis has room for more: one rule for each.
 */
#include <string.h>

#include "op/concat.h"
#include "op/cumsum.h"
#include "op/gather.h"
#include "op/ops.h"
#include "op/softmax.h"
#include "pass/fixed_cache_private.h"

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* Element for element; what is scaled stays finite. */
static gboolean elementwise(HnFix *f, HnNode *n)
{
    const HnTail first = hn_fix_tail_of(f, hn_node_in(n, 0)), second = hn_fix_tail_of(f, hn_node_in(n, 1));
    if (n->op == &hn_op_cast || n->op == &hn_op_identity)
        hn_fix_set_tail(f, n, first);
    else if ((n->op == &hn_op_mul || n->op == &hn_op_div) && hn_fix_grown(f, hn_node_in(n, 1)) == HN_NO_AXIS)
        hn_fix_set_tail(f, n, MIN(first, HN_TAIL_FINITE));
    else if (n->op == &hn_op_mul && hn_fix_grown(f, hn_node_in(n, 0)) == HN_NO_AXIS)
        hn_fix_set_tail(f, n, MIN(second, HN_TAIL_FINITE));
    return hn_fix_settle_numbers(f, n);
}

/* Elements of input 0 in another order; no others. */
static gboolean moves(HnFix *f, HnNode *n)
{
    hn_fix_set_tail(f, n, hn_fix_tail_of(f, hn_node_in(n, 0)));
    return TRUE;
}

/* Elements before and behind one of `axis`: FALSE where they are not known. */
static gboolean around(const HnFix *f, const HnValue *v, int axis, int64_t *before, int64_t *behind)
{
    *before = *behind = 1;
    for (int i = 0; i < hn_fix_rank_of(f, v); i++) {
        const HnDim d = hn_fix_dim_of(f, v, i);
        if (i != axis && !d.known)
            return FALSE;
        if (i != axis)
            *(i < axis ? before : behind) *= d.n;
    }
    return TRUE;
}

static gboolean views(HnFix *f, HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const int a = hn_fix_grown(f, x), b = hn_fix_grown(f, y);
    int64_t before[2], behind[2];
    if (a < 0 || b < 0 || !around(f, x, a, &before[0], &behind[0]) || !around(f, y, b, &before[1], &behind[1]) ||
        before[0] != before[1] || behind[0] != behind[1])
        return hn_fix_refuse(f, n, "an axis that grows becomes part of another one");
    return hn_fix_settle_shape(f, n, 1) && moves(f, n);
}

static gboolean expands(HnFix *f, HnNode *n)
{
    return hn_fix_settle_shape(f, n, n->op == &hn_op_constantofshape ? 0 : 1) && moves(f, n);
}

static gboolean joins(HnFix *f, HnNode *n)
{
    const HnConcat *p = n->params;
    for (guint i = 0; i < n->in->len; i++)
        if (hn_fix_grown(f, hn_node_in(n, (int)i)) == hn_fix_axis_of(p->axis, hn_fix_rank_of(f, hn_node_out(n, 0))))
            return hn_fix_refuse(f, n, "something is put behind an axis that grows");
    return hn_fix_settle_numbers(f, n);
}

static gboolean splits(HnFix *f, HnNode *n)
{
    const HnSplit *p = n->params;
    const HnValue *x = hn_node_in(n, 0);
    return hn_fix_grown(f, x) != hn_fix_axis_of(p->axis, hn_fix_rank_of(f, x))
               ? moves(f, n)
               : hn_fix_refuse(f, n, "an axis that grows is split");
}

static gboolean gathers(HnFix *f, HnNode *n)
{
    const HnGather *p = n->params;
    const HnValue *x = hn_node_in(n, 0), *at = hn_node_in(n, 1);
    if (hn_fix_grown(f, x) != HN_NO_AXIS && hn_fix_grown(f, x) == hn_fix_axis_of(p->axis, hn_fix_rank_of(f, x)))
        return hn_fix_refuse(f, n, "elements are picked along an axis that grows");
    if (hn_fix_grown(f, at) != HN_NO_AXIS && hn_fix_tail_of(f, at) != HN_TAIL_ZERO)
        return hn_fix_refuse(f, n, "positions that grow");
    return hn_fix_settle_numbers(f, n) && (hn_fix_grown(f, at) != HN_NO_AXIS || moves(f, n));
}

static gboolean multiplies(HnFix *f, HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_in(n, 1);
    const int rx = hn_fix_rank_of(f, x), ry = hn_fix_rank_of(f, y), a = hn_fix_grown(f, x), b = hn_fix_grown(f, y);
    if (rx < 2 || ry < 2)
        return hn_fix_refuse(f, n, "a product of a vector");
    if (a != rx - 1 && b != ry - 2) { /* sums of as many products as before */
        hn_fix_set_tail(f, n, a == HN_NO_AXIS && b == ry - 1 ? MIN(hn_fix_tail_of(f, y), HN_TAIL_FINITE) : HN_TAIL_ANY);
        return TRUE;
    }
    if (a == rx - 1 && b == ry - 2 && hn_fix_tail_of(f, x) == HN_TAIL_ZERO && hn_fix_tail_of(f, y) != HN_TAIL_ANY)
        return TRUE;
    return hn_fix_refuse(f, n, "a sum over an axis that grows, which does not end in zeros");
}

/* A mask is added to scores that are finite behind the filled part: then it can be the mask that says so, once for all
 * layers. */
static gboolean mask_addend(HnFix *f, const HnValue *x)
{
    HnNode *add = x->producer;
    if (add == NULL || add->op != &hn_op_add || x->users->len != 1)
        return FALSE;
    for (int i = 0; i < 2; i++) {
        HnValue *mask = hn_node_in(add, i);
        if (hn_fix_grown(f, mask) != hn_fix_rank_of(f, mask) - 1 ||
            hn_fix_tail_of(f, hn_node_in(add, 1 - i)) == HN_TAIL_ANY)
            continue;
        const HnNode *before = f->b.before;
        f->b.before = add;
        HnValue *y = hn_fix_masked(f, mask);
        f->b.before = before;
        if (y != NULL)
            hn_node_set_in(add, i, y);
        return y != NULL;
    }
    return FALSE;
}

static gboolean normalizes(HnFix *f, HnNode *n)
{
    const HnSoftmax *p = n->params;
    HnValue *x = hn_node_in(n, 0);
    const int axis = hn_fix_grown(f, x), rank = hn_fix_rank_of(f, x);
    if (p->flatten)
        return hn_fix_refuse(f, n, "rows of several axes");
    if (axis != hn_fix_axis_of(p->axis, rank))
        return TRUE;
    if (axis != rank - 1)
        return hn_fix_refuse(f, n, "rows that are not the last axis");
    if (!mask_addend(f, x)) {
        HnValue *y = hn_fix_masked(f, x);
        if (y == NULL)
            return FALSE;
        hn_node_set_in(n, 0, y);
    }
    hn_fix_set_tail(f, n, HN_TAIL_ZERO);
    return TRUE;
}

static gboolean sums(HnFix *f, HnNode *n)
{
    if (hn_fix_grown(f, hn_node_out(n, 0)) == HN_NO_AXIS && hn_fix_tail_of(f, hn_node_in(n, 0)) != HN_TAIL_ZERO)
        return hn_fix_refuse(f, n, "a sum over an axis that grows, which does not end in zeros");
    return hn_fix_settle_numbers(f, n);
}

static gboolean cumulates(HnFix *f, HnNode *n)
{
    const HnCum *p = n->params;
    return !p->reverse ? hn_fix_settle_numbers(f, n) : hn_fix_refuse(f, n, "a sum from the end of an axis that grows");
}

/* Keys behind the filled part are masked, as in a product that is written out. */
static gboolean attends(HnFix *f, HnNode *n)
{
    const HnValue *k = hn_node_in(n, 1), *v = hn_node_in(n, 2);
    HnValue *mask = hn_node_in(n, 3), *more;
    if (n->in->len > 4 || n->out->len > 1 || hn_fix_rank_of(f, k) != 4)
        return hn_fix_refuse(f, n, "a form of attention that is not known here");
    if (hn_fix_grown(f, k) != 2 || hn_fix_grown(f, v) != 2 || hn_fix_grown(f, hn_node_in(n, 0)) != HN_NO_AXIS ||
        hn_fix_tail_of(f, k) == HN_TAIL_ANY || hn_fix_tail_of(f, v) == HN_TAIL_ANY)
        return hn_fix_refuse(f, n, "it attends to something else than keys and values of the caches");
    if (mask != NULL && hn_fix_grown(f, mask) != hn_fix_rank_of(f, mask) - 1)
        return hn_fix_refuse(f, n, "a mask that does not grow with the keys");
    if (mask == NULL)
        more = (more = hn_fix_filled(f)) != NULL ? hn_build_reshape(&f->b, more, (const int64_t[]){ 1, -1 }, 2) : NULL;
    else if (hn_type_dtype(hn_types_get(f->t, mask)) == HN_BOOL)
        more = (more = hn_fix_filled(f)) != NULL ? hn_build_op2(&f->b, "And", mask, more) : NULL;
    else
        more = hn_fix_masked(f, mask);
    if (more != NULL)
        hn_node_set_in(n, 3, more);
    return more != NULL;
}

static const HnContents *scalar(const HnFix *f, const HnValue *v)
{
    const HnContents *c = hn_types_contents(f->t, v);
    return c != NULL && c->n == 1 ? c : NULL;
}

/* Numbers from 0 on, all of them; or some from n on. */
static gboolean counts(HnFix *f, HnNode *n)
{
    const HnContents *start = scalar(f, hn_node_in(n, 0)), *step = scalar(f, hn_node_in(n, 2));
    HnValue *y = hn_node_out(n, 0), *x;
    const HnDtype dtype = hn_type_dtype(hn_types_get(f->t, y));
    const HnDim size = hn_fix_dim_of(f, y, 0);
    int64_t count;
    if (start == NULL || step == NULL || !step->d[0].known || !hn_fix_number_of(f, size, f->rows, &count))
        return hn_fix_refuse(f, n, "its numbers are not known");
    if (start->d[0].known) {
        x = hn_fix_counting(f, dtype, count, (double)start->d[0].n, (double)step->d[0].n);
    } else if (size.known && (x = hn_fix_computed(f, hn_node_in(n, 0))) != NULL) {
        HnValue *more = hn_fix_counting(f, dtype, count, 0, (double)step->d[0].n);
        x = more != NULL ? hn_build_op2(&f->b, "Add", x, more) : NULL;
    } else {
        return hn_fix_refuse(f, n, "its numbers grow at both ends");
    }
    if (x == NULL)
        return FALSE;
    hn_types_set(f->t, x, hn_types_get(f->t, y));
    g_hash_table_insert(f->tails, x, GINT_TO_POINTER(HN_TAIL_FINITE));
    hn_value_replace(y, x);
    return TRUE;
}

/* --- Slice -------------------------------------------------------------------------------------------------------- */

typedef struct {
    int axis;
    HnDim start, size; /* of what is cut out */
} Cut;

static const HnContents *contents_at(const HnFix *f, const HnNode *n, int i)
{
    return hn_node_in(n, i) != NULL ? hn_types_contents(f->t, hn_node_in(n, i)) : NULL;
}

static gboolean cut_of(const HnFix *f, const HnNode *n, int i, Cut *c)
{
    const HnContents *starts = contents_at(f, n, 1), *axes = contents_at(f, n, 3), *steps = contents_at(f, n, 4);
    const HnValue *x = hn_node_in(n, 0);
    const HnDim axis = axes != NULL && i < axes->n ? axes->d[i] : hn_dim(i);
    if (starts == NULL || (hn_node_in(n, 3) != NULL && axes == NULL) || !axis.known)
        return FALSE;
    if (hn_node_in(n, 4) != NULL && (steps == NULL || i >= steps->n || !hn_dim_is(steps->d[i], 1)))
        return FALSE;
    c->axis = hn_fix_axis_of(axis.n, hn_fix_rank_of(f, x));
    c->start = starts->d[i];
    if (c->start.known && c->start.n < 0)
        c->start = hn_dim_add(hn_fix_dim_of(f, x, c->axis), c->start);
    c->size = hn_fix_dim_of(f, hn_node_out(n, 0), c->axis);
    return c->start.known || c->start.sym != NULL;
}

/* x cut along one axis. NULL: not possible. */
static HnValue *cut(HnFix *f, const HnNode *n, HnValue *x, const Cut *c)
{
    const HnDim whole = hn_fix_dim_of(f, hn_node_in(n, 0), c->axis);
    int64_t size, has, a, b;
    if (!hn_fix_number_of(f, c->size, f->rows, &size) || !hn_fix_number_of(f, whole, f->rows, &has))
        return NULL;
    if (c->start.known)
        return (!c->size.known && c->start.n != 0) || c->start.n + size > has ? NULL
               : c->start.n == 0 && size == has                               ? x
                                                : hn_build_slice(&f->b, x, c->axis, c->start.n, c->start.n + size);
    if (!c->size.known || !hn_fix_linear(f, c->start, &a, &b))
        return NULL;
    HnValue *from =
        hn_build_op2(&f->b, "Add", hn_build_op2(&f->b, "Mul", f->length, hn_fix_list(f, &a, 1)), hn_fix_list(f, &b, 1));
    HnValue *more = hn_fix_counting(f, HN_I64, size, 0, 1);
    HnNode *pick = more != NULL ? hn_build_node(&f->b, "Gather", NULL, 2,
                                                (HnValue *[]){ x, hn_build_op2(&f->b, "Add", from, more) }, 1)
                                : NULL;
    if (pick == NULL)
        return NULL;
    hn_node_set_int(pick, "axis", c->axis);
    return hn_node_out(pick, 0);
}

static gboolean cuts(HnFix *f, HnNode *n)
{
    const HnContents *starts = contents_at(f, n, 1);
    HnValue *x = hn_node_in(n, 0);
    for (int i = 0; starts != NULL && i < starts->n; i++) {
        Cut c;
        if (!cut_of(f, n, i, &c) || (x = cut(f, n, x, &c)) == NULL)
            return hn_fix_refuse(f, n, "its bounds are not known, or the table behind it is too short");
    }
    if (starts == NULL)
        return hn_fix_refuse(f, n, "its bounds are not known");
    hn_fix_set_tail(f, n, hn_fix_tail_of(f, hn_node_in(n, 0)));
    g_hash_table_insert(f->tails, x, GINT_TO_POINTER(hn_fix_tail_of(f, hn_node_in(n, 0))));
    hn_types_set(f->t, x, hn_types_get(f->t, hn_node_out(n, 0)));
    hn_value_replace(hn_node_out(n, 0), x);
    return TRUE;
}

HnFixRule hn_fix_rule_of(const HnNode *n)
{
    static const struct {
        const HnOp *op;
        HnFixRule rule;
    } rules[] = {
        { &hn_op_transpose, moves },    { &hn_op_unsqueeze, moves },  { &hn_op_squeeze, moves },
        { &hn_op_reshape, views },      { &hn_op_expand, expands },   { &hn_op_constantofshape, expands },
        { &hn_op_concat, joins },       { &hn_op_split, splits },     { &hn_op_gather, gathers },
        { &hn_op_matmul, multiplies },  { &hn_op_range, counts },     { &hn_op_slice, cuts },
        { &hn_op_softmax, normalizes }, { &hn_op_reducesum, sums },   { &hn_op_trilu, hn_fix_settle_numbers },
        { &hn_op_attention, attends },  { &hn_op_cumsum, cumulates },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++)
        if (n->op == rules[i].op)
            return rules[i].rule;
    return (n->op->flags & HN_OP_ELEMENTWISE) != 0 && (n->op->flags & HN_OP_RANDOM) == 0 ? elementwise : NULL;
}
