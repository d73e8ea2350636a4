/*
 * HnSound: WAV, FLAC and whatever else libsndfile reads, as floats from -1 to 1.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "base/budget.h"

G_BEGIN_DECLS

typedef struct {
    int64_t frames;
    int channels, rate; /* rate: frames a second */
    float *data;        /* [frames][channels], of the budget */
    HnBudget *budget;
} HnSound;

void hn_sound_free(HnSound *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnSound, hn_sound_free)

gboolean hn_sound_is(gconstpointer data, gsize size);

/* Errors: FORMAT, also where a sample is not finite; UNSUPPORTED: no library for it; BUDGET. */
HnSound *hn_sound_read(const guint8 *data, gsize size, const char *name, HnBudget *budget, GError **error);

/* Its channels' mean, or one channel repeated. Errors: SHAPE: neither 1 nor as many as there are; BUDGET. */
HnSound *hn_sound_to_channels(HnSound *s, int channels, const char *name, GError **error);

/*
 * At another rate, by convolution with a sinc windowed by a squared cosine: 6 zero crossings to either side, cut off at
 * 0.99 of the lower rate's half (J. O. Smith, "Digital Audio Resampling"; the parameters are torchaudio's). It has
 * ceil(frames * rate / s->rate) frames. s itself where the rate is that; takes s.
 */
HnSound *hn_sound_to_rate(HnSound *s, int rate, GError **error);

G_END_DECLS
