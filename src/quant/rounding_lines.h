/*
 * Rows of weights while their integers are looked for (quant/rounding.h), some at a time: H, which is large, is read
 * once for all of them. What becomes of a row does not depend on those beside it.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

#define HN_ROUND_LINES 4    /* at a time */
#define HN_ROUND_STRETCH 64 /* elements that are looked at together */

/* k of each. */
typedef struct {
    int64_t k, taps;
    int least, most;
    gboolean pairs;            /* neighbours' sums are bounded */
    const float *h, *diagonal; /* of it */
    float *w, *scale, *g, *d;  /* d: what H is multiplied by */
    int *q, *zero, *best;
} HnRoundLine;

/* g of n lines that have the same H: the product of H and d, terms in their order; level: of base/level.h. */
void hn_round_multiply(const HnRoundLine *l, int n, int level);
/* The same, of what the present integers are off by. */
void hn_round_gradient(const HnRoundLine *l, int n, int level);
/* Of the present integers, whose gradient g is. */
double hn_round_error(const HnRoundLine *l);
/* after[n]: errors of the best integers found, which are in `best`; g is the gradient of those that are there. */
void hn_round_lines(const HnRoundLine *l, int n, int level, double *after);

G_END_DECLS
