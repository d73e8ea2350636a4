/*
 * HnSamples: inputs for a model, and what the model makes of them.
 *
 * The model is run once on each sample, and its outputs are kept; then it may go, and its weights. Without data two
 * samples are made up, of two different shapes where the model leaves dimensions open: sizes are tried, the smallest
 * first, until the model accepts them, and more samples go through the numbers that its branches hang on. It is ready
 * to run for no more than one shape at a time.
 */
#pragma once

#include "base/error.h"
#include "base/progress.h"
#include "data/data.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnSamples HnSamples;

typedef struct {
    const HnBackend *backend;
    int threads; /* 0: hn_cpu_threads() */
    uint64_t seed;
    const char *source;             /* data; NULL: made up */
    const HnPreprocess *preprocess; /* of pictures and sound; may be NULL */
    const char *cache;              /* HnDataOptions.cache */
    int64_t samples;                /* at most; 0: 2 made-up ones, 8 of data */
    const HnShapes *shapes;         /* of open dimensions, for made-up ones; may be NULL */
    const char *const *given_names; /* inputs, NULL at the end, that get the same in every sample; may be NULL */
    HnTensor *const *given;         /* what they get */
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL */
} HnSamplesOptions;

/* The model is not needed any longer, the options are. Errors: those of hn_session_new(), where it is no valid model or
 * holds what is not supported; UNSUPPORTED where it does not run on any made-up sample; INTERRUPTED, BUDGET, those of
 * reading data. */
HnSamples *hn_samples_new(HnModel *m, const HnSamplesOptions *o, GError **error);
void hn_samples_free(HnSamples *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnSamples, hn_samples_free)

guint hn_samples_count(const HnSamples *s);
gboolean hn_samples_synthetic(const HnSamples *s);
/* "x:1x3x224x224 and 2x3x224x224": what was made up; "" otherwise. */
const char *hn_samples_shapes(const HnSamples *s);
/* The sizes of sample i, for whoever plans with them. */
const HnShapes *hn_samples_sizes(const HnSamples *s, guint i);
/* Those of sample i, in the order and the types of the original's inputs. */
HnTensor *const *hn_samples_inputs(const HnSamples *s, guint i);
/* The tensor of sample i for an input of that name, in the float type that the input has, into *out: a new reference,
 * or NULL where the original has no such input. */
gboolean hn_samples_input(const HnSamples *s, guint i, const HnValue *input, HnTensor **out, GError **error);
/* All inputs of all samples, into a SHA-256. */
void hn_samples_hash(const HnSamples *s, GChecksum *sum);

/* What the model said: output k of sample i, NULL: absent. */
int hn_samples_n_outputs(const HnSamples *s);
const char *hn_samples_output_name(const HnSamples *s, int k);
HnTensor *hn_samples_output(const HnSamples *s, guint i, int k);

/* Neither a model nor the choice of samples is to blame for this error: nothing else is worth trying. */
static inline gboolean hn_samples_is_final(const GError *error)
{
    return g_error_matches(error, HN_ERROR, HN_ERROR_INTERRUPTED) ||
           g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET) || g_error_matches(error, HN_ERROR, HN_ERROR_IO);
}

G_END_DECLS
