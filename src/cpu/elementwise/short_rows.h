/*
 * Short rows of an operand that broadcasts, laid out one behind the other, so that many are computed at a time.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

/* y[rows][n] = x[row * stride + column * step] of elements of so many bytes, 1, 2, 4 or 8; step: 0 or 1. */
void hn_short_rows(void *y, const void *x, gsize size, int64_t rows, int64_t n, int64_t stride, int step);

G_END_DECLS
