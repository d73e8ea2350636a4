/*
 * Optimizers of f32 in one pass over weights, state and gradient, and the norm of gradients.
 */
#include "op/optimizer.h"

#include <math.h>
#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/elementwise/optimizer.h"

#define HN_LOOPS "cpu/elementwise/optimizer_loops.h"
#include "base/every_level.h"

typedef void (*UpdateFn)(const HnUpdateNumbers *k, const HnUpdatePart *u, int64_t n);

typedef struct {
    UpdateFn fn;
    HnUpdateNumbers fixed; /* without what `hyper` says */
    int64_t n;
    int states, threads;
} Optimizer;

#define LINE 16 /* f32 in a cache line: what one thread writes no other one does */

/* --- AdamW, Sgd, Lion, MovingAverage --------------------------------------------------------------------------------
 */

static const char *optimizer_reject(const HnStep *s)
{
    for (int k = 0; k < s->n_in && s->op->out[k] != 0; k++)
        if (s->in[k].slot != NULL && (k >= s->n_out || s->out[k].slot == NULL))
            return "a state that nobody wants";
    return hn_cpu_reject_f32(s);
}

static Optimizer *prepare(HnStep *s, const UpdateFn *fns)
{
    const HnOptimizer *p = s->params;
    Optimizer *o = g_new0(Optimizer, 1);
    s->state = o;
    o->fn = fns[hn_cpu_level()];
    o->n = hn_cpu_in(s, 0)->n;
    o->states = s->in[1].slot != NULL ? s->n_out : 1;
    o->threads = (int)MIN(hn_cpu_threads_for(s, 14 * (double)o->n), (o->n + LINE - 1) / LINE);
    o->fixed = (HnUpdateNumbers){ .decay = (float)p->weight_decay,
                                  .momentum = (float)p->momentum,
                                  .epsilon = (float)p->epsilon,
                                  .new1 = (float)(1 - p->beta1),
                                  .new2 = (float)(1 - p->beta2),
                                  .keep2 = (float)p->beta2 };
    return o;
}

static gboolean adamw_prepare(HnStep *s, GError **error)
{
    static const UpdateFn fns[] = HN_TABLE_OF_LEVELS(adamw);
    (void)error;
    prepare(s, fns);
    return TRUE;
}

static gboolean sgd_prepare(HnStep *s, GError **error)
{
    static const UpdateFn alone[] = HN_TABLE_OF_LEVELS(descend), with[] = HN_TABLE_OF_LEVELS(momentum),
                          ahead[] = HN_TABLE_OF_LEVELS(nesterov);
    (void)error;
    prepare(s, s->in[1].slot == NULL ? alone : ((const HnOptimizer *)s->params)->nesterov ? ahead : with);
    return TRUE;
}

static gboolean lion_prepare(HnStep *s, GError **error)
{
    static const UpdateFn fns[] = HN_TABLE_OF_LEVELS(lion);
    (void)error;
    prepare(s, fns);
    return TRUE;
}

static gboolean average_prepare(HnStep *s, GError **error)
{
    static const UpdateFn fns[] = HN_TABLE_OF_LEVELS(average);
    (void)error;
    Optimizer *o = prepare(s, fns);
    o->states = 1;
    o->fixed.new1 = (float)(1 - ((const HnOptimizer *)s->params)->decay);
    return TRUE;
}

/* Part t of as many as there are threads. */
static void run_part(const HnStep *s, const HnUpdateNumbers *k, const float *dw, int t)
{
    const Optimizer *o = s->state;
    const int64_t lines = (o->n + LINE - 1) / LINE;
    const int64_t lo = lines * t / o->threads * LINE, hi = MIN(lines * (t + 1) / o->threads * LINE, o->n);
    HnUpdatePart u = { .dw = dw + lo };
    for (int i = 0; i < o->states; i++) {
        u.in[i] = (const float *)hn_cpu_data(&s->in[i]) + lo;
        u.out[i] = (float *)hn_cpu_data(&s->out[i]) + lo;
    }
    o->fn(k, &u, hi - lo);
}

static void run_parts(const HnStep *s, const HnUpdateNumbers *k, const float *dw)
{
    const int threads = ((const Optimizer *)s->state)->threads;
    if (threads == 1) {
        run_part(s, k, dw, 0);
        return;
    }
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        run_part(s, k, dw, t);
}

/* Weights and states stay what they are, bit by bit. */
static void keep(const HnStep *s)
{
    const Optimizer *o = s->state;
    for (int i = 0; i < o->states; i++)
        if (hn_cpu_data(&s->out[i]) != hn_cpu_data(&s->in[i]))
            memcpy(hn_cpu_data(&s->out[i]), hn_cpu_data(&s->in[i]), (gsize)o->n * sizeof(float));
}

/* The last two inputs are the gradient and `hyper`. */
static gboolean optimizer_run(HnStep *s, GError **error)
{
    const HnOptimizer *p = s->params;
    HnUpdateNumbers k = ((const Optimizer *)s->state)->fixed;
    const float *hyper = hn_cpu_data(&s->in[s->n_in - 1]);
    const double rate = (double)hyper[HN_HYPER_RATE];
    (void)error;
    if (!isfinite(hyper[HN_HYPER_SCALE])) {
        keep(s);
        return TRUE;
    }
    k.scale = hyper[HN_HYPER_SCALE];
    k.rate = hyper[HN_HYPER_RATE];
    k.keep = (float)(1 - rate * p->weight_decay);
    k.rate1 = (float)(rate * (double)hyper[HN_HYPER_FIRST]);
    k.root2 = (float)sqrt((double)hyper[HN_HYPER_SECOND]);
    run_parts(s, &k, hn_cpu_data(&s->in[s->n_in - 2]));
    return TRUE;
}

/* Input 2, where there is one, is `hyper`. */
static gboolean average_run(HnStep *s, GError **error)
{
    const float *hyper = s->n_in > 2 && s->in[2].slot != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    (void)error;
    if (hyper != NULL && !isfinite(hyper[HN_HYPER_SCALE])) {
        keep(s);
        return TRUE;
    }
    run_parts(s, &((const Optimizer *)s->state)->fixed, hn_cpu_data(&s->in[1]));
    return TRUE;
}

#define OPTIMIZER(title)                                                                                     \
    {                                                                                                        \
        .name = "cpu." #title, .reject = optimizer_reject, .prepare = title##_prepare, .run = optimizer_run, \
        .release = hn_cpu_release, .inplace = TRUE, .inplace_each = TRUE                                     \
    }

static const HnKernel adamw = OPTIMIZER(adamw), sgd = OPTIMIZER(sgd), lion = OPTIMIZER(lion);

static const HnKernel moving_average = {
    .name = "cpu.movingaverage",
    .reject = hn_cpu_reject_f32,
    .prepare = average_prepare,
    .run = average_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

/* --- ClipByNorm ----------------------------------------------------------------------------------------------------
 */

#define CHUNK 8192 /* elements whose squares are one sum; sums are added in their order, whoever made them */

typedef struct {
    int input;
    int64_t at, n;
} Chunk;

typedef struct {
    double (*squares)(const float *x, int64_t n);
    int64_t n;
    int threads;
    Chunk chunk[];
} Norm;

static const char *norm_reject(const HnStep *s)
{
    for (int i = 1; i < s->n_in; i++)
        if (hn_cpu_in(s, i) == NULL || hn_cpu_in(s, i)->dtype != HN_F32)
            return "only f32";
    return s->out[0].slot == NULL ? "only the norm is wanted" : NULL;
}

static gboolean norm_prepare(HnStep *s, GError **error)
{
    static double (*const squares[])(const float *, int64_t) = HN_TABLE_OF_LEVELS(squares);
    int64_t chunks = 0, elements = 0;
    (void)error;
    for (int i = 1; i < s->n_in; i++) {
        chunks += (hn_cpu_in(s, i)->n + CHUNK - 1) / CHUNK;
        elements += hn_cpu_in(s, i)->n;
    }
    Norm *norm = g_malloc0(sizeof *norm + (gsize)chunks * sizeof norm->chunk[0]);
    s->state = norm;
    norm->squares = squares[hn_cpu_level()];
    for (int i = 1; i < s->n_in; i++)
        for (int64_t at = 0, n = hn_cpu_in(s, i)->n; at < n; at += CHUNK)
            norm->chunk[norm->n++] = (Chunk){ i, at, MIN(CHUNK, n - at) };
    norm->threads = (int)CLAMP(norm->n, 1, hn_cpu_threads_for(s, 2 * (double)elements));
    s->scratch_bytes = (gsize)norm->n * sizeof(double);
    return TRUE;
}

static void sum_part(const HnStep *s, int t)
{
    const Norm *norm = s->state;
    for (int64_t i = norm->n * t / norm->threads; i < norm->n * (t + 1) / norm->threads; i++) {
        const Chunk *c = &norm->chunk[i];
        ((double *)s->scratch)[i] = norm->squares((const float *)hn_cpu_data(&s->in[c->input]) + c->at, c->n);
    }
}

static gboolean norm_run(HnStep *s, GError **error)
{
    const Norm *norm = s->state;
    (void)error;
    if (norm->threads == 1) {
        sum_part(s, 0);
    } else {
#pragma omp parallel for num_threads(norm->threads)
        for (int t = 0; t < norm->threads; t++)
            sum_part(s, t);
    }
    double all = 0;
    for (int64_t i = 0; i < norm->n; i++)
        all += ((const double *)s->scratch)[i];
    const float size = hn_clip(s->params, all, hn_cpu_data(&s->in[0]), hn_cpu_data(&s->out[0]));
    if (s->n_out > 1 && s->out[1].slot != NULL)
        *(float *)hn_cpu_data(&s->out[1]) = size;
    return TRUE;
}

static const HnKernel clip_by_norm = {
    .name = "cpu.clipbynorm",
    .reject = norm_reject,
    .prepare = norm_prepare,
    .run = norm_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_adamw[] = { &adamw, NULL };
const HnKernel *const hn_cpu_sgd[] = { &sgd, NULL };
const HnKernel *const hn_cpu_lion[] = { &lion, NULL };
const HnKernel *const hn_cpu_movingaverage[] = { &moving_average, NULL };
const HnKernel *const hn_cpu_clipbynorm[] = { &clip_by_norm, NULL };
