/*
 * Types that kernels are told of at run time.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"
#include "cuda/reduce/element_args.h"

/* HN_ELEMENT_* of f32, f16, bf16, f64. */
static inline int32_t hn_cuda_element(HnDtype t)
{
    return t == HN_F32    ? HN_ELEMENT_F32
           : t == HN_F16  ? HN_ELEMENT_F16
           : t == HN_BF16 ? HN_ELEMENT_BF16
                          : HN_ELEMENT_F64;
}
static inline int32_t hn_cuda_in_element(const HnStep *s, int i)
{
    return hn_cuda_in(s, i) != NULL ? hn_cuda_element(hn_cuda_in(s, i)->dtype) : HN_ELEMENT_F32;
}
static inline int32_t hn_cuda_out_element(const HnStep *s, int k)
{
    return hn_cuda_out(s, k) != NULL ? hn_cuda_element(hn_cuda_out(s, k)->dtype) : HN_ELEMENT_F32;
}
/* Whole warps for n threads, `most` at most. */
static inline int hn_cuda_threads(int64_t n, int most)
{
    return (int)CLAMP((n + HN_CUDA_WARP - 1) / HN_CUDA_WARP * HN_CUDA_WARP, HN_CUDA_WARP, most);
}
