/*
 * HnHistogram: how the elements of a value are spread, over any number of tensors, in memory that does not grow.
 *
 * Two rows of bins, for numbers from 0 on and for those below it, cover magnitudes below 2^exponent; bin k holds
 * magnitudes of [k, k + 1) * 2^exponent / HN_HISTOGRAM_BINS. When a larger one comes, the exponent grows and bins are
 * added together. As edges of wide bins are edges of narrow ones, and scaling by powers of 2 is exact, the counts are
 * those that a second look at all elements with the last exponent would give: they depend on what was seen, not on its
 * order, its parts, or who saw which.
 *
 * Numbers of at most HN_MASK are counted apart: attention adds them to say "not this one", and no range is meant to
 * reach there.
 */
#pragma once

#include <stdint.h>

#include "base/budget.h"
#include "ir/dtype.h"

G_BEGIN_DECLS

#define HN_HISTOGRAM_BINS 2048     /* a power of 2, of each sign */
#define HN_HISTOGRAM_LOWEST (-100) /* of exponents: finer bins would be too small for f32 */

typedef struct {
    HnBudget *budget; /* not owned, may be NULL */
    uint64_t n;       /* elements in bins, zeros included */
    uint64_t n_zero;  /* exactly 0, which are in bin 0 of the first row as well */
    uint64_t n_nan, n_infinite, n_mask;
    float min, max; /* exact, of what is in bins; without any +-infinite */
    float mask_min; /* the lowest mask */
    int exponent;
    uint64_t *bins[2]; /* [0]: >= 0, [1]: < 0. NULL: all of them are 0 */
} HnHistogram;

void hn_histogram_init(HnHistogram *h, HnBudget *budget);
void hn_histogram_clear(HnHistogram *h);
/* As after init; keeps the memory. */
void hn_histogram_reset(HnHistogram *h);

/* Adds rows of `width` elements, `pitch` elements from one start to the next. Any float type; f64 is rounded to f32.
 * Errors: BUDGET, and then it is as before or holds a part of the rows. */
gboolean hn_histogram_add(HnHistogram *h, HnDtype dtype, const void *data, int64_t rows, int64_t width, int64_t pitch,
                          GError **error);
/* Adds what `from` holds. */
gboolean hn_histogram_merge(HnHistogram *h, const HnHistogram *from, GError **error);

/* Width of a bin. */
double hn_histogram_width(const HnHistogram *h);
/* Most bytes that one takes. */
gsize hn_histogram_bytes(void);

G_END_DECLS
