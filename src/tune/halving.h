/*
 * HnHalving: successive halving. All candidates are tried for a while, the better half of them again for twice as long,
 * and so on until one is left (Jamieson and Talwalkar, AISTATS 2016).
 *
 * What a candidate is, and what a trial is as long as (epochs, steps), is the caller's business.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    guint n;       /* candidates */
    int64_t first; /* length of trials in the first round */
    int64_t most;  /* no trial is longer */
    /* From the start. Errors end it. */
    gboolean (*attempt)(gpointer data, guint candidate, int64_t length, GError **error);
    /* By their last trials, which were as long as each other. */
    gboolean (*better)(gpointer data, guint a, guint b);
    gpointer data;
} HnHalving;

/* order[h->n]: the candidates, the best first; of equals the first. Those of the second half of a round stay behind
 * those that went on. */
gboolean hn_halving_run(const HnHalving *h, guint *order, GError **error);

/* All trials together: their lengths, and how many there are (may be NULL). */
int64_t hn_halving_length(const HnHalving *h, guint *trials);
/* Of a trial of the last round; of a single candidate, which needs none: of what its first one would be. */
int64_t hn_halving_last(const HnHalving *h);

G_END_DECLS
