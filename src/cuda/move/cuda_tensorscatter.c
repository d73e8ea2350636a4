/*
 * TensorScatter: rows are copied into a cache, in place where the cache is not needed as it was.
 */
#include <inttypes.h>

#include "cuda/move/cuda_strided.h"
#include "cuda/move/cuda_write_args.h"
#include "op/index.h"
#include "op/scatter.h"

#define THREADS 256
#define WIDEST 16

typedef struct {
    HnCuFunction as_is, wide;
    size_t size, width; /* bytes of an element of each */
    int64_t run;
    HnCudaCacheArgs args;
} Cache;

static const char *cache_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0), *updates = hn_cuda_in(s, 1);
    int axis;
    if (!hn_tensorscatter_fits(s->params, x, updates, hn_cuda_in(s, 2), &axis))
        return "shapes that do not fit";
    return updates->n >= HN_DIVIDE_LIMIT ? "2^31 elements or more" : hn_copy_reject(x);
}

static void say_outside(const HnStep *s, int64_t at, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                "write position number %" PRId64 " does not fit into a cache of %" PRId64, at,
                ((const Cache *)s->state)->args.length);
}

static gboolean cache_prepare(HnStep *s, GError **error)
{
    const HnTensorScatter *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    const int axis = hn_axis(p->axis, x->ndim);
    Cache *c = g_new0(Cache, 1);
    s->state = c;
    c->size = hn_dtype_size(x->dtype);
    c->run = hn_span(x->dims, axis + 1, x->ndim);
    const int64_t bytes = (c->run * (int64_t)c->size) | WIDEST;
    c->width = (size_t)(bytes & -bytes);
    c->args.circular = p->circular;
    c->args.length = x->dims[axis];
    c->args.rows = hn_divisor(hn_cuda_in(s, 1)->dims[axis]);
    c->args.per_batch = hn_divisor(hn_span(x->dims, 1, axis));
    c->as_is = hn_cuda_sized(s, "cuda_write", "cache_write", c->size, error);
    c->wide = c->as_is != NULL ? hn_cuda_sized(s, "cuda_write", "cache_write", c->width, error) : NULL;
    return c->wide != NULL && hn_cuda_complains(s, say_outside, &c->args.complaint, error);
}

static gboolean cache_run(HnStep *s, GError **error)
{
    const Cache *c = s->state;
    const HnTensor *cache = hn_cuda_in(s, 0);
    const uint64_t before = hn_cuda_in_address(s, 0);
    HnCudaCacheArgs a = c->args;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 1);
    a.at = hn_cuda_in_address(s, 2);
    const gboolean wide = (a.y | a.x) % c->width == 0;
    const int64_t times = wide ? (int64_t)(c->width / c->size) : 1;
    a.n = (uint32_t)(hn_cuda_in(s, 1)->n / times);
    a.run = hn_divisor(c->run / times);
    return (a.y == before || hn_cuda_copy(s, a.y, before, cache->bytes, error)) &&
           hn_cuda_launch(s, wide ? c->wide : c->as_is, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static void cache_release(HnStep *s)
{
    hn_cuda_complains_no_more(s);
    hn_cuda_release(s);
}

static const HnKernel cache_rows = {
    .name = "cuda.tensorscatter",
    .reject = cache_reject,
    .prepare = cache_prepare,
    .run = cache_run,
    .release = cache_release,
    .inplace = TRUE,
};
const HnKernel *const hn_cuda_tensorscatter[] = { &cache_rows, NULL };
