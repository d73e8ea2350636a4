/*
 * HnObs: a layer's weights by least squares, and what is lost when some of its inputs go: the optimal brain surgeon
 * (B. Hassibi, D. Stork, "Second order derivatives for network pruning", 1993) for groups of inputs (E. Kurtic et al.,
 * "ZipLM", 2023; X. Meng et al., "OSSCAR", 2024).
 *
 * Of all weights w, those with the least |y - x w|^2 + r |w - w0|^2 over the rows of a HnGram are w = H^-1 B with H = h
 * + r I and B = b + r w0, where w0 are the layer's own. Without the inputs of a set S the least grows by
 * tr(w_S' (H^-1_SS)^-1 w_S), and the best weights are w - H^-1_:S (H^-1_SS)^-1 w_S; H^-1 loses S in the same way.
 */
#pragma once

#include "prune/gram.h"

G_BEGIN_DECLS

typedef struct {
    int64_t k, outs, groups;
    double *inverse;    /* [groups, k, k], the lower triangles; NULL: nothing is to go, or nothing else */
    double *factors;    /* [groups, k, k], of what is left (hn_obs_end()) */
    guint8 *factored;   /* [groups]: which are there */
    double *w;          /* [groups, k, outs]: the best with what is left */
    double energy;      /* of what is wanted: sum of squares about the mean, where there is a constant */
    guint8 *gone;       /* [groups, k] */
    const HnGram *gram; /* where inverse is there: what it is of, ... */
    double *b, *ridges; /* ... B[groups, k, outs], and r of each group */
    HnBudget *budget;
} HnObs;

/* w0: [groups, k, outs], as HnGram counts; where g saw no wanted results, they are those of w0. g stays
 * as it is, where others are to go. ridge: r, as part of
 * the mean square of an input. gone[groups, k]: inputs that are no more; choose: others are to go. Errors: BUDGET;
 * GRAPH where the numbers are not finite. */
HnObs *hn_obs_new(const HnGram *g, const double *w0, double ridge, const guint8 *gone, gboolean choose, GError **error);
void hn_obs_free(HnObs *o);
/* Bytes of one, and those that making it, or settling it, takes for the time being. */
gsize hn_obs_bytes(const HnLinearRows *rows, gboolean constant, gboolean choose);
gsize hn_obs_work_bytes(const HnLinearRows *rows, gboolean constant);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnObs, hn_obs_free)

/* Sum of squares of what is wanted, about its mean where there is a constant; w0 as for hn_obs_new(). */
double hn_obs_energy(const HnGram *g, const double *w0);

/* The system of a group, whose own weights are own[k, outs], with its ridge: h[k, k], the lower triangle, and
 * b[k, outs]. */
void hn_obs_system(const HnGram *g, int64_t group, const double *own, double ridge, double *h, double *b);

/* What is lost when inputs at[0..m) of that group go, none of which has gone. */
double hn_obs_cost(const HnObs *o, int64_t group, const int64_t *at, int64_t m);
void hn_obs_remove(HnObs *o, int64_t group, const int64_t *at, int64_t m);
/* They are there again, none of which was gone from the start; hn_obs_cost() tells what that gained. FALSE: rounding
 * left nothing of them, and they stay away. */
gboolean hn_obs_restore(HnObs *o, int64_t group, const int64_t *at, int64_t m);

/* Nothing else goes, of what was to: the inverse's memory is for factors, so that settling for other targets is quick.
 */
void hn_obs_end(HnObs *o);
/* The best weights with the inputs that are left, computed anew: as o->w but for what rounding did to that. g has
 * wanted results. */
gboolean hn_obs_settle(HnObs *o, const HnGram *g, const double *w0, double ridge, GError **error);

G_END_DECLS
