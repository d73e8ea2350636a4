/*
 * HnChannels: which channels of a model's tensors belong together.
 *
 * Two questions have the same kind of answer. Which channels could be measured in another unit together, with no other
 * result (HN_BOND_UNIT: what equalization scales)? And which could only be removed together, with no other result than
 * that what was computed from them is missing (HN_BOND_FATE: what pruning removes)? Either way channels of several
 * tensors share a class: a convolution makes new ones, along an axis of its weights and its bias, and reads those of
 * its input along another axis; sums unite classes, concatenations and splits put them side by side and apart, whatever
 * moves elements about (shuffles of channels, heads of attention, flattened planes) takes them along.
 *
 * A class is locked, with a reason for people, where something reads or makes it that is not understood, or that needs
 * it as it is, such as an output of the model. Locked is never wrong: what is not locked may be scaled or removed.
 *
 * How classes pass through an operator is told by its record: HnOp.channels, .linear, .quant.bytes and .flags.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

typedef struct HnChannels HnChannels;

typedef enum {
    HN_BOND_UNIT, /* one factor for all: positive, divided by where they are made, multiplied by where they are read */
    HN_BOND_FATE, /* all of them go, or none; sizes that are symbols do not matter */
} HnChannelBond;

/* Of the main graph of m, whose nodes are bound and types known. m outlives it and is not edited meanwhile. Errors:
 * BUDGET. */
HnChannels *hn_channels_new(HnModel *m, HnChannelBond bond, HnBudget *budget, GError **error);
void hn_channels_free(HnChannels *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnChannels, hn_channels_free)

/* Classes are numbered; those that were united go by the smallest number. */
int hn_channels_count(const HnChannels *c);
int hn_channels_class(const HnChannels *c, int k);
/* Why class k has to stay as it is: "'probs' (Softmax): decides about all of a row together"; NULL: it does not. */
const char *hn_channels_locked(const HnChannels *c, int k);

/* The class of each place along an axis of v, n of them; NULL: nothing of v can be scaled or removed. */
const int *hn_channels_at(const HnChannels *c, const HnValue *v, int *axis, int64_t *n);

/* A weight whose elements follow the classes: element [.., i, ..] along `axis` belongs to channel out[i], which the
 * node makes, and that along `in_axis` to one of in[], which it reads. Each group of a convolution has its own in_n of
 * them; the output channels are in the order of the groups. With HN_BOND_FATE groups is 1: what goes goes from all
 * groups, or whole groups go, of which only the axis of all of them knows. */
typedef struct {
    const char *node; /* name of the first result of the node that reads it */
    int input;
    int axis; /* -1: none */
    int64_t n;
    const int *out;
    int in_axis; /* -1: none */
    int64_t in_n, groups;
    const int *in; /* [groups * in_n] */
} HnChannelMember;

const GPtrArray *hn_channels_members(const HnChannels *c); /* HnChannelMember * */

/* What a Clip's input may reach: HN_BOND_UNIT lets units through as long as no element exceeds it. */
typedef struct {
    const HnValue *v;
    double most;
} HnClipped;

const GArray *hn_channels_clips(const HnChannels *c); /* HnClipped */

/* --- groups: classes that lie along the same axes ----------------------------------------------------------------- */

/* An axis of a value, weights included, that classes lie along. */
typedef struct {
    const HnValue *v;
    int axis;
    int64_t count; /* places of each class: what goes with one channel at least */
} HnChannelSpan;

/* Classes that may be exchanged for each other: they lie along the same axes, in as many places of each. */
typedef struct {
    GArray *classes;    /* int, in order */
    GArray *spans;      /* HnChannelSpan: what the nodes make in their order, then weights */
    const char *locked; /* NULL: they may go */
} HnChannelGroup;

/* HnChannelGroup *, in the order of their first classes; it frees them, and they hold on to c. */
GPtrArray *hn_channels_groups(const HnChannels *c);
/* A line for each: "8 of 1: %1[1] %2[1] w[0] b[0] v[1]x49; locked: ..."; g_free. */
char *hn_channels_describe(const HnChannels *c);

G_END_DECLS
