/*
 * Products of bf16, for cpu/gemm/gemm_kernel.h: where the instructions HN_ISA_BF16 may be used, a tile adds two
 * products at once. What it takes for an element is then a word of two neighbours in k, each rounded to bf16 (to
 * nearest, ties to even; denormal numbers are 0), the first one low; what is beyond the end of k is 0. Sums are f32.
 */
#pragma once

#include "cpu/gemm/gemm_kernel.h"

G_BEGIN_DECLS

/* Words of k elements. */
static inline int64_t hn_gemm_pairs_words(int64_t k)
{
    return (k + 1) / 2;
}

/* There are instructions for it, and sums of k products for n columns are worth rounding the operands. */
gboolean hn_gemm_pairs_pay(int64_t k, int64_t n);

/* As hn_gemm_kernel_fns(), of words. */
const HnGemmKernelFn *hn_gemm_pairs_fns(int cols);

/* to[hn_gemm_pairs_words(k)]: a row of k adjacent elements. */
void hn_gemm_pairs_row(float *to, const float *from, int64_t k);
/* to[hn_gemm_pairs_words(k)][to_pitch]: of n adjacent columns the elements of k rows, `pitch` apart, two by two. */
void hn_gemm_pairs_columns(float *to, int64_t to_pitch, const float *from, int64_t pitch, int64_t k, int64_t n);
/* As hn_gemm_kernel_pack(): k counts elements, the panels are of words. */
void hn_gemm_pairs_pack(float *to, const void *b, int64_t row, int64_t col, int64_t k, int64_t n);

G_END_DECLS
