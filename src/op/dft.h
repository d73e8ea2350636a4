/*
 * Parameters of DFT and STFT, for their records and for backends.
 */
#pragma once

#include "op/op.h"

/* Inputs. */
enum { HN_DFT_X, HN_DFT_LENGTH, HN_DFT_AXIS };
enum { HN_STFT_SIGNAL, HN_STFT_STEP, HN_STFT_WINDOW, HN_STFT_LENGTH };

typedef struct {
    gboolean inverse;
    gboolean onesided; /* of a real signal: bins 0 to length / 2 alone, which say the others, too */
    gboolean by_input; /* the axis is input 2, -2 where it is absent */
    int64_t axis;      /* else */
} HnDft;

/* Bins of the spectrum of a real signal. */
static inline int64_t hn_dft_bins(int64_t length, gboolean onesided)
{
    return onesided ? length / 2 + 1 : length;
}
