/*
 * A search at work: what trials (tune/trial.h) and plans of forms are to each other. For the files of the search
 * (quant/search.h) alone.
 */
#pragma once

#include "quant/search.h"
#include "tune/trial.h"

G_BEGIN_DECLS

#define HN_SEARCH_BONUS 0.03 /* part of its time that a node may take longer in integers, to begin with */

typedef struct {
    const HnSearchOptions *o;
    const HnQuantPlan *base;
    HnSearch *out;
    HnTune tune;
    HnModel *model;               /* prepared, to look at */
    const HnNodeTimes *f32, *all; /* all nodes as f32, all candidates as integers; NULL: time is not asked for */
    double f32_ms;                /* sum of f32's nodes */
    double weight_bytes;          /* the same of their weights */
} HnSearchState;

void hn_search_init(HnSearchState *s, const HnQuantPlan *base, const HnSearchOptions *o, HnJournal *journal,
                    HnSearch *out);
HnSensitivity *hn_search_node(const HnSearchState *s, guint i);
gboolean hn_search_pinned(const HnSearchState *s, const HnSensitivity *n);

/* --- plans; the caller frees them --- */

/* Whether the node has its form of the base, and how many have. */
gboolean hn_search_has(const HnSearchState *s, const HnQuantPlan *p, const HnSensitivity *n);
guint hn_search_forms(const HnSearchState *s, const HnQuantPlan *p);
/* Forms of the base for those nodes that `wanted` marks; others are f32, or, with `less`, in the form that is. */
HnQuantPlan *hn_search_plan(const HnSearchState *s, const gboolean *wanted, gboolean less);
HnQuantPlan *hn_search_none(const HnQuantPlan *p); /* without any form */

/* p is the best plan so far; taken. */
gboolean hn_search_keep(HnSearchState *s, HnQuantPlan *p, const HnOutcome *o, GError **error);

/* --- times --- */

gboolean hn_search_time_all(HnSearchState *s, GError **error);
double hn_search_ms(const HnSearchState *s, const HnQuantPlan *p); /* expected; NaN: time is not asked for */

G_END_DECLS
