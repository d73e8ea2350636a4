/*
 * The layout of the CUDA backend beside plain: channels last, [image][pixel][channel], where each pixel begins at a
 * multiple of 16 bytes: behind its channels there may be a few elements, which are 0.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"

G_BEGIN_DECLS

#define HN_CUDA_LINE 16       /* bytes: a pixel is a multiple of it */
#define HN_CUDA_LAYOUT_AXES 5 /* at most */

/* Elements of a line. */
static inline int hn_cuda_line(HnDtype t)
{
    return HN_CUDA_LINE / (int)hn_dtype_size(t);
}
/* Channels with those behind them. */
int64_t hn_cuda_padded(const HnTensor *t);

/* Channels last for t, of 3 to 5 axes; NULL: the same as plain, or no such tensor. */
HnLayout *hn_cuda_layout_last(const HnTensor *t);
/* t has such a layout, or lies in it as it is. */
gboolean hn_cuda_has_last(const HnTensor *t);
/* Elements lie channels last, plain or not. */
gboolean hn_cuda_is_last(const HnSlot *slot);
/* Elements from a pixel to the next. */
int64_t hn_cuda_pitch(const HnSlot *slot);
/* In prepare: input i is to come channels last, or output 0 is made so. */
void hn_cuda_want_last(HnStep *s, int i);
void hn_cuda_make_last(HnStep *s);

/* HnBackend.layout_equal, .layout_view, .turns, .reorders */
gboolean hn_cuda_turns(const HnNode *n, const HnSlot *from, const HnTensor *to, HnLayout **layout);
/* A Transpose of images that brings channels behind the pixels (1), or back in front of them (-1); else 0. */
int hn_cuda_turn_of(const HnNode *n, int ndim);
gboolean hn_cuda_layout_equal(const HnLayout *a, const HnLayout *b);
HnLayout *hn_cuda_layout_view(const HnSlot *from, const HnTensor *to);
extern const HnKernel *const hn_cuda_reorders[];

/* Nanoseconds, about, that a step takes that brings t into another layout. */
double hn_cuda_reorder_ns(const HnTensor *t);

G_END_DECLS
