/*
 * BatchNormalization on the batch's moments, and its gradient: two passes over memory each, one for the sums and one
 * for the elements, which walks the other way so that it begins with what is still in the cache.
 *
 * The elements are cut into parts, whose number depends on the shape alone. Sums of a part are in f32; moments are
 * those of differences from a mean of its first rows. They are joined in double, part by part in order (T. F. Chan, G.
 * H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
 *
 * Channels last, and plain elements of one pixel, are parts of rows of all channels; else a part is one channel of one
 * sample.
 */
#include "cpu/reduce/batchnorm.h"

#include <math.h>
#include <string.h>

#include "cpu/core/epilogue.h"
#include "op/batchnorm.h"
#include "op/index.h"
#include "run/axis_forms.h"

#define HN_LOOPS "cpu/reduce/batchnorm_loops.h"
#include "base/every_level.h"

#define LANES 128          /* elements of a row, at least */
#define PARTS 64           /* at most, of rows of all channels */
#define PART_ELEMENTS 8192 /* at least, or */
#define PART_ROWS 32
#define FIRST 16 /* pixels whose mean is taken off before squaring */

typedef struct {
    const HnBatchNormFns *fns;
    gboolean last; /* parts are rows of all channels */
    int64_t channels, inner, all;
    int64_t width;       /* lanes of a row */
    int64_t parts, each; /* of a channel; elements of one, the last one's fewer */
    int64_t units;       /* that are computed one by one */
    int sums;            /* kept of a part and channel */
    int n_lanes;         /* arrays of HnNormLanes that are used */
    int threads;
    HnEpilogue epilogue;
    HnEpilogueEnd end;
    gsize partial, joined, factors, lanes, local; /* in scratch memory, bytes: see book() */
} Norm;

static void norm_release(HnStep *s)
{
    Norm *n = s->state;
    if (n != NULL)
        hn_epilogue_clear(&n->epilogue);
    g_clear_pointer(&s->state, g_free);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static const char *norm_reject(const HnStep *s, int x, int first, int last)
{
    const char *reason = hn_cpu_reject_f32(s);
    return reason != NULL ? reason : hn_channel_inputs(s, x, first, last);
}

/* Scratch memory: sums of parts [parts, sums, channels], doubles [4, channels], f32 [8, channels], lanes
 * [n_lanes, width], and for each thread sums of lanes [3, width]. */
static void book(HnStep *s, Norm *n)
{
    const gsize c = (gsize)n->channels, w = (gsize)n->width * sizeof(float);
    n->joined = 0;
    n->partial = n->joined + 4 * c * sizeof(double);
    n->factors = n->partial + (gsize)n->parts * (gsize)n->sums * c * sizeof(float);
    n->lanes = n->factors + 8 * c * sizeof(float);
    n->local = (n->lanes + (gsize)n->n_lanes * w + 63) / 64 * 64;
    s->scratch_bytes = n->local + (gsize)n->threads * (3 + (n->last ? 0 : (gsize)n->n_lanes)) * w;
}

static void *scratch(const HnStep *s, gsize at)
{
    return (char *)s->scratch + at;
}

/* s->state for elements like input x, which lie channels last where one of those inputs does. */
static Norm *norm_new(HnStep *s, int x, int n_like, int sums, int n_lanes)
{
    static const HnBatchNormFns *const levels[HN_LEVELS] = { &batchnorm_fns_plain, &batchnorm_fns_avx2,
                                                             &batchnorm_fns_avx512 };
    const HnTensor *t = hn_cpu_in(s, x);
    Norm *n = g_new0(Norm, 1);
    s->state = n;
    n->fns = levels[hn_cpu_level()];
    n->channels = t->dims[1];
    n->inner = hn_span(t->dims, 2, t->ndim);
    n->all = t->n;
    n->sums = sums;
    n->n_lanes = n_lanes;
    n->last = n->inner == 1 || n->channels == 1;
    for (int i = 0; i < n_like && !n->last; i++)
        n->last = s->in[i].slot->layout != NULL && t->ndim <= 5;
    for (int i = 0; i < n_like && n->last; i++)
        s->in[i].want = hn_layout_last(t);
    s->out[0].slot->layout = n->last ? hn_layout_last(t) : NULL;
    n->threads = hn_cpu_threads_for(s, 8 * (double)t->n);
    if (n->last) {
        n->width = n->channels * MAX(1, LANES / n->channels);
        const int64_t rows = (n->all + n->width - 1) / n->width;
        int64_t each = MAX(PART_ROWS, PART_ELEMENTS / n->width);
        each = MAX(each, (rows + PARTS - 1) / PARTS);
        n->each = each * n->width;
        n->parts = n->units = (n->all + n->each - 1) / n->each;
    } else {
        n->width = MIN(LANES, n->inner);
        n->each = n->inner;
        n->parts = t->dims[0];
        n->units = n->parts * n->channels;
    }
    return n;
}

/* One unit: elements [start, start + n) of channels [c, c + many), part `part` of these. */
typedef struct {
    int64_t start, n, part, c, many;
} Unit;

static Unit unit_at(const Norm *n, int64_t i)
{
    if (n->last)
        return (Unit){ i * n->each, MIN(n->each, n->all - i * n->each), i, 0, n->channels };
    return (Unit){ i * n->inner, n->inner, i / n->channels, i % n->channels, 1 };
}

/* of[c, c + many) for each lane */
static void widen(float *lanes, int64_t width, const float *of, int64_t many)
{
    for (int64_t i = 0; i < width; i += many)
        memcpy(lanes + i, of, (gsize)MIN(many, width - i) * sizeof *lanes);
}

/* Sums of lanes, one of each channel: place k of the unit's part. */
static void keep_sums(const HnStep *s, const Norm *n, const Unit *u, int k, const float *lanes)
{
    float *to = (float *)scratch(s, n->partial) + (u->part * n->sums + k) * n->channels + u->c;
    memcpy(to, lanes, (gsize)u->many * sizeof *to);
    for (int64_t i = u->many; i < n->width; i += u->many)
        for (int64_t c = 0; c < MIN(u->many, n->width - i); c++)
            to[c] += lanes[i + c];
}

static const float *sums_of(const HnStep *s, const Norm *n, int64_t part, int k)
{
    return (const float *)scratch(s, n->partial) + (part * n->sums + k) * n->channels;
}

typedef void (*UnitFn)(const HnStep *s, int thread, Unit u);

static void run_units(const HnStep *s, const Norm *n, UnitFn fn, int thread, gboolean backwards)
{
    const int64_t from = n->units * thread / n->threads, to = n->units * (thread + 1) / n->threads;
    for (int64_t i = from; i < to; i++)
        fn(s, thread, unit_at(n, backwards ? from + to - 1 - i : i));
}

static void each_unit(const HnStep *s, UnitFn fn, gboolean backwards)
{
    const Norm *n = s->state;
    if (n->threads == 1) {
        run_units(s, n, fn, 0, backwards);
        return;
    }
#pragma omp parallel for num_threads(n->threads)
    for (int t = 0; t < n->threads; t++)
        run_units(s, n, fn, t, backwards);
}

/* Memory of a thread: sums of lanes, then arrays of lanes where each unit has its own. */
static float *local_of(const HnStep *s, const Norm *n, int thread)
{
    return (float *)scratch(s, n->local) + thread * (3 + (n->last ? 0 : n->n_lanes)) * n->width;
}

/* Factor k of [8, channels]. */
static float *factor(const HnStep *s, const Norm *n, int k)
{
    return (float *)scratch(s, n->factors) + k * n->channels;
}

/* The first n_lanes factors as lanes: once for all, or the unit's. */
static float *lanes_of(const HnStep *s, const Norm *n, int thread, const Unit *u)
{
    float *lanes = n->last ? scratch(s, n->lanes) : local_of(s, n, thread) + 3 * n->width;
    for (int k = 0; k < n->n_lanes && !n->last; k++)
        widen(lanes + k * n->width, n->width, factor(s, n, k) + u->c, 1);
    return lanes;
}

static void widen_all(const HnStep *s, const Norm *n)
{
    for (int k = 0; k < n->n_lanes && n->last; k++)
        widen((float *)scratch(s, n->lanes) + k * n->width, n->width, factor(s, n, k), n->channels);
}

/* y = x * a + b, the same to the last bit here and where the gradient asks what an activation cut off */
static void affine(float *a, float *b, float scale, float bias, float mean, float inv)
{
    *a = (float)((double)scale * (double)inv);
    *b = (float)((double)bias - (double)mean * (double)*a);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

enum { X, SCALE, BIAS, MEAN, VAR };
enum { Y, NEXT_MEAN, NEXT_VAR, BATCH_MEAN, BATCH_INV };
enum { FACTOR_A, FACTOR_B, FORWARD_LANES };

static const char *train_reject(const HnStep *s)
{
    const HnBatchNorm *p = s->params;
    const char *reason = norm_reject(s, X, SCALE, VAR);
    return reason != NULL                   ? reason
           : hn_step_out(s, Y) == NULL      ? "no normalized elements are wanted"
           : !p->training || p->per_element ? "not the moments of the batch"
           : s->n_out > 3 && !p->inverse    ? "an old form that saves the variance"
                                            : NULL;
}

static gboolean train_fuses(const HnStep *s)
{
    return hn_epilogue_is_end(s, 1);
}

static gboolean train_prepare(HnStep *s, GError **error)
{
    (void)error;
    Norm *n = norm_new(s, X, 1, 3, FORWARD_LANES);
    hn_epilogue_init(&n->epilogue, s, 1);
    n->end = hn_epilogue_end(&n->epilogue, 0);
    if (n->end.add_port >= 0 && n->last)
        s->in[n->end.add_port].want = hn_layout_last(hn_cpu_in(s, X));
    book(s, n);
    return TRUE;
}

static void moments_of(const HnStep *s, int thread, Unit u)
{
    const Norm *n = s->state;
    const float *x = (const float *)hn_cpu_data(&s->in[X]) + u.start;
    float *shift = local_of(s, n, thread), *sum = shift + n->width, *squares = sum + n->width;
    const int64_t pixels = MIN(FIRST, u.n / u.many);
    for (int64_t c = 0; c < u.many; c++) {
        float first = 0;
        for (int64_t i = 0; i < pixels; i++)
            first += x[i * u.many + c];
        shift[c] = first / (float)pixels;
    }
    for (int64_t i = u.many; i < n->width; i++)
        shift[i] = shift[i - u.many];
    memset(sum, 0, 2 * (gsize)n->width * sizeof *sum);
    n->fns->moments(x, u.n, n->width, shift, sum, squares);
    memcpy((float *)scratch(s, n->partial) + (u.part * n->sums) * n->channels + u.c, shift,
           (gsize)u.many * sizeof *shift);
    keep_sums(s, n, &u, 1, sum);
    keep_sums(s, n, &u, 2, squares);
}

/* Means and sums of squares of all parts, [2, channels]. */
static void join_moments(const HnStep *s, const Norm *n, double *mean, double *squares)
{
    double before = 0;
    for (int64_t p = 0; p < n->parts; p++) {
        const float *shift = sums_of(s, n, p, 0), *sum = sums_of(s, n, p, 1), *square = sums_of(s, n, p, 2);
        const double count = n->last ? (double)(MIN(n->each, n->all - p * n->each) / n->channels) : (double)n->inner;
        const double all = before + count, part = count / all, between = before * part;
        for (int64_t c = 0; c < n->channels; c++) {
            const double off = (double)sum[c] / count, at = (double)shift[c] + off, m = p > 0 ? mean[c] : at;
            const double apart = at - m, own = fmax(0, (double)square[c] - off * (double)sum[c]);
            mean[c] = m + apart * part;
            squares[c] = (p > 0 ? squares[c] : 0) + own + apart * apart * between;
        }
        before = all;
    }
}

static void put(const HnStep *s, int k, int64_t c, double v)
{
    if (k < s->n_out && s->out[k].slot != NULL)
        ((float *)hn_cpu_data(&s->out[k]))[c] = (float)v;
}

static void finish_moments(const HnStep *s, const Norm *n)
{
    const HnBatchNorm *p = s->params;
    double *mean = scratch(s, n->joined), *squares = mean + n->channels, keep = (double)p->momentum;
    const float *in[] = { NULL, hn_cpu_data(&s->in[SCALE]), hn_cpu_data(&s->in[BIAS]), hn_cpu_data(&s->in[MEAN]),
                          hn_cpu_data(&s->in[VAR]) };
    join_moments(s, n, mean, squares);
    for (int64_t c = 0; c < n->channels; c++) {
        const double var = squares[c] / ((double)n->all / (double)n->channels);
        const double inv = 1 / sqrt(var + (double)p->epsilon);
        put(s, NEXT_MEAN, c, (double)in[MEAN][c] * keep + mean[c] * (1 - keep));
        put(s, NEXT_VAR, c, (double)in[VAR][c] * keep + var * (1 - keep));
        put(s, BATCH_MEAN, c, mean[c]);
        put(s, BATCH_INV, c, inv);
        affine(&factor(s, n, FACTOR_A)[c], &factor(s, n, FACTOR_B)[c], in[SCALE][c], in[BIAS][c], (float)mean[c],
               (float)inv);
    }
    widen_all(s, n);
}

static void apply_to(const HnStep *s, int thread, Unit u)
{
    const Norm *n = s->state;
    const float *lanes = lanes_of(s, n, thread, &u), *more = NULL;
    const HnNormLanes l = {
        .a = lanes + FACTOR_A * n->width, .b = lanes + FACTOR_B * n->width, .lo = n->end.lo, .hi = n->end.hi
    };
    if (n->end.add_port >= 0)
        more = (const float *)hn_cpu_data(&s->in[n->end.add_port]) + u.start;
    n->fns->apply((float *)hn_cpu_data(&s->out[Y]) + u.start, (const float *)hn_cpu_data(&s->in[X]) + u.start, more,
                  u.n, n->width, &l);
}

static gboolean train_run(HnStep *s, GError **error)
{
    (void)error;
    each_unit(s, moments_of, FALSE);
    finish_moments(s, s->state);
    each_unit(s, apply_to, TRUE);
    return TRUE;
}

const HnKernel hn_cpu_batchnorm_train = {
    .name = "cpu.batchnorm_train",
    .reject = train_reject,
    .prepare = train_prepare,
    .run = train_run,
    .release = norm_release,
    .fuses = train_fuses,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_batchnormtrain[] = { &hn_cpu_batchnorm_train, NULL };

/* --- gradient ----------------------------------------------------------------------------------------------------- */

enum { G_DY, G_X, G_SCALE, G_MEAN, G_SPREAD, G_BIAS };
enum { L_A, L_B, L_MEAN, L_K0, L_K1, BACK_LANES, INV = BACK_LANES };

static const char *grad_reject(const HnStep *s)
{
    const char *reason = norm_reject(s, G_X, G_SCALE, G_BIAS);
    return reason != NULL ? reason : s->n_out < 1 || s->out[0].slot == NULL ? "no gradient of the elements" : NULL;
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    (void)error;
    book(s, norm_new(s, G_X, 2, 2, BACK_LANES));
    return TRUE;
}

/* y = x * a + b, from which the mask follows. */
static void start_back(const HnStep *s, const Norm *n)
{
    const HnBatchNormGrad *p = s->params;
    const float *scale = hn_cpu_data(&s->in[G_SCALE]), *mean = hn_cpu_data(&s->in[G_MEAN]);
    const float *spread = hn_cpu_data(&s->in[G_SPREAD]);
    const float *bias = hn_cpu_in(s, G_BIAS) != NULL ? hn_cpu_data(&s->in[G_BIAS]) : NULL;
    float *inv = factor(s, n, INV);
    for (int64_t c = 0; c < n->channels; c++) {
        inv[c] = p->frozen ? (float)(1 / sqrt((double)spread[c] + (double)p->epsilon)) : spread[c];
        affine(&factor(s, n, L_A)[c], &factor(s, n, L_B)[c], scale[c], bias != NULL ? bias[c] : 0, mean[c], inv[c]);
        factor(s, n, L_MEAN)[c] = mean[c];
        factor(s, n, L_K0)[c] = factor(s, n, L_K1)[c] = 0;
    }
    widen_all(s, n);
}

static HnNormLanes back_lanes(const HnStep *s, const Norm *n, int thread, const Unit *u)
{
    const HnBatchNormGrad *p = s->params;
    const float *at = lanes_of(s, n, thread, u);
    return (HnNormLanes){ .mean = at + L_MEAN * n->width,
                          .a = at + L_A * n->width,
                          .b = at + L_B * n->width,
                          .k0 = at + L_K0 * n->width,
                          .k1 = at + L_K1 * n->width,
                          .lo = p->lo,
                          .hi = p->hi };
}

/* Sums of a part; with frozen moments the gradient of x as well. */
static void back_sums(const HnStep *s, int thread, Unit u)
{
    const Norm *n = s->state;
    const HnBatchNormGrad *p = s->params;
    const HnNormLanes l = back_lanes(s, n, thread, &u);
    const float *dy = (const float *)hn_cpu_data(&s->in[G_DY]) + u.start;
    const float *x = (const float *)hn_cpu_data(&s->in[G_X]) + u.start;
    float *sum = local_of(s, n, thread), *along = sum + n->width;
    memset(sum, 0, 2 * (gsize)n->width * sizeof *sum);
    if (p->frozen)
        n->fns->frozen[p->mask]((float *)hn_cpu_data(&s->out[0]) + u.start, dy, x, u.n, n->width, &l, sum, along);
    else
        n->fns->sums[p->mask](dy, x, u.n, n->width, &l, sum, along);
    keep_sums(s, n, &u, 0, sum);
    keep_sums(s, n, &u, 1, along);
}

/* dx = a dy - a dbias / n - (x - mean) a inv dscale / n */
static void finish_sums(const HnStep *s, const Norm *n)
{
    const float *inv = factor(s, n, INV), *a = factor(s, n, L_A);
    double *sum = scratch(s, n->joined), *along = sum + n->channels;
    const double count = (double)n->all / (double)n->channels;
    memset(sum, 0, 2 * (gsize)n->channels * sizeof *sum);
    for (int64_t p = 0; p < n->parts; p++)
        for (int64_t c = 0; c < n->channels; c++) {
            sum[c] += (double)sums_of(s, n, p, 0)[c];
            along[c] += (double)sums_of(s, n, p, 1)[c];
        }
    for (int64_t c = 0; c < n->channels; c++) {
        const double dscale = along[c] * (double)inv[c];
        put(s, 1, c, dscale);
        put(s, 2, c, sum[c]);
        factor(s, n, L_K0)[c] = (float)(-(double)a[c] * sum[c] / count);
        factor(s, n, L_K1)[c] = (float)(-(double)a[c] * (double)inv[c] * dscale / count);
    }
    widen_all(s, n);
}

static void back_elements(const HnStep *s, int thread, Unit u)
{
    const Norm *n = s->state;
    const HnBatchNormGrad *p = s->params;
    const HnNormLanes l = back_lanes(s, n, thread, &u);
    n->fns->back[p->mask]((float *)hn_cpu_data(&s->out[0]) + u.start,
                          (const float *)hn_cpu_data(&s->in[G_DY]) + u.start,
                          (const float *)hn_cpu_data(&s->in[G_X]) + u.start, u.n, n->width, &l);
}

static gboolean grad_run(HnStep *s, GError **error)
{
    (void)error;
    const HnBatchNormGrad *p = s->params;
    start_back(s, s->state);
    each_unit(s, back_sums, FALSE);
    finish_sums(s, s->state);
    if (!p->frozen)
        each_unit(s, back_elements, TRUE);
    return TRUE;
}

static const HnKernel batchnorm_grad = {
    .name = "cpu.batchnorm_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = norm_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_batchnormgrad[] = { &batchnorm_grad, NULL };
