/*
 * HnAugment: random changes of training samples that leave their labels as they are.
 *
 *     shift:2,flip-x,noise:0.01,mask/scale:0.1
 *
 *   shift:N    the last two axes, each by -N to N elements, all equally likely; what moves in is 0
 *   shift-t:N  the same along axis 1 of [N,T,C]
 *   flip-x     the last axis is reversed, with probability 1/2
 *   flip-y     the last but one
 *   noise:S    a normally distributed number of standard deviation S is added to each element
 *   scale:S    all elements of a sample are multiplied by one number of [1-S,1+S)
 *
 * A word is for the first input of floats, or for the input NAME in "NAME/shift:2"; words follow one after the other as
 * they are written. The first axis of an input counts samples. shift and flip are for images: [N,H,W], [N,C,H,W] and
 * larger ranks; noise and scale are for floats. A shift is smaller than the axis, and 10,000 at most; a noise 1,000 at
 * most; a scale 1 at most.
 *
 * What happens to a sample follows from seed, epoch, the sample's place in its source, the input and the word's place
 * in the text: neither from the batch that it is in nor from the thread. An HnAugment does not change.
 */
#pragma once

#include "data/data.h"

G_BEGIN_DECLS

typedef struct HnAugment HnAugment;

HnAugment *hn_augment_parse(const char *text, GError **error); /* errors: USAGE. "" is none at all */
void hn_augment_free(HnAugment *a);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnAugment, hn_augment_free)

/* The text that it was parsed from, numbers in their shortest form; hn_augment_parse() gives the same again. g_free. */
char *hn_augment_print(const HnAugment *a);

/* Whether all of it can be done, as far as the inputs' declared types tell. Errors: USAGE. */
gboolean hn_augment_check(const HnAugment *a, HnValue *const *inputs, int n, GError **error);

/* Changes inputs of the batch: those of a, as they are called in `inputs`. Tensors that somebody else has too are
 * replaced by changed copies. Several threads may, each with its batch. Errors: USAGE, BUDGET. */
gboolean hn_augment_apply(const HnAugment *a, HnValue *const *inputs, HnSample *batch, uint64_t seed, int64_t epoch,
                          HnBudget *budget, GError **error);

G_END_DECLS
