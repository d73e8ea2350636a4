/*
 * How far beyond the numbers of a few samples those of others lie.
 *
 * The largest number of a value differs from sample to sample. Largest numbers of many elements have, near enough, a
 * Gumbel distribution: with one sample more the largest of n is on average scale * log(1 + 1 / n) larger. The scale
 * follows from how the samples differ; of one sample nothing does, and nothing is added.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* [0]: of what is below 0, turned round; [1]: above. */
typedef struct {
    guint64 n[2];      /* samples */
    double mean[2];    /* of their largest numbers */
    double squares[2]; /* sum of squared distances from it */
    double most[2];
    guint64 same[2]; /* samples whose largest number is that: of two, it is a limit */
} HnSpread;

/* One more sample, whose numbers are in [lo, hi]. */
void hn_spread_add(HnSpread *s, double lo, double hi);

/* [*lo, *hi], chosen from these samples, is made longer at each end by the part by which one more sample is expected to
 * go beyond them. An end that is on the other side of 0, or that several samples have reached exactly, stays. */
void hn_spread_widen(const HnSpread *s, double *lo, double *hi);

G_END_DECLS
