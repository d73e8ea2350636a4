/*
 * HnFft: the discrete Fourier transform of one length for many signals at a time, one in each lane of a vector, in f32.
 *
 * A point of the signals is 2 * HN_FFT_LANES numbers at most: the real parts of all lanes, then the imaginary ones. The
 * length is taken apart into factors (T. Stockham's order, which needs no reversal of digits): 8, 4, 2, and odd primes
 * by their sums and differences of opposite points. With a prime factor beyond HN_FFT_PRIME it is a convolution with a
 * chirp (L. Bluestein) of a length that has none. All angles are computed in double, of whole numbers.
 *
 * A real signal of even length is a complex one of half as many points, its even ones real and its odd ones imaginary
 * parts, whose bins are taken apart behind the transform: no signal has to do with what another lane holds.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define HN_FFT_LANES 16
#define HN_FFT_PRIME 61
#define HN_FFT_LENGTH_MAX ((int64_t)1 << 22)
#define HN_FFT_STAGES 24

/* Points q + stride * (p + places * j), j below radix, become points q + stride * (radix * p + k). */
typedef struct {
    int radix;
    int64_t places, stride;
    const float *twiddle; /* [places][radix - 1] e^(-2 pi i p k / (radix * places)), k from 1 on */
    const float *trig;    /* [radix] cosine and sine of 2 pi k / radix, of odd radices */
} HnFftStage;

typedef struct HnFft {
    int64_t n;
    int n_stages;
    HnFftStage stage[HN_FFT_STAGES];
    float *table;
    struct HnFft *inner;     /* of the convolution; NULL: the factors are small */
    float *chirp, *spectrum; /* [n], and [inner->n] divided by inner->n */
    float *apart;            /* [n / 2 + 1] e^(-pi i k / n): of real signals of 2 n points; NULL: of complex ones */
} HnFft;

/* n is from 1 to HN_FFT_LENGTH_MAX. */
HnFft *hn_fft_new(int64_t n);
/* Of real signals, forwards; n is even. */
HnFft *hn_fft_new_real(int64_t n);
void hn_fft_free(HnFft *f);
/* Points of each of the two blocks that hn_fft_run() works in. */
int64_t hn_fft_points(const HnFft *f);
/* Operations for one lane. */
double hn_fft_flops(const HnFft *f);

/* A number made of a bin. */
typedef struct {
    int64_t bin;  /* up to half of the signal's points */
    float re, im; /* times its parts */
} HnFftSum;

/* A batch of signals, by fft_batch.h. A row is `columns` numbers one after the other: of a complex signal two
 * for each point. */
typedef struct {
    const HnFft *fft;
    const float *x;
    float *y;
    int64_t rows;
    int64_t inner;                   /* of them side by side, in x and y; 1: rows are contiguous */
    int64_t group, far, near;        /* where inner is 1: row r of x begins at r / group * far + r % group * near */
    int64_t columns_in, columns_out; /* of a row as it lies in memory */
    int64_t used;                    /* the first of columns_in: others are not read */
    int parts_in, parts_out;         /* numbers of a point: 1 or 2 */
    gboolean half;                   /* the bins of input are those up to n / 2 of a real signal's spectrum */
    gboolean inverse;
    const float *factor; /* [used] of each column; NULL: 1 */
    /* Of real signals of hn_fft_new_real(): columns of output are sums [columns_out] instead of bins, parts_out 1;
     * NULL: bins. */
    const HnFftSum *sums;
    const float *bias; /* [columns_out] of sums; NULL: 0 */
    gboolean planar;   /* sums of a `group` of rows lie side by side: [columns_out][group] */
} HnFftBatch;

/* Rows that a step of hn_fft_rows() computes: those of real signals are the two parts of complex ones. */
int64_t hn_fft_step(const HnFftBatch *b, int lanes);
