#include "ptx_each.h"
#include <fenv.h>
#include <math.h>

/* f32 and f64, each lane by itself, and comparisons of all types. */

#define F2(op, f, expr32, expr64)              \
    FN2(op##_f32, float, float, float, expr32) \
    FN2(op##_f64, double, double, double, expr64)

F2(add, , x + y, x + y)
F2(sub, , x - y, x - y)
F2(mul, , x *y, x *y)
F2(div, , x / y, x / y)
FN1(neg_f32, uint32_t, uint32_t, uint32_t, x ^ 0x80000000u)
FN1(neg_f64, uint64_t, uint64_t, uint64_t, x ^ (uint64_t)1 << 63)
FN1(abs_f32, uint32_t, uint32_t, uint32_t, x & 0x7fffffffu)
FN1(abs_f64, uint64_t, uint64_t, uint64_t, x & ~((uint64_t)1 << 63))
FN1(sqrt_f32, float, float, float, sqrtf(x))
FN1(sqrt_f64, double, double, double, sqrt(x))
FN1(rcp_f32, float, float, float, 1 / x)
FN1(rcp_f64, double, double, double, 1 / x)
FN1(rsqrt_f32, float, float, float, (float)(1 / sqrt((double)x)))
FN1(rsqrt_f64, double, double, double, 1 / sqrt(x))
FN1(ex2_f32, float, float, float, exp2f(x))
FN1(lg2_f32, float, float, float, log2f(x))
FN1(sin_f32, float, float, float, sinf(x))
FN1(cos_f32, float, float, float, cosf(x))
FN1(tanh_f32, float, float, float, tanhf(x))
FN2(copysign_f32, float, float, float, copysignf(y, x))
FN2(copysign_f64, double, double, double, copysign(y, x))

static float min32(float x, float y)
{
    return isnan(x) ? y : isnan(y) ? x : x < y || (x == y && signbit(x)) ? x : y;
}

static float max32(float x, float y)
{
    return isnan(x) ? y : isnan(y) ? x : x > y || (x == y && !signbit(x)) ? x : y;
}

static double min64(double x, double y)
{
    return isnan(x) ? y : isnan(y) ? x : x < y || (x == y && signbit(x)) ? x : y;
}

static double max64(double x, double y)
{
    return isnan(x) ? y : isnan(y) ? x : x > y || (x == y && !signbit(x)) ? x : y;
}

F2(min, , min32(x, y), min64(x, y))
F2(max, , max32(x, y), max64(x, y))
#define NO_NUMBER __builtin_nanf("0x3fffff") /* 0x7fffffff, as the manual has it */
FN2(minnan_f32, float, float, float, isnan(x) || isnan(y) ? NO_NUMBER : min32(x, y))
FN2(maxnan_f32, float, float, float, isnan(x) || isnan(y) ? NO_NUMBER : max32(x, y))

#if defined(__x86_64__)
__attribute__((target("fma"))) FN3(fma_f32_fast, float, float, float, __builtin_fmaf(x, y, z))
    __attribute__((target("fma"))) FN3(fma_f64_fast, double, double, double, __builtin_fma(x, y, z))
#define HAVE_FMA __builtin_cpu_supports("fma")
#else
#define fma_f32_fast fma_f32_plain
#define fma_f64_fast fma_f64_plain
#define HAVE_FMA false
#endif
        FN3(fma_f32_plain, float, float, float, fmaf(x, y, z)) FN3(fma_f64_plain, double, double, double, fma(x, y, z))

            static void fma_f32(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    if (HAVE_FMA)
        fma_f32_fast(w, in, mask);
    else
        fma_f32_plain(w, in, mask);
}

static void fma_f64(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    if (HAVE_FMA)
        fma_f64_fast(w, in, mask);
    else
        fma_f64_plain(w, in, mask);
}

/* Bits 0 and 1: NaN or infinity, by name of the property. */
#define TESTP(name, R, expr)                                       \
    static void name(PtxWarp *w, const PtxInst *in, uint32_t mask) \
    {                                                              \
        uint32_t *d = ptx_row(w, in->o[0]), r = 0;                 \
        const R *a = ptx_row(w, in->o[1]);                         \
        for (int l = 0; l < LANES; l++) {                          \
            R x = a[l];                                            \
            r |= (uint32_t)(!!(expr)) << l;                        \
        }                                                          \
        *d = (*d & ~mask) | (r & mask);                            \
    }
TESTP(testp_finite_f32, float, isfinite(x))
TESTP(testp_infinite_f32, float, isinf(x))
TESTP(testp_number_f32, float, !isnan(x))
TESTP(testp_nan_f32, float, isnan(x))
TESTP(testp_normal_f32, float, isnormal(x))
TESTP(testp_subnormal_f32, float, fpclassify(x) == FP_SUBNORMAL)
TESTP(testp_finite_f64, double, isfinite(x))
TESTP(testp_infinite_f64, double, isinf(x))
TESTP(testp_number_f64, double, !isnan(x))
TESTP(testp_nan_f64, double, isnan(x))

#define E(key, fn, form) { key, fn, form, NULL },
#define FF(key, name, form) E(key ".f32", name##_f32, form) E(key ".f64", name##_f64, form)

const PtxEntry ptx_float_entries[] = {
    FF("add", add, "DTT") FF("sub", sub, "DTT") FF("mul", mul, "DTT") FF("div", div, "DTT") FF("fma", fma, "DTTT")
        FF("mad", fma, "DTTT") FF("neg", neg, "DT") FF("abs", abs, "DT") FF("sqrt", sqrt, "DT") FF("rcp", rcp, "DT")
            FF("rsqrt", rsqrt, "DT") FF("min", min, "DTT") FF("max", max, "DTT") FF("copysign", copysign, "DTT")
                E("min.NaN.f32", minnan_f32, "DTT") E("max.NaN.f32", maxnan_f32, "DTT") E("ex2.f32", ex2_f32, "DT")
                    E("lg2.f32", lg2_f32, "DT") E("sin.f32", sin_f32, "DT") E("cos.f32", cos_f32, "DT") E(
                        "tanh.f32", tanh_f32, "DT") E("testp.finite.f32", testp_finite_f32, "PT")
                        E("testp.infinite.f32", testp_infinite_f32, "PT") E("testp.number.f32", testp_number_f32, "PT")
                            E("testp.notanumber.f32", testp_nan_f32, "PT") E("testp.normal.f32", testp_normal_f32, "PT")
                                E("testp.subnormal.f32", testp_subnormal_f32, "PT")
                                    E("testp.finite.f64", testp_finite_f64, "PT")
                                        E("testp.infinite.f64", testp_infinite_f64, "PT") E("testp.number.f64",
                                                                                            testp_number_f64, "PT")
                                            E("testp.notanumber.f64", testp_nan_f64, "PT"){ NULL, NULL, NULL, NULL },
};

/* --- rounding modes and saturation --- */

void ptx_run_rounded(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    int before = fegetround();
    fesetround(in->round == ROUND_ZERO ? FE_TOWARDZERO : in->round == ROUND_DOWN ? FE_DOWNWARD : FE_UPWARD);
    in->inner(w, in, mask);
    fesetround(before);
}

void ptx_run_saturated(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    in->inner(w, in, mask);
    if (in->type == T_F64) {
        double *d = ptx_row(w, in->o[0]);
        EACH({ d[l] = d[l] > 0 ? MIN(d[l], 1) : 0; });
    } else {
        float *d = ptx_row(w, in->o[0]);
        EACH({ d[l] = d[l] > 0 ? MIN(d[l], 1) : 0; });
    }
}

/* --- comparisons: a bit for each lane --- */

/* Compares into bytes, which vectors can do, and gathers their bits. */
#define COMPARE(name, R, T, load, expr)                                               \
    static uint32_t name(PtxWarp *w, const PtxInst *in, uint32_t mask)                \
    {                                                                                 \
        const R *a = ptx_row(w, in->o[in->sub]), *b = ptx_row(w, in->o[in->sub + 1]); \
        R r[LANES];                                                                   \
        uint32_t bits = 0;                                                            \
        (void)mask;                                                                   \
        for (int l = 0; l < LANES; l++) {                                             \
            T x = load(a[l]), y = load(b[l]);                                         \
            r[l] = (R)((expr) ? 1 : 0);                                               \
        }                                                                             \
        for (int l = 0; l < LANES; l++)                                               \
            bits |= (uint32_t)(r[l] != 0) << l;                                       \
        return bits;                                                                  \
    }
#define AS_IS(x) (x)
#define AS_S16(x) (int16_t)(x)
#define AS_U16(x) (uint16_t)(x)
#define AS_S32(x) (int32_t)(x)
#define AS_S64(x) (int64_t)(x)
#define AS_HALF(x) ptx_half_to_float((uint16_t)(x))
#define AS_BF16(x) ptx_bf16_to_float((uint16_t)(x))
#define ORDERED(t, R, T, load)                              \
    COMPARE(eq_##t, R, T, load, x == y)                     \
    COMPARE(ne_##t, R, T, load, x != y && x == x && y == y) \
    COMPARE(lt_##t, R, T, load, x < y)                      \
    COMPARE(le_##t, R, T, load, x <= y)                     \
    COMPARE(gt_##t, R, T, load, x > y)                      \
    COMPARE(ge_##t, R, T, load, x >= y)
#define UNORDERED(t, R, T, load)                    \
    COMPARE(equ_##t, R, T, load, !(x < y || x > y)) \
    COMPARE(neu_##t, R, T, load, x != y)            \
    COMPARE(ltu_##t, R, T, load, !(x >= y))         \
    COMPARE(leu_##t, R, T, load, !(x > y))          \
    COMPARE(gtu_##t, R, T, load, !(x <= y))         \
    COMPARE(geu_##t, R, T, load, !(x < y))          \
    COMPARE(num_##t, R, T, load, x == x && y == y)  \
    COMPARE(nan_##t, R, T, load, x != x || y != y)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtautological-compare"
ORDERED(u16, uint32_t, uint16_t, AS_U16)
ORDERED(s16, uint32_t, int16_t, AS_S16)
ORDERED(u32, uint32_t, uint32_t, AS_IS)
ORDERED(s32, uint32_t, int32_t, AS_S32)
ORDERED(u64, uint64_t, uint64_t, AS_IS)
ORDERED(s64, uint64_t, int64_t, AS_S64)
ORDERED(f16, uint32_t, float, AS_HALF)
ORDERED(bf16, uint32_t, float, AS_BF16)
ORDERED(f32, float, float, AS_IS)
ORDERED(f64, double, double, AS_IS)
UNORDERED(f16, uint32_t, float, AS_HALF)
UNORDERED(bf16, uint32_t, float, AS_BF16)
UNORDERED(f32, float, float, AS_IS)
UNORDERED(f64, double, double, AS_IS)
#pragma GCC diagnostic pop

static const char *const comparisons[] = { "eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                           "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
#define ROW6(t) eq_##t, ne_##t, lt_##t, le_##t, gt_##t, ge_##t
#define ROW14(t) ROW6(t), equ_##t, neu_##t, ltu_##t, leu_##t, gtu_##t, geu_##t, num_##t, nan_##t
static const PtxCompare compare_table[T_COUNT][14] = {
    [T_B16] = { ROW6(u16) },  [T_U16] = { ROW6(u16) },  [T_S16] = { ROW6(s16) },    [T_B32] = { ROW6(u32) },
    [T_U32] = { ROW6(u32) },  [T_S32] = { ROW6(s32) },  [T_B64] = { ROW6(u64) },    [T_U64] = { ROW6(u64) },
    [T_S64] = { ROW6(s64) },  [T_F16] = { ROW14(f16) }, [T_BF16] = { ROW14(bf16) }, [T_F32] = { ROW14(f32) },
    [T_F64] = { ROW14(f64) },
};

/* how: ".lt"; .lo, .ls, .hi and .hs are the unsigned ones. */
PtxCompare ptx_compare_of(PtxWord how, PtxType t)
{
    static const char *const old[] = { ".lo", ".ls", ".hi", ".hs" };
    for (int i = 0; i < 4; i++)
        if (ptx_is(how, old[i]))
            return compare_table[t][2 + i];
    for (int i = 0; i < 14; i++)
        if (how.n == 1 + strlen(comparisons[i]) && memcmp(how.s + 1, comparisons[i], how.n - 1) == 0)
            return compare_table[t][i];
    return NULL;
}

/* The result joined with a predicate, as in->vec says: 0 none, 1 and, 2 or, 3 xor. */
static uint32_t joined(PtxWarp *w, const PtxInst *in, uint32_t r, int32_t row)
{
    if (!in->vec)
        return r;
    uint32_t p = *(const uint32_t *)ptx_row(w, row);
    if (in->flags & PTX_NOT)
        p = ~p;
    return in->vec == 1 ? r & p : in->vec == 2 ? r | p : r ^ p;
}

/* in->sub: where the two operands start; 2: there is a second result, of the opposite. */
void ptx_run_setp(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t r = in->compare(w, in, mask);
    int32_t p = in->o[in->sub + 2];
    if (in->o[0] != -1) {
        uint32_t *d = ptx_row(w, in->o[0]), v = joined(w, in, r, p), q = in->sub == 2 ? joined(w, in, ~r, p) : 0;
        *d = (*d & ~mask) | (v & mask);
        if (in->sub == 2 && in->o[1] != -1) {
            d = ptx_row(w, in->o[1]);
            *d = (*d & ~mask) | (q & mask);
        }
    }
}

void ptx_run_set(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    uint32_t r = joined(w, in, in->compare(w, in, mask), in->o[3]);
    uint32_t yes = in->type == T_F32    ? 0x3f800000u
                   : in->type == T_F16  ? 0x3c00u
                   : in->type == T_BF16 ? 0x3f80u
                                        : UINT32_MAX;
    uint32_t *d = ptx_row(w, in->o[0]);
    EACH({ d[l] = r >> l & 1 ? yes : 0; });
}
