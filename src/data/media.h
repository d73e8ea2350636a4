/*
 * Pictures and sound as tensors: what an input's type and the keys of an HnPreprocess make of a file.
 *
 * A picture goes through these steps: turned (exif), resized, cropped to its middle, its channels converted, each value
 * x (0 to 255) replaced by (x - mean) / scale, laid out. Layout, number of channels and size are the input's where it
 * declares them:
 *
 *   [N,C,H,W], [N,H,W,C]   by the axis that is 1, 3 or 4, channels first where both or none are
 *   [C,H,W], [H,W,C]       by the same; [N,H,W] of grey values where none is
 *   [H,W]                  grey values
 *
 * Sound goes to [T], [N,T], [N,C,T] or [N,T,C]: resampled to `rate`, mixed to the channels that are wanted (their mean;
 * one is repeated), from -1 to 1 where the input holds floats, in the whole range of a signed integer; cut off or
 * filled with zeros at its end where T is fixed.
 *
 * N, where it is fixed, is how many files make a sample.
 */
#pragma once

#include "data/preprocess.h"
#include "ir/graph.h"

G_BEGIN_DECLS

typedef enum { HN_MEDIA_NONE, HN_MEDIA_IMAGE, HN_MEDIA_SOUND } HnMediaKind;

/* What these bytes begin like. */
HnMediaKind hn_media_kind(gconstpointer data, gsize size);
/* The same by a file's name: what folders are looked through for. */
HnMediaKind hn_media_kind_of_name(const char *name);
/* FALSE: a file called as pictures or sound are, whose contents are of no kind. Errors: FORMAT. */
gboolean hn_media_is_as_named(const char *name, HnMediaKind kind, GError **error);

typedef struct {
    HnMediaKind kind;
    const HnValue *input;
    HnInputKeys keys;
    HnDtype dtype;
    int rank;               /* of a sample */
    gboolean batched;       /* its first axis counts files: */
    int64_t files;          /* so many */
    gboolean channel_axis;  /* there is one */
    gboolean channels_last; /* of a row, which is a sample without its first axis where that counts files */
    int channels;           /* of the tensor */
    int64_t height, width;  /* 0: as the file has them; of sound, width is T and height 1 */
    gboolean unscaled;      /* floats of which nobody said what they should range over */
} HnMediaTarget;

/* Errors: USAGE: keys that do not fit the input, or the kind; SHAPE, TYPE: an input that no such file fits. */
gboolean hn_media_target(HnMediaTarget *t, const HnValue *input, HnMediaKind kind, const HnPreprocess *p,
                         GError **error);

/* One file as a row. Errors: FORMAT, SHAPE: its size does not fit; UNSUPPORTED, BUDGET. */
HnTensor *hn_media_row(const HnMediaTarget *t, GBytes *bytes, const char *name, HnBudget *budget, GError **error);

/* The same of the file at `path`, out of the folder `cache` where it is there (NULL: none), else put there. What it is
 * kept under follows from the file's path, size and time and from all that t says. Errors: IO, too. */
HnTensor *hn_media_row_cached(const HnMediaTarget *t, const char *path, const char *cache, HnBudget *budget,
                              GError **error);

/* Rows, t->files of them, as a sample; takes none of them. Errors: SHAPE: rows differ; BUDGET. */
HnTensor *hn_media_join(const HnMediaTarget *t, HnTensor *const *rows, HnBudget *budget, GError **error);

/* "f32 [1,3,224,224] of pictures: 224x224 bilinear, rgb, mean ..., scale ..."; g_free. */
char *hn_media_describe(const HnMediaTarget *t);

G_END_DECLS
