/*
 * Pad and CenterCropPad. Pad's amounts were attributes (`paddings` in opset 1, `pads` in 2), as was the value; inputs
 * since 11. Mode "wrap" came with 19, `axes` with 18. Negative amounts cut.
 */
#include "op/pad.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/narrow.h"
#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

static void pad_bind(HnBind *b, void *params)
{
    static const char *const modes[] = { "constant", "reflect", "edge", NULL };
    static const char *const modes19[] = { "constant", "reflect", "edge", "wrap", NULL };
    HnPad *p = params;
    const char *name = b->version == 1 ? "paddings" : "pads";
    p->mode = (HnPadding)hn_bind_word(b, "mode", b->version >= 19 ? modes19 : modes, HN_PAD_CONSTANT);
    p->inputs = b->version >= 11;
    if (p->inputs) {
        if (hn_node_in(b->node, 1) == NULL)
            hn_bind_fail(b, HN_ERROR_GRAPH, "input 1 is missing");
        return;
    }
    hn_bind_require(b, name);
    p->pads = hn_bind_ints(b, name, &p->n);
    p->value = hn_bind_float(b, "value", 0);
    if (p->n > 2 * HN_MAX_RANK || p->n % 2 != 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " numbers", name, p->n);
}

static void pad_infer(HnInfer *x)
{
    const HnPad *p = x->params;
    int rank = hn_infer_rank(x, 0), n_axes = rank, n = p->inputs ? hn_infer_length(x, 1) : (int)p->n;
    HnDim dims[HN_MAX_RANK];
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    int64_t axes[HN_MAX_RANK];
    const HnContents *c = hn_infer_contents(x, 1);
    gboolean known = !p->inputs || c != NULL, mark[HN_MAX_RANK];
    for (int a = 0; a < rank; a++)
        axes[a] = a;
    if (p->inputs && hn_infer_has(x, 3))
        known = hn_infer_ints(x, 3, axes, HN_MAX_RANK, &n_axes) && known;
    else if (n >= 0 && n != 2 * rank)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%d amounts do not fit to %d dimensions", n, rank);
    if (known && n != 2 * n_axes)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%d amounts do not fit to %d axes", n, n_axes);
    for (int a = 0; a < rank; a++)
        dims[a] = known ? hn_infer_dim(x, 0, a) : hn_dim_unknown();
    if (known && (x->error != NULL || !hn_infer_mark_axes(x, axes, n_axes, rank, mark)))
        return;
    for (int i = 0; i < n_axes && known; i++) {
        int a = hn_axis(axes[i], rank);
        HnDim before = c != NULL ? c->d[i] : hn_dim(p->inputs ? 0 : p->pads[i]);
        HnDim after = c != NULL ? c->d[n_axes + i] : hn_dim(p->inputs ? 0 : p->pads[n_axes + i]);
        dims[a] = hn_dim_add(hn_dim_add(dims[a], before), after);
        if (dims[a].known && dims[a].n < 0)
            hn_infer_fail(x, HN_ERROR_SHAPE, "more is cut from axis %d than it has", a);
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

/* Where each element along an axis comes from: index into the input, -1: the value. */
static void pad_map(int64_t *map, HnPadding mode, int64_t n, int64_t before, int64_t after)
{
    int64_t first = MAX(-before, 0), last = n - MAX(-after, 0), out = n + before + after; /* kept is [first, last) */
    int64_t m = last - first, lead = MAX(before, 0);
    for (int64_t i = 0; i < out; i++) {
        int64_t k = i - lead; /* in what is kept */
        if (k < 0 || k >= m) {
            if (mode == HN_PAD_CONSTANT) {
                map[i] = -1;
                continue;
            }
            if (mode == HN_PAD_EDGE) {
                k = k < 0 ? 0 : m - 1;
            } else if (mode == HN_PAD_WRAP || m == 1) {
                k = (k % m + m) % m;
            } else { /* a mirror at both ends: period 2(m-1) */
                int64_t period = 2 * (m - 1);
                k = (k % period + period) % period;
                k = k < m ? k : period - k;
            }
        }
        map[i] = first + k;
    }
}

/* A tensor with some axes taken through maps, others as they are. value: one element or NULL for zeros. */
static void pad_copy(HnEval *e, const HnTensor *x, HnPadding mode, const int64_t *before, const int64_t *after,
                     const void *value)
{
    int64_t dims[HN_MAX_RANK], strides[HN_MAX_RANK], *map[HN_MAX_RANK], total = 0;
    size_t size = hn_move_size(e, x->dtype);
    int n = 0; /* axes in front of those that nothing happens to */
    for (int a = 0; a < x->ndim && size > 0; a++) {
        /* what is cut at the front must be there, and at the back what is left */
        gboolean fits = before[a] >= -x->dims[a] && after[a] >= -x->dims[a] - MIN(before[a], 0) &&
                        hn_add_i64(x->dims[a], before[a], &dims[a]) && hn_add_i64(dims[a], after[a], &dims[a]);
        if (!fits || (mode != HN_PAD_CONSTANT && (before[a] > 0 || after[a] > 0) &&
                      x->dims[a] + MIN(before[a], 0) + MIN(after[a], 0) == 0)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "axis %d of %" PRId64 " cannot be padded by %" PRId64 " and %" PRId64, a,
                         x->dims[a], before[a], after[a]);
            return;
        }
        if (before[a] != 0 || after[a] != 0)
            n = a + 1;
    }
    char *y = size > 0 ? hn_move_out(e, 0, x->dtype, x->ndim, dims) : NULL;
    if (y == NULL)
        return;
    if (e->out[0]->n == 0) {
        hn_move_done(e, 0);
        return;
    }
    if (n == 0) {
        memcpy(y, x->data, x->bytes);
        hn_move_done(e, 0);
        return;
    }
    hn_strides(x->ndim, x->dims, strides);
    for (int a = 0; a < n; a++)
        total += dims[a]; /* at most the elements of the output, plus n */
    int64_t *maps = hn_eval_scratch(e, total, sizeof *maps), *at = maps;
    for (int a = 0; maps != NULL && a < n; at += dims[a++]) {
        map[a] = at;
        pad_map(at, mode, x->dims[a], before[a], after[a]);
    }
    if (maps == NULL) {
        memset(y, 0, e->out[0]->bytes);
        hn_move_done(e, 0);
        return;
    }
    int64_t run = hn_span(x->dims, n, x->ndim), idx[HN_MAX_RANK] = { 0 }, len = dims[n - 1];
    const int64_t *row = map[n - 1];
    do {
        int64_t from = 0;
        gboolean outside = FALSE;
        for (int a = 0; a < n - 1; a++) {
            outside = outside || map[a][idx[a]] < 0;
            from += map[a][idx[a]] * strides[a];
        }
        if (outside) {
            hn_move_fill(y, value, size, len * run);
            y += (size_t)(len * run) * size;
        } else {
            const char *src = x->data;
            for (int64_t i = 0, k; i < len; i = k) { /* stretches that are contiguous in x, or outside */
                for (k = i + 1; k < len && (row[i] < 0 ? row[k] < 0 : row[k] == row[k - 1] + 1); k++)
                    ;
                if (row[i] < 0)
                    hn_move_fill(y, value, size, (k - i) * run);
                else
                    memcpy(y, src + (size_t)(from + row[i] * strides[n - 1]) * size, (size_t)((k - i) * run) * size);
                y += (size_t)((k - i) * run) * size;
            }
        }
    } while (hn_index_next(n - 1, dims, idx, 0, NULL, NULL));
    hn_eval_scratch_free(e, maps);
    hn_move_done(e, 0);
}

static gboolean pad_amounts(HnEval *e, int rank, int64_t *before, int64_t *after)
{
    const HnPad *p = e->params;
    int64_t pads[2 * HN_MAX_RANK], axes[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    int n = (int)p->n, n_axes = rank;
    for (int a = 0; a < rank; a++) {
        axes[a] = a;
        before[a] = after[a] = 0;
    }
    if (p->inputs) {
        n = hn_eval_ints(e, 1, pads, 2 * HN_MAX_RANK);
        if (hn_eval_in(e, 3) != NULL)
            n_axes = hn_eval_ints(e, 3, axes, HN_MAX_RANK);
    }
    for (int i = 0; i < n && !p->inputs; i++)
        pads[i] = p->pads[i];
    if (e->error == NULL && n != 2 * n_axes)
        hn_eval_fail(e, HN_ERROR_SHAPE, "%d amounts do not fit to %d axes", n, n_axes);
    if (e->error != NULL || !hn_eval_mark_axes(e, axes, n_axes, rank, mark))
        return FALSE;
    for (int i = 0; i < n_axes; i++) {
        int a = hn_axis(axes[i], rank);
        before[a] = pads[i];
        after[a] = pads[n_axes + i];
    }
    return TRUE;
}

static void pad_ref(HnEval *e)
{
    const HnPad *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *fill = p->inputs ? hn_eval_in(e, 2) : NULL;
    int64_t before[HN_MAX_RANK], after[HN_MAX_RANK];
    if (!pad_amounts(e, x->ndim, before, after))
        return;
    const void *value = NULL;
    double f64 = p->value;
    uint16_t f16 = hn_f16_from_f32(p->value);
    if (fill != NULL && (fill->n != 1 || fill->dtype != x->dtype)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the padding value is not one element of type %s", hn_dtype_name(x->dtype));
        return;
    }
    if (fill != NULL)
        value = fill->data;
    else if (!p->inputs)
        value = x->dtype == HN_F64 ? (const void *)&f64 : x->dtype == HN_F16 ? (const void *)&f16 : &p->value;
    if (!p->inputs && !hn_dtype_in(x->dtype, HN_BIT(HN_F16) | HN_BIT(HN_F32) | HN_BIT(HN_F64))) {
        hn_eval_fail(e, HN_ERROR_TYPE, "type %s cannot be padded before opset 11", hn_dtype_name(x->dtype));
        return;
    }
    pad_copy(e, x, p->mode, before, after, value);
}

/* Amounts for all axes instead of some: those before and those behind, put into zeros. */
static void pad_all_axes(HnUnbind *u)
{
    int64_t rank = hn_unbind_rank(u, 0), n = hn_unbind_dim(u, 3, 0);
    HnValue *pads = hn_unbind_in(u, 1), *axes = hn_unbind_in(u, 3), *halves[2];
    if (n < 0 || rank < 0) {
        hn_unbind_refuse(u, "the input 'axes' came with opset 18, and the number of axes or dimensions is not known");
        return;
    }
    for (int i = 0; i < 2; i++) {
        HnValue *in[] = { hn_unbind_fill(u, HN_I64, 1, &rank, 0), axes,
                          hn_unbind_slice(u, pads, 0, i * n, (i + 1) * n) };
        halves[i] = hn_node_out(hn_unbind_node(u, "ScatterElements", 3, in, 1), 0);
    }
    hn_node_set_in(u->node, 1, hn_unbind_concat(u, 2, halves, 0));
    hn_unbind_drop(u, 3);
}

/* The same where all is known. */
static gboolean pad_known_axes(HnUnbind *u, const int64_t *pads, int n_pads)
{
    int64_t axes[HN_MAX_RANK], all[2 * HN_MAX_RANK] = { 0 };
    int n = hn_unbind_ints(u, 3, axes), rank = hn_unbind_rank(u, 0);
    if (n < 0 || rank < 0 || n_pads != 2 * n)
        return FALSE;
    for (int i = 0; i < n; i++) {
        int64_t a = axes[i] + (axes[i] < 0 ? rank : 0);
        if (a < 0 || a >= rank)
            return FALSE;
        all[a] = pads[i];
        all[rank + a] = pads[n + i];
    }
    hn_node_set_in(u->node, 1, hn_unbind_list(u, all, 2 * rank));
    hn_unbind_drop(u, 3);
    return TRUE;
}

/* Mode "wrap" by copies of both ends. */
static void pad_wrap(HnUnbind *u, const int64_t *pads, int n_pads)
{
    int64_t axes[HN_MAX_RANK];
    int n = n_pads / 2;
    gboolean fits = n_pads >= 0;
    for (int i = 0; i < n; i++)
        axes[i] = i;
    if (hn_unbind_in(u, 3) != NULL)
        fits = hn_unbind_ints(u, 3, axes) == n && fits;
    for (int i = 0; i < n && fits; i++)
        fits = pads[i] >= 0 && pads[n + i] >= 0 && MAX(pads[i], pads[n + i]) <= hn_unbind_dim(u, 0, (int)axes[i]);
    if (!fits) {
        hn_unbind_refuse(u, "mode 'wrap' came with opset 19, and sizes or amounts are not known or too large");
        return;
    }
    HnValue *v = hn_unbind_in(u, 0);
    for (int i = 0; i < n; i++) {
        HnValue *parts[3];
        int k = 0;
        if (pads[i] > 0)
            parts[k++] = hn_unbind_slice(u, v, axes[i], -pads[i], INT64_MAX);
        parts[k++] = v;
        if (pads[n + i] > 0)
            parts[k++] = hn_unbind_slice(u, v, axes[i], 0, pads[n + i]);
        v = k > 1 ? hn_unbind_concat(u, k, parts, axes[i]) : v;
    }
    hn_unbind_take(u, 0, v);
}

static void pad_unbind(HnUnbind *u)
{
    const HnPad *p = u->params;
    const HnTensor *t = hn_unbind_value(u, 1);
    int64_t pads[2 * HN_MAX_RANK];
    int n = t != NULL && t->n <= 2 * HN_MAX_RANK ? (int)t->n : -1;
    for (int i = 0; i < n; i++)
        pads[i] = hn_tensor_get_i64(t, i);
    if (hn_unbind_below(u, 19) && p->mode == HN_PAD_WRAP)
        pad_wrap(u, pads, n);
    else if (hn_unbind_below(u, 18) && hn_unbind_in(u, 3) != NULL && !pad_known_axes(u, pads, n))
        pad_all_axes(u);
}

/* The number that fills is an attribute. */
static gboolean pad_computes(const HnNode *n)
{
    return n->version < 11;
}

/* What is put beside channels is as much as before; none of them may be cut off, or stand for others. */
static gboolean pad_narrow(const HnNarrow *x)
{
    const HnPad *p = x->params;
    const HnKept *k = hn_narrow_in(x, 0);
    const HnType *t = k != NULL ? hn_node_in(x->node, 0)->type : NULL;
    g_autoptr(HnTensor) pads = hn_narrow_constant(x, 1);
    if (k == NULL)
        return TRUE;
    if (t == NULL || pads == NULL || hn_node_in(x->node, 3) != NULL || pads->n != 2 * t->rank)
        return FALSE;
    const int64_t before = hn_tensor_get_i64(pads, k->axis), after = hn_tensor_get_i64(pads, t->rank + k->axis);
    return (before == 0 && after == 0) || (p->mode == HN_PAD_CONSTANT && before >= 0 && after >= 0);
}

/* The value that fills gets what is not the data's. */
static void pad_grad(HnTape *t)
{
    const HnPad *p = t->params;
    hn_tape_moved(t);
    if (p->mode != HN_PAD_CONSTANT || !hn_tape_needs(t, 2))
        return;
    HnValue *x = hn_tape_in(t, 0),
            *ones = hn_build_op2(t->build, "Expand", hn_tape_number(t, 1), hn_build_shape(t->build, x, 0, INT64_MAX));
    HnValue *in[] = { ones, hn_tape_in(t, 1), NULL, hn_tape_in(t, 3) };
    HnValue *is_data = hn_node_out(hn_build_node(t->build, "Pad", NULL, 4, in, 1), 0);
    HnValue *fill = hn_tape_calc(t, "dy * (1 - p)", &is_data);
    hn_tape_give(t, 2, hn_tape_reshape_like(t, hn_tape_sum_like(t, fill, hn_tape_number(t, 0)), hn_tape_in(t, 2)));
}

/* An axis in front that is not padded. */
static void pad_in_front(HnBatch *b, const HnPad *p)
{
    const int rank = hn_batch_rank_was(b, 0);
    int64_t v[2 * HN_MAX_RANK + 2], axes[HN_MAX_RANK], wide[2 * HN_MAX_RANK + 2] = { 0 };
    int n = (int)p->n;
    if (!hn_batch_lift(b, 0, 0))
        return;
    if (hn_batch_has(b, 3)) {
        if (!hn_batch_ints(b, 3, axes, HN_MAX_RANK, &n)) {
            hn_batch_fail(b, "its axes are not constant");
            return;
        }
        for (int i = 0; i < n; i++)
            axes[i] = hn_batch_axis(axes[i], rank) + 1;
        hn_batch_set_ints(b, 3, axes, n, -1);
        return;
    }
    for (int i = 0; i < n && i < 2 * rank && !p->inputs; i++)
        v[i] = p->pads[i];
    if ((p->inputs && !hn_batch_ints(b, 1, v, 2 * HN_MAX_RANK, &n)) || n != 2 * rank) {
        hn_batch_fail(b, "what it adds is not constant");
        return;
    }
    for (int i = 0; i < rank; i++) {
        wide[1 + i] = v[i];
        wide[rank + 2 + i] = v[rank + i];
    }
    if (p->inputs)
        hn_batch_set_ints(b, 1, wide, 2 * rank + 2, -1);
    else
        hn_node_set_ints(b->node, "pads", wide, 2 * rank + 2);
}

/* Nothing is added along the samples' axis. */
static gboolean pads_no_samples(const HnBatch *b, const HnPad *p)
{
    const int rank = hn_batch_rank_was(b, 0), at = b->in[0].at.axis;
    const HnContents *c = p->inputs ? hn_types_contents(b->types, b->in[1].v) : NULL;
    int64_t axes[HN_MAX_RANK];
    int n = 0;
    if (hn_batch_has(b, 3)) {
        if (!hn_batch_ints(b, 3, axes, HN_MAX_RANK, &n))
            return FALSE;
        for (int i = 0; i < n; i++)
            if (hn_batch_axis(axes[i], rank) == at)
                return c != NULL && c->n == 2 * n && hn_dim_is(c->d[i], 0) && hn_dim_is(c->d[n + i], 0);
        return TRUE;
    }
    if (p->inputs)
        return c != NULL && c->n == 2 * rank && hn_dim_is(c->d[at], 0) && hn_dim_is(c->d[rank + at], 0);
    return p->n == 2 * rank && p->pads[at] == 0 && p->pads[rank + at] == 0;
}

void hn_pad_batch(HnBatch *b)
{
    for (int i = 1; i < b->n_in; i++)
        if (hn_batch_split(b, i)) {
            hn_batch_fail(b, "what it adds differs from sample to sample");
            return;
        }
    if (hn_batch_in_front(b, 0) || !pads_no_samples(b, b->params))
        pad_in_front(b, b->params);
    b->out[0] = b->in[0].at;
}

const HnOp hn_op_pad = {
    .name = "Pad",
    .since = { 1, 2, 11, 13, 18, 19, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "pads", HN_ATTR_INTS, .until = 11, .input = 1 },
                      { "value", HN_ATTR_FLOAT, .until = 11, .input = 2 }),
    .lacks = HN_LACKS(
        { 'T', 11, 0, HN_T_INTS },
        { 'T', 13, 0, HN_BIT(HN_STRING) | HN_BIT(HN_BOOL) | HN_BIT(HN_C64) | HN_BIT(HN_C128) | HN_BIT(HN_BF16) },
        HN_SMALL_TYPES('T', 21)),
    .wide = HN_WIDE_PICKS,
    .in = "TiTj",
    .out = "T",
    .T = HN_T_ALL,
    .min_in = 1,
    .unbind = pad_unbind,
    .params_size = sizeof(HnPad),
    .bind = pad_bind,
    .infer = pad_infer,
    .cost = hn_cost_move,
    .ref = pad_ref,
    .grad = pad_grad,
    .batch = hn_pad_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_FILLS, .computes = pad_computes },
    .channels = { HN_CH_MOVE },
    .narrow = pad_narrow,
};

/* --- CenterCropPad --------------------------------------------------------------------------------------------------
 */

typedef struct {
    const int64_t *axes; /* NULL: all */
    int64_t n;
} HnCenter;

static void centercroppad_bind(HnBind *b, void *params)
{
    HnCenter *p = params;
    p->axes = hn_bind_ints(b, "axes", &p->n);
    if (p->n > HN_MAX_RANK)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'axes' has %" PRId64 " axes", p->n);
}

static void centercroppad_infer(HnInfer *x)
{
    const HnCenter *p = x->params;
    const HnContents *c = hn_infer_contents(x, 1);
    int rank = hn_infer_rank(x, 0), n = hn_infer_length(x, 1);
    int n_axes = p->axes != NULL ? (int)p->n : rank;
    HnDim dims[HN_MAX_RANK];
    int64_t axes[HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (n >= 0 && n != n_axes)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%d sizes for %d axes", n, n_axes);
    for (int i = 0; i < n_axes; i++)
        axes[i] = p->axes != NULL ? p->axes[i] : i;
    if (x->error != NULL || !hn_infer_mark_axes(x, axes, n_axes, rank, mark))
        return;
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    for (int i = 0; i < n_axes; i++)
        dims[axes[i] < 0 ? axes[i] + rank : axes[i]] = c != NULL ? c->d[i] : hn_dim_unknown();
    for (int a = 0; a < rank; a++)
        if (dims[a].known && dims[a].n < 0)
            hn_infer_fail(x, HN_ERROR_VALUE, "axis %d cannot have %" PRId64 " elements", a, dims[a].n);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static void centercroppad_ref(HnEval *e)
{
    const HnCenter *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t sizes[HN_MAX_RANK], axes[HN_MAX_RANK], before[HN_MAX_RANK] = { 0 }, after[HN_MAX_RANK] = { 0 };
    gboolean mark[HN_MAX_RANK];
    int n = hn_eval_ints(e, 1, sizes, HN_MAX_RANK);
    if (n >= 0 && n != (p->axes != NULL ? (int)p->n : x->ndim))
        hn_eval_fail(e, HN_ERROR_SHAPE, "%d sizes do not fit to the axes", n);
    for (int i = 0; i < n; i++)
        axes[i] = p->axes != NULL && i < p->n ? p->axes[i] : i;
    if (e->error != NULL || !hn_eval_mark_axes(e, axes, n, x->ndim, mark))
        return;
    for (int i = 0; i < n; i++) {
        int a = hn_axis(axes[i], x->ndim);
        int64_t have = x->dims[a], want = sizes[i];
        if (want < 0) {
            hn_eval_fail(e, HN_ERROR_VALUE, "axis %d cannot have %" PRId64 " elements", a, want);
            return;
        }
        /* the odd element is the last one, whether added or cut */
        before[a] = want < have ? -((have - want) / 2) : (want - have) / 2;
        after[a] = want - have - before[a];
    }
    pad_copy(e, x, HN_PAD_CONSTANT, before, after, NULL);
}

static void centercroppad_grad(HnTape *t)
{
    hn_tape_moved(t);
}

const HnOp hn_op_centercroppad = {
    .name = "CenterCropPad",
    .since = { 18 },
    .wide = HN_WIDE_PICKS,
    .in = "Tj",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnCenter),
    .bind = centercroppad_bind,
    .infer = centercroppad_infer,
    .cost = hn_cost_move,
    .ref = centercroppad_ref,
    .grad = centercroppad_grad,
};
