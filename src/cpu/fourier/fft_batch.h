/*
 * A step that transforms a batch of signals: scratch memory, threads, and the loops of the instruction level.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/fourier/fft.h"

G_BEGIN_DECLS

typedef struct {
    HnFft *fft; /* owned */
    HnFftBatch batch;
    int64_t steps; /* batches of hn_fft_step() rows */
    double flops;
    gsize block; /* bytes of each of a thread's two blocks */
} HnFftWork;

/* With b set but for fft, factor, x and y; fft is taken over. */
void hn_fft_work_init(HnFftWork *w, HnFft *fft, HnFftBatch b);
void hn_fft_work_clear(HnFftWork *w);
/* Of the step's scratch memory. */
gsize hn_fft_work_bytes(const HnFftWork *w, const HnStep *s);
void hn_fft_work_run(const HnFftWork *w, const HnStep *s, const HnFftBatch *b, void *scratch);

G_END_DECLS
