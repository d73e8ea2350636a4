/*
 * Pad of spatial axes goes into the padding of the Conv, AveragePool or MaxPool behind it. Conv and AveragePool (which
 * then counts padding) pad with 0. MaxPool's padding is below everything: what was padded with has to be the smallest
 * number there is, or 0 in front of elements that cannot be negative; each window then has an element of its own, since
 * runtimes do not pad by a whole window.
 */
#include <float.h>
#include <math.h>

#include "op/conv.h"
#include "op/pad.h"
#include "op/pool.h"
#include "pass/pattern.h"
#include "pass/rewrite.h"

#define MOST_PAD ((int64_t)1 << 24)

/* Amounts of each axis; FALSE: not known, or not of zeros or more. */
static gboolean amounts(const HnRewrite *r, const HnNode *pad, int rank, int64_t *before, int64_t *after)
{
    const HnPad *p = pad->params;
    int64_t list[2 * HN_MAX_RANK], axes[HN_MAX_RANK];
    int n = (int)p->n, n_axes = rank;
    for (int a = 0; a < rank; a++) {
        axes[a] = a;
        before[a] = after[a] = 0;
    }
    for (int i = 0; i < n && !p->inputs; i++)
        list[i] = p->pads[i];
    if (p->inputs && !hn_rw_ints(r, hn_node_in(pad, 1), list, 2 * HN_MAX_RANK, &n))
        return FALSE;
    if (hn_node_in(pad, 3) != NULL && !hn_rw_ints(r, hn_node_in(pad, 3), axes, HN_MAX_RANK, &n_axes))
        return FALSE;
    if (n != 2 * n_axes)
        return FALSE;
    for (int i = 0; i < n_axes; i++) {
        const int64_t a = axes[i] + (axes[i] < 0 ? rank : 0), front = list[i], back = list[n_axes + i];
        if (a < 0 || a >= rank || MIN(front, back) < 0 || MAX(front, back) > MOST_PAD)
            return FALSE;
        before[a] = front;
        after[a] = back;
    }
    return TRUE;
}

static gboolean value_of(const HnRewrite *r, const HnNode *pad, double *x)
{
    const HnPad *p = pad->params;
    *x = p->inputs ? 0 : (double)p->value;
    return p->mode == HN_PAD_CONSTANT && (hn_node_in(pad, 2) == NULL || hn_rw_number(r, hn_node_in(pad, 2), x));
}

static gboolean clips_below(const HnRewrite *r, const HnNode *n)
{
    double lo, hi;
    return hn_pattern_bounds(r, n, &lo, &hi) && lo >= 0;
}

/* No element of v is below 0, whatever the inputs are. */
static gboolean is_nonnegative(const HnRewrite *r, const HnValue *v)
{
    for (int depth = 0; depth < 4 && v->producer != NULL && v->producer_out == 0; depth++) {
        const HnNode *n = v->producer;
        if (n->op == &hn_op_relu || n->op == &hn_op_sigmoid || n->op == &hn_op_abs || n->op == &hn_op_softmax ||
            n->op == &hn_op_exp)
            return TRUE;
        if (n->op == &hn_op_clip)
            return clips_below(r, n);
        if (n->op != &hn_op_maxpool && n->op != &hn_op_averagepool && n->op != &hn_op_transpose &&
            n->op != &hn_op_reshape)
            return FALSE;
        v = hn_node_in(n, 0);
    }
    return FALSE;
}

static gboolean is_smallest(HnDtype dtype, double x)
{
    static const struct {
        HnDtype dtype;
        double least;
    } table[] = {
        { HN_F32, -(double)FLT_MAX }, { HN_F64, -DBL_MAX }, { HN_F16, -65504 }, { HN_U8, 0 }, { HN_I8, -128 }
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++)
        if (dtype == table[i].dtype)
            return x <= table[i].least;
    return x == -INFINITY;
}

static gboolean all(const int64_t *x, int n, int64_t value)
{
    for (int i = 0; x != NULL && i < n; i++)
        if (x[i] != value)
            return FALSE;
    return TRUE;
}

/* What keeps a pool from taking these amounts; NULL: nothing. */
static const char *pool_obstacle(const HnRewrite *r, const HnNode *pad, const HnNode *n, double value,
                                 const int64_t *pads)
{
    const HnPool *p = n->params;
    const HnWindow *w = &p->window;
    HnDtype dtype = hn_rw_dtype(r, hn_node_in(n, 0));
    if (w->ceil_mode || !all(w->dilations, w->n, 1))
        return "the pool behind it rounds its size up or has dilations";
    for (int i = 0; i < 2 * w->n; i++)
        if (pads[i] >= w->kernel[i % w->n])
            return "a window of the pool behind it would be all padding";
    if (n->op == &hn_op_averagepool)
        return value != 0 ? "it does not pad with 0"
               : w->pads != NULL && !p->count_pad && !all(w->pads, 2 * w->n, 0)
                   ? "the pool does not count its own padding"
                   : NULL;
    if (hn_node_out(n, 1) != NULL)
        return "the positions of the largest elements would change";
    if (!is_smallest(dtype, value) && (value != 0 || !is_nonnegative(r, hn_node_in(pad, 0))))
        return "elements may be smaller than what it pads with";
    return NULL;
}

static const HnWindow *window_of(const HnNode *n)
{
    return n->op == &hn_op_conv ? &((const HnConv *)n->params)->window : &((const HnPool *)n->params)->window;
}

static gboolean fuse_pad(HnRewrite *r, HnNode *n)
{
    int64_t before[HN_MAX_RANK], after[HN_MAX_RANK], pads[2 * HN_MAX_RANK];
    double value;
    if (n->op != &hn_op_conv && n->op != &hn_op_averagepool && n->op != &hn_op_maxpool)
        return FALSE;
    HnNode *pad = hn_rw_maker(hn_node_in(n, 0), &hn_op_pad);
    if (pad == NULL)
        return FALSE;
    const HnWindow *w = window_of(n);
    const int rank = hn_rw_rank(r, hn_node_in(n, 0)), spatial = rank - 2;
    const gboolean good = rank >= 3 && rank <= HN_MAX_RANK && (w->n == 0 || w->n == spatial);
    if (!good || !amounts(r, pad, rank, before, after) || !value_of(r, pad, &value))
        return hn_rw_miss(r, n, "'%s' does not pad by known amounts with a known number", hn_node_label(pad));
    if (before[0] != 0 || before[1] != 0 || after[0] != 0 || after[1] != 0)
        return hn_rw_miss(r, n, "'%s' pads more than spatial axes", hn_node_label(pad));
    if (w->pad_mode == HN_PAD_SAME_UPPER || w->pad_mode == HN_PAD_SAME_LOWER)
        return hn_rw_miss(r, n, "its own padding depends on its input's size");
    const gboolean own = w->pad_mode == HN_PAD_EXPLICIT && w->pads != NULL;
    for (int i = 0; i < spatial; i++) {
        pads[i] = before[2 + i] + (own ? w->pads[i] : 0);
        pads[spatial + i] = after[2 + i] + (own ? w->pads[spatial + i] : 0);
    }
    const char *obstacle = n->op != &hn_op_conv ? pool_obstacle(r, pad, n, value, pads)
                           : value != 0         ? "it does not pad with 0"
                                                : NULL;
    if (obstacle != NULL)
        return hn_rw_miss(r, n, "%s", obstacle);
    if (!hn_rw_go(r, n))
        return FALSE;
    const gboolean mean = n->op == &hn_op_averagepool;
    hn_rw_set_in(r, n, 0, hn_node_in(pad, 0));
    hn_node_remove_attr(n, "auto_pad");
    hn_node_set_ints(n, "pads", pads, 2 * spatial);
    if (mean)
        hn_node_set_int(n, "count_include_pad", 1);
    return hn_rw_done(r, n);
}

const HnPass hn_pass_fuse_pad = {
    .name = "fuse-pad",
    .summary = "Pad into the Conv, AveragePool or MaxPool behind it",
    .level = 1,
    .node = fuse_pad,
};
