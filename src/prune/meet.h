/*
 * What to ask for so that the model that is made costs what it may: between goals whose models cost too little and too
 * much.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_PRUNE_ROUNDS 8   /* goals that are tried, at most */
#define HN_PRUNE_PATIENCE 3 /* times that one of them is measured, at most */

/* What the model for a goal costs. */
typedef struct {
    double goal;
    double cost, lo,
        hi;         /* as it was measured, and what it surely lies between; where it is counted all three the same */
    gboolean least; /* nothing that costs less can be made */
} HnPruneTry;

typedef struct {
    double limit;
    double lo, hi;     /* what is as good as the limit; hi is the most that may be taken */
    gboolean measured; /* costs are noisy: steps by what one of them says are not taken where halves can be */
    gboolean any;      /* so is what nobody can tell the cost of */
    /* Fills in all but t->goal. Of the same goal again, patience counts on from 0: measure for longer. */
    gboolean (*attempt)(gpointer data, HnPruneTry *t, guint patience, GError **error);
    /* t is what came of the last goal: best, the best so far. */
    gboolean (*settle)(gpointer data, const HnPruneTry *t, gboolean best, GError **error);
    gpointer data;
} HnPruneMeet;

typedef enum {
    HN_PRUNE_MET, /* one of those that were settled as best may be taken, though it may be well below the limit */
    HN_PRUNE_IMPOSSIBLE, /* none of them costs so little */
    HN_PRUNE_UNKNOWN,    /* it is too noisy to tell */
} HnPruneMeeting;

/* Is t's cost known well enough to tell it from the limit, or itself within a tenth? */
gboolean hn_prune_tells(const HnPruneMeet *m, const HnPruneTry *t);

/* From that goal on. best: the one that is taken, or, where it is impossible, that which costs least. FALSE: an error
 * of attempt() or settle(). */
gboolean hn_prune_meet(const HnPruneMeet *m, double goal, HnPruneMeeting *how, HnPruneTry *best, GError **error);

G_END_DECLS
