/*
 * TrainDropout of f32: masks by vectors of counters, in parts of a tensor that begin at whole chunks.
 */
#include "op/traindropout.h"

#include "cpu/core/cpu_kernel.h"
#include "cpu/elementwise/traindropout.h"

#define HN_LOOPS "cpu/elementwise/traindropout_loops.h"
#include "base/every_level.h"

#define FLOPS 16 /* for an element, as ten rounds for four of them cost */

static gboolean traindropout_prepare(HnStep *s, GError **error)
{
    (void)s; /* plain inputs are the default: places are counted in them */
    (void)error;
    return TRUE;
}

static HnDrop drop_of(const HnStep *s)
{
    const HnTrainDropout *p = s->params;
    const int64_t *state = hn_cpu_data(&s->in[1]);
    return (HnDrop){ .seed = (uint64_t)state[HN_DROPOUT_SEED],
                     .step = (uint32_t)state[HN_DROPOUT_STEP],
                     .salt = p->salt,
                     .threshold = p->threshold,
                     .scale = (float)(1 / (1 - p->ratio)) };
}

/* Part t of as many as there are threads. */
static void run_part(const HnStep *s, const HnDrop *d, int threads, int t)
{
    static void (*const fns[])(const HnDrop *, const float *, float *, int64_t, int64_t) = HN_TABLE_OF_LEVELS(drop);
    const int64_t n = hn_cpu_in(s, 0)->n, chunks = (n + HN_DROP_CHUNK - 1) / HN_DROP_CHUNK;
    const int64_t lo = chunks * t / threads * HN_DROP_CHUNK, hi = MIN(chunks * (t + 1) / threads * HN_DROP_CHUNK, n);
    fns[hn_cpu_level()](d, (const float *)hn_cpu_data(&s->in[0]) + lo, (float *)hn_cpu_data(&s->out[0]) + lo, lo,
                        hi - lo);
}

static gboolean traindropout_run(HnStep *s, GError **error)
{
    const HnDrop d = drop_of(s);
    const int64_t n = hn_cpu_in(s, 0)->n;
    const int threads = (int)MIN(hn_cpu_threads_for(s, FLOPS * (double)n), (n + HN_DROP_CHUNK - 1) / HN_DROP_CHUNK);
    (void)error;
    if (threads <= 1) {
        run_part(s, &d, 1, 0);
        return TRUE;
    }
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        run_part(s, &d, threads, t);
    return TRUE;
}

static const char *traindropout_reject(const HnStep *s)
{
    return hn_cpu_in(s, 0)->dtype == HN_F32 ? NULL : "only f32";
}

static const HnKernel traindropout = {
    .name = "cpu.traindropout",
    .reject = traindropout_reject,
    .prepare = traindropout_prepare,
    .run = traindropout_run,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_traindropout[] = { &traindropout, NULL };
