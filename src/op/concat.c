/*
 * Concat and Split. Opset 1 of Concat joined along axis 1 unless told otherwise. Split's sizes were an attribute before
 * opset 13 (and, in opset 1, possibly an input); since 18 a size that does not divide leaves a smaller last part.
 */
#include "op/concat.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/unbind.h"

static void concat_bind(HnBind *b, void *params)
{
    HnConcat *p = params;
    if (b->version >= 4)
        hn_bind_require(b, "axis");
    p->axis = hn_bind_int(b, "axis", 1);
}

static void concat_contents(HnInfer *x)
{
    int n = 0;
    for (int i = 0; i < x->n_in; i++) {
        const HnContents *c = hn_infer_contents(x, i);
        if (c == NULL || c->rank != 1 || n + c->n > HN_CONTENTS_MAX)
            return;
        n += c->n;
    }
    HnContents *r = hn_contents_new(1, n);
    n = 0;
    for (int i = 0; i < x->n_in; i++)
        for (int j = 0; j < x->contents[i]->n; j++)
            r->d[n++] = x->contents[i]->d[j];
    hn_infer_out_contents(x, 0, r);
}

static void concat_infer(HnInfer *x)
{
    const HnConcat *p = x->params;
    HnDtype dtype = HN_UNDEFINED;
    int rank = -1;
    gboolean all = TRUE; /* ranks of all inputs are known */
    for (int i = 0; i < x->n_in; i++) {
        int r = hn_infer_rank(x, i);
        if (dtype == HN_UNDEFINED)
            dtype = hn_infer_dtype(x, i);
        all = all && r >= 0;
        if (rank >= 0 && r >= 0 && r != rank) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "inputs of %d and %d dimensions cannot be joined", rank, r);
            return;
        }
        rank = MAX(rank, r);
    }
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, dtype);
        return;
    }
    int axis = hn_infer_axis(x, p->axis, rank);
    if (x->error != NULL)
        return;
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? hn_dim(0) : hn_dim_unknown();
    for (int i = 0; i < x->n_in; i++) {
        if (hn_infer_rank(x, i) < 0)
            continue;
        for (int a = 0; a < rank; a++) {
            HnDim d = hn_infer_dim(x, i, a);
            if (a == axis) {
                dims[a] = hn_dim_add(dims[a], d);
            } else if (hn_dim_differ(dims[a], d)) {
                hn_infer_fail(x, HN_ERROR_SHAPE, "sizes of input %d differ along axis %d, joined is axis %d", i, a,
                              axis);
                return;
            } else if (!dims[a].known && (d.known || dims[a].sym == NULL)) {
                dims[a] = d;
            }
        }
    }
    if (!all)
        dims[axis] = hn_dim_unknown();
    hn_infer_out(x, 0, dtype, rank, dims);
    concat_contents(x);
}

static void concat_ref(HnEval *e)
{
    const HnConcat *p = e->params;
    const HnTensor *first = hn_eval_in(e, 0);
    size_t size = hn_move_size(e, first->dtype);
    int axis = hn_eval_axis(e, p->axis, first->ndim);
    if (size == 0 || axis < 0)
        return;
    int64_t dims[HN_MAX_RANK];
    memcpy(dims, first->dims, (size_t)first->ndim * sizeof *dims);
    for (int i = 1; i < e->n_in; i++) {
        const HnTensor *t = e->in[i];
        gboolean fits = t != NULL && t->ndim == first->ndim && t->dtype == first->dtype;
        for (int a = 0; fits && a < t->ndim; a++)
            fits = a == axis ? hn_add_i64(dims[a], t->dims[a], &dims[a]) : t->dims[a] == dims[a];
        if (!fits) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not fit to those before along axis %d", i, axis);
            return;
        }
    }
    char *y = hn_move_out(e, 0, first->dtype, first->ndim, dims);
    if (y == NULL)
        return;
    if (e->out[0]->n > 0) {
        int64_t outer = hn_span(dims, 0, axis);
        size_t row = (size_t)hn_span(dims, axis, first->ndim) * size, at = 0;
        for (int i = 0; i < e->n_in; i++) {
            const HnTensor *t = e->in[i];
            size_t run = t->n > 0 ? (size_t)(t->n / outer) * size : 0;
            for (int64_t o = 0; run > 0 && o < outer; o++)
                memcpy(y + (size_t)o * row + at, (const char *)t->data + (size_t)o * run, run);
            at += run;
        }
    }
    hn_move_done(e, 0);
}

static void concat_grad(HnTape *t)
{
    const HnConcat *p = t->params;
    const int n = (int)t->node->in->len;
    g_autofree HnValue **size = g_new(HnValue *, (gsize)n);
    for (int i = 0; i < n; i++) {
        HnValue *x = hn_tape_in(t, i);
        size[i] = hn_build_shape(t->build, x, p->axis, p->axis == -1 ? INT64_MAX : p->axis + 1);
    }
    HnValue *in[] = { hn_tape_dy(t, 0), n > 1 ? hn_build_concat(t->build, n, size, 0) : size[0] };
    HnNode *parts = hn_build_node(t->build, "Split", NULL, 2, in, n);
    hn_node_set_int(parts, "axis", p->axis);
    for (int i = 0; i < n; i++)
        hn_tape_give(t, i, hn_node_out(parts, i));
}

void hn_concat_batch(HnBatch *b)
{
    const HnConcat *p = b->params;
    hn_batch_concat(b, p->axis);
}

const HnOp hn_op_concat = {
    .name = "Concat",
    .since = { 1, 4, 11, 13 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "T*",
    .out = "T",
    .T = HN_T_PLAIN,
    .min_in = 1,
    .params_size = sizeof(HnConcat),
    .bind = concat_bind,
    .infer = concat_infer,
    .ref = concat_ref,
    .grad = concat_grad,
    .batch = hn_concat_batch,
    .quant = { .kind = HN_Q_ELEMENTWISE, .bytes = HN_QB_MOVES },
};

/* --- Split ----------------------------------------------------------------------------------------------------------
 */

static void split_bind(HnBind *b, void *params)
{
    HnSplit *p = params;
    int64_t outputs = b->node->out->len;
    if (outputs == 0)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has no outputs");
    p->axis = hn_bind_int(b, "axis", 0);
    p->uneven = b->version >= 18;
    if (b->version < 13)
        p->sizes = hn_bind_ints(b, "split", &p->n_sizes);
    if (b->version >= 2 && b->version < 13 && hn_node_in(b->node, 1) != NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "part sizes are an attribute before opset 13, not an input");
    if (p->sizes != NULL && p->n_sizes != outputs)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'split' has %" PRId64 " parts for %" PRId64 " outputs",
                     p->n_sizes, outputs);
    if (b->version >= 18 && hn_bind_has(b, "num_outputs")) {
        int64_t n = hn_bind_int(b, "num_outputs", outputs);
        if (n != outputs)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'num_outputs' is %" PRId64 ", but there are %" PRId64, n,
                         outputs);
        if (hn_node_in(b->node, 1) != NULL)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "both 'num_outputs' and the sizes of the parts are given");
    }
}

/* Part k of n equal parts of a known size: FALSE where it cannot be cut like that. */
static gboolean split_equal(int64_t size, int n, gboolean uneven, int k, int64_t *part)
{
    int64_t each = size / n + (size % n != 0);
    if (size % n != 0 && !uneven)
        return FALSE;
    *part = k < n - 1 ? each : size - each * (n - 1);
    return *part >= 0;
}

static void split_fail_equal(GError **error, int64_t size, int n)
{
    if (*error == NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "an axis of %" PRId64 " cannot be split into %d parts", size, n);
}

static void split_infer_contents(HnInfer *x, int k, HnDim at, HnDim part)
{
    const HnContents *c = hn_infer_contents(x, 0);
    if (c == NULL || c->rank != 1 || !at.known || !part.known)
        return;
    if (at.n > c->n || part.n > c->n - at.n)
        return;
    HnContents *r = hn_contents_new(1, (int)part.n);
    for (int i = 0; i < r->n; i++)
        r->d[i] = c->d[at.n + i];
    hn_infer_out_contents(x, k, r);
}

static void split_infer(HnInfer *x)
{
    const HnSplit *p = x->params;
    int rank = hn_infer_rank(x, 0), n = x->n_out, n_sizes = 0;
    if (rank < 0) {
        for (int k = 0; k < n; k++)
            hn_infer_out_unknown(x, k, hn_infer_dtype(x, 0));
        return;
    }
    int axis = hn_infer_axis(x, p->axis, rank);
    if (x->error != NULL)
        return;
    HnDim dims[HN_MAX_RANK], whole = hn_infer_dim(x, 0, axis), at = hn_dim(0);
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    g_autofree int64_t *sizes = g_new0(int64_t, (gsize)n + 1);
    gboolean listed = p->sizes != NULL || hn_infer_has(x, 1), known = p->sizes != NULL;
    if (p->sizes != NULL) {
        memcpy(sizes, p->sizes, (size_t)n * sizeof *sizes);
    } else if (listed && hn_infer_ints(x, 1, sizes, n, &n_sizes)) {
        known = n_sizes == n;
        if (!known) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "%d part sizes for %d outputs", n_sizes, n);
            return;
        }
    }
    for (int k = 0; k < n; k++) {
        HnDim part = hn_dim_unknown();
        const HnContents *c = hn_infer_contents(x, 1);
        if (known) {
            part = hn_dim(sizes[k]);
        } else if (listed) {
            part = c != NULL && k < c->n ? c->d[k] : part;
        } else if (whole.known) {
            int64_t size;
            if (!split_equal(whole.n, n, p->uneven, k, &size)) {
                split_fail_equal(&x->error, whole.n, n);
                return;
            }
            part = hn_dim(size);
        } else {
            HnDim each = p->uneven ? hn_dim_ceil_div(whole, hn_dim(n)) : hn_dim_floor_div(whole, hn_dim(n));
            part = k < n - 1 || !p->uneven ? each : hn_dim_sub(whole, hn_dim_mul(each, hn_dim(n - 1)));
        }
        if (part.known && part.n < 0) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "part %d has negative size", k);
            return;
        }
        dims[axis] = part;
        hn_infer_out(x, k, hn_infer_dtype(x, 0), rank, dims);
        split_infer_contents(x, k, at, part);
        at = hn_dim_add(at, part);
    }
    if (listed && hn_dim_differ(at, whole))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the parts do not add up to the size of axis %d", axis);
}

static gboolean split_sizes(HnEval *e, int64_t whole, int64_t *sizes)
{
    const HnSplit *p = e->params;
    int n = e->n_out;
    int64_t sum = 0;
    if (p->sizes != NULL) {
        memcpy(sizes, p->sizes, (size_t)n * sizeof *sizes);
    } else if (hn_eval_in(e, 1) != NULL) {
        int given = hn_eval_ints(e, 1, sizes, n);
        if (given >= 0 && given != n)
            hn_eval_fail(e, HN_ERROR_SHAPE, "%d part sizes for %d outputs", given, n);
    } else {
        for (int k = 0; k < n && e->error == NULL; k++)
            if (!split_equal(whole, n, p->uneven, k, &sizes[k]))
                split_fail_equal(&e->error, whole, n);
    }
    for (int k = 0; k < n && e->error == NULL; k++)
        if (sizes[k] < 0 || !hn_add_i64(sum, sizes[k], &sum))
            hn_eval_fail(e, HN_ERROR_SHAPE, "part %d has a size of %" PRId64, k, sizes[k]);
    if (e->error == NULL && sum != whole)
        hn_eval_fail(e, HN_ERROR_SHAPE, "the parts add up to %" PRId64 ", the axis has %" PRId64, sum, whole);
    return e->error == NULL;
}

static void split_ref(HnEval *e)
{
    const HnSplit *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    size_t size = hn_move_size(e, x->dtype);
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (size == 0 || axis < 0)
        return;
    g_autofree int64_t *sizes = g_new0(int64_t, (gsize)e->n_out + 1);
    if (!split_sizes(e, x->dims[axis], sizes))
        return;
    int64_t dims[HN_MAX_RANK];
    memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    int64_t outer = hn_span(dims, 0, axis), inner = hn_span(dims, axis + 1, x->ndim);
    size_t row = (size_t)(x->dims[axis] * inner) * size, at = 0;
    for (int k = 0; k < e->n_out; k++) {
        size_t run = (size_t)(sizes[k] * inner) * size;
        dims[axis] = sizes[k];
        if (hn_eval_wants(e, k)) {
            char *y = hn_move_out(e, k, x->dtype, x->ndim, dims);
            if (y == NULL)
                return;
            for (int64_t o = 0; run > 0 && o < outer; o++)
                memcpy(y + (size_t)o * run, (const char *)x->data + (size_t)o * row + at, run);
            hn_move_done(e, k);
        }
        at += run;
    }
}

/* Since opset 18 equal parts are asked for by their number, and the last one may be smaller. */
static void split_unbind(HnUnbind *u)
{
    const HnSplit *p = u->params;
    int64_t n = u->node->out->len, size = hn_unbind_dim(u, 0, (int)p->axis);
    if (p->sizes != NULL || hn_unbind_in(u, 1) != NULL)
        return;
    if (hn_unbind_above(u, 18))
        hn_node_set_int(u->node, "num_outputs", n);
    if (!hn_unbind_below(u, 18) || (size >= 0 && size % n == 0) || n == 1)
        return;
    int64_t each = size / n + 1;
    if (size >= 0 && size < each * (n - 1)) {
        hn_unbind_refuse(u, "%" PRId64 " elements do not make %" PRId64 " parts", size, n);
    } else if (size >= 0) {
        HnTensor *parts = hn_tensor_new(HN_I64, 1, &n, NULL, NULL); /* as many as there are outputs */
        for (int64_t k = 0; k < n; k++)
            ((int64_t *)parts->data)[k] = k < n - 1 ? each : size - each * (n - 1);
        hn_node_set_in(u->node, 1, hn_unbind_const(u, parts));
    } else if (u->to < 13) {
        hn_unbind_refuse(u, "the size of what is cut into %" PRId64 " parts is not known", n);
    } else {
        HnValue *x = hn_unbind_in(u, 0), *d = hn_unbind_size(u, x, p->axis);
        HnValue *up = hn_unbind_op2(u, "Add", d, hn_unbind_int(u, n - 1));
        HnValue *part = hn_unbind_op2(u, "Div", up, hn_unbind_int(u, n));
        HnValue *most = hn_unbind_op2(u, "Mul", part, hn_unbind_int(u, n - 1));
        g_autofree HnValue **parts = g_new(HnValue *, (gsize)n);
        for (int64_t k = 0; k < n; k++)
            parts[k] = part;
        parts[n - 1] = hn_unbind_op2(u, "Sub", d, most);
        hn_node_set_in(u->node, 1, hn_unbind_concat(u, (int)n, parts, 0));
    }
}

/* Parts lose what they lose, and are no longer equal. */
static gboolean split_narrow(const HnNarrow *x)
{
    const HnSplit *p = x->params;
    const HnKept *k = hn_narrow_in(x, 0);
    const HnType *t = k != NULL ? hn_node_in(x->node, 0)->type : NULL;
    const int64_t n = x->node->out->len;
    if (k == NULL)
        return TRUE;
    if (t == NULL || p->axis + (p->axis < 0 ? t->rank : 0) != k->axis)
        return t != NULL;
    g_autoptr(HnTensor) sizes = hn_narrow_constant(x, 1);
    if (p->sizes != NULL || (hn_node_in(x->node, 1) != NULL && (sizes == NULL || sizes->n != n)))
        return FALSE;
    HnTensor *now = hn_tensor_new(HN_I64, 1, &n, NULL, NULL);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t each = (k->n + n - 1) / n, size = sizes != NULL ? hn_tensor_get_i64(sizes, i) : each;
        const int64_t end = MIN(at + size, k->n);
        ((int64_t *)now->data)[i] = hn_kept_before(k, end) - hn_kept_before(k, at);
        at = end;
    }
    hn_narrow_set(x, 1, now);
    hn_node_remove_attr(x->node, "num_outputs");
    return TRUE;
}

static void split_grad(HnTape *t)
{
    const HnSplit *p = t->params;
    const int n = (int)t->node->out->len;
    g_autofree HnValue **part = g_new(HnValue *, (gsize)n);
    for (int k = 0; k < n; k++) {
        if (hn_tape_out(t, k) == NULL) {
            hn_tape_refuse(t, "a part is left out");
            return;
        }
        part[k] = hn_tape_dy(t, k) != NULL ? hn_tape_dy(t, k) : hn_tape_zeros(t, hn_tape_out(t, k));
    }
    hn_tape_give(t, 0, hn_build_concat(t->build, n, part, p->axis));
}

void hn_split_batch(HnBatch *b)
{
    const HnSplit *p = b->params;
    hn_batch_along(b, p->axis, FALSE);
}

const HnOp hn_op_split = {
    .name = "Split",
    .since = { 1, 2, 11, 13, 18 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }, { "split", HN_ATTR_INTS, .until = 13, .input = 1 },
                      { "num_outputs", HN_ATTR_INT, .since = 18, .any = TRUE }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "TV",
    .out = "T*",
    .T = HN_T_PLAIN,
    .V = HN_BIT(HN_I64) | HN_BIT(HN_F16) | HN_BIT(HN_F32) | HN_BIT(HN_F64), /* floats in opset 1 */
    .min_in = 1,
    .unbind = split_unbind,
    .params_size = sizeof(HnSplit),
    .bind = split_bind,
    .infer = split_infer,
    .cost = hn_cost_move,
    .ref = split_ref,
    .grad = split_grad,
    .batch = hn_split_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
    .narrow = split_narrow,
};
