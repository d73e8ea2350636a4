/*
 * Reductions over any axes, and SumLike; f32, f16, bf16, in f32.
 *
 * Axes side by side that are both reduced, or both kept, are one. Where the last one is reduced, a result is made by
 * some lanes or by a block, four elements at a time where they lie side by side; else a block makes some results side
 * by side. Many elements for few results are cut into parts, as many as the shape says, which a second launch joins in
 * their order. The logarithm of a sum of powers takes the largest element first.
 */
#include "cuda/conv/cuda_last.h"
#include "cuda/core/cuda_kernel.h"
#include "cuda/reduce/cuda_reduce_args.h"
#include "op/reduce.h"
#include "run/axis_forms.h"

#define THREADS 256
#define SHORT 512 /* elements of a result that lanes of one warp take */
#define LONG 8192 /* ... where there are many results */
#define MANY 2048
#define BLOCKS 1024      /* that parts make, about */
#define PART_VECTORS 512 /* of four elements, at least, of rows */
#define PART_ROWS 16     /* for a thread, at least, of columns */

typedef struct {
    const HnOp *op;
    const char *how, *join; /* kernels */
    HnCudaReduceLast last;
    gboolean like; /* axes are reduced where those of input 1 are shorter */
} Kind;

static const Kind kinds[] = {
    { &hn_op_reducemax, "most", "most", HN_CUDA_REDUCE_PLAIN, FALSE },
    { &hn_op_reducemin, "least", "least", HN_CUDA_REDUCE_PLAIN, FALSE },
    { &hn_op_reduceprod, "product", "product", HN_CUDA_REDUCE_PLAIN, FALSE },
    { &hn_op_reducesum, "sum", "sum", HN_CUDA_REDUCE_PLAIN, FALSE },
    { &hn_op_reducemean, "sum", "sum", HN_CUDA_REDUCE_MEAN, FALSE },
    { &hn_op_reducelogsum, "sum", "sum", HN_CUDA_REDUCE_LOG, FALSE },
    { &hn_op_reducelogsumexp, "powers", "sum", HN_CUDA_REDUCE_SHIFTED, FALSE },
    { &hn_op_reducel1, "sizes", "sum", HN_CUDA_REDUCE_PLAIN, FALSE },
    { &hn_op_reducel2, "squares", "sum", HN_CUDA_REDUCE_ROOT, FALSE },
    { &hn_op_reducesumsquare, "squares", "sum", HN_CUDA_REDUCE_PLAIN, FALSE },
    { &hn_op_sumlike, "sum", "sum", HN_CUDA_REDUCE_PLAIN, TRUE },
};

typedef struct {
    HnCudaReduceArgs args;
    HnCudaGrid grid, join_grid;
    HnCuFunction f, join;         /* join: where there are several parts */
    HnCuFunction most, join_most; /* of powers: what is taken off first */
    gsize shift_at;               /* in scratch memory, behind the parts */
} Reduce;

static const Kind *kind_of(const HnStep *s)
{
    guint i = 0;
    while (kinds[i].op != s->op)
        i++;
    return &kinds[i];
}

static const char *reduce_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    gboolean mask[HN_MAX_RANK];
    if (reason != NULL || (reason = hn_reduced_axes(s, kind_of(s)->like, mask)) != NULL)
        return reason;
    return s->op == &hn_op_reducemean && hn_cuda_goes_last(s, &hn_cuda_reduce_last) ? HN_CUDA_GOES_LAST : NULL;
}

static void find_axes(HnCudaReduceArgs *a, const HnTensor *x, const gboolean *mask)
{
    gboolean reduced = FALSE;
    int64_t stride = 1;
    HnCudaAxes of[2] = { { .n = 0 }, { .n = 0 } }; /* from the last one on */
    for (int i = x->ndim - 1, any = 0; i >= 0; i--) {
        if (x->dims[i] == 1)
            continue;
        HnCudaAxes *to = &of[mask[i]];
        if (any && reduced == mask[i]) {
            to->dims[to->n - 1] *= x->dims[i];
        } else {
            to->dims[to->n] = x->dims[i];
            to->strides[to->n++] = stride;
        }
        reduced = mask[i];
        any = 1;
        stride *= x->dims[i];
    }
    HnCudaAxes *into[2] = { &a->kept, &a->reduced };
    int64_t all[2] = { 1, 1 };
    for (int k = 0; k < 2; k++) {
        into[k]->n = of[k].n;
        for (int i = 0; i < of[k].n; i++) {
            into[k]->dims[of[k].n - 1 - i] = of[k].dims[i];
            into[k]->strides[of[k].n - 1 - i] = of[k].strides[i];
            all[k] *= of[k].dims[i];
        }
    }
    a->outputs = all[0];
    a->each = all[1];
}

/* The last axis is kept. */
static gboolean ends_kept(const HnCudaReduceArgs *a)
{
    return a->reduced.n > 0 && a->kept.n > 0 && a->kept.strides[a->kept.n - 1] == 1;
}

/* A power of 2 of lanes, as many as there are elements or more. */
static int lanes_for(int64_t n)
{
    int lanes = 1;
    while (lanes < n && lanes < HN_CUDA_WARP)
        lanes *= 2;
    return lanes;
}

/* For `blocks` blocks that take all elements of their results; `unit`: what parts are multiples of. */
static void cut(HnCudaReduceArgs *a, int64_t blocks, int64_t least, int64_t unit)
{
    a->parts = CLAMP(BLOCKS / blocks, 1, MAX(a->each / least, 1));
    a->part = ((a->each + a->parts - 1) / a->parts + unit - 1) / unit * unit;
    a->parts = (a->each + a->part - 1) / a->part;
}

/* Sizes of the launch; the kernel's form. */
static const char *choose_form(Reduce *r)
{
    HnCudaReduceArgs *a = &r->args;
    a->parts = 1;
    a->part = a->each;
    if (ends_kept(a)) {
        a->inner = a->kept.dims[a->kept.n - 1];
        a->width = (int32_t)MIN(a->inner, THREADS / MIN(a->each, THREADS / HN_CUDA_WARP));
        a->rows = (int32_t)MIN(a->each, THREADS / a->width);
        const int64_t tiles = a->outputs / a->inner * ((a->inner + a->width - 1) / a->width);
        cut(a, tiles, (int64_t)PART_ROWS * a->rows, 1);
        r->grid = hn_cuda_row(tiles * a->parts, THREADS);
        return "columns";
    }
    const gboolean run = a->reduced.n == 1 && a->reduced.strides[0] == 1 && a->each >= 4;
    a->vector = run && a->each % 4 == 0;
    if (run && a->each <= (a->outputs < MANY ? SHORT : LONG)) {
        a->group = lanes_for((a->each + 3) / 4);
        r->grid = hn_cuda_row((a->outputs * a->group + THREADS - 1) / THREADS, THREADS);
        return "runs";
    }
    if (a->each <= SHORT) {
        a->group = lanes_for(a->each);
        r->grid = hn_cuda_row((a->outputs * a->group + THREADS - 1) / THREADS, THREADS);
        return "groups";
    }
    cut(a, a->outputs, 4 * PART_VECTORS, 4);
    r->grid = hn_cuda_row(a->outputs * a->parts, THREADS);
    return "rows";
}

static HnCuFunction find(const HnStep *s, const char *form, const char *how, GError **error)
{
    g_autofree char *prefix = g_strdup_printf("reduce_%s_%s", form, how);
    return hn_cuda_typed(s, "cuda_reduce", prefix, hn_cuda_in(s, 0)->dtype, error);
}

static gboolean reduce_prepare(HnStep *s, GError **error)
{
    const Kind *kind = kind_of(s);
    Reduce *r = g_new0(Reduce, 1);
    HnCudaReduceArgs *a = &r->args;
    gboolean mask[HN_MAX_RANK];
    s->state = r;
    (void)hn_reduced_axes(s, kind->like, mask);
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    find_axes(a, hn_cuda_in(s, 0), mask);
    a->last = (int32_t)kind->last;
    const char *form = choose_form(r);
    const gboolean powers = kind->last == HN_CUDA_REDUCE_SHIFTED;
    if ((r->f = find(s, form, kind->how, error)) == NULL ||
        (powers && (r->most = find(s, form, "most", error)) == NULL))
        return FALSE;
    if (a->parts > 1) {
        r->shift_at = (gsize)(a->outputs * a->parts) * sizeof(float);
        if ((r->join = find(s, "join", kind->join, error)) == NULL ||
            (powers && (r->join_most = find(s, "join", "most", error)) == NULL))
            return FALSE;
        const int64_t lanes = lanes_for(a->parts);
        r->join_grid = hn_cuda_row((a->outputs * lanes + THREADS - 1) / THREADS, THREADS);
    }
    s->scratch_bytes = r->shift_at + (powers ? (gsize)a->outputs * sizeof(float) : 0);
    return TRUE;
}

static gboolean launch(const HnStep *s, const HnCudaReduceArgs *args, HnCuFunction f, HnCuFunction join, GError **error)
{
    const Reduce *r = s->state;
    HnCudaReduceArgs a = *args;
    if (!hn_cuda_launch(s, f, r->grid, &a, error))
        return FALSE;
    a.group = lanes_for(a.parts);
    return join == NULL || hn_cuda_launch(s, join, r->join_grid, &a, error);
}

static gboolean reduce_run(HnStep *s, GError **error)
{
    const Reduce *r = s->state;
    HnCudaReduceArgs a = r->args;
    a.x = hn_cuda_in_address(s, 0);
    a.partial = hn_cuda_scratch(s);
    a.vector = a.vector && a.x % 16 == 0;
    if (r->most != NULL) {
        HnCudaReduceArgs m = a;
        m.y = hn_cuda_scratch(s) + r->shift_at;
        m.last = HN_CUDA_REDUCE_KEPT;
        if (!launch(s, &m, r->most, r->join_most, error))
            return FALSE;
        a.shift = m.y;
    }
    a.y = hn_cuda_out_address(s, 0);
    return launch(s, &a, r->f, r->join, error);
}

static const HnKernel reduce = {
    .name = "cuda.reduce",
    .reject = reduce_reject,
    .prepare = reduce_prepare,
    .run = reduce_run,
    .release = hn_cuda_release,
};

#define KERNELS(symbol) const HnKernel *const hn_cuda_##symbol[] = { &reduce, NULL };
KERNELS(reducel1)
KERNELS(reducel2)
KERNELS(reducelogsum)
KERNELS(reducelogsumexp)
KERNELS(reducemax)
const HnKernel *const hn_cuda_reducemean[] = { &reduce, &hn_cuda_reduce_last, NULL };
KERNELS(reducemin)
KERNELS(reduceprod)
KERNELS(reducesum)
KERNELS(reducesumsquare)
KERNELS(sumlike)
