/*
 * Trials as points: what each loses, takes and weighs, and which of them no other one beats.
 */
#pragma once

#include "tune/journal.h"
#include "check/score.h"

G_BEGIN_DECLS

/* A trial as a point: what it loses, takes and weighs. */
typedef struct {
    char *what, *plan; /* the latter its hash */
    HnScore score;
    double drop;
    gboolean met;       /* within the goals */
    double ms;          /* NaN: not known */
    gboolean predicted; /* ms is a sum of times of nodes, not a run */
    guint64 bytes;      /* of the weights */
    gboolean chosen;
    gboolean best; /* no other one is better in one of the three and as good in the others */
} HnParetoPoint;

GPtrArray *hn_pareto_new(void); /* HnParetoPoint * */
/* NULL: none of that plan. */
HnParetoPoint *hn_pareto_find(const GPtrArray *points, const char *plan);
/* A new one, unless the plan has one already; texts are copied. */
void hn_pareto_add(GPtrArray *points, const HnParetoPoint *p);
/* The one that is chosen, and no other. */
void hn_pareto_choose(GPtrArray *points, const char *plan);
/* Times that the journal knows instead of predicted ones, and which points are the best. */
void hn_pareto_finish(GPtrArray *points, const HnJournal *j);

G_END_DECLS
