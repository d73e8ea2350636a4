/*
 * HnOutputSums: how far another model's output is from the original's, by what it holds (check/output_kind.h).
 *
 * r2. The mean square of an error says something beside the size of the numbers alone, and their magnitude is no
 * measure of that: a quality between 2 and 3 tells by its second digit. Size is the standard deviation over samples and
 * elements of a kind of number, but at least 0.1 of its root mean square, and more where there are so few that the
 * deviation is not known: 0.1 + 0.9 / (n - 1) of it. From 8 samples on, which show it, that is no more than five times
 * the deviation: what hardly varies, as a temperature in kelvin, is told by nothing else. Strong scores have 0.5 at
 * least. The worst sample counts, too, with a sixteenth of its mean square; classes, which have a measure of their own,
 * count with a tenth, and so does what columns of a row differ by, where there are few: two classes may rise and fall
 * together far more.
 *
 * What varies has to be right by itself: from 8 samples on elements that are not still are held against their own size,
 * too.
 *
 * Integers that are real numbers, rounded, are off by 1 where an error, however small, crosses a border: what counts is
 * the error before that, as the mean square tells it.
 *
 * A number that may stand for something else (HnChannelKinds.none) has no part in the size where most of the results
 * have it, to the bit, where the original has it.
 *
 * Classes. The part of rows whose largest score is in the same place; of at most HN_MOST_MARGINS rows that no label
 * judges, also 1 minus a quarter of the part that is expected to move (check/margins.h): so few show no less loss.
 *
 * Names. The part that is another one counts, with a tenth.
 *
 * Labels. The part that is equal; where values are few, that of each value by itself counts, too, with a tenth and
 * without what chance may do: a rare one that is lost altogether is no small loss.
 */
#pragma once

#include "check/goals.h"
#include "check/output_kind.h"

G_BEGIN_DECLS

typedef struct {
    double top1, cos, worst_cos, scores, r2; /* as in HnScore; NaN: it has none */
    double turned;                /* part of few rows of classes that is expected to be of another one; NaN */
    double worst_r2;              /* of a single sample, whole */
    double lost;                  /* 1 - r2, of classes the whole of it, too */
    double signal, noise;         /* sums of squares */
    double own_signal, own_noise; /* of elements that are not still */
    int64_t n;                    /* elements of the original's; 0: it is judged by nothing */
} HnOutputScore;

typedef struct HnOutputSums HnOutputSums;

HnOutputSums *hn_output_sums_new(const HnOutputView *view); /* which outlives it */
void hn_output_sums_free(HnOutputSums *s);
/* One sample: `got` beside the original's; label: NULL, or the right classes. Either tensor may be NULL: absent. */
void hn_output_sums_add(HnOutputSums *s, const HnTensor *got, const HnTensor *want, const HnTensor *label);
void hn_output_sums_score(const HnOutputSums *s, HnOutputScore *score);

G_END_DECLS
