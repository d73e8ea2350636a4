/*
 * Slice: a part of each axis. Bounds were attributes before opset 10, inputs since; steps came with 10.
 */
#include "op/slice.h"

#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/unbind.h"

static void slice_bind(HnBind *b, void *params)
{
    HnSlice *p = params;
    p->inputs = b->version >= 10;
    if (p->inputs) {
        for (int i = 1; i <= 2; i++)
            if (hn_node_in(b->node, i) == NULL)
                hn_bind_fail(b, HN_ERROR_GRAPH, "input %d is missing", i);
        return;
    }
    hn_bind_require(b, "starts");
    hn_bind_require(b, "ends");
    p->starts = hn_bind_ints(b, "starts", &p->n);
    p->ends = hn_bind_ints(b, "ends", &p->n_ends);
    p->axes = hn_bind_ints(b, "axes", &p->n_axes);
    if (p->n != p->n_ends || (p->axes != NULL && p->n_axes != p->n) || p->n > HN_MAX_RANK)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attributes 'starts', 'ends' and 'axes' differ in length");
}

int64_t hn_slice_axis(int64_t n, int64_t *start, int64_t end, int64_t step)
{
    int64_t s = *start < 0 ? *start + n : *start, t = end < 0 ? end + n : end;
    if (step > 0) {
        s = CLAMP(s, 0, n);
        t = CLAMP(t, 0, n);
    } else {
        s = CLAMP(s, 0, n - 1);
        t = CLAMP(t, -1, n - 1);
    }
    *start = s;
    uint64_t distance = step > 0 ? (uint64_t)MAX(t - s, 0) : (uint64_t)MAX(s - t, 0);
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return distance == 0 || n == 0 ? 0 : (int64_t)((distance - 1) / stride + 1);
}

/* A bound of a symbolic axis, clamped to [0, n]; `n` and `0` are what a clamp gives most often. */
static HnDim slice_bound(HnDim n, HnDim bound)
{
    if (bound.known && bound.n >= INT32_MAX)
        return n;
    if (bound.known && bound.n < 0)
        return bound.n <= INT32_MIN ? hn_dim(0) : hn_dim_max(hn_dim_add(n, bound), hn_dim(0));
    if (hn_dim_is(bound, 0) || hn_dim_equal(bound, n))
        return bound;
    return hn_dim_nonnegative(bound) ? hn_dim_min(bound, n) : hn_dim_unknown();
}

static HnDim slice_dim(HnDim n, HnDim start, HnDim end, HnDim step)
{
    if (!step.known || step.n == 0)
        return hn_dim_unknown();
    if (n.known && start.known && end.known) {
        int64_t s = start.n;
        return hn_dim(hn_slice_axis(n.n, &s, end.n, step.n));
    }
    if (step.n < 0) { /* backwards over everything */
        const gboolean from_last = start.known && (start.n == -1 || start.n >= INT32_MAX);
        return step.n == -1 && from_last && end.known && end.n <= INT32_MIN ? n : hn_dim_unknown();
    }
    HnDim s = slice_bound(n, start), t = slice_bound(n, end);
    if (hn_dim_equal(s, t))
        return hn_dim(0);
    HnDim d = hn_dim_is(s, 0) ? t : hn_dim_max(hn_dim_sub(t, s), hn_dim(0));
    return step.n == 1 ? d : hn_dim_ceil_div(d, step);
}

static HnDim slice_element(const HnInfer *x, int input, int i)
{
    const HnContents *c = hn_infer_contents(x, input);
    return c != NULL && i < c->n ? c->d[i] : hn_dim_unknown();
}

static void slice_contents(HnInfer *x, HnDim start, HnDim end, HnDim step)
{
    const HnContents *c = hn_infer_contents(x, 0);
    if (c == NULL || c->rank != 1 || !start.known || !end.known || !step.known)
        return;
    int64_t first = start.n, count = hn_slice_axis(c->n, &first, end.n, step.n);
    HnContents *r = hn_contents_new(1, (int)count);
    for (int i = 0; i < r->n; i++)
        r->d[i] = c->d[first + i * step.n];
    hn_infer_out_contents(x, 0, r);
}

static void slice_infer(HnInfer *x)
{
    const HnSlice *p = x->params;
    HnDtype dtype = hn_infer_dtype(x, 0);
    int rank = hn_infer_rank(x, 0);
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, dtype);
        return;
    }
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    int n = p->inputs ? hn_infer_length(x, 1) : (int)p->n, n_axes = 0;
    int64_t axes[HN_MAX_RANK];
    gboolean known = n >= 0, mark[HN_MAX_RANK];
    if (n > rank || (p->inputs && n >= 0 && hn_infer_length(x, 2) >= 0 && hn_infer_length(x, 2) != n)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "starts and ends do not fit to %d dimensions", rank);
        return;
    }
    for (int i = 0; known && i < n; i++)
        axes[i] = p->axes != NULL ? p->axes[i] : i;
    if (p->inputs && hn_infer_has(x, 3))
        known = hn_infer_ints(x, 3, axes, HN_MAX_RANK, &n_axes) && n_axes == n;
    if (!known) { /* any axis may be cut */
        for (int a = 0; a < rank; a++)
            dims[a] = hn_dim_unknown();
        hn_infer_out(x, 0, dtype, rank, dims);
        return;
    }
    if (!hn_infer_mark_axes(x, axes, n, rank, mark))
        return;
    for (int i = 0; i < n; i++) {
        int a = hn_axis(axes[i], rank);
        HnDim start = p->inputs ? slice_element(x, 1, i) : hn_dim(p->starts[i]);
        HnDim end = p->inputs ? slice_element(x, 2, i) : hn_dim(p->ends[i]);
        HnDim step = p->inputs && hn_infer_has(x, 4) ? slice_element(x, 4, i) : hn_dim(1);
        if (hn_dim_is(step, 0)) {
            hn_infer_fail(x, HN_ERROR_VALUE, "the step along axis %d is 0", a);
            return;
        }
        dims[a] = slice_dim(dims[a], start, end, step);
        slice_contents(x, start, end, step);
    }
    hn_infer_out(x, 0, dtype, rank, dims);
    if (n == 0)
        hn_infer_pass_contents(x, rank);
}

/* Bounds of all given axes: how many; -1: failed. */
static int slice_bounds(HnEval *e, int rank, int64_t *starts, int64_t *ends, int64_t *axes, int64_t *steps)
{
    const HnSlice *p = e->params;
    int n = (int)p->n, m = n, n_axes = n, n_steps = n;
    for (int i = 0; i < HN_MAX_RANK; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (p->inputs) {
        n = hn_eval_ints(e, 1, starts, rank);
        m = hn_eval_ints(e, 2, ends, rank);
        n_axes = hn_eval_in(e, 3) != NULL ? hn_eval_ints(e, 3, axes, rank) : n;
        n_steps = hn_eval_in(e, 4) != NULL ? hn_eval_ints(e, 4, steps, rank) : n;
    } else {
        for (int i = 0; i < n; i++) {
            starts[i] = p->starts[i];
            ends[i] = p->ends[i];
            axes[i] = p->axes != NULL ? p->axes[i] : i;
        }
    }
    if (n != m || n != n_axes || n != n_steps || n > rank)
        hn_eval_fail(e, HN_ERROR_SHAPE, "starts, ends, axes and steps differ in length or exceed %d dimensions", rank);
    return e->error == NULL ? n : -1;
}

static void slice_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t starts[HN_MAX_RANK], ends[HN_MAX_RANK], axes[HN_MAX_RANK], steps[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK], strides[HN_MAX_RANK], offset = 0;
    gboolean mark[HN_MAX_RANK];
    size_t size = hn_move_size(e, x->dtype);
    int n = slice_bounds(e, x->ndim, starts, ends, axes, steps);
    if (size == 0 || n < 0 || !hn_eval_mark_axes(e, axes, n, x->ndim, mark))
        return;
    memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    hn_strides(x->ndim, x->dims, strides);
    for (int i = 0; i < n; i++) {
        int a = hn_axis(axes[i], x->ndim);
        int64_t start = starts[i];
        if (steps[i] == 0) {
            hn_eval_fail(e, HN_ERROR_VALUE, "the step along axis %d is 0", a);
            return;
        }
        dims[a] = hn_slice_axis(x->dims[a], &start, ends[i], steps[i]);
        if (x->n > 0 && dims[a] > 0) {
            offset += start * strides[a];
            strides[a] *= dims[a] > 1 ? steps[i] : 1;
        }
    }
    void *y = hn_move_out(e, 0, x->dtype, x->ndim, dims);
    if (y == NULL)
        return;
    if (e->out[0]->n > 0)
        hn_move_strided(y, (const char *)x->data + (size_t)offset * size, size, x->ndim, dims, strides);
    hn_move_done(e, 0);
}

/* Before opset 10 every step is 1: other ones become lists of indices where the sizes are known. */
static void slice_unbind(HnUnbind *u)
{
    int64_t starts[HN_MAX_RANK], ends[HN_MAX_RANK], axes[HN_MAX_RANK], steps[HN_MAX_RANK];
    if (!hn_unbind_below(u, 10) || hn_unbind_in(u, 4) == NULL)
        return;
    int n = hn_unbind_ints(u, 1, starts), m = hn_unbind_ints(u, 2, ends), k = hn_unbind_ints(u, 4, steps);
    gboolean ones = k >= 0, known = n >= 0 && m == n && k == n;
    for (int i = 0; i < n; i++)
        axes[i] = i;
    if (hn_unbind_in(u, 3) != NULL)
        known = hn_unbind_ints(u, 3, axes) == n && known;
    for (int i = 0; i < k; i++)
        ones = ones && steps[i] == 1;
    for (int i = 0; i < n && known && !ones; i++)
        known = steps[i] != 0 && hn_unbind_dim(u, 0, (int)axes[i]) >= 0;
    if (ones) {
        hn_unbind_drop(u, 4);
        return;
    }
    if (!known) {
        hn_unbind_refuse(u, "steps other than 1 came with opset 10, and sizes or bounds are not known");
        return;
    }
    HnValue *v = hn_unbind_in(u, 0);
    for (int i = 0; i < n; i++) {
        int64_t at = starts[i], count = hn_slice_axis(hn_unbind_dim(u, 0, (int)axes[i]), &at, ends[i], steps[i]);
        if (steps[i] == 1) {
            v = hn_unbind_slice(u, v, axes[i], starts[i], ends[i]);
            continue;
        }
        HnTensor *index = count <= HN_UNBIND_FILL ? hn_tensor_new(HN_I64, 1, &count, NULL, NULL) : NULL;
        if (index == NULL) {
            hn_unbind_refuse(u, "steps other than 1 came with opset 10, and the list of indices is too long");
            return;
        }
        for (int64_t j = 0; j < count; j++)
            ((int64_t *)index->data)[j] = at + j * steps[i];
        HnValue *in[] = { v, hn_unbind_const(u, index) };
        HnNode *g = hn_unbind_node(u, "Gather", 2, in, 1);
        hn_node_set_int(g, "axis", axes[i]);
        v = hn_node_out(g, 0);
    }
    hn_unbind_take(u, 0, v);
}

/* Entry of the bounds that is about this axis; -1: none, -2: not known. */
static int64_t bound_of(const HnTensor *axes, int64_t n, int axis, int rank)
{
    int64_t at = axes == NULL && axis < n ? axis : -1;
    for (int64_t i = 0; axes != NULL && i < n; i++) {
        const int64_t a = hn_tensor_get_i64(axes, i);
        if (a + (a < 0 ? rank : 0) == axis)
            at = i;
    }
    return at;
}

/* Bounds along the axis of channels are counted among those that stay. */
static gboolean slice_narrow(const HnNarrow *x)
{
    const HnKept *k = hn_narrow_in(x, 0);
    const HnSlice *p = x->params;
    const HnType *t = k != NULL ? hn_node_in(x->node, 0)->type : NULL;
    if (k == NULL)
        return TRUE;
    g_autoptr(HnTensor) starts = hn_narrow_constant(x, 1), ends = hn_narrow_constant(x, 2);
    g_autoptr(HnTensor) axes = hn_narrow_constant(x, 3), steps = hn_narrow_constant(x, 4);
    if (!p->inputs || starts == NULL || ends == NULL || t == NULL || starts->n != ends->n)
        return FALSE;
    if ((hn_node_in(x->node, 3) != NULL && axes == NULL) || (hn_node_in(x->node, 4) != NULL && steps == NULL))
        return FALSE;
    const int64_t at = bound_of(axes, starts->n, k->axis, t->rank);
    if (at < 0)
        return TRUE;
    const int64_t step = steps != NULL ? hn_tensor_get_i64(steps, at) : 1;
    int64_t first = hn_tensor_get_i64(starts, at);
    const int64_t count = step != 0 ? hn_slice_axis(k->n, &first, hn_tensor_get_i64(ends, at), step) : 0;
    if (step == -1 && count == k->n) /* turned round as a whole */
        return TRUE;
    if (step != 1)
        return FALSE;
    hn_narrow_set_number(x, 1, at, hn_kept_before(k, first));
    hn_narrow_set_number(x, 2, at, hn_kept_before(k, first + count));
    return TRUE;
}

/* Where bounds are known and steps are 1: zeros around it. */
static gboolean slice_by_pad(HnTape *t)
{
    int64_t dims[HN_MAX_RANK], starts[HN_MAX_RANK], ends[HN_MAX_RANK], axes[HN_MAX_RANK], steps[HN_MAX_RANK];
    int64_t pads[2 * HN_MAX_RANK] = { 0 };
    const int rank = hn_tape_rank(t, 0), n = hn_tape_ints(t, 1, starts);
    if (!hn_tape_dims(t, 0, dims) || n < 0 || hn_tape_ints(t, 2, ends) != n)
        return FALSE;
    for (int i = 0; i < n; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if ((hn_tape_in(t, 3) != NULL && hn_tape_ints(t, 3, axes) != n) ||
        (hn_tape_in(t, 4) != NULL && hn_tape_ints(t, 4, steps) != n))
        return FALSE;
    for (int i = 0; i < n; i++) {
        const int64_t a = axes[i] + (axes[i] < 0 ? rank : 0);
        int64_t at = starts[i];
        if (steps[i] != 1)
            return FALSE;
        const int64_t left = hn_slice_axis(dims[a], &at, ends[i], 1);
        pads[a] = at;
        pads[rank + a] = dims[a] - at - left;
    }
    hn_tape_give(t, 0, hn_build_op2(t->build, "Pad", hn_tape_dy(t, 0), hn_build_list(t->build, pads, 2 * rank)));
    return TRUE;
}

static void slice_grad(HnTape *t)
{
    if (!slice_by_pad(t))
        hn_tape_moved(t);
}

/* Bounds that cut nothing off the samples. */
static gboolean keeps_samples(HnBatch *b, const HnSlice *p, int i)
{
    int64_t starts[HN_MAX_RANK], ends[HN_MAX_RANK], steps[HN_MAX_RANK];
    int n, m;
    const HnBatchPlace *at = &b->in[0].at;
    const HnDim size = hn_dim_mul(hn_dim_mul(at->outer, at->inner), hn_dim(b->n0));
    if (!p->inputs)
        return p->starts[i] == 0 && p->ends[i] == INT64_MAX && (p->steps == NULL || p->steps[i] == 1);
    if (!hn_batch_ints(b, 1, starts, HN_MAX_RANK, &n) || !hn_batch_ints(b, 2, ends, HN_MAX_RANK, &m) || n != m)
        return FALSE;
    if (hn_batch_has(b, 4) && (!hn_batch_ints(b, 4, steps, HN_MAX_RANK, &m) || m != n || steps[i] != 1))
        return FALSE;
    if (starts[i] != 0 || !size.known || ends[i] < size.n)
        return FALSE;
    if (ends[i] >= INT32_MAX)
        return TRUE;
    ends[i] = INT64_MAX;
    hn_batch_set_ints(b, 2, ends, n, 2);
    return TRUE;
}

/* Axes of an input that has its samples in front. */
static void shift_axes(HnBatch *b, const HnSlice *p, int64_t *axes, int n)
{
    const int rank = hn_batch_rank_was(b, 0);
    for (int i = 0; i < n; i++)
        axes[i] = hn_batch_axis(axes[i], rank) + 1;
    if (p->inputs)
        hn_batch_set_ints(b, 3, axes, n, 1);
    else
        hn_node_set_ints(b->node, "axes", axes, n);
}

static gboolean slice_axes(HnBatch *b, const HnSlice *p, int64_t *axes, int *n)
{
    const HnType *t = p->inputs && hn_batch_has(b, 1) ? b->in[1].now : NULL;
    if (p->inputs && hn_batch_has(b, 3))
        return hn_batch_ints(b, 3, axes, HN_MAX_RANK, n);
    *n = !p->inputs ? (int)p->n : hn_type_rank(t) == 1 && t->dims[0].known ? (int)t->dims[0].n : -1;
    for (int i = 0; i < *n; i++)
        axes[i] = p->axes != NULL ? p->axes[i] : i;
    return *n >= 0;
}

void hn_slice_batch(HnBatch *b)
{
    const HnSlice *p = b->params;
    int64_t axes[HN_MAX_RANK];
    int n;
    gboolean stays = !hn_batch_in_front(b, 0);
    for (int i = 1; i < b->n_in; i++)
        if (hn_batch_split(b, i)) {
            hn_batch_fail(b, "its bounds differ from sample to sample");
            return;
        }
    if (hn_batch_rank_was(b, 0) < 0 || !slice_axes(b, p, axes, &n) || n > HN_MAX_RANK) {
        hn_batch_fail(b, "its axes are not constant");
        return;
    }
    for (int i = 0; i < n && stays; i++)
        stays = hn_batch_axis(axes[i], hn_batch_rank_was(b, 0)) != b->in[0].at.axis || keeps_samples(b, p, i);
    if (!stays && !hn_batch_lift(b, 0, 0))
        return;
    if (!stays)
        shift_axes(b, p, axes, n);
    b->out[0] = b->in[0].at;
}

const HnOp hn_op_slice = {
    .name = "Slice",
    .since = { 1, 10, 11, 13 },
    .forms =
        HN_FORMS({ "starts", HN_ATTR_INTS, .until = 10, .input = 1 }, { "ends", HN_ATTR_INTS, .until = 10, .input = 2 },
                 { "axes", HN_ATTR_INTS, .until = 10, .input = 3, .back = 11 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "Tjjjj",
    .out = "T",
    .T = HN_T_PLAIN,
    .min_in = 1,
    .unbind = slice_unbind,
    .params_size = sizeof(HnSlice),
    .bind = slice_bind,
    .infer = slice_infer,
    .cost = hn_cost_move,
    .ref = slice_ref,
    .grad = slice_grad,
    .batch = hn_slice_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
    .narrow = slice_narrow,
};
