/*
 * The inside of integers: products of integers with constant weights, and what they are made of.
 */
#pragma once

#include "quant/quant_plan.h"

G_BEGIN_DECLS

/* scale * (q - zero), of all elements or of each index of an axis. */
typedef struct {
    HnValue *q, *scale, *zero; /* zero: NULL where absent */
    int axis;                  /* -1: one scale */
    gboolean turned;           /* it is read through a Transpose of its two axes */
    gboolean shared;           /* others read it too */
} HnQuantized;

/* Weights in other forms, made once for all that ask for them. */
typedef struct {
    HnBudget *budget;
    GHashTable *turned, *unsigned_; /* HnValue * -> HnValue * */
    GPtrArray *copied;              /* HnValue *, those of unsigned_ in the order of making */
} HnProducts;

void hn_products_init(HnProducts *p, HnBudget *budget);
/* All products are made: what others read is not kept a second time. Errors: BUDGET. */
gboolean hn_products_settle(HnProducts *p, GError **error);
void hn_products_clear(HnProducts *p);

/* v is what DequantizeLinear makes of 8-bit integers, with one step for all or for an axis. */
gboolean hn_quantized_of(const HnValue *v, HnQuantized *q);
/* n is a product that has a form in integers, of constant weights that w is filled with. */
gboolean hn_quantized_weight(const HnNode *n, HnQuantized *w);

/* A new value of g, called after `stem`: as nothing else in the model is called. */
HnValue *hn_quant_value(HnGraph *g, const char *stem);
gboolean hn_quant_is_conv(const HnNode *n);

/* At the end of g, called after what it makes: hn_model_verify() puts it where it belongs. `in` ends with NULL. Its
 * output, called after `stem`, is what comes back; NULL: the caller adds outputs to *made. */
HnValue *hn_quant_node(HnGraph *g, const char *op, const char *stem, HnValue *const *in, HnNode **made);
/* Takes t; NULL stays NULL. */
HnValue *hn_quant_constant(HnGraph *g, const char *stem, HnTensor *t);

/* The integers of w as [K, N] for n, a matrix product. NULL: error. */
HnValue *hn_quant_matrix(HnProducts *p, const HnNode *n, const HnQuantized *w, GError **error);

/* What n computes, from x: integers are summed up, and the sums multiplied with both scales. n goes, its output stays.
 */
gboolean hn_quant_product(HnProducts *p, HnNode *n, const HnQuantized *x, const HnQuantized *w, GError **error);

/* The place of a convolution's window, for ConvInteger and QLinearConv. */
void hn_quant_copy_attrs(const HnNode *conv, HnNode *to);

/* Nodes that nobody reads from any more, and weights. */
void hn_quant_drop_unused(HnGraph *g);

G_END_DECLS
