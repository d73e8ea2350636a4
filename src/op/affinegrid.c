/*
 * AffineGrid: positions of a regular grid over [-1,1] in each direction, moved by one affine matrix per sample.
 */
#include <inttypes.h>
#include <string.h>

#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"

typedef struct {
    gboolean align_corners; /* -1 and 1 are centres of the corner elements, else their outer edges */
} HnAffineGrid;

static void affinegrid_bind(HnBind *b, void *params)
{
    ((HnAffineGrid *)params)->align_corners = hn_bind_bool(b, "align_corners", FALSE);
}

static void affinegrid_infer(HnInfer *x)
{
    const HnContents *c = hn_infer_contents(x, 1);
    int n = hn_infer_length(x, 1);
    if (hn_infer_rank(x, 0) >= 0 && hn_infer_rank(x, 0) != 3)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has %d dimensions instead of 3", hn_infer_rank(x, 0));
    if (n >= 0 && n != 4 && n != 5)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the size has %d numbers instead of 4 or 5", n);
    if (n != 4 && n != 5) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    HnDim dims[5];
    for (int a = 0; a < n; a++) /* N,C,[D,]H,W -> N,[D,]H,W,2 or 3 */
        dims[a == 0 ? 0 : MAX(a - 1, 1)] = c != NULL ? c->d[a] : hn_dim_unknown();
    dims[n - 1] = hn_dim(n - 2);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), n, dims);
}

static double place(int64_t i, int64_t n, gboolean align_corners)
{
    if (align_corners)
        return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : -1;
    return (double)(2 * i + 1) / (double)n - 1;
}

static void affinegrid_ref(HnEval *e)
{
    const HnAffineGrid *p = e->params;
    const HnTensor *theta = hn_eval_in(e, 0);
    int64_t size[5], dims[5];
    int n = hn_eval_ints(e, 1, size, 5), axes = n - 2; /* 2 or 3 */
    if (n < 0)
        return;
    gboolean fits = (n == 4 || n == 5) && theta->ndim == 3 && theta->dims[0] == size[0] && theta->dims[1] == axes &&
                    theta->dims[2] == axes + 1;
    for (int a = 0; fits && a < n; a++)
        fits = size[a] >= 0;
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the matrices and the size do not fit");
        return;
    }
    dims[0] = size[0];
    for (int a = 0; a < axes; a++)
        dims[1 + a] = size[2 + a];
    dims[n - 1] = axes;
    void *out = hn_eval_out(e, 0, theta->dtype, n, dims);
    if (out == NULL || e->out[0]->n == 0)
        return;
    int64_t idx[4] = { 0 }, at = 0;
    do {
        double v[4]; /* x, y, (z,) 1 */
        for (int a = 0; a < axes; a++)
            v[a] = place(idx[axes - a], size[2 + axes - 1 - a], p->align_corners);
        v[axes] = 1;
#define RUN(T)                                                        \
    const T *m = (const T *)theta->data + idx[0] * axes * (axes + 1); \
    for (int r = 0; r < axes; r++) {                                  \
        double sum = 0;                                               \
        for (int k = 0; k <= axes; k++)                               \
            sum += (double)m[r * (axes + 1) + k] * v[k];              \
        ((T *)out)[at + r] = (T)sum;                                  \
    }
        HN_FOR_FLOAT(theta->dtype, RUN)
#undef RUN
        at += axes;
    } while (hn_index_next(axes + 1, dims, idx, 0, NULL, NULL));
}

static void affinegrid_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 8 * hn_type_count(x->out[0]);
}

/* Each row of a matrix is multiplied by (x, y, z, 1): sums of dy times the grid that does nothing, and of dy. */
static void affinegrid_grad(HnTape *t)
{
    int64_t size[HN_MAX_RANK];
    const int n = hn_tape_ints(t, 1, size), axes = n - 2;
    if (!hn_tape_needs(t, 0))
        return;
    if (n != 4 && n != 5) {
        hn_tape_refuse(t, "the size is computed when it runs");
        return;
    }
    const int64_t places = size[2] * size[3] * (n == 5 ? size[4] : 1), shape[] = { 1, axes, axes + 1 };
    const int64_t flat[] = { size[0], places, axes };
    HnTensor *same = hn_tensor_new(t->dtype, 3, shape, NULL, NULL);
    for (int a = 0; a < axes; a++)
        hn_tensor_set_f64(same, a * (axes + 1) + a, 1);
    size[0] = 1;
    HnValue *in[] = { hn_build_constant(t->build, "same", same), hn_build_list(t->build, size, n) };
    HnNode *base = hn_build_node(t->build, "AffineGrid", NULL, 2, in, 1);
    hn_node_share_attrs(base, t->node);
    HnValue *grid = hn_build_reshape(t->build, hn_node_out(base, 0), (int64_t[]){ 1, places, axes }, 3);
    HnValue *dy = hn_node_out(hn_build_node(t->build, "Reshape", NULL, 2,
                                            (HnValue *[]){ hn_tape_dy(t, 0), hn_build_list(t->build, flat, 3) }, 1),
                              0);
    hn_node_set_int(dy->producer, "allowzero", 1);
    dy = hn_build_transpose(t->build, dy, (int64_t[]){ 0, 2, 1 }, 3);
    HnValue *parts[] = { hn_build_op2(t->build, "MatMul", dy, grid),
                         hn_build_reduce(t->build, "ReduceSum", dy, (int64_t[]){ 2 }, 1, TRUE) };
    hn_tape_give(t, 0, hn_build_concat(t->build, 2, parts, 2));
}

const HnOp hn_op_affinegrid = {
    .name = "AffineGrid",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 20 },
    .in = "Ti",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnAffineGrid),
    .bind = affinegrid_bind,
    .infer = affinegrid_infer,
    .cost = affinegrid_cost,
    .ref = affinegrid_ref,
    .grad = affinegrid_grad,
    .range = { .exact = "T" },
};
