/*
 * HnVerify: does a rewritten model compute what the original does?
 *
 *     g_autoptr(HnVerify) v = hn_verify_new(original, &options, &error);
 *     if (v == NULL) ...                      the original itself cannot be run: error says why
 *     if (!hn_verify(v, candidate, &tolerance, 0, &found, &error)) ...
 *
 * Candidates are held against what the original made of samples (check/samples.h), after it is gone. No more than one
 * model is ready to run at a time, for no more than one shape.
 */
#pragma once

#include "check/tensor_diff.h"
#include "check/samples.h"

G_BEGIN_DECLS

typedef struct HnVerify HnVerify;

/* The original is not needed any longer, the options are. Errors: those of hn_samples_new(). */
HnVerify *hn_verify_new(HnModel *original, const HnSamplesOptions *o, GError **error);
void hn_verify_free(HnVerify *v);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnVerify, hn_verify_free)

const HnSamples *hn_verify_samples(const HnVerify *v);

typedef struct {
    const char *name; /* of the output */
    double max_abs;   /* largest difference over all samples */
    double scale;     /* largest magnitude of the original's output */
    gboolean equal;
    char *why; /* what differs, where it does; else NULL */
} HnVerifyRow;

typedef struct {
    guint n;
    HnVerifyRow *row;
    gboolean equal; /* all are */
    char *why;      /* the first reason: "output 'y': ..." or why the candidate cannot be run; NULL where equal */
    double worst;   /* largest difference over the largest magnitude of the element's kind */
} HnVerified;

typedef struct {
    double rtol, atol; /* of an element's magnitude, and as it is: as in all tools */
    double part;       /* of the largest magnitude among channels of the element's kind (check/channel_kinds.h) */
} HnVerifyTolerance;

/* What is NaN becomes what results of the original are known to. rtol: 1e-3 in f32, some roundings more where it holds
 * f16 or bf16. part: 1e-4, or some roundings; none where atol is given. atol: 0. */
void hn_verify_tolerance(const HnVerify *v, HnVerifyTolerance *t);

/* Elements have to agree within the sum of the three; integers, booleans and strings exactly. A part is never taken of
 * less than what rounding in f32 leaves of the output's largest magnitude; angles may be a turn apart. Inputs are
 * matched by name and converted where the candidate takes another float type. A candidate that does not run is not
 * equal. `samples`: only so many of the first ones; 0: all. Errors say nothing about the candidate, and leave *out
 * empty: BUDGET, IO, INTERRUPTED. */
gboolean hn_verify(const HnVerify *v, HnModel *candidate, const HnVerifyTolerance *t, guint samples, HnVerified *out,
                   GError **error);
void hn_verified_clear(HnVerified *out);

G_END_DECLS
