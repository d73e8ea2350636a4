/*
 * Loops of one operand, for unary.c at one instruction level.
 */
#include <stdint.h>

#include "cpu/core/vecexp.h"
#include "cpu/core/vecmath.h"

#define DEFINE_FN(name, EXPR)                                                               \
    static HN_TARGET void HN_V(name)(const float *x, float *y, int64_t n, float a, float b) \
    {                                                                                       \
        (void)a;                                                                            \
        (void)b;                                                                            \
        HN_IVDEP                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                   \
            const float v = x[i];                                                           \
            y[i] = EXPR;                                                                    \
        }                                                                                   \
    }
/* What is multiplied and added is rounded as post operations do it (post_vec.h). */
#define LIMITED(v, lo, hi) ((v) < (lo) ? (lo) : (v) > (hi) ? (hi) : (v))

DEFINE_FN(do_abs, fabsf(v))
DEFINE_FN(do_acos, acosf(v))
DEFINE_FN(do_acosh, acoshf(v))
DEFINE_FN(do_asin, asinf(v))
DEFINE_FN(do_asinh, asinhf(v))
DEFINE_FN(do_atan, atanf(v))
DEFINE_FN(do_atanh, atanhf(v))
DEFINE_FN(do_ceil, ceilf(v))
DEFINE_FN(do_celu, v >= 0 ? v : a * HN_V(expm1_negative)(v * b))
DEFINE_FN(do_cosh, coshf(v))
DEFINE_FN(do_cube, v *v *v)
DEFINE_FN(do_elu, v >= 0 ? v : a * HN_V(expm1_negative)(v))
DEFINE_FN(do_erf, HN_V(erf)(v))
#if HN_LANES != 16
DEFINE_FN(do_exp, HN_V(exp)(v))
#endif
DEFINE_FN(do_floor, floorf(v))
DEFINE_FN(do_hardsigmoid, LIMITED(HN_FMA(a, v, b), 0.0f, 1.0f))
DEFINE_FN(do_hardswish, v *LIMITED(HN_FMA(v, 1.0f / 6, 0.5f), 0.0f, 1.0f))
DEFINE_FN(do_leakyrelu, v >= 0 ? v : a * v)
DEFINE_FN(do_log, HN_V(log)(v))
DEFINE_FN(do_mish, HN_V(mish)(v))
DEFINE_FN(do_neg, -v)
DEFINE_FN(do_power, powf(v, a))
DEFINE_FN(do_reciprocal, 1.0f / v)
DEFINE_FN(do_relu, v <= 0 ? 0 : v)
DEFINE_FN(do_round, rintf(v))
DEFINE_FN(do_selu, b *(v > 0 ? v : a * HN_V(expm1_negative)(v)))
DEFINE_FN(do_shrink, v<-a ? v + b : v> a ? v - b : v != v ? v : 0.0f)
DEFINE_FN(do_sign, v > 0 ? 1.0f : v < 0 ? -1.0f : v)
DEFINE_FN(do_sinh, sinhf(v))
DEFINE_FN(do_softplus, HN_V(softplus)(v))
DEFINE_FN(do_softsign, v / (1.0f + fabsf(v)))
DEFINE_FN(do_sqrt, sqrtf(v))
DEFINE_FN(do_square, v *v)
DEFINE_FN(do_tan, tanf(v))
DEFINE_FN(do_tanh, HN_V(tanh)(v))
DEFINE_FN(do_thresholdedrelu, v > a ? v : v != v ? v : 0.0f)

/* The same of whole vectors */
#define DEFINE_VEC(name, EXPR)                                                              \
    static HN_TARGET void HN_V(name)(const float *x, float *y, int64_t n, float a, float b) \
    {                                                                                       \
        (void)a;                                                                            \
        (void)b;                                                                            \
        int64_t i = 0;                                                                      \
        for (; i + HN_LANES <= n; i += HN_LANES) {                                          \
            const HN_VEC v = HN_VLOAD(x + i);                                               \
            HN_VSTORE(y + i, EXPR);                                                         \
        }                                                                                   \
        if (i < n) {                                                                        \
            const HN_VEC v = HN_VLOAD_N(x + i, (int)(n - i)), last = EXPR;                  \
            HN_VSTORE_N(y + i, last, (int)(n - i));                                         \
        }                                                                                   \
    }

#if HN_LANES == 16
DEFINE_VEC(do_exp, HN_V(vec_exp)(v))
#endif
DEFINE_VEC(do_gelu, HN_V(vec_gelu)(v))
DEFINE_VEC(do_gelu_tanh, HN_V(vec_gelu_tanh)(v))
DEFINE_VEC(do_sigmoid, HN_VSET(1) / HN_V(vec_logistic)(v))
DEFINE_VEC(do_swish, HN_VMUL(v, HN_VSET(1) / HN_V(vec_logistic)(HN_VMUL(HN_VSET(a), v)))) /* as Sigmoid and Mul do it */

static HN_TARGET void HN_V(do_clip)(const float *x, float *y, int64_t n, float a, float b)
{
    HN_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] < a ? a : x[i];
        y[i] = v > b ? b : v;
    }
}

/* quarter in b: 0 sine, 1 cosine. Angles that are too large for the vectors go to C's functions. */
static HN_TARGET void HN_V(do_sine)(const float *x, float *y, int64_t n, float a, float b)
{
    (void)a;
    const int32_t quarter = (int32_t)b;
    int64_t near = 0;
    for (int64_t i = 0; i < n; i++)
        near += fabsf(x[i]) < 0x1p29f;
    if (near < n) {
        for (int64_t i = 0; i < n; i++)
            y[i] = quarter == 0 ? sinf(x[i]) : cosf(x[i]);
        return;
    }
    HN_IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = HN_V(sine)(x[i], quarter);
}

#undef DEFINE_FN
#undef DEFINE_VEC
#undef LIMITED
