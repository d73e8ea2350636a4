/*
 * CumSum and CumProd: some columns at a time, in double, or in unsigned numbers, which wrap.
 */
#include "op/cumsum.h"

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"
#include "run/axis_forms.h"

#define COLUMNS 64

typedef struct {
    HnCum how;
    gboolean product;
    int64_t outer, n, inner, blocks; /* blocks of columns in inner */
    int threads;
} Cum;

static const char *cum_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->dtype != HN_F32 && x->dtype != HN_F64 && x->dtype != HN_I32 && x->dtype != HN_I64)
        return "only f32, f64, i32, i64";
    return x->n == 0 ? "nothing to compute" : hn_cumulated_axis(s);
}

static gboolean cum_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int64_t a = hn_tensor_get_i64(hn_cpu_in(s, 1), 0);
    const int axis = hn_axis(a, x->ndim);
    Cum *c = g_new0(Cum, 1);
    s->state = c;
    c->how = *(const HnCum *)s->params;
    c->product = s->op == &hn_op_cumprod;
    c->outer = hn_span(x->dims, 0, axis);
    c->n = x->dims[axis];
    c->inner = hn_span(x->dims, axis + 1, x->ndim);
    c->blocks = (c->inner + COLUMNS - 1) / COLUMNS;
    c->threads = (int)MIN(hn_cpu_threads_for(s, 2 * (double)x->n), c->outer * c->blocks);
    s->in[1].unread = TRUE;
    return TRUE;
}

/* x and y: rows of `inner` elements, n of them; `width` columns. A is what is accumulated in. */
#define DEFINE_COLUMNS(T, A)                                                           \
    static void columns_##T(const Cum *c, T *y, const T *x, int64_t width)             \
    {                                                                                  \
        A acc[COLUMNS];                                                                \
        for (int64_t i = 0; i < width; i++)                                            \
            acc[i] = c->product ? 1 : 0;                                               \
        for (int64_t k = 0; k < c->n; k++) {                                           \
            const int64_t at = (c->how.reverse ? c->n - 1 - k : k) * c->inner;         \
            for (int64_t i = 0; i < width; i++) {                                      \
                const A v = (A)x[at + i], next = c->product ? acc[i] * v : acc[i] + v; \
                y[at + i] = (T)(c->how.exclusive ? acc[i] : next);                     \
                acc[i] = next;                                                         \
            }                                                                          \
        }                                                                              \
    }
DEFINE_COLUMNS(float, double)
DEFINE_COLUMNS(double, double)
DEFINE_COLUMNS(int32_t, uint32_t)
DEFINE_COLUMNS(int64_t, uint64_t)

/* Block b of all. */
static void one_block(const HnStep *s, int64_t b)
{
    const Cum *c = s->state;
    const int64_t column = b % c->blocks * COLUMNS, at = b / c->blocks * c->n * c->inner + column;
    const int64_t width = MIN(COLUMNS, c->inner - column);
    const void *x = hn_cpu_data(&s->in[0]);
    void *y = hn_cpu_data(&s->out[0]);
    switch (s->out[0].slot->tensor->dtype) {
    case HN_F32:
        columns_float(c, (float *)y + at, (const float *)x + at, width);
        break;
    case HN_F64:
        columns_double(c, (double *)y + at, (const double *)x + at, width);
        break;
    case HN_I32:
        columns_int32_t(c, (int32_t *)y + at, (const int32_t *)x + at, width);
        break;
    default:
        columns_int64_t(c, (int64_t *)y + at, (const int64_t *)x + at, width);
        break;
    }
}

static gboolean cum_run(HnStep *s, GError **error)
{
    (void)error;
    const Cum *c = s->state;
    const int64_t all = c->outer * c->blocks;
    if (c->threads == 1) {
        for (int64_t b = 0; b < all; b++)
            one_block(s, b);
        return TRUE;
    }
#pragma omp parallel for num_threads(c->threads)
    for (int64_t b = 0; b < all; b++)
        one_block(s, b);
    return TRUE;
}

static const HnKernel cum = {
    .name = "cpu.cum",
    .reject = cum_reject,
    .prepare = cum_prepare,
    .run = cum_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_cumsum[] = { &cum, NULL };
const HnKernel *const hn_cpu_cumprod[] = { &cum, NULL };
