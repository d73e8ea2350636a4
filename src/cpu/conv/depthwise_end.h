/*
 * The end of tiles of depthwise and grouped convolutions at one instruction level: what is done to sums in registers.
 */
#include "cpu/conv/depthwise.h"
#include "cpu/core/post_vec.h"
#include "cpu/core/vec.h"

#define EACH_POST(KIND)                              \
    case KIND:                                       \
        HN_UNROLL                                    \
        for (int i = 0; i < nx; i++)                 \
            sum[i] = HN_V(post)(KIND, sum[i], u, w); \
        break;

/* lanes: channels that are there. */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(tile_end)(const HnDepthTile *t, int64_t c, int nx,
                                                                           int lanes, HN_VEC *sum)
{
    const HN_VEC lo = HN_VSET(t->lo), hi = HN_VSET(t->hi);
    if (t->add != NULL) {
        HN_UNROLL
        for (int i = 0; i < nx; i++)
            sum[i] = HN_VADD(sum[i], HN_V(post_operand)(t->add + i * t->add_pitch, 0, c, lanes));
    }
    for (int k = 0; k < t->posts; k++) {
        const HnPost *const o = &t->post[k];
        const HN_VEC u = HN_V(post_operand)(o->scale, o->a, c, lanes);
        const HN_VEC w = HN_V(post_operand)(o->shift, o->b, c, lanes);
        switch (o->kind) {
            EACH_POST(HN_POST_CLIP)
            EACH_POST(HN_POST_LEAKY)
            EACH_POST(HN_POST_RAMP)
            EACH_POST(HN_POST_GATE)
            EACH_POST(HN_POST_SCALE)
            EACH_POST(HN_POST_SHIFT)
            EACH_POST(HN_POST_SIGMOID)
            EACH_POST(HN_POST_SWISH)
            EACH_POST(HN_POST_GELU)
            EACH_POST(HN_POST_GELU_TANH)
        }
    }
    HN_UNROLL
    for (int i = 0; i < nx; i++) {
        const HN_VEC v = HN_VMIN(hi, HN_VMAX(lo, sum[i]));
        if (lanes == HN_LANES)
            HN_VSTORE(t->y + i * t->pitch + c, v);
        else
            HN_VSTORE_N(t->y + i * t->pitch + c, v, lanes);
    }
}

#undef EACH_POST
