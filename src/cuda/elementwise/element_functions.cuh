/*
 * What instructions of element-wise programs compute (run/element_codes.def), of f32. NaN comes through all of them.
 */
#pragma once

#include "run/element_codes.h"

#define FUNCTION(name, EXPR)                                                 \
    __device__ __forceinline__ float hn_do_##name(float v, float a, float b) \
    {                                                                        \
        (void)a;                                                             \
        (void)b;                                                             \
        return EXPR;                                                         \
    }
#define PAIR(name, EXPR)                                            \
    __device__ __forceinline__ float hn_do_##name(float p, float q) \
    {                                                               \
        return EXPR;                                                \
    }

__device__ __forceinline__ float hn_limited(float v, float lo, float hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

FUNCTION(abs, fabsf(v))
FUNCTION(acos, acosf(v))
FUNCTION(acosh, acoshf(v))
FUNCTION(asin, asinf(v))
FUNCTION(asinh, asinhf(v))
FUNCTION(atan, atanf(v))
FUNCTION(atanh, atanhf(v))
FUNCTION(ceil, ceilf(v))
FUNCTION(celu, v >= 0 ? v : a * expm1f(v * b))
FUNCTION(clip, hn_limited(v < a ? a : v, -INFINITY, b))
FUNCTION(cosh, coshf(v))
FUNCTION(cube, v *v *v)
FUNCTION(elu, v >= 0 ? v : a * expm1f(v))
FUNCTION(erf, erff(v))
FUNCTION(exp, expf(v))
FUNCTION(floor, floorf(v))
FUNCTION(gelu, v *normcdff(v))
FUNCTION(hardsigmoid, hn_limited(a *v + b, 0.0f, 1.0f))
FUNCTION(hardswish, v *hn_limited(v *(1.0f / 6) + 0.5f, 0.0f, 1.0f))
FUNCTION(leakyrelu, v >= 0 ? v : a * v)
FUNCTION(log, logf(v))
FUNCTION(neg, -v)
FUNCTION(power, powf(v, a))
FUNCTION(reciprocal, 1.0f / v)
FUNCTION(relu, v <= 0 ? 0.0f : v)
FUNCTION(round, rintf(v))
FUNCTION(selu, b *(v > 0 ? v : a * expm1f(v)))
FUNCTION(shrink, v<-a ? v + b : v> a ? v - b : v != v ? v : 0.0f)
FUNCTION(sigmoid, 1.0f / (1.0f + expf(-v)))
FUNCTION(sign, v > 0 ? 1.0f : v < 0 ? -1.0f : v)
FUNCTION(sine, b == 0 ? sinf(v) : cosf(v))
FUNCTION(sinh, sinhf(v))
FUNCTION(softplus, (v > 0 ? v : 0.0f) + log1pf(expf(-fabsf(v))))
FUNCTION(softsign, v / (1.0f + fabsf(v)))
FUNCTION(sqrt, sqrtf(v))
FUNCTION(square, v *v)
FUNCTION(swish, v *hn_do_sigmoid(a *v, 0, 0))
FUNCTION(tan, tanf(v))
FUNCTION(tanh, tanhf(v))
FUNCTION(thresholdedrelu, v > a ? v : v != v ? v : 0.0f)

/* v / 2 (1 + tanh(u)) is v / (1 + e^(-2 u)); u = sqrt(2/pi) (v + 0.044715 v^3) */
FUNCTION(gelu_tanh, v *hn_do_sigmoid(2.0f * (v * v * 0.0356774081f + 0.797884561f) * v, 0, 0))

/* v tanh(log(1 + w)) with w = e^v is v (w^2 + 2 w) / (w^2 + 2 w + 2) */
__device__ __forceinline__ float hn_do_mish(float v, float, float)
{
    const float w = expf(v > 20.0f ? 20.0f : v), q = w * (w + 2.0f);
    return v * (q / (q + 2.0f));
}

FUNCTION(negate, 1.0f - v)
FUNCTION(truth, v != 0 ? 1.0f : 0.0f)

PAIR(add, p + q)
PAIR(sub, p - q)
PAIR(mul, p *q)
PAIR(div, p / q)
PAIR(max, p > q || p != p ? p : q)
PAIR(min, p < q || p != p ? p : q)
PAIR(prelu, p >= 0 ? p : p * q)
PAIR(pow, powf(p, q))

/* The derivative of v times the normal distribution's share below v; beyond 14 its second part is 0. */
__device__ __forceinline__ float hn_do_gelugrad(float p, float q)
{
    const float v = hn_limited(q, -14.0f, 14.0f);
    return p * (normcdff(v) + 0.398942280f * v * expf(-0.5f * v * v));
}

/* The same of v s with s = sigmoid(2 u), as in gelu_tanh; beyond 10 s is 0 or 1. */
__device__ __forceinline__ float hn_do_gelugrad_tanh(float p, float q)
{
    const float v = hn_limited(q, -10.0f, 10.0f), z = v * v;
    const float s = hn_do_sigmoid(2.0f * (z * 0.0356774081f + 0.797884561f) * v, 0, 0);
    return p * (s + v * (z * 0.214064449f + 1.59576912f) * s * (1.0f - s));
}

PAIR(equal, p == q ? 1.0f : 0.0f)
PAIR(greater, p > q ? 1.0f : 0.0f)
PAIR(greaterorequal, p >= q ? 1.0f : 0.0f)
PAIR(less, p < q ? 1.0f : 0.0f)
PAIR(lessorequal, p <= q ? 1.0f : 0.0f)
PAIR(both, p *q)
PAIR(either, p > q ? p : q)
PAIR(one_of, p == q ? 0.0f : 1.0f)

#undef FUNCTION
#undef PAIR
