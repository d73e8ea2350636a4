#include "ptx_each.h"
#include <fenv.h>
#include <math.h>

/* Numbers of 16 bits, and conversions between all types. */

float ptx_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 0x3ffu, v;
    if (e == 31)
        v = sign | 0x7f800000u | m << 13;
    else if (e)
        v = sign | (e + 112) << 23 | m << 13;
    else {
        float f = (float)m * 0x1p-24f;
        memcpy(&v, &f, 4);
        v |= sign;
    }
    float f;
    memcpy(&f, &v, 4);
    return f;
}

float ptx_bf16_to_float(uint16_t h)
{
    uint32_t v = (uint32_t)h << 16;
    float f;
    memcpy(&f, &v, 4);
    return f;
}

/* x with so many bits of mantissa behind the first one; least: the exponent of the smallest normal number. */
double ptx_round_to(double x, int mantissa, int least, PtxRound r)
{
    if (x == 0 || !isfinite(x))
        return x;
    int e = ilogb(x);
    e = MAX(e, least) - mantissa;
    double q = ldexp(x, -e), w = floor(q), rest = q - w; /* exact: q has at most 53 bits */
    switch (r) {
    case ROUND_ZERO:
        w = trunc(q);
        break;
    case ROUND_DOWN:
        break;
    case ROUND_UP:
        w = ceil(q);
        break;
    case ROUND_AWAY:
        w = round(q);
        break;
    default:
        w += rest > 0.5 || (rest == 0.5 && fmod(w, 2) != 0) ? 1 : 0;
    }
    return copysign(ldexp(w, e), x);
}

/* Beyond the largest number: infinity, or that number where it is rounded the other way. */
static double overflow(double y, double largest, PtxRound r)
{
    if (!(fabs(y) > largest) || isinf(y))
        return y;
    bool up = r == ROUND_NEAREST || r == ROUND_AWAY || (r == ROUND_UP && y > 0) || (r == ROUND_DOWN && y < 0);
    return copysign(up ? HUGE_VAL : largest, y);
}

uint16_t ptx_to_half(double x, PtxRound r)
{
    if (isnan(x))
        return 0x7fff;
    double y = isinf(x) ? x : overflow(ptx_round_to(x, 10, -14, r), 65504, r);
    uint16_t sign = signbit(y) ? 0x8000 : 0;
    y = fabs(y);
    if (isinf(y))
        return sign | 0x7c00;
    if (y < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)(y * 0x1p24));
    int e = ilogb(y);
    return (uint16_t)(sign | (uint16_t)((e + 15) << 10) | ((uint16_t)ldexp(y, 10 - e) & 0x3ff));
}

uint16_t ptx_to_bf16(double x, PtxRound r)
{
    if (isnan(x))
        return 0x7fff;
    float f = (float)(isinf(x) ? x : overflow(ptx_round_to(x, 7, -126, r), 0x1.fep127, r));
    uint32_t v;
    memcpy(&v, &f, 4);
    return (uint16_t)(v >> 16);
}

static double half_in(uint32_t h, bool b)
{
    return (double)(b ? ptx_bf16_to_float((uint16_t)h) : ptx_half_to_float((uint16_t)h));
}

static uint16_t half_out(double x, bool b, PtxRound r)
{
    return b ? ptx_to_bf16(x, r) : ptx_to_half(x, r);
}

enum { H_ADD, H_SUB, H_MUL, H_FMA, H_NEG, H_ABS, H_MIN, H_MAX, H_EX2, H_TANH, H_COPY };

static double least(double x, double y, bool nan)
{
    if (isnan(x) || isnan(y))
        return nan || (isnan(x) && isnan(y)) ? (double)NAN : isnan(x) ? y : x;
    return x < y || (x == y && signbit(x)) ? x : y;
}

static uint16_t half_op(const PtxInst *in, int op, uint16_t a, uint16_t b, uint16_t c, bool bf)
{
    if (op == H_NEG)
        return a ^ 0x8000;
    if (op == H_ABS)
        return a & 0x7fff;
    double x = half_in(a, bf), y = half_in(b, bf), v = 0;
    bool nan = in->flags & PTX_NAN;
    switch (op) {
    case H_ADD:
        v = x + y;
        break;
    case H_SUB:
        v = x - y;
        break;
    case H_MUL:
        v = x * y;
        break;
    case H_FMA:
        v = x * y + half_in(c, bf); /* the product is exact */
        break;
    case H_MIN:
        v = least(x, y, nan);
        break;
    case H_MAX:
        v = -least(-x, -y, nan);
        break;
    case H_EX2:
        v = exp2(x);
        break;
    case H_TANH:
        v = tanh(x);
        break;
    default:
        break;
    }
    if (in->flags & PTX_SAT)
        v = v > 0 ? MIN(v, 1) : 0;
    if ((in->flags & PTX_RELU) && !(v > 0) && !isnan(v))
        v = 0;
    return half_out(v, bf, (PtxRound)in->round);
}

#define HALF(name, op)                                                                                                 \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask)                                                     \
    {                                                                                                                  \
        uint32_t *d = ptx_row(w, in->o[0]);                                                                            \
        const uint32_t *a = ptx_row(w, in->o[1]), *b = in->n > 2 ? ptx_row(w, in->o[2]) : a,                           \
                       *c = in->n > 3 ? ptx_row(w, in->o[3]) : a;                                                      \
        bool two = in->type == T_F16X2 || in->type == T_BF16X2, bf = in->type == T_BF16 || in->type == T_BF16X2;       \
        for (uint32_t m = mask; m; m &= m - 1) {                                                                       \
            int l = __builtin_ctz(m);                                                                                  \
            uint32_t v = half_op(in, op, (uint16_t)a[l], (uint16_t)b[l], (uint16_t)c[l], bf);                          \
            if (two)                                                                                                   \
                v |= (uint32_t)half_op(in, op, (uint16_t)(a[l] >> 16), (uint16_t)(b[l] >> 16), (uint16_t)(c[l] >> 16), \
                                       bf)                                                                             \
                     << 16;                                                                                            \
            d[l] = v;                                                                                                  \
        }                                                                                                              \
    }
HALF(half_add, H_ADD)
HALF(half_sub, H_SUB)
HALF(half_mul, H_MUL)
HALF(half_fma, H_FMA)
HALF(half_neg, H_NEG)
HALF(half_abs, H_ABS)
HALF(half_min, H_MIN)
HALF(half_max, H_MAX)
HALF(half_ex2, H_EX2)
HALF(half_tanh, H_TANH)

/* set with halves in pairs, and their comparison with two predicates, are not made by nvcc for scalar code: left out.
 */

#define E(key, fn, form) { key, fn, form, NULL },
#define H4(op, fn, form) \
    E(op ".f16", fn, form) E(op ".f16x2", fn, form) E(op ".bf16", fn, form) E(op ".bf16x2", fn, form)
const PtxEntry ptx_half_entries[] = {
    H4("add", half_add, "DTT") H4("sub", half_sub, "DTT") H4("mul", half_mul, "DTT") H4("fma", half_fma, "DTTT")
        H4("neg", half_neg, "DT") H4("abs", half_abs, "DT") H4("min", half_min, "DTT") H4("max", half_max, "DTT")
            H4("min.NaN", half_min, "DTT") H4("max.NaN", half_max, "DTT") H4("ex2", half_ex2, "DT")
                H4("tanh", half_tanh, "DT"){ NULL, NULL, NULL, NULL },
};

/* --- cvt --- */

typedef struct {
    bool real;
    double f;
    int64_t i; /* bits of an unsigned one, too */
} Value;

static Value value_of(PtxType t, uint64_t bits)
{
    Value v = { .real = false };
    float f;
    uint32_t low = (uint32_t)bits;
    switch (t) {
    case T_F16:
    case T_BF16:
        v = (Value){ true, half_in(low, t == T_BF16), 0 };
        break;
    case T_F32:
        memcpy(&f, &low, 4);
        v = (Value){ true, (double)f, 0 };
        break;
    case T_F64:
        v.real = true;
        memcpy(&v.f, &bits, 8);
        break;
    case T_S8:
        v.i = (int8_t)bits;
        break;
    case T_S16:
        v.i = (int16_t)bits;
        break;
    case T_S32:
        v.i = (int32_t)bits;
        break;
    case T_U8:
    case T_B8:
        v.i = (uint8_t)bits;
        break;
    case T_U16:
    case T_B16:
        v.i = (uint16_t)bits;
        break;
    case T_U32:
    case T_B32:
        v.i = (uint32_t)bits;
        break;
    default:
        v.i = (int64_t)bits;
    }
    return v;
}

static double whole(double x, PtxRound r)
{
    return r == ROUND_ZERO ? trunc(x) : r == ROUND_DOWN ? floor(x) : r == ROUND_UP ? ceil(x) : nearbyint(x);
}

/* A number as an integer of so many bits. */
static uint64_t to_integer(const PtxInst *in, Value v)
{
    PtxType t = (PtxType)in->type;
    int bits = 8 * (int)ptx_type_bytes(t);
    bool sign = ptx_is_signed(t);
    if (v.real) {
        if (isnan(v.f))
            return in->from == T_F64 || bits == 64 ? (uint64_t)1 << (bits - 1) : 0;
        double x = whole(v.f, (PtxRound)in->round), top = ldexp(1, sign ? bits - 1 : bits);
        if (x >= top)
            return sign ? ((uint64_t)1 << (bits - 1)) - 1 : UINT64_MAX;
        if (x < (sign ? -top : 0))
            return sign ? (uint64_t) - ((int64_t)1 << (bits - 2)) * 2 : 0;
        return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    }
    if (in->flags & PTX_SAT) {
        bool big = in->from == T_U64 && v.i < 0;
        if (sign && bits < 64)
            return (uint64_t)(big ? ((int64_t)1 << (bits - 1)) - 1
                                  : CLAMP(v.i, -((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1));
        if (sign)
            return big ? INT64_MAX : (uint64_t)v.i;
        if (v.i < 0 && !big)
            return 0;
        return bits < 64 && (big || v.i >= (int64_t)1 << bits) ? ((uint64_t)1 << bits) - 1 : (uint64_t)v.i;
    }
    return (uint64_t)v.i;
}

static uint64_t to_real(const PtxInst *in, Value v)
{
    PtxType t = (PtxType)in->type;
    PtxRound r = (PtxRound)in->round;
    bool wide = in->from == T_U64;
    if (v.real && in->sub)
        v.f = whole(v.f, r);
    if (in->flags & PTX_SAT)
        v.f = v.real ? (v.f > 0 ? MIN(v.f, 1) : 0) : v.f;
    if ((in->flags & PTX_RELU) && v.real && !(v.f > 0) && !isnan(v.f))
        v.f = 0;
    if (t == T_F64) {
        double d = v.real ? v.f : wide ? (double)(uint64_t)v.i : (double)v.i;
        uint64_t bits;
        memcpy(&bits, &d, 8);
        return bits;
    }
    if (t == T_F32) {
        volatile float f = v.real ? (float)v.f : wide ? (float)(uint64_t)v.i : (float)v.i;
        float g = f;
        uint32_t bits;
        memcpy(&bits, &g, 4);
        if (isnan(g))
            bits = 0x7fffffff;
        return bits;
    }
    if (t == T_TF32) {
        float f = (float)(isfinite(v.f) ? ptx_round_to(v.f, 10, -126, r) : v.f);
        uint32_t bits;
        memcpy(&bits, &f, 4);
        return bits;
    }
    double d = v.real ? v.f : wide ? (double)(uint64_t)v.i : (double)v.i;
    return half_out(d, t == T_BF16, r);
}

static uint64_t read_bits(const void *row, bool wide, int l)
{
    return wide ? ((const uint64_t *)row)[l] : ((const uint32_t *)row)[l];
}

static void cvt_pair(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t *d = ptx_row(w, in->o[0]);
    const uint32_t *a = ptx_row(w, in->o[1]), *b = ptx_row(w, in->o[2]);
    PtxInst one = *in;
    one.type = in->type == T_F16X2 ? T_F16 : T_BF16;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        d[l] = (uint32_t)(to_real(&one, value_of((PtxType)in->from, a[l])) << 16 |
                          to_real(&one, value_of((PtxType)in->from, b[l])));
    }
}

void ptx_run_cvt(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    if (in->type == T_F16X2 || in->type == T_BF16X2) {
        cvt_pair(w, in, mask);
        return;
    }
    void *d = ptx_row(w, in->o[0]);
    const void *a = ptx_row(w, in->o[1]);
    bool real = ptx_is_float((PtxType)in->type), d_wide = in->wide & 1, a_wide = in->wide & 2;
    size_t bytes = ptx_type_bytes((PtxType)in->type);
    bool mode = real && (in->type == T_F32 || in->type == T_F64) && in->round != ROUND_NEAREST && !in->sub;
    int before = fegetround();
    if (mode)
        fesetround(in->round == ROUND_ZERO ? FE_TOWARDZERO : in->round == ROUND_DOWN ? FE_DOWNWARD : FE_UPWARD);
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        Value v = value_of((PtxType)in->from, read_bits(a, a_wide, l));
        uint64_t r = real ? to_real(in, v) : to_integer(in, v);
        if (bytes < 8 && !real) /* wider registers get the sign, or zeros */
            r = ptx_is_signed((PtxType)in->type) ? (uint64_t)((int64_t)(r << (64 - 8 * bytes)) >> (64 - 8 * bytes))
                                                 : r & (((uint64_t)1 << 8 * bytes) - 1);
        if (d_wide)
            ((uint64_t *)d)[l] = r;
        else
            ((uint32_t *)d)[l] = (uint32_t)r;
    }
    if (mode)
        fesetround(before);
}
