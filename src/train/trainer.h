/*
 * HnTrainer: a model while it learns, one batch after the other.
 *
 *     g_autoptr(HnTrainer) t = hn_trainer_new(work, device, &options, &error);
 *     for each batch: hn_trainer_step(t, inputs, targets, lr, &loss, &error)
 *     hn_trainer_store(t, model, FALSE, &error)
 *
 * A batch may be cut into micro-batches of one size, numbered from 0 on: their gradients are added two and two, then
 * these sums two and two, and so on, so that the sum is the same however the work is spread. One micro-batch is a
 * single graph, which updates weights as their gradients come; of several, a graph makes gradients, and another one
 * updates what both see.
 *
 * A step whose loss, or norm of gradients where it is asked for, is not finite changes no weight, state of the
 * optimizer, average or running moment. In f16 losses are scaled (train/loss_scale.h), and the norm always is asked
 * for.
 */
#pragma once

#include "run/session.h"
#include "train/recompute.h"
#include "train/step_graph.h"

G_BEGIN_DECLS

typedef struct {
    const GPtrArray *objectives; /* HnObjective *; outlive the trainer */
    const HnTensor *labels;      /* as HnStepGraphOptions says */
    const HnUpdateRule *rule;    /* outlives it, too */
    HnTrainableOptions trainable;
    gboolean keep_statistics;
    gboolean straight; /* as HnStepGraphOptions.straight */
    HnType *const *in; /* of a batch: fixed tensors; those whose first axis is as long as that of the first are cut */
    HnTensor *const *fixed; /* as HnStepGraphOptions.fixed */
    int micro;              /* micro-batches; 0: 1 */
    int threads;            /* 0: as many as there are */
    HnDtype half;    /* HN_BF16, HN_F16: forward and backward compute with such halves, and weights stay f32. On the CPU
                        bf16 is of the products that HnSessionOptions.bf16 is of, and f16 is emulated. Else f32 */
    int scale_every; /* of f16: HN_LOSS_SCALE_EVERY; 0: the usual number */
    uint64_t seed;
    HnBudget *budget;
    gboolean checkpoint; /* forward values are made again (train/recompute.h): those that hardly take time, and more
                            where the limit asks for it ... */
    int segments;        /* ... or as many segments do, whatever the limit is; 0: as the limit asks */
    gsize limit;         /* bytes of arena, weights and states, ...; 0: any */
    gsize taken;         /* ... and of what takes part of them already */
} HnTrainerOptions;

/* Known before the first step. */
typedef struct {
    gsize plain;  /* bytes of arena, weights and states without recomputation */
    gsize needed; /* and with it */
    guint nodes;  /* made again */
    double part;  /* of the time of a step that they take, by their records' costs */
} HnForecast;

typedef struct HnTrainer HnTrainer;

/* Takes work, as hn_step_graph_new() does. Errors: its own, those of planning, BUDGET: also where a step would need
 * more than the limit, one sentence that tells how much; SHAPE: inputs cannot be cut so. */
HnTrainer *hn_trainer_new(HnModel *work, HnDevice *device, const HnTrainerOptions *o, GError **error);
void hn_trainer_free(HnTrainer *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnTrainer, hn_trainer_free)

/* The type of objective i's target for a batch. Borrowed. */
HnType *hn_trainer_target(const HnTrainer *t, guint i);
/* The type of what it compares. A new reference. */
HnType *hn_trainer_compared(const HnTrainer *t, guint i);
/* Classes that objective i tells apart; 0: it compares with a tensor. */
int64_t hn_trainer_classes(const HnTrainer *t, guint i);
/* Weights that are trained: how many, and of how many elements. */
guint hn_trainer_weights(const HnTrainer *t, int64_t *elements);
/* What the file holds as integers, or makes integers of, is trained in place (train/in_place.h). */
gboolean hn_trainer_in_place(const HnTrainer *t);
/* Normalizations whose running moments follow the batches. */
guint hn_trainer_statistics(const HnTrainer *t);

typedef struct {
    double loss;      /* weighted sum of means over the batch, before the update */
    double norm;      /* of all gradients; NaN: it was not asked for */
    gboolean skipped; /* gradients were not finite in f16: nothing was changed, and the next ones are scaled down */
} HnStepLoss;

/* One step: in, targets as their types say. Errors: those of running; VALUE: labels out of range; NaN. */
gboolean hn_trainer_step(HnTrainer *t, HnTensor *const *in, HnTensor *const *targets, double lr, HnStepLoss *made,
                         GError **error);
/* Behind a step on the same batch whose loss was not finite: runs it again, which changes nothing, and names the
 * first node with an infinity or NaN in what it makes; an attention's mask of infinities counts, too. NULL: there is
 * none, or the step failed. */
char *hn_trainer_find_nonfinite(HnTrainer *t, HnTensor *const *in, HnTensor *const *targets);
int64_t hn_trainer_steps(const HnTrainer *t); /* made so far */
/* Of f16: what losses are multiplied by now, and how many steps were skipped; else 1 and 0. */
double hn_trainer_scale(const HnTrainer *t, int64_t *skipped);

/* What was learned goes to the weights of m, a model of the same file, by their names: averages where there are some,
 * if `averages` says so. Errors: BUDGET. */
gboolean hn_trainer_store(const HnTrainer *t, HnModel *m, gboolean averages, GError **error);

/* The same one by one, with the name in the model, as the file has it: integers of a grid that is trained in place.
 * Borrowed, until the trainer is asked for it again. NULL: no loss depends on that weight, or `error` is set: BUDGET.
 */
guint hn_trainer_n_learned(const HnTrainer *t);
HnTensor *hn_trainer_learned(const HnTrainer *t, guint i, gboolean averages, const char **name, GError **error);
/* A copy of these elements for the weight of that name, where m has one. Errors: BUDGET. */
gboolean hn_trainer_put(HnModel *m, const char *name, const HnTensor *elements, GError **error);

/* All that a checkpoint holds beside the numbers of steps: HnTensor * by name, borrowed, to be read behind
 * hn_trainer_fetch(), or written while no step runs, with hn_trainer_wrote() behind it; who writes some of them only
 * fetches first. */
gboolean hn_trainer_fetch(const HnTrainer *t, GError **error);
guint hn_trainer_n_states(const HnTrainer *t);
HnTensor *hn_trainer_state(const HnTrainer *t, guint i, const char **name);
void hn_trainer_wrote(HnTrainer *t, int64_t steps);

/* The session of forward and backward; its nodes' phases are told by hn_step_graph_phase(). */
HnSession *hn_trainer_session(const HnTrainer *t);
/* Bytes of weights, states and averages. */
gsize hn_trainer_bytes(const HnTrainer *t);
/* Bytes that a step needs beside them: arenas, and of several micro-batches their gradients and sums of these. */
gsize hn_trainer_arena(const HnTrainer *t);
void hn_trainer_forecast(const HnTrainer *t, HnForecast *forecast);

G_END_DECLS
