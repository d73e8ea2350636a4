/*
 * Weights of a model without norms, brought by a batch to where norms would keep them: from the first layer to the
 * last one, each channel that a linear layer makes gets mean 0 and standard deviation 1 (P. Krähenbühl et al.,
 * Data-dependent Initializations of Convolutional Neural Networks, ICLR 2016), as far as a bias and weights of its own
 * can do that.
 */
#pragma once

#include "run/session.h"
#include "train/trainable.h"

G_BEGIN_DECLS

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    HnTrainableOptions trainable;
    HnTensor *const *in; /* a batch */
} HnInitBatch;

/* Changes m, a model as it was read, by what `work`, another copy, which is taken, makes of the batch. Of a model that
 * has norms nothing is changed. Errors: those of running it. */
gboolean hn_init_by_batch(HnModel *m, HnModel *work, const HnInitBatch *o, GError **error);

G_END_DECLS
