/*
 * One step of a decoder, with caches of a fixed size.
 *
 * A decoder with a key-value cache reads caches of n rows and gives caches of n + s: present = Concat(past, new). Its
 * shapes differ at each step. Here it becomes a model whose shapes do not: caches have room for `capacity` rows, of
 * which the first n are filled; TensorScatter writes the new ones into place; what reaches beyond the filled part
 * (scores, masks) is masked where something sums over it. How many rows are filled is an input of its own. Within the
 * filled part all is computed as before.
 *
 * That rests on symbolic shapes: sizes that grow are written with a symbol for n, and each node that reads something
 * of such a size is of a kind for which it is known what becomes of the rest. Any other one is a refusal, and the model
 * is run as it is.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

#define HN_PAST_ROWS "past_rows" /* the symbol for n in types of inputs */

typedef struct {
    const char *in, *out; /* the cache before and behind the step: an input and an output of the graph */
} HnCachePair;

typedef struct {
    const HnCachePair *pairs;
    int n_pairs;
    HnType *const *types; /* of the graph's inputs, in order: sizes are numbers, n, or n + step */
    int64_t step;         /* s */
    int64_t capacity;
    HnBudget *budget;
} HnFixedCache;

/*
 * Rewrites m, which has no functions. Afterwards the caches are weights of zeros, in the order of pairs, to be
 * variables of an engine that the outputs of the pairs replace; other inputs whose sizes grew have room for capacity as
 * well, and what is fed beyond the filled part has to be 0. The input that holds n, i64[1], is named in *length
 * (borrowed from m). Errors: UNSUPPORTED naming the node that cannot be done so, and m is only good to be freed;
 * BUDGET.
 */
gboolean hn_fix_cache(HnModel *m, const HnFixedCache *o, const char **length, GError **error);

G_END_DECLS
