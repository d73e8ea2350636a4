/*
 * How many micro-batches a batch is cut into where nobody says a number.
 *
 * Of samples that have nothing to do with each other, parts give the same gradients, and need memory for the values of
 * one part only. Nor does it take longer: what a part's nodes hand on stays in the caches.
 */
#pragma once

#include "train/trainer.h"

G_BEGIN_DECLS

typedef struct {
    int64_t batch; /* samples */
    gboolean fit;  /* as few parts as the limit of the trainers allows, ... */
    /* A trainer that cuts a batch so. Errors: BUDGET where it would need more than the limit. */
    HnTrainer *(*make)(int parts, gpointer data, GError **error);
    /* ... else so many that a part stays in the caches, if this is TRUE: see hn_micro_apart() */
    gboolean (*apart)(gpointer data);
    gpointer data;
    gboolean
        whole; /* not for the caches' sake: the device's memory is not the host's, and large batches keep it busy */
} HnMicroOptions;

/* A trainer of as many parts; *parts: how many. Normalizations that follow the batch keep it whole, unless `fit` says
 * so. Errors: those of make(). */
HnTrainer *hn_micro_trainer(const HnMicroOptions *o, int *parts, GError **error);

/* The number of parts, a divisor of the batch, for a step that needs `arena` bytes for the whole batch beside `own` of
 * weights and states. */
int hn_micro_parts(gsize arena, gsize own, int64_t batch);

/* Takes m, whose first dimensions are open. Of the first samples in `in`, with the batch first in all inputs: do
 * results for some of them not depend on the others, as far as running it both ways tells? */
gboolean hn_micro_apart(HnModel *m, const HnBackend *backend, HnTensor *const *in);

G_END_DECLS
