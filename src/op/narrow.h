/*
 * HnNarrow: writing a node anew for values that have lost some of their channels.
 *
 * When channels are removed (pass/lib/channel_groups.h says which go together), weights lose elements, and so do
 * results. Some parameters say how many there are, or where: the target of a Reshape, the bounds of a Slice, the groups
 * of a convolution. A record's `narrow` changes these; one without has none. It is called after the node's weights lost
 * theirs, for nodes of which some input or output did.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

/* Along an axis of a value, counted from the front. */
typedef struct {
    int axis;
    int64_t n, left;     /* places before and after; left >= 1 */
    const guint8 *stays; /* [n] */
} HnKept;

typedef struct HnNarrow {
    HnNode *node;                                                /* edits of attributes unbind it */
    const void *params;                                          /* as they were; lists in them go with attributes */
    const HnKept *(*kept)(gconstpointer data, const HnValue *v); /* NULL: all of v stays */
    gconstpointer data;
} HnNarrow;

/* Of input or output i; NULL: all of it stays, or it is absent. */
const HnKept *hn_narrow_in(const HnNarrow *x, int i);
const HnKept *hn_narrow_out(const HnNarrow *x, int i);
/* Places below `place` that stay. */
int64_t hn_kept_before(const HnKept *k, int64_t place);
/* Elements of input i where they are constant: a new reference. NULL: they are not, or there is none. */
HnTensor *hn_narrow_constant(const HnNarrow *x, int i);
/* A constant of its own for input i, which takes t. */
void hn_narrow_set(const HnNarrow *x, int i, HnTensor *t);
/* The number of element `at` of the constant list that is input i: no more than that where it is none. */
void hn_narrow_set_number(const HnNarrow *x, int i, int64_t at, int64_t number);

/* The attribute that says how many groups the channels of input 0 make: where groups go as a whole there are fewer,
 * where each loses as many there are as many as before. */
gboolean hn_narrow_groups(const HnNarrow *x, const char *attr, int64_t groups);

G_END_DECLS
