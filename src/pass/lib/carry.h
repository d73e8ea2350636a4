/*
 * Which operators carry a permutation of axes: n works the same on data whose axes are stored in another order, once
 * its attributes say so, and its results come in that order too.
 */
#pragma once

#include "pass/rewrite.h"

G_BEGIN_DECLS

/* Axis a of a value is axis to[a] of what is stored. */
typedef struct {
    int rank;
    int to[HN_MAX_RANK];
} HnOrder;

/* The permutation of a Transpose of known rank: axis a of its result is axis to[a] of its input. */
gboolean hn_order_of(const HnRewrite *r, const HnNode *transpose, HnOrder *o);
HnOrder hn_order_inverse(const HnOrder *o);
gboolean hn_order_equal(const HnOrder *a, const HnOrder *b);

/* n can. Its inputs are then data (stored in that order, or constants that are), or stay as they are. */
gboolean hn_carry_can(const HnRewrite *r, const HnNode *n, const HnOrder *o);
gboolean hn_carry_is_data(const HnRewrite *r, const HnNode *n, int i, int rank);
/* n, which reads one value, can take it in that order and give what it gave before: reductions that leave the other
 * axes in their order. */
gboolean hn_carry_ends(const HnRewrite *r, const HnNode *n, const HnOrder *o);
/* n, which can do the one or the other, is edited, but for the data it reads. hn_rw_done() is still to be called. */
void hn_carry(HnRewrite *r, HnNode *n, const HnOrder *o);

/* A constant input of such a node (NULL: NULL), stored in that order. NULL: no memory. */
HnTensor *hn_carry_constant(const HnRewrite *r, const HnTensor *t, const HnOrder *o);

G_END_DECLS
