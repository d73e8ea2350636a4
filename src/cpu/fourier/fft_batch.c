#include "cpu/fourier/fft_batch.h"

#define HN_LOOPS "cpu/fourier/fft_loops.h"
#include "base/every_level.h"

static int lanes_here(void)
{
    static const int lanes[] = { HN_LANES_plain, HN_LANES_avx2, HN_LANES_avx512 };
    return lanes[hn_cpu_level()];
}

void hn_fft_work_init(HnFftWork *w, HnFft *fft, HnFftBatch b)
{
    const int lanes = lanes_here();
    b.fft = fft;
    *w = (HnFftWork){ .fft = fft, .batch = b };
    const int64_t rows = hn_fft_step(&b, lanes), points = fft->apart != NULL ? 2 * fft->n : fft->n;
    w->steps = (b.rows + rows - 1) / rows;
    w->flops = (double)w->steps * lanes * (hn_fft_flops(fft) + 6 * (double)points);
    w->block = (gsize)hn_fft_points(fft) * 2 * (gsize)lanes * sizeof(float);
}

void hn_fft_work_clear(HnFftWork *w)
{
    g_clear_pointer(&w->fft, hn_fft_free);
}

static int threads_of(const HnFftWork *w, const HnStep *s)
{
    return MAX((int)MIN(hn_cpu_threads_for(s, w->flops), w->steps), 1);
}

gsize hn_fft_work_bytes(const HnFftWork *w, const HnStep *s)
{
    return 2 * w->block * (gsize)threads_of(w, s);
}

typedef struct {
    const HnFftWork *w;
    const HnFftBatch *b;
    char *scratch;
} Run;

static void run_steps(gpointer run, int thread, int64_t from, int64_t to)
{
    static void (*const fns[])(const HnFftBatch *, int64_t, int, float *, float *) = HN_TABLE_OF_LEVELS(fft_rows);
    const HnFftWork *w = ((const Run *)run)->w;
    const HnFftBatch *b = ((const Run *)run)->b;
    char *block = ((const Run *)run)->scratch + 2 * w->block * (gsize)thread;
    const int64_t rows = hn_fft_step(b, lanes_here());
    for (int64_t i = from; i < to; i++)
        fns[hn_cpu_level()](b, i * rows, (int)MIN(rows, b->rows - i * rows), (float *)(void *)block,
                            (float *)(void *)(block + w->block));
}

void hn_fft_work_run(const HnFftWork *w, const HnStep *s, const HnFftBatch *b, void *scratch)
{
    Run r = { .w = w, .b = b, .scratch = scratch };
    hn_parallel_for(w->steps, threads_of(w, s), run_steps, &r);
}
