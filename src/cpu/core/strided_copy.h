/*
 * Strided copies: Transpose, Slice, Concat, Split, Expand, Tile and the like are one or several of them.
 *
 * hn_copy_new() sorts out at prepare what the copy amounts to (axes that continue one another become one, short runs
 * become wider elements) and picks a loop: rows, tiles for transposition, fills, or single elements.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "run/move_forms.h"

G_BEGIN_DECLS

typedef struct HnCopy HnCopy;

/* dims in the order of the destination; strides and first places (y0, x0) in elements of `size` bytes (1, 2, 4, 8,
 * 16). Source strides may be 0 or negative. At most 2 * HN_MAX_RANK axes. */
HnCopy *hn_copy_new(size_t size, int ndim, const int64_t *dims, int64_t y0, const int64_t *ys, int64_t x0,
                    const int64_t *xs, int threads);
/* The same for axes that are counted as a tensor's, while its elements lie channels last. */
HnCopy *hn_copy_new_last(size_t size, int ndim, const int64_t *dims, int64_t y0, const int64_t *ys, int64_t x0,
                         const int64_t *xs, int threads);
void hn_copy_run(const HnCopy *c, void *y, const void *x);
void hn_copy_free(HnCopy *c);

/* n elements of `size` bytes, all like *element. */
void hn_copy_fill(void *y, const void *element, size_t size, int64_t n);
/* `bytes` bytes; made for the short ones. The ranges do not overlap. */
void hn_copy_bytes(void *y, const void *x, size_t bytes);

/* --- kernels that consist of copies ------------------------------------------------------------------------------ */

/* The state of such a step. */
typedef struct {
    guint n;
    struct {
        HnCopy *copy;
        int in, out;
    } part[];
} HnCopies;

HnCopies *hn_copies_new(guint n); /* parts with copy NULL are skipped */
gboolean hn_copies_run(HnStep *s, GError **error);
void hn_copies_release(HnStep *s);
/* HnKernel.joins and .splits, for steps whose parts make all of output 0, or read nothing but input 0. */
HnPlace hn_copies_joins(const HnStep *s, int i, gsize *offset);
HnPlace hn_copies_splits(const HnStep *s, int k, gsize *offset);

G_END_DECLS
