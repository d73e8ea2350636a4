/*
 * Attention of halves on tensor cores: a block for some queries of a head, a warp for 16 of them. Tiles of keys and
 * values come in two turns; queries and scores stay in registers. Scores are taken to the base of 2, with the scale in
 * the exponent; sums of values are scaled down only when a larger score comes.
 */
#pragma once

#include "cuda/gemm/attention.cuh"
#include "cuda/gemm/halves.cuh"

/* SIZE: elements of vectors; WARPS of a block, KEYS of a tile. */
template <typename T, int SIZE, int WARPS, int KEYS> struct HalfAttention {
    static constexpr int THREADS = WARPS * HN_WARP, ROWS = 16, QUERIES = WARPS * ROWS, PITCH = SIZE + 8;
    static constexpr int BYTES = (QUERIES + 4 * KEYS) * PITCH * 2;

    /* `count` lines of SIZE elements, of which n and `size` elements are there; what is not becomes 0. */
    template <typename At> __device__ static void lines(T *to, int count, int n, int size, bool wide, At at)
    {
        constexpr int EACH = 8, ACROSS = SIZE / EACH;
        const int c = threadIdx.x % ACROSS * EACH, left = max(0, min(size - c, EACH));
#pragma unroll
        for (int first = 0; first < count; first += THREADS / ACROSS) {
            const int line = first + threadIdx.x / ACROSS, there = line < n ? left : 0;
            if (count % (THREADS / ACROSS) != 0 && line >= count)
                break;
            const T *from = there > 0 ? at(line) + c : at(0);
            T *place = to + line * PITCH + c;
            if (wide)
                hn_copy_16(place, from, there * 2);
            else
                for (int j = 0; j < EACH; j++)
                    place[j] = j < there ? from[j] : T(0.0f);
        }
    }

    /* s: of a warp's queries, which are kept in registers, and all keys of the tile. */
    __device__ static void scores(float (*s)[4], const uint32_t (*kept)[4], const T *k)
    {
        const int lane = threadIdx.x % HN_WARP, line = lane % 8, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                s[n][r] = 0;
#pragma unroll
        for (int c = 0; c < SIZE; c += 16) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; n += 2) {
                uint32_t w[4];
                hn_fragments<false>(w, k + (n * 8 + high + line) * PITCH + c + low);
                hn_mma(T(), s[n], kept[c / 16], w);
                hn_mma(T(), s[n + 1], kept[c / 16], w + 2);
            }
        }
    }

    __device__ static void mix(float (*y)[4], const float (*p)[4], const T *v)
    {
        const int lane = threadIdx.x % HN_WARP, line = lane % 8, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n += 2) {
            uint32_t x[4];
#pragma unroll
            for (int r = 0; r < 4; r++)
                x[r] = attention_pair(T(), p[n + r / 2][r % 2 * 2], p[n + r / 2][r % 2 * 2 + 1]);
#pragma unroll
            for (int c = 0; c < SIZE / 8; c += 2) {
                uint32_t w[4];
                hn_fragments<true>(w, v + (n * 8 + low + line) * PITCH + c * 8 + high);
                hn_mma(T(), y[c], x, w);
                hn_mma(T(), y[c + 1], x, w + 2);
            }
        }
    }

    /* Scores into powers of 2 of `factor` times them; most: the largest exponent so far, sum: this lane's part of what
     * the powers make. */
    __device__ static void powers(float (*s)[4], float factor, float *most, float *sum, float (*y)[4])
    {
        float fade[2];
        bool changed = false;
#pragma unroll
        for (int row = 0; row < 2; row++) {
            float next = s[0][row * 2];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                next = fmaxf(next, fmaxf(s[n][row * 2], s[n][row * 2 + 1]));
            next = fmaxf(next, __shfl_xor_sync(HN_ALL_LANES, next, 1));
            next = fmaxf(next, __shfl_xor_sync(HN_ALL_LANES, next, 2));
            next = fmaxf(most[row], next * factor);
            const float base = attention_base(next);
            float all = 0;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int r = row * 2; r < row * 2 + 2; r++)
                    all += s[n][r] = attention_exp2(fmaf(s[n][r], factor, -base));
            changed = changed || next != most[row];
            fade[row] = attention_exp2(most[row] - base);
            sum[row] = fmaf(sum[row], fade[row], all);
            most[row] = next;
        }
        if (!__any_sync(HN_ALL_LANES, changed))
            return;
#pragma unroll
        for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                y[c][r] *= fade[r / 2];
    }

    /* The warp's queries, from `first` on, see all keys of the tile, and their scores are products times the scale. */
    __device__ static bool all_seen(const HnCudaAttentionArgs &a, int64_t first, int64_t t)
    {
        return a.mask_kind == HN_CUDA_MASK_NONE && !(a.softcap > 0) && a.scale > 0 && first < a.queries &&
               t + KEYS <= attention_end(a, first) && t >= attention_begin(a, min(first + ROWS, a.queries) - 1);
    }
    /* Scores out of products. */
    __device__ static void finish_scores(const HnCudaAttentionArgs &a, float (*s)[4], int64_t b, int64_t h,
                                         int64_t first, int64_t t, int64_t end)
    {
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int64_t i = first + hn_mma_row() + r / 2 * 8, at = t + n * 8 + hn_mma_column() + r % 2;
                s[n][r] = i < a.queries && at < end ? attention_score<T>(a, b, h, i, at, s[n][r]) : -INFINITY;
            }
    }

    __device__ static void run(const HnCudaAttentionArgs &a)
    {
        extern __shared__ __align__(128) unsigned char shared[];
        T *const qs = reinterpret_cast<T *>(shared), *const tiles = qs + QUERIES * PITCH;
        const int warp = threadIdx.x / HN_WARP, lane = threadIdx.x % HN_WARP;
        const int size = (int)a.size, value_size = (int)a.value_size;
        const bool wide = a.wide != 0, plain = a.mask_kind == HN_CUDA_MASK_NONE && !(a.softcap > 0) && a.scale > 0;
        const int64_t blocks = (a.queries + QUERIES - 1) / QUERIES;
        for (int64_t job = blockIdx.x; job < a.batch * a.heads * blocks; job += gridDim.x) {
            const int64_t h = job / blocks % a.heads, b = job / blocks / a.heads, g = h / (a.heads / a.kv_heads);
            const int64_t start = (blocks - 1 - job % blocks) * QUERIES,
                          first = start + warp * ROWS; /* long ones first */
            const int rows = (int)min(a.queries - start, (int64_t)QUERIES);
            const int64_t end = attention_end(a, start + rows - 1), begin = attention_begin(a, start);
            const int64_t seen_begin = attention_begin(a, min(first + ROWS, a.queries) - 1);
            const int64_t seen_end = plain && first < a.queries ? attention_end(a, first) : -1;
            const auto load = [&](int64_t t, int stage) {
                if (t < end) {
                    const int n = (int)min(end - t, (int64_t)KEYS);
                    T *const to = tiles + stage * 2 * KEYS * PITCH;
                    lines(to, KEYS, n, size, wide, [&](int i) { return attention_key<T>(a, b, g, t + i); });
                    lines(to + KEYS * PITCH, KEYS, n, value_size, wide,
                          [&](int i) { return attention_value<T>(a, b, g, t + i); });
                }
                hn_copies_close();
            };
            float y[SIZE / 8][4] = {}, most[2], sum[2] = {};
            uint32_t kept[SIZE / 16][4];
            most[0] = most[1] = -INFINITY;
            lines(qs, QUERIES, rows, size, wide, [&](int i) { return attention_vector<T>(a.q, b, h, start + i); });
            load(begin, 0);
            const T *const own = qs + warp * ROWS * PITCH;
            int stage = 0;
            for (int64_t t = begin; t < end; t += KEYS, stage ^= 1) {
                hn_copies_wait<0>();
                __syncthreads(); /* the tile is there, and nobody reads the other one any more */
                load(t + KEYS, stage ^ 1);
                if (t == begin)
#pragma unroll
                    for (int c = 0; c < SIZE / 16; c++)
                        hn_fragments<false>(kept[c], own + lane % 16 * PITCH + c * 16 + lane / 16 * 8);
                const T *const k = tiles + stage * 2 * KEYS * PITCH;
                float s[KEYS / 8][4];
                scores(s, kept, k);
                float factor = a.scale * HN_LOG2_E;
                if (t + KEYS > seen_end || t < seen_begin) {
                    factor = HN_LOG2_E;
                    finish_scores(a, s, b, h, first, t, end);
                }
                powers(s, factor, most, sum, y);
                mix(y, s, k + KEYS * PITCH);
            }
            hn_copies_wait<0>();
            __syncthreads();
            T *const to = hn_at<T>(a.y.data) + b * a.y.batch + h * a.y.head;
#pragma unroll
            for (int row = 0; row < 2; row++) {
                float all = sum[row];
                all += __shfl_xor_sync(HN_ALL_LANES, all, 1);
                all += __shfl_xor_sync(HN_ALL_LANES, all, 2);
                const int64_t i = first + hn_mma_row() + row * 8;
#pragma unroll
                for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        const int at = c * 8 + hn_mma_column() + r;
                        if (i < a.queries && at < value_size)
                            hn_store(to + i * a.y.token + at,
                                     attention_result(a, isnan(all) ? all : most[row], all, y[c][row * 2 + r]));
                    }
            }
        }
    }
};
