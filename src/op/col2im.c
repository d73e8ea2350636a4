/*
 * Col2Im: blocks of an image, stored as columns, added back into the image at their places.
 */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/types.h"

typedef struct {
    const int64_t *strides, *pads, *dilations; /* NULL: all 1, 0, 1 */
    int64_t n_strides, n_pads, n_dilations;
} HnCol2Im;

static void col2im_bind(HnBind *b, void *params)
{
    HnCol2Im *p = params;
    p->strides = hn_bind_ints(b, "strides", &p->n_strides);
    p->pads = hn_bind_ints(b, "pads", &p->n_pads);
    p->dilations = hn_bind_ints(b, "dilations", &p->n_dilations);
}

static void col2im_infer(HnInfer *x)
{
    const HnContents *image = hn_infer_contents(x, 1), *block = hn_infer_contents(x, 2);
    int n = hn_infer_length(x, 1), m = hn_infer_length(x, 2);
    HnDim dims[HN_MAX_RANK], taps = hn_dim(1);
    if (hn_infer_rank(x, 0) >= 0 && hn_infer_rank(x, 0) != 3)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has %d dimensions instead of 3", hn_infer_rank(x, 0));
    if ((n >= 0 && m >= 0 && n != m) || n > HN_MAX_RANK - 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "an image of %d dimensions and blocks of %d", n, m);
    if (n < 0 || n > HN_MAX_RANK - 2) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    for (int a = 0; a < n; a++) {
        dims[2 + a] = image != NULL ? image->d[a] : hn_dim_unknown();
        taps = hn_dim_mul(taps, block != NULL && a < block->n ? block->d[a] : hn_dim_unknown());
    }
    dims[0] = hn_infer_dim(x, 0, 0);
    dims[1] = hn_dim_floor_div(hn_infer_dim(x, 0, 1), taps);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), n + 2, dims);
}

/* Spatial geometry: axis a has places[a] block positions; L of the input is their product. */
typedef struct {
    int n;
    int64_t image[HN_MAX_RANK], block[HN_MAX_RANK], places[HN_MAX_RANK];
    int64_t stride[HN_MAX_RANK], pad[HN_MAX_RANK], dilation[HN_MAX_RANK];
    int64_t taps, columns, plane; /* products of block, places, image */
} Geometry;

static gboolean geometry_axis(const HnCol2Im *p, Geometry *g, int a)
{
    int64_t end = p->pads != NULL ? p->pads[g->n + a] : 0, span, padded;
    g->stride[a] = p->strides != NULL ? p->strides[a] : 1;
    g->pad[a] = p->pads != NULL ? p->pads[a] : 0;
    g->dilation[a] = p->dilations != NULL ? p->dilations[a] : 1;
    if (g->image[a] < 1 || g->block[a] < 1 || g->stride[a] < 1 || g->dilation[a] < 1)
        return FALSE;
    if (g->pad[a] < 0 || end < 0 || !hn_mul_i64(g->dilation[a], g->block[a] - 1, &span))
        return FALSE;
    if (!hn_add_i64(g->image[a], g->pad[a], &padded) || !hn_add_i64(padded, end, &padded) || padded <= span)
        return FALSE;
    g->places[a] = (padded - span - 1) / g->stride[a] + 1;
    return TRUE;
}

static gboolean geometry_read(HnEval *e, const HnTensor *x, Geometry *g)
{
    const HnCol2Im *p = e->params;
    g->n = hn_eval_ints(e, 1, g->image, HN_MAX_RANK - 2);
    int m = hn_eval_ints(e, 2, g->block, HN_MAX_RANK - 2);
    if (g->n < 0 || m < 0)
        return FALSE;
    gboolean fits = g->n == m && x->ndim == 3 && (p->strides == NULL || p->n_strides == m) &&
                    (p->pads == NULL || p->n_pads == 2 * m) && (p->dilations == NULL || p->n_dilations == m);
    for (int a = 0; fits && a < m; a++)
        fits = geometry_axis(p, g, a);
    fits = fits && hn_dims_count(m, g->block, &g->taps) && hn_dims_count(m, g->places, &g->columns) &&
           hn_dims_count(m, g->image, &g->plane) && x->dims[1] % g->taps == 0 && x->dims[2] == g->columns;
    if (!fits)
        hn_eval_fail(e, HN_ERROR_SHAPE, "the columns do not make blocks of the image");
    return fits;
}

/* Place of tap t of column l in the image; -1: in the padding. */
static int64_t geometry_place(const Geometry *g, int64_t t, int64_t l)
{
    int64_t at = 0, weight = 1;
    for (int a = g->n - 1; a >= 0; a--) {
        int64_t i = l % g->places[a] * g->stride[a] + t % g->block[a] * g->dilation[a] - g->pad[a];
        if (i < 0 || i >= g->image[a])
            return -1;
        at += i * weight;
        weight *= g->image[a];
        l /= g->places[a];
        t /= g->block[a];
    }
    return at;
}

/* A: double, or unsigned numbers that wrap. */
#define ADD(T, A)                                                 \
    {                                                             \
        const T *s = (const T *)x->data + i * g.taps * g.columns; \
        T *y = (T *)out + i * g.plane;                            \
        A *sum = acc;                                             \
        memset(sum, 0, (size_t)g.plane * sizeof *sum);            \
        for (int64_t k = 0; k < g.taps * g.columns; k++)          \
            if (map[k] >= 0)                                      \
                sum[map[k]] += (A)s[k];                           \
        for (int64_t k = 0; k < g.plane; k++)                     \
            y[k] = (T)sum[k];                                     \
    }
#define ADD_FLOAT(T) ADD(T, double)
#define ADD_INT(T) ADD(T, uint64_t)

static void col2im_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    Geometry g;
    if (!geometry_read(e, x, &g))
        return;
    if (!hn_dtype_in(x->dtype, HN_T_NUM)) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "elements of type %s are not added", hn_dtype_name(x->dtype));
        return;
    }
    int64_t dims[HN_MAX_RANK] = { x->dims[0], x->dims[1] / g.taps };
    memcpy(dims + 2, g.image, (size_t)g.n * sizeof *dims);
    void *out = hn_eval_out(e, 0, x->dtype, g.n + 2, dims);
    if (out == NULL || e->out[0]->n == 0)
        return;
    /* x has elements, so taps * columns is no more than them */
    int64_t *map = hn_eval_scratch(e, g.taps * g.columns, sizeof *map);
    void *acc = map != NULL ? hn_eval_scratch(e, g.plane, sizeof(uint64_t)) : NULL;
    for (int64_t k = 0; acc != NULL && k < g.taps * g.columns; k++)
        map[k] = geometry_place(&g, k / g.columns, k % g.columns);
    for (int64_t i = 0; acc != NULL && i < dims[0] * dims[1]; i++) {
        HN_FOR_FLOAT(x->dtype, ADD_FLOAT)
        HN_FOR_INT(x->dtype, ADD_INT)
    }
    hn_eval_scratch_free(e, acc);
    hn_eval_scratch_free(e, map);
}

static void col2im_cost(const HnInfer *x, HnCost *c)
{
    c->flops = hn_type_count(x->in[0]);
}

/* The columns of the gradient: a convolution of each channel with weights that have one 1 each. */
static void col2im_grad(HnTape *t)
{
    int64_t image[HN_MAX_RANK], dims[HN_MAX_RANK] = { 0 }, taps;
    const int n = hn_tape_ints(t, 2, dims + 2);
    if (!hn_tape_needs(t, 0))
        return;
    if (n < 1 || n > HN_MAX_RANK - 2 || hn_tape_ints(t, 1, image + 2) != n || !hn_dims_count(n, dims + 2, &taps)) {
        hn_tape_refuse(t, "the sizes of image and blocks are not known");
        return;
    }
    dims[0] = taps;
    dims[1] = image[1] = 1;
    image[0] = -1;
    HnTensor *one = hn_tensor_new(t->dtype, n + 2, dims, NULL, NULL);
    if (one == NULL) {
        hn_tape_refuse(t, "blocks of %" PRId64 " elements are too large", taps);
        return;
    }
    for (int64_t k = 0; k < taps; k++)
        hn_tensor_set_f64(one, k * taps + k, 1);
    HnValue *in[] = { hn_build_reshape(t->build, hn_tape_dy(t, 0), image, n + 2),
                      hn_build_constant(t->build, "columns", one) };
    HnNode *conv = hn_build_node(t->build, "Conv", NULL, 2, in, 1);
    hn_node_share_attrs(conv, t->node);
    hn_tape_give(t, 0, hn_tape_reshape_like(t, hn_node_out(conv, 0), hn_tape_in(t, 0)));
}

const HnOp hn_op_col2im = {
    .name = "Col2Im",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 18 },
    .in = "Tii",
    .out = "T",
    .T = HN_T_PLAIN,
    .params_size = sizeof(HnCol2Im),
    .bind = col2im_bind,
    .infer = col2im_infer,
    .cost = col2im_cost,
    .ref = col2im_ref,
    .grad = col2im_grad,
    .batch = hn_batch_first,
};
