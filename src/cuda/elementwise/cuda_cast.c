/*
 * Cast and CastLike between all types with a number in them.
 */
#include "op/cast.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/elementwise/cuda_cast_args.h"
#include "cuda/elementwise/cuda_map_args.h"
#include "cuda/elementwise/cuda_walk.h"

#define THREADS 256
#define EACH 8 /* floats that a thread converts at a time */

G_STATIC_ASSERT((int)HN_CUDA_FROM_F32 == (int)HN_F32 && (int)HN_CUDA_FROM_U8 == (int)HN_U8);
G_STATIC_ASSERT((int)HN_CUDA_FROM_BF16 == (int)HN_BF16 && (int)HN_CUDA_FROM_I2 == (int)HN_I2);
G_STATIC_ASSERT((int)HN_CUDA_FROM_BOOL == (int)HN_BOOL && (int)HN_CUDA_FROM_F8E8M0 == (int)HN_F8E8M0);

typedef struct {
    HnCuFunction f; /* NULL: the elements stay as they are */
    HnCudaGrid grid;
    HnCudaCastArgs args;
    HnCuFunction floats; /* where both are floats; NULL: they are not */
} Cast;

static const char *cast_reject(const HnStep *s)
{
    return hn_convertible(hn_cuda_in(s, 0)->dtype) && hn_convertible(hn_cuda_out(s, 0)->dtype)
               ? NULL
               : "a type without numbers";
}

static gboolean cast_prepare(HnStep *s, GError **error)
{
    const HnCast *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    Cast *c = g_new0(Cast, 1);
    s->state = c;
    if (s->n_in > 1)
        s->in[1].unread = s->in[1].slot != NULL; /* only its type counts */
    if (x->dtype == y->dtype)
        return TRUE;
    c->args.n = x->n;
    c->args.from = (int32_t)x->dtype;
    c->args.saturate = p->how.saturate;
    c->args.round = (int32_t)p->how.round;
    c->grid = hn_cuda_quads(s, x->n, THREADS);
    c->f = hn_cuda_typed(s, "cuda_cast", "cast", y->dtype, error);
    if (c->f == NULL || !hn_cuda_is_float(x->dtype) || !hn_cuda_is_float(y->dtype))
        return c->f != NULL;
    g_autofree char *prefix = g_strdup_printf("map_%s_to", hn_dtype_name(x->dtype));
    c->floats = hn_cuda_typed(s, "cuda_map", prefix, y->dtype, error);
    return c->floats != NULL;
}

static gboolean cast_run(HnStep *s, GError **error)
{
    const Cast *c = s->state;
    HnCudaCastArgs a = c->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    if (c->f == NULL)
        return a.x == a.y || hn_cuda_copy(s, a.y, a.x, hn_cuda_in(s, 0)->bytes, error);
    if (c->floats != NULL && a.n > 0 && (a.x | a.y) % HN_CUDA_MAP_BYTES == 0) {
        const HnCudaMapArgs m = { .z = a.y, .x = a.x, .n = a.n };
        return hn_cuda_launch(s, c->floats,
                              hn_cuda_spread(s, a.n / (EACH * HN_CUDA_MAP_TIMES) + 1, HN_CUDA_MAP_THREADS), &m, error);
    }
    return a.n == 0 || hn_cuda_launch(s, c->f, c->grid, &a, error);
}

static const HnKernel cast = {
    .name = "cuda.cast",
    .reject = cast_reject,
    .prepare = cast_prepare,
    .run = cast_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_cast[] = { &cast, NULL };
const HnKernel *const hn_cuda_castlike[] = { &cast, NULL };
