/*
 * FakeQuantize and FakeQuantizeGrad of f32 in one pass each.
 *
 * A sum for a scale is cut into parts, as many as shapes say, whose sums are added in double, in order.
 */
#include "op/fakequantize.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"

#define HN_LOOPS "cpu/elementwise/fakequantize_loops.h"
#include "base/every_level.h"

#define CHUNK ((int64_t)8192) /* elements of one scale for all that are a part */
#define PARTS 64              /* of rows with scales for each element, at most */

typedef struct {
    void (*one)(float *, const float *, const float *, const float *, const float *, int64_t);
    void (*each)(float *, const float *, const float *, const float *, const float *, int64_t);
    void (*back_one)(float *, float *, const float *, const float *, const float *, const float *, const float *,
                     int64_t);
    void (*back_each)(float *, float *, const float *, const float *, const float *, const float *, const float *,
                      int64_t);
} Loops;

static const Loops *loops_now(void)
{
    static const Loops loops[HN_LEVELS] = {
        { fake_one_plain, fake_each_plain, back_one_plain, back_each_plain },
        { fake_one_avx2, fake_each_avx2, back_one_avx2, back_each_avx2 },
        { fake_one_avx512, fake_each_avx512, back_one_avx512, back_each_avx512 },
    };
    return &loops[hn_cpu_level()];
}

typedef struct {
    const Loops *loops;
    HnFakeGrid g;
    int64_t n, scales;   /* elements; of all scales */
    int64_t units;       /* that threads take: no two add to one sum */
    int64_t parts, rows; /* parts of the sum of each scale; rows of a unit that is a part */
    int threads;
    float *lo, *hi, *gain; /* [scales]; behind this */
} Fake;

/* Inputs from `first` on are x, scale and zero. */
static const char *reject(const HnStep *s, int first)
{
    const HnFakeQuantize *p = s->params;
    const HnTensor *x = hn_cpu_in(s, first), *scale = hn_cpu_in(s, first + 1), *zero = hn_cpu_in(s, first + 2);
    HnFakeGrid g;
    if (x->dtype != HN_F32)
        return "only f32";
    if (x->n == 0)
        return "nothing to compute";
    if (p->smooth)
        return "without rounding";
    if (zero != NULL && !s->in[first + 2].slot->constant)
        return "zero points that are computed";
    if (!hn_fake_grid(p, x, scale, &g) || (zero != NULL && zero->n != scale->n) || hn_cpu_in(s, 0)->n != x->n)
        return "shapes that do not fit";
    return NULL;
}

static void set_units(Fake *f)
{
    const HnFakeGrid *g = &f->g;
    f->parts = f->rows = 1;
    if (f->scales == 1) {
        f->units = f->parts = (f->n + CHUNK - 1) / CHUNK;
    } else if (g->blocked) {
        f->units = g->outer * g->scales;
    } else if (g->inner > 1) {
        f->units = g->size;
    } else {
        const int64_t most = CLAMP(f->n / CHUNK, 1, PARTS);
        f->rows = (g->outer + most - 1) / most;
        f->units = f->parts = (g->outer + f->rows - 1) / f->rows;
    }
}

static Fake *prepare(HnStep *s, int first, double flops)
{
    const HnFakeQuantize *p = s->params;
    const HnTensor *x = hn_cpu_in(s, first), *scale = hn_cpu_in(s, first + 1), *zero = hn_cpu_in(s, first + 2);
    Fake *f = g_malloc0(sizeof *f + 3 * (gsize)scale->n * sizeof(float));
    s->state = f;
    f->loops = loops_now();
    f->n = x->n;
    f->scales = scale->n;
    hn_fake_grid(p, x, scale, &f->g);
    set_units(f);
    f->threads = (int)MIN(hn_cpu_threads_for(s, flops * (double)x->n), f->units);
    f->lo = (float *)(f + 1);
    f->hi = f->lo + scale->n;
    f->gain = f->hi + scale->n;
    for (int64_t k = 0; k < scale->n; k++) {
        const double z = zero != NULL ? (double)((const float *)zero->data)[k] : 0;
        f->lo[k] = (float)(p->lowest - z);
        f->hi[k] = (float)(p->highest - z);
        f->gain[k] = (float)hn_fake_gain(p, z, hn_fake_elements(p, x, &f->g));
    }
    return f;
}

/* With one scale the order of elements is nobody's business. */
static void take_layout(HnStep *s, int first)
{
    const HnTensor *x = hn_cpu_in(s, first);
    gboolean last = hn_cpu_in(s, first + 1)->n == 1;
    last = last && (hn_layout_is_last(s->in[first].slot->layout) || hn_layout_is_last(s->in[0].slot->layout));
    if (!last)
        return;
    for (int i = 0; i <= first; i++)
        s->in[i].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(x);
}

/* n elements from `at` on, whose scales begin at number `scale`. */
typedef struct {
    int64_t at, n, scale;
    gboolean each;
} Row;

/* Row r of unit u; FALSE: there is none. */
static gboolean row_of(const Fake *f, int64_t u, int64_t r, Row *row)
{
    const HnFakeGrid *g = &f->g;
    if (f->scales == 1) {
        *row = (Row){ u * CHUNK, MIN(CHUNK, f->n - u * CHUNK), 0, FALSE };
        return r < 1;
    }
    if (g->blocked && g->inner == 1) {
        const int64_t b = u % g->scales;
        *row = (Row){ u / g->scales * g->size + b * g->block, MIN(g->block, g->size - b * g->block), u, FALSE };
        return r < 1;
    }
    if (g->blocked) {
        const int64_t k = u % g->scales * g->block + r;
        *row = (Row){ (u / g->scales * g->size + k) * g->inner, g->inner, u * g->inner, TRUE };
        return r < g->block && k < g->size;
    }
    if (g->inner > 1) {
        *row = (Row){ (r * g->size + u) * g->inner, g->inner, u, FALSE };
        return r < g->outer;
    }
    const int64_t o = u * f->rows + r;
    *row = (Row){ o * g->size, g->size, 0, TRUE };
    return r < f->rows && o < g->outer;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static const char *fake_reject(const HnStep *s)
{
    return reject(s, 0);
}

static gboolean fake_prepare(HnStep *s, GError **error)
{
    (void)error;
    prepare(s, 0, 5);
    take_layout(s, 0);
    return TRUE;
}

static void fake_unit(const HnStep *s, int64_t u)
{
    const Fake *f = s->state;
    const float *x = hn_cpu_data(&s->in[0]), *scale = hn_cpu_data(&s->in[1]);
    float *y = hn_cpu_data(&s->out[0]);
    Row w;
    for (int64_t r = 0; row_of(f, u, r, &w); r++)
        (w.each ? f->loops->each : f->loops->one)(y + w.at, x + w.at, scale + w.scale, f->lo + w.scale, f->hi + w.scale,
                                                  w.n);
}

static gboolean fake_run(HnStep *s, GError **error)
{
    (void)error;
    const Fake *f = s->state;
#pragma omp parallel for num_threads(f->threads) if (f->threads > 1)
    for (int t = 0; t < f->threads; t++)
        for (int64_t u = f->units * t / f->threads; u < f->units * (t + 1) / f->threads; u++)
            fake_unit(s, u);
    return TRUE;
}

static const HnKernel fake = {
    .name = "cpu.fakequantize",
    .reject = fake_reject,
    .prepare = fake_prepare,
    .run = fake_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_fakequantize[] = { &fake, NULL };

/* --- backward ----------------------------------------------------------------------------------------------------- */

static const char *back_reject(const HnStep *s)
{
    return reject(s, 1);
}

static gboolean back_prepare(HnStep *s, GError **error)
{
    (void)error;
    const Fake *f = prepare(s, 1, 9);
    take_layout(s, 1);
    s->scratch_bytes = (gsize)(f->parts * f->scales) * sizeof(float);
    return TRUE;
}

static void back_unit(const HnStep *s, int64_t u)
{
    const Fake *f = s->state;
    const float *dy = hn_cpu_data(&s->in[0]), *x = hn_cpu_data(&s->in[1]), *scale = hn_cpu_data(&s->in[2]);
    float *dx = hn_cpu_data(&s->out[0]), *sums = (float *)s->scratch + (f->parts > 1 ? u * f->scales : 0);
    Row w;
    for (int64_t r = 0; row_of(f, u, r, &w); r++) {
        if (r == 0)
            memset(sums + w.scale, 0, (gsize)(w.each ? w.n : 1) * sizeof *sums);
        (w.each ? f->loops->back_each : f->loops->back_one)(dx + w.at, sums + w.scale, dy + w.at, x + w.at,
                                                            scale + w.scale, f->lo + w.scale, f->hi + w.scale, w.n);
    }
}

static void join_parts(const HnStep *s)
{
    const Fake *f = s->state;
    const float *sums = s->scratch;
    if (s->n_out < 2 || s->out[1].slot == NULL)
        return;
    float *ds = hn_cpu_data(&s->out[1]);
    for (int64_t k = 0; k < f->scales; k++) {
        double sum = 0;
        for (int64_t p = 0; p < f->parts; p++)
            sum += (double)sums[p * f->scales + k];
        ds[k] = (float)(sum * (double)f->gain[k]);
    }
}

static gboolean back_run(HnStep *s, GError **error)
{
    (void)error;
    const Fake *f = s->state;
#pragma omp parallel for num_threads(f->threads) if (f->threads > 1)
    for (int t = 0; t < f->threads; t++)
        for (int64_t u = f->units * t / f->threads; u < f->units * (t + 1) / f->threads; u++)
            back_unit(s, u);
    join_parts(s);
    return TRUE;
}

static const HnKernel back = {
    .name = "cpu.fakequantize_grad",
    .reject = back_reject,
    .prepare = back_prepare,
    .run = back_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_fakequantizegrad[] = { &back, NULL };
