/*
 * Accuracy repair: what a plan loses, and what can be done about it before nodes are given up.
 *
 *   rounding   weights' integers that fit together (quant/rounding.h)
 *   equalize   factors of channels move from a layer to the next, so that channels of a tensor use a scale alike
 *              (quant/equalize.h, from weights alone)
 *   smooth     the same from what samples show, with a strength of its own for each place (quant/equalize.h)
 *   ranges     a method of calibration for each tensor instead of one for all (quant/ranges.h)
 *   bias       means that integers shift are put back (quant/correct.h)
 *
 * Each is tried in this order behind those that were kept, and is kept where the error on samples that it has not seen
 * is lower than without it. Same model, samples and plan: same result.
 */
#pragma once

#include "quant/calib_method.h"
#include "quant/search.h"
#include "check/capture.h"

G_BEGIN_DECLS

typedef enum {
    HN_REPAIR_ROUNDING,
    HN_REPAIR_EQUALIZE,
    HN_REPAIR_SMOOTH,
    HN_REPAIR_RANGES,
    HN_REPAIR_BIAS,
    HN_REPAIRS,
} HnRepair;

#define HN_REPAIR_ALL ((1u << HN_REPAIRS) - 1)

const char *hn_repair_name(HnRepair r);
/* "auto" (all), "none", or names with commas between: a set of bits. Errors: USAGE. */
gboolean hn_repair_parse(const char *list, guint *set, GError **error);

/* One number for how wrong a model is, in the unit of a noise: 0 is right, smaller is better. The mean, as of factors,
 * of the noise of all outputs, of twice the distance of the worst cosine from 1 (which is the same, where errors are
 * noise) and, with half their weight and where there are such, of the square of the change of strong scores. */
double hn_repair_error(const HnScore *s);
/* The same in dB, which is what is told of repairs: what decides is what is printed. */
double hn_repair_db(const HnScore *s);

typedef struct {
    HnRepair repair;
    gboolean kept;
    HnScore before, after;
    char *what; /* for people: "23 weights, their error 0.31 times that of the nearest integers" */
} HnRepairStep;

typedef struct {
    GArray *steps; /* HnRepairStep */
    gboolean has_parts;
    HnScore weights, activations, full; /* the plan as it was: integers of one kind alone, and of both */
    HnScore repaired;
    guint kept;  /* set of bits */
    guint tried; /* the same: those that were not cut short */
} HnRepairLog;

void hn_repair_log_clear(HnRepairLog *log);

typedef struct {
    const HnSearchOptions *search; /* how models are opened, built and scored */
    HnCaptureOptions samples;      /* to repair with: those of the calibration */
    int64_t held_first, held;      /* to decide with: others */
    guint wanted;                  /* set of bits */
    gboolean parts;                /* what weights and activations lose alone is measured too */
    gboolean anyway; /* what is wanted is done without a look at scores, which are known: spans are those of `method` */
    /* From now on search->open() gives copies of m, whose weights are other ones; m stays the caller's. */
    gboolean (*replace)(gpointer data, HnModel *m, GError **error);
    /* p[HN_CALIB_METHODS], copies of one plan, get the spans that each method finds in what search->open() gives, which
     * makes the numbers of the model as it was before any repair where `same_units`. NULL: the plan has the spans of
     * the repaired model. */
    gboolean (*calibrate)(gpointer data, HnQuantPlan *const *p, gboolean same_units, GError **error);
    gsize reserve;       /* bytes that have to be left of the samples' budget; what leaves less is not kept */
    gboolean one_method; /* only the one asked for: it is `method` */
    HnCalibMethod method;
    gpointer data;
} HnRepairOptions;

/* Repairs the plan (*p may become another one). Errors: those of the repairs and of scoring, INTERRUPTED; *p is of no
 * use then but to be freed. */
gboolean hn_quant_repair(HnQuantPlan **p, const HnRepairOptions *o, HnRepairLog *log, GError **error);

G_END_DECLS
