/*
 * A model with another interface: fixed dimensions that become free, other names, pictures as they come from a camera,
 * probabilities and the best classes as results. And whether it computes the same: on the same data, put into the form
 * that each of the two takes.
 */
#pragma once

#include "base/progress.h"
#include "data/input_shapes.h"
#include "pass/free_batch.h"
#include "run/session.h"

G_BEGIN_DECLS

typedef struct {
    char *input;
    int axis;
    char *symbol;     /* "batch" */
    const char *also; /* nobody asked for it: why it is freed with others; NULL: somebody did */
} HnFaceFree;

typedef struct {
    char *from, *to;
} HnFaceRename;

/* What becomes of an input on its way into the model. */
typedef struct {
    char *input;
    gboolean nhwc;       /* the input has its channels last, the model has them second */
    gboolean u8;         /* the input is of bytes: (x - mean) / scale */
    int n_mean, n_scale; /* 0: 0 and 1; else one for all, or one for each channel */
    double mean[4], scale[4];
    gboolean channels_last; /* of the model's own input, where nhwc is not set: a mean belongs to the last axis */
} HnFacePixels;

/* What becomes of an output. */
typedef struct {
    char *output; /* NULL: the only one that it can be */
    gboolean softmax;
    int64_t top_k; /* 0: none */
} HnFaceScores;

typedef struct {
    GPtrArray *free;    /* HnFaceFree * */
    GPtrArray *renames; /* HnFaceRename * */
    GPtrArray *pixels;  /* HnFacePixels *, one per input */
    GPtrArray *scores;  /* HnFaceScores *, one per output */
} HnFaceOptions;

HnFaceOptions *hn_face_options_new(void);
void hn_face_options_free(HnFaceOptions *o);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnFaceOptions, hn_face_options_free)
gboolean hn_face_is_empty(const HnFaceOptions *o);
/* That of an input, made where there is none. */
HnFacePixels *hn_face_pixels(HnFaceOptions *o, const char *input);
HnFaceScores *hn_face_scores(HnFaceOptions *o, const char *output);

/* An input or output before and after; one of both is NULL where it came or went. */
typedef struct {
    gboolean input;
    char *old_name, *old_type, *new_name, *new_type;
    char *note; /* what was done, "" for nothing */
} HnFaceRow;

typedef struct {
    HnModel *model;
    GPtrArray *rows; /* HnFaceRow *: inputs, then outputs, in the order of the new model */
    int64_t n0;      /* samples of the original */
    int *batch;      /* per output of the original: axis of its samples in the new model, -1: none */
    int n_batch;
    guint sizes;   /* numbers of samples, or sizes, that it was run with; 0: none */
    guint n_apart; /* nodes that run for one sample after the other */
    char *apart;   /* the first one; NULL: there are none */
    char *mixes;   /* what was freed is a size, not a number of samples: the node that says so; NULL: it is none */
    double worst;  /* largest difference over what was allowed */
} HnFaced;

/* Dimensions of inputs that m leaves open, and that o frees or calls as those that it frees, become what these are, or
 * 1, and are freed with them. */
void hn_face_tie(HnModel *m, HnFaceOptions *o);

/* m, which has no functions and is not changed, with another face. A dimension that does not count samples is freed as
 * a size, where neither its place (the first, of 1) nor its name says that it does. A dimension that does not count
 * samples is freed as a size, where neither its place (the first, of 1) nor its name says that it does. States that
 * have to be freed with others are added to o->free. Errors: USAGE for names that are none, those of hn_free_batch().
 */
gboolean hn_face_change(const HnModel *m, HnFaceOptions *o, HnBudget *budget, HnFaced *out, GError **error);
void hn_faced_clear(HnFaced *f);

typedef struct {
    const HnBackend *backend;
    int threads;
    uint64_t seed;
    const HnShapes *shapes;         /* of open dimensions */
    const char *const *given_names; /* HnSamplesOptions: of inputs of the original that stay as they are */
    HnTensor *const *given;
    double rtol, atol; /* NaN: as numbers of the outputs' type allow */
    HnBudget *budget;
    const HnProgress *progress;
} HnFaceCheck;

/* Both on made-up data: of 1, 3 and 8 samples where a batch became free, against as many single runs; where a size did,
 * at that of the original, and by itself at two others, where shapes have to come out as declared. Errors: GUARD where
 * they differ; UNSUPPORTED where the original does not run. */
gboolean hn_face_check(const HnModel *m, const HnFaceOptions *o, const HnFaceCheck *c, HnFaced *f, GError **error);

G_END_DECLS
