/*
 * HnStepGraph: a step of training as one graph that a session runs.
 *
 *     forward -> losses -> gradients (train/reverse.h) -> updates
 *
 * It is made of a model's copy for samples of one shape. Trained weights, the optimizer's states, averages of weights
 * and the running moments of normalizations are variables (run/variable.h). A gradient's update stands right behind the
 * last node that reads the old weight or adds to the gradient, so that neither lives longer than it must, unless the
 * norm of all gradients is asked for first.
 */
#pragma once

#include "run/variable.h"
#include "train/in_place.h"
#include "train/objective.h"
#include "train/trainable.h"
#include "train/update_rule.h"

G_BEGIN_DECLS

typedef enum { HN_PHASE_FORWARD, HN_PHASE_BACKWARD, HN_PHASE_UPDATE, HN_PHASES } HnPhase;

typedef struct {
    const GPtrArray *objectives; /* HnObjective * */
    const HnTensor *labels;      /* of a batch or a sample, which tell where classes lie if nobody says; may be NULL */
    const HnUpdateRule *rule;    /* NULL: gradients are results, and nothing is updated */
    HnTrainableOptions trainable;
    gboolean keep_statistics; /* normalizations go on with the moments that the file holds */
    gboolean straight;        /* through Round and its like as through the identity, also where nothing is quantized */
    HnType *const *in;        /* of the inputs that are no initializers, in order: fixed tensors */
    HnDtype half;           /* HN_F16, HN_BF16: forward and backward compute with such halves where operators take them;
                               what is trained stays f32. HN_UNDEFINED, as any other: in the model's own types */
    HnTensor *const *fixed; /* by input: the elements that it has in every step, where a branch may be chosen by them;
                               NULL: it differs. NULL: all differ */
} HnStepGraphOptions;

/* A weight that is trained. */
typedef struct {
    char *name;         /* in the graph */
    char *origin;       /* in the model; another one where it was in a branch that is always taken */
    HnValue *gradient;  /* NULL: no loss depends on it, and it is not trained */
    char *average;      /* name of the variable that averages it; NULL: none does */
    const HnGrid *grid; /* it is f32 for a weight that the file holds as integers; NULL: it is not. Borrowed */
    HnTensor *least;    /* a scale of integers: what is used does not fall below; NULL: it is none. Borrowed */
} HnTrained;

typedef struct {
    HnModel *model;
    guint n_in;               /* inputs of the model that it was made of; then come: */
    int state_in;             /* i64[2]: seed, step */
    guint n_objectives;       /* losses: */
    int target_in, factor_in; /* the first of as many targets, and of f32[] that each sum is multiplied by */
    int numbers_in;           /* f32[4] of hn_update_rule_numbers(); -1: nothing is updated */
    HnType **compared;        /* [n_objectives]: types of what losses compare */
    int gradient_out;         /* results begin with the losses' sums; of gradients the first; -1: there are none */
    int norm_out;             /* of all gradients; -1: it is not asked for */
    GArray *trained;          /* HnTrained, in the order of the file */
    HnInPlace *in_place;      /* what is quantized */
    GPtrArray *products;      /* char *: of hn_in_place_product(), in the model */
    GPtrArray *statistics;    /* char *: weights without gradient that each step replaces */
    GArray *variables;        /* HnVariable, ended by one without a name; names are values of the model */
} HnStepGraph;

/* Takes `work`, a model read for this, whose inputs have no fixed types yet. Errors: UNSUPPORTED: no weight is trained;
 * a node on the way to one has no gradient, one sentence that names node and weight; a node computes with integers;
 * VALUE: a scale of integers is not above 0. */
HnStepGraph *hn_step_graph_new(HnModel *work, const HnStepGraphOptions *o, GError **error);
void hn_step_graph_free(HnStepGraph *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnStepGraph, hn_step_graph_free)

/* Of a node of the graph. */
HnPhase hn_step_graph_phase(const HnNode *n);

G_END_DECLS
