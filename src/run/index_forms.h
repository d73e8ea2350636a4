/*
 * Gather, Scatter and OneHot: what the kernels of all backends ask of a step. Each answer is a reason why not; NULL: it
 * is so.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

/* Of Gather and GatherElements. */
int hn_gather_axis(const HnStep *s);
/* Input 1 holds indices, and elements of input 0 can be moved. */
const char *hn_gather_reject(const HnStep *s);
/* The same, and the inputs of GatherND have the same batches. */
const char *hn_gather_tuples_reject(const HnStep *s);
/* The same, and each element of input 1 names one of input 0 along the axis: of GatherElements, of ScatterElements. */
const char *hn_gather_elements_reject(const HnStep *s, int axis);

/* Of ScatterElements. */
int hn_scatter_axis(const HnStep *s);
/* Input 1 holds indices, and there are updates of input 0's type, which can be moved if they are no more than that. */
const char *hn_scatter_reject(const HnStep *s);
/* The shapes of ScatterND's inputs fit, ... */
const char *hn_scatter_tuples_reject(const HnStep *s);
/* ... or those of ScatterElements' inputs. */
const char *hn_scatter_elements_reject(const HnStep *s);

const char *hn_onehot_reject(const HnStep *s);

G_END_DECLS
