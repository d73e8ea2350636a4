/*
 * Transpose, DepthToSpace, SpaceToDepth: the same elements in another order. DepthToSpace got `mode` with opset 11,
 * SpaceToDepth with 28.
 */
#include "op/transpose.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/unbind.h"

static void transpose_bind(HnBind *b, void *params)
{
    HnTranspose *p = params;
    gboolean seen[HN_MAX_RANK] = { FALSE };
    p->perm = hn_bind_ints(b, "perm", &p->n);
    for (int64_t i = 0; i < p->n; i++) {
        int64_t a = p->perm[i];
        if (p->n > HN_MAX_RANK || a < 0 || a >= p->n || seen[a]) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'perm' is not a permutation");
            return;
        }
        seen[a] = TRUE;
    }
}

/* Axis of the input that becomes axis a of the output. */
static int transpose_axis(const HnTranspose *p, int rank, int a)
{
    return p->perm != NULL ? (int)p->perm[a] : rank - 1 - a;
}

static void transpose_infer(HnInfer *x)
{
    const HnTranspose *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (rank < 0 && p->perm != NULL && p->n > 0) {
        for (int a = 0; a < p->n; a++)
            dims[a] = hn_dim_unknown();
        hn_infer_out(x, 0, hn_infer_dtype(x, 0), (int)p->n, dims);
        return;
    }
    if (rank >= 0 && p->perm != NULL && p->n != rank) {
        hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "attribute 'perm' has %" PRId64 " axes, the input %d", p->n, rank);
        return;
    }
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, transpose_axis(p, rank, a));
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
    hn_infer_pass_contents(x, rank);
}

static void transpose_ref(HnEval *e)
{
    const HnTranspose *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    size_t size = hn_move_size(e, x->dtype);
    if (size == 0)
        return;
    if (p->perm != NULL && p->n != x->ndim) {
        hn_eval_fail(e, HN_ERROR_ATTRIBUTE, "attribute 'perm' has %" PRId64 " axes, the input %d", p->n, x->ndim);
        return;
    }
    int64_t dims[HN_MAX_RANK], from[HN_MAX_RANK], strides[HN_MAX_RANK];
    hn_strides(x->ndim, x->dims, from);
    for (int a = 0; a < x->ndim; a++) {
        int s = transpose_axis(p, x->ndim, a);
        dims[a] = x->dims[s];
        strides[a] = from[s];
    }
    void *y = hn_move_out(e, 0, x->dtype, x->ndim, dims);
    if (y == NULL)
        return;
    hn_move_strided(y, x->data, size, x->ndim, dims, strides);
    hn_move_done(e, 0);
}

static void transpose_grad(HnTape *t)
{
    const HnTranspose *p = t->params;
    int64_t back[HN_MAX_RANK];
    if (p->perm == NULL) {
        hn_tape_give(t, 0, hn_build_op1(t->build, "Transpose", hn_tape_dy(t, 0)));
        return;
    }
    for (int64_t i = 0; i < p->n; i++)
        back[p->perm[i]] = i;
    hn_tape_give(t, 0, hn_build_transpose(t->build, hn_tape_dy(t, 0), back, (int)p->n));
}

void hn_transpose_batch(HnBatch *b)
{
    const HnTranspose *p = b->params;
    hn_batch_transpose(b, p->perm);
}

const HnOp hn_op_transpose = {
    .name = "Transpose",
    .since = { 1, 13, 21, 23, 24, 25 },
    .lacks = HN_LACKS(HN_BF16_SINCE(13), HN_SMALL_TYPES('T', 21)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "T",
    .T = HN_T_ALL,
    .params_size = sizeof(HnTranspose),
    .bind = transpose_bind,
    .infer = transpose_infer,
    .ref = transpose_ref,
    .grad = transpose_grad,
    .batch = hn_transpose_batch,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
};

/* --- DepthToSpace, SpaceToDepth -------------------------------------------------------------------------------------
 */

static void block_bind(HnBind *b, HnDepthBlock *p, int64_t mode_since)
{
    static const char *const modes[] = { "DCR", "CRD", NULL };
    hn_bind_require(b, "blocksize");
    p->block = hn_bind_int(b, "blocksize", 1);
    if (p->block < 1 || p->block > G_MAXINT32) /* its square is an int64_t */
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'blocksize' cannot be %" PRId64, p->block);
    p->crd = b->version >= mode_since && hn_bind_word(b, "mode", modes, 0) == 1;
}

static void depthtospace_bind(HnBind *b, void *params)
{
    block_bind(b, params, 11);
}

static void spacetodepth_bind(HnBind *b, void *params)
{
    block_bind(b, params, 28);
}

static void block_infer(HnInfer *x, gboolean to_space)
{
    const HnDepthBlock *p = x->params;
    HnDim d[4], block = hn_dim(p->block), square = hn_dim(p->block * p->block);
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0 && rank != 4)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions instead of 4", rank);
    for (int a = 0; a < 4; a++)
        d[a] = hn_infer_dim(x, 0, a);
    if (to_space && d[1].known && d[1].n % square.n != 0)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " channels do not make blocks of %" PRId64, d[1].n, p->block);
    for (int a = 2; a < 4 && !to_space; a++)
        if (d[a].known && d[a].n % p->block != 0)
            hn_infer_fail(x, HN_ERROR_SHAPE, "axis %d of %" PRId64 " is not cut into blocks of %" PRId64, a, d[a].n,
                          p->block);
    d[1] = to_space ? hn_dim_floor_div(d[1], square) : hn_dim_mul(d[1], square);
    for (int a = 2; a < 4; a++)
        d[a] = to_space ? hn_dim_mul(d[a], block) : hn_dim_floor_div(d[a], block);
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 4, d);
}

static void depthtospace_infer(HnInfer *x)
{
    block_infer(x, TRUE);
}

static void spacetodepth_infer(HnInfer *x)
{
    block_infer(x, FALSE);
}

/* Six axes of one side and the place of each on the other side give the order of the copy. */
static void block_ref(HnEval *e, gboolean to_space)
{
    const HnDepthBlock *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    size_t size = hn_move_size(e, x->dtype);
    int64_t b = p->block, square = b * b;
    if (size == 0)
        return;
    if (x->ndim != 4 || (to_space ? x->dims[1] % square != 0 : x->dims[2] % b != 0 || x->dims[3] % b != 0)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input cannot be cut into blocks of %" PRId64, b);
        return;
    }
    int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2], w = x->dims[3];
    int64_t from[6], dims[6], strides[6], out[4] = { n };
    static const int to_space_dcr[6] = { 0, 3, 4, 1, 5, 2 }, to_space_crd[6] = { 0, 1, 4, 2, 5, 3 };
    static const int to_depth_dcr[6] = { 0, 3, 5, 1, 2, 4 }, to_depth_crd[6] = { 0, 1, 3, 5, 2, 4 };
    const int *perm;
    gboolean fits = TRUE;
    if (to_space) {
        int64_t depth = c / square;
        const int64_t dcr[6] = { n, b, b, depth, h, w }, crd[6] = { n, depth, b, b, h, w };
        memcpy(from, p->crd ? crd : dcr, sizeof from);
        perm = p->crd ? to_space_crd : to_space_dcr;
        out[1] = depth;
        fits = hn_mul_i64(h, b, &out[2]) && hn_mul_i64(w, b, &out[3]);
    } else {
        const int64_t both[6] = { n, c, h / b, b, w / b, b };
        memcpy(from, both, sizeof from);
        perm = p->crd ? to_depth_crd : to_depth_dcr;
        fits = hn_mul_i64(c, square, &out[1]);
        out[2] = h / b;
        out[3] = w / b;
    }
    if (!fits) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the size of the output overflows");
        return;
    }
    void *y = hn_move_out(e, 0, x->dtype, 4, out);
    if (y == NULL)
        return;
    if (x->n > 0) {
        hn_strides(6, from, strides);
        int64_t ordered[6];
        for (int a = 0; a < 6; a++) {
            dims[a] = from[perm[a]];
            ordered[a] = strides[perm[a]];
        }
        hn_move_strided(y, x->data, size, 6, dims, ordered);
    }
    hn_move_done(e, 0);
}

static void depthtospace_ref(HnEval *e)
{
    block_ref(e, TRUE);
}

static void spacetodepth_ref(HnEval *e)
{
    block_ref(e, FALSE);
}

/* What reaches beyond the modes of an opset: six axes by Reshape and Transpose. */
static void depthtospace_unbind(HnUnbind *u)
{
    const HnDepthBlock *p = u->params;
    static const int64_t perm[] = { 0, 1, 4, 2, 5, 3 };
    if (u->to >= 11 || !p->crd)
        return;
    HnValue *x = hn_unbind_in(u, 0), *plane = hn_unbind_shape(u, x, 2, 4);
    HnValue *from[] = { hn_unbind_list(u, (int64_t[]){ 0, -1, p->block, p->block }, 4), plane };
    HnValue *to[] = { hn_unbind_list(u, (int64_t[]){ 0, -1 }, 2),
                      hn_unbind_op2(u, "Mul", plane, hn_unbind_int(u, p->block)) };
    x = hn_unbind_op2(u, "Reshape", x, hn_unbind_concat(u, 2, from, 0));
    x = hn_unbind_transpose(u, x, perm, 6);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Reshape", x, hn_unbind_concat(u, 2, to, 0)));
}

static void spacetodepth_unbind(HnUnbind *u)
{
    const HnDepthBlock *p = u->params;
    static const int64_t perm[] = { 0, 1, 3, 5, 2, 4 };
    if (u->to >= 28 || !p->crd)
        return;
    HnValue *x = hn_unbind_in(u, 0), *block = hn_unbind_int(u, p->block);
    HnValue *plane = hn_unbind_op2(u, "Div", hn_unbind_shape(u, x, 2, 4), block);
    HnValue *from[] = { hn_unbind_list(u, (int64_t[]){ 0, 0, -1, p->block }, 4), hn_unbind_slice(u, plane, 0, 1, 2),
                        block };
    HnValue *to[] = { hn_unbind_list(u, (int64_t[]){ 0, -1 }, 2), plane };
    x = hn_unbind_op2(u, "Reshape", x, hn_unbind_concat(u, 3, from, 0));
    x = hn_unbind_transpose(u, x, perm, 6);
    hn_unbind_take(u, 0, hn_unbind_op2(u, "Reshape", x, hn_unbind_concat(u, 2, to, 0)));
}

static void block_grad(HnTape *t, const char *back)
{
    HnNode *n = hn_build_node(t->build, back, NULL, 1, &t->dy[0], 1);
    hn_node_share_attrs(n, t->node);
    hn_tape_give(t, 0, hn_node_out(n, 0));
}

static void depthtospace_grad(HnTape *t)
{
    block_grad(t, "SpaceToDepth");
}

static void spacetodepth_grad(HnTape *t)
{
    block_grad(t, "DepthToSpace");
}

const HnOp hn_op_depthtospace = {
    .name = "DepthToSpace",
    .since = { 1, 11, 13, 28 },
    .forms = HN_FORMS({ "mode", HN_ATTR_STRING, .since = 11, .word = "DCR" }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "T",
    .T = HN_T_PLAIN,
    .unbind = depthtospace_unbind,
    .params_size = sizeof(HnDepthBlock),
    .bind = depthtospace_bind,
    .infer = depthtospace_infer,
    .ref = depthtospace_ref,
    .grad = depthtospace_grad,
    .batch = hn_batch_first,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
};

const HnOp hn_op_spacetodepth = {
    .name = "SpaceToDepth",
    .since = { 1, 13, 28 },
    .forms = HN_FORMS({ "mode", HN_ATTR_STRING, .since = 28, .word = "DCR" }),
    .lacks = HN_LACKS(HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "T",
    .out = "T",
    .T = HN_T_PLAIN,
    .unbind = spacetodepth_unbind,
    .params_size = sizeof(HnDepthBlock),
    .bind = spacetodepth_bind,
    .infer = spacetodepth_infer,
    .ref = spacetodepth_ref,
    .grad = spacetodepth_grad,
    .batch = hn_batch_first,
    .quant = { .kind = HN_Q_PASS, .bytes = HN_QB_MOVES },
};
