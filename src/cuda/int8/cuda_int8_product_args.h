#pragma once

#include <stdint.h>

#define HN_CUDA_INT8_AXES 3
#define HN_CUDA_INT8_STACK 8

/* What becomes of sums. */
typedef enum {
    HN_CUDA_SUMS,         /* they are the results */
    HN_CUDA_SUMS_NUMBERS, /* numbers of f32 (op/quantlinear.h) */
    HN_CUDA_SUMS_BYTES,   /* bytes (op/quantlinear.h) */
    HN_CUDA_SUMS_QLINEAR  /* bytes, of QLinearConv and QLinearMatMul */
} HnCudaSums;

typedef struct {
    uint64_t y;
    uint64_t x_scale, w_scale, y_scale, y_zero, bias; /* 0: absent */
    int32_t how;                                      /* HnCudaSums */
    int32_t y_signed;
    int32_t nan_is_zero;                              /* NaN becomes the zero point, not the lowest byte */
    int32_t bias_is_f32;                              /* else i32 */
    int32_t x_scale_type, w_scale_type, y_scale_type; /* HnCudaScale */
    int32_t x_scale_each, w_scale_each;               /* 1: one for each row or column of the operand */
    int32_t exchanges;                                /* by `table` */
    float lo, hi;
    uint8_t table[256];
} HnCudaInt8Finish;

typedef enum { HN_CUDA_SCALE_F32, HN_CUDA_SCALE_F16, HN_CUDA_SCALE_BF16 } HnCudaScale;

/*
 * Products of bytes, units of them: rows [m][k] times cols, sums [m][n] of 32 bits that wrap.
 *
 * Matrices: a unit is a stack; cols are [k][n], or [n][k]. Convolutions: a unit is a group; rows are its weights, cols
 * what its windows see at the n output positions of all samples.
 */
typedef struct {
    uint64_t rows, cols, row_zero, col_zero; /* zeros: 0 where absent */
    int64_t m, k, n, units;
    int64_t row_tiles, col_tiles;
    int32_t row_flip, col_flip; /* 0x80 where bytes are unsigned */
    int32_t row_zero_each, col_zero_each;
    /* Matrices: stacks, which broadcast; strides in elements. */
    int32_t stack_rank;
    int64_t stack[HN_CUDA_INT8_STACK], row_stride[HN_CUDA_INT8_STACK], col_stride[HN_CUDA_INT8_STACK];
    /* Convolutions: three spatial axes, the first ones perhaps of size 1. */
    int64_t x_plane, y_plane, in_channels;
    int32_t in[HN_CUDA_INT8_AXES], out[HN_CUDA_INT8_AXES], kernel[HN_CUDA_INT8_AXES];
    int32_t stride[HN_CUDA_INT8_AXES], dilation[HN_CUDA_INT8_AXES], pad[HN_CUDA_INT8_AXES];
    HnCudaInt8Finish finish;
} HnCudaInt8Args;
