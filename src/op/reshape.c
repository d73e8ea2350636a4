/*
 * Reshape, Squeeze, Unsqueeze, Flatten: the same elements under other dimensions. Reshape's shape was an attribute in
 * opset 1, the axes of Squeeze and Unsqueeze were attributes before 13.
 */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/unbind.h"

typedef struct {
    gboolean input; /* the shape is input 1 */
    const int64_t *shape;
    int64_t n;
    gboolean allow_zero; /* 0 is a size; else it stands for the input's size at the same place */
} HnReshape;

static void reshape_bind(HnBind *b, void *params)
{
    HnReshape *p = params;
    p->input = b->version >= 5;
    if (p->input) {
        if (hn_node_in(b->node, 1) == NULL)
            hn_bind_fail(b, HN_ERROR_GRAPH, "input 1 is missing");
        p->allow_zero = b->version >= 14 && hn_bind_bool(b, "allowzero", FALSE);
        return;
    }
    hn_bind_require(b, "shape");
    p->shape = hn_bind_ints(b, "shape", &p->n);
    if (p->n > HN_MAX_RANK)
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "%" PRId64 " dimensions are more than %d", p->n, HN_MAX_RANK);
}

/* What the -1 at place `at` stands for: input sizes by output sizes, each without what is on both sides. */
static HnDim reshape_rest(HnInfer *x, int rank, const HnDim *dims, const gboolean *copied, int n, int at)
{
    gboolean used[HN_MAX_RANK] = { FALSE };
    HnDim below = hn_dim(1), above = hn_dim(1);
    if (rank < 0)
        return hn_dim_unknown();
    for (int i = 0; i < n; i++)
        used[i] = copied[i];
    for (int i = 0; i < n; i++) {
        int a = 0;
        if (i == at || copied[i])
            continue;
        while (a < rank && (used[a] || !hn_dim_equal(hn_infer_dim(x, 0, a), dims[i]) || hn_dim_is(dims[i], 0)))
            a++;
        if (a < rank)
            used[a] = TRUE;
        else
            below = hn_dim_mul(below, dims[i]);
    }
    for (int a = 0; a < rank; a++)
        if (!used[a])
            above = hn_dim_mul(above, hn_infer_dim(x, 0, a));
    if (above.known && below.known && (below.n <= 0 || above.n % below.n != 0)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " elements are not a multiple of %" PRId64, above.n, below.n);
        return hn_dim_unknown();
    }
    return hn_dim_is(below, 1) ? above : hn_dim_floor_div(above, below);
}

static gboolean dims_product(const HnDim *dims, int n, int64_t *product)
{
    int64_t fixed[HN_MAX_RANK];
    for (int i = 0; i < n; i++) {
        if (!dims[i].known)
            return FALSE;
        fixed[i] = dims[i].n;
    }
    return hn_dims_count(n, fixed, product);
}

static void reshape_infer(HnInfer *x)
{
    const HnReshape *p = x->params;
    const HnContents *c = hn_infer_contents(x, 1);
    int rank = hn_infer_rank(x, 0), n = p->input ? hn_infer_length(x, 1) : (int)p->n, rest = -1;
    HnDim dims[HN_MAX_RANK], in[HN_MAX_RANK];
    gboolean copied[HN_MAX_RANK] = { FALSE };
    if (p->input && hn_infer_rank(x, 1) > 1) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the new shape is not a list");
        return;
    }
    if (n > HN_MAX_RANK) {
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", n, HN_MAX_RANK);
        return;
    }
    if (n < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    for (int i = 0; i < n; i++) {
        HnDim d = !p->input ? hn_dim(p->shape[i]) : c != NULL ? c->d[i] : hn_dim_unknown();
        dims[i] = d;
        if (!d.known)
            continue;
        if (d.n == 0 && !p->allow_zero) {
            if (rank >= 0 && i >= rank)
                hn_infer_fail(x, HN_ERROR_SHAPE, "the new shape copies size %d of %d", i, rank);
            dims[i] = hn_infer_dim(x, 0, i);
            copied[i] = TRUE;
        } else if (d.n == -1 && rest < 0) {
            rest = i;
        } else if (d.n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "the new shape has more than one unknown size");
        }
    }
    gboolean open = FALSE; /* an unknown number may itself be the -1 */
    for (int i = 0; i < n; i++)
        open = open || (i != rest && !copied[i] && !dims[i].known && dims[i].sym == NULL);
    if (rest >= 0)
        dims[rest] = open ? hn_dim_unknown() : reshape_rest(x, rank, dims, copied, n, rest);
    int64_t before, after;
    for (int a = 0; a < rank; a++)
        in[a] = hn_infer_dim(x, 0, a);
    if (rank >= 0 && dims_product(in, rank, &before) && dims_product(dims, n, &after) && before != after)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " elements cannot take the new shape", before);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), n, dims);
    hn_infer_pass_contents(x, n);
}

static void reshape_ref(HnEval *e)
{
    const HnReshape *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t dims[HN_MAX_RANK], above = 1, below = 1;
    int n = (int)p->n, rest = -1;
    if (p->input) {
        n = hn_eval_ints(e, 1, dims, HN_MAX_RANK);
    } else {
        for (int i = 0; i < n; i++)
            dims[i] = p->shape[i];
    }
    gboolean copied[HN_MAX_RANK] = { FALSE }; /* sizes on both sides say nothing of the -1, not even when 0 */
    for (int i = 0; i < n; i++) {
        if (dims[i] == 0 && !p->allow_zero) {
            if (i >= x->ndim) {
                hn_eval_fail(e, HN_ERROR_SHAPE, "the new shape copies size %d of %d", i, x->ndim);
                return;
            }
            dims[i] = x->dims[i];
            copied[i] = TRUE;
        } else if (dims[i] == -1 && rest < 0) {
            rest = i;
        } else if (dims[i] < 0 || !hn_mul_i64(below, dims[i], &below)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "the new shape cannot have a size of %" PRId64, dims[i]);
            return;
        }
    }
    if (e->error != NULL)
        return;
    if (rest >= 0) {
        for (int a = 0; a < x->ndim; a++)
            above *= copied[a] ? 1 : x->dims[a];
        if (below == 0 || above % below != 0) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " elements cannot take the new shape", x->n);
            return;
        }
        dims[rest] = above / below;
    }
    hn_eval_view(e, 0, x, n, dims);
}

/* Without `allowzero` a 0 copies the input's size: the same where there is no 0, or where that size is 0. */
static void reshape_unbind(HnUnbind *u)
{
    const HnReshape *p = u->params;
    int64_t shape[HN_MAX_RANK], dims[HN_MAX_RANK];
    int n = hn_unbind_ints(u, 1, shape), rank = hn_unbind_rank(u, 0);
    gboolean same = n >= 0 || hn_unbind_dims(u, 0, dims);
    if (!hn_unbind_below(u, 14) || !p->allow_zero)
        return;
    for (int i = 0; i < n; i++)
        same = same && (shape[i] != 0 || hn_unbind_dim(u, 0, i) == 0);
    for (int i = 0; n < 0 && i < rank; i++)
        same = same && dims[i] != 0;
    if (same)
        hn_node_remove_attr(u->node, "allowzero");
}

/* The target says how many channels there are, unless that follows from the input. */
static gboolean reshape_narrow(const HnNarrow *x)
{
    const HnReshape *p = x->params;
    const HnKept *k = hn_narrow_out(x, 0), *in = hn_narrow_in(x, 0);
    g_autoptr(HnTensor) shape = hn_narrow_constant(x, 1);
    if (k == NULL || shape == NULL || k->axis >= shape->n)
        return TRUE;
    const int64_t now = hn_tensor_get_i64(shape, k->axis);
    const gboolean copied = now == 0 && !p->allow_zero && in != NULL && in->axis == k->axis;
    if (now != -1 && !copied)
        hn_narrow_set_number(x, 1, k->axis, k->left);
    return TRUE;
}

static void reshaped_grad(HnTape *t)
{
    hn_tape_reshaped(t);
}

void hn_reshape_batch(HnBatch *b)
{
    hn_batch_view(b, FALSE);
}

const HnOp hn_op_reshape = {
    .name = "Reshape",
    .flags = HN_OP_VIEW,
    .since = { 1, 5, 13, 14, 19, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "allowzero", HN_ATTR_INT, .since = 14 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 19)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_ALL,
    .min_in = 1,
    .unbind = reshape_unbind,
    .params_size = sizeof(HnReshape),
    .bind = reshape_bind,
    .infer = reshape_infer,
    .cost = hn_cost_nothing,
    .ref = reshape_ref,
    .grad = reshaped_grad,
    .batch = hn_reshape_batch,
    .quant = { .kind = HN_Q_PASS },
    .narrow = reshape_narrow,
};

/* --- Squeeze, Unsqueeze ---------------------------------------------------------------------------------------------
 */

typedef struct {
    gboolean input, given; /* axes are input 1; axes are given at all */
    const int64_t *axes;
    int64_t n;
} HnSqueeze;

static void squeeze_bind(HnBind *b, void *params)
{
    HnSqueeze *p = params;
    p->input = b->version >= 13;
    p->given = p->input ? hn_node_in(b->node, 1) != NULL : hn_bind_has(b, "axes");
    if (!p->input)
        p->axes = hn_bind_ints(b, "axes", &p->n);
    if (p->n > HN_MAX_RANK)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'axes' has %" PRId64 " axes", p->n);
}

static void unsqueeze_bind(HnBind *b, void *params)
{
    squeeze_bind(b, params);
    if (!((HnSqueeze *)params)->given)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "the axes are missing");
}

/* The axes where they are known. */
static gboolean squeeze_known_axes(const HnInfer *x, int64_t *axes, int *n)
{
    const HnSqueeze *p = x->params;
    if (p->input)
        return hn_infer_ints(x, 1, axes, HN_MAX_RANK, n);
    *n = (int)p->n;
    for (int i = 0; i < *n; i++)
        axes[i] = p->axes[i];
    return TRUE;
}

static int squeeze_eval_axes(HnEval *e, int64_t *axes)
{
    const HnSqueeze *p = e->params;
    if (p->input)
        return p->given ? hn_eval_ints(e, 1, axes, HN_MAX_RANK) : 0;
    for (int64_t i = 0; i < p->n; i++)
        axes[i] = p->axes[i];
    return (int)p->n;
}

static void squeeze_infer(HnInfer *x)
{
    const HnSqueeze *p = x->params;
    int rank = hn_infer_rank(x, 0), n = 0, k = 0;
    int64_t axes[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK] = { FALSE }, known = rank >= 0;
    HnDim dims[HN_MAX_RANK];
    if (known && p->given) {
        known = squeeze_known_axes(x, axes, &n);
        if (known && !hn_infer_mark_axes(x, axes, n, rank, mark))
            return;
    }
    for (int a = 0; a < rank && known && !p->given; a++) { /* every size of 1: all must be known */
        known = hn_infer_dim(x, 0, a).known;
        mark[a] = hn_dim_is(hn_infer_dim(x, 0, a), 1);
    }
    if (!known) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    for (int a = 0; a < rank; a++) {
        HnDim d = hn_infer_dim(x, 0, a);
        if (!mark[a])
            dims[k++] = d;
        else if (d.known && d.n != 1)
            hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d has %" PRId64 " elements and cannot go", a, d.n);
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), k, dims);
    hn_infer_pass_contents(x, k);
}

static void squeeze_ref(HnEval *e)
{
    const HnSqueeze *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t axes[HN_MAX_RANK], dims[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    int n = squeeze_eval_axes(e, axes), k = 0;
    if (n < 0 || !hn_eval_mark_axes(e, axes, n, x->ndim, mark))
        return;
    for (int a = 0; a < x->ndim; a++) {
        if (!(p->given ? mark[a] : x->dims[a] == 1)) {
            dims[k++] = x->dims[a];
        } else if (x->dims[a] != 1) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "axis %d has %" PRId64 " elements and cannot go", a, x->dims[a]);
            return;
        }
    }
    hn_eval_view(e, 0, x, k, dims);
}

void hn_squeeze_batch(HnBatch *b)
{
    hn_batch_view(b, TRUE);
}

const HnOp hn_op_squeeze = {
    .name = "Squeeze",
    .flags = HN_OP_VIEW,
    .since = { 1, 11, 13, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 13, .input = 1, .back = 11 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 21)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_ALL,
    .min_in = 1,
    .params_size = sizeof(HnSqueeze),
    .bind = squeeze_bind,
    .infer = squeeze_infer,
    .cost = hn_cost_nothing,
    .ref = squeeze_ref,
    .grad = reshaped_grad,
    .batch = hn_squeeze_batch,
    .quant = { .kind = HN_Q_PASS },
};

static void unsqueeze_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0), n = 0, k = 0;
    int64_t axes[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    HnDim dims[HN_MAX_RANK];
    if (rank < 0 || !squeeze_known_axes(x, axes, &n)) {
        n = hn_infer_has(x, 1) ? hn_infer_length(x, 1) : -1;
        if (rank < 0 || n < 0 || n > HN_MAX_RANK - rank) {
            hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
            return;
        }
        for (int a = 0; a < rank + n; a++)
            dims[a] = hn_dim_unknown();
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank + n, dims);
        return;
    }
    if (rank + n > HN_MAX_RANK)
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", rank + n, HN_MAX_RANK);
    if (x->error != NULL || !hn_infer_mark_axes(x, axes, n, rank + n, mark))
        return;
    for (int a = 0; a < rank + n; a++)
        dims[a] = mark[a] ? hn_dim(1) : hn_infer_dim(x, 0, k++);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank + n, dims);
    hn_infer_pass_contents(x, rank + n);
}

static void unsqueeze_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t axes[HN_MAX_RANK], dims[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    int n = squeeze_eval_axes(e, axes), k = 0;
    if (n >= 0 && x->ndim + n > HN_MAX_RANK)
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", x->ndim + n, HN_MAX_RANK);
    if (e->error != NULL || !hn_eval_mark_axes(e, axes, n, x->ndim + n, mark))
        return;
    for (int a = 0; a < x->ndim + n; a++)
        dims[a] = mark[a] ? 1 : x->dims[k++];
    hn_eval_view(e, 0, x, x->ndim + n, dims);
}

static void unsqueeze_unbind(HnUnbind *u)
{
    const HnSqueeze *p = u->params;
    int64_t axes[HN_MAX_RANK];
    int n = p->input ? hn_unbind_ints(u, 1, axes) : (int)p->n, rank = hn_unbind_rank(u, 0);
    gboolean back = FALSE;
    for (int i = 0; i < n; i++) {
        axes[i] = p->input ? axes[i] : p->axes[i];
        back = back || axes[i] < 0;
        axes[i] += axes[i] < 0 ? rank + n : 0;
    }
    if (u->to >= 11 || u->from < 11 || !back)
        return;
    if (rank < 0) {
        hn_unbind_refuse(u, "an axis counts from the back of an unknown number of dimensions");
        return;
    }
    hn_node_set_ints(u->node, "axes", axes, n);
    hn_unbind_drop(u, 1);
}

const HnOp hn_op_unsqueeze = {
    .name = "Unsqueeze",
    .flags = HN_OP_VIEW,
    .since = { 1, 11, 13, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "axes", HN_ATTR_INTS, .until = 13, .input = 1 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 21)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_ALL,
    .min_in = 1,
    .unbind = unsqueeze_unbind,
    .params_size = sizeof(HnSqueeze),
    .bind = unsqueeze_bind,
    .infer = unsqueeze_infer,
    .cost = hn_cost_nothing,
    .ref = unsqueeze_ref,
    .grad = reshaped_grad,
    .batch = hn_reshape_batch,
    .quant = { .kind = HN_Q_PASS },
};

/* --- Flatten --------------------------------------------------------------------------------------------------------
 */

typedef struct {
    int64_t axis; /* in [-rank, rank] */
} HnFlatten;

static void flatten_bind(HnBind *b, void *params)
{
    HnFlatten *p = params;
    p->axis = hn_bind_int(b, "axis", 1);
    if (p->axis < 0 && b->version < 11)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'axis' cannot be %" PRId64 " before opset 11", p->axis);
}

static void flatten_infer(HnInfer *x)
{
    const HnFlatten *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim dims[2] = { hn_dim_unknown(), hn_dim_unknown() };
    if (rank >= 0) {
        int axis = p->axis == rank ? rank : hn_infer_axis(x, p->axis, rank);
        dims[0] = dims[1] = hn_dim(1);
        for (int a = 0; a < rank; a++)
            dims[a >= axis] = hn_dim_mul(dims[a >= axis], hn_infer_dim(x, 0, a));
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 2, dims);
}

static void flatten_ref(HnEval *e)
{
    const HnFlatten *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int axis = p->axis == x->ndim ? x->ndim : hn_eval_axis(e, p->axis, x->ndim);
    if (axis >= 0)
        hn_eval_view(e, 0, x, 2, (int64_t[]){ hn_span(x->dims, 0, axis), hn_span(x->dims, axis, x->ndim) });
}

const HnOp hn_op_flatten = {
    .name = "Flatten",
    .flags = HN_OP_VIEW,
    .since = { 1, 9, 11, 13, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }),
    .lacks = HN_LACKS({ 'T', 9, 0, HN_T_INTS | HN_BIT(HN_STRING) | HN_BIT(HN_BOOL) | HN_BIT(HN_C64) | HN_BIT(HN_C128) },
                      HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 21)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "T",
    .T = HN_T_ALL,
    .params_size = sizeof(HnFlatten),
    .bind = flatten_bind,
    .infer = flatten_infer,
    .cost = hn_cost_nothing,
    .ref = flatten_ref,
    .grad = reshaped_grad,
    .batch = hn_reshape_batch,
    .quant = { .kind = HN_Q_PASS },
};
