#pragma once

#include <stdint.h>

/* Element-wise nodes behind a convolution or a product, which a result goes through before it is stored. */
#define HN_CUDA_END_MAX 4

enum {
    HN_CUDA_END_NONE,    /* a function of the result alone */
    HN_CUDA_END_ELEMENT, /* ... and of x, which has the result's shape, */
    HN_CUDA_END_CHANNEL, /* ... of one number of x for each channel, */
    HN_CUDA_END_ONE      /* ... of x's only number */
};

typedef struct {
    uint64_t x;
    float a, b;
    int32_t code, of; /* HnElementCode; HN_CUDA_END_NONE ... */
    int64_t pitch;    /* x channels last: elements from a pixel to the next */
} HnCudaEndDo;

typedef struct {
    HnCudaEndDo at[HN_CUDA_END_MAX];
    int32_t n;
} HnCudaEnd;
