#pragma once

#include "cuda/move/cuda_divide.h"

#define HN_CUDA_PAD_AXES 32

/* In the order of HnPadding (op/pad.h). */
enum { HN_CUDA_PAD_VALUE, HN_CUDA_PAD_REFLECT, HN_CUDA_PAD_EDGE, HN_CUDA_PAD_WRAP };

/* Along an axis y has `lead` elements, those of x from `first` on, `kept` of them, and more behind. */
typedef struct {
    uint64_t y, x;
    uint64_t given;    /* where the value is; 0: it is here: */
    uint64_t value[2]; /* one element */
    uint32_t n;
    int32_t ndim, mode;
    HnDivisor dims[HN_CUDA_PAD_AXES]; /* of y */
    int64_t first[HN_CUDA_PAD_AXES], lead[HN_CUDA_PAD_AXES], kept[HN_CUDA_PAD_AXES], strides[HN_CUDA_PAD_AXES];
} HnCudaPadArgs;
