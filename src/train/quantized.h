/*
 * HnQuantized: what of a graph is quantized: weights that the file holds as integers behind DequantizeLinear, pairs of
 * QuantizeLinear and DequantizeLinear around values, and which of their scales can be learned.
 *
 * A bias of 32 bits in units of the product of the scales of its layer's input and weights has no scale of its own:
 * it follows them. Where that cannot be kept, both stay. A scale is learned where all that reads it is known here, and
 * all integers that it belongs to are trained.
 */
#pragma once

#include "op/fakequantize.h"

G_BEGIN_DECLS

/* A node that makes numbers of integers that the file holds: DequantizeLinear, or the product with a scale behind
 * nodes that convert. */
typedef struct {
    HnNode *node;
    HnQParams p;
    HnFakeForm form;
    HnValue *x, *w; /* of a bias: the scales whose product its own is; NULL: it has its own */
} HnHeldIntegers;

/* Numbers that become integers, and numbers again. */
typedef struct {
    HnNode *first, *second;
    HnQParams p; /* of the first */
    HnFakeForm form;
    gboolean one; /* both read the scale from one value */
} HnQuantPair;

typedef struct HnQuantized HnQuantized;

/* g: the main graph of a bound model; outlives it. */
HnQuantized *hn_quantized_new(const HnGraph *g);
void hn_quantized_free(HnQuantized *z);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnQuantized, hn_quantized_free)

const GArray *hn_quantized_held(const HnQuantized *z);  /* HnHeldIntegers */
const GArray *hn_quantized_pairs(const HnQuantized *z); /* HnQuantPair */

/* v's integers can be trained: all who read them take them for the same numbers. */
gboolean hn_quantized_holds(const HnQuantized *z, const HnValue *v);
/* The integers that a node of the list makes `real` of; NULL: none does. */
HnValue *hn_quantized_integers(const HnQuantized *z, const HnValue *real);
/* v is a scale of what is listed. */
gboolean hn_quantized_is_scale(const HnQuantized *z, const HnValue *v);
/* Scales (HnValue *, keys) that can be learned where the integers of `trained` (HnValue *, keys) are; frozen ones are
 * none of `scales` (the same). */
GHashTable *hn_quantized_learns(const HnQuantized *z, GHashTable *trained, GHashTable *scales);

G_END_DECLS
