/*
 * What quantizing shifts on the average, taken back by the biases: M. Nagel et al., "Data-Free Quantization Through
 * Weight Equalization and Bias Correction", 2019, the empirical form. Each channel's mean over samples is compared with
 * that of the f32 model, nodes in the order of the graph, each behind those corrected already.
 */
#pragma once

#include "quant/quant_plan.h"
#include "check/capture.h"

G_BEGIN_DECLS

typedef struct {
    guint nodes;   /* whose biases were corrected */
    guint rounds;  /* runs over the samples */
    double before; /* mean over nodes of (shift of the mean)^2 over the mean square of the output */
    guint known;   /* integers between nodes that rounds began with, all rounds together */
} HnCorrectLog;

typedef struct {
    /* A fresh copy of the f32 model with types, and the same with a plan carried out: the caller frees both. */
    HnModel *(*open)(gpointer data, GError **error);
    HnModel *(*build)(gpointer data, const HnQuantPlan *p, GError **error);
    gpointer data;
    HnCaptureOptions capture;
} HnCorrectOptions;

/* Fills p->shifts for its INT8 nodes of the main graph that have a place for a bias. Errors: those of open, build, and
 * of hn_capture_run(). */
gboolean hn_quant_correct(HnQuantPlan *p, const HnCorrectOptions *o, HnCorrectLog *log, GError **error);

/* Adds p's shifts to the biases of m, whose types are known. Errors: BUDGET. */
gboolean hn_quant_shift(const HnQuantPlan *p, HnModel *m, HnBudget *budget, GError **error);

G_END_DECLS
