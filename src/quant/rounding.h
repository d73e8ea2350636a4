/*
 * Weights' integers chosen by what a node makes of them: the least squared error of its output over samples, instead of
 * the nearest integer to each weight.
 *
 * For a row of weights w and its integers' numbers v the error is (v - w)' H (v - w), where H sums the products of each
 * two inputs over samples. E. Frantar et al. minimize it in GPTQ (2022), K. Behdin et al. in QuantEase (2023): one
 * integer after the other becomes what is best while the others stay, until none changes. Neighbouring pixels are
 * alike, so most of it is that errors of a row add up to nothing, which the nearest integers do not do.
 *
 * Deterministic; memory does not grow with the number of samples.
 */
#pragma once

#include "quant/pack_weights.h"
#include "quant/quant_plan.h"
#include "check/capture.h"

G_BEGIN_DECLS

typedef struct {
    guint weights;        /* whose integers were chosen */
    guint skipped;        /* of other operators, or too long */
    double before, after; /* sums over weights of error over signal, of the nearest integers and of those chosen */
} HnRoundingLog;

/* For all weights of p's integer nodes in m, a fresh copy with types, which is of no use afterwards. Where an operator
 * or a bound excludes one, it keeps the nearest integers. What has 4 bits is rounded to 8, too, for plans that give it
 * these. Errors: those of hn_capture_run(), BUDGET. */
gboolean hn_quant_round(HnQuantPlan *p, HnModel *m, const HnCaptureOptions *o, HnRoundingLog *log, GError **error);

/* The same for p[o->n], which are alike: those of p[i] are chosen by all samples but the i-th, in one pass over them.
 */
gboolean hn_quant_round_without(HnQuantPlan *const *p, HnModel *m, const HnCaptureOptions *o, GError **error);

/* A weight's integers in a plan. */
typedef struct {
    HnPacked packed;
} HnRounded;

void hn_rounded_unref(HnRounded *r);
HnRounded *hn_rounded_ref(HnRounded *r);

/* k, which holds the nearest integers, gets those of the plan for `weight`, where there are any of that form; not in
 * channels whose scale has to be larger than it was then. */
void hn_rounded_use(const HnQuantPlan *p, const char *weight, HnQuantForm form, HnPacked *k);

G_END_DECLS
