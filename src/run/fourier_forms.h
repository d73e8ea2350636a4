/*
 * DFT and STFT: what a step says of its axis and lengths before it runs, for the kernels of all backends.
 */
#pragma once

#include "op/dft.h"
#include "run/backend.h"

G_BEGIN_DECLS

/* The number that input i holds; FALSE: it is not known before the run. */
gboolean hn_fourier_number(const HnStep *s, int i, int64_t *v);
/* Of a DFT: the axis from the front; -1: not known. */
int hn_fourier_axis(const HnStep *s);
/* Points of a DFT's signals; 0: not known. */
int64_t hn_fourier_length(const HnStep *s);
/* Points of an STFT's frames; 0: they, or the step between them, are not known. */
int64_t hn_fourier_frame(const HnStep *s);

G_END_DECLS
