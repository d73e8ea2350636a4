/*
 * HnPreprocess: how pictures and sound become a model's inputs, as options and key files say.
 *
 *     # preprocess.conf, beside the model
 *     [preprocess]
 *     preset=imagenet
 *     resize=256:bicubic
 *     [input depth]
 *     preset=none
 *     scale=1000
 *
 * Group [preprocess] is for all inputs, [input NAME] for one. Keys, which are also the names of options:
 *
 *   preset    imagenet, 0-1, -1-1 or none: sets mean and scale, imagenet also crop; what else is said comes after it
 *   mean      one number, or one a channel; a result is (x - mean) / scale, where x is 0 to 255 (a sound's -1 to 1)
 *   scale     the same
 *   u8        true: x as it is, whatever mean and scale were said before
 *   layout    nchw or nhwc (nct or ntc of sound)
 *   resize    WxH or N (the shorter side), then :bilinear, :bicubic or :nearest
 *   crop      WxH or N: the middle; N%: what is left is N % of the shorter side that the picture is resized to
 *   channels  1, 3, 4, or grey, rgb, bgr, rgba
 *   exif      true: pictures are turned as their Exif data say
 *   rate      samples a second of sound
 *
 * A key's last value counts.
 */
#pragma once

#include "data/image.h"

G_BEGIN_DECLS

#define HN_PREPROCESS_FILE "preprocess.conf"

typedef enum { HN_LAYOUT_ANY, HN_LAYOUT_CHANNELS_FIRST, HN_LAYOUT_CHANNELS_LAST } HnChannelLayout;

/* What is said about one input; zero: nothing. */
typedef struct {
    int n_mean, n_scale; /* 0: 0 and 1 */
    double mean[4], scale[4];
    gboolean u8, exif, bgr;
    HnChannelLayout layout;
    int resize_w, resize_h; /* 0, N: the shorter side; 0, 0: as the model says */
    HnFilter filter;
    int crop_w, crop_h;
    double crop_part; /* 0: not said */
    int channels;     /* 0: as the model says */
    int rate;         /* 0: as the file says */
} HnInputKeys;

typedef struct HnPreprocess HnPreprocess;

HnPreprocess *hn_preprocess_new(void);
void hn_preprocess_free(HnPreprocess *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnPreprocess, hn_preprocess_free)

/* input NULL: all of them. Errors: USAGE. */
gboolean hn_preprocess_set(HnPreprocess *p, const char *input, const char *key, const char *value, GError **error);

/* What a key file says. Errors: IO, FORMAT. */
gboolean hn_preprocess_read(HnPreprocess *p, const char *path, HnBudget *budget, GError **error);
gboolean hn_preprocess_read_text(HnPreprocess *p, const char *text, gsize size, const char *name, GError **error);

/* What holds for an input; p may be NULL. */
HnInputKeys hn_preprocess_keys(const HnPreprocess *p, const char *input);

/* Names that are neither of presets nor of a key are: hn_preprocess_set() refuses them, and so does this. */
gboolean hn_preprocess_is_preset(const char *name);

/* The inputs that have a group of their own, ended by NULL; g_free() the list alone. */
const char **hn_preprocess_inputs(const HnPreprocess *p);

/* "resize=256:bicubic crop=224x224 ...", the same for what does the same; g_free. */
char *hn_input_keys_describe(const HnInputKeys *k);

G_END_DECLS
