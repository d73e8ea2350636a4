/*
 * ReduceSum and ReduceMean of f32 over axes that lie side by side; over all spatial axes of channels last, or its
 * channels, too.
 *
 * Rows are added four at a time, ((a + b) + c) + d and then to the sum: a quarter of the traffic to the sums, and less
 * rounding than one by one. Single precision throughout, as every engine's fast path; ref sums in double.
 */
#include "op/reduce.h"

#include <immintrin.h>

#include "cpu/reduce/reduce_axes.h"

#define HN_LOOPS "cpu/reduce/few_sums_loops.h"
#include "base/every_level.h"

static const char *reduce_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    int64_t rows[3];
    if (x->dtype != HN_F32)
        return "only f32";
    if (x->n == 0)
        return "nothing to compute";
    if (s->n_in > 1 && s->in[1].slot != NULL && !s->in[1].slot->constant)
        return "axes that are known only at run time";
    if (!hn_reduce_rows(s->params, x, hn_cpu_in(s, 1), rows))
        return "reduced axes that lie apart";
    return NULL;
}

static gboolean reduce_prepare(HnStep *s, GError **error)
{
    (void)error;
    int64_t *rows = g_new0(int64_t, 3);
    const HnTensor *x = hn_cpu_in(s, 0);
    hn_reduce_rows(s->params, x, hn_cpu_in(s, 1), rows);
    const gboolean last = hn_layout_is_last(s->in[0].slot->layout);
    if (last && rows[2] == 1 && rows[0] == x->dims[0] * x->dims[1]) {
        rows[0] = x->dims[0];
        rows[2] = x->dims[1];
        s->in[0].any = TRUE;
    } else if (last && rows[0] == x->dims[0] && rows[1] == x->dims[1]) {
        rows[0] *= rows[2];
        rows[2] = 1;
        s->in[0].any = TRUE;
    }
    s->state = rows;
    if (s->n_in > 1)
        s->in[1].unread = TRUE;
    return TRUE;
}

/* x is [n, inner], y [inner] */
static void sum_rows(float *restrict y, const float *restrict x, int64_t n, int64_t inner)
{
    int64_t k = n % 4 == 0 ? 4 : n % 4;
    for (int64_t i = 0; i < inner; i++) {
        float sum = x[i];
        for (int64_t j = 1; j < k; j++)
            sum += x[j * inner + i];
        y[i] = sum;
    }
    for (x += k * inner; k < n; k += 4, x += 4 * inner) {
        const float *restrict a = x, *restrict b = a + inner, *restrict c = b + inner, *restrict d = c + inner;
        for (int64_t i = 0; i < inner; i++)
            y[i] += ((a[i] + b[i]) + c[i]) + d[i];
    }
}

#define LANES 16

/* 16 sums of a row as 4; what is behind the last 16 elements in `rest`. */
static inline __m128 sum_lanes(const float *x, int64_t n, float *rest)
{
    __m128 a = _mm_setzero_ps(), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        a = _mm_add_ps(a, _mm_loadu_ps(x + i));
        b = _mm_add_ps(b, _mm_loadu_ps(x + i + 4));
        c = _mm_add_ps(c, _mm_loadu_ps(x + i + 8));
        d = _mm_add_ps(d, _mm_loadu_ps(x + i + 12));
    }
    *rest = 0;
    for (; i < n; i++)
        *rest += x[i];
    return _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
}

/* x is [rows, n], y [rows]. The sums of four rows are joined at a time, each as alone: halves are added to halves. */
static void sum_each(float *y, const float *x, int64_t rows, int64_t n)
{
    for (int64_t some; rows > 0; rows -= some, y += some, x += some * n) {
        float rest[4];
        some = rows >= 4 ? 4 : 1;
        __m128 a = sum_lanes(x, n, &rest[0]), b = a, c = a, d = a;
        if (some == 4) {
            b = sum_lanes(x + n, n, &rest[1]);
            c = sum_lanes(x + 2 * n, n, &rest[2]);
            d = sum_lanes(x + 3 * n, n, &rest[3]);
        }
        _MM_TRANSPOSE4_PS(a, b, c, d);
        const __m128 sums = _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
        if (some == 4)
            _mm_storeu_ps(y, _mm_add_ps(sums, _mm_loadu_ps(rest)));
        else
            *y = _mm_cvtss_f32(sums) + rest[0];
    }
}

#define FEW 4 /* elements of a row that vectors go across */

static void sum(const HnStep *s)
{
    static void (*const few[])(float *restrict, const float *restrict, int64_t, int64_t) = HN_TABLE_OF_LEVELS(sum_few);
    const int64_t *rows = s->state, n = rows[1], inner = rows[2];
    const float *x = hn_cpu_data(&s->in[0]);
    float *y = hn_cpu_data(&s->out[0]);
    if (inner == 1 && n > 1 && n <= FEW) {
        few[hn_cpu_level()](y, x, rows[0], n);
        return;
    }
    if (inner == 1) {
        sum_each(y, x, rows[0], n);
        return;
    }
    for (int64_t o = 0; o < rows[0]; o++, x += n * inner, y += inner)
        sum_rows(y, x, n, inner);
}

static gboolean sum_run(HnStep *s, GError **error)
{
    (void)error;
    sum(s);
    return TRUE;
}

static gboolean mean_run(HnStep *s, GError **error)
{
    (void)error;
    const int64_t *rows = s->state;
    float *y = hn_cpu_data(&s->out[0]), n = (float)rows[1];
    sum(s);
    for (int64_t i = 0; i < rows[0] * rows[2]; i++)
        y[i] /= n;
    return TRUE;
}

static const HnKernel sum_rows_kernel = {
    .name = "cpu.reducesum",
    .reject = reduce_reject,
    .prepare = reduce_prepare,
    .run = sum_run,
    .release = hn_cpu_release,
};

static const HnKernel mean_rows_kernel = {
    .name = "cpu.reducemean",
    .reject = reduce_reject,
    .prepare = reduce_prepare,
    .run = mean_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_reducesum[] = { &sum_rows_kernel, &hn_cpu_reduce, NULL };
const HnKernel *const hn_cpu_reducemean[] = { &mean_rows_kernel, &hn_cpu_reduce, NULL };
