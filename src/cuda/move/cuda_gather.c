/*
 * Gather, GatherND, RowLookup: rows that indices name, in elements of 16 bytes where rows are made of these.
 * GatherElements: single elements.
 */
#include "cuda/move/cuda_gather.h"

#include <inttypes.h>

#include "op/gather.h"
#include "op/index.h"
#include "run/index_forms.h"

#define THREADS 256
#define WIDEST 16

static void say_outside(const HnStep *s, int64_t at, GError **error)
{
    (void)s;
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "index number %" PRId64 " is outside of its axis", at);
}

gboolean hn_cuda_indices_new(HnStep *s, int i, HnCudaIndices *at, GError **error)
{
    at->wide = hn_cuda_in(s, i)->dtype == HN_I64;
    return hn_cuda_complains(s, say_outside, &at->complaint, error);
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction as_is, wide; /* wide: NULL where rows are not made of wider elements */
    HnCuFunction check;       /* of indices alone, where nothing is gathered; else NULL */
    size_t size, width;       /* bytes of an element of each */
    int64_t outer, count, run;
    HnCudaGatherArgs args; /* of elements as they are; n and divisors are filled in by run */
} Rows;

static gboolean rows_new(HnStep *s, Rows *r, GError **error)
{
    const int64_t bytes = (r->run * (int64_t)r->size) | WIDEST;
    s->state = r;
    if (hn_cuda_out(s, 0)->n == 0) {
        r->args.n = r->args.zeros ? 0 : (uint32_t)hn_cuda_in(s, 1)->n;
        return (r->check = hn_cuda_named(s, "cuda_gather", "gather_check", error)) != NULL &&
               hn_cuda_indices_new(s, 1, &r->args.at, error);
    }
    r->width = (size_t)(bytes & -bytes);
    r->as_is = hn_cuda_sized(s, "cuda_gather", "gather_rows", r->size, error);
    if (r->as_is != NULL && r->width > r->size)
        r->wide = hn_cuda_sized(s, "cuda_gather", "gather_rows", r->width, error);
    return r->as_is != NULL && (r->wide != NULL || r->width <= r->size) &&
           hn_cuda_indices_new(s, 1, &r->args.at, error);
}

/* Of rows of so many elements. */
static const char *rows_reject(const HnStep *s, int64_t run)
{
    if (hn_cuda_out(s, 0)->n == 0 && hn_cuda_in(s, 1)->n >= HN_DIVIDE_LIMIT)
        return "2^31 indices or more";
    return run >= HN_DIVIDE_LIMIT ? "rows of 2^31 elements or more" : NULL;
}

static const char *gather_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    const char *reason = rows_reject(s, hn_span(x->dims, hn_gather_axis(s) + 1, x->ndim));
    return reason != NULL ? reason : hn_gather_reject(s);
}

static gboolean gather_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    const int axis = hn_gather_axis(s);
    Rows *r = g_new0(Rows, 1);
    r->outer = hn_span(x->dims, 0, axis);
    r->count = hn_cuda_in(s, 1)->n;
    r->run = hn_span(x->dims, axis + 1, x->ndim);
    r->size = hn_dtype_size(x->dtype);
    r->args.depth = 1;
    r->args.dims[0] = x->dims[axis];
    r->args.strides[0] = r->run;
    r->args.x_outer = x->dims[axis] * r->run;
    return rows_new(s, r, error);
}

static const char *tuples_reject(const HnStep *s)
{
    const HnGather *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *at = hn_cuda_in(s, 1);
    const char *reason = hn_gather_tuples_reject(s);
    if (reason != NULL || at->n == 0)
        return reason != NULL ? reason : rows_reject(s, 0);
    return rows_reject(s, hn_span(x->dims, (int)(p->batch_dims + at->dims[at->ndim - 1]), x->ndim));
}

static gboolean tuples_prepare(HnStep *s, GError **error)
{
    const HnGather *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *at = hn_cuda_in(s, 1);
    const int b = (int)p->batch_dims, depth = (int)at->dims[at->ndim - 1];
    Rows *r = g_new0(Rows, 1);
    r->outer = hn_span(x->dims, 0, b);
    r->count = hn_span(at->dims, b, at->ndim - 1);
    r->run = hn_span(x->dims, b + depth, x->ndim);
    r->size = hn_dtype_size(x->dtype);
    r->args.depth = depth;
    r->args.at_outer = r->count * depth;
    r->args.x_outer = hn_span(x->dims, b, x->ndim);
    hn_strides(depth, x->dims + b, r->args.strides);
    for (int d = 0; d < depth; d++) {
        r->args.dims[d] = x->dims[b + d];
        r->args.strides[d] *= r->run;
    }
    return rows_new(s, r, error);
}

static const char *lookup_reject(const HnStep *s)
{
    const char *reason = rows_reject(s, hn_cuda_in(s, 0)->dims[1]);
    return reason != NULL ? reason : hn_gather_reject(s);
}

static gboolean lookup_prepare(HnStep *s, GError **error)
{
    const HnTensor *table = hn_cuda_in(s, 0);
    Rows *r = g_new0(Rows, 1);
    r->outer = 1;
    r->count = hn_cuda_in(s, 1)->n;
    r->run = table->dims[1];
    r->size = hn_dtype_size(table->dtype);
    r->args.depth = 1;
    r->args.zeros = 1;
    r->args.dims[0] = table->dims[0];
    r->args.strides[0] = r->run;
    return rows_new(s, r, error);
}

/* Rows [k, k + count) of outers [o, o + outer); r's sizes in elements of `size` bytes. */
static gboolean launch_rows(const HnStep *s, const Rows *r, HnCuFunction f, HnCudaGatherArgs a, int64_t run,
                            size_t size, int64_t o, int64_t outer, int64_t k, int64_t count, GError **error)
{
    const uint64_t index = a.at.wide ? sizeof(int64_t) : sizeof(int32_t);
    a.y += (uint64_t)((o * r->count + k) * run) * size;
    a.x += (uint64_t)(o * a.x_outer) * size;
    a.at_first = o * a.at_outer + k * a.depth;
    a.at.data += (uint64_t)a.at_first * index;
    a.n = (uint32_t)(outer * count * run);
    a.run = hn_divisor(run);
    a.count = hn_divisor(count);
    return hn_cuda_launch(s, f, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static gboolean rows_run(HnStep *s, GError **error)
{
    const Rows *r = s->state;
    HnCudaGatherArgs a = r->args;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 0);
    a.at.data = hn_cuda_in_address(s, 1);
    if (r->check != NULL)
        return a.n == 0 || hn_cuda_launch(s, r->check, hn_cuda_loop(s, a.n, THREADS), &a, error);
    const gboolean wide = r->wide != NULL && (a.y | a.x) % r->width == 0;
    const size_t size = wide ? r->width : r->size;
    const int64_t times = (int64_t)(size / r->size), run = r->run / times;
    a.x_outer /= times;
    for (int d = 0; d < a.depth; d++)
        a.strides[d] /= times;
    /* numbers of a launch stay below HN_DIVIDE_LIMIT: several outers at once, or parts of one */
    const int64_t rows = (HN_DIVIDE_LIMIT - 1) / run, counts = MIN(r->count, rows);
    const int64_t outers = counts < r->count ? 1 : rows / r->count;
    for (int64_t o = 0; o < r->outer; o += outers)
        for (int64_t k = 0; k < r->count; k += counts)
            if (!launch_rows(s, r, wide ? r->wide : r->as_is, a, run, size, o, MIN(outers, r->outer - o), k,
                             MIN(counts, r->count - k), error))
                return FALSE;
    return TRUE;
}

static void gather_release(HnStep *s)
{
    hn_cuda_complains_no_more(s);
    hn_cuda_release(s);
}

#define KERNEL(op, how)                 \
    static const HnKernel op##_rows = { \
        .name = "cuda." #op,            \
        .reject = how##_reject,         \
        .prepare = how##_prepare,       \
        .run = rows_run,                \
        .release = gather_release,      \
    };                                  \
    const HnKernel *const hn_cuda_##op[] = { &op##_rows, NULL };
KERNEL(gather, gather)
KERNEL(gathernd, tuples)
KERNEL(rowlookup, lookup)

/* --- elements ---------------------------------------------------------------------------------------------------- */

gboolean hn_cuda_elements_new(HnStep *s, int axis, HnCudaElementsArgs *a, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0), *at = hn_cuda_in(s, 1);
    a->n = (uint32_t)at->n;
    a->ndim = x->ndim;
    hn_strides(x->ndim, x->dims, a->strides);
    for (int k = 0; k < x->ndim; k++)
        a->dims[k] = hn_divisor(at->dims[k]);
    a->size = x->dims[axis];
    a->stride = a->strides[axis];
    a->strides[axis] = 0;
    return hn_cuda_indices_new(s, 1, &a->at, error);
}

typedef struct {
    HnCuFunction f;
    HnCudaElementsArgs args;
} Elements;

static const char *elements_reject(const HnStep *s)
{
    return hn_cuda_in(s, 1)->n >= HN_DIVIDE_LIMIT ? "2^31 indices or more"
                                                  : hn_gather_elements_reject(s, hn_gather_axis(s));
}

static gboolean elements_prepare(HnStep *s, GError **error)
{
    Elements *e = g_new0(Elements, 1);
    s->state = e;
    e->f = hn_cuda_sized(s, "cuda_gather", "gather_elements", hn_dtype_size(hn_cuda_in(s, 0)->dtype), error);
    return e->f != NULL && hn_cuda_elements_new(s, hn_gather_axis(s), &e->args, error);
}

static gboolean elements_run(HnStep *s, GError **error)
{
    const Elements *e = s->state;
    HnCudaElementsArgs a = e->args;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 0);
    a.at.data = hn_cuda_in_address(s, 1);
    return hn_cuda_launch(s, e->f, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static const HnKernel gather_elements = {
    .name = "cuda.gatherelements",
    .reject = elements_reject,
    .prepare = elements_prepare,
    .run = elements_run,
    .release = gather_release,
};
const HnKernel *const hn_cuda_gatherelements[] = { &gather_elements, NULL };
