/*
 * HnUpdateRule: what makes the next weights of gradients, how fast, and how that changes from step to step.
 *
 *     "adamw"    "adamw:lr=0.002:weight_decay=0.05"    "sgd:momentum=0.9:nesterov=1"    "lion"
 *
 * A name is that of a record's HnOptimizerRule, behind it attributes of the operator and `lr`.
 */
#pragma once

#include "ir/build.h"
#include "op/op.h"
#include "train/terms.h"

G_BEGIN_DECLS

#define HN_RULE_STATES 4 /* of an optimizer for a weight, at most */

typedef enum { HN_LR_CONSTANT, HN_LR_STEP, HN_LR_COSINE, HN_LR_LINEAR } HnLrCurve;

/* The learning rate of step t, from 1 on: rises in a line over `warmup` steps, then follows the curve until `steps`.
 * STEP: a tenth of it behind each third; COSINE and LINEAR end at `last` of it. */
typedef struct {
    HnLrCurve curve;
    int64_t warmup, steps;
    double last;
} HnLrSchedule;

double hn_lr_factor(const HnLrSchedule *s, int64_t t);
/* "constant", "step", "cosine", "linear". Errors: USAGE. */
gboolean hn_lr_curve_parse(const char *text, HnLrCurve *curve, GError **error);

typedef struct {
    const HnOp *op;
    HnTerms *terms;
    double lr;   /* before the schedule */
    double clip; /* largest norm of all gradients together; 0: any */
    double ema;  /* decay of the average of weights that is kept beside them; 0: none is */
} HnUpdateRule;

/* Errors: USAGE. */
HnUpdateRule *hn_update_rule_parse(const char *text, GError **error);
void hn_update_rule_free(HnUpdateRule *o);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnUpdateRule, hn_update_rule_free)

/* A node that makes the next w: in[0] is the weight, then its states, gradient, and the four numbers. `flat`: w has one
 * axis, and does not decay. */
HnNode *hn_update_rule_build(const HnUpdateRule *o, const HnBuild *b, HnValue *const *in, gboolean flat);

/* The four numbers of step t, from 1 on, the gradient taken as it is. */
void hn_update_rule_numbers(const HnUpdateRule *o, double lr, int64_t t, float v[4]);

G_END_DECLS
