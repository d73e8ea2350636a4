/*
 * HnFit: training over epochs: batches to a trainer, validation behind each epoch, the best weights so far,
 * checkpoints, an early end.
 *
 *     g_autoptr(HnFit) f = hn_fit_new(&options);
 *     hn_fit_run(f, error) && hn_fit_store(f, model, error)
 *
 * All that decides the result follows from the options and from the state that a checkpoint holds: who goes on from
 * one ends with the same bytes as who was never stopped.
 */
#pragma once

#include "base/progress.h"
#include "train/judge.h"
#include "train/trainer.h"

G_BEGIN_DECLS

/* What feeds a trainer. */
typedef struct {
    HnTrainer *trainer;
    HnBatches *batches;
    const HnData *data;       /* of the batches */
    const HnTargets *targets; /* of the trainer's objectives */
    HnType *const *compared;  /* of each objective: the fixed type of what it compares in a batch */
} HnFeed;

/* A step with the next batch. Errors: those of loading, of targets and of the step; a loss that is not finite is none.
 */
gboolean hn_feed_step(const HnFeed *f, double lr, HnStepLoss *made, GError **error);

typedef struct {
    int64_t epoch, steps; /* from 1 on; steps made so far */
    double loss;          /* mean over the steps of the epoch */
    double lr;            /* of its last step */
    HnJudgement judged;   /* samples 0: there was nothing to judge with */
    gboolean best;        /* so far */
} HnEpoch;

typedef struct {
    int64_t steps, of;        /* made; in all, unless it ends early */
    double lr, loss, running; /* of the step; mean of the epoch so far */
} HnFitStep;

typedef struct HnFit HnFit;

typedef struct {
    HnFeed feed;
    HnJudge *judge;                                     /* NULL: epochs are not judged, the last one is the best */
    HnModel *(*student)(gpointer data, GError **error); /* the model anew, to be judged; called where judge is set */
    void (*stepped)(gpointer data, const HnFitStep *s); /* behind each step; may be NULL */
    void (*judged)(gpointer data, const HnEpoch *e);    /* behind each epoch; may be NULL */
    gpointer data;
    int64_t epochs;
    int64_t patience; /* epochs without a better one that end it; 0: none do */
    HnLrSchedule schedule;
    double lr;
    gboolean averages;      /* are judged and kept, instead of the weights */
    gboolean last;          /* the last weights are kept, not the best */
    const char *checkpoint; /* written behind each epoch, and when work is stopped; NULL: none */
    int64_t every;          /* steps, behind which it is written too; 0: it is not */
    const char *recipe;     /* of a checkpoint: a hash of what the result depends on */
    const char *made;       /* what else a checkpoint says, for hn_fit_made(); NULL: nothing */
    HnBudget *budget;
    const HnProgress *progress;
} HnFitOptions;

HnFit *hn_fit_new(const HnFitOptions *o);
void hn_fit_free(HnFit *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnFit, hn_fit_free)

/* HnFitOptions.made of the checkpoint at `path`, "" where there was none; g_free(). Errors: those of reading. */
char *hn_fit_made(const char *path, HnBudget *budget, GError **error);

/* Goes on where the checkpoint at `path` was written. Errors: those of reading; USAGE: of another recipe. */
gboolean hn_fit_resume(HnFit *f, const char *path, GError **error);

/* Until the last epoch, or the early end. Errors: those of steps and of judging; GUARD: a loss that is not finite;
 * INTERRUPTED, BUDGET: of progress, behind which a checkpoint was written. */
gboolean hn_fit_run(HnFit *f, GError **error);

const GArray *hn_fit_epochs(const HnFit *f); /* HnEpoch */
double hn_fit_lr(const HnFit *f);            /* before the schedule: of a checkpoint, where it goes on with one */
int64_t hn_fit_best(const HnFit *f);         /* the epoch whose weights are kept; 0: none is */
/* Weights that are kept, for m, a model of the same file. Errors: BUDGET. */
gboolean hn_fit_store(const HnFit *f, HnModel *m, GError **error);

G_END_DECLS
