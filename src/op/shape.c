/*
 * Shape and Size. Since opset 15 Shape may give a part of the dimensions.
 */
#include <inttypes.h>
#include <string.h>

#include <math.h>

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
