/*
 * HnGram: what least squares needs to know of a layer's inputs x and wanted results y, summed over rows.
 *
 *     h = sum over rows of x x'        b = sum over rows of x y'
 *
 * A row is what one result is computed of (check/linear_rows.h), with a 1 behind it for the bias where the layer has
 * one; each group of a convolution has its own h and b. Memory does not depend on how many rows there are.
 */
#pragma once

#include "check/linear_rows.h"

G_BEGIN_DECLS

typedef struct {
    int64_t k, outs, groups; /* of each group; k with the 1 */
    gboolean constant;       /* there is one */
    gboolean wanted;         /* y was seen: b and squares say something */
    int64_t rows;            /* seen so far */
    float *h;                /* [groups, k, k], the lower triangle */
    float *b;                /* [groups, k, outs] */
    double *squares;         /* [groups, outs]: of y; NULL: none was wanted */
    float *x, *y;            /* rows that are not in h and b yet: */
    int64_t held, batch;     /* so many of `batch` */
    int64_t taken;           /* rows in this turn, those that are not finite among them */
    /* Outcomes (hn_gram_outcomes()), NULL where nobody notes them. */
    float *plain, *plain_y; /* b, and y, of results between the limits alone */
    guint8 *below, *above;  /* [most, groups * outs] bits: the result is no more than lo, or no less than hi */
    float lo, hi;
    int64_t most;
    gboolean aims; /* b is that of targets (hn_gram_aim()), ... */
    float *w;      /* ... which these weights make */
    HnBudget *budget;
} HnGram;

/* Bytes of one. */
gsize hn_gram_bytes(const HnLinearRows *rows, gboolean constant, gboolean wanted);
/* Errors: BUDGET. */
HnGram *hn_gram_new(const HnLinearRows *rows, gboolean constant, gboolean wanted, HnBudget *budget, GError **error);
void hn_gram_free(HnGram *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnGram, hn_gram_free)

/* About `most` rows of x, spread over it by chance that the seed says, and of y, the layer's result at the same places
 * (NULL where none is wanted). What does not fit the layer is passed over. */
void hn_gram_add(HnGram *g, const HnLinearRows *rows, const HnTensor *x, const HnTensor *y, int64_t most, uint64_t seed,
                 int threads);
/* All rows are in. */
void hn_gram_settle(HnGram *g, int threads);

/*
 * What is behind the layer makes the same of all results below lo, and of all above hi: there, b may be that of the
 * nearest results with the same outcome to those that some weights make. (The targets of X. Zhang et al., "Accelerating
 * very deep convolutional networks", 2015.) For that, before rows are added, it is said that outcomes are to be noted,
 * two bits for each result; with weights w[groups, k, outs] the same rows are added once more, for which y is not
 * needed.
 */
gboolean hn_gram_outcomes(HnGram *g, const HnLinearRows *rows, float lo, float hi, int64_t most, GError **error);
gsize hn_gram_outcome_bytes(const HnLinearRows *rows, gboolean constant, float lo, float hi, int64_t most);
void hn_gram_aim(HnGram *g, const double *w);

G_END_DECLS
