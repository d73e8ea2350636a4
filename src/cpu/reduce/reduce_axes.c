/*
 * Reductions of f32 over any axes: the elements are taken in the order in which they lie, blocks of [n, inner] at a
 * time, of which n are reduced.
 */
#include "cpu/reduce/reduce_axes.h"

#include <math.h>

#include "op/index.h"
#include "op/reduce.h"
#include "run/axis_forms.h"

#define HN_LOOPS "cpu/reduce/reduce_axes_loops.h"
#include "base/every_level.h"

typedef void (*ReduceFn)(float *restrict y, const float *restrict x, int64_t n, int64_t inner, int64_t pitch);
typedef void (*PairsFn)(float *restrict y, const float *restrict x, int64_t n);
typedef void (*PowersFn)(float *restrict y, const float *restrict shift, const float *restrict x, int64_t n,
                         int64_t inner, int64_t pitch);

/* LIKE: nothing, but axes are reduced where those of input 1 are shorter. */
typedef enum { PLAIN, LIKE, ROOT, LOG, MEAN, LOG_POWERS } Last;

typedef struct {
    const HnOp *op;
    ReduceFn fns[HN_LEVELS];
    PairsFn pairs[HN_LEVELS];
    float start;
    Last last; /* what is done with the result */
} Kind;

#define OF(name) HN_TABLE_OF_LEVELS(name), HN_TABLE_OF_LEVELS(name##_pairs)
static const Kind kinds[] = {
    { &hn_op_reducemax, OF(do_max), -INFINITY, PLAIN },
    { &hn_op_reducemin, OF(do_min), INFINITY, PLAIN },
    { &hn_op_reduceprod, OF(do_prod), 1, PLAIN },
    { &hn_op_reducesum, OF(do_sum), 0, PLAIN },
    { &hn_op_reducemean, OF(do_sum), 0, MEAN },
    { &hn_op_reducelogsum, OF(do_sum), 0, LOG },
    { &hn_op_reducelogsumexp, OF(do_max), -INFINITY, LOG_POWERS },
    { &hn_op_reducel1, OF(do_sizes), 0, PLAIN },
    { &hn_op_reducel2, OF(do_squares), 0, ROOT },
    { &hn_op_reducesumsquare, OF(do_squares), 0, PLAIN },
    { &hn_op_sumlike, OF(do_sum), 0, LIKE },
};

static const PowersFn powers_fns[HN_LEVELS] = HN_TABLE_OF_LEVELS(do_powers);

/* Axes side by side that are both reduced, or both kept, are one. */
typedef struct {
    ReduceFn fn;
    PairsFn pairs; /* where each block is two elements for one result, block after block; else NULL */
    PowersFn powers;
    float start;
    Last last;
    int ndim;                                        /* axes outside the blocks */
    int64_t dims[HN_MAX_RANK], strides[HN_MAX_RANK]; /* strides: of y, 0 for reduced ones */
    int64_t n, inner;                                /* a block */
    int64_t results, each;                           /* of all; elements for one */
    int threads;                                     /* that share the first axis, which is kept ... */
    gboolean across;                                 /* ... or inner, where there is nothing but one block */
} Reduce;

#define LEAST_ACROSS 32 /* elements of inner for a thread */

static const Kind *kind_of(const HnStep *s)
{
    guint i = 0;
    while (kinds[i].op != s->op)
        i++;
    return &kinds[i];
}

static const char *reduce_reject(const HnStep *s)
{
    gboolean mask[HN_MAX_RANK];
    if (hn_cpu_in(s, 0)->dtype != HN_F32)
        return "only f32";
    if (hn_cpu_in(s, 0)->n == 0)
        return "nothing to compute";
    return hn_reduced_axes(s, kind_of(s)->last == LIKE, mask);
}

/* Channels last may be taken as they are: what is left of channels or of pixels lies in the result's order, or the
 * result is channels last, too. */
static gboolean takes_last(HnStep *s, const gboolean *mask)
{
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    gboolean pixels = FALSE;
    for (int i = 2; i < x->ndim; i++)
        pixels = pixels || (!mask[i] && x->dims[i] > 1);
    if (!hn_layout_is_last(s->in[0].slot->layout))
        return FALSE;
    if (mask[1] || !pixels)
        return TRUE;
    if (!mask[0] && y->ndim >= 3)
        s->out[0].slot->layout = hn_layout_last(y);
    return !mask[0] && y->ndim >= 3;
}

static void find_axes(Reduce *r, const HnTensor *x, const gboolean *mask, gboolean last)
{
    gboolean reduced[HN_MAX_RANK + 1];
    for (int k = 0; k < x->ndim; k++) {
        const int i = !last || k == 0 ? k : k == x->ndim - 1 ? 1 : k + 1; /* in the order of memory */
        if (x->dims[i] == 1)
            continue;
        if (r->ndim > 0 && reduced[r->ndim - 1] == mask[i]) {
            r->dims[r->ndim - 1] *= x->dims[i];
        } else {
            r->dims[r->ndim] = x->dims[i];
            reduced[r->ndim++] = mask[i];
        }
    }
    r->results = 1;
    for (int i = r->ndim - 1; i >= 0; i--) {
        r->strides[i] = reduced[i] ? 0 : r->results;
        r->results *= reduced[i] ? 1 : r->dims[i];
    }
    r->each = x->n / r->results;
    r->n = r->inner = 1;
    if (r->ndim > 0 && !reduced[r->ndim - 1])
        r->inner = r->dims[--r->ndim];
    if (r->ndim > 0 && reduced[r->ndim - 1])
        r->n = r->dims[--r->ndim];
}

/* What threads share: so many parts at most. */
static int64_t shared(const Reduce *r)
{
    return r->across ? r->inner / LEAST_ACROSS : r->ndim > 0 ? r->dims[0] : 1;
}

static gboolean reduce_prepare(HnStep *s, GError **error)
{
    (void)error;
    gboolean mask[HN_MAX_RANK];
    Reduce *r = g_new0(Reduce, 1);
    s->state = r;
    (void)hn_reduced_axes(s, kind_of(s)->last == LIKE, mask);
    s->in[0].any = takes_last(s, mask);
    find_axes(r, hn_cpu_in(s, 0), mask, s->in[0].any);
    const Kind *kind = kind_of(s);
    r->fn = kind->fns[hn_cpu_level()];
    if (r->n == 2 && r->inner == 1 && r->ndim > 0 && r->strides[r->ndim - 1] > 0)
        r->pairs = kind->pairs[hn_cpu_level()];
    r->start = kind->start;
    r->last = kind->last;
    r->threads = 1;
    r->across = r->ndim == 0 && r->inner >= 2 * LEAST_ACROSS;
    if (r->across || (r->ndim > 0 && r->strides[0] > 0))
        r->threads = (int)MIN(hn_cpu_threads_for(s, (double)hn_cpu_in(s, 0)->n), shared(r));
    if (r->last == LOG_POWERS) {
        r->powers = powers_fns[hn_cpu_level()];
        s->scratch_bytes = (gsize)r->results * sizeof(float);
    }
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    return TRUE;
}

/* All blocks of [first, last) along the first axis, or those elements of inner. shift NULL: fn, else powers. */
static void walk(const Reduce *r, float *y, const float *shift, const float *x, int64_t first, int64_t last)
{
    const int64_t inner = r->across ? last - first : r->inner;
    int64_t idx[HN_MAX_RANK] = { 0 }, dims[HN_MAX_RANK], off = 0;
    int64_t *strides = (int64_t *)r->strides;
    const int ndim = r->ndim - (r->pairs != NULL && shift == NULL);
    for (int i = 0; i < r->ndim; i++)
        dims[i] = i == 0 ? last - first : r->dims[i];
    if (ndim < r->ndim) {
        do {
            r->pairs(y + off, x, dims[ndim]);
            x += 2 * dims[ndim];
        } while (hn_index_next(ndim, dims, idx, 1, &strides, &off));
        return;
    }
    do {
        if (shift != NULL)
            r->powers(y + off, shift + off, x, r->n, inner, r->inner);
        else
            r->fn(y + off, x, r->n, inner, r->inner);
        x += r->n * r->inner;
    } while (hn_index_next(ndim, dims, idx, 1, &strides, &off));
}

static void finish(const Reduce *r, float *y, const float *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (r->last == ROOT)
            y[i] = sqrtf(y[i]);
        else if (r->last == LOG)
            y[i] = logf(y[i]);
        else if (r->last == MEAN)
            y[i] /= (float)r->each;
        else if (r->last == LOG_POWERS)
            y[i] += logf(sum[i]);
}

/* Part [first, last) of what threads share; the whole where they share nothing. */
static void run_part(const HnStep *s, int64_t first, int64_t last)
{
    const Reduce *r = s->state;
    const int64_t results = r->across ? 1 : r->ndim > 0 ? r->strides[0] : 0; /* of each of those parts */
    const int64_t at = first * results, n = results > 0 ? (last - first) * results : r->results;
    const int64_t step = r->across ? 1 : r->ndim > 0 ? hn_cpu_in(s, 0)->n / r->dims[0] : 0;
    const float *x = (const float *)hn_cpu_data(&s->in[0]) + first * step;
    float *y = (float *)hn_cpu_data(&s->out[0]) + at, *sum = NULL;
    for (int64_t i = 0; i < n; i++)
        y[i] = r->start;
    walk(r, y, NULL, x, first, last);
    if (r->last ==
        LOG_POWERS) { /* log(sum(e^x)) = m + log(sum(e^(x - m))), m the largest, or 0 where that is infinite */
        sum = (float *)s->scratch + at;
        for (int64_t i = 0; i < n; i++) {
            sum[i] = 0;
            y[i] = isinf(y[i]) ? 0 : y[i];
        }
        walk(r, sum, y, x, first, last);
    }
    if (r->last > LIKE)
        finish(r, y, sum, n);
}

static gboolean reduce_run(HnStep *s, GError **error)
{
    (void)error;
    const Reduce *r = s->state;
    const int64_t all = r->across ? r->inner : r->ndim > 0 ? r->dims[0] : 1;
    if (r->threads == 1) {
        run_part(s, 0, all);
        return TRUE;
    }
#pragma omp parallel for num_threads(r->threads)
    for (int t = 0; t < r->threads; t++)
        run_part(s, all * t / r->threads, all * (t + 1) / r->threads);
    return TRUE;
}

const HnKernel hn_cpu_reduce = {
    .name = "cpu.reduce",
    .reject = reduce_reject,
    .prepare = reduce_prepare,
    .run = reduce_run,
    .release = hn_cpu_release,
};

#define KERNELS(symbol) const HnKernel *const hn_cpu_##symbol[] = { &hn_cpu_reduce, NULL };
KERNELS(reducel1)
KERNELS(reducel2)
KERNELS(reducelogsum)
KERNELS(reducelogsumexp)
KERNELS(reducemax)
KERNELS(reducemin)
KERNELS(reduceprod)
KERNELS(reducesumsquare)
