/*
 * Products of tiles of matrices, 64 x 64 by 128 threads, from shared memory: plain multiply-adds, or tensor cores.
 *
 * Both factors lie there as words: rows [64][DEPTH / PER] of the first one, [DEPTH / PER][64] of the second one. A word
 * is a term, or two halves one of which follows the other.
 */
#pragma once

#include "cuda/gemm/cuda_mma.cuh"

#define HN_TILE 64 /* rows and columns */
#define HN_TILE_THREADS 128
#define HN_TILE_WORDS 16 /* of terms */
#define HN_PITCH_A 20    /* words: eight rows by four words, and four by eight, lie in 32 banks */
#define HN_PITCH_B 72
#define HN_RENEWED 4 /* tiles of terms from which on a sum is added to the one of all of them */

/* Bits of elements, and words of them. */
template <typename T> struct Element {
    typedef uint16_t Bits;
};
template <> struct Element<float> {
    typedef uint32_t Bits;
};
template <typename T> __device__ inline float value_of(typename Element<T>::Bits bits)
{
    T v;
    memcpy(&v, &bits, sizeof v);
    return hn_load(&v);
}

/* --- multiply-adds ----------------------------------------------------------------------------------------------- */

template <typename T> struct PlainCore {
    static constexpr int PER = 1;
    static constexpr bool EXACT = true; /* infinities and huge numbers are as in f32 */
    float sum[8][4];

    __device__ static uint32_t word(const typename Element<T>::Bits *bits)
    {
        return __float_as_uint(value_of<T>(bits[0]));
    }
    __device__ void start()
    {
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 4; j++)
                sum[i][j] = 0;
    }
    /* Rows 8 * (thread / 16) on, columns 4 * (thread % 16) on. */
    __device__ void add(const uint32_t *a, const uint32_t *b)
    {
        const int row = threadIdx.x / 16 * 8, column = threadIdx.x % 16 * 4;
        for (int k = 0; k < HN_TILE_WORDS; k += 4) {
            float4 v[8], u[4];
            for (int i = 0; i < 8; i++)
                v[i] = *reinterpret_cast<const float4 *>(a + (row + i) * HN_PITCH_A + k);
            for (int i = 0; i < 4; i++)
                u[i] = *reinterpret_cast<const float4 *>(b + (k + i) * HN_PITCH_B + column);
            for (int i = 0; i < 8; i++) {
                const float f[4] = { v[i].x, v[i].y, v[i].z, v[i].w };
                for (int t = 0; t < 4; t++) {
                    sum[i][0] += f[t] * u[t].x;
                    sum[i][1] += f[t] * u[t].y;
                    sum[i][2] += f[t] * u[t].z;
                    sum[i][3] += f[t] * u[t].w;
                }
            }
        }
    }
    __device__ void renew()
    {
    }
    template <class F> __device__ void each(F f)
    {
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 4; j++)
                f(threadIdx.x / 16 * 8 + i, threadIdx.x % 16 * 4 + j, sum[i][j]);
    }
};

/* --- tensor cores ------------------------------------------------------------------------------------------------- */

/* Four warps, 32 x 32 results each: two steps down by four across. */
#define HN_DOWN 2
#define HN_ACROSS 4
typedef float HnWarpSums[HN_DOWN][HN_ACROSS][4];

__device__ inline int warp_row()
{
    return threadIdx.x / HN_WARP / 2 * 32;
}
__device__ inline int warp_column()
{
    return threadIdx.x / HN_WARP % 2 * 32;
}

__device__ inline void clear(HnWarpSums &c)
{
    for (int i = 0; i < HN_DOWN; i++)
        for (int j = 0; j < HN_ACROSS; j++)
            for (int r = 0; r < 4; r++)
                c[i][j][r] = 0;
}

template <class F> __device__ inline void each_sum(const HnWarpSums &c, F f)
{
    const int g = threadIdx.x % HN_WARP / 4, t = threadIdx.x % 4;
    for (int i = 0; i < HN_DOWN; i++)
        for (int j = 0; j < HN_ACROSS; j++)
            for (int r = 0; r < 4; r++)
                f(warp_row() + i * 16 + r / 2 * 8 + g, warp_column() + j * 8 + t * 2 + r % 2, c[i][j][r]);
}

/* Word r of a lane's fragment of rows (of a) or columns (of b) from `first` on, at word k. */
__device__ inline uint32_t word_of_a(const uint32_t *a, int first, int k, int r)
{
    return a[(first + r % 2 * 8 + threadIdx.x % HN_WARP / 4) * HN_PITCH_A + k + r / 2 * 4 + threadIdx.x % 4];
}
__device__ inline uint32_t word_of_b(const uint32_t *b, int first, int k, int r)
{
    return b[(k + r * 4 + threadIdx.x % 4) * HN_PITCH_B + first + threadIdx.x % HN_WARP / 4];
}

template <typename T> struct TensorCore {
    static constexpr int PER = 2;
    static constexpr bool EXACT = true; /* infinities and huge numbers are as in plain sums */
    HnWarpSums sum, part;

    __device__ static uint32_t word(const uint16_t *bits)
    {
        return bits[0] | (uint32_t)bits[1] << 16;
    }
    __device__ void start()
    {
        clear(sum);
        clear(part);
    }
    __device__ void add(const uint32_t *a, const uint32_t *b)
    {
        for (int k = 0; k < HN_TILE_WORDS; k += 8) {
            uint32_t v[HN_DOWN][4], u[HN_ACROSS][2];
            for (int i = 0; i < HN_DOWN; i++)
                for (int r = 0; r < 4; r++)
                    v[i][r] = word_of_a(a, warp_row() + i * 16, k, r);
            for (int j = 0; j < HN_ACROSS; j++)
                for (int r = 0; r < 2; r++)
                    u[j][r] = word_of_b(b, warp_column() + j * 8, k, r);
            for (int i = 0; i < HN_DOWN; i++)
                for (int j = 0; j < HN_ACROSS; j++)
                    hn_mma(T(), part[i][j], v[i], u[j]);
        }
    }
    __device__ void renew()
    {
        for (int i = 0; i < HN_DOWN; i++)
            for (int j = 0; j < HN_ACROSS; j++)
                for (int r = 0; r < 4; r++)
                    sum[i][j][r] += part[i][j][r];
        clear(part);
    }
    template <class F> __device__ void each(F f)
    {
        each_sum(sum, f);
    }
};

/* f32 by three products of TF32. */
template <> struct TensorCore<float> {
    static constexpr int PER = 1;
    static constexpr bool EXACT = false;
    static_assert(HN_TILE_WORDS * HN_RENEWED == HN_TF32_TERMS, "terms of a part");
    HnWarpSums sum, part, small;

    __device__ static uint32_t word(const uint32_t *bits)
    {
        return bits[0];
    }
    __device__ void start()
    {
        clear(sum);
        clear(part);
        clear(small);
    }
    __device__ void add(const uint32_t *a, const uint32_t *b)
    {
        for (int k = 0; k < HN_TILE_WORDS; k += 8) {
            uint32_t v[HN_DOWN][4], w[HN_DOWN][4], u[HN_ACROSS][2], x[HN_ACROSS][2];
            for (int i = 0; i < HN_DOWN; i++)
                for (int r = 0; r < 4; r++)
                    hn_tf32_split(__uint_as_float(word_of_a(a, warp_row() + i * 16, k, r)), v[i][r], w[i][r]);
            for (int j = 0; j < HN_ACROSS; j++)
                for (int r = 0; r < 2; r++)
                    hn_tf32_split(__uint_as_float(word_of_b(b, warp_column() + j * 8, k, r)), u[j][r], x[j][r]);
            for (int i = 0; i < HN_DOWN; i++)
                for (int j = 0; j < HN_ACROSS; j++) {
                    hn_mma(0.0f, small[i][j], w[i], u[j]);
                    hn_mma(0.0f, small[i][j], v[i], x[j]);
                    hn_mma(0.0f, part[i][j], v[i], u[j]);
                }
        }
    }
    __device__ void renew()
    {
        for (int i = 0; i < HN_DOWN; i++)
            for (int j = 0; j < HN_ACROSS; j++)
                for (int r = 0; r < 4; r++)
                    sum[i][j][r] += fmaf(small[i][j][r], 1 / HN_TF32_LO, part[i][j][r]);
        clear(part);
        clear(small);
    }
    template <class F> __device__ void each(F f)
    {
        each_sum(sum, f);
    }
};
