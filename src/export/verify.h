/*
 * HnVerify: does a rewritten model compute what the original does?
 *
 *     g_autoptr(HnVerify) v = hn_verify_new(original, &options, &error);
 *     if (v == NULL) ...                      the original itself cannot be run: error says why
 *     if (!hn_verify(v, candidate, &tolerance, 0, &found, &error)) ...
 *
 * The original is run once on each sample, and its outputs are kept; candidates are held against them, after the
 * original is gone. Without data two samples are made up, of two different shapes where the model leaves dimensions
 * open: sizes are tried, the smallest first, until the original accepts them. No more than one model is ready to run at
 * a time, for no more than one shape.
 */
#pragma once

#include "base/progress.h"
#include "check/compare.h"
#include "data/data.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct HnVerify HnVerify;

typedef struct {
    const HnBackend *backend;
    int threads; /* 0: hn_cpu_threads() */
    uint64_t seed;
    const char *source;     /* data; NULL: made up */
    int64_t samples;        /* at most; 0: 2 made-up ones, 8 of data */
    const HnShapes *shapes; /* of open dimensions, for made-up ones; may be NULL */
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL */
} HnVerifyOptions;

/* The original is not needed any longer, nor are its weights. Errors: those of hn_session_new(), where it is no valid
 * model or holds what is not supported; UNSUPPORTED where it does not run on any made-up sample; INTERRUPTED, BUDGET,
 * those of reading data. */
HnVerify *hn_verify_new(HnModel *original, const HnVerifyOptions *o, GError **error);
void hn_verify_free(HnVerify *v);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnVerify, hn_verify_free)

guint hn_verify_samples(const HnVerify *v);
gboolean hn_verify_synthetic(const HnVerify *v);
/* "x:1x3x224x224 and 2x3x224x224": what was made up; "" otherwise. */
const char *hn_verify_shapes(const HnVerify *v);
/* The sizes of sample i, for whoever plans with them. */
const HnShapes *hn_verify_sizes(const HnVerify *v, guint i);
/* The tensor of sample i for an input of that name, in the float type that the input has, into *out: a new reference,
 * or NULL where the original has no such input. */
gboolean hn_verify_input(const HnVerify *v, guint i, const HnValue *input, HnTensor **out, GError **error);

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
    double part;       /* of the largest magnitude among channels of the element's kind (check/kinds.h) */
} HnVerifyTolerance;

/* What is NaN becomes what results of the original are known to. rtol: 1e-3 in f32, some roundings more where it holds
 * f16 or bf16. part: 1e-4, or some roundings; none where atol is given. atol: 0. */
void hn_verify_tolerance(const HnVerify *v, HnVerifyTolerance *t);

/* Elements have to agree within the sum of the three; integers, booleans and strings exactly. A part is never taken of
 * less than what rounding in f32 leaves of the output's largest magnitude. Inputs are
 * matched by name and converted where the candidate takes another float type. A candidate that does not run is not
 * equal. `samples`: only so many of the first ones; 0: all. Errors say nothing about the candidate, and leave *out
 * empty: BUDGET, IO, INTERRUPTED. */
gboolean hn_verify(const HnVerify *v, HnModel *candidate, const HnVerifyTolerance *t, guint samples, HnVerified *out,
                   GError **error);
void hn_verified_clear(HnVerified *out);

/* All inputs of all samples, into a SHA-256. */
void hn_verify_hash(const HnVerify *v, GChecksum *sum);

G_END_DECLS
