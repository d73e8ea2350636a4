/*
 * TopK of floats. Few results are found by blocks that keep the best so far; long rows in parts, whose results are
 * looked through again. Many results are the first ones of sorted rows. A NaN counts as larger than everything; equal
 * values keep their order.
 */
#include "op/topk.h"

#include "cuda/move/cuda_sort.h"
#include "cuda/move/cuda_topk_args.h"
#include "op/index.h"

#define THREADS 256
#define PART 8192 /* elements of a long row that are worth a block */

typedef struct {
    HnCuFunction find;                   /* by blocks; NULL: by sorting */
    HnCuFunction keys, row_keys, sorted; /* by sorting */
    HnCudaSort sort;
    HnCudaTopKArgs args;
} TopK;

static int axis_of(const HnStep *s)
{
    const HnTopK *p = s->params;
    return hn_axis(p->axis, hn_cuda_in(s, 0)->ndim);
}

static const char *topk_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    if (hn_cuda_out(s, 0) == NULL || hn_cuda_out(s, 0)->n == 0)
        return "nothing to compute";
    return x->n >= G_MAXINT32 ? "2^31 elements or more" : hn_cuda_reject_floats(s);
}

/* As many parts as keep the device busy. */
static void choose_parts(const HnStep *s, HnCudaTopKArgs *a)
{
    const HnCuda *c = s->device;
    const int64_t blocks = MAX(4 * (int64_t)c->multiprocessors / a->rows, 1);
    a->parts = CLAMP(a->n / MAX(PART, 4 * a->k), 1, blocks);
    a->part = (a->n + a->parts - 1) / a->parts;
}

static gboolean topk_prepare(HnStep *s, GError **error)
{
    const HnTopK *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    const int axis = axis_of(s);
    TopK *t = g_new0(TopK, 1);
    s->state = t;
    HnCudaTopKArgs *a = &t->args;
    a->inner = hn_span(x->dims, axis + 1, x->ndim);
    a->rows = hn_span(x->dims, 0, axis) * a->inner;
    a->n = x->dims[axis];
    a->k = y->dims[axis];
    a->smallest = p->smallest;
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    if (a->k <= HN_CUDA_TOPK_MOST) {
        choose_parts(s, a);
        s->scratch_bytes = a->parts > 1 ? (gsize)(a->rows * a->parts * a->k) * sizeof(uint64_t) : 0;
        return (t->find = hn_cuda_typed(s, "cuda_topk", "topk", x->dtype, error)) != NULL;
    }
    if (!hn_cuda_sort_new(s, x->n, &t->sort, error))
        return FALSE;
    s->scratch_bytes = hn_cuda_sort_bytes(&t->sort);
    return (t->keys = hn_cuda_typed(s, "cuda_topk", "topk_keys", x->dtype, error)) != NULL &&
           (t->sorted = hn_cuda_typed(s, "cuda_topk", "topk_sorted", x->dtype, error)) != NULL &&
           (t->row_keys = hn_cuda_named(s, "cuda_topk", "topk_row_keys", error)) != NULL;
}

static gboolean find(const HnStep *s, const TopK *t, HnCudaTopKArgs a, GError **error)
{
    a.found = hn_cuda_scratch(s);
    a.to_found = a.parts > 1;
    if (!hn_cuda_launch(s, t->find, hn_cuda_row(a.rows * a.parts, THREADS), &a, error))
        return FALSE;
    if (!a.to_found)
        return TRUE;
    a.part = a.parts * a.k;
    a.parts = 1;
    a.from_found = TRUE;
    a.to_found = FALSE;
    return hn_cuda_launch(s, t->find, hn_cuda_row(a.rows, THREADS), &a, error);
}

static gboolean sort_all(const HnStep *s, const TopK *t, HnCudaTopKArgs a, GError **error)
{
    const uint64_t room = hn_cuda_scratch(s);
    const HnCudaGrid all = hn_cuda_loop(s, a.rows * a.n, THREADS);
    int bits = 0;
    a.key = hn_cuda_sort_keys(room);
    a.item = hn_cuda_sort_items(&t->sort, room);
    while ((a.rows - 1) >> bits != 0)
        bits++;
    if (!hn_cuda_launch(s, t->keys, all, &a, error) || !hn_cuda_sort_run(s, &t->sort, room, 32, TRUE, error))
        return FALSE;
    if (a.rows > 1 &&
        (!hn_cuda_launch(s, t->row_keys, all, &a, error) || !hn_cuda_sort_run(s, &t->sort, room, bits, FALSE, error)))
        return FALSE;
    return hn_cuda_launch(s, t->sorted, hn_cuda_loop(s, a.rows * a.k, THREADS), &a, error);
}

static gboolean topk_run(HnStep *s, GError **error)
{
    const TopK *t = s->state;
    HnCudaTopKArgs a = t->args;
    a.x = hn_cuda_in_address(s, 0);
    a.y = hn_cuda_out_address(s, 0);
    a.index = hn_cuda_out_address(s, 1);
    return (t->find != NULL ? find : sort_all)(s, t, a, error);
}

static const HnKernel topk = {
    .name = "cuda.topk",
    .reject = topk_reject,
    .prepare = topk_prepare,
    .run = topk_run,
    .release = hn_cuda_release,
};
const HnKernel *const hn_cuda_topk[] = { &topk, NULL };
