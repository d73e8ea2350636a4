/*
 * Where: elements of x where the condition holds, of y elsewhere; all three broadcast.
 */
#include <string.h>

#include "op/elementwise.h"
#include "op/tape.h"
#include "op/types.h"

typedef struct {
    uint64_t half[2];
} Wide; /* a complex number of two doubles */

/* A row of the output: c ? x : y, each advancing by its step. */
#define DEFINE_ROW(T)                                                                                \
    static void row_##T(T *z, const uint8_t *c, const T *x, const T *y, int64_t n, const int *step)  \
    {                                                                                                \
        if (step[0] == 0) {                                                                          \
            const T *from = c[0] != 0 ? x : y;                                                       \
            int s = c[0] != 0 ? step[1] : step[2];                                                   \
            for (int64_t i = 0; i < n; i++)                                                          \
                z[i] = from[s != 0 ? i : 0];                                                         \
            return;                                                                                  \
        }                                                                                            \
        const int64_t sx = step[1], sy = step[2];                                                    \
        for (int64_t i = 0; i < n; i++) {                                                            \
            const T yes = x[i * sx], no = y[i * sy]; /* both, so that nothing depends on a branch */ \
            z[i] = c[i] != 0 ? yes : no;                                                             \
        }                                                                                            \
    }
DEFINE_ROW(uint8_t)
DEFINE_ROW(uint16_t)
DEFINE_ROW(uint32_t)
DEFINE_ROW(uint64_t)
DEFINE_ROW(Wide)

static void where_strings(HnEval *e, HnBroadcast *p, const HnTensor *c, const HnTensor *x, const HnTensor *y)
{
    int64_t at = 0;
    do {
        for (int64_t i = 0; i < p->n; i++, at++) {
            int j = ((const uint8_t *)c->data)[p->off[0] + i * p->step[0]] != 0 ? 1 : 2;
            hn_tensor_set_string(e->out[0], at, hn_tensor_get_string(j == 1 ? x : y, p->off[j] + i * p->step[j]));
        }
    } while (hn_broadcast_next(p));
}

static void where_ref(HnEval *e)
{
    const HnTensor *c = hn_eval_in(e, 0), *x = hn_eval_in(e, 1), *y = hn_eval_in(e, 2);
    int64_t dims[HN_MAX_RANK], strides[3][HN_MAX_RANK], n;
    if (x->dtype != y->dtype || c->dtype != HN_BOOL) {
        hn_eval_fail_type(e, c->dtype != HN_BOOL ? 0 : 2);
        return;
    }
    int ndim = hn_eval_broadcast(e, x, y, dims);
    if (ndim < 0)
        return;
    if (!hn_dims_count(ndim, dims, &n)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the broadcast shape overflows");
        return;
    }
    g_autoptr(HnTensor) both = hn_tensor_new_borrowed(HN_U8, ndim, dims, (void *)x->data);
    if ((ndim = hn_eval_broadcast(e, c, both, dims)) < 0)
        return;
    uint8_t *z = hn_eval_out(e, 0, x->dtype, ndim, dims);
    if (z == NULL)
        return;
    hn_broadcast_strides(c, ndim, strides[0]);
    hn_broadcast_strides(x, ndim, strides[1]);
    hn_broadcast_strides(y, ndim, strides[2]);
    HnBroadcast p;
    hn_broadcast_start(&p, ndim, dims, 3, strides);
    if (p.total == 0)
        return;
    if (x->dtype == HN_STRING) {
        where_strings(e, &p, c, x, y);
        return;
    }
    size_t size = hn_dtype_size(x->dtype);
    const uint8_t *cond = c->data, *yes = x->data, *no = y->data;
    do {
        const void *from_x = yes + (size_t)p.off[1] * size, *from_y = no + (size_t)p.off[2] * size;
#define ROW(T) row_##T((T *)(void *)z, cond + p.off[0], from_x, from_y, p.n, p.step);
        switch (size) {
            HN_CASE(1, uint8_t, ROW)
            HN_CASE(2, uint16_t, ROW)
            HN_CASE(4, uint32_t, ROW)
            HN_CASE(8, uint64_t, ROW)
            HN_CASE(16, Wide, ROW)
        default:
            hn_eval_fail_type(e, 1);
            return;
        }
#undef ROW
        z += (size_t)p.n * size;
    } while (hn_broadcast_next(&p));
}

static void where_infer(HnInfer *x)
{
    HnDim dims[HN_MAX_RANK];
    int rank = hn_infer_broadcast(x, 0, 2, dims);
    HnDtype dtype = hn_infer_dtype(x, 1) != HN_UNDEFINED ? hn_infer_dtype(x, 1) : hn_infer_dtype(x, 2);
    hn_infer_out(x, 0, dtype, rank, dims);
    g_autofree HnContents *c = hn_infer_contents(x, 0);
    g_autofree HnContents *a = hn_infer_contents(x, 1);
    g_autofree HnContents *b = hn_infer_contents(x, 2);
    if (a == NULL || b == NULL || c == NULL)
        return;
    int n = a->n != 1 ? a->n : b->n != 1 ? b->n : c->n;
    const HnContents *const all[] = { a, b, c };
    for (int i = 0; i < 3; i++)
        if (all[i]->n != 1 && all[i]->n != n)
            return;
    HnContents *out = hn_contents_new(MAX(c->rank, MAX(a->rank, b->rank)), n);
    for (int k = 0; k < n; k++) {
        HnDim yes = a->d[a->n == 1 ? 0 : k], no = b->d[b->n == 1 ? 0 : k], cond = c->d[c->n == 1 ? 0 : k];
        if (cond.known)
            out->d[k] = cond.n != 0 ? yes : no;
        else if (hn_dim_equal(yes, no))
            out->d[k] = yes;
    }
    hn_infer_out_contents(x, 0, out);
}

static void where_grad(HnTape *t)
{
    hn_tape_operand(t, 1, "Where(x0, dy, 0)");
    hn_tape_operand(t, 2, "Where(x0, 0, dy)");
}

const HnOp hn_op_where = {
    .name = "Where",
    .flags = HN_OP_ELEMENTWISE,
    .since = { 9, 16 },
    .lacks = HN_LACKS(HN_BF16_SINCE(16)),
    .wide = HN_WIDE_PICKS,
    .in = "bTT",
    .out = "T",
    .T = HN_T_COMPUTE | HN_BIT(HN_STRING) | HN_BIT(HN_C64) | HN_BIT(HN_C128),
    .infer = where_infer,
    .cost = hn_cost_elementwise,
    .ref = where_ref,
    .grad = where_grad,
    .quant = { .kind = HN_Q_ELEMENTWISE },
};
