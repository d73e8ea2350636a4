/*
 * Scatter (9 and 10), ScatterElements, ScatterND, TensorScatter: a copy of the data with updates written over it. Since
 * opset 16 updates may also be added or multiplied, since 18 the larger or smaller value may stay.
 */
#include "op/scatter.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

static void scatter_bind(HnBind *b, void *params)
{
    static const char *const words16[] = { "none", "add", "mul", NULL };
    static const char *const words18[] = { "none", "add", "mul", "max", "min", NULL };
    HnScatter *p = params;
    p->axis = hn_bind_int(b, "axis", 0);
    if (b->version >= 16)
        p->reduction = (HnReduction)hn_bind_word(b, "reduction", b->version >= 18 ? words18 : words16, HN_SCATTER_SET);
}

/* --- y = f(y, x) ----------------------------------------------------------------------------------------------------
 */

static double nan_max(double a, double b)
{
    return isnan(a) || a >= b ? a : b; /* a NaN stays */
}

static double nan_min(double a, double b)
{
    return isnan(a) || a <= b ? a : b;
}

static double reduce_f64(HnReduction r, double y, double x)
{
    return r == HN_SCATTER_ADD   ? y + x
           : r == HN_SCATTER_MUL ? y * x
           : r == HN_SCATTER_MAX ? nan_max(y, x)
                                 : nan_min(y, x);
}

/* Sums and products modulo 2^64; narrower types keep the low bits. */
static uint64_t reduce_bits(HnReduction r, uint64_t y, uint64_t x, gboolean x_is_larger)
{
    return r == HN_SCATTER_ADD ? y + x : r == HN_SCATTER_MUL ? y * x : (r == HN_SCATTER_MAX) == x_is_larger ? x : y;
}

/* One run of n updates at stride 1. FALSE: the type has no such reduction. */
static gboolean reduce_run(HnReduction r, HnDtype dtype, void *y, const void *x, int64_t n)
{
#define FLOATS(T)                   \
    T *d = y;                       \
    const T *s = x;                 \
    for (int64_t i = 0; i < n; i++) \
        d[i] = (T)reduce_f64(r, d[i], s[i]);
#define INTS(T)                     \
    T *d = y;                       \
    const T *s = x;                 \
    for (int64_t i = 0; i < n; i++) \
        d[i] = (T)reduce_bits(r, (uint64_t)d[i], (uint64_t)s[i], s[i] > d[i]);
    uint16_t *h = y;
    const uint16_t *hs = x;
    uint8_t *b = y;
    const uint8_t *bs = x;
    switch (dtype) {
    case HN_F32: {
        FLOATS(float)
        return TRUE;
    }
    case HN_F64: {
        FLOATS(double)
        return TRUE;
    }
    case HN_F16:
        for (int64_t i = 0; i < n; i++)
            h[i] = hn_f16_from_f32((float)reduce_f64(r, hn_f16_to_f32(h[i]), hn_f16_to_f32(hs[i])));
        return TRUE;
    case HN_BF16:
        for (int64_t i = 0; i < n; i++)
            h[i] = hn_bf16_from_f32((float)reduce_f64(r, hn_bf16_to_f32(h[i]), hn_bf16_to_f32(hs[i])));
        return TRUE;
    case HN_BOOL: /* a sum is "or", a product "and" */
        for (int64_t i = 0; i < n; i++)
            b[i] = r == HN_SCATTER_ADD || r == HN_SCATTER_MAX ? b[i] | bs[i] : b[i] & bs[i];
        return TRUE;
    default:
        break;
    }
    HN_FOR_INT(dtype, INTS)
#undef FLOATS
#undef INTS
    return hn_dtype_in(dtype, HN_T_INTS);
}

/* Output 0 as a copy of the data, and the way to write a run of `run` updates at element `at` of it. */
typedef struct {
    char *y;
    const char *x;
    size_t size;
    HnDtype dtype;
    HnReduction reduction;
} Writer;

static gboolean writer_open(HnEval *e, Writer *w, HnReduction reduction, const HnTensor *updates)
{
    const HnTensor *x = hn_eval_in(e, 0);
    w->dtype = x->dtype;
    w->reduction = reduction;
    w->x = updates->data;
    w->size = hn_move_size(e, x->dtype);
    if (updates->dtype != x->dtype)
        hn_eval_fail(e, HN_ERROR_TYPE, "data is %s, updates are %s", hn_dtype_name(x->dtype),
                     hn_dtype_name(updates->dtype));
    if (reduction != HN_SCATTER_SET && !reduce_run(reduction, x->dtype, NULL, NULL, 0))
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "updates of type %s cannot be reduced", hn_dtype_name(x->dtype));
    if (e->error != NULL || (w->y = hn_move_out(e, 0, x->dtype, x->ndim, x->dims)) == NULL)
        return FALSE;
    if (w->y != x->data)
        memcpy(w->y, x->data, x->bytes);
    return TRUE;
}

static inline void writer_put(const Writer *w, int64_t to, int64_t from, int64_t run)
{
    void *y = w->y + (size_t)to * w->size;
    const void *x = w->x + (size_t)from * w->size;
    if (w->reduction == HN_SCATTER_SET)
        memcpy(y, x, (size_t)run * w->size);
    else
        reduce_run(w->reduction, w->dtype, y, x, run);
}

/* --- Scatter, ScatterElements ---------------------------------------------------------------------------------------
 */

static void scatterelements_infer(HnInfer *x)
{
    const HnScatter *p = x->params;
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0)
        hn_infer_axis(x, p->axis, rank);
    for (int i = 1; i <= 2 && rank >= 0; i++)
        if (hn_infer_rank(x, i) >= 0 && hn_infer_rank(x, i) != rank)
            hn_infer_fail(x, HN_ERROR_SHAPE, "data of %d dimensions, but input %d has %d", rank, i,
                          hn_infer_rank(x, i));
    hn_infer_same(x);
}

static void scatterelements_ref(HnEval *e)
{
    const HnScatter *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1), *updates = hn_eval_in(e, 2);
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (axis < 0)
        return;
    gboolean fits = at->ndim == x->ndim && updates->ndim == x->ndim;
    for (int a = 0; fits && a < x->ndim; a++)
        fits = at->dims[a] == updates->dims[a] && (a == axis || at->n == 0 || at->dims[a] <= x->dims[a]);
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shapes of data, indices and updates do not fit");
        return;
    }
    Writer w;
    int64_t *index = hn_eval_indices(e, at, x->dims[axis]);
    if (index != NULL && writer_open(e, &w, p->reduction, updates)) {
        int64_t strides[HN_MAX_RANK], idx[HN_MAX_RANK] = { 0 }, off[1] = { 0 }, i = 0;
        int last = x->ndim - 1;
        hn_strides(x->ndim, x->dims, strides);
        int64_t step = strides[axis], along = axis == last ? 0 : 1;
        strides[axis] = 0;
        int64_t *const all[1] = { strides };
        if (at->n > 0)
            do {
                for (int64_t k = 0; k < at->dims[last]; k++, i++)
                    writer_put(&w, off[0] + index[i] * step + k * along, i, 1);
            } while (hn_index_next(last, at->dims, idx, 1, all, off));
        hn_move_done(e, 0);
    }
    hn_eval_scratch_free(e, index);
}

/* Scatter became ScatterElements with opset 11. */
static void rename_scatter(HnUnbind *u, const char *op)
{
    const HnScatter *p = u->params;
    HnValue *in[] = { hn_unbind_in(u, 0), hn_unbind_in(u, 1), hn_unbind_in(u, 2) };
    HnNode *n = hn_unbind_node(u, op, 3, in, 1);
    n->version = u->to;
    int rank = hn_unbind_rank(u, 0);
    hn_node_set_int(n, "axis", p->axis < 0 && rank >= 0 ? p->axis + rank : p->axis);
    hn_unbind_take(u, 0, hn_node_out(n, 0));
}

static void scatter_unbind(HnUnbind *u)
{
    if (u->to > 10)
        rename_scatter(u, "ScatterElements");
}

static void scatterelements_unbind(HnUnbind *u)
{
    const HnScatter *p = u->params;
    if (u->to < 11 && u->to >= 9 && p->reduction == HN_SCATTER_SET)
        rename_scatter(u, "Scatter");
    else if (hn_unbind_below(u, 18) && (p->reduction == HN_SCATTER_MAX || p->reduction == HN_SCATTER_MIN))
        hn_unbind_refuse(u, "the reductions 'max' and 'min' came with opset 18");
}

static void scatternd_unbind(HnUnbind *u)
{
    const HnScatter *p = u->params;
    if (hn_unbind_below(u, 18) && (p->reduction == HN_SCATTER_MAX || p->reduction == HN_SCATTER_MIN))
        hn_unbind_refuse(u, "the reductions 'max' and 'min' came with opset 18");
}

/* Elements of v that the updates are written to. */
static HnValue *written(HnTape *t, HnValue *v)
{
    const gboolean nd = strcmp(t->node->op_type, "ScatterND") == 0;
    HnNode *n =
        hn_build_node(t->build, nd ? "GatherND" : "GatherElements", NULL, 2, (HnValue *[]){ v, hn_tape_in(t, 1) }, 1);
    if (!nd)
        hn_node_set_int(n, "axis", ((const HnScatter *)t->params)->axis);
    return hn_node_out(n, 0);
}

static HnValue *scattered(HnTape *t, HnValue *onto, HnValue *updates)
{
    HnNode *n = hn_build_node(t->build, t->node->op_type, NULL, 3, (HnValue *[]){ onto, hn_tape_in(t, 1), updates }, 1);
    hn_node_share_attrs(n, t->node);
    return hn_node_out(n, 0);
}

/* Where several updates are written to one place, the one that is found there has the gradient. */
static void scatter_grad(HnTape *t)
{
    const HnScatter *p = t->params;
    HnValue *dy = hn_tape_dy(t, 0), *x = hn_tape_in(t, 0), *updates = hn_tape_in(t, 2);
    if (p->reduction != HN_SCATTER_SET && p->reduction != HN_SCATTER_ADD) {
        hn_tape_refuse(t, "a reduction other than 'none' and 'add' has no gradient");
        return;
    }
    if (p->reduction == HN_SCATTER_ADD) {
        hn_tape_give(t, 0, dy);
        hn_tape_give(t, 2, hn_tape_needs(t, 2) ? written(t, dy) : NULL);
        return;
    }
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, scattered(t, dy, hn_tape_zeros(t, updates)));
    if (!hn_tape_needs(t, 2))
        return;
    HnValue *own = hn_tape_places(t, updates), *found = written(t, scattered(t, hn_tape_places(t, x), own));
    HnValue *v[] = { hn_build_op2(t->build, "Equal", found, own), written(t, dy) };
    hn_tape_give(t, 2, hn_tape_calc(t, "Where(p, q, 0)", v));
}

void hn_scatterelements_batch(HnBatch *b)
{
    const HnScatter *p = b->params;
    hn_batch_elements(b, p->axis);
}

const HnOp hn_op_scatter = {
    .name = "Scatter",
    .since = { 9 },
    .until = 10,
    .in = "TjT",
    .out = "T",
    .T = HN_T_PLAIN,
    .unbind = scatter_unbind,
    .params_size = sizeof(HnScatter),
    .bind = scatter_bind,
    .infer = scatterelements_infer,
    .ref = scatterelements_ref,
    .batch = hn_scatterelements_batch,
};

const HnOp hn_op_scatterelements = {
    .name = "ScatterElements",
    .since = { 11, 13, 16, 18 },
    .forms = HN_FORMS({ "reduction", HN_ATTR_STRING, .since = 16, .word = "none" }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "TjT",
    .out = "T",
    .T = HN_T_PLAIN,
    .unbind = scatterelements_unbind,
    .params_size = sizeof(HnScatter),
    .bind = scatter_bind,
    .infer = scatterelements_infer,
    .ref = scatterelements_ref,
    .grad = scatter_grad,
    .batch = hn_scatterelements_batch,
};

/* --- ScatterND ------------------------------------------------------------------------------------------------------
 */

static void scatternd_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0), q = hn_infer_rank(x, 1), r = hn_infer_rank(x, 2);
    HnDim depth = hn_infer_dim(x, 1, q - 1);
    if (rank == 0 || q == 0)
        hn_infer_fail(x, HN_ERROR_SHAPE, "data and indices need at least one dimension");
    else if (rank > 0 && depth.known && (depth.n > rank || (r >= 0 && r != q + rank - depth.n - 1)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "indices of depth %" PRId64 " do not fit to data of %d dimensions", depth.n,
                      rank);
    hn_infer_same(x);
}

static void scatternd_ref(HnEval *e)
{
    const HnScatter *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *at = hn_eval_in(e, 1), *updates = hn_eval_in(e, 2);
    int q = at->ndim - 1;
    gboolean fits = q >= 0 && at->dims[q] > 0 && at->dims[q] <= x->ndim;
    int depth = fits ? (int)at->dims[q] : 0;
    fits = fits && updates->ndim == q + x->ndim - depth;
    for (int a = 0; fits && a < updates->ndim; a++)
        fits = updates->dims[a] == (a < q ? at->dims[a] : x->dims[a - q + depth]);
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shapes of data, indices and updates do not fit");
        return;
    }
    int64_t strides[HN_MAX_RANK], count = at->n / depth, run = hn_span(x->dims, depth, x->ndim);
    hn_strides(x->ndim, x->dims, strides);
    int64_t *to = hn_eval_scratch(e, count, sizeof *to);
    for (int64_t i = 0; to != NULL && e->error == NULL && i < count; i++) {
        to[i] = 0;
        for (int d = 0; d < depth; d++) {
            int64_t k = hn_tensor_get_i64(at, i * depth + d);
            if (!hn_eval_index(e, &k, x->dims[d]))
                break;
            to[i] += k * strides[d];
        }
    }
    Writer w;
    if (e->error == NULL && writer_open(e, &w, p->reduction, updates)) {
        for (int64_t i = 0; run > 0 && i < count; i++)
            writer_put(&w, to[i], i * run, run);
        hn_move_done(e, 0);
    }
    hn_eval_scratch_free(e, to);
}

const HnOp hn_op_scatternd = {
    .name = "ScatterND",
    .since = { 11, 13, 16, 18 },
    .forms = HN_FORMS({ "reduction", HN_ATTR_STRING, .since = 16, .word = "none" }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "TiT",
    .out = "T",
    .T = HN_T_PLAIN,
    .unbind = scatternd_unbind,
    .params_size = sizeof(HnScatter),
    .bind = scatter_bind,
    .infer = scatternd_infer,
    .ref = scatternd_ref,
    .grad = scatter_grad,
    .batch = hn_batch_scatternd,
};

/* --- TensorScatter --------------------------------------------------------------------------------------------------
 */

static void tensorscatter_bind(HnBind *b, void *params)
{
    static const char *const modes[] = { "linear", "circular", NULL };
    HnTensorScatter *p = params;
    p->axis = hn_bind_int(b, "axis", -2);
    p->circular = hn_bind_word(b, "mode", modes, 0) == 1;
}

static void tensorscatter_infer(HnInfer *x)
{
    const HnTensorScatter *p = x->params;
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0 && hn_infer_axis(x, p->axis, rank) == 0)
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "the sequence axis cannot be the batch axis");
    if (rank >= 0 && hn_infer_rank(x, 1) >= 0 && hn_infer_rank(x, 1) != rank)
        hn_infer_fail(x, HN_ERROR_SHAPE, "a cache of %d dimensions cannot take an update of %d", rank,
                      hn_infer_rank(x, 1));
    hn_infer_same(x);
}

gboolean hn_tensorscatter_fits(const HnTensorScatter *p, const HnTensor *x, const HnTensor *updates, const HnTensor *at,
                               int *axis)
{
    *axis = hn_axis(p->axis, x->ndim);
    if (*axis < 1 || *axis >= x->ndim || updates->ndim != x->ndim || x->n == 0 || updates->n == 0)
        return FALSE;
    for (int a = 0; a < x->ndim; a++)
        if (a == *axis ? updates->dims[a] > x->dims[a] : updates->dims[a] != x->dims[a])
            return FALSE;
    return at == NULL || (at->ndim == 1 && at->n == x->dims[0] && at->dtype == HN_I64);
}

static void tensorscatter_ref(HnEval *e)
{
    const HnTensorScatter *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *updates = hn_eval_in(e, 1), *at = hn_eval_in(e, 2);
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    gboolean fits = axis > 0 && updates->ndim == x->ndim && (at == NULL || (at->ndim == 1 && at->n == x->dims[0]));
    for (int a = 0; fits && a < x->ndim; a++)
        fits = a == axis ? updates->dims[a] <= x->dims[a] : updates->dims[a] == x->dims[a];
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the shapes of cache, update and write positions do not fit");
        return;
    }
    int64_t length = x->dims[axis], n = updates->dims[axis];
    for (int64_t b = 0; at != NULL && b < at->n; b++) {
        int64_t k = hn_tensor_get_i64(at, b);
        if (k < 0 || (!p->circular && k > length - n)) {
            hn_eval_fail(e, HN_ERROR_VALUE, "write position %" PRId64 " does not fit into a cache of %" PRId64, k,
                         length);
            return;
        }
    }
    Writer w;
    if (!writer_open(e, &w, HN_SCATTER_SET, updates))
        return;
    if (updates->n > 0) {
        int64_t outer = hn_span(x->dims, 0, axis), run = hn_span(x->dims, axis + 1, x->ndim);
        int64_t per_batch = outer / x->dims[0];
        for (int64_t o = 0; o < outer; o++) {
            int64_t k = at != NULL ? hn_tensor_get_i64(at, o / per_batch) % length : 0;
            int64_t head = MIN(n, length - k); /* the rest begins again at 0 */
            writer_put(&w, (o * length + k) * run, o * n * run, head * run);
            if (n > head)
                writer_put(&w, o * length * run, (o * n + head) * run, (n - head) * run);
        }
    }
    hn_move_done(e, 0);
}

/* What the cache becomes when its elements are numbers of places; of those of the other input there is none. */
static void give_moved(HnTape *t, int i)
{
    HnValue *x[2] = { hn_tape_in(t, 0), hn_tape_in(t, 1) }, *zero = hn_build_list(t->build, (int64_t[]){ 0 }, 1);
    HnValue *in[] = { NULL, NULL, hn_tape_in(t, 2) };
    if (!hn_tape_needs(t, i))
        return;
    in[i] = hn_tape_places(t, x[i]);
    in[1 - i] = hn_build_op2(t->build, "Expand", zero, hn_build_shape(t->build, x[1 - i], 0, INT64_MAX));
    HnNode *n = hn_build_node(t->build, "TensorScatter", NULL, 3, in, 1);
    hn_node_share_attrs(n, t->node);
    HnValue *back[] = { hn_tape_dy(t, 0), hn_node_out(n, 0), x[i] };
    hn_tape_give(t, i, hn_node_out(hn_build_node(t->build, "ScatterAdd", HN_DOMAIN_INTERNAL, 3, back, 1), 0));
}

static void tensorscatter_grad(HnTape *t)
{
    give_moved(t, 0);
    give_moved(t, 1);
}

const HnOp hn_op_tensorscatter = {
    .name = "TensorScatter",
    .flags = HN_OP_INPLACE,
    .since = { 24 },
    .in = "TTi",
    .out = "T",
    .T = HN_T_ALL,
    .min_in = 2,
    .params_size = sizeof(HnTensorScatter),
    .bind = tensorscatter_bind,
    .infer = tensorscatter_infer,
    .ref = tensorscatter_ref,
    .grad = tensorscatter_grad,
};
