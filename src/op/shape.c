/*
 * Shape and Size. Since opset 15 Shape may give a part of the dimensions.
 */
#include <inttypes.h>
#include <string.h>

#include <math.h>

#include "op/batch.h"
#include "op/move.h"
#include "op/unbind.h"

typedef struct {
    int64_t start, end;
} HnShape;

static void shape_bind(HnBind *b, void *params)
{
    HnShape *p = params;
    gboolean part = b->version >= 15;
    p->start = part ? hn_bind_int(b, "start", 0) : 0;
    p->end = part ? hn_bind_int(b, "end", INT64_MAX) : INT64_MAX;
}

static void shape_range(const HnShape *p, int rank, int *start, int *end)
{
    int64_t s = p->start < 0 ? p->start + rank : p->start, t = p->end < 0 ? p->end + rank : p->end;
    *start = (int)CLAMP(s, 0, rank);
    *end = (int)CLAMP(t, *start, rank);
}

static void shape_infer(HnInfer *x)
{
    const HnShape *p = x->params;
    int rank = hn_infer_rank(x, 0), start, end;
    HnDim n = hn_dim_unknown();
    if (rank >= 0) {
        shape_range(p, rank, &start, &end);
        n = hn_dim(end - start);
        HnContents *c = hn_contents_new(1, end - start);
        for (int a = start; a < end; a++)
            c->d[a - start] = hn_infer_dim(x, 0, a);
        hn_infer_out_contents(x, 0, c);
    }
    hn_infer_out(x, 0, HN_I64, 1, &n);
}

static void shape_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int start, end;
    shape_range(e->params, x->ndim, &start, &end);
    int64_t n = end - start, *y = hn_eval_out(e, 0, HN_I64, 1, &n);
    for (int64_t i = 0; y != NULL && i < n; i++)
        y[i] = x->dims[start + i];
}

static void shape_unbind(HnUnbind *u)
{
    const HnAttr *end = hn_node_attr(u->node, "end"), *start = hn_node_attr(u->node, "start");
    if (!hn_unbind_below(u, 15) || (end == NULL && start == NULL))
        return;
    HnValue *all = hn_unbind_op1(u, "Shape", hn_unbind_in(u, 0));
    hn_unbind_take(u, 0, hn_unbind_slice(u, all, 0, start != NULL ? start->i : 0, end != NULL ? end->i : INT64_MAX));
}

static void become_constant(HnBatch *b, HnValue *v)
{
    HnNode *n = b->node;
    while (n->attrs->len > 0)
        hn_node_remove_attr(n, ((const HnAttr *)n->attrs->pdata[0])->name);
    hn_node_become(n, "Identity", NULL);
    hn_node_set_in(n, 0, v);
}

/* Sizes [from, to) of the input as it is now, into *k parts. */
static void shape_part(HnBatch *b, HnValue *all, int from, int to, HnValue **parts, int *k)
{
    int64_t at[HN_MAX_RANK];
    for (int i = from; i < to; i++)
        at[i - from] = i;
    if (to > from)
        parts[(*k)++] =
            hn_batch_done(b, hn_batch_add(b, "Gather", (HnValue *[]){ all, hn_batch_constant(b, at, to - from) }, 2));
}

/* Some sizes are symbols: those of the samples' axis are said as they were. */
static void shape_of_one(HnBatch *b, int start, int end)
{
    HnValue *parts[3];
    const HnBatchIn *in = &b->in[0];
    const int front = hn_batch_in_front(b, 0), at = front ? -1 : in->at.axis;
    const HnDim size = hn_dim_mul(hn_dim_mul(in->at.outer, hn_dim(b->n0)), in->at.inner);
    int k = 0;
    if (at >= start && at < end && !size.known) {
        hn_batch_fail(b, "a size cannot be written down");
        return;
    }
    HnValue *all = hn_batch_done(b, hn_batch_add(b, "Shape", (HnValue *[]){ in->v }, 1));
    if (at < start || at >= end) {
        shape_part(b, all, start + front, end + front, parts, &k);
    } else {
        shape_part(b, all, start, at, parts, &k);
        parts[k++] = hn_batch_constant(b, &size.n, 1);
        shape_part(b, all, at + 1, end, parts, &k);
    }
    HnNode *n = b->node;
    while (n->attrs->len > 0)
        hn_node_remove_attr(n, ((const HnAttr *)n->attrs->pdata[0])->name);
    hn_node_become(n, "Concat", NULL);
    hn_node_set_int(n, "axis", 0);
    hn_node_set_in(n, 0, parts[0]);
    for (int i = 1; i < k; i++)
        hn_node_add_in(n, parts[i]);
}

void hn_shape_batch(HnBatch *b)
{
    const HnType *was = b->in[0].was;
    int start, end;
    int64_t dims[HN_MAX_RANK];
    gboolean fixed = TRUE;
    if (hn_type_rank(was) < 0) {
        hn_batch_fail(b, "the rank is not known");
        return;
    }
    shape_range(b->params, was->rank, &start, &end);
    for (int a = start; a < end; a++) {
        fixed = fixed && was->dims[a].known;
        dims[a - start] = was->dims[a].n;
    }
    if (fixed)
        become_constant(b, hn_batch_constant(b, dims, end - start));
    else
        shape_of_one(b, start, end);
}

const HnOp hn_op_shape = {
    .name = "Shape",
    .flags = HN_OP_SHAPE_ONLY,
    .since = { 1, 13, 15, 19, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "start", HN_ATTR_INT, .since = 15 }, { "end", HN_ATTR_INT, .since = 15, .number = NAN }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 19)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "i",
    .T = HN_T_ALL,
    .unbind = shape_unbind,
    .params_size = sizeof(HnShape),
    .bind = shape_bind,
    .infer = shape_infer,
    .ref = shape_ref,
    .batch = hn_shape_batch,
};

static void size_infer(HnInfer *x)
{
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0) {
        HnContents *c = hn_contents_new(0, 1);
        c->d[0] = hn_dim(1);
        for (int a = 0; a < rank; a++)
            c->d[0] = hn_dim_mul(c->d[0], hn_infer_dim(x, 0, a));
        hn_infer_out_contents(x, 0, c);
    }
    hn_infer_out(x, 0, HN_I64, 0, NULL);
}

static void size_ref(HnEval *e)
{
    int64_t *y = hn_eval_out(e, 0, HN_I64, 0, NULL);
    if (y != NULL)
        *y = hn_eval_in(e, 0)->n;
}

const HnOp hn_op_size = {
    .name = "Size",
    .flags = HN_OP_SHAPE_ONLY,
    .since = { 1, 13, 19, 21, 23, 24, 25 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 19)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "i",
    .T = HN_T_ALL,
    .infer = size_infer,
    .ref = size_ref,
};
