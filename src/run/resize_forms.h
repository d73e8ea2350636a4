/*
 * Resize, Upsample and ResizeGrad with sizes that are known ahead, as numbers that the kernels of all backends are made
 * from. Means (linear, cubic) go axis by axis. Their gradient, and that of nearest, is the same with transposed
 * weights: each element of the source gathers what it gave.
 */
#pragma once

#include "op/resize.h"
#include "run/backend.h"

G_BEGIN_DECLS

/* The input that is read: Resize's first, ResizeGrad's last. */
int hn_resize_source(const HnStep *s);
/* Every element is its own result. By nearest_mode the nearest one may be the one beside it, as the ends tell. */
gboolean hn_resize_stays(const HnResize *p, const HnResizeAxis *a);
/* The step's numbers, axes in the order of memory, in which channels may be the last. Those that stay as they are next
 * to each other count as one. A reason why not; NULL: they are there. */
const char *hn_resize_form(const HnStep *s, gboolean last, int *n, HnResizeAxis *axis);
/* Memory for a table: these grow with the output, which a file may make as large as it likes. */
gpointer hn_resize_table(const HnStep *s, int64_t n, gsize size, GError **error);

/* One axis: output y is the sum over its taps of weight[first[y]...] * element at[first[y]...]; weights of 0 are left
 * out. */
typedef struct {
    int64_t in, out, outer, inner;
    int64_t *first; /* [out + 1] */
    int64_t *at;
    float *weight;
} HnResizePass;

/* For each piece, the axes in front that stay as they are. */
typedef struct {
    int64_t pieces, from, to; /* elements of a piece in source and output */
    int n;
    int64_t between; /* elements of the largest result between two passes */
    HnResizePass pass[HN_MAX_RANK];
} HnResizeMeans;

const char *hn_resize_means_reject(const HnStep *s, gboolean last);
gboolean hn_resize_means_init(HnResizeMeans *m, const HnStep *s, gboolean last, GError **error);
void hn_resize_means_clear(HnResizeMeans *m, const HnStep *s);

G_END_DECLS
