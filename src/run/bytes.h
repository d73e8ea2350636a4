/*
 * The inside of bytes.c, bytes_product.c and bytes_pair.c: numbers held as bytes.
 */
#pragma once

#include "run/plan.h"

#define HN_BYTES 256

/* Scale and zero point of a whole tensor. */
typedef struct {
    HnDtype dtype; /* HN_U8 or HN_I8 */
    float scale;
    int zero;
    HnValue *scale_of, *zero_of; /* zero_of NULL: 0 */
} HnByteStep;

struct HnHeld {
    HnByteStep step; /* of the bytes: value[i] is that of this step, or a function of it */
    gboolean plain;
    HnByteStep fit; /* the numbers are some of this step's, most probably */
    int lo, hi;     /* bytes that occur, as numbers */
    float value[HN_BYTES];
};

/* All that read a value quantize it so, limited to [lo, hi] first. */
typedef struct {
    HnByteStep step;
    float lo, hi;
} HnWant;

/* v's element type where its shape is known, too. */
HnDtype hn_bytes_dtype(const HnPlan *p, const HnValue *v);
gboolean hn_bytes_is_byte(HnDtype d);
HnTensor *hn_bytes_known(gconstpointer types, HnValue *v); /* as hn_op_qparams() asks */
float hn_bytes_number(const HnByteStep *s, int byte);
/* As QuantizeLinear. */
int hn_bytes_of(const HnByteStep *s, float v);
/* Only nodes of the lowered graph read v. */
gboolean hn_bytes_stay(const HnValue *v);
/* Limits of a node that only limits its input 0. */
gboolean hn_bytes_limits(const HnPlan *p, const HnNode *n, float *lo, float *hi);
/* All bytes of that step from lo to hi. */
HnHeld *hn_bytes_held(const HnByteStep *s, int lo, int hi);
HnHeld *hn_bytes_held_whole(const HnByteStep *s);
gboolean hn_bytes_occurs(const HnHeld *h, int byte);
/* v's numbers are those of the slot's bytes; takes h. */
void hn_bytes_hold(HnPlan *p, const HnValue *v, HnSlot *slot, HnHeld *h);
/* Takes t. */
HnSlot *hn_bytes_constant(HnPlan *p, HnTensor *t);
/* A new slot for v that holds bytes. NULL: error. */
HnSlot *hn_bytes_slot(HnPlan *p, const HnValue *v, HnDtype dtype, GError **error);
/* A step of an internal operator in the place of n; *done: a kernel takes it. */
gboolean hn_bytes_finish(HnPlan *p, HnStep *s, gboolean *done, GError **error);
gboolean hn_bytes_change_nothing(const HnHeld *h, const uint8_t *map, HnDtype dtype);
/* The slot of x's bytes after an exchange by map, in steps of dtype; `to` is the value they are, or NULL. */
HnSlot *hn_bytes_exchanged(HnPlan *p, const HnNode *n, const HnValue *x, HnSlot *slot, const uint8_t *map,
                           HnDtype dtype, const HnValue *to, GError **error);
/* v, a scale or zero point that is known; NULL: a 0 of that type. */
HnSlot *hn_bytes_scalar(HnPlan *p, const HnValue *v, HnDtype dtype);
/* x's bytes as those of its step: of Relu's results those below the zero point are raised to it. NULL without an error:
 * that does not give the same numbers. */
HnSlot *hn_bytes_as_step(HnPlan *p, const HnNode *n, const HnValue *x, GError **error);
/* n, a product with constant weights of held numbers, in integers. */
gboolean hn_bytes_add_product(HnPlan *p, HnNode *n, gboolean *done, GError **error);
/* n, such a product of the lowered graph that makes numbers: bytes where all readers want these. */
gboolean hn_bytes_requantize(HnPlan *p, HnNode *n, gboolean *done, GError **error);
/* The first of the nodes adds or multiplies two tensors, one of which is held at least; the others limit the result. */
gboolean hn_bytes_add_pair(HnPlan *p, HnNode *const *nodes, guint n_nodes, gboolean *done, GError **error);
/* n, a mean of held numbers over windows or all spatial axes. */
gboolean hn_bytes_add_mean(HnPlan *p, HnNode *n, gboolean *done, GError **error);
