/*
 * HnMargins: how many rows of classes change their largest score, as the scores themselves let expect.
 *
 * Few rows cannot show it by counting: of 8 rows that all stayed, a third may change among others. What they do show is
 * how far the two largest scores are apart in each row, and by how much the other model moves that distance. Two
 * estimates follow: the mean, over rows, of the part of all errors, normal ones of that mean square, that are larger
 * than the row's margin; and the same for margins that are exponentially distributed with the mean of the rows'. The
 * first takes a single narrow row for many, the second is too large where a network is mostly sure: the lesser counts.
 *
 * Errors are as large in all rows, or in proportion to the row's root mean square, as where scores come out of an Exp:
 * both are estimated, and count by how likely they make the errors that are there.
 *
 * Of rows of probabilities it is their logarithms, which is what the network made them of; those below 1/1000 count as
 * 1/1000.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_MOST_MARGINS 100 /* of more rows, counting tells 1 % */

typedef struct {
    struct {
        double margin, change; /* of the distance of the two largest scores */
        double size;           /* root mean square of the scores */
    } row[HN_MOST_MARGINS];
    guint n; /* HN_MOST_MARGINS + 1: too many */
} HnMargins;

/* One more row of n scores: another model's beside the original's. Nothing where there are less than two numbers. */
void hn_margins_add(HnMargins *m, const double *got, const double *want, gsize n);
/* Part of rows whose largest score is expected to be another one; NaN: there are no rows, or enough of them to count.
 */
double hn_margins_turned(const HnMargins *m);

G_END_DECLS
