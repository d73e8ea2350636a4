/*
 * MatMul, MatMulInteger, QLinearMatMul: matrix products of stacks of matrices, shaped as numpy.matmul does: the last
 * two dimensions are the matrix, those before broadcast, and a one-dimensional operand is a row (left) or a column
 * (right) whose dimension of size 1 does not appear in the result.
 */
#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/gemm.h"
#include "op/index.h"
#include "op/op.h"
#include "op/tape.h"
#include "op/types.h"

/* --- shapes ------------------------------------------------------------------------------------------------------ */

static const HnFusedMatMul plain = { FALSE, FALSE };

/* Output 0 from the shapes of inputs a and b. */
static void matmul_infer_shape(HnInfer *x, int a, int b, const HnFusedMatMul *t, HnDtype dtype)
{
    int ra = hn_infer_rank(x, a), rb = hn_infer_rank(x, b), rank = 0;
    HnDim dims[HN_MAX_RANK];
    if (ra == 0 || rb == 0) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is a scalar", ra == 0 ? a : b);
        return;
    }
    if (ra < 0 || rb < 0) {
        hn_infer_out_unknown(x, 0, dtype);
        return;
    }
    if ((t->trans_a && ra == 1) || (t->trans_b && rb == 1)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "a vector is to be transposed");
        return;
    }
    const int ka = t->trans_a ? ra - 2 : ra - 1, kb = t->trans_b ? rb - 1 : rb > 1 ? rb - 2 : 0;
    if (hn_dim_differ(hn_infer_dim(x, a, ka), hn_infer_dim(x, b, kb))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the inner sizes of inputs %d and %d differ", a, b);
        return;
    }
    int nb = MAX(MAX(ra, rb) - 2, 0);
    for (; rank < nb; rank++) {
        int ia = ra - 2 - nb + rank, ib = rb - 2 - nb + rank;
        HnDim da = ia >= 0 ? hn_infer_dim(x, a, ia) : hn_dim(1), db = ib >= 0 ? hn_infer_dim(x, b, ib) : hn_dim(1);
        if (!hn_dim_is(da, 1) && !hn_dim_is(db, 1) && hn_dim_differ(da, db)) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "dimension %d of the stacks of matrices does not broadcast", rank);
            return;
        }
        if (hn_dim_is(da, 1))
            dims[rank] = db;
        else if (hn_dim_is(db, 1) || hn_dim_equal(da, db))
            dims[rank] = da;
        else /* a known size above 1 wins: the other is the same or 1 */
            dims[rank] = da.known ? da : db.known ? db : hn_dim_unknown();
    }
    if (ra > 1)
        dims[rank++] = hn_infer_dim(x, a, t->trans_a ? ra - 1 : ra - 2);
    if (rb > 1)
        dims[rank++] = hn_infer_dim(x, b, t->trans_b ? rb - 2 : rb - 1);
    hn_infer_out(x, 0, dtype, rank, dims);
}

typedef struct {
    int64_t m, n, k;
    int stacks; /* leading dimensions of the output */
    int rank;   /* of the output */
    int64_t dims[HN_MAX_RANK + 2];
    int64_t a_strides[HN_MAX_RANK], b_strides[HN_MAX_RANK]; /* of the leading dimensions, in elements */
    HnFusedMatMul t;
} Plan;

static gboolean matmul_plan(HnEval *e, const HnTensor *a, const HnTensor *b, const HnFusedMatMul *t, Plan *p)
{
    if (a->ndim == 0 || b->ndim == 0) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "an operand is a scalar");
        return FALSE;
    }
    if ((t->trans_a && a->ndim == 1) || (t->trans_b && b->ndim == 1)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "a vector is to be transposed");
        return FALSE;
    }
    p->t = *t;
    p->m = a->ndim > 1 ? a->dims[a->ndim - (t->trans_a ? 1 : 2)] : 1;
    p->k = a->dims[a->ndim - (t->trans_a ? 2 : 1)];
    p->n = b->ndim > 1 ? b->dims[b->ndim - (t->trans_b ? 2 : 1)] : 1;
    int64_t kb = b->dims[b->ndim > 1 ? b->ndim - (t->trans_b ? 1 : 2) : 0], sa = p->m * p->k, sb = p->k * p->n;
    if (kb != p->k) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "inner sizes %" PRId64 " and %" PRId64 " differ", p->k, kb);
        return FALSE;
    }
    p->stacks = MAX(MAX(a->ndim, b->ndim) - 2, 0);
    for (int i = p->stacks - 1; i >= 0; i--) {
        int ia = a->ndim - 2 - p->stacks + i, ib = b->ndim - 2 - p->stacks + i;
        int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
        if (da != db && da != 1 && db != 1) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "sizes %" PRId64 " and %" PRId64 " do not broadcast", da, db);
            return FALSE;
        }
        p->dims[i] = da == 1 ? db : da;
        p->a_strides[i] = da == 1 ? 0 : sa;
        p->b_strides[i] = db == 1 ? 0 : sb;
        sa *= da;
        sb *= db;
    }
    p->rank = p->stacks;
    if (a->ndim > 1)
        p->dims[p->rank++] = p->m;
    if (b->ndim > 1)
        p->dims[p->rank++] = p->n;
    return TRUE;
}

/* a and b hold elements of dtype in the layout of the operands that p was made from; y gets m x n per stack. */
static void matmul_run(const Plan *p, HnDtype dtype, const void *a, const void *b, void *y)
{
    size_t size = hn_dtype_size(dtype);
    int64_t count = hn_span(p->dims, 0, p->stacks), m = p->m;
    if (count == 0 || p->m == 0 || p->n == 0)
        return;
    gboolean b_alone = TRUE, a_dense = TRUE; /* one matrix b for all, and a runs through: one tall product */
    int64_t dense = p->m * p->k;
    for (int i = p->stacks - 1; i >= 0; i--) {
        b_alone = b_alone && (p->b_strides[i] == 0 || p->dims[i] == 1);
        a_dense = a_dense && (p->a_strides[i] == dense || p->dims[i] == 1);
        dense *= p->dims[i];
    }
    if (b_alone && a_dense && !p->t.trans_a) {
        m *= count;
        count = 1;
    }
    int64_t idx[HN_MAX_RANK] = { 0 }, off[2] = { 0, 0 };
    int64_t *strides[2] = { (int64_t *)p->a_strides, (int64_t *)p->b_strides };
    for (int64_t s = 0; s < count; s++) {
        HnGemm g = {
            .m = m,
            .n = p->n,
            .k = p->k,
            .a = (const char *)a + (size_t)off[0] * size,
            .b = (const char *)b + (size_t)off[1] * size,
            .a_row = p->t.trans_a ? 1 : p->k,
            .a_col = p->t.trans_a ? p->m : 1,
            .b_row = p->t.trans_b ? 1 : p->n,
            .b_col = p->t.trans_b ? p->k : 1,
            .c = (char *)y + (size_t)(s * p->m * p->n) * size,
            .c_row = p->n,
            .alpha = 1,
        };
        hn_gemm(dtype, &g);
        hn_index_next(p->stacks, p->dims, idx, 2, strides, off);
    }
}

static void matmul_cost_of(const HnInfer *x, HnCost *c, int a, const HnFusedMatMul *t)
{
    int rank = hn_infer_rank(x, a);
    c->flops = rank > 0 ? 2 * hn_type_count(x->out[0]) * (double)hn_infer_dim(x, a, rank - (t->trans_a ? 2 : 1)).n : 0;
}

/* --- MatMul ------------------------------------------------------------------------------------------------------ */

static void matmul_infer(HnInfer *x)
{
    HnDtype dtype = hn_infer_dtype(x, 0);
    matmul_infer_shape(x, 0, 1, &plain, dtype != HN_UNDEFINED ? dtype : hn_infer_dtype(x, 1));
}

static void matmul_cost(const HnInfer *x, HnCost *c)
{
    matmul_cost_of(x, c, 0, &plain);
}

static void matmul_ref(HnEval *e)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1);
    Plan p;
    void *y;
    if (matmul_plan(e, a, b, &plain, &p) && (y = hn_eval_out(e, 0, a->dtype, p.rank, p.dims)) != NULL)
        matmul_run(&p, a->dtype, a->data, b->data, y);
}

/* The last two axes exchanged. */
static HnValue *turned(HnTape *t, HnValue *v, int rank)
{
    int64_t perm[HN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return hn_build_transpose(t->build, v, perm, rank);
}

static HnValue *with_axis(HnTape *t, HnValue *v, int64_t axis)
{
    return hn_build_op2(t->build, "Unsqueeze", v, hn_build_list(t->build, &axis, 1));
}

/* [..., k] as one matrix of that many columns. */
static HnValue *rows_of(HnTape *t, HnValue *v)
{
    HnNode *n = hn_build_node(t->build, "Flatten", NULL, 1, &v, 1);
    hn_node_set_int(n, "axis", -1);
    return hn_node_out(n, 0);
}

/* dA = dY B', dB = A' dY, both summed over the axes of the batch that were broadcast. */
static void matmul_grad(HnTape *t)
{
    int ra = hn_tape_rank(t, 0), rb = hn_tape_rank(t, 1);
    HnValue *a = hn_tape_in(t, 0), *b = hn_tape_in(t, 1), *dy = hn_tape_dy(t, 0);
    if (ra < 1 || rb < 1) {
        hn_tape_refuse(t, "the number of dimensions is not known");
        return;
    }
    const gboolean row = ra == 1, column = rb == 1;
    if (column) {
        b = with_axis(t, b, 1);
        dy = with_axis(t, dy, -1);
        rb = 2;
    }
    if (row) {
        a = with_axis(t, a, 0);
        dy = with_axis(t, dy, -2);
        ra = 2;
    }
    if (hn_tape_needs(t, 0)) {
        HnValue *da = hn_build_op2(t->build, "MatMul", dy, turned(t, b, rb));
        da = rb > 2 ? hn_tape_sum_like(t, da, a) : da;
        hn_tape_give(t, 0, row ? hn_tape_reshape_like(t, da, hn_tape_in(t, 0)) : da);
    }
    if (!hn_tape_needs(t, 1))
        return;
    HnValue *db;
    if (rb == 2) { /* weights: one product over all rows of the batch */
        HnNode *n = hn_build_node(t->build, "Gemm", NULL, 2, (HnValue *[]){ rows_of(t, a), rows_of(t, dy) }, 1);
        hn_node_set_int(n, "transA", 1);
        db = hn_node_out(n, 0);
    } else {
        db = hn_tape_sum_like(t, hn_build_op2(t->build, "MatMul", turned(t, a, ra), dy), b);
    }
    hn_tape_give(t, 1, column ? hn_tape_reshape_like(t, db, hn_tape_in(t, 1)) : db);
}

void hn_matmul_batch(HnBatch *b)
{
    hn_batch_matmul(b, 0, 1);
}

const HnOp hn_op_matmul = {
    .name = "MatMul",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 9, 13 },
    .lacks =
        HN_LACKS({ 'T', 9, 0, HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64) }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .in = "TT",
    .out = "T",
    .T = HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64),
    .infer = matmul_infer,
    .cost = matmul_cost,
    .ref = matmul_ref,
    .grad = matmul_grad,
    .batch = hn_matmul_batch,
    .linear = { .weight = 1, .out = -1, .in = -2, .x_axis = -1, .y_axis = -1, .either = TRUE },
    .quant = { .kind = HN_Q_WEIGHTED },
    .range = { .kind = HN_R_PRODUCTS },
};

/* --- FusedMatMul -------------------------------------------------------------------------------------------------- */

static void fusedmatmul_bind(HnBind *b, void *params)
{
    HnFusedMatMul *p = params;
    p->trans_a = hn_bind_bool(b, "transA", FALSE);
    p->trans_b = hn_bind_bool(b, "transB", FALSE);
}

static void fusedmatmul_infer(HnInfer *x)
{
    matmul_infer_shape(x, 0, 1, x->params, hn_infer_dtype(x, 0));
    if (hn_infer_has(x, 2) && hn_infer_rank(x, 2) >= 0 && hn_infer_rank(x, 2) != 1)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the bias is no vector");
}

static void fusedmatmul_cost(const HnInfer *x, HnCost *c)
{
    matmul_cost_of(x, c, 0, x->params);
}

static void fusedmatmul_ref(HnEval *e)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1), *bias = hn_eval_in(e, 2);
    Plan p;
    void *y;
    if (!matmul_plan(e, a, b, e->params, &p))
        return;
    if (bias != NULL && (bias->ndim != 1 || bias->dims[0] != p.n)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the bias does not fit the columns of the product");
        return;
    }
    if ((y = hn_eval_out(e, 0, a->dtype, p.rank, p.dims)) == NULL)
        return;
    matmul_run(&p, a->dtype, a->data, b->data, y);
#define RUN(T)                                                 \
    for (int64_t i = 0; bias != NULL && i < e->out[0]->n; i++) \
        ((T *)y)[i] += ((const T *)bias->data)[i % p.n];
    HN_FOR_FLOAT(a->dtype, RUN)
#undef RUN
}

/* Samples lie along no axis that is exchanged. */
static void fusedmatmul_batch(HnBatch *b)
{
    const HnFusedMatMul *p = b->params;
    const gboolean turned[] = { p->trans_a, p->trans_b };
    for (int i = 0; i < 2; i++)
        if (hn_batch_split(b, i) && turned[i] && b->in[i].at.axis >= hn_batch_rank(b, i) - 2) {
            hn_batch_fail(b, "its samples are in a matrix that is transposed");
            return;
        }
    hn_batch_matmul(b, 0, 1);
}

/* What a plan makes of a MatMul whose operands or result are transposed, or to which a vector is added. */
const HnOp hn_op_fusedmatmul = {
    .name = "FusedMatMul",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1 },
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .params_size = sizeof(HnFusedMatMul),
    .bind = fusedmatmul_bind,
    .infer = fusedmatmul_infer,
    .cost = fusedmatmul_cost,
    .ref = fusedmatmul_ref,
    .batch = fusedmatmul_batch,
};

/* --- 8-bit operands ---------------------------------------------------------------------------------------------- */

/*
 * A parameter of a quantized operand: scale or zero point, NULL where absent. It holds one element, or one per row of
 * the left or column of the right operand: [M], [..., M, 1], [N] or [..., 1, N].
 */
typedef enum { PER_TENSOR, PER_LINE, PER_STACK_LINE, UNFIT } Spread;

static Spread param_spread(const HnTensor *t, const HnTensor *x, gboolean right)
{
    int64_t line = x->ndim < 2 ? 1 : x->dims[x->ndim - (right ? 1 : 2)];
    if (t == NULL || t->n == 1)
        return PER_TENSOR;
    if (t->ndim == 1)
        return t->n == line ? PER_LINE : UNFIT;
    if (t->ndim != x->ndim)
        return UNFIT;
    for (int i = 0; i < t->ndim; i++) {
        gboolean one = i == t->ndim - (right ? 2 : 1);
        if (t->dims[i] != (one ? 1 : x->dims[i]))
            return UNFIT;
    }
    return PER_STACK_LINE;
}

static int64_t param_index(Spread s, int64_t stack, int64_t line, int64_t lines)
{
    return s == PER_TENSOR ? 0 : s == PER_LINE ? line : stack * lines + line;
}

/* x - zero as i32, in scratch memory. */
static int32_t *widen(HnEval *e, const HnTensor *x, const HnTensor *zero, gboolean right, int input)
{
    Spread s = param_spread(zero, x, right);
    if (s == UNFIT) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the zero point of input %d does not fit its shape", input);
        return NULL;
    }
    int32_t *y = hn_eval_scratch(e, x->n, sizeof *y);
    int64_t cols = x->ndim > 0 ? x->dims[x->ndim - 1] : 1, rows = x->ndim > 1 ? x->dims[x->ndim - 2] : 1;
    if (right && x->ndim == 1) {
        rows = cols;
        cols = 1;
    }
    for (int64_t i = 0, r = 0; y != NULL && i < x->n; i += cols, r++)
        for (int64_t c = 0; c < cols; c++) {
            int64_t z = param_index(s, r / rows, right ? c : r % rows, right ? cols : rows);
            int32_t v = x->dtype == HN_I8 ? ((const int8_t *)x->data)[i + c] : ((const uint8_t *)x->data)[i + c];
            if (zero != NULL)
                v -= zero->dtype == HN_I8 ? ((const int8_t *)zero->data)[z] : ((const uint8_t *)zero->data)[z];
            y[i + c] = v;
        }
    return y;
}

/* The product in i32. y: p's output, or scratch memory made here when it is NULL. NULL: failed. */
static int32_t *integer_product(HnEval *e, const Plan *p, int a, const HnTensor *za, int b, const HnTensor *zb,
                                int32_t *y)
{
    int32_t *wa = widen(e, hn_eval_in(e, a), za, FALSE, a);
    int32_t *wb = wa != NULL ? widen(e, hn_eval_in(e, b), zb, TRUE, b) : NULL;
    int64_t n;
    if (wb != NULL && y == NULL) {
        if (hn_dims_count(p->rank, p->dims, &n))
            y = hn_eval_scratch(e, n, sizeof *y);
        else
            hn_eval_fail(e, HN_ERROR_SHAPE, "the output is too large");
    }
    if (wb != NULL && y != NULL)
        matmul_run(p, HN_I32, wa, wb, y);
    hn_eval_scratch_free(e, wa);
    hn_eval_scratch_free(e, wb);
    return wb != NULL ? y : NULL;
}

static void matmulinteger_infer(HnInfer *x)
{
    matmul_infer_shape(x, 0, 1, &plain, HN_I32);
}

static void matmulinteger_ref(HnEval *e)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1);
    Plan p;
    int32_t *y;
    if (matmul_plan(e, a, b, &plain, &p) && (y = hn_eval_out(e, 0, HN_I32, p.rank, p.dims)) != NULL)
        integer_product(e, &p, 0, hn_eval_in(e, 2), 1, hn_eval_in(e, 3), y);
}

#define MOST_ONES (1 << 20)

/* A zero point for each sample: of the product with what is to be subtracted, so many times the sums of the columns. */
static void zero_points_apart(HnBatch *b)
{
    const int rank = hn_batch_rank_was(b, 1);
    const HnType *a = b->in[0].was, *w = b->in[1].was;
    if (rank < 1 || !w->dims[MAX(rank - 2, 0)].known) {
        hn_batch_fail(b, "the size of input 1 is not known");
        return;
    }
    const int64_t dims[] = { 1, w->dims[MAX(rank - 2, 0)].n };
    HnTensor *ones =
        dims[1] <= MOST_ONES ? hn_tensor_new(a->dtype, a->rank > 1 ? 2 : 1, dims + (a->rank <= 1), NULL, NULL) : NULL;
    if (ones == NULL) {
        hn_batch_fail(b, "sums of %" PRId64 " products are too long", dims[1]);
        return;
    }
    for (int64_t i = 0; i < ones->n; i++)
        hn_tensor_set_f64(ones, i, 1);
    HnValue *wz = hn_batch_has(b, 3) ? b->in[3].v : NULL, *z = b->in[2].v;
    HnValue *of[] = { hn_batch_weight(b, ones), b->in[1].v, NULL, wz }, *in[] = { b->in[0].v, b->in[1].v, NULL, wz };
    const int n = wz != NULL ? 4 : 2;
    HnValue *sums = b->make(b, "MatMulInteger", of, n, NULL, 0, -1);
    HnValue *y = sums != NULL ? b->make(b, "MatMulInteger", in, n, NULL, 0, -1) : NULL;
    z = y != NULL ? b->make(b, "Cast", &z, 1, "to", HN_I32, -1) : NULL;
    HnValue *less = z != NULL ? b->make(b, "Mul", (HnValue *[]){ sums, z }, 2, NULL, 0, -1) : NULL;
    b->gone = less != NULL && b->make(b, "Sub", (HnValue *[]){ y, less }, 2, NULL, 0, 0) != NULL;
}

/* Inputs [i, end), parameters of a matrix whose samples lie `back` from the back, are the same for all of them: where
 * they are a list it is one per row, or of the right operand one per column. FALSE: failed. */
static gboolean params_are_same(HnBatch *b, int i, int end, gboolean right, int back)
{
    for (; i < end; i++)
        if (!hn_batch_same_along(b, i, hn_batch_rank(b, i) != 1 ? back : back == (right ? 1 : 2) ? 1 : 2))
            return FALSE;
    return TRUE;
}

/* The same of operand x; what was not an axis of its samples is lifted with it. */
static gboolean operand_params_are_same(HnBatch *b, int x, int i, int end, gboolean right)
{
    return !hn_batch_split(b, x) || hn_batch_in_front(b, x) ||
           params_are_same(b, i, end, right, hn_batch_rank(b, x) - b->in[x].at.axis);
}

void hn_matmulinteger_batch(HnBatch *b)
{
    if (hn_batch_split(b, 2) && hn_batch_rank_was(b, 2) == 0 && hn_batch_rank_was(b, 0) > 0)
        zero_points_apart(b);
    else if (operand_params_are_same(b, 0, 2, 3, FALSE) && operand_params_are_same(b, 1, 3, 4, TRUE))
        hn_batch_matmul(b, 0, 1);
}

const HnOp hn_op_matmulinteger = {
    .name = "MatMulInteger",
    .flags = HN_OP_INTEGERS,
    .since = { 10 },
    .in = "TUTU",
    .out = "V",
    .T = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .U = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .V = HN_BIT(HN_I32),
    .min_in = 2,
    .infer = matmulinteger_infer,
    .cost = matmul_cost,
    .ref = matmulinteger_ref,
    .batch = hn_matmulinteger_batch,
};

/* --- QLinearMatMul: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero ----------------------------------------
 */

static void qlinearmatmul_infer(HnInfer *x)
{
    matmul_infer_shape(x, 0, 3, &plain, hn_infer_dtype(x, 7));
}

static void qlinearmatmul_cost(const HnInfer *x, HnCost *c)
{
    matmul_cost_of(x, c, 0, &plain);
}

/* acc: m x n per stack. Rounding comes before the zero point, as in QuantizeLinear. */
static void requantize(HnEval *e, const Plan *p, const int32_t *acc, void *y)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 3);
    const HnTensor *ta = hn_eval_in(e, 1), *tb = hn_eval_in(e, 4), *ty = hn_eval_in(e, 6), *zero = hn_eval_in(e, 7);
    Spread sa = param_spread(ta, a, FALSE), sb = param_spread(tb, b, TRUE);
    const float *fa = ta->data, *fb = tb->data;
    float fy = ((const float *)ty->data)[0];
    gboolean is_signed = zero->dtype == HN_I8;
    double z = is_signed ? ((const int8_t *)zero->data)[0] : ((const uint8_t *)zero->data)[0];
    double lo = is_signed ? INT8_MIN : 0, hi = is_signed ? INT8_MAX : UINT8_MAX;
    int64_t idx[HN_MAX_RANK] = { 0 }, off[2] = { 0, 0 }, count = hn_span(p->dims, 0, p->stacks);
    int64_t *strides[2] = { (int64_t *)p->a_strides, (int64_t *)p->b_strides };
    for (int64_t s = 0, i = 0; p->m > 0 && p->n > 0 && s < count; s++) {
        int64_t stack_a = p->k > 0 ? off[0] / (p->m * p->k) : 0, stack_b = p->k > 0 ? off[1] / (p->k * p->n) : 0;
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t c = 0; c < p->n; c++, i++) {
                float scale = fa[param_index(sa, stack_a, r, p->m)] * fb[param_index(sb, stack_b, c, p->n)] / fy;
                double v = (double)rintf((float)acc[i] * scale) + z;
                v = v != v ? z : CLAMP(v, lo, hi);
                if (is_signed)
                    ((int8_t *)y)[i] = (int8_t)v;
                else
                    ((uint8_t *)y)[i] = (uint8_t)v;
            }
        hn_index_next(p->stacks, p->dims, idx, 2, strides, off);
    }
}

static void qlinearmatmul_ref(HnEval *e)
{
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 3), *zero = hn_eval_in(e, 7);
    Plan p;
    if (param_spread(hn_eval_in(e, 1), a, FALSE) == UNFIT || param_spread(hn_eval_in(e, 4), b, TRUE) == UNFIT) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "a scale does not fit the shape of its operand");
        return;
    }
    if (hn_eval_in(e, 6)->n != 1 || zero->n != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "scale and zero point of the output must hold one element");
        return;
    }
    if (!matmul_plan(e, a, b, &plain, &p))
        return;
    void *y = hn_eval_out(e, 0, zero->dtype, p.rank, p.dims);
    int32_t *acc = y != NULL ? integer_product(e, &p, 0, hn_eval_in(e, 2), 3, hn_eval_in(e, 5), NULL) : NULL;
    if (acc != NULL)
        requantize(e, &p, acc, y);
    hn_eval_scratch_free(e, acc);
}

void hn_qlinear_batch(HnBatch *b)
{
    if (!operand_params_are_same(b, 0, 1, 3, FALSE) || !operand_params_are_same(b, 3, 4, 6, TRUE))
        return;
    hn_batch_matmul(b, 0, 3);
    if (b->out[0].axis >= 0 && hn_type_rank(b->was_out[0]) > b->out[0].axis)
        params_are_same(b, 6, 8, FALSE, hn_type_rank(b->was_out[0]) - b->out[0].axis);
}

const HnOp hn_op_qlinearmatmul = {
    .name = "QLinearMatMul",
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_INTEGERS,
    .since = { 10, 21 },
    .lacks = HN_LACKS({ 'T', 21, 0, HN_BIT(HN_F16) | HN_BIT(HN_BF16) }),
    .in = "UTUVTVTW",
    .out = "W",
    .T = HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16),
    .U = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .V = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .W = HN_BIT(HN_I8) | HN_BIT(HN_U8),
    .infer = qlinearmatmul_infer,
    .cost = qlinearmatmul_cost,
    .ref = qlinearmatmul_ref,
    .batch = hn_qlinear_batch,
};
