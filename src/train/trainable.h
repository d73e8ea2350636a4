/*
 * Which weights of a model training changes.
 *
 * A weight is trained where it is a float initializer, or a constant node's result, of more than one element that
 * reaches an input which the record of an operator names (HnOp.trained, HnOp.linear), directly or by operators that
 * only move or convert elements; an operand of a sum or product where what it meets is computed of the model's inputs,
 * and is no input itself (a mean or a scale of preprocessing stays); or stands beside such in a concatenation, as a
 * token of classes does. Constants with elements beyond 1e4, as masks have them, stay.
 *
 * Integers behind DequantizeLinear stand for such floats, and are trained as these; so are the scales of integers that
 * are trained, and of those around values (train/quantized.h).
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

typedef struct {
    const char *freeze; /* pattern of names that stay; NULL: none */
    const char *train;  /* pattern of names that are trained, whatever they reach; others stay. NULL: as above */
} HnTrainableOptions;

/* Of m's main graph, bound, in the order of the file's weights: HnValue *, borrowed. Errors: USAGE: a pattern that is
 * not well-formed. */
GPtrArray *hn_trainable_find(const HnModel *m, const HnTrainableOptions *o, GError **error);

/* Why a weight is trained, or is not. */
typedef enum {
    HN_WHY_TRAINED,
    HN_WHY_FROZEN,    /* its name matches `freeze` */
    HN_WHY_UNNAMED,   /* its name does not match `train` */
    HN_WHY_TYPE,      /* no floats */
    HN_WHY_ELEMENT,   /* one number */
    HN_WHY_UNREACHED, /* it reaches no weight, bias, scale or table of an operator */
    HN_WHY_MASK,
    HN_WHY_SCALE, /* of integers: something else that reads it would change its meaning */
} HnTrainableWhy;

typedef struct {
    HnValue *v; /* borrowed */
    HnTrainableWhy why;
    gboolean scale; /* of integers */
} HnTrainableWeight;

/* All that have elements, in the same order: HnTrainableWeight. Errors: the same. */
GArray *hn_trainable_list(const HnModel *m, const HnTrainableOptions *o, GError **error);

/* Elements come out of n as they went in, perhaps elsewhere, several times or as another type. */
gboolean hn_trainable_moves(const HnNode *n);

/* The elements of a weight or of a constant node's result; NULL: v is neither. */
HnTensor *hn_trainable_elements(const HnValue *v);
/* They are t from now on, of the same type and dims; a reference is taken. */
void hn_trainable_set(HnValue *v, HnTensor *t);

G_END_DECLS
