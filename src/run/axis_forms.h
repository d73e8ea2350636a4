/*
 * Steps along axes: what the kernels of all backends ask of them. Each answer is a reason why not; NULL: it is so.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

/* Of a reduction, or of SumLike (`like`): which axes of input 0 are reduced, [rank] of them. */
const char *hn_reduced_axes(const HnStep *s, gboolean like, gboolean *mask);
/* Of CumSum and CumProd: the axis is known, and there is one. */
const char *hn_cumulated_axis(const HnStep *s);
/* Input x has an axis of channels, and inputs [first, last], where they are there, one element for each. */
const char *hn_channel_inputs(const HnStep *s, int x, int first, int last);

G_END_DECLS
