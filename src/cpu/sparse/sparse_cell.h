/*
 * HnSparseCell: weights of recurrent layers of which many are 0, as lists of the others: for each gate of a panel of 16
 * units, the inputs whose 16 weights are not all 0, and these.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

typedef struct {
    int64_t directions, panels, gates, units, inputs; /* units: of all panels, those that there are */
    int64_t *first;                                   /* [directions, panels, gates] and the end: into `at` */
    int32_t *at;                                      /* inputs */
} HnSparseCell;

/* w: [directions, gates * units, inputs], of f32. NULL: too few of its weights lie so that lists gain by them. */
HnSparseCell *hn_sparse_cell_new(const HnTensor *w, int gates);
void hn_sparse_cell_free(HnSparseCell *c);

gsize hn_sparse_cell_bytes(const HnSparseCell *c);
/* The weights in the order of the lists, 16 each. */
void hn_sparse_cell_pack(const HnSparseCell *c, void *to, const HnTensor *w);

/* sums[r][16] += sum over list `list` of x[r][at] * w[16], for n <= HN_RNN_CELL_ROWS rows. */
void hn_sparse_cell_add(const HnSparseCell *c, const float *packed, int64_t list, float *const *sums,
                        const float *const *x, int n);

G_END_DECLS
