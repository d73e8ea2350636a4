/*
 * HnObjective: one of the losses whose weighted sum training lowers.
 *
 *     "ce"    "0.3*ce:smoothing=0.1+0.7*kl:temperature=4"    "mse@features"
 *
 * A name is that of a record's HnLossRule, behind it attributes of the operator; `@` names the value that is compared,
 * instead of the model's first output. Where a loss wants logits and the value is what a softmax made, its input is
 * compared; `logits=1` says that of a loss that takes any numbers: "mse:logits=1".
 */
#pragma once

#include "ir/build.h"
#include "op/infer.h"
#include "train/terms.h"

G_BEGIN_DECLS

typedef struct {
    const HnOp *op;
    HnTerms *terms;
    double weight;
    char *value;                    /* NULL: the model's first output */
    gboolean logits;                /* what a softmax reads is compared, not what it makes */
    char *like;                     /* the teacher's value; NULL: of the same name, else in the same place */
    gboolean log_value, log_target; /* logits are logarithms of the value, of the teacher's: they are probabilities that
                                       no softmax right in front of them made */
} HnObjective;

GPtrArray *hn_objectives_new(void); /* of HnObjective *, which it frees */
/* At least one. Errors: USAGE. */
GPtrArray *hn_objectives_parse(const char *text, GError **error);

/* "0.7*kl:temperature=4@scores", "mse@small(large)" of values of other names; g_free(). */
char *hn_objectives_describe(const GPtrArray *objectives);

#define HN_NO_AXIS G_MAXINT
/* The axis without which values of such dims, of which the first counts samples, have as many rows as there are labels;
 * HN_NO_AXIS: none, or no integers. labels may be NULL */
int hn_labelled_axis(const HnTensor *labels, int rank, const int64_t *dims);
/* The axis of classes of v: that of the softmax that makes it, else the one that labels tell; HN_NO_AXIS: neither. */
int hn_class_axis(const HnValue *v, int rank, const int64_t *dims, const HnTensor *labels);
/* The objective's axis of classes, where nobody said one, and something tells. labels: of the first output's samples;
 * NULL: there are none. */
void hn_objective_place(HnObjective *o, const HnGraph *g, const HnTypes *types, const HnTensor *labels);

/* The value of a graph, bound, that it compares. Errors: USAGE: it computes none of that name. */
HnValue *hn_objective_value(const HnObjective *o, const HnGraph *g, GError **error);
/* The type of its target where a value of type `compared`, a fixed tensor, is compared. Errors: SHAPE. */
HnType *hn_objective_target(const HnObjective *o, const HnType *compared, GError **error);

/* What a loss node compares, in a graph: made in the order of these calls. */
typedef struct {
    HnValue *value;  /* of the model */
    HnValue *target; /* a new input of the graph, of fixed type */
    HnValue *sum;    /* the loss */
} HnObjectiveNode;

/* Behind a value of numbers that the loss compares with a target: the node whose output 0 is the loss. Errors: BUDGET.
 */
HnNode *hn_objective_node(const HnObjective *o, HnGraph *g, HnValue *value, HnValue *target, HnDtype dtype,
                          GError **error);

/* Adds that node, and the input that it needs, to g, whose values have the types. Errors: USAGE (no such value), SHAPE,
 * TYPE. */
gboolean hn_objective_build(const HnObjective *o, HnGraph *g, const HnTypes *types, HnObjectiveNode *made,
                            GError **error);

/* Classes among which labels choose in a value of that type; 0: it is compared with a tensor. */
int64_t hn_objective_classes(const HnObjective *o, const HnType *compared);

/* The label that counts for none. */
int64_t hn_objective_ignored(const HnObjective *o);
/* Labels whose class has the largest of the scores in `value`, the first of equals; *of: labels that count, 0 where
 * they are not as many as there are rows of scores. */
int64_t hn_objective_hits(const HnObjective *o, const HnTensor *value, const HnTensor *labels, int64_t *of);

/* The same of a teacher's numbers instead of labels: rows whose largest numbers are in the same place. */
int64_t hn_objective_agrees(const HnObjective *o, const HnTensor *value, const HnTensor *target, int64_t *of);

/* What the sum over a batch is divided by to be a mean. target: of the batch; like: the type of the value that it is
 * compared with, of any number of samples. */
int64_t hn_objective_count(const HnObjective *o, const HnTensor *target, const HnType *like);

G_END_DECLS
