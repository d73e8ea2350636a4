/*
 * HnData: samples for a model's inputs, out of whatever --data and --calib name.
 *
 *   FOLDER          one ONNX test set (input_0.pb ...), each file one input as it stands
 *   FOLDER          test sets in test_data_set_N/, a sample each
 *   FOLDER          files *.npz or *.npy in the order of their names, a sample each
 *   FILE.npz        arrays whose first axis counts samples; one sample as it stands where the first axes differ
 *   FILE.npy        one input as it stands; samples along its first axis where it only fits so
 *   FILE            a picture or sound, made the input that data/media.h says; FOLDER, FILE.csv: several of them, as
 *                   data/media_files.h says
 *   FILE.csv, .txt  numbers, as an array [lines,numbers]; raw:FILE: the elements of an array (data/numbers.h)
 *   -               one of these files from stdin
 *   random[:N]      N made-up samples (1): typed, ids in range, masks 0 and 1
 *
 * The arrays of an .npz are matched by name, or, where they are called arr_0, arr_1, ..., by position; any name will do
 * for a model of one input. Labels are the array `label`. Test sets are matched by position, which counts the inputs
 * that are no initializers.
 *
 * A sample of an array that counts them is one row, with the first axis kept as 1 where the input declares as many
 * dimensions; where it declares a fixed first dimension B, a sample is B rows. Missing leading dimensions of a file
 * that holds one sample are added. Types are never converted. Samples may differ in shape.
 *
 * An HnData does not change once it is open, but for samples that it keeps: several threads may load samples.
 */
#pragma once

#include "data/input_shapes.h"
#include "data/media.h"
#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct HnData HnData;

typedef struct {
    HnBudget *budget;       /* of all that is read; NULL: unlimited */
    uint64_t seed;          /* of random samples */
    const HnShapes *shapes; /* of random samples, not copied: outlives the HnData; may be NULL */
    HnTensor *const *given; /* per input: the tensor that it gets in every sample, NULL: from the source. May be NULL */
    gboolean rows;          /* a .npy whose first axis is one that the model leaves open holds a sample in each row */
    gboolean drop_rest;     /* rows that do not fill a sample are left out; otherwise SHAPE */
    const HnPreprocess *preprocess; /* of pictures and sound; may be NULL */
    const char *cache;              /* folder that keeps what they become; NULL: none */
    gsize keep;                     /* bytes of samples that stay in memory once they were loaded; 0: none do */
} HnDataOptions;

/* Inputs are those that a session wants (hn_session_input()), and outlive the HnData. source NULL: all inputs are
 * given, one sample. Errors: IO, FORMAT, USAGE (no such source), SHAPE, TYPE, UNSUPPORTED, BUDGET. */
HnData *hn_data_open(const char *source, HnValue *const *inputs, int n, const HnDataOptions *options, GError **error);
void hn_data_free(HnData *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnData, hn_data_free)

/* Samples index[0..n) of d, for as long as d is there. */
HnData *hn_data_some(const HnData *d, const int64_t *index, int64_t n);
/* All of them but one. */
HnData *hn_data_without(const HnData *d, int64_t i);

int64_t hn_data_count(const HnData *d); /* samples */
gboolean hn_data_synthetic(const HnData *d);
gboolean hn_data_labelled(const HnData *d); /* FALSE where only reading a sample would tell */
const char *hn_data_source(const HnData *d);
/* Where a run on made-up samples failed by shapes or values, the error also says which sizes were guessed, as --shapes
 * wants them. d and *error may be NULL. */
void hn_data_explain(const HnData *d, GError **error);
const HnMediaTarget *hn_data_media(const HnData *d);     /* what pictures or sound become; NULL: other data */
HnValue *const *hn_data_inputs(const HnData *d, int *n); /* those that it was opened for */
/* Of sample i, counted as in HnSample.which: "set/test_data_set_0", "x.npz sample 12". g_free. */
char *hn_data_name(const HnData *d, int64_t i);

typedef struct {
    int n;           /* inputs */
    HnTensor **in;   /* NULL: there is none */
    HnTensor *label; /* may be NULL */
    char *name;      /* hn_data_name() of the first sample in it */
    int64_t index;   /* of the first sample in it: which[0] */
    int64_t count;   /* samples in it: a batch has more than one */
    int64_t *which;  /* count of them: their places in the source, hn_data_some() or not */
} HnSample;

void hn_sample_free(HnSample *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnSample, hn_sample_free)

HnSample *hn_data_load(const HnData *d, int64_t i, GError **error);
/* Sample i with its label alone, where data tell it apart from the inputs (hn_data_labelled()); else without any. */
HnSample *hn_data_load_label(const HnData *d, int64_t i, GError **error);
/* Of the first samples the one whose inputs are largest: samples may have different shapes, and memory is planned for
 * it. */
HnSample *hn_data_load_largest(const HnData *d, GError **error);

/*
 * Samples i of index[0..n) joined along their first axes (labels too). Errors: SHAPE where they cannot be, as when a
 * tensor has no axis or they differ in another one.
 */
HnSample *hn_data_load_batch(const HnData *d, const int64_t *index, int n, GError **error);

/* --- one after the other ----------------------------------------------------------------------------------------- */

typedef struct {
    int batch;        /* samples at a time, the last batch may be smaller; 0: 1 */
    int threads;      /* that load ahead; 0: loaded when asked for. Batches come in the same order always */
    int ahead;        /* batches loaded ahead, at most; 0: 2 per thread */
    gboolean shuffle; /* in an order that follows from seed */
    uint64_t seed;
    int64_t limit; /* first so many samples of that order; 0: all */
} HnDataIterOptions;

typedef struct HnDataIter HnDataIter;

HnDataIter *hn_data_iter_new(const HnData *d, const HnDataIterOptions *options);
void hn_data_iter_free(HnDataIter *it); /* waits for what is being loaded */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnDataIter, hn_data_iter_free)

/* NULL with an error, which ends it, or without one at the end. */
HnSample *hn_data_iter_next(HnDataIter *it, GError **error);
int64_t hn_data_iter_batches(const HnDataIter *it);

G_END_DECLS
