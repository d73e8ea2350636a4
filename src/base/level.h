/*
 * The same loops for each instruction level: plain C, AVX2 with FMA, AVX-512.
 *
 * A file of loops is included three times (base/every_level.h) with HN_LEVEL set to plain, avx2, avx512; it names its
 * functions HN_V(name) and marks them HN_TARGET, so that the compiler's vectors fit the level. Plain C rounds after
 * each product; the others use HN_FMA.
 */
#pragma once

#include "base/cpu.h"

#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL plain
#endif
#define HN_JOIN(a, b) HN_JOIN_(a, b)
#define HN_JOIN_(a, b) a##_##b
#define HN_V(name) HN_JOIN(name, HN_LEVEL)
#define HN_TARGET HN_JOIN(HN_TARGET, HN_LEVEL)
#define HN_FMA HN_JOIN(HN_FMA, HN_LEVEL)
#define HN_FMA64 HN_JOIN(HN_FMA64, HN_LEVEL) /* of doubles */

#define HN_TARGET_plain
#define HN_FMA_plain(a, b, c) ((a) * (b) + (c))
#define HN_FMA64_plain HN_FMA_plain
#if defined(__x86_64__)
#define HN_TARGET_avx2 __attribute__((target("avx2,fma,f16c")))
#define HN_FMA_avx2(a, b, c) __builtin_fmaf(a, b, c)
#define HN_FMA64_avx2(a, b, c) __builtin_fma(a, b, c)
#define HN_TARGET_avx512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define HN_FMA_avx512(a, b, c) __builtin_fmaf(a, b, c)
#define HN_FMA64_avx512(a, b, c) __builtin_fma(a, b, c)
#else
#define HN_TARGET_avx2
#define HN_FMA_avx2 HN_FMA_plain
#define HN_FMA64_avx2 HN_FMA_plain
#define HN_TARGET_avx512
#define HN_FMA_avx512 HN_FMA_plain
#define HN_FMA64_avx512 HN_FMA_plain
#endif

/* Before a loop whose result may lie on an operand, element on element: that keeps it from nothing. */
#if defined(__clang__)
#define HN_IVDEP
#else
#define HN_IVDEP _Pragma("GCC ivdep")
#endif

/* Before a loop that adds into the named sums: the order is left to the vectors. */
#if defined(_OPENMP)
#define HN_OMP(text) _Pragma(#text)
#else
#define HN_OMP(text)
#endif
#define HN_SUM1(a) HN_OMP(omp simd reduction(+ : a))
#define HN_SUM2(a, b) HN_OMP(omp simd reduction(+ : a, b))
#define HN_SUM3(a, b, c) HN_OMP(omp simd reduction(+ : a, b, c))
#define HN_SUM4(a, b, c, d) HN_OMP(omp simd reduction(+ : a, b, c, d))

#define HN_LEVELS 3
/* One of three: plain, avx2, avx512. */
#define HN_TABLE_OF_LEVELS(name)                 \
    {                                            \
        name##_plain, name##_avx2, name##_avx512 \
    }

/* 0: plain, 1: avx2, 2: avx512 */
static inline int hn_cpu_level(void)
{
    HnIsa isa = hn_cpu_isa();
    return isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0;
}
