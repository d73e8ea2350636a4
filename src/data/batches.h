/*
 * HnBatches: batches to train with, without an end: one epoch after the other.
 *
 *     g_autoptr(HnBatches) b = hn_batches_new(data, &(HnBatchesOptions){ .batch = 64, .shuffle = TRUE }, error);
 *     while (hn_batches_place(b).epoch < 3) {
 *         g_autoptr(HnSample) s = hn_batches_next(b, NULL, error);
 *
 * The order of an epoch follows from seed and epoch alone, and so does what augmentation makes of a sample: the batches
 * behind a place are the same for any number of threads, and for those who begin there (from a checkpoint) and those
 * who came from the start. Loading ahead goes on into the next epoch.
 *
 * For one pass over a set in its own order, as in evaluating, there is HnDataIter (data/data.h).
 */
#pragma once

#include "data/augment.h"

G_BEGIN_DECLS

typedef struct {
    int batch;                /* samples in each; 0: 1 */
    int threads;              /* that load ahead; 0: loaded when asked for */
    int ahead;                /* batches loaded ahead, at most; 0: 2 per thread */
    gboolean shuffle;         /* else each epoch is in the set's own order */
    gboolean keep_rest;       /* the samples that do not fill a batch make a smaller one at the end of the epoch; else
                                 they are left out, other ones in each epoch where it is shuffled */
    uint64_t seed;            /* of orders and of augmentation */
    const HnAugment *augment; /* outlives the HnBatches; may be NULL */
    HnBudget *budget;         /* of augmented copies; NULL: unlimited */
} HnBatchesOptions;

/* Both count from 0. */
typedef struct {
    int64_t epoch;
    int64_t batch; /* of the epoch */
} HnBatchPlace;

typedef struct HnBatches HnBatches;

/* d outlives it. Errors: USAGE where d has fewer samples than a batch (and not keep_rest), and of hn_augment_check().
 */
HnBatches *hn_batches_new(const HnData *d, const HnBatchesOptions *options, GError **error);
void hn_batches_free(HnBatches *b); /* waits for what is being loaded */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnBatches, hn_batches_free)

int64_t hn_batches_per_epoch(const HnBatches *b);

/* The next batch; its place, unless at is NULL. After an error the place is as before: another call tries again.
 * Errors: hn_data_load_batch()'s, hn_augment_apply()'s. */
HnSample *hn_batches_next(HnBatches *b, HnBatchPlace *at, GError **error);

/* Of the batch that comes next: what a checkpoint keeps. Behind the last batch of an epoch it is the next epoch's
 * first.
 */
HnBatchPlace hn_batches_place(const HnBatches *b);
/* Go on from there; an epoch's number of batches as `batch` is the next epoch's start. Errors: VALUE (no such place).
 */
gboolean hn_batches_go(HnBatches *b, HnBatchPlace place, GError **error);

/* --- what may be wrong with a batch ------------------------------------------------------------------------------ */

typedef struct {
    int64_t classes;  /* labels are 0 to classes - 1 */
    gboolean ignores; /* and `ignored`, whatever it is (-100, 255): no class */
    int64_t ignored;
    int64_t count; /* labels that there have to be: of a batch of images its size, of pixels or tokens more */
} HnLabels;

/*
 * The labels of a batch as i64, in their own shape, whatever integers they are; s->label itself where it is i64.
 * NULL with an error that names sample and label: TYPE (no integers), SHAPE (not `count` of them, or no whole number of
 * them a sample), VALUE (out of range); FORMAT where there are none.
 */
HnTensor *hn_batch_labels(const HnData *d, const HnSample *s, const HnLabels *labels, HnBudget *budget, GError **error);

/* Whether inputs and label, where they are floats, are finite. VALUE names the first element that is not, its sample
 * and its input. */
gboolean hn_batch_finite(const HnData *d, const HnSample *s, GError **error);

G_END_DECLS
