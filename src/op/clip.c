/*
 * Clip: numbers held within [min, max]; where min is larger than max, max comes out. The bounds were attributes before
 * opset 11. A bound that is absent is the smallest or largest finite number; NaN stays.
 */
#include "op/clip.h"
#include "op/batch.h"

#include <float.h>
#include <math.h>

#include "op/elementwise.h"
#include "op/ops.h"
#include "op/tape.h"
#include "op/unbind.h"

static void clip_bind(HnBind *b, void *params)
{
    HnClip *p = params;
    p->attrs = b->version < 11;
    if (!p->attrs)
        return;
    if (b->node->in->len > 1)
        hn_bind_fail(b, HN_ERROR_GRAPH, "bounds are inputs only since opset 11");
    p->has_min = hn_bind_has(b, "min");
    p->has_max = hn_bind_has(b, "max");
    p->min = hn_bind_float(b, "min", -FLT_MAX);
    p->max = hn_bind_float(b, "max", FLT_MAX);
}

static void clip_infer(HnInfer *x)
{
    for (int i = 1; i <= 2; i++) {
        int rank = hn_infer_rank(x, i);
        for (int a = 0; a < rank; a++) /* [1] is taken as a scalar */
            if (hn_infer_dim(x, i, a).known && !hn_dim_is(hn_infer_dim(x, i, a), 1)) {
                hn_infer_fail(x, HN_ERROR_SHAPE, "the %s is not a scalar", i == 1 ? "minimum" : "maximum");
                return;
            }
    }
    hn_infer_same(x);
}

/* Bound i of type T, when there is one. */
static gboolean has_bound(HnEval *e, const HnClip *p, int i, HnDtype dtype, double *attr, const void **value)
{
    if (p->attrs) {
        *attr = (double)(i == 1 ? p->min : p->max);
        *value = NULL;
        return i == 1 ? p->has_min : p->has_max;
    }
    const HnTensor *t = hn_eval_in(e, i);
    if (t == NULL)
        return FALSE;
    if (t->n != 1 || t->dtype != dtype) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the %s is not a scalar of the input's type", i == 1 ? "minimum" : "maximum");
        return FALSE;
    }
    *value = t->data;
    return TRUE;
}

#define CLIP(T, lowest, highest)                                                           \
    {                                                                                      \
        const T *from = t->data;                                                           \
        T *to = y;                                                                         \
        const T lo = !has_lo ? (lowest) : at_lo != NULL ? *(const T *)at_lo : (T)attr_lo;  \
        const T hi = !has_hi ? (highest) : at_hi != NULL ? *(const T *)at_hi : (T)attr_hi; \
        for (int64_t i = 0; i < t->n; i++) {                                               \
            const T v = from[i] < lo ? lo : from[i];                                       \
            to[i] = v > hi ? hi : v;                                                       \
        }                                                                                  \
        break;                                                                             \
    }

static void clip_ref(HnEval *e)
{
    const HnClip *p = e->params;
    const HnTensor *t = hn_eval_in(e, 0);
    const void *at_lo = NULL, *at_hi = NULL;
    double attr_lo = 0, attr_hi = 0;
    gboolean has_lo = has_bound(e, p, 1, t->dtype, &attr_lo, &at_lo);
    gboolean has_hi = has_bound(e, p, 2, t->dtype, &attr_hi, &at_hi);
    void *y = e->error == NULL ? hn_eval_out_like(e, 0, t) : NULL;
    if (y == NULL)
        return;
    if (p->attrs && !hn_dtype_in(t->dtype, HN_T_FLOATS)) {
        hn_eval_fail_type(e, 0);
        return;
    }
    switch (t->dtype) {
    case HN_F32:
        CLIP(float, -FLT_MAX, FLT_MAX)
    case HN_F64:
        CLIP(double, -DBL_MAX, DBL_MAX)
    case HN_I8:
        CLIP(int8_t, INT8_MIN, INT8_MAX)
    case HN_U8:
        CLIP(uint8_t, 0, UINT8_MAX)
    case HN_I16:
        CLIP(int16_t, INT16_MIN, INT16_MAX)
    case HN_U16:
        CLIP(uint16_t, 0, UINT16_MAX)
    case HN_I32:
        CLIP(int32_t, INT32_MIN, INT32_MAX)
    case HN_U32:
        CLIP(uint32_t, 0, UINT32_MAX)
    case HN_I64:
        CLIP(int64_t, INT64_MIN, INT64_MAX)
    case HN_U64:
        CLIP(uint64_t, 0, UINT64_MAX)
    default:
        hn_eval_fail_type(e, 0);
        break;
    }
}

static gboolean fits_attribute(const HnUnbind *u, int i)
{
    double v;
    return hn_unbind_in(u, i) == NULL || (hn_unbind_number(u, i, &v) && (isnan(v) || (double)(float)v == v));
}

/* Bounds that cannot be attributes are those of Max and Min. */
static void clip_unbind(HnUnbind *u)
{
    HnDtype dtype = hn_unbind_dtype(u, 0);
    gboolean ints = dtype != HN_UNDEFINED && !hn_dtype_in(dtype, HN_T_FLOATS);
    if (!(ints && hn_unbind_below(u, 12)) &&
        !(hn_unbind_below(u, 11) && (!fits_attribute(u, 1) || !fits_attribute(u, 2))))
        return;
    HnValue *v = hn_unbind_in(u, 0);
    if (hn_unbind_in(u, 1) != NULL)
        v = hn_unbind_op2(u, "Max", v, hn_unbind_in(u, 1));
    if (hn_unbind_in(u, 2) != NULL)
        v = hn_unbind_op2(u, "Min", v, hn_unbind_in(u, 2));
    hn_unbind_take(u, 0, v);
}

gboolean hn_op_bounds(const HnOp *op, const HnClip *p, HnReadBound read, gconstpointer of, double *lo, double *hi)
{
    if (op == &hn_op_relu) {
        *lo = 0;
        return TRUE;
    }
    if (op != &hn_op_clip)
        return FALSE;
    if (p->attrs) {
        *lo = p->has_min ? (double)p->min : *lo;
        *hi = p->has_max ? (double)p->max : *hi;
    } else if (!read(of, 1, lo) || !read(of, 2, hi)) {
        return FALSE;
    }
    *lo = *lo > *hi ? *hi : *lo;
    return !isnan(*lo) && !isnan(*hi);
}

/* Elements on a bound move with the data, as in PyTorch. */
static void clip_grad(HnTape *t)
{
    const gboolean lo = hn_tape_in(t, 1) != NULL, hi = hn_tape_in(t, 2) != NULL;
    hn_tape_operand(t, 0,
                    lo && hi ? "Where(And(x >= x1, x <= x2), dy, 0)"
                    : lo     ? "Where(x >= x1, dy, 0)"
                    : hi     ? "Where(x <= x2, dy, 0)"
                             : "dy");
    hn_tape_operand(t, 1, hi ? "Where(And(x < x1, x1 <= x2), dy, 0)" : "Where(x < x1, dy, 0)");
    hn_tape_operand(t, 2, lo ? "Where(Or(x > x2, x1 > x2), dy, 0)" : "Where(x > x2, dy, 0)");
}

/* Bounds are one for all samples; those that are not become Max and Min. */
void hn_clip_batch(HnBatch *b)
{
    HnValue *x = b->in[0].v;
    if (!hn_batch_split(b, 1) && !hn_batch_split(b, 2)) {
        hn_batch_elementwise(b);
        return;
    }
    if (hn_batch_has(b, 1))
        x = b->make(b, "Max", (HnValue *[]){ x, b->in[1].v }, 2, NULL, 0, hn_batch_has(b, 2) ? -1 : 0);
    if (x != NULL && hn_batch_has(b, 2))
        x = b->make(b, "Min", (HnValue *[]){ x, b->in[2].v }, 2, NULL, 0, 0);
    b->gone = x != NULL;
}

const HnOp hn_op_clip = {
    .name = "Clip",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_HALF_VIA_F32,
    .since = { 1, 6, 11, 12, 13 },
    .forms =
        HN_FORMS({ "min", HN_ATTR_FLOAT, .until = 11, .input = 1 }, { "max", HN_ATTR_FLOAT, .until = 11, .input = 2 }),
    .lacks = HN_LACKS({ 'T', 12, 0, HN_T_INTS }, HN_BF16_SINCE(13)),
    .wide = HN_WIDE_PICKS,
    .in = "TTT",
    .out = "T",
    .T = HN_T_NUM,
    .min_in = 1,
    .unbind = clip_unbind,
    .params_size = sizeof(HnClip),
    .bind = clip_bind,
    .infer = clip_infer,
    .cost = hn_cost_elementwise,
    .ref = clip_ref,
    .grad = clip_grad,
    .batch = hn_clip_batch,
    .quant = { .kind = HN_Q_ELEMENTWISE, .clamps = TRUE },
};
