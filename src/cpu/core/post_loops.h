/*
 * Post operations of rows in memory, for post.c at one instruction level.
 */
#include "cpu/core/post_vec.h"

/* One operation for one vector of each row. */
#define ROWS_OF(KIND)                                            \
    case KIND:                                                   \
        for (int64_t r = 0; r < rows; r++) {                     \
            float *const at = y + r * pitch;                     \
            HN_VSTORE(at, HN_V(post)(KIND, HN_VLOAD(at), u, w)); \
        }                                                        \
        break;
#define ENDS_OF(KIND)                                                        \
    case KIND:                                                               \
        for (int64_t r = 0; r < rows; r++) {                                 \
            float *const at = y + r * pitch;                                 \
            const HN_VEC v = HN_V(post)(KIND, HN_VLOAD_N(at, (int)n), u, w); \
            HN_VSTORE_N(at, v, (int)n);                                      \
        }                                                                    \
        break;
#define EACH_KIND(OF)   \
    OF(HN_POST_CLIP)    \
    OF(HN_POST_LEAKY)   \
    OF(HN_POST_RAMP)    \
    OF(HN_POST_GATE)    \
    OF(HN_POST_SCALE)   \
    OF(HN_POST_SHIFT)   \
    OF(HN_POST_SIGMOID) \
    OF(HN_POST_SWISH)   \
    OF(HN_POST_GELU)    \
    OF(HN_POST_GELU_TANH)

static HN_TARGET void HN_V(post_rows)(const HnPost *p, float *y, int64_t pitch, int64_t rows, int64_t c, int64_t n)
{
    const HN_VEC u = HN_V(post_operand)(p->scale, p->a, c, n), w = HN_V(post_operand)(p->shift, p->b, c, n);
    if (n >= HN_LANES) {
        switch (p->kind) {
            EACH_KIND(ROWS_OF)
        }
    } else {
        switch (p->kind) {
            EACH_KIND(ENDS_OF)
        }
    }
}

#undef ROWS_OF
#undef ENDS_OF
#undef EACH_KIND
