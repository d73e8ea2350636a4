#include "op/quantbinary.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/quantlinear.h"

#define INPUT(e, name) hn_eval_in(e, HN_QUANTBINARY_##name)

static void pair_bind(HnBind *b, void *params)
{
    HnQuantBinary *p = params;
    p->lo = hn_bind_float(b, "lo", -INFINITY);
    p->hi = hn_bind_float(b, "hi", INFINITY);
    p->minus_a = hn_bind_bool(b, "minus_a", FALSE);
    p->minus_b = hn_bind_bool(b, "minus_b", FALSE);
}

static void pair_infer(HnInfer *x)
{
    HnDim dims[HN_MAX_RANK];
    const int rank = hn_infer_broadcast(x, HN_QUANTBINARY_A, HN_QUANTBINARY_B, dims);
    if (x->error == NULL)
        hn_infer_out(x, 0,
                     !hn_infer_has(x, HN_QUANTBINARY_Y_SCALE)  ? HN_F32
                     : !hn_infer_has(x, HN_QUANTBINARY_Y_ZERO) ? HN_U8
                                                               : hn_infer_dtype(x, HN_QUANTBINARY_Y_ZERO),
                     rank, dims);
}

HnQuantBinarySteps hn_quant_add_steps(const HnQuantBinary *p, float a_scale, int a_zero, float b_scale, int b_zero,
                                      float y_scale)
{
    const float a = (p->minus_a ? -a_scale : a_scale) / y_scale, b = (p->minus_b ? -b_scale : b_scale) / y_scale;
    return (HnQuantBinarySteps){ a, -((float)a_zero * a), b, -((float)b_zero * b) };
}

HnQuantBinarySteps hn_quant_mul_steps(float a_scale, int a_zero, float b_scale, int b_zero, float y_scale)
{
    const float both = a_scale * b_scale / y_scale;
    return (HnQuantBinarySteps){ 1, (float)-a_zero, both, -((float)b_zero * both) };
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

static gboolean is_one(HnEval *e, int i)
{
    const HnTensor *t = hn_eval_in(e, i);
    if (t == NULL || t->n == 1)
        return TRUE;
    hn_eval_fail(e, HN_ERROR_SHAPE, "a scale or zero point has another number of elements");
    return FALSE;
}

static float number(const HnTensor *t, float otherwise)
{
    return t != NULL ? (float)hn_tensor_get_f64(t, 0) : otherwise;
}

static int whole(const HnTensor *t)
{
    return t != NULL ? (int)hn_tensor_get_i64(t, 0) : 0;
}

static void pair_ref(HnEval *e, gboolean product)
{
    const HnQuantBinary *p = e->params;
    const HnTensor *a = INPUT(e, A), *b = INPUT(e, B), *yz = INPUT(e, Y_ZERO), *ys = INPUT(e, Y_SCALE);
    int64_t dims[HN_MAX_RANK], strides[2][HN_MAX_RANK], idx[HN_MAX_RANK] = { 0 }, off[2] = { 0 };
    int64_t *const rows[2] = { strides[0], strides[1] };
    for (int i = HN_QUANTBINARY_A_SCALE; i < HN_QUANTBINARY_INPUTS; i++)
        if (!is_one(e, i))
            return;
    if ((b->dtype == HN_F32) != (INPUT(e, B_SCALE) == NULL)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "input 1 is of bytes with a scale, or of f32 without");
        return;
    }
    const int rank = hn_eval_broadcast(e, a, b, dims), zero = whole(yz);
    const HnDtype dtype = ys == NULL ? HN_F32 : yz == NULL ? HN_U8 : yz->dtype;
    void *y = rank >= 0 ? hn_eval_out(e, 0, dtype, rank, dims) : NULL;
    if (y == NULL)
        return;
    const float step = number(ys, 1), as = number(INPUT(e, A_SCALE), 1), bs = number(INPUT(e, B_SCALE), 1);
    const int az = whole(INPUT(e, A_ZERO)), bz = whole(INPUT(e, B_ZERO));
    const HnQuantBinarySteps k =
        product ? hn_quant_mul_steps(as, az, bs, bz, step) : hn_quant_add_steps(p, as, az, bs, bz, step);
    const HnQuantProduct limits = { .lo = p->lo, .hi = p->hi };
    const HnQuantBounds bound =
        dtype != HN_F32 ? hn_quant_bounds(&limits, dtype, step, zero) : (HnQuantBounds){ p->lo, p->hi };
    int64_t n = 0;
    if (!hn_dims_count(rank, dims, &n))
        n = 0;
    hn_broadcast_strides(a, rank, strides[0]);
    hn_broadcast_strides(b, rank, strides[1]);
    for (int64_t i = 0; i < n; i++, hn_index_next(rank, dims, idx, 2, rows, off)) {
        const float left = (float)hn_tensor_get_f64(a, off[0]) * k.a_by + k.a_plus;
        const float right = (float)hn_tensor_get_f64(b, off[1]) * k.b_by + k.b_plus;
        float v = product ? left * right : left + right;
        if (dtype == HN_F32) {
            v = bound.lo > v ? bound.lo : v;
            ((float *)y)[i] = bound.hi < v ? bound.hi : v;
            continue;
        }
        v = v > bound.lo ? v : bound.lo; /* which NaN becomes */
        v = v < bound.hi ? v : bound.hi;
        ((uint8_t *)y)[i] = (uint8_t)((int)nearbyintf(v) + zero);
    }
}

static void quantadd_ref(HnEval *e)
{
    pair_ref(e, FALSE);
}

static void quantmul_ref(HnEval *e)
{
    pair_ref(e, TRUE);
}

#define BYTES (HN_BIT(HN_I8) | HN_BIT(HN_U8))
#define PAIR_RECORD                                                                                         \
    .domain = HN_DOMAIN_INTERNAL, .since = { 1 }, .in = "TUfTfWfV", .out = ".", .T = BYTES,                 \
    .U = BYTES | HN_BIT(HN_F32), .V = BYTES, .W = BYTES, .min_in = 3, .params_size = sizeof(HnQuantBinary), \
    .bind = pair_bind, .infer = pair_infer, .cost = hn_cost_elementwise, .batch = hn_batch_elementwise

const HnOp hn_op_quantadd = { .name = "QuantAdd", PAIR_RECORD, .ref = quantadd_ref };
const HnOp hn_op_quantmul = { .name = "QuantMul", PAIR_RECORD, .ref = quantmul_ref };
