#pragma once

#include <stdint.h>

#define HN_CUDA_PAIR_AXES 8

/* What numbers in steps of the result become. */
typedef struct {
    float lo, hi;
    int32_t zero;
    int32_t numbers;   /* f32, not bytes */
    int32_t exchanges; /* bytes by `table` */
    uint8_t table[256];
} HnCudaInt8Limits;

/* QuantAdd and QuantMul: (a * a_by + a_plus) + or * (b * b_by + b_plus) */
typedef struct {
    uint64_t a, b, y;
    int64_t n;
    int32_t axes; /* 0: element i of a, and of b element i, or 0 where b_step is 0 */
    int32_t b_step;
    int64_t dims[HN_CUDA_PAIR_AXES], a_stride[HN_CUDA_PAIR_AXES], b_stride[HN_CUDA_PAIR_AXES];
    float a_by, a_plus, b_by, b_plus;
    int32_t product, a_signed, b_signed, b_numbers;
    HnCudaInt8Limits limits;
} HnCudaPairArgs;

/* QuantAveragePool: x [planes][in...], y [planes][out...] */
typedef struct {
    uint64_t x, y;
    int64_t planes;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int32_t count_pad, is_signed, x_zero;
    float scale;
    HnCudaInt8Limits limits;
} HnCudaMeanArgs;

/* y[i] = table[x[i]] */
typedef struct {
    uint64_t x, table, y;
    int64_t n;
} HnCudaTableArgs;
