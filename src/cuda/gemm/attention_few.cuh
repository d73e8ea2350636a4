/*
 * Attention where queries and heads are too few to keep the device busy: a block for 16 queries of a head, whose warps
 * take tiles of keys by turns, each with a largest score and sums of its own, which meet in shared memory at the end,
 * in the order of the warps.
 */
#pragma once

#include "cuda/gemm/attention.cuh"
#include "cuda/gemm/copies.cuh"

#define FEW_ROWS HN_CUDA_ATTENTION_FEW_QUERIES
#define FEW_WARPS HN_CUDA_ATTENTION_FEW_WARPS
#define FEW_THREADS (FEW_WARPS * HN_WARP)

/* Where lines of a tile come from: `cached` of them from the cache. */
template <typename T> struct Source {
    const T *cache, *fresh;
    int64_t cache_step, fresh_step;
    int cached;

    __device__ Source(const HnCudaHeads &past, const HnCudaHeads &own, int64_t n_past, int64_t b, int64_t g, int64_t t)
        : cache(attention_vector<T>(past, b, g, t)), fresh(attention_vector<T>(own, b, g, t - n_past)),
          cache_step(past.token), fresh_step(own.token), cached((int)max((int64_t)0, min(n_past - t, (int64_t)1024)))
    {
    }
    __device__ const T *line(int i) const
    {
        return i < cached ? cache + i * cache_step : fresh + i * fresh_step;
    }
};

/* `count` lines of SIZE elements by so many threads, of which this is number `me`; n lines of `size` elements are
 * there, what is not becomes 0. */
template <int SIZE, int LOADERS, typename T>
__device__ void load_lines(T *to, int count, int n, int size, bool wide, int me, const Source<T> &from)
{
    constexpr int VECTOR = 16 / (int)sizeof(T), ACROSS = SIZE / VECTOR;
    const int c = me % ACROSS * VECTOR, left = max(0, min(size - c, VECTOR));
#pragma unroll 4
    for (int i = me / ACROSS; i < count; i += LOADERS / ACROSS) {
        const int there = i < n ? left : 0;
        const T *x = there > 0 ? from.line(i) + c : from.line(0);
        T *place = to + i * (SIZE + VECTOR) + c;
        if (wide)
            hn_copy_16(place, x, there * (int)sizeof(T));
        else
            for (int j = 0; j < VECTOR; j++)
                place[j] = j < there ? x[j] : T(0.0f);
    }
}

/*
 * How, of which each warp has one: what it found of its keys, y, most and sum, and what it does with a tile:
 *   begin(qs)       queries are there
 *   scores(s, k)    products with the keys
 *   weigh(...)      scores into what values are multiplied by
 *   mix(s, v, room) values
 *   end()           most and sum are those of rows
 * and of several: larger(most, most), power(exponent), most_of_sum(most, sum).
 */
template <typename How> struct Few {
    using T = typename How::Element;
    static constexpr int SIZE = How::SIZE, KEYS = How::KEYS, PITCH = SIZE + 16 / (int)sizeof(T), SUMS_PITCH = SIZE + 4;
    static constexpr int WARP_BYTES = 2 * KEYS * PITCH * (int)sizeof(T) + How::ROOM * 4;
    static constexpr int BYTES = FEW_ROWS * PITCH * (int)sizeof(T) + FEW_WARPS * WARP_BYTES;
    static_assert(WARP_BYTES >= FEW_ROWS * SUMS_PITCH * 4, "sums of values lie where keys did");

    /* Tiles t, t + FEW_WARPS * KEYS and so on of the keys, of which the first is on its way already. */
    __device__ static void go_through(const HnCudaAttentionArgs &a, How &f, T *ks, int64_t b, int64_t h, int64_t first,
                                      int64_t t, int64_t end)
    {
        T *const vs = ks + KEYS * PITCH;
        float *const room = reinterpret_cast<float *>(vs + KEYS * PITCH);
        const int64_t g = h / (a.heads / a.kv_heads);
        for (; t < end; t += FEW_WARPS * KEYS) {
            float s[KEYS / 8][4];
            hn_copies_wait<1>();
            __syncwarp(); /* keys are there */
            f.scores(s, ks);
            __syncwarp();
            load_keys(a, ks, b, g, t + FEW_WARPS * KEYS, end);
            f.weigh(a, s, b, h, first, t, end);
            hn_copies_wait<1>();
            __syncwarp(); /* values are there */
            f.mix(s, vs, room);
            __syncwarp();
            load_values(a, vs, b, g, t + FEW_WARPS * KEYS, end);
        }
        hn_copies_wait<0>();
        f.end();
    }
    __device__ static void load_keys(const HnCudaAttentionArgs &a, T *ks, int64_t b, int64_t g, int64_t t, int64_t end)
    {
        if (t < end)
            load_lines<SIZE, HN_WARP>(ks, KEYS, (int)min(end - t, (int64_t)KEYS), (int)a.size, a.wide != 0,
                                      threadIdx.x % HN_WARP, Source<T>(a.past_k, a.k, a.past, b, g, t));
        hn_copies_close();
    }
    __device__ static void load_values(const HnCudaAttentionArgs &a, T *vs, int64_t b, int64_t g, int64_t t,
                                       int64_t end)
    {
        if (t < end)
            load_lines<SIZE, HN_WARP>(vs, KEYS, (int)min(end - t, (int64_t)KEYS), (int)a.value_size, a.wide != 0,
                                      threadIdx.x % HN_WARP, Source<T>(a.past_v, a.v, a.past, b, g, t));
        hn_copies_close();
    }

    /* Of the first n warps, whose sums lie where their keys did. */
    __device__ static void merge(const HnCudaAttentionArgs &a, const unsigned char *regions,
                                 const float (*most_of)[FEW_ROWS], const float (*sum_of)[FEW_ROWS], int n, T *to,
                                 int rows)
    {
        for (int i = threadIdx.x; i < rows * (SIZE / 4); i += FEW_THREADS) {
            const int row = i / (SIZE / 4), c = i % (SIZE / 4) * 4;
            float most = -INFINITY, sum = 0, v[4] = {};
            for (int w = 0; w < n; w++)
                most = How::larger(most, most_of[w][row]);
            const float base = attention_base(most);
            for (int w = 0; w < n; w++) {
                const float fade = How::power(most_of[w][row] - base);
                const float4 y = *reinterpret_cast<const float4 *>(regions + w * WARP_BYTES +
                                                                   (row * SUMS_PITCH + c) * sizeof(float));
                sum = fmaf(sum_of[w][row], fade, sum);
                v[0] = fmaf(y.x, fade, v[0]);
                v[1] = fmaf(y.y, fade, v[1]);
                v[2] = fmaf(y.z, fade, v[2]);
                v[3] = fmaf(y.w, fade, v[3]);
            }
            most = How::most_of_sum(most, sum);
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (c + j < a.value_size)
                    hn_store(to + row * a.y.token + c + j, attention_result(a, most, sum, v[j]));
        }
    }

    __device__ static void run(const HnCudaAttentionArgs &a)
    {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ float most_of[FEW_WARPS][FEW_ROWS], sum_of[FEW_WARPS][FEW_ROWS];
        T *const qs = reinterpret_cast<T *>(shared);
        unsigned char *const regions = shared + FEW_ROWS * PITCH * sizeof(T);
        const int warp = threadIdx.x / HN_WARP, row = hn_mma_row(), column = hn_mma_column();
        T *const own = reinterpret_cast<T *>(regions + warp * WARP_BYTES);
        float *const sums = reinterpret_cast<float *>(own);
        const int64_t blocks = (a.queries + FEW_ROWS - 1) / FEW_ROWS;
        for (int64_t job = blockIdx.x; job < a.batch * a.heads * blocks; job += gridDim.x) {
            const int64_t first = job % blocks * FEW_ROWS, h = job / blocks % a.heads, b = job / blocks / a.heads;
            const int64_t g = h / (a.heads / a.kv_heads);
            const int rows = (int)min(a.queries - first, (int64_t)FEW_ROWS);
            const int64_t end = attention_end(a, first + rows - 1), begin = attention_begin(a, first);
            const int64_t t = begin + warp * KEYS;
            How f = {};
            f.most[0] = f.most[1] = -INFINITY;
            load_lines<SIZE, FEW_THREADS>(qs, FEW_ROWS, rows, (int)a.size, a.wide != 0, threadIdx.x,
                                          Source<T>(a.q, a.q, 0, b, h, first));
            load_keys(a, own, b, g, t, end);
            load_values(a, own + KEYS * PITCH, b, g, t, end);
            hn_copies_wait<1>();
            __syncthreads(); /* queries are there */
            f.begin(qs);
            go_through(a, f, own, b, h, first, t, end);
            __syncwarp();
#pragma unroll
            for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    sums[(row + r / 2 * 8) * SUMS_PITCH + c * 8 + column + r % 2] = f.y[c][r];
            if (column == 0)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    most_of[warp][row + r * 8] = f.most[r];
                    sum_of[warp][row + r * 8] = f.sum[r];
                }
            __syncthreads(); /* all warps' sums are there */
            const int64_t tiles = end > begin ? (end - begin + KEYS - 1) / KEYS : 0;
            merge(a, regions, most_of, sum_of, (int)min(tiles, (int64_t)FEW_WARPS),
                  hn_at<T>(a.y.data) + b * a.y.batch + h * a.y.head + first * a.y.token, rows);
            __syncthreads();
        }
    }
};
