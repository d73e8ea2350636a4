/*
 * HnDftTable: constant weights that spell out a discrete Fourier transform of real frames, as front ends of speech and
 * music models have them. Of a frame x[taps] with a window, bins of a transform of n points are
 *
 *     X[k] = sum of window[j] x[j] e^(-2 pi i j k / n)
 *
 * and result r of such weights is re Re X[bin] + im Im X[bin]: the real parts of all bins, then the imaginary ones, or
 * any other choice of them. Nothing is taken on trust: each weight has to be what the table says.
 */
#pragma once

#include "cpu/fourier/fft.h"
#include "ir/tensor.h"

G_BEGIN_DECLS

/* One block of memory. */
typedef struct {
    int64_t n; /* points, even and taps at least */
    int64_t rows, taps;
    HnFftSum sums[]; /* [rows], then the window, [taps] floats */
} HnDftTable;

static inline const float *hn_dft_table_window(const HnDftTable *t)
{
    return (const float *)(const void *)(t->sums + t->rows);
}

static inline gsize hn_dft_table_bytes(int64_t rows, int64_t taps)
{
    return sizeof(HnDftTable) + (gsize)rows * sizeof(HnFftSum) + (gsize)taps * sizeof(float);
}

/* Weight (r, j) of w is element r * row + j * tap, f32 of any alignment. FALSE: it is no such table, which a few of the
 * weights tell nearly always. */
gboolean hn_dft_table_likely(const void *w, int64_t rows, int64_t taps, int64_t row, int64_t tap);
gboolean hn_dft_table_find(HnDftTable *t, const void *w, int64_t rows, int64_t taps, int64_t row, int64_t tap);

G_END_DECLS
