/*
 * The inside of qdq_fusion.c, qdq_product.c and qdq_binary.c: numbers held as bytes.
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
} HnQparams;

struct HnQdqValue {
    HnQparams step; /* of the bytes: value[i] is that of this step, or a function of it */
    gboolean plain;
    HnQparams fit; /* the numbers are some of this step's, most probably */
    int lo, hi;    /* bytes that occur, as numbers */
    float value[HN_BYTES];
};

/* All that read a value quantize it so, limited to [lo, hi] first. */
typedef struct {
    HnQparams step;
    float lo, hi;
} HnRequantize;

/* v's element type where its shape is known, too. */
HnDtype hn_qdq_dtype(const HnPlan *p, const HnValue *v);
gboolean hn_qdq_is_byte(HnDtype d);
HnTensor *hn_qdq_known(gconstpointer types, HnValue *v); /* as hn_op_qparams() asks */
float hn_qdq_number(const HnQparams *s, int byte);
/* As QuantizeLinear. */
int hn_qdq_of(const HnQparams *s, float v);
/* Only nodes of the lowered graph read v. */
gboolean hn_qdq_stay(const HnValue *v);
/* Limits of a node that only limits its input 0. */
gboolean hn_qdq_limits(const HnPlan *p, const HnNode *n, float *lo, float *hi);
/* All bytes of that step from lo to hi. */
HnQdqValue *hn_qdq_held(const HnQparams *s, int lo, int hi);
HnQdqValue *hn_qdq_held_whole(const HnQparams *s);
gboolean hn_qdq_occurs(const HnQdqValue *h, int byte);
/* v's numbers are those of the slot's bytes; takes h. */
void hn_qdq_hold(HnPlan *p, const HnValue *v, HnSlot *slot, HnQdqValue *h);
/* Takes t. */
HnSlot *hn_qdq_constant(HnPlan *p, HnTensor *t);
/* A new slot for v that holds bytes. NULL: error. */
HnSlot *hn_qdq_slot(HnPlan *p, const HnValue *v, HnDtype dtype, GError **error);
/* A step of an internal operator in the place of n; *done: a kernel takes it. */
gboolean hn_qdq_finish(HnPlan *p, HnStep *s, gboolean *done, GError **error);
gboolean hn_qdq_change_nothing(const HnQdqValue *h, const uint8_t *map, HnDtype dtype);
/* The slot of x's bytes after an exchange by map, in steps of dtype; `to` is the value they are, or NULL. */
HnSlot *hn_qdq_exchanged(HnPlan *p, const HnNode *n, const HnValue *x, HnSlot *slot, const uint8_t *map, HnDtype dtype,
                         const HnValue *to, GError **error);
/* v, a scale or zero point that is known; NULL: a 0 of that type. */
HnSlot *hn_qdq_scalar(HnPlan *p, const HnValue *v, HnDtype dtype);
/* x's bytes as those of its step: of Relu's results those below the zero point are raised to it. NULL without an error:
 * that does not give the same numbers. */
HnSlot *hn_qdq_as_step(HnPlan *p, const HnNode *n, const HnValue *x, GError **error);
/* n, a product with constant weights of held numbers, in integers. */
gboolean hn_qdq_add_product(HnPlan *p, HnNode *n, gboolean *done, GError **error);
/* n, such a product of the lowered graph that makes numbers: bytes where all readers want these. */
gboolean hn_qdq_requantize(HnPlan *p, HnNode *n, gboolean *done, GError **error);
/* The first of the nodes adds or multiplies two tensors, one of which is held at least; the others limit the result. */
gboolean hn_qdq_add_binary(HnPlan *p, HnNode *const *nodes, guint n_nodes, gboolean *done, GError **error);
/* n, a mean of held numbers over windows or all spatial axes. */
gboolean hn_qdq_add_mean(HnPlan *p, HnNode *n, gboolean *done, GError **error);
