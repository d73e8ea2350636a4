/*
 * HnOutputView and HnOutputSums: what an output holds, and how far another model's is from it.
 *
 * What is told apart, by type, shape and the numbers of some samples:
 *
 *   classes      [N, C] with rows that add up to 1, or of 8 columns and more that are no curve; which one is the
 *                largest counts. Where each column has numbers of its own, they are measures, of so many kinds
 *   labels       integers, truth values, text: equal or not
 *   scores       numbers within [0, 1], each a yes from HN_STRONG_SCORE on
 *   embedding    [N, C] with rows of length 1
 *   state        of the shape of an input, beside other outputs
 *   mixed        kinds of numbers in channels of their own, as boxes beside scores (check/channel_kinds.h)
 *   numbers      all else: measures, spectra, sound, masks before a threshold, integers where each is near the one
 *                before, as in pictures
 *
 * r2. The mean square of an error says something beside the size of the numbers alone, and their magnitude is no
 * measure of that: a quality between 2 and 3 tells by its second digit. Size is the standard deviation over samples and
 * elements of a kind of number, but at least 0.1 of its root mean square, and more where there are so few that the
 * deviation is not known: 0.1 + 0.9 / (n - 1) of it. Strong scores have 0.5 at least. Up to 7 columns of an output
 * [N, C] are kinds each by itself. The worst sample counts, too, with a sixteenth of its mean square; classes, which
 * have a measure of their own, count with a tenth.
 *
 * Angles. Numbers that fill [-pi, pi] or [0, 2 pi], and end there, are as far apart as on a circle.
 *
 * Names. Of the channels of an output, one that alone holds whole numbers, as a detector's class beside box and score:
 * the part that is another whole number counts, with a tenth.
 *
 * Labels. The part that is equal; where values are few, that of each value by itself counts, too, with a tenth and
 * without what chance may do: a rare one that is lost altogether is no small loss.
 */
#pragma once

#include "check/channel_kinds.h"
#include "check/goals.h"

G_BEGIN_DECLS

typedef enum {
    HN_OUTPUT_NUMBERS,
    HN_OUTPUT_CLASSES,
    HN_OUTPUT_LABELS,
    HN_OUTPUT_SCORES,
    HN_OUTPUT_EMBEDDING,
    HN_OUTPUT_STATE,
    HN_OUTPUT_MIXED,
} HnOutputKind;

const char *hn_output_kind_name(HnOutputKind kind);

typedef struct {
    HnOutputKind kind;
    gboolean beside; /* there are other outputs */
    HnChannelKinds channels;
    int n_groups; /* that r2 looks at: kinds of channels, or channels */
    int *group;   /* channel -> group */
    double turn;  /* of angles: numbers this far apart are the same; 0: it has none */
    int64_t name; /* channel whose numbers are names: right or wrong; -1: none */
} HnOutputView;

/* What the original made of n samples. */
typedef struct {
    HnTensor *const *const *out; /* of each of them, plain tensors (check/outputs.h) */
    guint n;
    HnTensor *const *in; /* of the first */
    int n_in;
    gboolean labelled; /* output 0 holds classes */
    gboolean made_up;  /* the samples; they say little of what outputs do over real ones */
} HnOutputsSeen;

/* What the outputs of a model hold. */
void hn_output_views_find(HnOutputView *views, int n_out, const HnOutputsSeen *seen);
void hn_output_view_clear(HnOutputView *v);

typedef struct {
    double top1, cos, worst_cos, scores, r2; /* as in HnScore; NaN: it has none */
    double worst_r2;                         /* of a single sample, whole */
    double lost;                             /* 1 - r2, of classes the whole of it, too */
    double signal, noise;                    /* sums of squares */
} HnOutputScore;

typedef struct HnOutputSums HnOutputSums;

HnOutputSums *hn_output_sums_new(const HnOutputView *view); /* which outlives it */
void hn_output_sums_free(HnOutputSums *s);
/* One sample: `got` beside the original's; label: NULL, or the right classes. Either tensor may be NULL: absent. */
void hn_output_sums_add(HnOutputSums *s, const HnTensor *got, const HnTensor *want, const HnTensor *label);
void hn_output_sums_score(const HnOutputSums *s, HnOutputScore *score);

G_END_DECLS
