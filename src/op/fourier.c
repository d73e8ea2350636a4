#include "op/fourier.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define LENGTH_MAX ((int64_t)1 << 40)

/* The length that powers of two are made of. */
static int64_t inner_length(int64_t n)
{
    int64_t m = 1;
    if ((n & (n - 1)) == 0)
        return n;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

int64_t hn_fourier_memory(int64_t n)
{
    if (n < 1 || n > LENGTH_MAX)
        return -1;
    const int64_t m = inner_length(n);
    return m == n ? m : 2 * n + 5 * m;
}

/* Order by bits read backwards. */
static void shuffle(double *z, int64_t n)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n / 2;
        for (; (j & bit) != 0; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j)
            for (int c = 0; c < 2; c++) {
                const double v = z[2 * i + c];
                z[2 * i + c] = z[2 * j + c];
                z[2 * j + c] = v;
            }
    }
}

/* Forward, f->m points. */
static void halved(const HnFourier *f, double *z)
{
    shuffle(z, f->m);
    for (int64_t half = 1; half < f->m; half *= 2)
        for (int64_t at = 0; at < f->m; at += 2 * half)
            for (int64_t j = 0; j < half; j++) {
                double *a = z + 2 * (at + j), *b = a + 2 * half;
                const double *w = f->table + 2 * (j * (f->m / (2 * half)));
                const double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
}

static void conjugate(double *z, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        z[2 * i + 1] = -z[2 * i + 1];
}

static void multiply(double *to, const double *a, const double *b)
{
    const double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
    to[0] = re;
    to[1] = im;
}

static void init_chirp(HnFourier *f)
{
    int64_t square = 0; /* j^2 modulo 2 n */
    memset(f->spectrum, 0, (size_t)f->m * 2 * sizeof(double));
    for (int64_t j = 0; j < f->n; j++) {
        const double angle = PI * (double)square / (double)f->n;
        f->chirp[2 * j] = cos(angle);
        f->chirp[2 * j + 1] = -sin(angle);
        for (int side = 0; side < 2; side++) {
            double *b = f->spectrum + 2 * (side == 0 || j == 0 ? j : f->m - j);
            b[0] = f->chirp[2 * j];
            b[1] = -f->chirp[2 * j + 1];
        }
        square = (square + 2 * j + 1) % (2 * f->n);
    }
    halved(f, f->spectrum);
}

void hn_fourier_init(HnFourier *f, int64_t n, double *memory)
{
    *f = (HnFourier){ .n = n, .m = inner_length(n), .table = memory };
    for (int64_t i = 0; i < f->m / 2; i++) {
        f->table[2 * i] = cos(2 * PI * (double)i / (double)f->m);
        f->table[2 * i + 1] = -sin(2 * PI * (double)i / (double)f->m);
    }
    if (f->m == n)
        return;
    f->chirp = memory + f->m;
    f->spectrum = f->chirp + 2 * n;
    f->work = f->spectrum + 2 * f->m;
    init_chirp(f);
}

static void convolved(const HnFourier *f, double *z)
{
    double *w = f->work;
    memset(w, 0, (size_t)f->m * 2 * sizeof(double));
    for (int64_t j = 0; j < f->n; j++)
        multiply(w + 2 * j, z + 2 * j, f->chirp + 2 * j);
    halved(f, w);
    for (int64_t j = 0; j < f->m; j++)
        multiply(w + 2 * j, w + 2 * j, f->spectrum + 2 * j);
    conjugate(w, f->m);
    halved(f, w);
    conjugate(w, f->m);
    for (int64_t j = 0; j < f->n; j++) {
        multiply(z + 2 * j, w + 2 * j, f->chirp + 2 * j);
        z[2 * j] /= (double)f->m;
        z[2 * j + 1] /= (double)f->m;
    }
}

void hn_fourier_run(const HnFourier *f, double *z, gboolean inverse)
{
    if (inverse)
        conjugate(z, f->n);
    if (f->chirp == NULL)
        halved(f, z);
    else
        convolved(f, z);
    if (inverse)
        conjugate(z, f->n);
}
