/*
 * HnOutputView: what an output holds, told apart by type, shape and the numbers of some samples:
 *
 *   classes      [N, C] with rows that add up to 1, or of 8 columns and more that are no curve; which one is the
 *                largest counts. Where each column has numbers of its own, they are measures, of so many kinds
 *   labels       integers, truth values, text: equal or not; but not integers of more than two values that are real
 *                numbers (check/whole_numbers.h)
 *   scores       numbers within [0, 1], each a yes from HN_STRONG_SCORE on
 *   embedding    [N, C] or [N, ..., C] with rows of length 1, or all of another one
 *   state        of the shape of an input, beside other outputs
 *   mixed        kinds of numbers in channels of their own, as boxes beside scores (check/channel_kinds.h)
 *   numbers      all else: measures, spectra, sound, masks before a threshold, integers where each is near the one
 *                before, as in pictures
 *
 * Columns. Those of [N, C], where they are few, have numbers of their own, or are of quite different sizes, are groups
 * each by itself, or of one size.
 *
 * Middles. Rows of one length that all point nearly the same way are told apart by what their columns do about means of
 * their own, and their errors are held against that.
 *
 * Still elements. Those that are the same number in all of some samples, as a table beside what a model computes: they
 * are no part of the size of the others.
 *
 * Angles. Numbers that fill [-pi, pi] or [0, 2 pi], and end there, are as far apart as on a circle.
 *
 * Names. Of the channels of an output, one that alone holds whole numbers, as a detector's class beside box and score:
 * each is right or wrong.
 */
#pragma once

#include "check/channel_kinds.h"

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

#define HN_MOST_LABELS 4096 /* values, where each counts by itself */

typedef struct {
    HnOutputKind kind;
    gboolean beside; /* there are other outputs */
    HnChannelKinds channels;
    int n_groups;     /* that r2 looks at: kinds of channels, or channels */
    int *group;       /* channel -> group */
    gboolean between; /* group n_groups - 1 is of no channel, but of what few columns of a row differ by */
    double *middle;   /* of an embedding: [columns], their means; NULL: it is none, or rows are too few or made up */
    int64_t columns;  /* of it: elements of one of N, or, where these differ in number, of a row */
    double rows;      /* that these are means of */
    guint8 *still;    /* bit e: element e is still; NULL: none is, or samples are too few or of different shapes */
    double turn;      /* of angles: numbers this far apart are the same; 0: it has none */
    int64_t name;     /* channel whose numbers are names: right or wrong; -1: none */
} HnOutputView;

/* What the original made of n samples. */
typedef struct {
    HnTensor *const *const *out; /* of each of them, plain tensors (check/outputs.h) */
    guint n;
    HnTensor *const *in; /* of the first */
    int n_in;
    gboolean labelled;    /* output 0 holds classes */
    gboolean made_up;     /* the samples; they say little of what outputs do over real ones */
    const gboolean *real; /* [outputs]: integers there are real numbers; NULL: none are */
} HnOutputsSeen;

/* What the outputs of a model hold. */
void hn_output_views_find(HnOutputView *views, int n_out, const HnOutputsSeen *seen);
void hn_output_view_clear(HnOutputView *v);

/* The turn of what seem to be angles, of one output in n samples, NULL: absent; 0: they are none. */
double hn_output_turn(HnTensor *const *t, guint n);
static inline gboolean hn_output_is_still(const HnOutputView *v, int64_t e)
{
    return v->still != NULL && (v->still[e / 8] >> (e % 8) & 1) != 0;
}
/* Where the largest of the n numbers of a row is. */
int64_t hn_output_best(const HnTensor *t, int64_t row, int64_t n);

G_END_DECLS
