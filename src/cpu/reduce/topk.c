/*
 * TopK of f32: a heap of the best so far in scratch memory, its root being what an element has to beat. A NaN counts as
 * larger than everything; equal values keep their order.
 */
#include "op/topk.h"

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"

typedef struct {
    float v;
    int64_t i;
} Item;

/* a comes before b in the result */
static inline gboolean before(Item a, Item b, gboolean smallest)
{
    const gboolean nan_a = a.v != a.v, nan_b = b.v != b.v;
    if (nan_a != nan_b)
        return nan_a != smallest;
    if (a.v == b.v || nan_a)
        return a.i < b.i;
    return (a.v > b.v) != smallest;
}

/* Item `at` of n finds its place among those below it. */
static void sink(Item *h, int64_t n, int64_t at, gboolean smallest)
{
    const Item item = h[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(h[child], h[child + 1], smallest))
            child++;
        if (!before(item, h[child], smallest))
            break;
        h[at] = h[child];
    }
    h[at] = item;
}

static void best(const float *x, int64_t n, int64_t stride, int64_t k, Item *h, gboolean smallest)
{
    for (int64_t i = 0; i < k; i++)
        h[i] = (Item){ x[i * stride], i };
    for (int64_t i = k / 2; i-- > 0;)
        sink(h, k, i, smallest);
    for (int64_t i = k; i < n; i++) {
        const float v = x[i * stride], worst = h[0].v;
        if (smallest ? v >= worst : v <= worst) /* later, and no better; false where one is NaN */
            continue;
        const Item item = { v, i };
        if (before(item, h[0], smallest)) {
            h[0] = item;
            sink(h, k, 0, smallest);
        }
    }
}

static const char *topk_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->dtype != HN_F32)
        return "only f32";
    return s->out[0].slot == NULL || s->out[0].slot->tensor->n == 0 ? "nothing to compute" : NULL;
}

static int axis_of(const HnStep *s)
{
    const HnTopK *p = s->params;
    return (int)(p->axis < 0 ? p->axis + hn_cpu_in(s, 0)->ndim : p->axis);
}

static gboolean topk_prepare(HnStep *s, GError **error)
{
    (void)error;
    s->scratch_bytes = (gsize)s->out[0].slot->tensor->dims[axis_of(s)] * sizeof(Item);
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    return TRUE;
}

static gboolean topk_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTopK *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const int axis = axis_of(s);
    const int64_t outer = hn_span(x->dims, 0, axis), n = x->dims[axis], k = y->dims[axis];
    const int64_t inner = hn_span(x->dims, axis + 1, x->ndim);
    int64_t *index = s->n_out > 1 && s->out[1].slot != NULL ? hn_cpu_data(&s->out[1]) : NULL;
    Item *h = s->scratch;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t to = o * k * inner + i;
            best((const float *)x->data + o * n * inner + i, n, inner, k, h, p->smallest);
            for (int64_t left = k; left-- > 0;) { /* the worst goes to the end */
                ((float *)y->data)[to + left * inner] = h[0].v;
                if (index != NULL)
                    index[to + left * inner] = h[0].i;
                h[0] = h[left];
                sink(h, left, 0, p->smallest);
            }
        }
    return TRUE;
}

static const HnKernel topk_heap = {
    .name = "cpu.topk",
    .reject = topk_reject,
    .prepare = topk_prepare,
    .run = topk_run,
};

const HnKernel *const hn_cpu_topk[] = { &topk_heap, NULL };
