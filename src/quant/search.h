/*
 * Which nodes become integers: by measured error and measured time.
 *
 * Each trial is a plan carried out on a fresh copy of the model and run on held-out samples. All candidates together
 * come first. Where that loses too much, each is tried alone, and those that lose most stay f32, as few as possible.
 * Then nodes whose integer form is not faster than the f32 form go back, as long as that makes the whole faster.
 */
#pragma once

#include "check/gain.h"
#include "quant/qdq.h"
#include "quant/score.h"

G_BEGIN_DECLS

typedef struct {
    const HnQuantPlan *plan;
    guint number;     /* from 1 */
    const char *what; /* "all", "only 'conv1'", "without 3" */
    HnScore score;
    double drop; /* hn_score_drop() */
} HnTrial;

typedef struct {
    /* A fresh copy of the prepared model, its types known: the caller frees it. */
    HnModel *(*open)(gpointer data, GError **error);
    gpointer data;
    HnScorer *scorer;
    HnMetric metric;
    double max_drop;
    gboolean by_time;   /* leave what integers do not make faster */
    gboolean all_alone; /* each candidate alone in any case: the sensitivity table */
    const HnBackend *backend;
    int threads;
    double seconds; /* for the whole search; 0: no limit */
    HnBudget *budget;
    const HnProgress *progress;
    void (*trial)(gpointer data, const HnTrial *t); /* told of each; may be NULL */
    /* The score of a plan that an earlier, interrupted search has tried; FALSE: not known. May be NULL. */
    gboolean (*known)(gpointer data, const HnQuantPlan *p, HnScore *score);
} HnSearchOptions;

/* A node with weights. */
typedef struct {
    char *name, *op;
    double weight_bytes; /* as f32 */
    gboolean tried;      /* alone; then: */
    HnScore alone;
    double drop;
    double f32_ms, int_ms; /* own time, NaN: not measured */
    HnQuantForm form;      /* in the plan found */
    const char *why;       /* of HN_FORM_F32: "error", "slower", ...; else NULL */
} HnSensitivity;

typedef struct {
    GPtrArray *nodes;  /* HnSensitivity *, in the model's order */
    HnQuantPlan *plan; /* the one found; NULL: no plan keeps within max_drop */
    HnScore score, original;
    double drop;
    guint trials;
    gboolean out_of_time;
} HnSearch;

/* base: options, spans, and the forms of what may be quantized. Errors: those of open, apply and running; INTERRUPTED.
 */
gboolean hn_quant_search(const HnQuantPlan *base, const HnSearchOptions *o, HnSearch *out, GError **error);
void hn_search_clear(HnSearch *s);

/* The plan carried out on a fresh copy. */
HnModel *hn_quant_build(const HnQuantPlan *p, const HnSearchOptions *o, HnQuantLog *log, GError **error);

G_END_DECLS
