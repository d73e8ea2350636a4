/*
 * The inside of channel_*.c: classes, the places of values that they lie along, and what rules for operators call.
 */
#pragma once

#include "pass/lib/channel_groups.h"

G_BEGIN_DECLS

/* Channels of a value. */
typedef struct {
    int axis;
    int64_t n;
    int *at;       /* [n]: their classes, in HnChannels.lists; NULL: none are known, or elements are held apart */
    HnTensor *ids; /* f32, 1 + the class of each element; between movements only */
    gboolean locked;
} HnChannelPlace;

struct HnChannels {
    HnModel *model;
    HnChannelBond bond;
    HnBudget *budget;
    HnTypes *types;  /* with symbols as numbers; NULL: values have theirs */
    GArray *parent;  /* int: of each class, the one that it is part of, or itself */
    GArray *reasons; /* const char *, of classes that are their own parent: why they are locked; NULL: they are not */
    GStringChunk *texts;
    gsize counted; /* bytes of the budget for both */
    double moved, held;
    HnChannelPlace *places; /* by HnValue.id */
    guint n_places;
    GArray *lists;      /* what places and members look at, several at one of them */
    GPtrArray *members; /* HnChannelMember * */
    GArray *clips;
    int stays; /* the class of what nobody could remove (HN_BOND_FATE); -1: not needed so far */
    GError *error;
};

/* What a node does about the classes of its inputs. NULL: done; else why they, and those of its outputs, are locked. */
const char *hn_channels_follow_unit(HnChannels *c, HnNode *n);
const char *hn_channels_follow_fate(HnChannels *c, HnNode *n);

/* --- classes */

void hn_channels_unite(HnChannels *c, int a, int b);
void hn_channels_lock(HnChannels *c, int k, const char *reason);
/* All of v's; n, which says so, is named in front of the reason. */
void hn_channels_lock_value(HnChannels *c, const HnValue *v, const HnNode *n, const char *reason);
/* The same where v is an output of the model. */
void hn_channels_lock_output(HnChannels *c, const HnValue *v);
/* Room for n classes. NULL: c->error. */
int *hn_channels_list(HnChannels *c, int64_t n);
void hn_channels_drop_list(HnChannels *c); /* the last one */

/* --- values */

HnChannelPlace *hn_channels_place(const HnChannels *c, const HnValue *v);
const HnType *hn_channels_type(const HnChannels *c, const HnValue *v);
/* v is no weight, and of a type that classes are kept for. */
gboolean hn_channels_is_data(const HnChannels *c, const HnValue *v);
/* Elements of a constant of such a type; NULL: it is none. */
const HnTensor *hn_channels_weight(const HnChannels *c, const HnValue *v);
/* Size along an axis of v, counted from the back where it is negative, from the front afterwards; -1: not known. */
int64_t hn_channels_size(const HnChannels *c, const HnValue *v, int *axis);
/* Channels of its own along an axis of v: n of them. NULL: v is of another size, or there are too many. */
HnChannelPlace *hn_channels_make(HnChannels *c, const HnValue *v, int axis, int64_t n);
/* v has p's channels along this axis. NULL: it is of another size. */
HnChannelPlace *hn_channels_put(HnChannels *c, const HnChannelPlace *p, const HnValue *v, int axis);
/* The channels of `from` are those of v, too, along the same axis. */
HnChannelPlace *hn_channels_pass(HnChannels *c, const HnValue *from, const HnValue *v);

/* --- elements */

/* 1 + the class of each element of v. NULL: not known. */
HnTensor *hn_channels_ids(HnChannels *c, const HnValue *v);
/* Numbers of classes that were united become one. */
void hn_channels_settle(const HnChannels *c, HnTensor *ids);
/* What hn_channels_ids() gives from now on; along an axis, `like` first, where each place is of one class. FALSE: there
 * are too many to be held. */
gboolean hn_channels_set_ids(HnChannels *c, const HnValue *v, HnTensor *ids, int like);
/* n moves the numbers of its inputs: does it with their classes. FALSE: it cannot be followed. */
gboolean hn_channels_move(HnChannels *c, HnNode *n);
/* The channels along an axis (counted from the back where negative) of v, those of one place united. NULL: they lie
 * along another one, or there are none. */
HnChannelPlace *hn_channels_along(HnChannels *c, const HnValue *v, int axis);

/* --- weights */

HnChannelMember *hn_channels_member(HnChannels *c, const HnNode *n, int input);
void hn_channels_makes(HnChannelMember *m, int axis, int64_t n, const int *classes);
void hn_channels_reads(HnChannelMember *m, int axis, int64_t groups, int64_t n, const int *classes);

G_END_DECLS
