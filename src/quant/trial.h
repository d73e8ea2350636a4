/*
 * A search at work: plans tried, timed and raced. For the files of the search (quant/search.h) alone.
 *
 * What the journal knows is not done again.
 */
#pragma once

#include "tune/journal.h"
#include "quant/search.h"
#include "tune/timing.h"

G_BEGIN_DECLS

#define HN_SEARCH_BONUS 0.03 /* part of its time that a node may take longer in integers, to begin with */

typedef struct {
    const HnSearchOptions *o;
    const HnQuantPlan *base;
    HnSearch *out;
    HnJournal *journal;
    guint64 end;                  /* ns; 0: no limit */
    HnModel *model;               /* prepared, to look at */
    const HnNodeTimes *f32, *all; /* all nodes as f32, all candidates as integers; NULL: time is not asked for */
    double f32_ms;                /* sum of f32's nodes */
    double weight_bytes;          /* the same of their weights */
} HnSearchState;

typedef struct {
    HnScore score;
    double drop, part; /* hn_goals_part() */
    gboolean met;
    guint64 bytes;
} HnOutcome;

gboolean hn_search_late(HnSearchState *s);
HnSensitivity *hn_search_node(const HnSearchState *s, guint i);
gboolean hn_search_pinned(const HnSearchState *s, const HnSensitivity *n);

/* --- plans; the caller frees them --- */

/* Whether the node has its form of the base, and how many have. */
gboolean hn_search_has(const HnSearchState *s, const HnQuantPlan *p, const HnSensitivity *n);
guint hn_search_forms(const HnSearchState *s, const HnQuantPlan *p);
/* Forms of the base for those nodes that `wanted` marks; others are f32, or, with `less`, in the form that is. */
HnQuantPlan *hn_search_plan(const HnSearchState *s, const gboolean *wanted, gboolean less);
HnQuantPlan *hn_search_none(const HnQuantPlan *p); /* without any form */

/* --- trials --- */

/* A row of the table at the end. */
void hn_search_point(HnSearchState *s, const char *what, const HnQuantPlan *p, const HnOutcome *o);
/* is_point: it gets one. */
gboolean hn_search_try(HnSearchState *s, const HnQuantPlan *p, const char *what, gboolean is_point, HnOutcome *out,
                       GError **error);
/* p is the best plan so far; taken. */
gboolean hn_search_keep(HnSearchState *s, HnQuantPlan *p, const HnOutcome *o, GError **error);

/* --- times --- */

gboolean hn_search_time_all(HnSearchState *s, GError **error);
/* Own times of nodes with each plan carried out, out[n]; they are the journal's. Plans take turns. */
gboolean hn_search_times(HnSearchState *s, const HnQuantPlan *const *plans, guint n, const HnNodeTimes **out,
                         GError **error);
double hn_search_ms(const HnSearchState *s, const HnQuantPlan *p); /* expected; NaN: time is not asked for */
/* Time of `after` over that of `before`. */
gboolean hn_search_race(HnSearchState *s, const HnQuantPlan *before, const HnQuantPlan *after, double *effect,
                        GError **error);

G_END_DECLS
