/*
 * Losses (domain "hone"): parameters, and what their records and kernels share.
 *
 * Each is one number, a plain sum over rows or elements, so that parts of a batch add up: whoever wants a mean
 * multiplies by 1 / count. Input 0 is what is trained, input 1 what it should be. Each of those over rows has an
 * operator of the same name with "Grad" behind it for the gradient of input 0, with the loss's gradient as input 2.
 */
#pragma once

#include "op/loss_limits.h"
#include "op/op.h"

/* Of all of them; each reads what it has. */
typedef struct {
    int64_t axis, ignore_index;
    double smoothing, temperature;
    gboolean standardize, probabilities;
} HnLoss;

/* A tensor as rows along an axis: row i, of outer * inner, has n elements from hn_loss_row() on, `inner` apart. */
typedef struct {
    int64_t outer, n, inner;
} HnLossRows;

/* FALSE: the axis is outside the rank. */
gboolean hn_loss_rows(int64_t axis, const HnTensor *x, HnLossRows *r);
static inline int64_t hn_loss_row(const HnLossRows *r, int64_t i)
{
    return i / r->inner * r->n * r->inner + i % r->inner;
}

/* The class that label i says; -1: ignored. */
static inline int64_t hn_loss_label(const HnLoss *p, const HnTensor *labels, int64_t i)
{
    const int64_t label =
        labels->dtype == HN_I32 ? ((const int32_t *)labels->data)[i] : ((const int64_t *)labels->data)[i];
    return label == p->ignore_index ? -1 : label;
}
/* Are all either ignored or below n? Error: VALUE, which says the label and where it is. */
gboolean hn_loss_labels_fit(const HnLoss *p, const HnTensor *labels, int64_t n, GError **error);

/* Scores become logarithms of probabilities. */
void hn_loss_log_softmax(double *x, int64_t n);
