/*
 * Parameters of AveragePool, MaxPool and LpPool, for their records and for backends. The geometry comes from
 * hn_window_place() with the kernel of the attributes.
 */
#pragma once

#include "op/window.h"

G_BEGIN_DECLS

typedef struct {
    HnWindow window;     /* window.kernel is always given */
    gboolean count_pad;  /* AveragePool: padding counts as zeros (as far as pad_end, not beyond it) */
    gboolean by_columns; /* MaxPool: indices as if the spatial axes were stored first axis fastest */
    double p;            /* LpPool */
} HnPool;

/* Dims of the output, x's rank of them; axes: rank - 2 places. Errors: ATTRIBUTE, SHAPE. */
gboolean hn_pool_place(const HnPool *p, int ndim, const int64_t *x, HnWindowAxis *axes, int64_t *dims, GError **error);
/* Elements that output o's window holds along an axis. */
int64_t hn_pool_held(const HnWindowAxis *a, int64_t o, gboolean count_pad);

G_END_DECLS
