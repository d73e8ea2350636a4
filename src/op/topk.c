/*
 * TopK. K was an attribute in opset 1, an input since 10; `largest` and `sorted` came with 11. Equal values keep their
 * order; a NaN counts as larger than everything. Results are always sorted.
 */
#include "op/topk.h"

#include <inttypes.h>
#include <string.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/types.h"
#include "op/tape.h"
#include "op/unbind.h"

static void topk_bind(HnBind *b, void *params)
{
    HnTopK *p = params;
    p->axis = hn_bind_int(b, "axis", -1);
    p->input = b->version >= 10;
    if (b->version >= 11)
        p->smallest = !hn_bind_bool(b, "largest", TRUE);
    if (p->input) {
        if (hn_node_in(b->node, 1) == NULL)
            hn_bind_fail(b, HN_ERROR_GRAPH, "input 1 is missing");
        return;
    }
    hn_bind_require(b, "k");
    p->k = hn_bind_int(b, "k", 1);
}

static void topk_infer(HnInfer *x)
{
    const HnTopK *p = x->params;
    const HnContents *c = hn_infer_contents(x, 1);
    int rank = hn_infer_rank(x, 0);
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        hn_infer_out_unknown(x, 1, HN_I64);
        return;
    }
    int axis = hn_infer_axis(x, p->axis, rank);
    if (x->error != NULL)
        return;
    HnDim dims[HN_MAX_RANK], k = !p->input ? hn_dim(p->k) : c != NULL && c->n == 1 ? c->d[0] : hn_dim_unknown();
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    if (k.known && (k.n < 0 || (dims[axis].known && k.n > dims[axis].n)))
        hn_infer_fail(x, HN_ERROR_VALUE, "k = %" PRId64 " does not fit to an axis of %" PRId64, k.n, dims[axis].n);
    dims[axis] = k;
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
    hn_infer_out(x, 1, HN_I64, rank, dims);
}

static void topk_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]); /* at least one comparison each */
}

/* heap: a binary heap of the best k so far, the worst of them at the root. before_T: a comes before b in the result. */
#define DEFINE_TOPK(T)                                                                                       \
    typedef struct {                                                                                         \
        T v;                                                                                                 \
        int64_t i;                                                                                           \
    } Item_##T;                                                                                              \
    static inline gboolean before_##T(Item_##T a, Item_##T b, gboolean smallest)                             \
    {                                                                                                        \
        gboolean nan_a = a.v != a.v, nan_b = b.v != b.v;                                                     \
        if (nan_a != nan_b)                                                                                  \
            return nan_a != smallest;                                                                        \
        if (a.v == b.v || nan_a)                                                                             \
            return a.i < b.i;                                                                                \
        return (a.v > b.v) != smallest;                                                                      \
    }                                                                                                        \
    static void sift_##T(Item_##T *h, int64_t n, int64_t at, gboolean smallest)                              \
    {                                                                                                        \
        Item_##T item = h[at];                                                                               \
        for (int64_t child; (child = 2 * at + 1) < n; at = child) {                                          \
            if (child + 1 < n && before_##T(h[child], h[child + 1], smallest))                               \
                child++;                                                                                     \
            if (!before_##T(item, h[child], smallest))                                                       \
                break;                                                                                       \
            h[at] = h[child];                                                                                \
        }                                                                                                    \
        h[at] = item;                                                                                        \
    }                                                                                                        \
    static void topk_##T(T *v, int64_t *index, const T *x, int64_t n, int64_t k, int64_t stride, void *heap, \
                         gboolean smallest)                                                                  \
    {                                                                                                        \
        Item_##T *h = heap;                                                                                  \
        for (int64_t i = 0; i < k; i++)                                                                      \
            h[i] = (Item_##T){ x[i * stride], i };                                                           \
        for (int64_t i = k / 2; i-- > 0;)                                                                    \
            sift_##T(h, k, i, smallest);                                                                     \
        for (int64_t i = k; i < n; i++) {                                                                    \
            Item_##T item = { x[i * stride], i };                                                            \
            if (before_##T(item, h[0], smallest)) {                                                          \
                h[0] = item;                                                                                 \
                sift_##T(h, k, 0, smallest);                                                                 \
            }                                                                                                \
        }                                                                                                    \
        for (int64_t left = k; left-- > 0;) { /* the worst goes to the end */                                \
            v[left * stride] = h[0].v;                                                                       \
            index[left * stride] = h[0].i;                                                                   \
            h[0] = h[left];                                                                                  \
            sift_##T(h, left, 0, smallest);                                                                  \
        }                                                                                                    \
    }
DEFINE_TOPK(float)
DEFINE_TOPK(double)
DEFINE_TOPK(int8_t)
DEFINE_TOPK(uint8_t)
DEFINE_TOPK(int16_t)
DEFINE_TOPK(uint16_t)
DEFINE_TOPK(int32_t)
DEFINE_TOPK(uint32_t)
DEFINE_TOPK(int64_t)
DEFINE_TOPK(uint64_t)

static void topk_ref(HnEval *e)
{
    const HnTopK *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t k = p->k, dims[HN_MAX_RANK];
    int axis = hn_eval_axis(e, p->axis, x->ndim);
    if (axis < 0 || (p->input && !hn_eval_int(e, 1, &k)))
        return;
    if (k < 0 || k > x->dims[axis]) {
        hn_eval_fail(e, HN_ERROR_VALUE, "k = %" PRId64 " does not fit to an axis of %" PRId64, k, x->dims[axis]);
        return;
    }
    memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    dims[axis] = k;
    void *v = hn_eval_out(e, 0, x->dtype, x->ndim, dims);
    int64_t *index = NULL, *own = NULL;
    if (v != NULL && e->n_out > 1)
        index = hn_eval_out(e, 1, HN_I64, x->ndim, dims);
    else if (v != NULL)
        index = own = hn_eval_scratch(e, e->out[0]->n, sizeof *own);
    void *heap = index != NULL ? hn_eval_scratch(e, k, sizeof(Item_double)) : NULL; /* the largest of the items */
    if (heap != NULL && e->out[0]->n > 0) {
        int64_t outer = hn_span(x->dims, 0, axis), n = x->dims[axis], inner = hn_span(x->dims, axis + 1, x->ndim);
#define RUN(T)                                                                                                         \
    for (int64_t o = 0; o < outer; o++)                                                                                \
        for (int64_t i = 0; i < inner; i++)                                                                            \
            topk_##T((T *)v + o * k * inner + i, index + o * k * inner + i, (const T *)x->data + o * n * inner + i, n, \
                     k, inner, heap, p->smallest);
        HN_FOR_NUM(x->dtype, RUN)
#undef RUN
    }
    hn_eval_scratch_free(e, heap);
    hn_eval_scratch_free(e, own);
}

/* The smallest, before opset 11, are the largest of the negated elements. */
static void topk_unbind(HnUnbind *u)
{
    const HnTopK *p = u->params;
    if (!hn_unbind_below(u, 11) || !p->smallest)
        return;
    if (!hn_dtype_in(hn_unbind_dtype(u, 0), HN_T_FLOATS | HN_T_SINTS)) {
        hn_unbind_refuse(u, "the smallest of elements that have no sign came with opset 11");
        return;
    }
    HnValue *in[] = { hn_unbind_op1(u, "Neg", hn_unbind_in(u, 0)), hn_unbind_in(u, 1) };
    HnNode *t = hn_unbind_node(u, "TopK", 2, in, 2);
    hn_node_set_int(t, "axis", p->axis);
    hn_unbind_take(u, 1, hn_node_out(t, 1));
    hn_unbind_take(u, 0, hn_unbind_op1(u, "Neg", hn_node_out(t, 0)));
}

static void topk_grad(HnTape *t)
{
    const HnTopK *p = t->params;
    HnNode *n = t->node;
    if (hn_tape_dy(t, 0) == NULL || !hn_tape_needs(t, 0))
        return;
    if (hn_node_out(n, 1) == NULL)
        hn_node_set_out(n, 1, hn_graph_new_value(t->build->graph, "indices"));
    HnValue *in[] = { hn_tape_zeros(t, hn_tape_in(t, 0)), hn_node_out(n, 1), hn_tape_dy(t, 0) };
    HnNode *back = hn_build_node(t->build, "ScatterElements", NULL, 3, in, 1);
    hn_node_set_int(back, "axis", p->axis);
    hn_tape_give(t, 0, hn_node_out(back, 0));
}

void hn_topk_batch(HnBatch *b)
{
    const HnTopK *p = b->params;
    hn_batch_along(b, p->axis, FALSE);
}

const HnOp hn_op_topk = {
    .name = "TopK",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 10, 11, 24 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .back = 11 }, { "k", HN_ATTR_INT, .until = 10, .input = 1 },
                      { "largest", HN_ATTR_INT, .since = 11, .number = 1 },
                      { "sorted", HN_ATTR_INT, .since = 11, .any = TRUE }),
    .lacks = HN_LACKS({ 'T', 11, 0, HN_T_INTS }, HN_BF16_SINCE(24)),
    .wide = HN_WIDE_PICKS,
    .in = "Ti",
    .out = "Ti",
    .T = HN_T_NUM,
    .min_in = 1,
    .unbind = topk_unbind,
    .params_size = sizeof(HnTopK),
    .bind = topk_bind,
    .infer = topk_infer,
    .cost = topk_cost,
    .ref = topk_ref,
    .grad = topk_grad,
    .batch = hn_topk_batch,
};
