/*
 * Cast and CastLike, and the conversion of elements that they rest on.
 */
#include "op/batch.h"
#include "op/cast.h"

#include "op/convert.h"

#include <math.h>
#include <string.h>

#include "op/elementwise.h"
#include "op/tape.h"
#include "op/unbind.h"

/* --- types that C has ------------------------------------------------------------------------------------------------
 */

#define TO_SAME(T, v) (T)(v)
#define TO_TRUTH(T, v) (T)((v) != 0)
#define TO_WRAPPED(T, v) (T) hn_wrap_f64((double)(v))
#define TO_I32(T, v) hn_saturate_i32((double)(v))
#define TO_I64(T, v) hn_saturate_i64((double)(v))

#define LOOP(name, S, D, M)                                 \
    static void name(void *dst, const void *src, int64_t n) \
    {                                                       \
        const S *from = src;                                \
        D *to = dst;                                        \
        for (int64_t i = 0; i < n; i++)                     \
            to[i] = M(D, from[i]);                          \
    }
#define FROM_INT(s, S)                  \
    LOOP(s##_f32, S, float, TO_SAME)    \
    LOOP(s##_f64, S, double, TO_SAME)   \
    LOOP(s##_i8, S, int8_t, TO_SAME)    \
    LOOP(s##_u8, S, uint8_t, TO_SAME)   \
    LOOP(s##_i16, S, int16_t, TO_SAME)  \
    LOOP(s##_u16, S, uint16_t, TO_SAME) \
    LOOP(s##_i32, S, int32_t, TO_SAME)  \
    LOOP(s##_u32, S, uint32_t, TO_SAME) \
    LOOP(s##_i64, S, int64_t, TO_SAME)  \
    LOOP(s##_u64, S, uint64_t, TO_SAME) \
    LOOP(s##_bool, S, uint8_t, TO_TRUTH)
#define FROM_FLOAT(s, S)                   \
    LOOP(s##_f32, S, float, TO_SAME)       \
    LOOP(s##_f64, S, double, TO_SAME)      \
    LOOP(s##_i8, S, int8_t, TO_WRAPPED)    \
    LOOP(s##_u8, S, uint8_t, TO_WRAPPED)   \
    LOOP(s##_i16, S, int16_t, TO_WRAPPED)  \
    LOOP(s##_u16, S, uint16_t, TO_WRAPPED) \
    LOOP(s##_i32, S, int32_t, TO_I32)      \
    LOOP(s##_u32, S, uint32_t, TO_WRAPPED) \
    LOOP(s##_i64, S, int64_t, TO_I64)      \
    LOOP(s##_u64, S, uint64_t, TO_WRAPPED) \
    LOOP(s##_bool, S, uint8_t, TO_TRUTH)
FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)
FROM_INT(i8, int8_t)
FROM_INT(u8, uint8_t)
FROM_INT(i16, int16_t)
FROM_INT(u16, uint16_t)
FROM_INT(i32, int32_t)
FROM_INT(u32, uint32_t)
FROM_INT(i64, int64_t)
FROM_INT(u64, uint64_t)
#undef TO_SAME
#define TO_SAME(T, v) (T)((v) != 0) /* a file's bool may hold any byte */
FROM_INT(bool, uint8_t)

typedef void (*NativeFn)(void *dst, const void *src, int64_t n);
#define ROW(s)                                                                                              \
    {                                                                                                       \
        [HN_F32] = s##_f32, [HN_F64] = s##_f64, [HN_I8] = s##_i8, [HN_U8] = s##_u8, [HN_I16] = s##_i16,     \
        [HN_U16] = s##_u16, [HN_I32] = s##_i32, [HN_U32] = s##_u32, [HN_I64] = s##_i64, [HN_U64] = s##_u64, \
        [HN_BOOL] = s##_bool                                                                                \
    }
#define NATIVE_COUNT (HN_U64 + 1)
static const NativeFn native[NATIVE_COUNT][NATIVE_COUNT] = {
    [HN_F32] = ROW(f32), [HN_F64] = ROW(f64), [HN_I8] = ROW(i8),     [HN_U8] = ROW(u8),
    [HN_I16] = ROW(i16), [HN_U16] = ROW(u16), [HN_I32] = ROW(i32),   [HN_U32] = ROW(u32),
    [HN_I64] = ROW(i64), [HN_U64] = ROW(u64), [HN_BOOL] = ROW(bool),
};

static gboolean is_native(HnDtype d)
{
    return (unsigned)d < NATIVE_COUNT && native[d][d] != NULL;
}

/* --- types that it has not --------------------------------------------------------------------------------------- */

gboolean hn_convertible(HnDtype d)
{
    return hn_dtype_in(d, HN_T_COMPUTE | HN_T_F8 | HN_T_SUBBYTE);
}

static HnSmallFloat small_format(HnDtype d)
{
    switch (d) {
    case HN_F8E4M3FN:
        return HN_SMALL_E4M3FN;
    case HN_F8E4M3FNUZ:
        return HN_SMALL_E4M3FNUZ;
    case HN_F8E5M2:
        return HN_SMALL_E5M2;
    case HN_F8E5M2FNUZ:
        return HN_SMALL_E5M2FNUZ;
    case HN_F8E8M0:
        return HN_SMALL_E8M0;
    default:
        return HN_SMALL_E2M1;
    }
}

/* `at` is a multiple of HN_CONVERT_CHUNK */
static void unpack(HnDtype d, const uint8_t *bytes, int64_t at, int64_t n, float *to)
{
    unsigned bits = hn_dtype_bits(d), per = 8 / bits, mask = (1u << bits) - 1;
    const uint8_t *p = bytes + at / per;
    for (int64_t i = 0; i < n; i++) {
        unsigned v = p[i / per] >> (i % per * bits) & mask;
        if (d == HN_F4E2M1)
            to[i] = hn_small_to_f32(HN_SMALL_E2M1, (uint8_t)v);
        else if (d == HN_I4 || d == HN_I2)
            to[i] = (float)((int)(v ^ (mask + 1) / 2) - (int)((mask + 1) / 2));
        else
            to[i] = (float)v;
    }
}

void hn_convert_to_f32(const HnTensor *t, int64_t at, int64_t n, float *to)
{
    HnDtype d = t->dtype;
    if (is_native(d)) {
        native[d][HN_F32](to, (const char *)t->data + (size_t)at * hn_dtype_size(d), n);
    } else if (d == HN_F16) {
        hn_f16_to_f32_n(to, (const uint16_t *)t->data + at, (size_t)n);
    } else if (d == HN_BF16) {
        hn_bf16_to_f32_n(to, (const uint16_t *)t->data + at, (size_t)n);
    } else if (hn_dtype_bits(d) == 8) {
        HnSmallFloat format = small_format(d);
        for (int64_t i = 0; i < n; i++)
            to[i] = hn_small_to_f32(format, ((const uint8_t *)t->data)[at + i]);
    } else {
        unpack(d, t->data, at, n, to);
    }
}

static void pack(HnDtype d, uint8_t *bytes, int64_t at, int64_t n, const double *from, const HnConvert *how)
{
    unsigned bits = hn_dtype_bits(d), per = 8 / bits, mask = (1u << bits) - 1;
    uint8_t *p = bytes + at / per;
    for (int64_t i = 0; i < n; i++) {
        unsigned v;
        if (d == HN_F4E2M1)
            v = hn_small_from_f64(HN_SMALL_E2M1, from[i], how->saturate);
        else
            v = (unsigned)(hn_wrap_f64(from[i]) & mask);
        if (i % per == 0)
            p[i / per] = (uint8_t)v;
        else
            p[i / per] = (uint8_t)(p[i / per] | v << (i % per * bits));
    }
}

void hn_convert_from_f64(HnDtype to, void *dst, int64_t at, int64_t n, const double *from, const HnConvert *how)
{
    uint8_t *bytes = dst;
    if (is_native(to)) {
        native[HN_F64][to]((char *)dst + (size_t)at * hn_dtype_size(to), from, n);
    } else if (to == HN_F16) {
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)dst)[at + i] = hn_f16_from_f64(from[i]);
    } else if (to == HN_BF16) {
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)dst)[at + i] = hn_bf16_from_f64(from[i]);
    } else if (to == HN_F8E8M0) {
        for (int64_t i = 0; i < n; i++)
            bytes[at + i] = hn_e8m0_from_f64(from[i], how->round, how->saturate);
    } else if (hn_dtype_bits(to) == 8) {
        HnSmallFloat format = small_format(to);
        for (int64_t i = 0; i < n; i++)
            bytes[at + i] = hn_small_from_f64(format, from[i], how->saturate);
    } else {
        pack(to, bytes, at, n, from, how);
    }
}

void hn_convert(HnDtype to, void *dst, const HnTensor *t, const HnConvert *how)
{
    HnDtype from = t->dtype;
    if (is_native(from) && is_native(to)) {
        native[from][to](dst, t->data, t->n);
        return;
    }
    gboolean small_int = to == HN_U4 || to == HN_I4 || to == HN_U2 || to == HN_I2;
    for (int64_t at = 0; at < t->n; at += HN_CONVERT_CHUNK) {
        int64_t n = MIN(HN_CONVERT_CHUNK, t->n - at);
        float part[HN_CONVERT_CHUNK];
        double wide[HN_CONVERT_CHUNK];
        const void *src = (const char *)t->data + (size_t)at * hn_dtype_size(from);
        HnDtype d = from;
        if (!is_native(from)) {
            hn_convert_to_f32(t, at, n, part);
            src = part;
            d = HN_F32;
        }
        if (is_native(to)) {
            native[d][to]((char *)dst + (size_t)at * hn_dtype_size(to), src, n);
        } else if (d == HN_F32 && to == HN_F16) {
            hn_f16_from_f32_n((uint16_t *)dst + at, src, (size_t)n);
        } else if (d == HN_F32 && to == HN_BF16) {
            hn_bf16_from_f32_n((uint16_t *)dst + at, src, (size_t)n);
        } else {
            /* the low bits of a 64-bit integer would be lost in a double */
            int8_t low[HN_CONVERT_CHUNK];
            if (small_int && (d == HN_I64 || d == HN_U64)) {
                native[d][HN_I8](low, src, n);
                native[HN_I8][HN_F64](wide, low, n);
            } else {
                native[d][HN_F64](wide, src, n);
            }
            hn_convert_from_f64(to, dst, at, n, wide, how);
        }
    }
}

/* --- strings ----------------------------------------------------------------------------------------------------- */

static gboolean parse_number(HnEval *e, GBytes *bytes, double *v)
{
    gsize len;
    const char *s = bytes != NULL ? g_bytes_get_data(bytes, &len) : NULL;
    char text[64], *end = text;
    if (s != NULL && len < sizeof text) {
        memcpy(text, s, len);
        text[len] = '\0';
        *v = g_ascii_strtod(text, &end);
        while (g_ascii_isspace(*end))
            end++;
    }
    if (end == text || *end != '\0' || end != text + len) {
        hn_eval_fail(e, HN_ERROR_VALUE, "string '%.*s' is not a number", s != NULL ? (int)MIN(len, 40) : 0,
                     s != NULL ? s : "");
        return FALSE;
    }
    return TRUE;
}

static void cast_from_strings(HnEval *e, const HnTensor *t, HnDtype to, void *y, const HnConvert *how)
{
    double part[HN_CONVERT_CHUNK];
    for (int64_t at = 0; at < t->n; at += HN_CONVERT_CHUNK) {
        int64_t n = MIN(HN_CONVERT_CHUNK, t->n - at);
        for (int64_t i = 0; i < n; i++)
            if (!parse_number(e, hn_tensor_get_string(t, at + i), &part[i]))
                return;
        hn_convert_from_f64(to, y, at, n, part, how);
    }
}

/* The shortest digits that read back as the same number. */
static void print_number(const HnTensor *t, int64_t i, char *text, gsize size)
{
    if (t->dtype == HN_BOOL) {
        g_strlcpy(text, hn_tensor_get_i64(t, i) != 0 ? "True" : "False", size);
    } else if (t->dtype == HN_U64) {
        g_snprintf(text, (gulong)size, "%" G_GUINT64_FORMAT, ((const uint64_t *)t->data)[i]);
    } else if (!hn_dtype_in(t->dtype, HN_T_FLOATS | HN_T_F8 | HN_BIT(HN_F4E2M1))) {
        g_snprintf(text, (gulong)size, "%" PRId64, hn_tensor_get_i64(t, i));
    } else {
        double v = hn_tensor_get_f64(t, i), back = 0;
        for (int digits = 1; digits <= 17; digits++) {
            char format[8];
            g_snprintf(format, sizeof format, "%%.%dg", digits);
            g_ascii_formatd(text, (int)size, format, v);
            back = g_ascii_strtod(text, NULL);
            if (isnan(v) || (t->dtype == HN_F64 ? back == v : (float)back == (float)v))
                break;
        }
        if (isnan(v))
            g_strlcpy(text, "nan", size);
        else if (strpbrk(text, ".en") == NULL)
            g_strlcat(text, ".0", size);
    }
}

static void cast_to_strings(HnEval *e, const HnTensor *t)
{
    if (hn_eval_out(e, 0, HN_STRING, t->ndim, t->dims) == NULL)
        return;
    for (int64_t i = 0; i < t->n; i++) {
        char text[48];
        print_number(t, i, text, sizeof text);
        g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
        hn_tensor_set_string(e->out[0], i, bytes);
    }
}

/* --- the operators ----------------------------------------------------------------------------------------------- */

static void how_bind(HnBind *b, HnCast *p)
{
    static const char *const words[] = { "up", "down", "nearest", NULL };
    static const HnE8m0Round rounds[] = { HN_E8M0_UP, HN_E8M0_DOWN, HN_E8M0_NEAREST };
    p->how.saturate = hn_bind_bool(b, "saturate", TRUE);
    p->how.round = rounds[hn_bind_word(b, "round_mode", words, 0)];
}

/* Opsets before 6 had the type's name in the attribute. */
static void cast_bind(HnBind *b, void *params)
{
    HnCast *p = params;
    const HnAttr *a = hn_node_attr(b->node, "to");
    hn_bind_require(b, "to");
    if (a != NULL && a->kind == HN_ATTR_STRING) {
        g_autofree char *name = g_ascii_strdown(hn_bind_string(b, "to", ""), -1);
        p->to = hn_dtype_parse(name);
        if (p->to == HN_UNDEFINED)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'to' names no type: '%.40s'", name);
    } else {
        int64_t to = hn_bind_int(b, "to", 0);
        if (to <= 0 || to >= HN_DTYPE_COUNT)
            hn_bind_fail(b, to > 0 && to < 64 ? HN_ERROR_UNSUPPORTED : HN_ERROR_ATTRIBUTE,
                         "attribute 'to' is %" PRId64 ", which is no known type", to);
        else
            p->to = (HnDtype)to;
    }
    how_bind(b, p);
}

static void castlike_bind(HnBind *b, void *params)
{
    how_bind(b, params);
}

static HnDim truth_dim(HnDim d)
{
    return d.known ? hn_dim(d.n != 0) : hn_dim_unknown();
}

/* May be: HN_UNDEFINED is not known. */
static gboolean castable(HnDtype d)
{
    return d == HN_UNDEFINED || d == HN_STRING || hn_convertible(d);
}

static void cast_infer(HnInfer *x)
{
    const HnCast *p = x->params;
    HnDtype to = p->to != HN_UNDEFINED ? p->to : hn_infer_dtype(x, 1), from = hn_infer_dtype(x, 0);
    if (!castable(from) || !castable(to)) {
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "a conversion from %s to %s is not supported", hn_dtype_name(from),
                      hn_dtype_name(to));
        return;
    }
    hn_infer_out_shape_of(x, 0, to, 0);
    if (hn_dtype_in(to, HN_T_INTS | HN_T_FLOATS))
        hn_infer_map1(x, hn_dim_same);
    else if (to == HN_BOOL)
        hn_infer_map1(x, truth_dim);
}

static void cast_ref(HnEval *e)
{
    const HnCast *p = e->params;
    const HnTensor *t = hn_eval_in(e, 0), *like = hn_eval_in(e, 1);
    HnDtype to = p->to != HN_UNDEFINED ? p->to : like->dtype;
    if (t->dtype == to) {
        hn_eval_view(e, 0, t, t->ndim, t->dims);
        return;
    }
    if ((!hn_convertible(t->dtype) && t->dtype != HN_STRING) || (!hn_convertible(to) && to != HN_STRING)) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "a conversion from %s to %s is not supported", hn_dtype_name(t->dtype),
                     hn_dtype_name(to));
        return;
    }
    if (to == HN_STRING) {
        cast_to_strings(e, t);
        return;
    }
    void *y = hn_eval_out(e, 0, to, t->ndim, t->dims);
    if (y == NULL)
        return;
    if (t->dtype == HN_STRING)
        cast_from_strings(e, t, to, y, &p->how);
    else
        hn_convert(to, y, t, &p->how);
}

/* Between floats. */
static void cast_grad(HnTape *t)
{
    const HnType *of = hn_types_get(t->types, hn_tape_in(t, 0));
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_build_cast(t->build, hn_tape_dy(t, 0), of->dtype));
    hn_tape_ends(t, 1);
}

const HnOp hn_op_cast = {
    .name = "Cast",
    .flags = HN_OP_ELEMENTWISE | HN_OP_CONVERT,
    .since = { 1, 6, 9, 13, 19, 21, 23, 24, 25, 28 },
    .forms = HN_FORMS({ "saturate", HN_ATTR_INT, .since = 19, .any = TRUE },
                      { "round_mode", HN_ATTR_STRING, .since = 24, .any = TRUE }),
    .lacks = HN_LACKS({ '.', 9, 0, HN_BIT(HN_STRING) }, { '.', 13, 0, HN_BIT(HN_BF16) },
                      { '.', 28, 0, HN_BIT(HN_F6E2M3) | HN_BIT(HN_F6E3M2) }, HN_SMALL_TYPES('.', 19)),
    .in = ".",
    .out = ".",
    .params_size = sizeof(HnCast),
    .bind = cast_bind,
    .infer = cast_infer,
    .cost = hn_cost_elementwise,
    .ref = cast_ref,
    .grad = cast_grad,
    .quant = { .kind = HN_Q_PASS },
};

static void castlike_unbind(HnUnbind *u)
{
    HnDtype to = hn_unbind_dtype(u, 1);
    const HnAttr *saturate = hn_node_attr(u->node, "saturate");
    if (u->to >= 15)
        return;
    if (to == HN_UNDEFINED) {
        hn_unbind_refuse(u, "the operator exists since opset 15, and the type of input 1 is not known");
        return;
    }
    HnNode *n = hn_unbind_node(u, "Cast", 1, (HnValue *[]){ hn_unbind_in(u, 0) }, 1);
    hn_node_set_int(n, "to", to);
    if (saturate != NULL)
        hn_node_set_int(n, "saturate", saturate->i);
    hn_unbind_take(u, 0, hn_node_out(n, 0));
}

/* Input 1 is there for its type. */
void hn_castlike_batch(HnBatch *b)
{
    b->out[0] = hn_batch_split(b, 0) ? b->in[0].at : hn_batch_none();
}

const HnOp hn_op_castlike = {
    .name = "CastLike",
    .flags = HN_OP_ELEMENTWISE | HN_OP_CONVERT,
    .since = { 15, 19, 21, 23, 24, 25 },
    .forms = HN_FORMS({ "saturate", HN_ATTR_INT, .since = 19, .any = TRUE },
                      { "round_mode", HN_ATTR_STRING, .since = 24, .any = TRUE }),
    .lacks = HN_LACKS(HN_SMALL_TYPES('.', 19)),
    .in = "..",
    .out = ".",
    .unbind = castlike_unbind,
    .params_size = sizeof(HnCast),
    .bind = castlike_bind,
    .infer = cast_infer,
    .cost = hn_cost_elementwise,
    .ref = cast_ref,
    .grad = cast_grad,
    .batch = hn_castlike_batch,
};
