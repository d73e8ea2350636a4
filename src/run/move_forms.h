/*
 * What steps that move elements do, as numbers that the kernels of all backends are made from.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

/* Why the elements of tensor t cannot be moved as bytes; NULL: they can. */
const char *hn_copy_reject(const HnTensor *t);
/* Input i is there, but its elements are known only at run time. */
gboolean hn_copy_varies(const HnStep *s, int i);
/* run() reads input 0 only: the others were looked at in prepare. */
void hn_copy_unread(HnStep *s);
/* Up to `max` elements of integer input i: how many; -1: too many. */
int hn_copy_ints(const HnStep *s, int i, int64_t *v, int max);

/* A Tile of x to y as one copy of twice as many axes, repeats and size of each: dims and strides of the source,
 * [2 * rank]. */
void hn_tile_axes(const HnTensor *x, const HnTensor *y, int64_t *dims, int64_t *strides);

/* --- Slice, Pad ----------------------------------------------------------------------------------------------------
 */

/* First element and step of each axis; bounds are attributes or constant inputs. A reason where they do not fit. */
const char *hn_slice_bounds(const HnStep *s, int64_t *first, int64_t *step);
const char *hn_slice_reject(const HnStep *s);

/* Elements of the output along an axis: `lead`, then `kept` from source element `first` on, then `tail`. */
typedef struct {
    int64_t first, kept, lead, tail;
} HnBorder;

/* Of each axis of a Pad with amounts that are known, or a reason why not. */
const char *hn_pad_borders(const HnStep *s, HnBorder *border);
const char *hn_pad_reject(const HnStep *s);

/* --- others --------------------------------------------------------------------------------------------------------
 */

/* Dropout, whose input 0 is handed on as it is. */
const char *hn_dropout_trains(const HnStep *s);
/* Range: of a type that can be counted in. */
const char *hn_range_reject(const HnStep *s);
/* Elements of input i that are of 1, 2, 4 or 8 bytes. */
const char *hn_few_bytes_reject(const HnStep *s, int i);

G_END_DECLS
