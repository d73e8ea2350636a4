/*
 * HnFourier: the discrete Fourier transform of any length in double precision, for reference kernels: y[k] = sum of
 * x[j] e^(-2 pi i j k / n), or with + for the inverse, which is not divided by n. Errors grow with log n.
 *
 * A power of two is halved; other lengths are a convolution with a chirp (L. Bluestein, 1970): j k = (j^2 + k^2 - (k -
 * j)^2) / 2.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    int64_t n, m;            /* m: n where it is a power of two, else one that the convolution fits in */
    double *table;           /* [m / 2] cos, -sin of 2 pi i / m */
    double *chirp;           /* [n] e^(-pi i j^2 / n); NULL: n is a power of two */
    double *spectrum, *work; /* [m] of the chirp, and of what is convolved with it */
} HnFourier;

/* Numbers of memory that hn_fourier_init() takes for n >= 1; -1: more than can be counted. */
int64_t hn_fourier_memory(int64_t n);
/* f uses `memory` as long as it lives. */
void hn_fourier_init(HnFourier *f, int64_t n, double *memory);
/* z: n pairs of real and imaginary part, in place. */
void hn_fourier_run(const HnFourier *f, double *z, gboolean inverse);
