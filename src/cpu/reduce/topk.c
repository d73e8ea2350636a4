/*
 * TopK of f32. An element and its place are one number, larger for what comes first in the result: a NaN counts as
 * larger than everything, equal values keep their order. Few are kept in order, each new one put in; many are gathered
 * in a buffer of twice the number, of which the better half stays whenever it is full. Whole blocks of elements that
 * are no better than the worst kept one are passed over.
 *
 * Up to 64 of a longer row: the k-th best of the best ones of 2 k lanes is no better than the k-th best of all. What is
 * as good as that, some more than k, is put in order by counting: in a place of the result are as many before it as are
 * better. Where it is much more, the row is searched as above. Short rows are put in order whole.
 */
#include "op/topk.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"

#define HN_LOOPS "cpu/reduce/topk_loops.h"
#include "base/every_level.h"

#define FEW 8     /* elements that are kept in order */
#define BLOCK 16  /* elements that are looked at together */
#define ROUNDS 48 /* of a partition, behind which the buffer is sorted: the pivots are bad ones */

static inline uint64_t rank_of(float v, int64_t i, gboolean smallest)
{
    const float one_zero = v + 0.0f; /* of -0, too */
    uint32_t bits;
    memcpy(&bits, &one_zero, sizeof bits);
    bits = v != v ? UINT32_MAX : (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    return (uint64_t)(smallest ? ~bits : bits) << 32 | (uint32_t) ~(uint32_t)i;
}

static inline int64_t place_of(uint64_t rank)
{
    return (uint32_t) ~(uint32_t)rank;
}

static inline gboolean may_be_better(float v, float worst, gboolean smallest)
{
    return smallest ? !(v >= worst) : !(v <= worst); /* TRUE of NaN */
}

/* The first of elements [i, n) that may be better than an earlier one, n: none. */
static inline int64_t next_better(const float *x, int64_t i, int64_t n, float worst, gboolean smallest)
{
    for (; i + BLOCK <= n; i += BLOCK) {
        int any = 0;
        for (int j = 0; j < BLOCK; j++)
            any |= may_be_better(x[i + j], worst, smallest);
        if (any != 0)
            break;
    }
    while (i < n && !may_be_better(x[i], worst, smallest))
        i++;
    return i;
}

/* The smallest of the n numbers below h[at] finds its place: h is a heap whose root is the smallest. */
static void sink(uint64_t *h, int64_t n, int64_t at)
{
    const uint64_t item = h[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && h[child + 1] < h[child])
            child++;
        if (item < h[child])
            break;
        h[at] = h[child];
    }
    h[at] = item;
}

/* The largest first */
static void sort(uint64_t *h, int64_t n)
{
    for (int64_t i = n / 2; i-- > 0;)
        sink(h, n, i);
    while (n-- > 1) {
        const uint64_t least = h[0];
        h[0] = h[n];
        h[n] = least;
        sink(h, n, 0);
    }
}

static uint64_t middle_of(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t low = MIN(a, b), high = MAX(a, b);
    return c < low ? low : c > high ? high : c;
}

/* The k largest of n numbers, which all differ, come first, the least of them at h[k - 1]. */
static void part(uint64_t *h, int64_t n, int64_t k)
{
    int64_t lo = 0, hi = n - 1;
    for (int round = 0; lo < hi; round++) {
        if (round == ROUNDS) {
            sort(h, n);
            return;
        }
        const uint64_t pivot = middle_of(h[lo], h[lo + (hi - lo) / 2], h[hi]);
        int64_t i = lo, j = hi;
        while (i <= j) {
            while (h[i] > pivot)
                i++;
            while (h[j] < pivot)
                j--;
            if (i > j)
                break;
            const uint64_t other = h[i];
            h[i++] = h[j];
            h[j--] = other;
        }
        if (k - 1 <= j)
            hi = j;
        else if (k - 1 >= i)
            lo = i;
        else
            return;
    }
}

/* h[0 ... n) is in order; the last one goes where a better one comes. */
static void put_in(uint64_t *h, int64_t n, uint64_t item)
{
    int64_t at = n - 1;
    for (; at > 0 && h[at - 1] < item; at--)
        h[at] = h[at - 1];
    h[at] = item;
}

static inline void few_best(const float *x, int64_t n, int64_t k, uint64_t *h, gboolean smallest)
{
    for (int64_t i = 0; i < k; i++)
        put_in(h, i + 1, rank_of(x[i], i, smallest));
    for (int64_t i = k; (i = next_better(x, i, n, x[place_of(h[k - 1])], smallest)) < n; i++) {
        const uint64_t item = rank_of(x[i], i, smallest);
        if (item > h[k - 1])
            put_in(h, k, item);
    }
}

/* h has 2 k places. */
static inline void many_best(const float *x, int64_t n, int64_t k, uint64_t *h, gboolean smallest)
{
    int64_t m = 0, i = 0;
    for (; i < n && m < 2 * k; i++)
        h[m++] = rank_of(x[i], i, smallest);
    while (i < n) {
        part(h, m, k);
        const float worst = x[place_of(h[k - 1])];
        for (m = k; m < 2 * k && (i = next_better(x, i, n, worst, smallest)) < n; i++)
            h[m++] = rank_of(x[i], i, smallest);
    }
    part(h, m, k);
    sort(h, k);
}

/* --- by lanes ----------------------------------------------------------------------------------------------------- */

#define MOST_BY_LANES 64
#define LEAST_DEEP 4 /* elements of a lane */
#define ROOM (3 * MOST_BY_LANES)
#define MOST_COUNTED (ROOM - BLOCK) /* each is compared with each */

static int64_t lanes_for(int64_t k)
{
    return (2 * k + BLOCK - 1) / BLOCK * BLOCK;
}

/* The k best of those that are no worse than the bar, unless these are too many. */
static gboolean best_by_counting(const float *x, int64_t n, int64_t k, int32_t bar, uint64_t *h, gboolean smallest)
{
    static int64_t (*const above_fns[])(int64_t *restrict, const float *restrict, int64_t, int32_t, int32_t, int64_t) =
        HN_TABLE_OF_LEVELS(above);
    static void (*const order_fns[])(uint64_t *restrict, int64_t, const int64_t *restrict, int64_t) =
        HN_TABLE_OF_LEVELS(put_in_order);
    const int level = hn_cpu_level();
    int64_t better[ROOM + BLOCK];
    const int64_t m = above_fns[level](better, x, n, bar, smallest ? -1 : 0, MOST_COUNTED);
    if (m > MOST_COUNTED)
        return FALSE;
    order_fns[level](h, k, better, m);
    return TRUE;
}

static gboolean best_by_lanes(const float *x, int64_t n, int64_t k, uint64_t *h, gboolean smallest)
{
    static void (*const lanes_fns[])(int32_t *restrict, const float *restrict, int64_t, int64_t, int32_t) =
        HN_TABLE_OF_LEVELS(best_of_lanes);
    static int32_t (*const bar_fns[])(const int32_t *, int64_t, int64_t) = HN_TABLE_OF_LEVELS(bar_of);
    const int level = hn_cpu_level();
    const int64_t lanes = lanes_for(k);
    int32_t key[2 * MOST_BY_LANES];
    lanes_fns[level](key, x, n, lanes, smallest ? -1 : 0);
    return best_by_counting(x, n, k, bar_fns[level](key, lanes, k), h, smallest);
}

static void best(const float *x, int64_t n, int64_t k, uint64_t *h, gboolean smallest)
{
    if (k > FEW && n <= MOST_COUNTED && best_by_counting(x, n, k, INT32_MIN, h, smallest))
        return;
    if (k > FEW && k <= MOST_BY_LANES && n >= LEAST_DEEP * lanes_for(k) && best_by_lanes(x, n, k, h, smallest))
        return;
    if (k <= FEW && smallest)
        few_best(x, n, k, h, TRUE);
    else if (k <= FEW)
        few_best(x, n, k, h, FALSE);
    else if (smallest)
        many_best(x, n, k, h, TRUE);
    else
        many_best(x, n, k, h, FALSE);
}

static const char *topk_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->dtype != HN_F32)
        return "only f32";
    if (x->n > UINT32_MAX)
        return "places of more than 32 bits";
    return s->out[0].slot == NULL || s->out[0].slot->tensor->n == 0 ? "nothing to compute" : NULL;
}

static int axis_of(const HnStep *s)
{
    const HnTopK *p = s->params;
    return hn_axis(p->axis, hn_cpu_in(s, 0)->ndim);
}

typedef struct {
    gsize each; /* bytes of scratch memory of a thread */
    int threads;
} TopK;

static gboolean topk_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int axis = axis_of(s);
    const int64_t k = s->out[0].slot->tensor->dims[axis], n = x->dims[axis];
    TopK *t = g_new0(TopK, 1);
    s->state = t;
    t->threads = hn_cpu_threads_for(s, (double)x->n * 8);
    t->each = 2 * (gsize)k * sizeof(uint64_t);
    if (hn_span(x->dims, axis + 1, x->ndim) > 1)
        t->each += (gsize)n * sizeof(float);
    t->each = (t->each + 63) / 64 * 64;
    s->scratch_bytes = t->each * (gsize)t->threads;
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    return TRUE;
}

/* Rows [lo, hi) */
static void run_rows(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const HnTopK *p = s->params;
    const TopK *t = s->state;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const int axis = axis_of(s);
    const int64_t n = x->dims[axis], k = y->dims[axis], inner = hn_span(x->dims, axis + 1, x->ndim);
    int64_t *index = s->n_out > 1 && s->out[1].slot != NULL ? hn_cpu_data(&s->out[1]) : NULL;
    uint64_t *h = (uint64_t *)(void *)((char *)s->scratch + (gsize)thread * t->each);
    float *column = (float *)(h + 2 * k);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t to = u / inner * k * inner + u % inner;
        const float *row = (const float *)x->data + u / inner * n * inner + u % inner;
        if (inner > 1) {
            for (int64_t at = 0; at < n; at++)
                column[at] = row[at * inner];
            row = column;
        }
        best(row, n, k, h, p->smallest);
        for (int64_t at = 0; at < k; at++) {
            const int64_t place = place_of(h[at]);
            ((float *)y->data)[to + at * inner] = row[place];
            if (index != NULL)
                index[to + at * inner] = place;
        }
    }
}

static gboolean topk_run(HnStep *s, GError **error)
{
    (void)error;
    const TopK *t = s->state;
    const HnTensor *x = hn_cpu_in(s, 0);
    hn_parallel_for(x->n / x->dims[axis_of(s)], t->threads, run_rows, s);
    return TRUE;
}

static const HnKernel topk = {
    .name = "cpu.topk",
    .reject = topk_reject,
    .prepare = topk_prepare,
    .run = topk_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_topk[] = { &topk, NULL };
