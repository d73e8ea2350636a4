/*
 * Nodes whose output is their input: a cast to the type that is there, a slice of everything, padding by nothing,
 * a resize by 1, a join of one, Dropout when nobody trains, a reduction over axes of one element, ...
 */
#include <string.h>

#include "op/cast.h"
#include "op/dropout.h"
#include "op/gather.h"
#include "op/pad.h"
#include "op/pool.h"
#include "op/reduce.h"
#include "op/resize.h"
#include "op/transpose.h"
#include "pass/shapes.h"

typedef gboolean (*NopFn)(const HnRewrite *r, const HnNode *n);

static gboolean all_number(const HnRewrite *r, const HnValue *v, double number)
{
    const HnTensor *t = hn_rw_const(r, v);
    double x;
    return t != NULL && (t->n == 0 || (hn_rw_uniform(r, v, &x) && x == number));
}

static gboolean same_shape(const HnRewrite *r, const HnNode *n)
{
    return hn_rw_same_shape(r, hn_node_in(n, 0), hn_node_out(n, 0));
}

/* v is the whole Shape of x. */
static gboolean is_shape_of(const HnRewrite *r, const HnValue *v, const HnValue *x)
{
    const HnNode *n = hn_rw_maker(v, &hn_op_shape);
    const HnDim len = hn_rw_dim(r, v, 0);
    if (n == NULL || hn_node_in(n, 0) != x)
        return FALSE;
    const gboolean whole = hn_node_attr(n, "start") == NULL && hn_node_attr(n, "end") == NULL;
    return whole || hn_dim_is(len, hn_rw_rank(r, x));
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static gboolean nop_cast(const HnRewrite *r, const HnNode *n)
{
    const HnCast *p = n->params;
    const HnDtype from = hn_rw_dtype(r, hn_node_in(n, 0));
    const HnDtype to = p->to != HN_UNDEFINED ? p->to : hn_rw_dtype(r, hn_node_in(n, 1));
    return from != HN_UNDEFINED && from == to;
}

static gboolean nop_dropout(const HnRewrite *r, const HnNode *n)
{
    const HnDropout *p = n->params;
    double train;
    if (hn_value_is_read(hn_node_out(n, 1)))
        return FALSE;
    if (!p->by_input || hn_node_in(n, 2) == NULL)
        return !p->train;
    return hn_rw_number(r, hn_node_in(n, 2), &train) && train == 0;
}

/* --- views -------------------------------------------------------------------------------------------------------- */

/* Of equally many elements: the same dimensions but for one place, which then has to be the same, too. */
static gboolean nop_view(const HnRewrite *r, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const int rank = hn_rw_rank(r, x);
    int open = 0;
    if (n->op == &hn_op_reshape && is_shape_of(r, hn_node_in(n, 1), x))
        return TRUE;
    if (rank < 0 || rank != hn_rw_rank(r, y))
        return FALSE;
    if (n->op == &hn_op_squeeze || n->op == &hn_op_unsqueeze)
        return TRUE;
    for (int a = 0; a < rank; a++)
        open += !hn_rw_same_dim(r, x, a, y, a);
    for (int a = 0; a < rank && open == 1; a++) /* an empty tensor says nothing of the place */
        if (hn_rw_same_dim(r, x, a, y, a) && !(hn_rw_dim(r, x, a).known && hn_rw_dim(r, x, a).n > 0))
            return FALSE;
    return open <= 1;
}

static gboolean nop_transpose(const HnRewrite *r, const HnNode *n)
{
    const HnTranspose *p = n->params;
    const HnValue *x = hn_node_in(n, 0);
    const int rank = hn_rw_rank(r, x) >= 0 ? hn_rw_rank(r, x) : (int)p->n;
    int last = -1;
    gboolean straight = TRUE, moved = FALSE;
    if (hn_rw_rank(r, x) < 0 && p->perm == NULL)
        return FALSE;
    for (int a = 0; a < rank; a++) {
        const int from = p->perm != NULL ? (int)p->perm[a] : rank - 1 - a;
        moved = moved || from != a;
        if (hn_dim_is(hn_rw_dim(r, x, from), 1))
            continue;
        straight = straight && from > last; /* only axes of one element change places */
        last = from;
    }
    return !moved || (straight && same_shape(r, n));
}

static gboolean nop_block(const HnRewrite *r, const HnNode *n)
{
    (void)r;
    return ((const HnDepthBlock *)n->params)->block == 1;
}

/* --- parts and repeats -------------------------------------------------------------------------------------------- */

static gboolean nop_expand(const HnRewrite *r, const HnNode *n)
{
    const HnValue *shape = hn_node_in(n, 1);
    const HnDim len = hn_rw_dim(r, shape, 0);
    return same_shape(r, n) || is_shape_of(r, shape, hn_node_in(n, 0)) ||
           (all_number(r, shape, 1) && len.known && len.n <= hn_rw_rank(r, hn_node_in(n, 0)));
}

static gboolean nop_tile(const HnRewrite *r, const HnNode *n)
{
    return hn_node_in(n, 2) == NULL && all_number(r, hn_node_in(n, 1), 1);
}

static gboolean nop_pad(const HnRewrite *r, const HnNode *n)
{
    const HnPad *p = n->params;
    if (p->inputs)
        return all_number(r, hn_node_in(n, 1), 0);
    for (int64_t i = 0; i < p->n; i++)
        if (p->pads[i] != 0)
            return FALSE;
    return TRUE;
}

static gboolean nop_slice(const HnRewrite *r, const HnNode *n)
{
    HnBounds b;
    if (hn_shapes_bounds(r, n, &b)) {
        gboolean all = TRUE, forward = TRUE;
        for (int i = 0; i < b.n; i++) {
            all = all && b.start[i] == 0 && b.end[i] >= INT32_MAX;
            forward = forward && b.step[i] == 1;
        }
        return forward && (all || same_shape(r, n));
    }
    return (hn_node_in(n, 4) == NULL || all_number(r, hn_node_in(n, 4), 1)) && same_shape(r, n);
}

static gboolean nop_gather(const HnRewrite *r, const HnNode *n)
{
    const HnGather *p = n->params;
    const HnValue *x = hn_node_in(n, 0);
    const HnTensor *at = hn_rw_const(r, hn_node_in(n, 1));
    const int rank = hn_rw_rank(r, x);
    if (at == NULL || at->ndim != 1 || rank < 0 || !hn_dim_is(hn_rw_dim(r, x, hn_axis(p->axis, rank)), at->n))
        return FALSE;
    for (int64_t i = 0; i < at->n; i++) {
        const int64_t k = hn_tensor_get_i64(at, i);
        if (k != i && k != i - at->n)
            return FALSE;
    }
    return TRUE;
}

static gboolean nop_single_out(const HnRewrite *r, const HnNode *n)
{
    (void)r;
    return n->out->len == 1;
}

static gboolean nop_single_in(const HnRewrite *r, const HnNode *n)
{
    (void)r;
    return n->in->len == 1;
}

/* --- windows and scales ------------------------------------------------------------------------------------------- */

static gboolean nop_resize(const HnRewrite *r, const HnNode *n)
{
    const HnResize *p = n->params;
    const HnValue *sizes = p->sizes >= 0 ? hn_node_in(n, p->sizes) : NULL;
    const HnValue *scales = p->scales >= 0 ? hn_node_in(n, p->scales) : NULL;
    const HnTensor *t = hn_rw_const(r, scales);
    if (p->place == HN_RESIZE_CROP || p->place == HN_RESIZE_HALF_NEAREST)
        return FALSE;
    if (t != NULL && t->n > 0)
        return all_number(r, scales, 1);
    if (sizes != NULL)
        return same_shape(r, n);
    for (int64_t i = 0; i < p->n_list; i++)
        if (p->list[i] != 1)
            return FALSE;
    return p->n_list > 0 || (p->height == 1 && p->width == 1);
}

static gboolean nop_pool(const HnRewrite *r, const HnNode *n)
{
    const HnPool *p = n->params;
    const HnWindow *w = &p->window;
    (void)r;
    const gboolean padded = w->pads != NULL && w->pad_mode == HN_PAD_EXPLICIT;
    for (int i = 0; i < w->n; i++) {
        if (w->kernel == NULL || w->kernel[i] != 1 || (w->strides != NULL && w->strides[i] != 1))
            return FALSE;
        if (padded && (w->pads[i] != 0 || w->pads[w->n + i] != 0))
            return FALSE;
    }
    return w->n > 0 && !hn_value_is_read(hn_node_out(n, 1));
}

/* Over no axes, or over axes of one element that stay. */
static gboolean nop_reduce(const HnRewrite *r, const HnNode *n)
{
    const HnReduce *p = n->params;
    gboolean mark[HN_MAX_RANK], any = FALSE;
    if (!hn_shapes_reduced(r, n, mark))
        return FALSE;
    for (int a = 0; a < hn_rw_rank(r, hn_node_in(n, 0)); a++) {
        any = any || mark[a];
        if (mark[a] && !hn_dim_is(hn_rw_dim(r, hn_node_in(n, 0), a), 1))
            return FALSE;
    }
    return !any || p->keepdims;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static gboolean eliminate_nop(HnRewrite *r, HnNode *n)
{
    static const struct {
        const HnOp *op;
        NopFn is_nop;
    } known[] = {
        { &hn_op_cast, nop_cast },
        { &hn_op_castlike, nop_cast },
        { &hn_op_dropout, nop_dropout },
        { &hn_op_reshape, nop_view },
        { &hn_op_flatten, nop_view },
        { &hn_op_squeeze, nop_view },
        { &hn_op_unsqueeze, nop_view },
        { &hn_op_transpose, nop_transpose },
        { &hn_op_depthtospace, nop_block },
        { &hn_op_spacetodepth, nop_block },
        { &hn_op_expand, nop_expand },
        { &hn_op_tile, nop_tile },
        { &hn_op_pad, nop_pad },
        { &hn_op_slice, nop_slice },
        { &hn_op_gather, nop_gather },
        { &hn_op_split, nop_single_out },
        { &hn_op_concat, nop_single_in },
        { &hn_op_sum, nop_single_in },
        { &hn_op_mean, nop_single_in },
        { &hn_op_max, nop_single_in },
        { &hn_op_min, nop_single_in },
        { &hn_op_resize, nop_resize },
        { &hn_op_upsample, nop_resize },
        { &hn_op_averagepool, nop_pool },
        { &hn_op_maxpool, nop_pool },
        { &hn_op_reducesum, nop_reduce },
        { &hn_op_reducemean, nop_reduce },
        { &hn_op_reducemax, nop_reduce },
        { &hn_op_reducemin, nop_reduce },
        { &hn_op_reduceprod, nop_reduce },
    };
    HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    if (n->op == NULL || x == NULL || !hn_value_is_read(y))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (n->op == known[i].op)
            return known[i].is_nop(r, n) && hn_rw_bypass(r, n, y, x);
    return FALSE;
}

const HnPass hn_pass_eliminate_nop = {
    .name = "eliminate-nop",
    .summary = "remove casts, reshapes, slices, pads, ... that change nothing",
    .level = 1,
    .node = eliminate_nop,
};
