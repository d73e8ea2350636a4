/*
 * Elements of weights of 4 and 8 bits.
 */
#pragma once

#include "cuda/core/device.cuh"
#include "cuda/gemm/cuda_weights_args.h"

/* Element i, unsigned: w.flip above its value. */
__device__ inline uint32_t weight_bits(const HnCudaWeights &w, uint64_t from, int64_t i)
{
    const uint8_t *bytes = hn_at<const uint8_t>(from);
    return w.bits == 8 ? bytes[i] ^ (uint32_t)w.flip : ((bytes[i / 2] >> (i % 2 * 4)) & 15u) ^ (uint32_t)w.flip;
}
/* 2^23 above u and what is taken from it: the difference is exact, without a conversion. */
#define HN_WEIGHT_BASE 8388608.0f
__device__ inline float weight_float(uint32_t u)
{
    return __uint_as_float(0x4b000000u | u);
}
__device__ inline int64_t weight_scale_at(const HnCudaWeights &w, int64_t row, int64_t col)
{
    return row / w.row_block * w.row_step + col / w.col_block * w.col_step;
}
/* What is to be taken from weight_float() of an element whose scale is at `at`. */
__device__ inline float weight_less(const HnCudaWeights &w, int64_t at)
{
    return HN_WEIGHT_BASE + (float)(w.zero != 0 ? weight_bits(w, w.zero, at) : (uint32_t)w.flip);
}
__device__ inline float weight_at(const HnCudaWeights &w, int64_t row, int64_t col, int64_t columns)
{
    const int64_t at = weight_scale_at(w, row, col);
    const float v = weight_float(weight_bits(w, w.w, row * columns + col)) - weight_less(w, at);
    return v * hn_at<const float>(w.scale)[at];
}
/* The flips of all elements of a word. */
__device__ inline uint32_t weight_flips(const HnCudaWeights &w)
{
    return (uint32_t)w.flip * (w.bits == 8 ? 0x01010101u : 0x11111111u);
}
