/*
 * HnTargets: what the losses of a batch compare with: its labels, a tensor that came with it, or what a teacher makes
 * of its inputs.
 */
#pragma once

#include "data/batches.h"
#include "train/teacher_cache.h"

G_BEGIN_DECLS

typedef struct {
    const GPtrArray *objectives; /* HnObjective * */
    HnForward *teacher; /* of these objectives, and maybe of more behind them, for losses that compare with a tensor;
                           NULL: they compare with the array `label` */
    const HnTeacherCache *cache; /* of what the teacher makes of some data; NULL: it is asked each time */
    HnBudget *budget;
} HnTargets;

/* What objective o compares with of batch s of d itself: class numbers as i64, other tensors as they are; dims may
 * differ where the elements are as many. compared: the fixed type of what it compares. A new reference. Errors: those
 * of hn_batch_labels(); FORMAT: there is no label; TYPE, SHAPE. */
HnTensor *hn_target_given(const HnObjective *o, const HnData *d, const HnSample *s, const HnType *compared,
                          HnBudget *budget, GError **error);

/* out: of each objective for batch s of d, new references. compared: fixed types of what they compare. On failure
 * there are none. Errors: those of hn_target_given(); of running the teacher; SHAPE. */
gboolean hn_targets_make(const HnTargets *t, const HnData *d, const HnSample *s, HnType *const *compared,
                         HnTensor **out, GError **error);
/* Whether labels of all samples, as far as they can be had without the inputs, are numbers of classes. Errors: TYPE,
 * VALUE, which name the first sample whose label is none; those of reading them. */
gboolean hn_targets_check(const HnTargets *t, const HnData *d, HnType *const *compared, GError **error);
void hn_targets_clear(const HnTargets *t, HnTensor **out);

/* Numbers that squares of differences are held against, so that these count as parts of their variance. */
typedef struct {
    double n, sum, squares;
} HnTargetSums;

void hn_target_sums_add(HnTargetSums *s, const HnTensor *t);
/* 1 / variance, which is taken for 1e-6 of the mean square at least; 0: all are 0, or not all are finite. */
double hn_target_sums_weight(const HnTargetSums *s);

/* Class numbers come with samples, or have to. */
gboolean hn_targets_want_labels(const HnTargets *t);

G_END_DECLS
