/*
 * Attention in f32 on tensor cores, by three products each (tf32.cuh): what a warp does with 16 queries and a tile of
 * keys and values in shared memory. Scores stay in registers; sums of values are scaled down when a larger score comes.
 */
#pragma once

#include "cuda/gemm/attention.cuh"
#include "cuda/gemm/tf32.cuh"

#define ROWS 16 /* of a warp */

/* The lanes of results are those of factors if keys of 8 are taken in the order 0 2 4 6 1 3 5 7. */
template <int SIZE, int TILE_KEYS> struct Tiles {
    /* Lines are padded so that fragments are read without conflicts of banks. ACROSS: products at a time, which do not
     * wait for each other. */
    static constexpr int KEYS = TILE_KEYS, PITCH = SIZE + 4, ACROSS = 4;
    static constexpr int TERMS = SIZE < HN_TF32_TERMS ? SIZE : HN_TF32_TERMS;

    /* s[n]: with keys 8 n on; q, k: lines in shared memory. */
    __device__ static void scores(float (*s)[4], const float *q, const float *k)
    {
        const int g = hn_mma_row(), t = threadIdx.x % 4;
        for (int n = 0; n < KEYS / 8; n++)
            for (int r = 0; r < 4; r++)
                s[n][r] = 0;
        for (int first = 0; first < SIZE; first += TERMS) {
            float main[KEYS / 8][4] = {}, small[KEYS / 8][4] = {};
            for (int c = first; c < first + TERMS; c += 8) {
                HnSplit x[4], w[KEYS / 8][2];
#pragma unroll
                for (int r = 0; r < 4; r++)
                    x[r] = q[(r % 2 * 8 + g) * PITCH + c + r / 2 * 4 + t];
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                    for (int r = 0; r < 2; r++)
                        w[n][r] = k[(n * 8 + g) * PITCH + c + r * 4 + t];
                hn_multiply_split_each<KEYS / 8>(main, small, x, w);
            }
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    s[n][r] += fmaf(small[n][r], 1 / HN_TF32_LO, main[n][r]);
        }
        for (int n = 0; n < KEYS / 8; n++)
            for (int r = 0; r < 4; r++)
                if (!isfinite(s[n][r]))
                    s[n][r] = plain_score(q + (r / 2 * 8 + g) * PITCH, k + (n * 8 + t * 2 + r % 2) * PITCH);
    }
    __device__ __noinline__ static float plain_score(const float *q, const float *k)
    {
        float s = 0;
        for (int c = 0; c < SIZE; c++)
            s = fmaf(q[c], k[c], s);
        return s;
    }

    /* y = y * fade + p v; fade[i]: of rows i * 8. room: of the warp, [ROWS][KEYS], for what is to be added plainly. */
    __device__ static void mix(float (*y)[4], const float (*p)[4], const float *fade, const float *v, float *room)
    {
        const int g = hn_mma_row(), t = threadIdx.x % 4;
        HnSplit x[KEYS / 8][4];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                x[n][r] = p[n][r % 2 * 2 + r / 2];
#pragma unroll
        for (int first = 0; first < SIZE / 8; first += ACROSS) {
            float main[ACROSS][4] = {}, small[ACROSS][4] = {};
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) {
                HnSplit w[ACROSS][2];
#pragma unroll
                for (int c = 0; c < ACROSS; c++)
#pragma unroll
                    for (int r = 0; r < 2; r++)
                        w[c][r] = v[(n * 8 + t * 2 + r) * PITCH + (first + c) * 8 + g];
                hn_multiply_split_each<ACROSS>(main, small, x[n], w);
            }
            bool finite = true;
#pragma unroll
            for (int c = 0; c < ACROSS; c++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    main[c][r] = fmaf(small[c][r], 1 / HN_TF32_LO, main[c][r]);
                    finite = finite && isfinite(main[c][r]);
                }
            if (!__all_sync(HN_ALL_LANES, finite))
                mix_plain(main, p, v + first * 8, room);
#pragma unroll
            for (int c = 0; c < ACROSS; c++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    y[first + c][r] = fmaf(y[first + c][r], fade[r / 2], main[c][r]);
        }
    }
    __device__ static void mix_plain(float (*sums)[4], const float (*p)[4], const float *v, float *room)
    {
        const int g = hn_mma_row(), t = threadIdx.x % 4;
        __syncwarp();
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                room[(r / 2 * 8 + g) * KEYS + n * 8 + t * 2 + r % 2] = p[n][r];
        __syncwarp();
#pragma unroll
        for (int c = 0; c < ACROSS; c++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                sums[c][r] = plain_sum(room + (r / 2 * 8 + g) * KEYS, v + c * 8 + t * 2 + r % 2);
    }
    __device__ __noinline__ static float plain_sum(const float *p, const float *v)
    {
        float sum = 0;
        for (int k = 0; k < KEYS; k++)
            sum = fmaf(p[k], v[k * PITCH], sum);
        return sum;
    }
    __device__ static float exponential(float x)
    {
        return expf(x);
    }
};

/* Scores of a warp's queries, from `first` on, with keys from `key` on, out of their products. */
template <typename How>
__device__ void finish_scores(const HnCudaAttentionArgs &a, float (*s)[4], int64_t b, int64_t h, int64_t first,
                              int64_t key, int64_t end)
{
    const int64_t last = min(first + ROWS, a.queries) - 1;
    const bool all_seen = a.mask_kind == HN_CUDA_MASK_NONE && !(a.softcap > 0) && first < a.queries &&
                          key + How::KEYS <= attention_end(a, first) && key >= attention_begin(a, last);
#pragma unroll
    for (int n = 0; n < How::KEYS / 8; n++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int64_t i = first + hn_mma_row() + r / 2 * 8, t = key + n * 8 + hn_mma_column() + r % 2;
            if (all_seen)
                s[n][r] *= a.scale;
            else
                s[n][r] = i < a.queries && t < end ? attention_score<float>(a, b, h, i, t, s[n][r]) : -INFINITY;
        }
}

/* Over the four lanes that have a row. */
template <typename Op> __device__ inline float row_reduce(float x)
{
    x = Op::of(x, __shfl_xor_sync(HN_ALL_LANES, x, 1));
    return Op::of(x, __shfl_xor_sync(HN_ALL_LANES, x, 2));
}

/* Scores into exponentials; most and sum of two rows go on, fade is what older sums are worth. */
template <typename How> __device__ void exponentials(float (*s)[4], float *most, float *sum, float *fade)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float next = -INFINITY, all = 0;
#pragma unroll
        for (int n = 0; n < How::KEYS / 8; n++)
            next = HnMost::of(next, HnMost::of(s[n][row * 2], s[n][row * 2 + 1]));
        next = HnMost::of(most[row], row_reduce<HnMost>(next));
        const float base = attention_base(next);
#pragma unroll
        for (int n = 0; n < How::KEYS / 8; n++)
#pragma unroll
            for (int r = row * 2; r < row * 2 + 2; r++)
                all += s[n][r] = How::exponential(s[n][r] - base);
        fade[row] = How::exponential(most[row] - base);
        sum[row] = sum[row] * fade[row] + row_reduce<HnSum>(all);
        most[row] = next;
    }
}
