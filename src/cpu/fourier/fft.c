#include "cpu/fourier/fft.h"

#include <math.h>
#include <string.h>

#include "op/fourier.h"

#define PI 3.14159265358979323846

/* e^(-2 pi i a / n), for a >= 0 */
static void unit(float *to, int64_t a, int64_t n)
{
    const double angle = 2 * PI * (double)(a % n) / (double)n;
    to[0] = (float)cos(angle);
    to[1] = (float)-sin(angle);
}

/* Factors of n into radix: how many; 0: one is too large. */
static int factors_of(int64_t n, int *radix)
{
    int k = 0, twos = 0;
    for (; n % 2 == 0; n /= 2)
        twos++;
    for (; twos > 4 || twos == 3; twos -= 3)
        radix[k++] = 8;
    for (; twos >= 2; twos -= 2)
        radix[k++] = 4;
    if (twos == 1)
        radix[k++] = 2;
    for (int p = 3; p <= HN_FFT_PRIME; p += 2)
        for (; n % p == 0; n /= p)
            radix[k++] = p;
    return n == 1 ? k : 0;
}

/* The least length from n on whose factors are 2, 3 and 5. */
static int64_t smooth_length(int64_t n)
{
    for (;; n++) {
        int64_t m = n;
        for (int p = 2; p <= 5; p += p == 2 ? 1 : 2)
            while (m % p == 0)
                m /= p;
        if (m == 1)
            return n;
    }
}

static void fill_stage(HnFftStage *s, float **table)
{
    s->twiddle = *table;
    for (int64_t p = 0; p < s->places; p++)
        for (int64_t k = 1; k < s->radix; k++, *table += 2)
            unit(*table, p * k, s->radix * s->places);
    s->trig = *table;
    for (int k = 0; s->radix % 2 != 0 && k < s->radix; k++, *table += 2) {
        unit(*table, k, s->radix);
        (*table)[1] = -(*table)[1];
    }
}

static void build_stages(HnFft *f, const int *radix)
{
    gsize numbers = 0;
    int64_t left = f->n;
    for (int i = 0; i < f->n_stages; i++) {
        left /= radix[i];
        f->stage[i] = (HnFftStage){ .radix = radix[i], .places = left, .stride = f->n / left / radix[i] };
        numbers += 2 * ((gsize)left * (gsize)(radix[i] - 1) + (gsize)radix[i]);
    }
    float *table = f->table = g_new(float, numbers + 1);
    for (int i = 0; i < f->n_stages; i++)
        fill_stage(&f->stage[i], &table);
}

/* e^(-pi i j^2 / n), and the spectrum of its conjugate. */
static void build_chirp(HnFft *f)
{
    const int64_t m = f->inner->n;
    g_autofree double *memory = g_new(double, hn_fourier_memory(m)), *z = g_new0(double, 2 * m);
    HnFourier exact;
    f->chirp = g_new(float, 2 * f->n);
    f->spectrum = g_new(float, 2 * m);
    int64_t square = 0; /* j^2 modulo 2 n */
    for (int64_t j = 0; j < f->n; j++) {
        const double angle = PI * (double)square / (double)f->n;
        unit(f->chirp + 2 * j, square, 2 * f->n);
        for (int side = 0; side < 2; side++) {
            double *at = z + 2 * (side == 0 || j == 0 ? j : m - j);
            at[0] = cos(angle);
            at[1] = sin(angle);
        }
        square = (square + 2 * j + 1) % (2 * f->n);
    }
    hn_fourier_init(&exact, m, memory);
    hn_fourier_run(&exact, z, FALSE);
    for (int64_t j = 0; j < 2 * m; j++)
        f->spectrum[j] = (float)(z[j] / (double)m);
}

HnFft *hn_fft_new(int64_t n)
{
    HnFft *f = g_new0(HnFft, 1);
    int radix[64];
    f->n = n;
    f->n_stages = factors_of(n, radix);
    if (n == 1 || f->n_stages > 0) {
        build_stages(f, radix);
    } else {
        f->inner = hn_fft_new(smooth_length(2 * n - 1));
        build_chirp(f);
    }
    return f;
}

HnFft *hn_fft_new_real(int64_t n)
{
    HnFft *f = hn_fft_new(n / 2);
    f->apart = g_new(float, (gsize)(f->n / 2 + 1) * 2);
    for (int64_t k = 0; k <= f->n / 2; k++)
        unit(f->apart + 2 * k, k, n);
    return f;
}

void hn_fft_free(HnFft *f)
{
    if (f == NULL)
        return;
    hn_fft_free(f->inner);
    g_free(f->chirp);
    g_free(f->spectrum);
    g_free(f->table);
    g_free(f->apart);
    g_free(f);
}

int64_t hn_fft_points(const HnFft *f)
{
    const int64_t points = f->inner != NULL ? f->inner->n : f->n;
    return f->apart != NULL ? MAX(points, 2 * f->n) : points;
}

double hn_fft_flops(const HnFft *f)
{
    double flops = f->apart != NULL ? 8 * (double)f->n : 0;
    if (f->inner != NULL)
        return flops + 2 * hn_fft_flops(f->inner) + 20 * (double)f->inner->n;
    for (int i = 0; i < f->n_stages; i++)
        flops += (double)f->n * (f->stage[i].radix % 2 == 0 ? 12 : 6 + 2 * f->stage[i].radix);
    return flops;
}

int64_t hn_fft_step(const HnFftBatch *b, int lanes)
{
    return b->fft->apart == NULL && (b->parts_in == 1 || b->parts_out == 1) ? 2 * lanes : lanes;
}
