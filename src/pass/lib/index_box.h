/*
 * Tables of positions, as ScatterND, GatherND and their like read them, that say no more than a few numbers do.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

/* Elements first, first + step, ... of each axis; axis a of them follows from axis a of the data. */
typedef struct {
    int64_t first[HN_MAX_RANK], step[HN_MAX_RANK], size[HN_MAX_RANK]; /* steps at least 1 */
} HnIndexBox;

/* Positions [..., k] of ScatterND and GatherND in data of these sizes: each element of the box once, in order, whatever
 * the positions' own axes of one place are. FALSE: they are something else. */
gboolean hn_index_box_nd(const HnTensor *t, int rank, const int64_t *data, HnIndexBox *b);
/* The same of ScatterElements and GatherElements, whose positions are along one axis. */
gboolean hn_index_box_elements(const HnTensor *t, int axis, int rank, const int64_t *data, HnIndexBox *b);

G_END_DECLS
