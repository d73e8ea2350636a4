/*
 * Planning: constant weights of few bits.
 *
 * What DequantizeLinear makes of a large constant is not made ahead: readers that can do with the few bits (products,
 * rows of a table) get a step of hone.WeightMatMul or hone.WeightGather, all others the numbers when they ask for them
 * (hn_plan_slot()), together with what only moves them on the way.
 */
#include <string.h>

#include "op/gather.h"
#include "op/linear.h"
#include "op/ops.h"
#include "op/quantize.h"
#include "op/transpose.h"
#include "op/weightmatmul.h"
#include "run/bytes.h"

/* --- deferred values -----------------------------------------------------------------------------------------------
 */

#define CHAIN 8 /* nodes that are looked back */

gboolean hn_plan_unpacks(const HnPlan *p, HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    if (!p->bytes || (n->op->flags & HN_OP_UNPACK) == 0 || v == NULL || v->is_output)
        return FALSE;
    for (guint i = 0; i < v->users->len; i++)
        if (((const HnNode *)v->users->pdata[i])->graph != v->graph)
            return FALSE;
    return TRUE;
}

static gboolean is_deferred(const HnPlan *p, const HnNode *n, int chain)
{
    if (!p->bytes || n == NULL || n->op == NULL || n->out->len != 1 || n->in->len == 0 ||
        !hn_bytes_stay(hn_node_out(n, 0)))
        return FALSE;
    const gboolean moves = (n->op->flags & HN_OP_VIEW) != 0 || n->op == &hn_op_transpose;
    const HnValue *x = hn_node_in(n, 0);
    if ((n->op->flags & HN_OP_UNPACK) == 0 &&
        (!moves || x == NULL || x->graph != n->graph || chain == 0 || !is_deferred(p, x->producer, chain - 1)))
        return FALSE;
    for (guint i = moves ? 1 : 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL && hn_types_value(p->types, n->in->pdata[i]) == NULL)
            return FALSE;
    return TRUE;
}

gboolean hn_plan_is_deferred(const HnPlan *p, const HnNode *n)
{
    return is_deferred(p, n, CHAIN);
}

/* What stands for v in all plans where it is made of the same. NULL: it is not deferred. */
static HnTensor *standin_of(const HnPlan *p, const HnValue *v)
{
    HnTensor *in[HN_CONSTANT_INPUTS] = { NULL };
    const HnNode *n = v->producer;
    if (n == NULL || n->in->len > G_N_ELEMENTS(in) || !hn_plan_is_deferred(p, n))
        return NULL;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *from = n->in->pdata[i];
        HnTensor *t = from != NULL ? hn_types_value(p->types, from) : NULL;
        in[i] = from == NULL || t != NULL ? hn_tensor_ref(t) : standin_of(p, from);
    }
    HnTensor *standin = hn_constants_standin(p->exec->env->engine->constants, hn_lowered_node(p->low, n), in);
    for (guint i = 0; i < n->in->len; i++)
        hn_tensor_unref(in[i]);
    return standin;
}

/* The elements of v, which is deferred. */
static HnTensor *unpacked(const HnPlan *p, const HnValue *v, GError **error)
{
    HnConstants *constants = p->exec->env->engine->constants;
    HnTensor *in[HN_CONSTANT_INPUTS] = { NULL }, *out[1] = { NULL };
    const HnNode *n = v->producer;
    gboolean ok = TRUE;
    for (guint i = 0; i < n->in->len && ok; i++) {
        const HnValue *from = n->in->pdata[i];
        HnTensor *t = from != NULL ? hn_types_value(p->types, from) : NULL;
        if (from != NULL)
            in[i] = t != NULL ? hn_constants_aligned(constants, t, error) : hn_plan_deferred(p, from, NULL, error);
        ok = from == NULL || in[i] != NULL;
    }
    HnEval e = { .node = n,
                 .params = n->params,
                 .n_in = (int)n->in->len,
                 .n_out = 1,
                 .in = in,
                 .out = out,
                 .budget = p->exec->env->o.budget };
    ok = ok && hn_op_eval(&e, error);
    for (guint i = 0; i < n->in->len; i++)
        hn_constants_unref(constants, in[i]);
    return ok ? out[0] : NULL;
}

HnTensor *hn_plan_deferred(const HnPlan *p, const HnValue *v, HnTensor **origin, GError **error)
{
    HnConstants *constants = p->exec->env->engine->constants;
    HnTensor *standin = standin_of(p, v);
    if (standin == NULL)
        return NULL;
    HnTensor *t = hn_constants_made(constants, standin);
    if (t == NULL && (t = unpacked(p, v, error)) != NULL)
        hn_constants_note_made(constants, standin, t);
    if (origin != NULL && t != NULL)
        *origin = standin;
    else
        hn_tensor_unref(standin);
    return t;
}

/* --- matrices of few bits ------------------------------------------------------------------------------------------
 */

typedef struct {
    HnTensor *w, *scale, *zero; /* zero: NULL where absent */
    int64_t dims[2];            /* of the matrix in memory */
    gboolean turned;            /* the matrix is seen with its axes exchanged */
    int axis;                   /* of memory, that scales belong to; -1: there is one scale */
    int64_t block;              /* 0: a scale for each index of the axis */
} Matrix;

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
static gboolean read_scales(const HnPlan *p, const HnNode *n, Matrix *m)
{
    HnQParams q;
    if (!hn_op_qparams(n, hn_bytes_known, p->types, &q) || (m->w = hn_types_value(p->types, q.q)) == NULL)
        return FALSE;
    m->scale = q.scale;
    m->zero = q.zero;
    m->axis = -1;
    m->block = q.block;
    if (!hn_dtype_in(m->w->dtype, HN_BIT(HN_I8) | HN_BIT(HN_U8) | HN_BIT(HN_I4) | HN_BIT(HN_U4)) || m->w->n == 0 ||
        !is_matrix(m->w->ndim, m->w->dims, m->dims) || (m->zero != NULL && m->zero->dtype != m->w->dtype))
        return FALSE;
    if (q.axis < 0)
        return TRUE;
    if (q.axis >= m->w->ndim || q.scale->ndim != (q.block == 0 ? 1 : m->w->ndim))
        return FALSE;
    m->axis = axis_of(m, q.axis);
    if (m->axis < 0)
        return FALSE;
    if (m->block == 0)
        return m->scale->n == m->dims[m->axis];
    const int64_t blocks = m->dims[m->axis] / m->block + (m->dims[m->axis] % m->block != 0);
    return m->scale->dims[q.axis] == blocks && m->scale->n == m->dims[1 - m->axis] * blocks;
}

/* v, f32 of these dims (and ones), is such a matrix, perhaps moved. */
static gboolean matrix_of(const HnPlan *p, const HnValue *v, const int64_t *dims, Matrix *m)
{
    int64_t have[HN_MAX_RANK];
    *m = (Matrix){ .dims = { dims[0], dims[1] } };
    if (hn_types_value(p->types, v) != NULL) /* it is small */
        return FALSE;
    for (int chain = 0; chain <= CHAIN; chain++, v = hn_node_in(v->producer, 0)) {
        const HnNode *n = v->producer;
        if (n == NULL || n->op == NULL || hn_node_in(n, 0) == NULL || hn_bytes_dtype(p, v) != HN_F32)
            return FALSE;
        if (n->op == &hn_op_dequantizelinear)
            return read_scales(p, n, m);
        const HnType *t = hn_types_get(p->types, hn_node_in(n, 0));
        if (t == NULL || !hn_type_is_fixed(t, have))
            return FALSE;
        if (t->rank == 2 && turns_around(n)) {
            m->turned = !m->turned;
            m->dims[0] = have[0];
            m->dims[1] = have[1];
        } else if ((n->op->flags & HN_OP_VIEW) == 0 || !is_matrix(t->rank, have, m->dims)) {
            return FALSE;
        }
    }
    return FALSE;
}

/* The same tensor where it can be, which is what packed weights are found by. */
static HnSlot *weights_slot(HnPlan *p, const Matrix *m)
{
    return hn_bytes_constant(p, hn_constants_reshaped(p->exec->env->engine->constants, m->w, 2, m->dims));
}

/* Scales and zero points in the shape that the internal operators want. */
static HnSlot *scales_slot(HnPlan *p, const Matrix *m, HnTensor *t)
{
    int64_t dims[2] = { m->dims[0], m->dims[1] };
    if (m->block > 0)
        dims[m->axis] = t->n / dims[1 - m->axis];
    return hn_bytes_constant(p, m->axis < 0    ? hn_tensor_reshaped(t, 0, NULL)
                                : m->block > 0 ? hn_tensor_reshaped(t, 2, dims)
                                               : hn_tensor_reshaped(t, 1, &t->n));
}

static void set_params(HnPlan *p, HnStep *s, gboolean turned, int64_t block)
{
    HnWeights *params = g_new0(HnWeights, 1);
    params->turned = turned;
    params->block = block;
    g_ptr_array_add(p->owned, params);
    s->params = params;
}

/* --- products ------------------------------------------------------------------------------------------------------
 */

/* n multiplies the rows of input 0 by the matrix of input 1, *turned: by its columns as rows; *bias may be NULL. */
static gboolean reads_matrix(const HnPlan *p, const HnNode *n, int64_t *dims, gboolean *turned, HnValue **bias)
{
    int64_t x[HN_MAX_RANK], w[HN_MAX_RANK], y[HN_MAX_RANK];
    HnLinearView l;
    const HnType *xt = hn_types_get(p->types, hn_node_in(n, 0)), *wt = hn_types_get(p->types, hn_node_in(n, 1));
    const HnType *yt = hn_types_get(p->types, hn_node_out(n, 0));
    if (!hn_type_is_fixed(xt, x) || !hn_type_is_fixed(wt, w) || yt == NULL || !hn_type_is_fixed(yt, y) ||
        xt->rank < 1 || wt->rank < 2)
        return FALSE;
    if (!hn_op_linear(n, &l) || l.adjoint || l.x_turned || l.groups != 1 || l.alpha != 1 ||
        (l.beta != 1 && l.b != NULL))
        return FALSE;
    dims[0] = w[0];
    dims[1] = w[1];
    *bias = l.b;
    *turned = l.w_turned;
    if (l.window == NULL)
        return wt->rank == 2 && x[xt->rank - 1] == w[l.w_turned ? 1 : 0];
    *turned = TRUE; /* a convolution of one pixel by one tap */
    if (wt->rank != xt->rank || yt->rank != xt->rank || x[1] != w[1])
        return FALSE;
    for (int i = 2; i < xt->rank; i++)
        if (x[i] != 1 || y[i] != 1 || w[i] != 1)
            return FALSE;
    return TRUE;
}

/* A bias is one number for each of n columns. */
static gboolean bias_fits(const HnPlan *p, const HnValue *v, int64_t n)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *t = hn_types_get(p->types, v);
    return hn_bytes_dtype(p, v) == HN_F32 && hn_type_is_fixed(t, dims) && t->rank == 1 && dims[0] == n;
}

static gboolean add_product(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    HnValue *x = hn_node_in(n, 0), *w = hn_node_in(n, 1), *v = hn_node_out(n, 0), *bias;
    int64_t dims[2];
    gboolean turned;
    Matrix m;
    if (x == NULL || w == NULL || hn_bytes_dtype(p, x) != HN_F32 || hn_bytes_dtype(p, w) != HN_F32 ||
        !reads_matrix(p, n, dims, &turned, &bias) || !matrix_of(p, w, dims, &m))
        return TRUE;
    turned = turned != m.turned;
    if (m.axis >= 0 && m.axis != ((m.block > 0) == turned ? 1 : 0))
        return TRUE;
    if (bias != NULL && !bias_fits(p, bias, m.dims[turned ? 0 : 1]))
        return TRUE;
    HnStep *s = hn_step_new(p, n, HN_WEIGHT_INPUTS, 0, 1);
    s->op = &hn_op_weightmatmul;
    set_params(p, s, turned, m.block);
    gboolean ok = (s->in[HN_WEIGHT_X].slot = hn_plan_slot(p, x, error)) != NULL &&
                  (s->in[HN_WEIGHT_X].slot = hn_plan_numbers(p, x, s->in[HN_WEIGHT_X].slot, error)) != NULL;
    s->in[HN_WEIGHT_W].slot = weights_slot(p, &m);
    s->in[HN_WEIGHT_SCALE].slot = scales_slot(p, &m, m.scale);
    if (m.zero != NULL)
        s->in[HN_WEIGHT_ZERO].slot = scales_slot(p, &m, m.zero);
    if (ok && bias != NULL)
        ok = (s->in[HN_WEIGHT_BIAS].slot = hn_plan_slot(p, bias, error)) != NULL &&
             (s->in[HN_WEIGHT_BIAS].slot = hn_plan_numbers(p, bias, s->in[HN_WEIGHT_BIAS].slot, error)) != NULL;
    ok = ok && (s->out[0].slot = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error)) != NULL;
    if (ok)
        return hn_plan_add_internal(p, s, done, error);
    hn_step_free(s);
    return FALSE;
}

/* --- rows of a table -----------------------------------------------------------------------------------------------
 */

static gboolean add_rows(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    const HnGather *g = n->params;
    HnValue *table = hn_node_in(n, 0), *places = hn_node_in(n, 1), *v = hn_node_out(n, 0);
    const HnType *t = table != NULL ? hn_types_get(p->types, table) : NULL;
    int64_t dims[HN_MAX_RANK];
    Matrix m;
    if (t == NULL || places == NULL || !hn_type_is_fixed(t, dims) || t->rank != 2 || (g->axis != 0 && g->axis != -2) ||
        hn_bytes_dtype(p, places) == HN_UNDEFINED || !matrix_of(p, table, dims, &m) || m.turned)
        return TRUE;
    HnStep *s = hn_step_new(p, n, HN_ROWS_INPUTS, 0, 1);
    s->op = &hn_op_weightgather;
    set_params(p, s, (m.axis == 0) == (m.block == 0), m.block);
    s->in[HN_ROWS_W].slot = weights_slot(p, &m);
    s->in[HN_ROWS_SCALE].slot = scales_slot(p, &m, m.scale);
    if (m.zero != NULL)
        s->in[HN_ROWS_ZERO].slot = scales_slot(p, &m, m.zero);
    if ((s->in[HN_ROWS_AT].slot = hn_plan_slot(p, places, error)) == NULL ||
        (s->out[0].slot = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error)) == NULL) {
        hn_step_free(s);
        return FALSE;
    }
    return hn_plan_add_internal(p, s, done, error);
}

gboolean hn_plan_add_unpacked(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    *done = FALSE;
    if (!p->bytes || hn_node_out(n, 0) == NULL || hn_bytes_dtype(p, hn_node_out(n, 0)) != HN_F32)
        return TRUE;
    if (n->op == &hn_op_gather)
        return add_rows(p, n, done, error);
    return n->op->quant.kind == HN_Q_WEIGHTED ? add_product(p, n, done, error) : TRUE;
}
