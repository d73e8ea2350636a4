/*
 * What the host's sides of cuda_recurrent.cu and cuda_recurrent_grad.cu share.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "cuda/recurrent/cuda_recurrent_args.h"
#include "op/recurrent.h"

/* Sizes of a step's layer: X, W and R are its inputs 0 to 2. FALSE: they do not fit each other. */
gboolean hn_cuda_layer_measure(const HnStep *s, HnCudaLayer *l);
/* Input i is absent or has these dims. */
gboolean hn_cuda_layer_has(const HnStep *s, int i, int ndim, int64_t a, int64_t b, int64_t c);
/* All that is there, but for input `lens`, is of X's type, f32, f16 or bf16, and not empty; else why not. */
const char *hn_cuda_layer_reject_types(const HnStep *s, int lens);
/* Input `lens`, which is read on the host, as i32 at `to` on the device. Errors: VALUE. */
gboolean hn_cuda_layer_set_lens(const HnStep *s, const HnCudaLayer *l, int lens, uint64_t to, HnCuFunction f,
                                GError **error);
/* All sums of such a product (HnCudaSumsArgs). */
gboolean hn_cuda_layer_sums(const HnStep *s, HnCuFunction f, const HnCudaSumsArgs *a, GError **error);
