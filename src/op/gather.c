/*
 * Gather, GatherElements, GatherND: elements picked by index tensors. Negative indices, written down since opset 11,
 * count from the back in every version.
 */
#include "op/gather.h"

#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/narrow.h"
#include "op/tape.h"
#include "op/types.h"

static void gather_bind(HnBind *b, void *params)
{
    HnGather *p = params;
    p->axis = hn_bind_int(b, "axis", 0);
}

static void gather_contents(HnInfer *x)
{
    const HnContents *data = hn_infer_contents(x, 0), *at = hn_infer_contents(x, 1);
    if (data == NULL || at == NULL || data->rank != 1)
        return;
    HnContents *r = hn_contents_new(at->rank, at->n);
    for (int i = 0; i < at->n; i++) {
        int64_t k = at->d[i].n;
        if (!at->d[i].known)
            continue;
        if (k < -data->n || k >= data->n) {
            hn_infer_fail(x, HN_ERROR_VALUE, "index %" PRId64 " is outside an axis of %d", k, data->n);
            break;
        }
        r->d[i] = data->d[k < 0 ? k + data->n : k];
    }
    hn_infer_out_contents(x, 0, r);
}

static void gather_infer(HnInfer *x)
{
    const HnGather *p = x->params;
    int rank = hn_infer_rank(x, 0), at = hn_infer_rank(x, 1);
    int axis = rank >= 0 ? hn_infer_axis(x, p->axis, rank) : 0;
    if (x->error != NULL)
        return;
    if (rank < 0 || at < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (rank - 1 + at > HN_MAX_RANK) {
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", rank - 1 + at, HN_MAX_RANK);
        return;
    }
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < axis; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    for (int a = 0; a < at; a++)
        dims[axis + a] = hn_infer_dim(x, 1, a);
    for (int a = axis + 1; a < rank; a++)
        dims[at + a - 1] = hn_infer_dim(x, 0, a);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank - 1 + at, dims);
    gather_contents(x);
}

/* y[o,k,:] = x[o,index[k],:] with x [outer,n,run]; bytes */
static void gather_rows(char *y, const char *x, int64_t outer, int64_t n, const int64_t *index, int64_t count,
                        int64_t run, size_t size)
{
#define PICK(T)                              \
    const T *s = (const T *)(const void *)x; \
    T *d = (T *)(void *)y;                   \
    for (int64_t o = 0; o < outer; o++)      \
        for (int64_t k = 0; k < count; k++)  \
            d[o * count + k] = s[o * n + index[k]];
    if (run == 1) {
        HN_FOR_MOVE(size, PICK)
        return;
    }
#undef PICK
    size_t bytes = (size_t)run * size;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < count; k++, y += bytes)
            memcpy(y, x + (size_t)(o * n + index[k]) * bytes, bytes);
}

static void gather_ref(HnEval *e)
{
    const HnGather *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1);
    size_t size = hn_move_size(e, x->dtype);
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (size == 0 || axis < 0)
        return;
    int64_t dims[2 * HN_MAX_RANK], *index;
    memcpy(dims, x->dims, (size_t)axis * sizeof *dims);
    memcpy(dims + axis, at->dims, (size_t)at->ndim * sizeof *dims);
    memcpy(dims + axis + at->ndim, x->dims + axis + 1, (size_t)(x->ndim - axis - 1) * sizeof *dims);
    if ((index = hn_eval_indices(e, at, x->dims[axis])) == NULL)
        return;
    char *y = hn_move_out(e, 0, x->dtype, x->ndim - 1 + at->ndim, dims);
    if (y != NULL) {
        if (e->out[0]->n > 0)
            gather_rows(y, x->data, hn_span(x->dims, 0, axis), x->dims[axis], index, at->n,
                        hn_span(x->dims, axis + 1, x->ndim), size);
        hn_move_done(e, 0);
    }
    hn_eval_scratch_free(e, index);
}

/* Positions along the axis of channels are counted among those that stay. */
static gboolean gather_narrow(const HnNarrow *x)
{
    const HnGather *p = x->params;
    const HnKept *k = hn_narrow_in(x, 0), *y = hn_narrow_out(x, 0);
    const HnType *t = k != NULL ? hn_node_in(x->node, 0)->type : NULL;
    if (k == NULL)
        return TRUE;
    if (t == NULL || p->axis + (p->axis < 0 ? t->rank : 0) != k->axis)
        return t != NULL;
    g_autoptr(HnTensor) at = hn_narrow_constant(x, 1);
    if (at == NULL || at->ndim > 1 || (at->ndim == 1 && (y == NULL ? at->n : y->n) != at->n))
        return FALSE;
    const int64_t left = at->ndim == 1 && y != NULL ? y->left : at->n;
    int64_t n = 0;
    HnTensor *now = hn_tensor_new(at->dtype, at->ndim, &left, NULL, NULL);
    for (int64_t i = 0; i < at->n; i++) {
        int64_t place = hn_tensor_get_i64(at, i);
        place += place < 0 ? k->n : 0;
        const gboolean stays = place >= 0 && place < k->n && k->stays[place];
        if ((y == NULL || at->ndim == 0 || y->stays[i]) != stays) {
            hn_tensor_unref(now);
            return FALSE;
        }
        if (stays)
            hn_tensor_set_i64(now, n++, hn_kept_before(k, place));
    }
    hn_narrow_set(x, 1, now);
    return TRUE;
}

/* Indices that are known, counted from the front; NULL: they are not, or one is outside. */
static int64_t *known_indices(const HnTape *t, int64_t size, int64_t *n)
{
    const HnTensor *at = hn_types_value(t->types, hn_tape_in(t, 1));
    if (at == NULL || at->ndim > 1)
        return NULL;
    g_autofree int64_t *v = g_new(int64_t, (gsize)at->n + 1);
    *n = at->n;
    for (int64_t i = 0; i < at->n; i++) {
        v[i] = hn_tensor_get_i64(at, i);
        v[i] += v[i] < 0 ? size : 0;
        if (v[i] < 0 || v[i] >= size)
            return NULL;
    }
    return g_steal_pointer(&v);
}

/* Indices in a row: zeros around them. */
static gboolean gather_by_pad(HnTape *t, int axis, int rank, int64_t size, const int64_t *index, int64_t n)
{
    int64_t pads[2 * HN_MAX_RANK] = { 0 };
    HnValue *dy = hn_tape_dy(t, 0);
    for (int64_t i = 0; i < n; i++)
        if (index[i] != index[0] + i)
            return FALSE;
    if (n == 0)
        return FALSE;
    if (hn_tape_rank(t, 1) == 0)
        dy = hn_build_op2(t->build, "Unsqueeze", dy, hn_build_list(t->build, (int64_t[]){ axis }, 1));
    pads[axis] = index[0];
    pads[rank + axis] = size - index[0] - n;
    if (n < size)
        dy = hn_build_op2(t->build, "Pad", dy, hn_build_list(t->build, pads, 2 * rank));
    hn_tape_give(t, 0, dy);
    return TRUE;
}

/* All of them in another order: picked in the opposite one. */
static gboolean gather_by_order(HnTape *t, int axis, int64_t size, const int64_t *index, int64_t n)
{
    if (n != size || hn_tape_rank(t, 1) != 1)
        return FALSE;
    HnTensor *back = hn_tensor_new(HN_I64, 1, &n, NULL, NULL);
    for (int64_t i = 0; back != NULL && i < n; i++)
        hn_tensor_set_i64(back, i, -1);
    for (int64_t i = 0; back != NULL && i < n; i++)
        if (hn_tensor_get_i64(back, index[i]) >= 0)
            g_clear_pointer(&back, hn_tensor_unref); /* one is there twice */
        else
            hn_tensor_set_i64(back, index[i], i);
    if (back == NULL)
        return FALSE;
    HnValue *dx = hn_build_op2(t->build, "Gather", hn_tape_dy(t, 0), hn_build_constant(t->build, "order", back));
    hn_node_set_int(dx->producer, "axis", axis);
    hn_tape_give(t, 0, dx);
    return TRUE;
}

/* Rows of a table by their numbers: added where they are from. Other axes come to the front for that: axis of dy's
 * first index, and how many axes the indices have. */
static void gather_by_rows(HnTape *t, int axis, int rank, int many)
{
    int64_t front[HN_MAX_RANK], back[HN_MAX_RANK], first[2 * HN_MAX_RANK];
    HnValue *last = hn_build_list(t->build, (int64_t[]){ -1 }, 1),
            *at = hn_build_cast(t->build, hn_tape_in(t, 1), HN_I64), *dy = hn_tape_dy(t, 0);
    HnValue *zeros = hn_tape_zeros(t, hn_tape_in(t, 0));
    for (int a = 0; a < rank; a++) {
        front[a] = a == 0 ? axis : a <= axis ? a - 1 : a;
        back[front[a]] = a;
    }
    for (int a = 0; a < rank - 1 + many; a++)
        first[a] = a < many ? axis + a : a < many + axis ? a - many : a;
    if (axis != 0) {
        zeros = hn_build_transpose(t->build, zeros, front, rank);
        dy = hn_build_transpose(t->build, dy, first, rank - 1 + many);
    }
    HnValue *in[] = { zeros, hn_build_op2(t->build, "Unsqueeze", at, last), dy };
    HnNode *n = hn_build_node(t->build, "ScatterND", NULL, 3, in, 1);
    hn_node_set_string(n, "reduction", "add");
    hn_tape_give(t, 0, axis != 0 ? hn_build_transpose(t->build, hn_node_out(n, 0), back, rank) : hn_node_out(n, 0));
}

static void gather_grad(HnTape *t)
{
    const HnGather *p = t->params;
    const int rank = hn_tape_rank(t, 0), many = hn_tape_rank(t, 1);
    const int axis = (int)p->axis + (p->axis < 0 && rank >= 0 ? rank : 0);
    int64_t dims[HN_MAX_RANK], n;
    if (!hn_tape_needs(t, 0))
        return;
    g_autofree int64_t *index = hn_tape_dims(t, 0, dims) ? known_indices(t, dims[axis], &n) : NULL;
    if (index != NULL &&
        (gather_by_pad(t, axis, rank, dims[axis], index, n) || gather_by_order(t, axis, dims[axis], index, n)))
        return;
    if (axis == 0 || (rank >= 0 && many >= 0 && rank - 1 + many <= HN_MAX_RANK))
        gather_by_rows(t, axis, MAX(rank, 0), MAX(many, 0));
    else
        hn_tape_moved(t);
}

void hn_gather_batch(HnBatch *b)
{
    const HnGather *p = b->params;
    hn_batch_gather(b, p->axis);
}

const HnOp hn_op_gather = {
    .name = "Gather",
    .flags = HN_OP_LOOKUP,
    .since = { 1, 11, 13 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "Tj",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnGather),
    .bind = gather_bind,
    .infer = gather_infer,
    .cost = hn_cost_move,
    .ref = gather_ref,
    .grad = gather_grad,
    .batch = hn_gather_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
    .narrow = gather_narrow,
    .trained = 1,
};

/* --- GatherElements -------------------------------------------------------------------------------------------------
 */

static void gatherelements_infer(HnInfer *x)
{
    const HnGather *p = x->params;
    int rank = hn_infer_rank(x, 0), at = hn_infer_rank(x, 1);
    if (rank >= 0 && at >= 0 && rank != at)
        hn_infer_fail(x, HN_ERROR_SHAPE, "data of %d dimensions and indices of %d", rank, at);
    if (rank >= 0)
        hn_infer_axis(x, p->axis, rank);
    hn_infer_out_shape_of(x, 0, hn_infer_dtype(x, 0), 1);
}

static void gatherelements_ref(HnEval *e)
{
    const HnGather *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1);
    size_t size = hn_move_size(e, x->dtype);
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (size == 0 || axis < 0)
        return;
    gboolean fits = at->ndim == x->ndim;
    for (int a = 0; fits && a < x->ndim; a++)
        fits = a == axis || at->n == 0 || at->dims[a] <= x->dims[a];
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the indices are larger than the data outside axis %d", axis);
        return;
    }
    int64_t *index = hn_eval_indices(e, at, x->dims[axis]);
    void *y = index != NULL ? hn_move_out(e, 0, x->dtype, at->ndim, at->dims) : NULL;
    if (y != NULL && at->n > 0) {
        int64_t strides[HN_MAX_RANK], idx[HN_MAX_RANK] = { 0 }, off[1] = { 0 };
        int last = x->ndim - 1;
        hn_strides(x->ndim, x->dims, strides);
        int64_t step = strides[axis], along = axis == last ? 0 : 1, n = at->dims[last], at_row = 0;
        strides[axis] = 0;
        int64_t *const all[1] = { strides };
        do {
            const int64_t *k = index + at_row;
#define PICK(T)                               \
    const T *s = (const T *)x->data + off[0]; \
    T *d = (T *)y + at_row;                   \
    for (int64_t i = 0; i < n; i++)           \
        d[i] = s[k[i] * step + i * along];
            HN_FOR_MOVE(size, PICK)
#undef PICK
            at_row += n;
        } while (hn_index_next(last, at->dims, idx, 1, all, off));
    }
    if (y != NULL)
        hn_move_done(e, 0);
    hn_eval_scratch_free(e, index);
}

static void gatherelements_grad(HnTape *t)
{
    const HnGather *p = t->params;
    if (!hn_tape_needs(t, 0))
        return;
    HnValue *in[] = { hn_tape_zeros(t, hn_tape_in(t, 0)), hn_tape_in(t, 1), hn_tape_dy(t, 0) };
    HnNode *n = hn_build_node(t->build, "ScatterElements", NULL, 3, in, 1);
    hn_node_set_int(n, "axis", p->axis);
    hn_node_set_string(n, "reduction", "add");
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

void hn_gatherelements_batch(HnBatch *b)
{
    const HnGather *p = b->params;
    hn_batch_elements(b, p->axis);
}

const HnOp hn_op_gatherelements = {
    .name = "GatherElements",
    .since = { 11, 13 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "Tj",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnGather),
    .bind = gather_bind,
    .infer = gatherelements_infer,
    .cost = hn_cost_move,
    .ref = gatherelements_ref,
    .grad = gatherelements_grad,
    .trained = 1,
    .batch = hn_gatherelements_batch,
    .quant = { .kind = HN_Q_PASS },
};

/* --- GatherND -------------------------------------------------------------------------------------------------------
 */

static void gathernd_bind(HnBind *b, void *params)
{
    HnGather *p = params;
    p->batch_dims = b->version >= 12 ? hn_bind_int(b, "batch_dims", 0) : 0;
    if (p->batch_dims < 0 || p->batch_dims >= HN_MAX_RANK)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'batch_dims' cannot be %" PRId64, p->batch_dims);
}

static void gathernd_infer(HnInfer *x)
{
    const HnGather *p = x->params;
    int rank = hn_infer_rank(x, 0), at = hn_infer_rank(x, 1), b = (int)p->batch_dims;
    HnDim depth = hn_infer_dim(x, 1, at - 1), dims[2 * HN_MAX_RANK];
    if ((rank >= 0 && b >= rank) || (at >= 0 && b >= at)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "%d batch dimensions leave none of the data or indices", b);
        return;
    }
    if (rank < 0 || at < 0 || !depth.known) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    if (depth.n < 1 || depth.n > rank - b || at - 1 + rank - b - depth.n > HN_MAX_RANK) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "indices of depth %" PRId64 " do not fit to data of %d dimensions", depth.n,
                      rank);
        return;
    }
    int n = 0;
    for (int a = 0; a < at - 1; a++)
        dims[n++] = hn_infer_dim(x, 1, a);
    for (int a = b + (int)depth.n; a < rank; a++)
        dims[n++] = hn_infer_dim(x, 0, a);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), n, dims);
}

static void gathernd_ref(HnEval *e)
{
    const HnGather *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1);
    size_t size = hn_move_size(e, x->dtype);
    int b = (int)p->batch_dims, q = at->ndim - 1;
    if (size == 0)
        return;
    gboolean fits = b < x->ndim && b <= q && at->dims[q] > 0 && at->dims[q] <= x->ndim - b;
    for (int a = 0; fits && a < b; a++)
        fits = x->dims[a] == at->dims[a];
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the indices do not fit to data of %d dimensions", x->ndim);
        return;
    }
    int depth = (int)at->dims[q], rest = x->ndim - b - depth;
    int64_t dims[2 * HN_MAX_RANK], strides[HN_MAX_RANK];
    memcpy(dims, at->dims, (size_t)q * sizeof *dims);
    memcpy(dims + q, x->dims + b + depth, (size_t)rest * sizeof *dims);
    hn_strides(x->ndim, x->dims, strides);
    int64_t count = at->n / depth, per_batch = hn_span(at->dims, b, q);
    int64_t run = hn_span(x->dims, b + depth, x->ndim), batch = hn_span(x->dims, b, x->ndim);
    int64_t *from = hn_eval_scratch(e, count, sizeof *from); /* in runs */
    for (int64_t i = 0; from != NULL && e->error == NULL && i < count; i++) {
        from[i] = i / per_batch * batch;
        for (int d = 0; d < depth; d++) {
            int64_t k = hn_tensor_get_i64(at, i * depth + d);
            if (!hn_eval_index(e, &k, x->dims[b + d]))
                break;
            from[i] += k * strides[b + d];
        }
        from[i] /= MAX(run, 1);
    }
    void *y = e->error == NULL ? hn_move_out(e, 0, x->dtype, q + rest, dims) : NULL;
    if (y != NULL) {
        if (e->out[0]->n > 0)
            gather_rows(y, x->data, 1, 0, from, count, run, size);
        hn_move_done(e, 0);
    }
    hn_eval_scratch_free(e, from);
}

static void gathernd_grad(HnTape *t)
{
    hn_tape_moved(t);
}

void hn_gathernd_batch(HnBatch *b)
{
    const HnGather *p = b->params;
    hn_batch_gathernd(b, p->batch_dims);
}

const HnOp hn_op_gathernd = {
    .name = "GatherND",
    .since = { 11, 12, 13 },
    .forms = HN_FORMS({ "batch_dims", HN_ATTR_INT, .since = 12 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnGather),
    .bind = gathernd_bind,
    .infer = gathernd_infer,
    .cost = hn_cost_move,
    .ref = gathernd_ref,
    .grad = gathernd_grad,
    .trained = 1,
    .batch = hn_gathernd_batch,
    .quant = { .kind = HN_Q_PASS },
};
