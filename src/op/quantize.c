/*
 * QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
 *
 * A scale (and zero point) belongs to the whole tensor, to each index of an axis (since opset 13), or to each block of
 * `block_size` indices of an axis (since 21). The quotient x / scale is rounded to the scale's precision, or to that of
 * attribute `precision`, before it is rounded to a whole number, halves to even.
 */
#include "op/quantize.h"

#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/convert.h"
#include "op/elementwise.h"
#include "op/ops.h"
#include "op/unbind.h"

static HnDtype bind_dtype(HnBind *b, const char *name, HnTypeMask mask)
{
    int64_t d = hn_bind_int(b, name, 0);
    if (d != 0 && (d < 0 || d >= HN_DTYPE_COUNT || !hn_dtype_in((HnDtype)d, mask))) {
        hn_bind_fail(b, d > 0 && d < 64 ? HN_ERROR_UNSUPPORTED : HN_ERROR_ATTRIBUTE,
                     "attribute '%s' is %" PRId64 ", a type that it cannot be", name, d);
        return HN_UNDEFINED;
    }
    return (HnDtype)d;
}

#define QUANTIZED \
    (HN_BIT(HN_U8) | HN_BIT(HN_I8) | HN_BIT(HN_U16) | HN_BIT(HN_I16) | HN_T_SUBBYTE | (HN_T_F8 & ~HN_BIT(HN_F8E8M0)))
#define REAL (HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16))

static void common_bind(HnBind *b, HnQuantize *p)
{
    p->per_axis = b->version >= 13;
    p->axis = p->per_axis ? hn_bind_int(b, "axis", 1) : 1;
    p->block = b->version >= 21 ? hn_bind_int(b, "block_size", 0) : 0;
    if (p->block < 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'block_size' is %" PRId64, p->block);
}

static void quantize_bind(HnBind *b, void *params)
{
    HnQuantize *p = params;
    common_bind(b, p);
    p->saturate = b->version < 19 || hn_bind_bool(b, "saturate", TRUE);
    if (b->version >= 21)
        p->to = bind_dtype(b, "output_dtype", QUANTIZED);
    if (b->version >= 23)
        p->precision = bind_dtype(b, "precision", REAL);
}

static void dequantize_bind(HnBind *b, void *params)
{
    HnQuantize *p = params;
    common_bind(b, p);
    if (b->version >= 23)
        p->to = bind_dtype(b, "output_dtype", REAL);
}

/* --- for whoever computes with the integers ------------------------------------------------------------------------
 */

static HnTensor *known(HnReadTensor read, gconstpointer of, HnValue *v)
{
    if (v == NULL)
        return NULL;
    return read != NULL ? read(of, v) : v->weight;
}

/* Axes of v, whose elements are t; -1: not known. */
static int rank_of(const HnValue *v, const HnTensor *t)
{
    if (t != NULL)
        return t->ndim;
    return hn_type_rank(v->type);
}

/* Which axis several scales belong to. */
static gboolean scales_axis(const HnQuantize *q, int rank, HnQParams *p)
{
    int64_t axis = rank == 1 ? 0 : q->axis;
    if (!q->per_axis || (axis < 0 && rank < 0) || (q->block == 0 && p->scale->ndim != 1))
        return FALSE;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= (rank >= 0 ? rank : HN_MAX_RANK) || (q->block != 0 && p->scale->ndim <= axis))
        return FALSE;
    p->axis = (int)axis;
    p->block = q->block;
    return TRUE;
}

gboolean hn_op_qparams(const HnNode *n, HnReadTensor read, gconstpointer of, HnQParams *p)
{
    const HnOp *op = n != NULL ? n->op : NULL;
    const gboolean back = op == &hn_op_dequantizelinear;
    if (op != &hn_op_quantizelinear && !back)
        return FALSE;
    HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const HnQuantize *q = n->params;
    *p = (HnQParams){ .back = back,
                      .real = back ? y : x,
                      .q = back ? x : y,
                      .scale_of = hn_node_in(n, 1),
                      .zero_of = hn_node_in(n, 2),
                      .scale = known(read, of, hn_node_in(n, 1)),
                      .zero = known(read, of, hn_node_in(n, 2)),
                      .axis = -1 };
    if (x == NULL || y == NULL || p->scale == NULL || p->scale->dtype != HN_F32)
        return FALSE;
    if (p->zero_of != NULL && (p->zero == NULL || p->zero->n != p->scale->n))
        return FALSE;
    if (q->precision != HN_UNDEFINED && q->precision != HN_F32)
        return FALSE;
    return p->scale->n == 1 || scales_axis(q, rank_of(p->q, known(read, of, p->q)), p);
}

/* --- which scale belongs to which element ---------------------------------------------------------------------------
 */

/* x as [outer, size, inner], scales as [outer, scales, inner] (blocks) or [scales]. */
typedef struct {
    int64_t outer, size, inner, scales, block;
    gboolean blocked;
} Grid;

static void shapes_infer(HnInfer *x)
{
    const HnQuantize *p = x->params;
    int rank = hn_infer_rank(x, 0), scale_rank = hn_infer_rank(x, 1), zero_rank = hn_infer_rank(x, 2);
    gboolean one = scale_rank >= 0, known = scale_rank >= 0;
    for (int i = 0; i < scale_rank; i++) {
        HnDim d = hn_infer_dim(x, 1, i);
        one = one && hn_dim_is(d, 1);
        known = known && d.known;
        if (zero_rank == scale_rank && hn_dim_differ(d, hn_infer_dim(x, 2, i)))
            hn_infer_fail(x, HN_ERROR_SHAPE, "scale and zero point differ in shape");
    }
    if (rank < 0 || one || !known || x->error != NULL)
        return;
    if (!p->per_axis)
        hn_infer_fail(x, HN_ERROR_SHAPE, "a scale for each index of an axis needs opset 13");
    else if (p->block == 0 && scale_rank != 1)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the scale has %d axes, which needs attribute 'block_size'", scale_rank);
    else if (p->block != 0 && scale_rank != rank)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the scale has %d axes, the input %d", scale_rank, rank);
    else if (rank != 1)
        hn_infer_axis(x, p->axis, rank);
}

static gboolean grid_of(HnEval *e, const HnTensor *x, const HnTensor *scale, const HnTensor *zero, Grid *g)
{
    const HnQuantize *p = e->params;
    if (zero != NULL && zero->n != scale->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "scale and zero point differ in shape");
        return FALSE;
    }
    if (scale->n == 1) {
        *g = (Grid){ 1, 1, x->n, 1, 1, FALSE };
        return TRUE;
    }
    if (!p->per_axis || (p->block == 0 ? scale->ndim != 1 : scale->ndim != x->ndim) || x->ndim < 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the scale has %d axes, the input %d", scale->ndim, x->ndim);
        return FALSE;
    }
    int axis = x->ndim == 1 ? 0 : hn_eval_axis(e, p->axis, x->ndim);
    if (axis < 0)
        return FALSE;
    *g = (Grid){ hn_span(x->dims, 0, axis),
                 x->dims[axis],
                 hn_span(x->dims, axis + 1, x->ndim),
                 scale->dims[p->block == 0 ? 0 : axis],
                 MAX(p->block, 1),
                 p->block != 0 };
    gboolean fits = g->size / g->block + (g->size % g->block != 0) == g->scales;
    for (int i = 0; i < x->ndim && g->blocked; i++)
        fits = fits && (i == axis || x->dims[i] == scale->dims[i]);
    if (!fits) {
        g_autofree char *text = hn_tensor_describe(scale);
        g_autofree char *input = hn_tensor_describe(x);
        hn_eval_fail(e, HN_ERROR_SHAPE, "the scale %s does not fit the input %s along axis %d", text, input, axis);
    }
    return fits;
}

/* n elements of x from `at`: their scales start at `scale` and advance by step (0 or 1). */
typedef struct {
    int64_t at, n, scale;
    int step;
} Row;

/* Row number r of the grid in order; FALSE: there is none. Each row is as long as its scales are regular. */
static gboolean grid_row(const Grid *g, int64_t r, Row *row)
{
    if (g->inner == 1 && g->size > 0) {
        int64_t per = g->block == 1 ? 1 : g->scales, o = r / per, s = r % per;
        if (o >= g->outer)
            return FALSE;
        int64_t base = g->blocked ? o * g->scales : 0;
        *row = g->block == 1 ? (Row){ o * g->size, g->size, base, 1 }
                             : (Row){ o * g->size + s * g->block, MIN(g->block, g->size - s * g->block), base + s, 0 };
        return TRUE;
    }
    if (g->size == 0 || g->inner == 0 || r / g->size >= g->outer)
        return FALSE;
    int64_t s = r % g->size / g->block;
    *row = (Row){ r * g->inner, g->inner, g->blocked ? (r / g->size * g->scales + s) * g->inner : s, g->blocked };
    return TRUE;
}

/* Elements of a small tensor as doubles in scratch memory; n times 0 where t is NULL. */
static double *doubles_of(HnEval *e, const HnTensor *t, int64_t n)
{
    double *v = hn_eval_scratch(e, n, sizeof *v);
    if (v == NULL)
        return NULL;
    if (t == NULL)
        memset(v, 0, (size_t)n * sizeof *v);
    else
        hn_convert(HN_F64, v, t, &(HnConvert){ TRUE, HN_E8M0_UP });
    return v;
}

/* All elements as f32: the tensor's own memory, or scratch memory in *own. */
static const float *floats_of(HnEval *e, const HnTensor *t, float **own)
{
    *own = NULL;
    if (t->dtype == HN_F32)
        return t->data;
    *own = hn_eval_scratch(e, t->n, sizeof **own);
    if (*own != NULL)
        hn_convert(HN_F32, *own, t, &(HnConvert){ TRUE, HN_E8M0_UP });
    return *own;
}

/* --- QuantizeLinear ---------------------------------------------------------------------------------------------- */

/* Held within the type's range before rounding: the ends are whole numbers, so that it comes to the same. Adding
 * 1.5 * 2^23 rounds to a whole number, as |v| < 2^22. NaN gives the lower end. */
#define DEFINE_ROW(T, lowest, highest)                                                              \
    static void row_##T(T *y, const float *x, const float *s, const double *z, int64_t n, int step) \
    {                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                           \
            const int zero = (int)z[i * step];                                                      \
            const float lo = (float)((lowest)-zero), hi = (float)((highest)-zero);                  \
            float v = x[i] / s[i * step];                                                           \
            v = v > lo ? v : lo;                                                                    \
            v = v < hi ? v : hi;                                                                    \
            y[i] = (T)((int)((v + 12582912.0f) - 12582912.0f) + zero);                              \
        }                                                                                           \
    }                                                                                               \
    static void one_##T(T *y, const float *x, float s, int zero, int64_t n)                         \
    {                                                                                               \
        const float lo = (float)((lowest)-zero), hi = (float)((highest)-zero);                      \
        for (int64_t i = 0; i < n; i++) {                                                           \
            float v = x[i] / s;                                                                     \
            v = v > lo ? v : lo;                                                                    \
            v = v < hi ? v : hi;                                                                    \
            y[i] = (T)((int)((v + 12582912.0f) - 12582912.0f) + zero);                              \
        }                                                                                           \
    }
DEFINE_ROW(uint8_t, 0, UINT8_MAX)
DEFINE_ROW(int8_t, INT8_MIN, INT8_MAX)
DEFINE_ROW(uint16_t, 0, UINT16_MAX)
DEFINE_ROW(int16_t, INT16_MIN, INT16_MAX)

static float to_precision(HnDtype p, float v)
{
    if (p == HN_F16)
        return hn_f16_to_f32(hn_f16_from_f32(v));
    if (p == HN_BF16)
        return hn_bf16_to_f32(hn_bf16_from_f32(v));
    return v;
}

/* Any type and precision; the result as doubles that fit the type `to`. */
static void row_any(double *y, const float *x, const float *s, const double *z, const Row *row, HnDtype to, HnDtype p)
{
    unsigned bits = hn_dtype_bits(to);
    gboolean ints = to != HN_F4E2M1 && !hn_dtype_in(to, HN_T_F8);
    gboolean is_signed = to == HN_I2 || to == HN_I4 || to == HN_I8 || to == HN_I16;
    double lo = is_signed ? -ldexp(1, (int)bits - 1) : 0, hi = ldexp(1, (int)bits - (is_signed ? 1 : 0)) - 1;
    for (int64_t i = 0; i < row->n; i++) {
        double v = (double)to_precision(p, to_precision(p, x[i]) / to_precision(p, s[i * row->step]));
        if (ints) {
            v = rint(v) + z[i * row->step];
            v = v > lo ? v : lo;
            y[i] = v < hi ? v : hi;
        } else {
            y[i] = v + z[i * row->step];
        }
    }
}

static HnDtype quantize_to(const HnQuantize *p, HnDtype zero)
{
    return zero != HN_UNDEFINED ? zero : p->to != HN_UNDEFINED ? p->to : HN_U8;
}

static void quantize_infer(HnInfer *x)
{
    const HnQuantize *p = x->params;
    HnDtype zero = hn_infer_dtype(x, 2), scale = hn_infer_dtype(x, 1), in = hn_infer_dtype(x, 0);
    if (zero != HN_UNDEFINED && p->to != HN_UNDEFINED && zero != p->to)
        hn_infer_fail(x, HN_ERROR_TYPE, "the zero point is %s, but attribute 'output_dtype' says %s",
                      hn_dtype_name(zero), hn_dtype_name(p->to));
    if (x->node->version < 23 && in != HN_UNDEFINED && scale != HN_UNDEFINED && scale != HN_F32 && in != scale)
        hn_infer_fail(x, HN_ERROR_TYPE, "the scale is %s, but the input is %s", hn_dtype_name(scale),
                      hn_dtype_name(in));
    shapes_infer(x);
    if (hn_infer_has(x, 2) && zero == HN_UNDEFINED)
        hn_infer_out_shape_of(x, 0, HN_UNDEFINED, 0);
    else
        hn_infer_out_shape_of(x, 0, quantize_to(p, zero), 0);
}

typedef struct {
    const float *x, *scale;
    float *own_x, *own_scale;
    double *zero, *wide; /* wide: results of types that have no row of their own */
} Buffers;

static void buffers_free(HnEval *e, Buffers *b)
{
    hn_eval_scratch_free(e, b->own_x);
    hn_eval_scratch_free(e, b->own_scale);
    hn_eval_scratch_free(e, b->zero);
    hn_eval_scratch_free(e, b->wide);
}

static void quantize_rows(const Grid *g, const Buffers *b, void *y, HnDtype to, HnDtype precision)
{
    Row r;
    for (int64_t i = 0; grid_row(g, i, &r); i++) {
        const float *x = b->x + r.at, *s = b->scale + r.scale;
        const double *z = b->zero + r.scale;
#define ROW(T)                                           \
    if (r.step == 0)                                     \
        one_##T((T *)y + r.at, x, s[0], (int)z[0], r.n); \
    else                                                 \
        row_##T((T *)y + r.at, x, s, z, r.n, 1);
        if (b->wide != NULL) {
            row_any(b->wide + r.at, x, s, z, &r, to, precision);
        } else if (to == HN_U8) {
            ROW(uint8_t)
        } else if (to == HN_I8) {
            ROW(int8_t)
        } else if (to == HN_U16) {
            ROW(uint16_t)
        } else {
            ROW(int16_t)
        }
#undef ROW
    }
}

static void quantize_ref(HnEval *e)
{
    const HnQuantize *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *scale = hn_eval_in(e, 1), *zero = hn_eval_in(e, 2);
    HnDtype to = quantize_to(p, zero != NULL ? zero->dtype : HN_UNDEFINED);
    HnDtype precision = p->precision != HN_UNDEFINED ? p->precision : scale->dtype;
    gboolean native = to == HN_U8 || to == HN_I8 || to == HN_U16 || to == HN_I16;
    Buffers b = { 0 };
    Grid g;
    if (!hn_dtype_in(to, QUANTIZED) || !hn_convertible(x->dtype) || !hn_convertible(scale->dtype)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "%s cannot be quantized to %s", hn_dtype_name(x->dtype), hn_dtype_name(to));
        return;
    }
    if (!grid_of(e, x, scale, zero, &g))
        return;
    b.x = floats_of(e, x, &b.own_x);
    b.scale = floats_of(e, scale, &b.own_scale);
    b.zero = doubles_of(e, zero, scale->n);
    if (!native || precision == HN_F16 || precision == HN_BF16)
        b.wide = hn_eval_scratch(e, x->n, sizeof *b.wide);
    void *y = e->error == NULL ? hn_eval_out(e, 0, to, x->ndim, x->dims) : NULL;
    if (y != NULL) {
        quantize_rows(&g, &b, y, to, precision);
        for (int64_t at = 0; b.wide != NULL && at < x->n; at += HN_CONVERT_CHUNK)
            hn_convert_from_f64(to, y, at, MIN(HN_CONVERT_CHUNK, x->n - at), b.wide + at,
                                &(HnConvert){ p->saturate, HN_E8M0_UP });
    }
    buffers_free(e, &b);
}

/* --- DequantizeLinear -------------------------------------------------------------------------------------------- */

/* (x - zero) * scale: the difference of integers is exact, then one rounding for the type and one for the product */
#define DEFINE_ROW_BACK(T)                                                                      \
    static void back_##T(float *y, const T *x, const float *s, const double *z, const Row *row) \
    {                                                                                           \
        if (row->step == 0) {                                                                   \
            const double zero = z[0];                                                           \
            const float scale = s[0];                                                           \
            for (int64_t i = 0; i < row->n; i++)                                                \
                y[i] = (float)((double)x[i] - zero) * scale;                                    \
            return;                                                                             \
        }                                                                                       \
        for (int64_t i = 0; i < row->n; i++)                                                    \
            y[i] = (float)((double)x[i] - z[i]) * s[i];                                         \
    }
DEFINE_ROW_BACK(uint8_t)
DEFINE_ROW_BACK(int8_t)
DEFINE_ROW_BACK(uint16_t)
DEFINE_ROW_BACK(int16_t)
DEFINE_ROW_BACK(int32_t)
DEFINE_ROW_BACK(float)

static HnDtype dequantize_to(const HnQuantize *p, HnDtype scale)
{
    return p->to != HN_UNDEFINED ? p->to : scale == HN_F8E8M0 ? HN_F32 : scale;
}

static void dequantize_infer(HnInfer *x)
{
    shapes_infer(x);
    hn_infer_out_shape_of(x, 0, dequantize_to(x->params, hn_infer_dtype(x, 1)), 0);
}

static void dequantize_rows(const Grid *g, const HnTensor *t, const Buffers *b, float *y)
{
    Row r;
    for (int64_t i = 0; grid_row(g, i, &r); i++) {
        const float *s = b->scale + r.scale;
        const double *z = b->zero + r.scale;
        float *to = y + r.at;
        if (b->x != NULL)
            back_float(to, b->x + r.at, s, z, &r);
        else if (t->dtype == HN_U8)
            back_uint8_t(to, (const uint8_t *)t->data + r.at, s, z, &r);
        else if (t->dtype == HN_I8)
            back_int8_t(to, (const int8_t *)t->data + r.at, s, z, &r);
        else if (t->dtype == HN_U16)
            back_uint16_t(to, (const uint16_t *)t->data + r.at, s, z, &r);
        else if (t->dtype == HN_I16)
            back_int16_t(to, (const int16_t *)t->data + r.at, s, z, &r);
        else
            back_int32_t(to, (const int32_t *)t->data + r.at, s, z, &r);
    }
}

static void dequantize_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *scale = hn_eval_in(e, 1), *zero = hn_eval_in(e, 2);
    HnDtype to = dequantize_to(e->params, scale->dtype);
    Buffers b = { 0 };
    Grid g;
    if (!hn_dtype_in(to, REAL) || !hn_dtype_in(x->dtype, QUANTIZED | HN_BIT(HN_I32)) ||
        (zero != NULL && zero->dtype != x->dtype)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "%s cannot be dequantized to %s", hn_dtype_name(x->dtype), hn_dtype_name(to));
        return;
    }
    if (!grid_of(e, x, scale, zero, &g))
        return;
    b.scale = floats_of(e, scale, &b.own_scale);
    b.zero = doubles_of(e, zero, scale->n);
    if (hn_dtype_in(x->dtype, HN_T_F8 | HN_T_SUBBYTE))
        b.x = floats_of(e, x, &b.own_x);
    void *y = e->error == NULL ? hn_eval_out(e, 0, to, x->ndim, x->dims) : NULL;
    float *part = y;
    if (y != NULL && to != HN_F32)
        part = hn_eval_scratch(e, x->n, sizeof *part);
    if (y != NULL && part != NULL) {
        dequantize_rows(&g, x, &b, part);
        if (to == HN_F16)
            hn_f16_from_f32_n(y, part, (size_t)x->n);
        else if (to == HN_BF16)
            hn_bf16_from_f32_n(y, part, (size_t)x->n);
    }
    if (part != y)
        hn_eval_scratch_free(e, part);
    buffers_free(e, &b);
}

/* --- DynamicQuantizeLinear --------------------------------------------------------------------------------------- */

static void dynamic_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, HN_U8, 0);
    hn_infer_out(x, 1, HN_F32, 0, NULL);
    hn_infer_out(x, 2, HN_U8, 0, NULL);
}

/* The range with 0 in it becomes [0,255]; zeros alone have scale 1. */
float hn_dynamic_step(float lo, float hi, int *zero)
{
    const float scale = hi == lo ? 1.0f : (hi - lo) / 255.0f, at = 0.0f - lo / scale;
    *zero = (int)(at > 0 ? at < 255 ? rintf(at) : 255 : 0);
    return scale;
}

static void dynamic_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0);
    const float *x = t->data;
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < t->n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    int zero;
    const float scale = hn_dynamic_step(lo, hi, &zero);
    uint8_t *y = hn_eval_out(e, 0, HN_U8, t->ndim, t->dims);
    if (y == NULL)
        return;
    one_uint8_t(y, x, scale, zero, t->n);
    float *to_scale = hn_eval_wants(e, 1) ? hn_eval_out(e, 1, HN_F32, 0, NULL) : NULL;
    uint8_t *to_zero = hn_eval_wants(e, 2) ? hn_eval_out(e, 2, HN_U8, 0, NULL) : NULL;
    if (to_scale != NULL)
        *to_scale = scale;
    if (to_zero != NULL)
        *to_zero = (uint8_t)zero;
}

static void quantize_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 2 * hn_type_count(x->out[0]);
}

/* --- opsets that cannot say it: arithmetic on floats ------------------------------------------------------------- */

/* Input i as f32; elements of a type that cannot be cast in the target are converted here. NULL: refused. */
static HnValue *as_f32(HnUnbind *u, int i)
{
    HnDtype d = hn_unbind_dtype(u, i);
    HnTensor *t = hn_unbind_value(u, i);
    if (d == HN_UNDEFINED) {
        hn_unbind_refuse(u, "the type of input %d is not known", i);
        return NULL;
    }
    if (hn_dtype_in(d, hn_op_types(hn_op_find(NULL, "Cast"), '.', u->to)))
        return hn_unbind_cast(u, hn_unbind_in(u, i), HN_F32);
    if (t == NULL) {
        hn_unbind_refuse(u, "input %d is %s, which opset %" PRId64 " does not have", i, hn_dtype_name(d), u->to);
        return NULL;
    }
    HnTensor *f =
        hn_tensor_new(hn_dtype_in(d, HN_T_SUBBYTE) && d != HN_F4E2M1 ? HN_I8 : HN_F32, t->ndim, t->dims, NULL, NULL);
    for (int64_t k = 0; f != NULL && k < t->n; k++)
        hn_tensor_set_f64(f, k, hn_tensor_get_f64(t, k));
    if (f == NULL) {
        hn_unbind_refuse(u, "input %d is too large", i);
        return NULL;
    }
    HnValue *v = hn_unbind_const(u, f);
    return f->dtype == HN_F32 ? v : hn_unbind_cast(u, v, HN_F32);
}

/* Scale or zero point so that it broadcasts to input 0: one element, one for each index of the axis, or of a block. */
static HnValue *spread(HnUnbind *u, HnValue *v, int i)
{
    const HnQuantize *p = u->params;
    int rank = hn_unbind_rank(u, 0), r = hn_unbind_rank(u, i);
    int axis = hn_axis(p->axis, rank);
    int64_t dims[HN_MAX_RANK], wide[HN_MAX_RANK + 1];
    if (r == 0 || (rank == 1 && r == 1 && p->block == 0))
        return v;
    if (p->block == 0) {
        for (int a = 0; a < rank; a++)
            dims[a] = a == axis && hn_unbind_dim(u, i, 0) != 1 ? -1 : 1;
        return hn_unbind_reshape(u, v, dims, rank);
    }
    hn_unbind_dims(u, i, dims); /* each element `block` times along the axis, cut to the input's size */
    for (int a = 0, k = 0; a < rank; a++) {
        wide[k++] = dims[a];
        if (a == axis)
            wide[k++] = p->block;
    }
    v = hn_unbind_op2(u, "Unsqueeze", v, hn_unbind_int(u, axis + 1));
    v = hn_unbind_op2(u, "Expand", v, hn_unbind_list(u, wide, rank + 1));
    dims[axis] *= p->block;
    v = hn_unbind_reshape(u, v, dims, rank);
    return dims[axis] > hn_unbind_dim(u, 0, axis) ? hn_unbind_slice(u, v, axis, 0, hn_unbind_dim(u, 0, axis)) : v;
}

/* Is what is needed to write the node as arithmetic known? */
static gboolean arithmetic_works(HnUnbind *u)
{
    const HnQuantize *p = u->params;
    int64_t dims[HN_MAX_RANK];
    int rank = hn_unbind_rank(u, 0), r = hn_unbind_rank(u, 1);
    gboolean known = rank >= 0 && r >= 0 && p->axis >= -rank && (p->axis < rank || r == 0 || rank == 1);
    if (known && p->block != 0)
        known = r == rank && p->axis < rank && hn_unbind_dims(u, 1, dims) && hn_unbind_dim(u, 0, (int)p->axis) >= 0 &&
                p->block <= INT64_MAX / MAX(dims[p->axis < 0 ? p->axis + rank : p->axis], 1);
    else if (known)
        known = r <= 1 || rank == 0;
    if (!known)
        hn_unbind_refuse(u, "opset %" PRId64 " does not have this form, and shapes are not known", u->to);
    return known;
}

/* What both operators need before they can keep their form. */
static gboolean scale_is_strange(const HnUnbind *u)
{
    const HnQuantize *p = u->params;
    int64_t n = hn_unbind_rank(u, 1) == 0 ? 1 : hn_unbind_rank(u, 1) == 1 ? hn_unbind_dim(u, 1, 0) : -1;
    return (u->to < 13 && n != 1) || (u->to < 21 && p->block != 0);
}

static gboolean lacks_type(const HnUnbind *u, const char *letters)
{
    for (int i = 0; letters[i] != 0; i++)
        if (hn_unbind_dtype(u, i) != HN_UNDEFINED &&
            !hn_dtype_in(hn_unbind_dtype(u, i), hn_op_types(u->op, letters[i], u->to)))
            return TRUE;
    return FALSE;
}

static void dequantize_unbind(HnUnbind *u)
{
    const HnQuantize *p = u->params;
    HnDtype to = hn_unbind_out_dtype(u, 0);
    if (u->to < 10 || u->to >= u->from)
        return;
    if (!scale_is_strange(u) && !(u->to < 23 && p->to != HN_UNDEFINED) && !lacks_type(u, "TUT"))
        return;
    if (to == HN_UNDEFINED || !arithmetic_works(u))
        return;
    HnValue *x = as_f32(u, 0), *scale = x != NULL ? as_f32(u, 1) : NULL;
    HnValue *zero = scale != NULL && hn_unbind_in(u, 2) != NULL ? as_f32(u, 2) : NULL;
    if (u->error != NULL)
        return;
    if (zero != NULL)
        x = hn_unbind_op2(u, "Sub", x, spread(u, zero, 2));
    x = hn_unbind_op2(u, "Mul", x, spread(u, scale, 1));
    hn_unbind_take(u, 0, to == HN_F32 ? x : hn_unbind_cast(u, x, to));
}

/* A zero point that says the output's type, before an attribute could. */
static void add_zero_point(HnUnbind *u, HnDtype to)
{
    int64_t dims[HN_MAX_RANK];
    if (!hn_unbind_dims(u, 1, dims))
        hn_unbind_refuse(u, "attribute 'output_dtype' came with opset 21, and the shape of the scale is not known");
    else
        hn_node_set_in(u->node, 2, hn_unbind_fill(u, to, hn_unbind_rank(u, 1), dims, 0));
}

static void quantize_unbind(HnUnbind *u)
{
    const HnQuantize *p = u->params;
    HnDtype to = hn_unbind_out_dtype(u, 0);
    static const double lowest[] = { [HN_I8] = -128, [HN_I16] = -32768, [HN_U8] = 0, [HN_U16] = 0 };
    static const double highest[] = { [HN_I8] = 127, [HN_I16] = 32767, [HN_U8] = 255, [HN_U16] = 65535 };
    if (u->to < 10 || u->to >= u->from)
        return;
    gboolean plain = !scale_is_strange(u) && !lacks_type(u, "TUV") && hn_dtype_in(to, hn_op_types(u->op, 'V', u->to)) &&
                     !(u->to < 23 && u->to >= 19 && hn_unbind_dtype(u, 0) != hn_unbind_dtype(u, 1));
    if (plain || to == HN_UNDEFINED) {
        if (u->to < 21 && p->to != HN_UNDEFINED && hn_unbind_in(u, 2) == NULL)
            add_zero_point(u, p->to);
        if (u->to < 21)
            hn_node_remove_attr(u->node, "output_dtype");
        return;
    }
    if (!hn_dtype_in(to, HN_BIT(HN_I8) | HN_BIT(HN_I16) | HN_BIT(HN_U8) | HN_BIT(HN_U16))) {
        hn_unbind_refuse(u, "the form has no counterpart that makes %s in opset %" PRId64, hn_dtype_name(to), u->to);
        return;
    }
    if (!arithmetic_works(u))
        return;
    HnValue *x = as_f32(u, 0), *scale = x != NULL ? as_f32(u, 1) : NULL;
    HnValue *zero = scale != NULL && hn_unbind_in(u, 2) != NULL ? as_f32(u, 2) : NULL;
    if (u->error != NULL)
        return;
    HnDtype precision = p->precision != HN_UNDEFINED ? p->precision : hn_unbind_dtype(u, 1);
    x = hn_unbind_op2(u, "Div", x, spread(u, scale, 1));
    if (hn_dtype_is_half(precision))
        x = hn_unbind_cast(u, hn_unbind_cast(u, x, precision), HN_F32);
    x = hn_unbind_op1(u, "Round", x);
    if (zero != NULL)
        x = hn_unbind_op2(u, "Add", x, spread(u, zero, 2));
    x = hn_unbind_op3(u, "Clip", x, hn_unbind_scalar(u, HN_F32, lowest[to]), hn_unbind_scalar(u, HN_F32, highest[to]));
    hn_unbind_take(u, 0, hn_unbind_cast(u, x, to));
}

void hn_quantize_batch(HnBatch *b)
{
    const HnQuantize *p = b->params;
    hn_batch_quantize(b, p->per_axis, p->axis);
}

const HnOp hn_op_quantizelinear = {
    .name = "QuantizeLinear",
    .flags = HN_OP_STEPS,
    .since = { 10, 13, 19, 21, 23, 24, 25, 28 },
    .forms =
        HN_FORMS({ "axis", HN_ATTR_INT, .since = 13, .any = TRUE },
                 { "saturate", HN_ATTR_INT, .since = 19, .any = TRUE }, { "output_dtype", HN_ATTR_INT, .since = 21 },
                 { "block_size", HN_ATTR_INT, .since = 21 }, { "precision", HN_ATTR_INT, .since = 23 }),
    .lacks = HN_LACKS({ 'T', 19, 0, HN_BIT(HN_F16) | HN_BIT(HN_BF16) },
                      { 'U', 19, 0, HN_BIT(HN_I32) | HN_BIT(HN_F16) | HN_BIT(HN_BF16) }, { 'V', 19, 0, HN_T_F8S },
                      { 'V', 21, 0, HN_BIT(HN_U16) | HN_BIT(HN_I16) | HN_BIT(HN_U4) | HN_BIT(HN_I4) },
                      { 'V', 23, 0, HN_BIT(HN_F4E2M1) }, { 'U', 24, 0, HN_BIT(HN_F8E8M0) },
                      { 'V', 25, 0, HN_BIT(HN_U2) | HN_BIT(HN_I2) }),
    .in = "TUV",
    .out = "V",
    .T = REAL | HN_BIT(HN_I32),
    .U = REAL | HN_BIT(HN_I32) | HN_BIT(HN_F8E8M0),
    .V = QUANTIZED,
    .min_in = 2,
    .unbind = quantize_unbind,
    .params_size = sizeof(HnQuantize),
    .bind = quantize_bind,
    .infer = quantize_infer,
    .cost = quantize_cost,
    .ref = quantize_ref,
    .grad = hn_quantize_grad,
    .batch = hn_quantize_batch,
    .channels = { HN_CH_STEP },
};

const HnOp hn_op_dequantizelinear = {
    .name = "DequantizeLinear",
    .flags = HN_OP_UNPACK,
    .since = { 10, 13, 19, 21, 23, 24, 25, 28 },
    .forms = HN_FORMS({ "axis", HN_ATTR_INT, .since = 13, .any = TRUE }, { "block_size", HN_ATTR_INT, .since = 21 },
                      { "output_dtype", HN_ATTR_INT, .since = 23 }),
    .lacks = HN_LACKS({ '.', 19, 0, HN_BIT(HN_F16) | HN_BIT(HN_BF16) }, { 'T', 19, 0, HN_T_F8S },
                      { 'U', 19, 0, HN_BIT(HN_F16) | HN_BIT(HN_BF16) },
                      { 'T', 21, 0, HN_BIT(HN_U16) | HN_BIT(HN_I16) | HN_BIT(HN_U4) | HN_BIT(HN_I4) },
                      { 'T', 23, 0, HN_BIT(HN_F4E2M1) }, { 'U', 24, 0, HN_BIT(HN_F8E8M0) },
                      { 'T', 25, 0, HN_BIT(HN_U2) | HN_BIT(HN_I2) }),
    .in = "TUT",
    .out = ".",
    .T = QUANTIZED | HN_BIT(HN_I32),
    .U = REAL | HN_BIT(HN_F8E8M0),
    .min_in = 2,
    .unbind = dequantize_unbind,
    .params_size = sizeof(HnQuantize),
    .bind = dequantize_bind,
    .infer = dequantize_infer,
    .cost = quantize_cost,
    .ref = dequantize_ref,
    .grad = hn_dequantize_grad,
    .batch = hn_quantize_batch,
    .channels = { HN_CH_STEP },
};

const HnOp hn_op_dynamicquantizelinear = {
    .name = "DynamicQuantizeLinear",
    .flags = HN_OP_INTEGERS,
    .since = { 11 },
    .in = "f",
    .out = "ufu",
    .infer = dynamic_infer,
    .cost = quantize_cost,
    .ref = dynamic_ref,
};
