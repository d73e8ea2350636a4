/*
 * Post operations of one vector at one instruction level. `kind` is a constant; u and w hold a and b, or scale and
 * shift of the vector's channels. NaN stays NaN.
 */
#include "cpu/core/post.h"
#include "cpu/core/vec.h"
#include "cpu/core/vecexp.h"

static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(post)(const HnPostKind kind, HN_VEC v, HN_VEC u,
                                                                         HN_VEC w)
{
    const HN_VEC zero = HN_VSET(0), one = HN_VSET(1);
    switch (kind) {
    case HN_POST_CLIP:
        return HN_VMIN(w, HN_VMAX(u, v));
    case HN_POST_LEAKY:
        return HN_VFMA(u, HN_VMIN(zero, v), HN_VMAX(zero, v));
    case HN_POST_RAMP:
        return HN_VMIN(one, HN_VMAX(zero, HN_VFMA(v, u, w)));
    case HN_POST_GATE:
        return HN_VMUL(v, HN_VMIN(one, HN_VMAX(zero, HN_VFMA(v, u, w))));
    case HN_POST_SCALE:
        return HN_VFMA(v, u, w);
    case HN_POST_SHIFT:
        return HN_VADD(v, w);
    case HN_POST_SIGMOID:
        return one / HN_V(vec_logistic)(v);
    case HN_POST_SWISH:
        return HN_VMUL(v, one / HN_V(vec_logistic)(HN_VMUL(u, v))); /* as Sigmoid and Mul do it, to the bit */
    case HN_POST_GELU:
        return HN_V(vec_gelu)(v);
    case HN_POST_GELU_TANH:
        return HN_V(vec_gelu_tanh)(v);
    }
    return v;
}

/* u or w of channels [c, c + lanes), n of which are there. */
static inline __attribute__((always_inline)) HN_TARGET HN_VEC HN_V(post_operand)(const float *of, float all, int64_t c,
                                                                                 int64_t n)
{
    if (of == NULL)
        return HN_VSET(all);
    return n >= HN_LANES ? HN_VLOAD(of + c) : HN_VLOAD_N(of + c, (int)n);
}
