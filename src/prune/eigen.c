#include "prune/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "prune/spd.h"

#define MOST_STEPS 40 /* of QR for one eigenvalue: two or three are usual */

/* q q' a q q' is tridiagonal: d[n] on the diagonal, e[n - 1] beside it. q[n, n], a row for each vector of the basis. */
static void tridiagonal(double *a, int64_t n, double *d, double *e, double *q)
{
    g_autofree double *v = g_new(double, (gsize)n), *pair = g_new(double, (gsize)(2 * n)),
                      *sum = g_new(double, (gsize)n);
    memset(q, 0, (gsize)(n * n) * sizeof *q);
    for (int64_t i = 0; i < n; i++)
        q[i * n + i] = 1;
    for (int64_t k = 0; k + 1 < n; k++) {
        const int64_t m = n - k - 1;
        const double *x = a + k * n + k + 1;
        double *s = a + (k + 1) * n + k + 1, *rest = q + (k + 1) * n;
        const double norm = sqrt(hn_spd_dot(x, x, m));
        d[k] = a[k * n + k];
        e[k] = x[0];
        if (norm == fabs(x[0]))
            continue; /* nothing to turn */
        e[k] = x[0] > 0 ? -norm : norm;
        memcpy(v, x, (gsize)m * sizeof *v);
        v[0] -= e[k];
        const double beta = 2 / hn_spd_dot(v, v, m);
        /* s becomes h s h with h = 1 - beta v v' */
        double *const w = pair, *const same = pair + m;
        for (int64_t i = 0; i < m; i++)
            w[i] = beta * hn_spd_dot(s + i * n, v, m);
        const double half = beta / 2 * hn_spd_dot(w, v, m);
        for (int64_t i = 0; i < m; i++)
            w[i] -= half * v[i];
        memcpy(same, v, (gsize)m * sizeof *v);
        for (int64_t i = 0; i < m; i++)
            hn_spd_subtract(s + i * n, pair, m, (double[]){ v[i], w[i] }, 2, m);
        memset(sum, 0, (gsize)n * sizeof *sum);
        hn_spd_subtract(sum, rest, n, v, m, n);
        for (int64_t i = 0; i < m; i++)
            hn_spd_subtract(rest + i * n, sum, n, (double[]){ -beta * v[i] }, 1, n);
    }
    d[n - 1] = a[n * n - 1];
}

/* Rows p and q become c p + s q and c q - s p. */
static void turn(double *restrict p, double *restrict q, double c, double s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = p[i];
        p[i] = c * x + s * q[i];
        q[i] = c * q[i] - s * x;
    }
}

/* A step of QR on rows lo to hi, between which nothing beside the diagonal is 0. */
static void qr_step(double *d, double *e, int64_t lo, int64_t hi, double *vectors, int64_t n)
{
    const double half = (d[hi - 1] - d[hi]) / 2, last = e[hi - 1];
    const double shift = d[hi] - last * (last / (half + copysign(hypot(half, last), half)));
    double x = d[lo] - shift, z = e[lo];
    for (int64_t k = lo; k < hi; k++) {
        const double r = hypot(x, z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
        const double first = d[k], second = d[k + 1], beside = e[k];
        if (k > lo)
            e[k - 1] = r;
        d[k] = c * c * first + 2 * c * s * beside + s * s * second;
        d[k + 1] = s * s * first - 2 * c * s * beside + c * c * second;
        e[k] = c * s * (second - first) + (c * c - s * s) * beside;
        x = e[k];
        if (k + 1 < hi) {
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
        turn(vectors + k * n, vectors + (k + 1) * n, c, s, n);
    }
}

static double largest(const double *d, const double *e, int64_t n)
{
    double most = fabs(d[n - 1]);
    for (int64_t i = 0; i + 1 < n; i++)
        most = fmax(most, fmax(fabs(d[i]), fabs(e[i])));
    return most;
}

static gboolean diagonal(double *d, double *e, double *vectors, int64_t n)
{
    const double nothing = DBL_EPSILON * DBL_EPSILON * largest(d, e, n);
    int steps = 0;
    for (int64_t hi = n - 1; hi > 0;) {
        int64_t lo = hi;
        while (lo > 0 && fabs(e[lo - 1]) > fmax(DBL_EPSILON * (fabs(d[lo - 1]) + fabs(d[lo])), nothing))
            lo--;
        if (lo == hi) {
            hi--;
            steps = 0;
        } else if (steps++ == MOST_STEPS) {
            return FALSE;
        } else {
            if (lo > 0)
                e[lo - 1] = 0;
            qr_step(d, e, lo, hi, vectors, n);
        }
    }
    return TRUE;
}

static int by_value(gconstpointer a, gconstpointer b, gpointer values)
{
    const double x = ((const double *)values)[*(const int64_t *)a], y = ((const double *)values)[*(const int64_t *)b];
    return (x < y) - (x > y);
}

gboolean hn_symmetric_eigen(double *a, int64_t n, double *values, double *vectors)
{
    g_autofree double *d = g_new(double, (gsize)n), *e = g_new(double, (gsize)n);
    g_autofree int64_t *order = g_new(int64_t, (gsize)n);
    for (int64_t i = 0; i < n * n; i++)
        if (!isfinite(a[i]))
            return FALSE;
    g_autofree double *q = g_new(double, (gsize)(n * n));
    tridiagonal(a, n, d, e, q);
    if (!diagonal(d, e, q, n))
        return FALSE;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)n, sizeof *order, by_value, d);
    for (int64_t i = 0; i < n; i++) {
        values[i] = d[order[i]];
        memcpy(vectors + i * n, q + order[i] * n, (gsize)n * sizeof *q);
    }
    return TRUE;
}
