/*
 * What a model's weights are like: how many elements are zero, their range, and channels that do nothing.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct {
    const HnValue *value;
    const HnTensor *tensor;
    const HnNode *user;            /* the first node that reads it; NULL: none */
    double zeros;                  /* part of all elements */
    double min, max, mean, stddev; /* of finite elements; NaN: none */
    gint64 not_finite;
    int axis;        /* of output channels; -1: it has none */
    gint64 channels; /* along the axis */
    gint64 dead;     /* channels in which no element reaches a millionth of the tensor's largest magnitude */
} HnWeightReport;

/* Zeros, range, mean and deviation of t into r, whose other fields stay. t is numeric, and loaded. */
void hn_weight_scan(const HnTensor *t, HnWeightReport *r);

/* HnWeightReport for each dense numeric weight of g and the graphs inside it, in file order. Nodes are bound. */
GArray *hn_weights_report(const HnGraph *g);

G_END_DECLS
