/*
 * HnTune: plans of any job, tried, timed and raced. What a plan is stays the job's business: here it has a name, which
 * is its hash, and a model comes of it. What the journal knows of that name is not done again.
 */
#pragma once

#include "check/score.h"
#include "perf/contest.h"
#include "tune/tune_budget.h"
#include "tune/journal.h"
#include "tune/pareto.h"

G_BEGIN_DECLS

typedef struct {
    gpointer data;
    char *(*hash)(gconstpointer plan); /* the same for plans of which the same model comes; g_free */
    HnModel *(*build)(gpointer data, gconstpointer plan, GError **error);
    GPtrArray *(*left_alone)(gpointer data, gconstpointer plan); /* char *: nodes that stay as they are */
    double (*expected_ms)(gpointer data, gconstpointer plan);    /* NaN: not known */
    /* Told of each trial, from 1; may be NULL. */
    /* Of the plan's model, m. NULL: the scorer says it. */
    gboolean (*score)(gpointer data, gconstpointer plan, HnModel *m, HnScore *score, GError **error);
    void (*tried)(gpointer data, gconstpointer plan, guint number, const char *what, const HnScore *score, double drop);
} HnTuneJob;

typedef struct {
    HnTuneJob job;
    HnScorer *scorer;
    const HnGoals *goals;
    const HnScore *original; /* as hn_scorer_original() */
    HnJournal *journal;
    GPtrArray *points; /* HnParetoPoint * */
    const HnBackend *backend;
    int threads;
    HnTuneBudget *budget;       /* may be NULL */
    const HnProgress *progress; /* may be NULL */
    guint trials;               /* so far */
} HnTune;

typedef struct {
    HnScore score;
    double drop, part; /* hn_goals_drop(), hn_goals_part() */
    gboolean met;
    guint64 bytes; /* of the weights */
} HnOutcome;

/* Scores the plan's model. is_point: it gets a row of the table, and counts once only. Errors: those of build, running
 * and the journal; INTERRUPTED. */
gboolean hn_tune_try(HnTune *t, gconstpointer plan, const char *what, gboolean is_point, HnOutcome *out,
                     GError **error);
/* A row of the table. */
void hn_tune_point(HnTune *t, const char *what, gconstpointer plan, const HnOutcome *o);
/* The row of this plan is the one that is chosen. */
void hn_tune_choose(HnTune *t, gconstpointer plan);

/* Own times of the nodes of each plan's model, out[n]; they are the journal's. Plans take turns. */
gboolean hn_tune_times(HnTune *t, const gconstpointer *plans, guint n, const HnNodeTimes **out, GError **error);
/* Time of `after` over that of `before`, to decide whether it is more than `most`, and no longer than it may be at most
 * `useful` (0: any); of a race in the journal verdict and 95 % interval are not known (NaN). */
gboolean hn_tune_race(HnTune *t, gconstpointer before, gconstpointer after, double most, double useful,
                      HnEffect *effect, GError **error);

G_END_DECLS
