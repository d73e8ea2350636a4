/*
 * ScatterND, ScatterElements, Scatter, ScatterAdd: a copy of the data (none where it may be overwritten), and updates
 * of rows. Each update finds its row first. Of several updates of a row the last one is written, which they settle by
 * the largest number; or all are reduced in their order, by the first one's threads: it looks for the others where
 * updates are few, else updates are sorted by rows. So results are the same each time.
 */
#include <inttypes.h>

#include "op/scatter.h"

#include "cuda/move/cuda_gather.h"
#include "cuda/move/cuda_scatter_args.h"
#include "cuda/move/cuda_sort.h"
#include "op/index.h"
#include "run/index_forms.h"

#define THREADS 256
#define WIDEST 16
#define FEW 2048                     /* updates, and ... */
#define FEW_STEPS ((int64_t)1 << 28) /* ... comparisons, that cost less than sorting */

_Static_assert((int)HN_SCATTER_SET == HN_CUDA_SET && (int)HN_SCATTER_ADD == HN_CUDA_ADD &&
                   (int)HN_SCATTER_MUL == HN_CUDA_MUL && (int)HN_SCATTER_MAX == HN_CUDA_MAX &&
                   (int)HN_SCATTER_MIN == HN_CUDA_MIN,
               "reductions have the same numbers on the device");

typedef struct {
    HnCuFunction find, claim, write, wide; /* write: or reduce; wide: NULL where rows are not of wider elements */
    size_t size, width;
    gboolean sorted;
    int updates; /* the input */
    int key_bits;
    HnCudaSort sort;
    HnCudaRowsArgs rows;
    HnCudaScatterArgs args;
} Scatter;

static const char *reduction_reject(HnDtype d)
{
    return hn_cuda_is_float(d) || d == HN_I32 || d == HN_I64 ? NULL : "reductions only in f32, f16, bf16, i32, i64";
}

static const char *scatter_reject(const HnStep *s)
{
    const HnScatter *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    const char *reason = hn_scatter_reject(s);
    if (reason != NULL)
        return reason;
    if (hn_cuda_in(s, 1)->n >= HN_DIVIDE_LIMIT || x->n >= HN_DIVIDE_LIMIT)
        return "2^31 elements or more";
    return p->reduction != HN_SCATTER_SET ? reduction_reject(x->dtype) : NULL;
}

/* What run() launches; rows, and args.run, count and reduction are there. */
static gboolean launches_new(HnStep *s, Scatter *c, HnDtype dtype, GError **error)
{
    HnCudaScatterArgs *a = &c->args;
    const gboolean set = a->reduction == HN_CUDA_SET;
    const int64_t bytes = (a->run * (int64_t)c->size) | WIDEST;
    c->rows.count = a->count;
    a->n = a->run * a->count;
    c->width = set ? (size_t)(bytes & -bytes) : c->size;
    c->sorted = !set && (a->count > FEW || a->n * a->count > FEW_STEPS);
    while (c->key_bits < 32 && c->rows.rows >> c->key_bits != 0) /* none, of all bits, is behind all of them */
        c->key_bits++;
    c->find = hn_cuda_named(s, "cuda_scatter", "scatter_find", error);
    c->claim = hn_cuda_named(s, "cuda_scatter", "scatter_claim", error);
    c->write = set ? hn_cuda_sized(s, "cuda_scatter", "scatter_write", c->size, error)
                   : hn_cuda_typed(s, "cuda_scatter", "scatter_reduce", dtype, error);
    if (c->find == NULL || c->claim == NULL || c->write == NULL)
        return FALSE;
    if (c->width > c->size && (c->wide = hn_cuda_sized(s, "cuda_scatter", "scatter_write", c->width, error)) == NULL)
        return FALSE;
    s->scratch_bytes = (gsize)(a->count + (set && a->count > 1 ? (gsize)c->rows.rows : 0)) * sizeof(uint32_t);
    if (c->sorted && !hn_cuda_sort_new(s, a->count, &c->sort, error))
        return FALSE;
    s->scratch_bytes = c->sorted ? hn_cuda_sort_bytes(&c->sort) : s->scratch_bytes;
    return TRUE;
}

static gboolean go_to_rows(const HnStep *s, const Scatter *c, uint64_t y, GError **error)
{
    HnCudaRowsArgs r = c->rows;
    HnCudaScatterArgs a = c->args;
    r.elements.at.data = hn_cuda_in_address(s, 1);
    a.row = r.row = hn_cuda_scratch(s);
    a.owner = a.reduction == HN_CUDA_SET && a.count > 1 ? a.row + (uint64_t)a.count * sizeof(uint32_t) : 0;
    if (!hn_cuda_launch(s, c->find, hn_cuda_loop(s, a.count, THREADS), &r, error))
        return FALSE;
    if (c->sorted && !hn_cuda_sort_run(s, &c->sort, a.row, c->key_bits, TRUE, error))
        return FALSE;
    a.item = c->sorted ? hn_cuda_sort_items(&c->sort, a.row) : 0;
    if (a.owner != 0 && (!hn_cuda_zeros(s, a.owner, (gsize)r.rows * sizeof(uint32_t), error) ||
                         !hn_cuda_launch(s, c->claim, hn_cuda_loop(s, a.count, THREADS), &a, error)))
        return FALSE;
    a.y = y;
    a.updates = hn_cuda_in_address(s, c->updates);
    const gboolean wide = c->wide != NULL && (a.y | a.updates) % c->width == 0;
    a.run /= wide ? (int64_t)(c->width / c->size) : 1;
    a.n = a.run * a.count;
    a.divisor = hn_divisor(MIN(a.run, HN_DIVIDE_LIMIT - 1));
    return hn_cuda_launch(s, wide ? c->wide : c->write, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static gboolean scatter_run(HnStep *s, GError **error)
{
    const uint64_t x = hn_cuda_in_address(s, 0), y = hn_cuda_out_address(s, 0);
    return (y == x || hn_cuda_copy(s, y, x, hn_cuda_in(s, 0)->bytes, error)) && go_to_rows(s, s->state, y, error);
}

static void scatter_release(HnStep *s)
{
    hn_cuda_complains_no_more(s);
    hn_cuda_release(s);
}

static Scatter *scatter_new(HnStep *s)
{
    Scatter *c = g_new0(Scatter, 1);
    s->state = c;
    c->size = hn_dtype_size(hn_cuda_in(s, 0)->dtype);
    c->args.reduction = (int32_t)((const HnScatter *)s->params)->reduction;
    c->updates = 2;
    return c;
}

/* --- ScatterND --------------------------------------------------------------------------------------------------- */

static const char *tuples_reject(const HnStep *s)
{
    const char *reason = scatter_reject(s);
    return reason != NULL ? reason : hn_scatter_tuples_reject(s);
}

static gboolean tuples_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0), *at = hn_cuda_in(s, 1);
    const int depth = (int)at->dims[at->ndim - 1];
    Scatter *c = scatter_new(s);
    c->rows.how = HN_CUDA_BY_TUPLES;
    c->rows.depth = depth;
    c->rows.rows = (uint32_t)hn_span(x->dims, 0, depth);
    hn_strides(depth, x->dims, c->rows.strides);
    for (int d = 0; d < depth; d++)
        c->rows.dims[d] = x->dims[d];
    c->args.count = (uint32_t)(at->n / depth);
    c->args.run = hn_span(x->dims, depth, x->ndim);
    return hn_cuda_indices_new(s, 1, &c->rows.elements.at, error) && launches_new(s, c, x->dtype, error);
}

static const HnKernel scatter_tuples = {
    .name = "cuda.scatternd",
    .reject = tuples_reject,
    .prepare = tuples_prepare,
    .run = scatter_run,
    .release = scatter_release,
    .inplace = TRUE,
};
const HnKernel *const hn_cuda_scatternd[] = { &scatter_tuples, NULL };

/* --- ScatterElements --------------------------------------------------------------------------------------------- */

static const char *elements_reject(const HnStep *s)
{
    const char *reason = scatter_reject(s);
    return reason != NULL ? reason : hn_scatter_elements_reject(s);
}

static gboolean elements_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    Scatter *c = scatter_new(s);
    c->rows.how = HN_CUDA_BY_ELEMENTS;
    c->rows.rows = (uint32_t)x->n;
    c->args.count = (uint32_t)hn_cuda_in(s, 1)->n;
    c->args.run = 1;
    return hn_cuda_elements_new(s, hn_scatter_axis(s), &c->rows.elements, error) && launches_new(s, c, x->dtype, error);
}

static const HnKernel scatter_elements = {
    .name = "cuda.scatterelements",
    .reject = elements_reject,
    .prepare = elements_prepare,
    .run = scatter_run,
    .release = scatter_release,
    .inplace = TRUE,
};
const HnKernel *const hn_cuda_scatterelements[] = { &scatter_elements, NULL };
const HnKernel *const hn_cuda_scatter[] = { &scatter_elements, NULL };

/* --- ScatterAdd -------------------------------------------------------------------------------------------------- */

static const char *add_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    if (x->n != hn_cuda_in(s, 1)->n)
        return "places for another number of elements";
    if (x->n >= HN_DIVIDE_LIMIT || y->n >= HN_DIVIDE_LIMIT)
        return "2^31 elements or more";
    return reduction_reject(x->dtype);
}

static void say_nowhere(const HnStep *s, int64_t at, GError **error)
{
    (void)s;
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "there is no place for element %" PRId64, at);
}

static gboolean add_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    Scatter *c = g_new0(Scatter, 1);
    s->state = c;
    s->in[2].unread = TRUE; /* its shape is known */
    if (x->n == 0)
        return TRUE;
    c->size = hn_dtype_size(x->dtype);
    c->rows.how = HN_CUDA_BY_PLACES;
    c->rows.rows = (uint32_t)hn_cuda_out(s, 0)->n;
    c->rows.elements.at.wide = TRUE;
    c->args.count = (uint32_t)x->n;
    c->args.run = 1;
    c->args.reduction = HN_CUDA_ADD;
    return hn_cuda_complains(s, say_nowhere, &c->rows.elements.at.complaint, error) &&
           launches_new(s, c, x->dtype, error);
}

static gboolean add_run(HnStep *s, GError **error)
{
    const uint64_t y = hn_cuda_out_address(s, 0);
    const Scatter *c = s->state;
    return hn_cuda_zeros(s, y, hn_cuda_out(s, 0)->bytes, error) && (c->args.count == 0 || go_to_rows(s, c, y, error));
}

static const HnKernel scatter_add = {
    .name = "cuda.scatteradd",
    .reject = add_reject,
    .prepare = add_prepare,
    .run = add_run,
    .release = scatter_release,
};
const HnKernel *const hn_cuda_scatteradd[] = { &scatter_add, NULL };
