/*
 * Gemm: Y = alpha * A' * B' + beta * C with two-dimensional A and B, each possibly transposed. Before opset 7 C had the
 * shape of Y unless `broadcast` was set; since then it broadcasts to Y, and since opset 11 it may be left out.
 */
#include "op/gemm.h"

#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/linear.h"
#include "op/tape.h"
#include "op/unbind.h"

/* --- the product ------------------------------------------------------------------------------------------------- */

enum {
    COLS = 16,   /* columns of a panel of b */
    DEPTH = 256, /* rows of a panel of b: 32 KB of doubles */
    ROWS = 64,   /* rows whose sums are kept at a time */
    TILE = 4,    /* rows of a that share a load of b */
};

/* Truncated into [lo, hi]; NaN is 0. hi is a power of two that T just fails to hold, and cut again by the caller. */
static inline double clamped(double v, double lo, double hi)
{
    return v != v ? 0 : v < lo ? lo : v > hi ? hi : trunc(v);
}

/* Results from a sum and a (possibly NULL) addend: integers are exact where the factors are 1. */
#define DEFINE_DONE_FLOAT(T)                                                       \
    static inline T done_##T(const HnGemm *g, double sum, const T *add)            \
    {                                                                              \
        return (T)(g->alpha * sum + (add != NULL ? g->beta * (double)add[0] : 0)); \
    }
#define DEFINE_DONE_INT(T, S, LO, HI, MAX)                                                   \
    static inline T done_##T(const HnGemm *g, S sum, const T *add)                           \
    {                                                                                        \
        if (g->alpha == 1 && (add == NULL || g->beta == 1))                                  \
            return (T)(sum + (add != NULL ? (S)add[0] : 0));                                 \
        double v = g->alpha * (double)(T)sum + (add != NULL ? g->beta * (double)add[0] : 0); \
        return v >= HI ? MAX : (T)clamped(v, LO, HI);                                        \
    }
DEFINE_DONE_FLOAT(float)
DEFINE_DONE_FLOAT(double)
DEFINE_DONE_INT(int32_t, uint32_t, -0x1p31, 0x1p31, INT32_MAX)
DEFINE_DONE_INT(uint32_t, uint32_t, 0, 0x1p32, UINT32_MAX)
DEFINE_DONE_INT(int64_t, uint64_t, -0x1p63, 0x1p63, INT64_MAX)
DEFINE_DONE_INT(uint64_t, uint64_t, 0, 0x1p64, UINT64_MAX)

/*
 * T: elements, S: sums. A panel of b and a tile of a are turned into S first; the panel is padded to COLS columns, so
 * that the innermost loop has a fixed length. sum: [ROWS, COLS].
 */
#define DEFINE_GEMM(T, S)                                                                                      \
    static inline __attribute__((always_inline)) void tile_##T(S(*sum)[COLS], const S *pa, const S(*pb)[COLS], \
                                                               int64_t depth, int rows)                        \
    {                                                                                                          \
        S s[TILE][COLS];                                                                                       \
        memcpy(s, sum, (size_t)rows * sizeof *sum);                                                            \
        for (int64_t k = 0; k < depth; k++)                                                                    \
            for (int r = 0; r < rows; r++)                                                                     \
                for (int j = 0; j < COLS; j++)                                                                 \
                    s[r][j] += pa[r * DEPTH + k] * pb[k][j];                                                   \
        memcpy(sum, s, (size_t)rows * sizeof *sum);                                                            \
    }                                                                                                          \
                                                                                                               \
    static void panel_##T(const HnGemm *g, S(*sum)[COLS], int64_t i0, int64_t rows, int64_t k0, int64_t depth, \
                          const S(*pb)[COLS])                                                                  \
    {                                                                                                          \
        S pa[TILE * DEPTH];                                                                                    \
        for (int64_t i = 0; i < rows; i += TILE) {                                                             \
            int64_t tile = MIN(TILE, rows - i);                                                                \
            for (int64_t r = 0; r < tile; r++) {                                                               \
                const T *a = (const T *)g->a + (i0 + i + r) * g->a_row + k0 * g->a_col;                        \
                for (int64_t k = 0; k < depth; k++)                                                            \
                    pa[r * DEPTH + k] = (S)a[k * g->a_col];                                                    \
            }                                                                                                  \
            if (tile == TILE)                                                                                  \
                tile_##T(sum + i, pa, pb, depth, TILE);                                                        \
            else                                                                                               \
                for (int64_t r = 0; r < tile; r++)                                                             \
                    tile_##T(sum + i + r, pa + r * DEPTH, pb, depth, 1);                                       \
        }                                                                                                      \
    }                                                                                                          \
                                                                                                               \
    static void gemm_##T(const HnGemm *g)                                                                      \
    {                                                                                                          \
        S pb[DEPTH][COLS], sum[ROWS][COLS];                                                                    \
        for (int64_t j0 = 0; j0 < g->n; j0 += COLS)                                                            \
            for (int64_t i0 = 0; i0 < g->m; i0 += ROWS) {                                                      \
                int64_t cols = MIN(COLS, g->n - j0), rows = MIN(ROWS, g->m - i0);                              \
                memset(sum, 0, sizeof sum);                                                                    \
                for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {                                                 \
                    int64_t depth = MIN(DEPTH, g->k - k0);                                                     \
                    if (cols < COLS)                                                                           \
                        memset(pb, 0, sizeof pb);                                                              \
                    for (int64_t k = 0; k < depth; k++) {                                                      \
                        const T *b = (const T *)g->b + (k0 + k) * g->b_row + j0 * g->b_col;                    \
                        for (int64_t j = 0; j < cols; j++)                                                     \
                            pb[k][j] = (S)b[j * g->b_col];                                                     \
                    }                                                                                          \
                    panel_##T(g, sum, i0, rows, k0, depth, (const S(*)[COLS])pb);                              \
                }                                                                                              \
                for (int64_t i = 0; i < rows; i++) {                                                           \
                    T *c = (T *)g->c + (i0 + i) * g->c_row + j0;                                               \
                    const T *add = g->add;                                                                     \
                    if (add != NULL)                                                                           \
                        add += (i0 + i) * g->add_row + j0 * g->add_col;                                        \
                    for (int64_t j = 0; j < cols; j++) {                                                       \
                        const T *d = add != NULL ? add + j * g->add_col : NULL;                                \
                        c[j] = done_##T(g, sum[i][j], d);                                                      \
                    }                                                                                          \
                }                                                                                              \
            }                                                                                                  \
    }

DEFINE_GEMM(float, double)
DEFINE_GEMM(double, double)
DEFINE_GEMM(int32_t, uint32_t)
DEFINE_GEMM(uint32_t, uint32_t)
DEFINE_GEMM(int64_t, uint64_t)
DEFINE_GEMM(uint64_t, uint64_t)

void hn_gemm(HnDtype dtype, const HnGemm *g)
{
    switch (dtype) {
    case HN_F32:
        gemm_float(g);
        break;
    case HN_F64:
        gemm_double(g);
        break;
    case HN_I32:
        gemm_int32_t(g);
        break;
    case HN_U32:
        gemm_uint32_t(g);
        break;
    case HN_I64:
        gemm_int64_t(g);
        break;
    case HN_U64:
        gemm_uint64_t(g);
        break;
    default:
        break;
    }
}

/* --- the operator ------------------------------------------------------------------------------------------------ */

static void gemm_bind(HnBind *b, void *params)
{
    HnGemmParams *p = params;
    p->alpha = hn_bind_float(b, "alpha", 1);
    p->beta = hn_bind_float(b, "beta", 1);
    p->trans_a = hn_bind_bool(b, "transA", FALSE);
    p->trans_b = hn_bind_bool(b, "transB", FALSE);
    p->exact = b->version < 7 && !hn_bind_bool(b, "broadcast", FALSE);
    if (b->version < 11 && hn_node_in(b->node, 2) == NULL)
        hn_bind_fail(b, HN_ERROR_GRAPH, "input 2 is missing");
}

static void gemm_infer(HnInfer *x)
{
    const HnGemmParams *p = x->params;
    HnDtype dtype = hn_infer_dtype(x, 0) != HN_UNDEFINED ? hn_infer_dtype(x, 0) : hn_infer_dtype(x, 1);
    HnDim dims[2] = { hn_dim_unknown(), hn_dim_unknown() }, k[2] = { hn_dim_unknown(), hn_dim_unknown() };
    for (int i = 0; i < 2; i++) {
        int rank = hn_infer_rank(x, i);
        if (rank >= 0 && rank != 2) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, not 2", i, rank);
            return;
        }
        if (rank < 0)
            continue;
        gboolean swap = i == 0 ? p->trans_a : p->trans_b;
        dims[i] = hn_infer_dim(x, i, swap ? 1 - i : i);
        k[i] = hn_infer_dim(x, i, swap ? i : 1 - i);
    }
    if (hn_dim_differ(k[0], k[1])) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the inner sizes of inputs 0 and 1 differ");
        return;
    }
    int rank = hn_infer_rank(x, 2);
    if (rank > 2 || (rank >= 0 && rank < 2 && p->exact)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 2 has %d dimensions, which do not fit the output", rank);
        return;
    }
    for (int i = 0; i < rank; i++) {
        HnDim d = hn_infer_dim(x, 2, i);
        if ((p->exact || !hn_dim_is(d, 1)) && hn_dim_differ(d, dims[2 - rank + i])) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "size %d of input 2 does not fit the output", i);
            return;
        }
    }
    hn_infer_out(x, 0, dtype, 2, dims);
}

static void gemm_cost(const HnInfer *x, HnCost *c)
{
    const HnGemmParams *p = x->params;
    c->flops = 2 * hn_type_count(x->out[0]) * (double)hn_infer_dim(x, 0, p->trans_a ? 0 : 1).n;
}

static void gemm_ref(HnEval *e)
{
    const HnGemmParams *p = e->params;
    const HnTensor *a = hn_eval_in(e, 0), *b = hn_eval_in(e, 1), *c = hn_eval_in(e, 2);
    if (a->ndim != 2 || b->ndim != 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "inputs have %d and %d dimensions, not 2", a->ndim, b->ndim);
        return;
    }
    int ta = p->trans_a, tb = p->trans_b;
    HnGemm g = {
        .m = a->dims[ta],
        .k = a->dims[1 - ta],
        .n = b->dims[1 - tb],
        .a = a->data,
        .b = b->data,
        .a_row = ta ? 1 : a->dims[1],
        .a_col = ta ? a->dims[1] : 1,
        .b_row = tb ? 1 : b->dims[1],
        .b_col = tb ? b->dims[1] : 1,
        .alpha = (double)p->alpha,
        .beta = (double)p->beta,
    };
    int64_t dims[2] = { g.m, g.n };
    if (b->dims[tb] != g.k) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "inner sizes %" PRId64 " and %" PRId64 " differ", g.k, b->dims[tb]);
        return;
    }
    if (c != NULL) {
        int64_t last = c->ndim > 0 ? c->dims[c->ndim - 1] : 1, first = c->ndim > 1 ? c->dims[0] : 1;
        gboolean same = c->ndim == 2 && first == g.m && last == g.n;
        gboolean fits = c->ndim <= 2 && (first == 1 || first == g.m) && (last == 1 || last == g.n);
        if (!same && (p->exact || !fits)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input 2 does not fit the output's %" PRId64 " x %" PRId64, g.m, g.n);
            return;
        }
        g.add = p->beta != 0 ? c->data : NULL;
        g.add_row = first == 1 ? 0 : last;
        g.add_col = last == 1 ? 0 : 1;
    }
    g.c_row = g.n;
    g.c = hn_eval_out(e, 0, a->dtype, 2, dims);
    if (g.c != NULL)
        hn_gemm(a->dtype, &g);
}

static void gemm_unbind(HnUnbind *u)
{
    HnDtype dtype = hn_unbind_dtype(u, 0);
    if (!hn_unbind_below(u, 11) || hn_unbind_in(u, 2) != NULL)
        return;
    if (dtype == HN_UNDEFINED) {
        hn_unbind_refuse(u, "input 2 was not optional before opset 11, and its type is not known");
        return;
    }
    int64_t one = 1;
    hn_node_set_in(u->node, 2, hn_unbind_fill(u, dtype, 1, &one, 0));
}

static void gemm_linear(const void *params, HnLinearView *v)
{
    const HnGemmParams *p = params;
    v->x_turned = p->trans_a;
    v->x_axis = p->trans_a ? 0 : 1;
    v->w_turned = p->trans_b;
    v->out = p->trans_b ? 0 : 1;
    v->in = p->trans_b ? 1 : 0;
    v->alpha = (double)p->alpha;
    v->beta = (double)p->beta;
}

static HnValue *product(HnTape *t, HnValue *a, HnValue *b, gboolean trans_a, gboolean trans_b)
{
    const HnGemmParams *p = t->params;
    HnNode *n = hn_build_node(t->build, "Gemm", NULL, 2, (HnValue *[]){ a, b }, 1);
    hn_node_set_int(n, "transA", trans_a);
    hn_node_set_int(n, "transB", trans_b);
    hn_node_set_float(n, "alpha", p->alpha);
    return hn_node_out(n, 0);
}

static void gemm_grad(HnTape *t)
{
    const HnGemmParams *p = t->params;
    HnValue *a = hn_tape_in(t, 0), *b = hn_tape_in(t, 1), *dy = hn_tape_dy(t, 0);
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, p->trans_a ? product(t, b, dy, p->trans_b, TRUE) : product(t, dy, b, FALSE, !p->trans_b));
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1, p->trans_b ? product(t, dy, a, TRUE, p->trans_a) : product(t, a, dy, !p->trans_a, FALSE));
    t->number[0] = (double)p->beta;
    hn_tape_operand(t, 2, "dy * a");
}

void hn_gemm_batch(HnBatch *b)
{
    const HnGemmParams *p = b->params;
    hn_batch_gemm(b, p->trans_a, p->trans_b);
}

const HnOp hn_op_gemm = {
    .name = "Gemm",
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 1, 6, 7, 9, 11, 13 },
    .lacks =
        HN_LACKS({ 'T', 9, 0, HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64) }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_WRAPS,
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS | HN_BIT(HN_I32) | HN_BIT(HN_I64) | HN_BIT(HN_U32) | HN_BIT(HN_U64),
    .min_in = 2,
    .unbind = gemm_unbind,
    .params_size = sizeof(HnGemmParams),
    .bind = gemm_bind,
    .infer = gemm_infer,
    .cost = gemm_cost,
    .ref = gemm_ref,
    .grad = gemm_grad,
    .batch = hn_gemm_batch,
    .linear = { .weight = 1, .bias = 2, .out = 1, .in = 0, .x_axis = 1, .y_axis = 1, .read = gemm_linear },
    .quant = { .kind = HN_Q_WEIGHTED },
    .range = { .kind = HN_R_PRODUCTS, .addends = 1 << 2 },
};
