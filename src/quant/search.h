/*
 * Which nodes become integers: by measured error and measured time.
 *
 * Each trial is a plan carried out on a fresh copy of the model and run on held-out samples. All candidates together
 * come first. Where that loses a little too much, a few are looked for without which it does not. Where it loses more,
 * error, as each node makes it alone, gets a price, and the plan with the least time, conversions at the borders
 * included (quant/int8_partition.h), is found for the lowest price that will do; where time is not asked for, as few
 * nodes as possible go that lose most for their bytes. Then what stays f32 is given back, one by one, where there is
 * room for its error. Last comes time: nodes that integers do not make faster go back in regions, as long as whole
 * models, raced against each other, get faster.
 *
 * What was tried and timed is in a journal (tune/journal.h): what it knows is not done again, so that a search that
 * goes on with one, or finds its times in the cache, chooses the same.
 */
#pragma once

#include "check/speedup.h"
#include "tune/pareto.h"
#include "tune/tune_budget.h"
#include "quant/qdq.h"

G_BEGIN_DECLS

typedef struct {
    const HnQuantPlan *plan;
    guint number;     /* from 1 */
    const char *what; /* "all", "only 'conv1'", "without 3" */
    HnScore score;
    double drop; /* hn_goals_drop() */
} HnTrial;

typedef struct {
    /* A fresh copy of the prepared model, its types known: the caller frees it. */
    HnModel *(*open)(gpointer data, GError **error);
    gpointer data;
    HnScorer *scorer;
    HnGoals goals;
    const HnQuantPlan *fixed; /* tried as it is, instead of a search; NULL: none */
    gboolean by_time;         /* leave what integers do not make faster */
    gboolean quick;           /* any plan will do: the first found, by as few trials as may be */
    gboolean all_alone;       /* each candidate alone in any case: the sensitivity table */
    gboolean accumulated;     /* errors at each node's output in the plan `base` too */
    GHashTable *pinned;       /* names of nodes whose form stays, whatever it costs; may be NULL */
    guint64 most_bytes;       /* of the weights: nothing goes back for time's sake beyond that; 0: no limit */
    const HnBackend *backend;
    int threads;
    HnTuneBudget *budget; /* started by the search, if nobody did before; may be NULL */
    const HnProgress *progress;
    HnJournal *journal;                             /* NULL: one of its own */
    void (*trial)(gpointer data, const HnTrial *t); /* told of each; may be NULL */
    /* Makes again what depends on all forms of a plan together: shifts of biases, which are those of the base
     * otherwise. May be NULL. */
    gboolean (*refine)(gpointer data, HnQuantPlan **p, GError **error);
    /* What a plan loses, where that is not what its model says on the scorer's samples. May be NULL. */
    gboolean (*score)(gpointer data, const HnQuantPlan *p, HnScore *score, GError **error);
    /* The plan is the best so far. May be NULL; FALSE with an error ends the search. */
    gboolean (*improved)(gpointer data, const HnQuantPlan *p, GError **error);
} HnSearchOptions;

/* A node with weights. */
typedef struct {
    char *name, *op;
    double weight_bytes, int_bytes; /* as f32, and in its form */
    double noise;   /* energy of rounding its weights to 8 bits, over theirs; of a quick search, else 0 */
    gboolean tried; /* alone; then: */
    HnScore alone;
    double drop;
    double accumulated;    /* dB, at its output with all candidates quantized; NaN: not looked at */
    guint region;          /* chain of integer nodes that it is in when all candidates are, from 1; 0: of none */
    double f32_ms, int_ms; /* own time, NaN: not measured */
    HnQuantForm less;      /* what it is where its form loses too much: f32, or 8 bits instead of 4 */
    HnQuantForm form;      /* in the plan found */
    const char *why;       /* of HN_FORM_F32: "error", "slower"; else NULL */
} HnSensitivity;

typedef struct {
    GPtrArray *nodes;  /* HnSensitivity *, in the model's order */
    GPtrArray *points; /* HnParetoPoint *: the f32 model, then each plan that was tried with most nodes */
    HnQuantPlan *plan; /* the one found; NULL: no plan keeps within the goals */
    gboolean scored;   /* `score` and `drop` are known, and are the plan's */
    HnScore score, original;
    double drop;
    /* The plan that it began with (`fixed`, else the base): whether it was tried to the end, and what it lost. */
    gboolean tried_first;
    HnScore first_score;
    double first_drop;
    guint trials;
    gboolean out_of_time, refined;
    gboolean slower; /* the plan has no integers left, since f32 is faster than any */
} HnSearch;

/* base: options, spans, and the forms of what may be quantized. Errors: those of open, apply, running and the journal;
 * INTERRUPTED. What was found until then is in *out, too. */
gboolean hn_quant_search(const HnQuantPlan *base, const HnSearchOptions *o, HnSearch *out, GError **error);
void hn_search_clear(HnSearch *s);
/* p, a copy of the plan that the search began with, is the one found, whatever it loses; taken. */
void hn_search_insist(HnSearch *s, HnQuantPlan *p);

/* The plan carried out on a fresh copy. */
HnModel *hn_quant_build(const HnQuantPlan *p, const HnSearchOptions *o, HnQuantLog *log, GError **error);

G_END_DECLS
