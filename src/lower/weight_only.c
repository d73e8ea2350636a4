/*
 * hone.WeightMatMul and hone.WeightGather for products with, and rows of, what DequantizeLinear makes of constants,
 * perhaps moved: the weights stay in few bits. Products of data that are quantized, too, are left to integers.
 */
#include <math.h>

#include "lower/lower.h"
#include "op/gather.h"
#include "op/linear.h"
#include "op/quantize.h"
#include "op/transpose.h"
#include "op/weightmatmul.h"
#include "pass/rewrite.h"

#define CHAIN 8                 /* nodes that are looked back */
#define LEAST_COLUMNS (1 << 15) /* elements of a table that lookup-first takes rows of */

/* --- matrices of few bits ------------------------------------------------------------------------------------------
 */

typedef struct {
    HnQParams q;
    HnTensor *w;
    int64_t dims[2]; /* of the matrix in memory */
    gboolean moved;
    gboolean turned; /* the matrix is seen with its axes exchanged */
    int axis;        /* of memory, that scales belong to; -1: there is one scale */
} Matrix;

static HnTensor *known(gconstpointer r, HnValue *v)
{
    return hn_rw_known(r, v);
}

static gboolean turns_around(const HnNode *n)
{
    if (n->op != &hn_op_transpose)
        return FALSE;
    const HnTranspose *t = n->params;
    return t->perm == NULL || (t->n == 2 && t->perm[0] == 1 && t->perm[1] == 0);
}

/* The dimensions are those of the matrix, and ones. */
static gboolean is_matrix(int ndim, const int64_t *dims, const int64_t *matrix)
{
    int at = 0;
    for (int i = 0; i < ndim; i++) {
        while (at < 2 && matrix[at] == 1)
            at++;
        if (dims[i] != 1 && (at == 2 || dims[i] != matrix[at++]))
            return FALSE;
    }
    return at == 2 || (at == 1 && matrix[1] == 1) || (matrix[0] == 1 && matrix[1] == 1);
}

/* Which axis of the matrix index `axis` of w is; -1: one of size 1. */
static int axis_of(const Matrix *m, int axis)
{
    int at = m->dims[0] == 1 ? 1 : 0;
    if (m->w->dims[axis] == 1)
        return -1;
    for (int i = 0; i < axis; i++)
        at += m->w->dims[i] != 1;
    return at;
}

/* The step of n, DequantizeLinear in front of the matrix. */
static gboolean read_scales(const HnRewrite *r, const HnNode *n, Matrix *m)
{
    HnQParams *q = &m->q;
    if (!hn_op_qparams(n, known, r, q) || (m->w = hn_rw_known(r, q->q)) == NULL)
        return FALSE;
    m->axis = -1;
    if (!hn_dtype_in(m->w->dtype, HN_BIT(HN_I8) | HN_BIT(HN_U8) | HN_BIT(HN_I4) | HN_BIT(HN_U4)) || m->w->n == 0 ||
        !is_matrix(m->w->ndim, m->w->dims, m->dims) || (q->zero != NULL && q->zero->dtype != m->w->dtype))
        return FALSE;
    if (q->axis < 0)
        return TRUE;
    if (q->axis >= m->w->ndim || q->scale->ndim != (q->block == 0 ? 1 : m->w->ndim))
        return FALSE;
    m->axis = axis_of(m, q->axis);
    if (m->axis < 0)
        return FALSE;
    if (q->block == 0)
        return q->scale->n == m->dims[m->axis];
    const int64_t blocks = m->dims[m->axis] / q->block + (m->dims[m->axis] % q->block != 0);
    return q->scale->dims[q->axis] == blocks && q->scale->n == m->dims[1 - m->axis] * blocks;
}

/* v, f32 of these dims (and ones), is such a matrix, perhaps moved. */
static gboolean matrix_of(const HnRewrite *r, const HnValue *v, const int64_t *dims, Matrix *m)
{
    int64_t have[HN_MAX_RANK];
    *m = (Matrix){ .dims = { dims[0], dims[1] } };
    if (hn_rw_known(r, v) != NULL) /* it is small */
        return FALSE;
    for (int chain = 0; chain <= CHAIN; chain++, v = hn_node_in(v->producer, 0)) {
        const HnNode *n = v->producer;
        if (n == NULL || n->op == NULL || hn_node_in(n, 0) == NULL || hn_rw_dtype(r, v) != HN_F32)
            return FALSE;
        if (n->op == &hn_op_dequantizelinear)
            return read_scales(r, n, m);
        if (!hn_rw_fixed(r, hn_node_in(n, 0), have))
            return FALSE;
        const int rank = hn_rw_rank(r, hn_node_in(n, 0));
        if (rank == 2 && turns_around(n)) {
            m->turned = !m->turned;
            m->dims[0] = have[0];
            m->dims[1] = have[1];
        } else if ((n->op->flags & HN_OP_VIEW) == 0 || !is_matrix(rank, have, m->dims)) {
            return FALSE;
        }
        m->moved = TRUE;
    }
    return FALSE;
}

/* t under other dims, itself where it has them: a new reference. */
static HnTensor *shaped(HnTensor *t, int ndim, const int64_t *dims)
{
    return hn_tensor_has_dims(t, ndim, dims) ? hn_tensor_ref(t) : hn_tensor_reshaped(t, ndim, dims);
}

/* Scales or zero points in the shape that the operators want. */
static HnTensor *steps_of(const Matrix *m, HnTensor *t)
{
    int64_t dims[2] = { m->dims[0], m->dims[1] };
    if (m->axis < 0)
        return shaped(t, 0, NULL);
    if (m->q.block == 0)
        return shaped(t, 1, &t->n);
    dims[m->axis] = t->n / dims[1 - m->axis];
    return shaped(t, 2, dims);
}

/* The operators take ones behind the matrix: packed weights are found by the tensor, which is better not a new one. */
static HnTensor *weights_of(const Matrix *m)
{
    const HnTensor *w = m->w;
    const gboolean as_is = w->ndim >= 2 && w->dims[0] == m->dims[0] && w->dims[1] == m->dims[1];
    return as_is ? hn_tensor_ref(m->w) : hn_tensor_reshaped(m->w, 2, m->dims);
}

/* --- the node ------------------------------------------------------------------------------------------------------
 */

/* An `op` with these parameters in the place of n, where a kernel takes it. Inputs from `first` on are the matrix. */
static gboolean replace(HnRewrite *r, HnNode *n, const HnOp *op, const HnWeights *p, HnValue **in, int n_in, int first,
                        const Matrix *m)
{
    HnTensor *t[HN_WEIGHT_INPUTS] = { NULL }, *y = hn_rw_tensor(r, hn_node_out(n, 0));
    HnValue *const of[] = { m->q.q, m->q.scale_of, m->q.zero_of };
    for (int i = 0; i < n_in; i++)
        t[i] = in[i] != NULL ? hn_rw_tensor(r, in[i]) : NULL;
    t[first] = weights_of(m);
    t[first + 1] = steps_of(m, m->q.scale);
    t[first + 2] = m->q.zero != NULL ? steps_of(m, m->q.zero) : NULL;
    const gboolean takes = hn_rw_runs(r, &(HnDraft){ op, p, t, n_in, y }), ok = takes && hn_rw_go(r, n);
    for (int i = 0; i < 3 && ok; i++)
        if (t[first + i] != NULL)
            in[first + i] = t[first + i] == hn_rw_known(r, of[i])
                                ? of[i]
                                : hn_rw_weight(r, n->graph, of[i]->name, hn_tensor_ref(t[first + i]));
    for (int i = 0; i < n_in; i++)
        hn_tensor_unref(t[i]);
    hn_tensor_unref(y);
    if (!takes)
        return hn_rw_miss(r, n, "no kernel takes these weights");
    if (!ok)
        return FALSE;
    HnNode *made = hn_rw_add_internal(r, n, op, in, n_in);
    hn_node_set_int(made, "turned", p->turned);
    hn_node_set_int(made, "block", p->block);
    if (p->axis != -1)
        hn_node_set_int(made, "axis", p->axis);
    return hn_rw_take(r, made, n);
}

/* --- products ------------------------------------------------------------------------------------------------------
 */

typedef struct {
    int64_t dims[2]; /* of input 1 as a matrix */
    gboolean turned; /* rows are multiplied by its rows, not by its columns */
    int64_t axis;    /* of the data, from which on ... */
    HnValue *bias;   /* NULL: none */
} Product;

/* n multiplies the rows of input 0 by the matrix of input 1. */
static gboolean product_of(const HnRewrite *r, const HnNode *n, Product *o)
{
    int64_t x[HN_MAX_RANK], w[HN_MAX_RANK], y[HN_MAX_RANK];
    const HnValue *xv = hn_node_in(n, 0), *wv = hn_node_in(n, 1), *yv = hn_node_out(n, 0);
    HnLinearView l;
    if (n->op->quant.kind != HN_Q_WEIGHTED || xv == NULL || wv == NULL || hn_rw_dtype(r, xv) != HN_F32 ||
        hn_rw_dtype(r, wv) != HN_F32)
        return FALSE;
    if (!hn_rw_fixed(r, xv, x) || !hn_rw_fixed(r, wv, w) || !hn_rw_fixed(r, yv, y))
        return FALSE;
    const int rank = hn_rw_rank(r, xv), of = hn_rw_rank(r, wv);
    if (rank < 1 || of < 2 || !hn_op_linear(n, &l) || l.adjoint || l.x_turned || l.groups != 1 || l.alpha != 1 ||
        (l.beta != 1 && l.b != NULL))
        return FALSE;
    *o = (Product){ { w[0], w[1] }, l.window != NULL || l.w_turned, l.window != NULL ? 1 : -1, l.b };
    if (l.window == NULL)
        return of == 2 && x[rank - 1] == w[l.w_turned ? 1 : 0];
    if (of != rank || hn_rw_rank(r, yv) != rank || x[1] != w[1]) /* a convolution of one pixel by one tap */
        return FALSE;
    for (int i = 2; i < rank; i++)
        if (x[i] != 1 || y[i] != 1 || w[i] != 1)
            return FALSE;
    return TRUE;
}

/* A bias is one number for each of n columns. */
static gboolean bias_fits(const HnRewrite *r, const HnValue *v, int64_t n)
{
    int64_t dims[HN_MAX_RANK];
    return hn_rw_dtype(r, v) == HN_F32 && hn_rw_rank(r, v) == 1 && hn_rw_fixed(r, v, dims) && dims[0] == n;
}

static gboolean is_byte(HnDtype d)
{
    return d == HN_U8 || d == HN_I8;
}

static gboolean same_elements(const HnTensor *a, const HnTensor *b)
{
    return a == b ||
           (a != NULL && b != NULL && a->dtype == b->dtype && hn_tensor_get_f64(a, 0) == hn_tensor_get_f64(b, 0));
}

/* v is made of bytes that are computed, all with one scale, and only moved since. */
static gboolean is_quantized(const HnRewrite *r, const HnValue *v, int chain, HnQParams *q)
{
    const HnNode *n = v->producer;
    if (n == NULL || n->op == NULL || v->is_output || chain == 0)
        return FALSE;
    if (hn_op_qparams(n, known, r, q) && q->back)
        return q->axis < 0 && is_byte(hn_rw_dtype(r, q->q)) && hn_rw_known(r, q->q) == NULL &&
               isfinite(hn_tensor_get_f64(q->scale, 0)) && hn_tensor_get_f64(q->scale, 0) > 0;
    const HnQuantBytes how = hn_op_bytes(n);
    if (how != HN_QB_MOVES && how != HN_QB_MOST && how != HN_QB_FILLS && n->op != &hn_op_relu)
        return FALSE;
    HnQParams other;
    if (!is_quantized(r, hn_node_in(n, 0), chain - 1, q))
        return FALSE;
    for (int i = 1; i < (int)n->in->len; i++)
        if ((n->op->flags & HN_OP_VIEW) == 0 && hn_node_in(n, i) != NULL && hn_op_is_moved(n, i) &&
            (!is_quantized(r, hn_node_in(n, i), chain - 1, &other) || !same_elements(q->scale, other.scale) ||
             !same_elements(q->zero, other.zero)))
            return FALSE;
    return TRUE;
}

/* The product can be one of integers from end to end. */
static gboolean is_integer(const HnRewrite *r, const HnValue *x, const Matrix *m, const HnValue *bias)
{
    HnQParams q;
    const HnNode *of = bias != NULL ? bias->producer : NULL;
    const gboolean bias_known =
        bias == NULL || hn_rw_known(r, bias) != NULL ||
        (of != NULL && hn_op_qparams(of, known, r, &q) && q.back && hn_rw_known(r, q.q) != NULL);
    return m->q.block == 0 && !m->moved && is_byte(m->w->dtype) && bias_known && is_quantized(r, x, CHAIN, &q);
}

static gboolean weight_matmul(HnRewrite *r, HnNode *n)
{
    Product o;
    Matrix m;
    if (!product_of(r, n, &o) || !matrix_of(r, hn_node_in(n, 1), o.dims, &m))
        return FALSE;
    const HnWeights p = { o.turned != m.turned, m.q.block, o.axis };
    if (m.axis >= 0 && m.axis != ((p.block > 0) == p.turned ? 1 : 0))
        return hn_rw_miss(r, n, "the scales are not those of columns, or of blocks of a sum");
    if (o.bias != NULL && !bias_fits(r, o.bias, m.dims[p.turned ? 0 : 1]))
        return hn_rw_miss(r, n, "the bias is not a number for each column");
    if (is_integer(r, hn_node_in(n, 0), &m, o.bias))
        return hn_rw_miss(r, n, "the data are quantized, too");
    HnValue *in[HN_WEIGHT_INPUTS] = { [HN_WEIGHT_X] = hn_node_in(n, 0), [HN_WEIGHT_BIAS] = o.bias };
    return replace(r, n, &hn_op_weightmatmul, &p, in, HN_WEIGHT_INPUTS, HN_WEIGHT_W, &m);
}

/* --- rows of a table -----------------------------------------------------------------------------------------------
 */

static gboolean weight_gather(HnRewrite *r, HnNode *n)
{
    const HnGather *g = n->params;
    HnValue *table = hn_node_in(n, 0), *places = hn_node_in(n, 1);
    int64_t dims[HN_MAX_RANK];
    Matrix m;
    if (hn_rw_dtype(r, table) != HN_F32 || hn_rw_rank(r, table) != 2 || !hn_rw_fixed(r, table, dims) ||
        !matrix_of(r, table, dims, &m))
        return FALSE;
    if ((g->axis != 0 && g->axis != -2) || m.turned)
        return hn_rw_miss(r, n, "what is taken are no rows in memory");
    int64_t at[HN_MAX_RANK];
    if (!hn_rw_fixed(r, places, at))
        return FALSE;
    if (m.axis == 1 && m.q.block == 0 && is_byte(m.w->dtype) && m.w->n >= LEAST_COLUMNS)
        return hn_rw_miss(r, n, "rows with scales of columns are faster as a Gather of integers");
    const HnWeights p = { (m.axis == 0) == (m.q.block == 0), m.q.block, -1 };
    HnValue *in[HN_ROWS_INPUTS] = { [HN_ROWS_AT] = places };
    return replace(r, n, &hn_op_weightgather, &p, in, HN_ROWS_INPUTS, HN_ROWS_W, &m);
}

static gboolean weight_only(HnRewrite *r, HnNode *n)
{
    if (n->op == &hn_op_gather)
        return weight_gather(r, n);
    return n->op != NULL && weight_matmul(r, n);
}

const HnPass hn_pass_weight_only = {
    .name = "weight-only",
    .summary = "products with, and rows of, constants of few bits without their numbers",
    .level = 2,
    .node = weight_only,
};
