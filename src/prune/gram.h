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
    float *x, *y;            /* rows that are not in h and b yet */
    int64_t held;
    /* The rows themselves, as many as there is room for: NULL where nobody keeps them. */
    float *kept_x, *kept_y; /* [most, groups, k], [most, groups, outs] */
    int64_t kept, most;
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
/* From now on rows are kept, up to `most` of them. FALSE: there is no memory for that, and none is. */
gboolean hn_gram_keep(HnGram *g, int64_t most);
gsize hn_gram_kept_bytes(const HnGram *g, int64_t most);

/*
 * What is behind the layer makes the same of all results below lo, and of all above hi: of the rows that were kept b
 * becomes that of the nearest results with the same outcome to those that weights w[groups, k, outs] make. (The targets
 * of X. Zhang et al., "Accelerating very deep convolutional networks", 2015.) FALSE: rows are missing.
 */
gboolean hn_gram_aim(HnGram *g, const double *w, float lo, float hi, int threads);

/* All rows are in. */
void hn_gram_settle(HnGram *g, int threads);

G_END_DECLS
