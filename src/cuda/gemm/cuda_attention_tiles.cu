/*
 * Attention of many queries in f32: a block for 64 queries of a head, a warp for 16 of them. Keys and values go by in
 * tiles.
 */
#include "cuda/gemm/attention_f32.cuh"

#define THREADS HN_CUDA_ATTENTION_THREADS
#define QUERIES HN_CUDA_ATTENTION_QUERIES

/* Vectors of SIZE elements in shared memory, lines padded so that fragments are read without conflicts of banks. */
template <typename T, int SIZE> struct Lines {
    static constexpr int VECTOR = 16 / (int)sizeof(T), PITCH = SIZE + VECTOR;

    /* n of `count` lines are there, of `size` elements each; what is not becomes 0. at(i): where line i lies. */
    template <typename At> __device__ static void load(T *to, int count, int n, int64_t size, bool wide, At at)
    {
        for (int i = threadIdx.x; i < count * (SIZE / VECTOR); i += THREADS) {
            const int line = i / (SIZE / VECTOR), c = i % (SIZE / VECTOR) * VECTOR;
            const int left = line < n ? (int)max((int64_t)0, min(size - c, (int64_t)VECTOR)) : 0;
            const T *from = left > 0 ? at(line) + c : at(0);
            T *place = to + line * PITCH + c;
            if (wide)
                hn_copy_16(place, from, left * (int)sizeof(T));
            else
                for (int j = 0; j < VECTOR; j++)
                    place[j] = j < left ? from[j] : T(0.0f);
        }
    }
};

template <typename T, typename How, int SIZE> __device__ void attention_tiles(const HnCudaAttentionArgs &a)
{
    using L = Lines<T, SIZE>;
    extern __shared__ __align__(128) unsigned char shared[];
    T *const qs = reinterpret_cast<T *>(shared), *const ks = qs + QUERIES * L::PITCH,
             *const vs = ks + How::KEYS * L::PITCH;
    const int warp = threadIdx.x / HN_WARP;
    float *const room = reinterpret_cast<float *>(vs + How::KEYS * L::PITCH) + warp * ROWS * How::KEYS;
    const int64_t blocks = (a.queries + QUERIES - 1) / QUERIES;
    for (int64_t job = blockIdx.x; job < a.batch * a.heads * blocks; job += gridDim.x) {
        const int64_t start = job % blocks * QUERIES, h = job / blocks % a.heads, b = job / blocks / a.heads;
        const int64_t g = h / (a.heads / a.kv_heads), first = start + warp * ROWS;
        const int rows = (int)min(a.queries - start, (int64_t)QUERIES);
        const int64_t end = attention_end(a, start + rows - 1), begin = attention_begin(a, start);
        const auto load_keys = [&](int64_t t) {
            if (t < end)
                L::load(ks, How::KEYS, (int)min(end - t, (int64_t)How::KEYS), a.size, a.wide != 0,
                        [&](int i) { return attention_key<T>(a, b, g, t + i); });
            hn_copies_close();
        };
        float y[SIZE / 8][4] = {}, most[2] = { -INFINITY, -INFINITY }, sum[2] = {}, fade[2];
        L::load(qs, QUERIES, rows, a.size, a.wide != 0,
                [&](int i) { return attention_vector<T>(a.q, b, h, start + i); });
        load_keys(begin);
        for (int64_t t = begin; t < end; t += How::KEYS) {
            float s[How::KEYS / 8][4];
            hn_copies_wait<0>();
            __syncthreads(); /* keys are there, and nobody reads values any more */
            L::load(vs, How::KEYS, (int)min(end - t, (int64_t)How::KEYS), a.value_size, a.wide != 0,
                    [&](int i) { return attention_value<T>(a, b, g, t + i); });
            hn_copies_close();
            How::scores(s, qs + warp * ROWS * L::PITCH, ks);
            finish_scores<How>(a, s, b, h, first, t, end);
            exponentials<How>(s, most, sum, fade);
            hn_copies_wait<0>();
            __syncthreads(); /* values are there, and nobody reads keys any more */
            load_keys(t + How::KEYS);
            How::mix(y, s, fade, vs, room);
        }
        hn_copies_wait<0>();
        __syncthreads();
        T *const to = hn_at<T>(a.y.data) + b * a.y.batch + h * a.y.head;
#pragma unroll
        for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int64_t i = first + hn_mma_row() + r / 2 * 8, at = c * 8 + hn_mma_column() + r % 2;
                if (i < a.queries && at < a.value_size)
                    hn_store(to + i * a.y.token + at, attention_result(a, most[r / 2], sum[r / 2], y[c][r]));
            }
    }
}

#define DEFINE(size)                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                              \
        attention_tiles_##size##_f32(const __grid_constant__ HnCudaAttentionArgs a)    \
    {                                                                                  \
        attention_tiles<float, Tiles<size, HN_CUDA_ATTENTION_TILE_KEYS_F32>, size>(a); \
    }
DEFINE(32)
DEFINE(64)
DEFINE(128)
