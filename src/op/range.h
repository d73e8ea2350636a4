/*
 * HnRanges: how large the elements of a model's tensors were on sample data, by name of the value.
 *
 * Names rather than pointers, so that what was seen on one copy of a model serves for another. Where graphs of a model
 * use a name twice, its values share an entry, unless they were named apart (hn_model_name_apart()).
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

typedef struct HnRanges HnRanges;

#define HN_MASK (-65504.0) /* a number of at most that is taken for a mask, which says: not this one */

typedef struct {
    int64_t n;         /* elements seen; 0: none, and the rest means nothing */
    int64_t n_zero;    /* exactly 0 */
    int64_t n_mask;    /* finite, and at most HN_MASK; not counted in largest */
    int64_t n_other;   /* infinite or NaN, which every float type has; not counted either */
    gboolean negative; /* one of the others is */
    double largest;    /* magnitude of the others */
    double smallest;   /* magnitude of the others that are not 0; infinite: there are none */
    double inside; /* largest magnitude that comes up inside the node that makes it: a sum of squares, of products */
    const char *inside_what; /* "the sum of squares"; NULL: nothing larger than what comes out */
} HnRange;

HnRanges *hn_ranges_new(void);
void hn_ranges_free(HnRanges *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnRanges, hn_ranges_free)

/* Adds what t holds; for floats of any kind, others are left out. */
void hn_ranges_note(HnRanges *r, const char *name, const HnTensor *t);
/* Adds what came up inside. `what` lives for ever. */
void hn_ranges_note_inside(HnRanges *r, const char *name, double magnitude, const char *what);
/* NULL: never seen. */
const HnRange *hn_ranges_get(const HnRanges *r, const char *name);
guint hn_ranges_count(const HnRanges *r);

/* What t alone holds. */
void hn_range_of(const HnTensor *t, HnRange *range);

G_END_DECLS
