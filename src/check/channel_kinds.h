/*
 * Which channels of an output hold the same kind of number.
 *
 * A detector may write boxes in pixels beside scores below 1 into one tensor: over all of it, an error of the scores
 * is not to be seen. Channels are told apart along the one axis (of those behind the first) where their root mean
 * squares, in order of size, show the widest gap, of HN_CHANNEL_KINDS_GAP at least; what lies between gaps is one kind.
 * Outputs without a gap are one kind: a spectrum falls off, but nowhere at once.
 *
 * Numbers of which there are several, all alike and far beyond all others, as -1e9 where a mask is, stand for something
 * else, and are no part of any kind's size. One that is the same to the bit in several places and further from all
 * others than these are from each other, as -1 among small ones, may: whether it does is seen in another model's
 * results, which have it where it stands for something, and have numbers near it where it is one.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

#define HN_CHANNEL_KINDS_GAP 10
#define HN_CHANNEL_KINDS_ELEMENTS \
    8 /* of a channel in each tensor, at least: a class has one, and is no kind of number; ... */
#define HN_CHANNEL_KINDS_FEW 3     /* ... or so many, where there are 16 in all tensors */
#define HN_CHANNEL_KINDS_MOST 4096 /* an axis that is longer has no channels */

typedef struct {
    int axis;         /* of channels; the shortest one where there is no gap. -1: the tensors have no second axis */
    int64_t channels; /* along it; 1 without axis */
    int n;            /* kinds */
    int *of;          /* channel -> kind */
    gboolean *scores; /* kind -> all its numbers are in [0, 1], and not all 0 */
    /* Scores of channels [gated, gated_end) are 1 together, and one more score stands beside them: they are
     * probabilities on condition of that one, which a detector multiplies them by. -1, and no channels: there is none.
     */
    int64_t gate, gated, gated_end;
    double beyond; /* magnitude from which on numbers stand for something else; infinite: none do */
    double none;   /* the number that may stand for something else; NaN: none does */
} HnChannelKinds;

/* Of one output of several samples; NULL among t: absent. Shapes may differ, but not the number of channels. */
void hn_channel_kinds_find(HnChannelKinds *k, HnTensor *const *t, guint n);
void hn_channel_kinds_clear(HnChannelKinds *k);

/* Element i of t. */
static inline double hn_number_at(const HnTensor *t, int64_t i)
{
    return t->dtype == HN_F32 && !t->misaligned ? (double)((const float *)t->data)[i] : hn_tensor_get_f64(t, i);
}

/* The same, of that channel; of a score on condition of another one their product. `step`: hn_channel_kinds_step(). */
static inline double hn_channel_kinds_value(const HnChannelKinds *k, const HnTensor *t, int64_t step, int64_t channel,
                                            int64_t i)
{
    const double x = hn_number_at(t, i);
    return channel < k->gated || channel >= k->gated_end ? x : x * hn_number_at(t, i + (k->gate - channel) * step);
}

/* Elements from one channel to the next; channel of element i is i / step % k->channels. */
int64_t hn_channel_kinds_step(const HnChannelKinds *k, const HnTensor *t);

G_END_DECLS
