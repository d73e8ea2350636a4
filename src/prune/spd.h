/*
 * Symmetric positive definite matrices of doubles, whole rows one behind the other: what least squares comes down to.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

/* a[n, n], of which the lower triangle is read, becomes its Cholesky factor there. FALSE: it is not positive definite.
 */
gboolean hn_spd_factor(double *a, int64_t n);
/* Of such a factor, which is used up: the matrix's inverse[n, n], both triangles. */
void hn_spd_invert(double *l, int64_t n, double *inverse);
/* x[n, m] becomes A^-1 x, of A's factor. */
void hn_spd_solve(const double *l, int64_t n, double *x, int64_t m);

double hn_spd_dot(const double *a, const double *b, int64_t n);
/* y[n] -= sum over i below m of t[i] * x[i, n]; rows of x are `ld` apart. */
void hn_spd_subtract(double *y, const double *x, int64_t ld, const double *t, int64_t m, int64_t n);

/* One of several such sums over the same x. */
typedef struct {
    double *y;
    const double *t;
    int64_t n; /* columns of x */
} HnSpdRow;

/* The same of all of them, which are quicker together. No y is a part of x. */
void hn_spd_subtract_rows(const HnSpdRow *rows, int64_t n_rows, const double *x, int64_t ld, int64_t m);

G_END_DECLS
