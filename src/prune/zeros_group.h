/*
 * HnZerosGroup: weights of one group of a layer, as HnGram counts them, while more and more of them become 0.
 *
 * Weights that share their fate are a block: those of `rows` outputs for one input. A block's worth is its optimal
 * brain surgeon score (prune/obs.h), the sum of w^2 / [H^-1]_jj, with the inverse over all inputs: over those that its
 * outputs still read it would be another one for each of them, at k times the work and no better accuracy. In rounds,
 * the blocks with the least scores go, and what is left becomes the best there is by least squares.
 */
#pragma once

#include "prune/choose.h"
#include "prune/zeros_solve.h"

G_BEGIN_DECLS

typedef struct {
    int64_t k, inputs, outs, taps; /* k with the 1 of a bias */
    int64_t rows, strips;          /* outputs that share their zeros; strips of so many outputs */
    int of_four;                   /* 2: of four channels in a row two stay; 0: as it comes */
    HnPruneScore by;               /* obs, or what does not change when others go */
    uint64_t seed;
    int threads;
    double *h, *b;         /* [k, k] lower, [k, outs], with ridge; NULL: there are no samples */
    double *diagonal;      /* [k] of H^-1; NULL without samples, or where no score asks for it */
    HnZerosSystem *system; /* NULL without samples */
    const double *w0;      /* [k, outs]: the layer's own */
    double *w;             /* [k, outs] */
    guint8 *gone;          /* [strips, inputs] */
    double *scores;        /* the same */
    int64_t left;          /* blocks */
    HnBudget *budget;
} HnZerosGroup;

/* Group `at` of the layer, whose weights are w0, and w at first; `g` has rows, of_four, by, seed, threads and budget.
 * gram: NULL without samples. Errors: BUDGET. */
gboolean hn_zeros_group_open(HnZerosGroup *g, const HnPruneLayer *l, const HnGram *gram, int64_t at, double ridge,
                             const double *w0, double *w, GError **error);
void hn_zeros_group_close(HnZerosGroup *g);
/* Bytes of one of a layer. */
gsize hn_zeros_group_bytes(const HnLinearRows *rows, gboolean constant);

/* The best w with what is left, and then all but `left` blocks go. Returns what w explains of the squares of the wanted
 * results. */
double hn_zeros_group_round(HnZerosGroup *g, int64_t left);
/* All but that many go, in as many rounds as it takes; w is no longer the best. */
void hn_zeros_group_drop(HnZerosGroup *g, int64_t left);
/* w becomes the best with what is left; after targets changed, gram says what they are. */
void hn_zeros_group_settle(HnZerosGroup *g);
void hn_zeros_group_aim(HnZerosGroup *g, const HnGram *gram, int64_t at, double ridge);
/* 0 for what has gone. */
void hn_zeros_group_blank(const HnZerosGroup *g, double *w);

#define HN_ZEROS_ROUND 0.7 /* of the blocks that are left stay in a round */

G_END_DECLS
