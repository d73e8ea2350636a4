/*
 * Attention of many queries in f32 on tensor cores, by three products each (tf32.cuh): a block for 64 queries of a
 * head, a warp for 16 of them. Keys and values go by in tiles; scores stay in registers; sums of values are scaled down
 * when a larger score comes.
 */
#include "cuda/gemm/attention.cuh"
#include "cuda/gemm/tf32.cuh"

#define THREADS HN_CUDA_ATTENTION_THREADS
#define QUERIES HN_CUDA_ATTENTION_QUERIES
#define ROWS 16 /* of a warp */

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

/* The lanes of results are those of factors if keys of 8 are taken in the order 0 2 4 6 1 3 5 7. */
template <typename T, int SIZE> struct Tiles {
    static constexpr int KEYS = HN_CUDA_ATTENTION_TILE_KEYS_F32, PITCH = Lines<T, SIZE>::PITCH;
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
                HnSplit x[4], w[2];
#pragma unroll
                for (int r = 0; r < 4; r++)
                    x[r] = q[(r % 2 * 8 + g) * PITCH + c + r / 2 * 4 + t];
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
                    for (int r = 0; r < 2; r++)
                        w[r] = k[(n * 8 + g) * PITCH + c + r * 4 + t];
                    hn_multiply_split(main[n], small[n], x, w);
                }
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
        for (int c = 0; c < SIZE / 8; c++) {
            float main[4] = {}, small[4] = {};
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) {
                HnSplit w[2];
#pragma unroll
                for (int r = 0; r < 2; r++)
                    w[r] = v[(n * 8 + t * 2 + r) * PITCH + c * 8 + g];
                hn_multiply_split(main, small, x[n], w);
            }
            bool finite = true;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                main[r] = fmaf(small[r], 1 / HN_TF32_LO, main[r]);
                finite = finite && isfinite(main[r]);
            }
            if (!__all_sync(HN_ALL_LANES, finite)) {
                __syncwarp();
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                    for (int r = 0; r < 4; r++)
                        room[(r / 2 * 8 + g) * KEYS + n * 8 + t * 2 + r % 2] = p[n][r];
                __syncwarp();
#pragma unroll
                for (int r = 0; r < 4; r++)
                    main[r] = plain_sum(room + (r / 2 * 8 + g) * KEYS, v + c * 8 + t * 2 + r % 2);
            }
#pragma unroll
            for (int r = 0; r < 4; r++)
                y[c][r] = fmaf(y[c][r], fade[r / 2], main[r]);
        }
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
template <typename T, typename How>
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
                s[n][r] = i < a.queries && t < end ? attention_score<T>(a, b, h, i, t, s[n][r]) : -INFINITY;
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
            finish_scores<T, How>(a, s, b, h, first, t, end);
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

#define DEFINE(size)                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                           \
        attention_tiles_##size##_f32(const __grid_constant__ HnCudaAttentionArgs a) \
    {                                                                               \
        attention_tiles<float, Tiles<float, size>, size>(a);                        \
    }
DEFINE(32)
DEFINE(64)
DEFINE(128)
