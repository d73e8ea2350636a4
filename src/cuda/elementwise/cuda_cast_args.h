#pragma once

#include <stdint.h>

/* y = x; from: the HnDtype of x */
typedef struct {
    uint64_t y, x;
    int64_t n;
    int32_t from, saturate, round;
} HnCudaCastArgs;

/* HnDtype */
enum {
    HN_CUDA_FROM_F32 = 1,
    HN_CUDA_FROM_U8 = 2,
    HN_CUDA_FROM_I8 = 3,
    HN_CUDA_FROM_U16 = 4,
    HN_CUDA_FROM_I16 = 5,
    HN_CUDA_FROM_I32 = 6,
    HN_CUDA_FROM_I64 = 7,
    HN_CUDA_FROM_BOOL = 9,
    HN_CUDA_FROM_F16 = 10,
    HN_CUDA_FROM_F64 = 11,
    HN_CUDA_FROM_U32 = 12,
    HN_CUDA_FROM_U64 = 13,
    HN_CUDA_FROM_BF16 = 16,
    HN_CUDA_FROM_F8E4M3FN = 17,
    HN_CUDA_FROM_F8E4M3FNUZ = 18,
    HN_CUDA_FROM_F8E5M2 = 19,
    HN_CUDA_FROM_F8E5M2FNUZ = 20,
    HN_CUDA_FROM_U4 = 21,
    HN_CUDA_FROM_I4 = 22,
    HN_CUDA_FROM_F4E2M1 = 23,
    HN_CUDA_FROM_F8E8M0 = 24,
    HN_CUDA_FROM_U2 = 25,
    HN_CUDA_FROM_I2 = 26
};
