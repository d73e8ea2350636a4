/*
 * Least squares with zeros: for each output q of a group, the w[:, q] that is 0 where it has to be and solves
 * h w = b else, iterated for by conjugate gradients (M. R. Hestenes, E. Stiefel, 1952), all outputs at a time.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct HnZerosSystem HnZerosSystem;

/* h[k, k], of which the lower triangle is read; NULL: there is no memory for it. */
HnZerosSystem *hn_zeros_system_new(const double *h, int64_t k, int64_t outs);
void hn_zeros_system_free(HnZerosSystem *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnZerosSystem, hn_zeros_system_free)

/* w[k, outs], from which it begins, becomes better in up to `steps` steps; zero[k, outs]: it is to be 0. */
void hn_zeros_system_solve(HnZerosSystem *s, const double *b, const guint8 *zero, double *w, int steps, int threads);

G_END_DECLS
