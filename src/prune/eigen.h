/*
 * Eigenvalues and eigenvectors of symmetric matrices of doubles: Householder tridiagonalization, and the implicit
 * symmetric QR step with Wilkinson's shift (G. Golub, C. Van Loan, "Matrix Computations", 4th edition, 8.3).
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

/* Of a[n, n], of which both triangles are there and which is used up: values[n], falling, and vectors[n, n], a row for
 * each. FALSE: the numbers are not finite. */
gboolean hn_symmetric_eigen(double *a, int64_t n, double *values, double *vectors);

G_END_DECLS
