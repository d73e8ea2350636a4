/*
 * TfIdfVectorizer: the pool of n-grams as a tree, for its record and for backends.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef struct {
    int mode; /* HN_TFIDF_* */
    int64_t shortest, longest, most_skipped;
    const int64_t *starts, *places; /* ngram_counts, ngram_indexes; borrowed, as all of it */
    int64_t n_starts, n_places;
    const float *weights; /* NULL: all 1 */
    int64_t n_weights;
    const int64_t *ints; /* the pool; NULL: strings */
    GBytes *const *strings;
    int64_t n_pool;
    int64_t width; /* of a result: 1 + the largest place */
} HnTfIdf;
enum { HN_TFIDF_TF, HN_TFIDF_IDF, HN_TFIDF_TFIDF };

/* Items have numbers, and so have the nodes of a tree whose ways from the root are the n-grams. */
typedef struct HnNgrams HnNgrams;

HnNgrams *hn_ngrams_new(const HnTfIdf *p);
void hn_ngrams_free(HnNgrams *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnNgrams, hn_ngrams_free)
/* Elements [from, from + n) of x become y[p->width]; item: n places. x is of the pool's type, or i32. */
void hn_ngrams_row(const HnNgrams *g, const HnTensor *x, int64_t from, int64_t n, int32_t *item, float *y);

/* The same for machines that only look up in sorted arrays. Of a pool of integers. */
typedef struct {
    gint64 value;
    gint32 number;
} HnNgramItem; /* by value */
typedef struct {
    gint64 key; /* node << 32 | number of an item */
    gint32 node;
} HnNgramStep; /* by key; node 0, the root, is none that a step leads to */

GArray *hn_ngrams_items(const HnNgrams *g);
GArray *hn_ngrams_steps(const HnNgrams *g);
const gint32 *hn_ngrams_places(const HnNgrams *g, guint *n); /* of each node: in results; -1: none */

G_END_DECLS
