/*
 * Attention of a few queries, or of vectors of any size: a block for each query, in plain f32. And the cache for the
 * next run.
 */
#include "cuda/gemm/attention.cuh"
#include "cuda/gemm/vectors.cuh"

#define THREADS HN_CUDA_ATTENTION_THREADS
#define WARPS (THREADS / HN_WARP)
#define KEYS HN_CUDA_ATTENTION_KEYS
#define LANES 8 /* that share a key */

/* Lane's share of a product. */
template <typename T> __device__ float share_of(const T *key, const float *q, int64_t size, int lane, bool wide)
{
    constexpr int VECTOR = HnVector<T>::N;
    float sum = 0;
    int64_t c = 0;
    if (wide)
        for (c = lane * VECTOR; c + VECTOR <= size; c += LANES * VECTOR) {
            float v[VECTOR];
            hn_load_vector(v, key + c);
#pragma unroll
            for (int i = 0; i < VECTOR; i++)
                sum = fmaf(v[i], q[c + i], sum);
        }
    else
        for (c = lane; c < size; c += LANES)
            sum = fmaf(hn_load(key + c), q[c], sum);
    return sum;
}

template <typename T> __device__ void attention_rows(const HnCudaAttentionArgs &a)
{
    extern __shared__ float shared[];
    __shared__ float room[HN_WARP];
    float *const q = shared, *const scores = q + a.size, *const sums = scores + KEYS; /* [WARPS][value_size] */
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int64_t job = blockIdx.x; job < a.batch * a.heads * a.queries; job += gridDim.x) {
        const int64_t i = job % a.queries, h = job / a.queries % a.heads, b = job / a.queries / a.heads;
        const int64_t g = h / (a.heads / a.kv_heads), end = attention_end(a, i);
        const T *from = attention_vector<T>(a.q, b, h, i);
        for (int64_t c = threadIdx.x; c < a.size; c += THREADS)
            q[c] = hn_load(from + c);
        for (int64_t c = threadIdx.x; c < WARPS * a.value_size; c += THREADS)
            sums[c] = 0;
        float most = -INFINITY, sum = 0;
        __syncthreads();
        for (int64_t first = attention_begin(a, i); first < end; first += KEYS) {
            const int n = (int)min(end - first, (int64_t)KEYS);
            for (int k = threadIdx.x / LANES; k < KEYS; k += THREADS / LANES) {
                float s =
                    k < n ? share_of(attention_key<T>(a, b, g, first + k), q, a.size, lane % LANES, a.wide != 0) : 0.0f;
                for (int d = LANES / 2; d > 0; d /= 2)
                    s += __shfl_xor_sync(HN_ALL_LANES, s, d);
                if (lane % LANES == 0)
                    scores[k] = k < n ? attention_score<T>(a, b, h, i, first + k, s) : -INFINITY;
            }
            __syncthreads();
            const float score = scores[threadIdx.x];
            const float next = HnMost::of(most, hn_block_reduce<HnMost>(score, room)), base = attention_base(next);
            const float e = expf(score - base), fade = expf(most - base);
            scores[threadIdx.x] = e;
            sum = sum * fade + hn_block_reduce<HnSum>(e, room);
            most = next;
            __syncthreads();
            const int k_end = min(n, (warp + 1) * (KEYS / WARPS));
            for (int64_t c = lane; c < a.value_size; c += HN_WARP) {
                float v = 0;
                for (int k = warp * (KEYS / WARPS); k < k_end; k++)
                    v = fmaf(scores[k], hn_load(attention_value<T>(a, b, g, first + k) + c), v);
                float *to = sums + warp * a.value_size + c;
                *to = *to * fade + v;
            }
            __syncthreads();
        }
        T *y = hn_at<T>(a.y.data) + b * a.y.batch + h * a.y.head + i * a.y.token;
        for (int64_t c = threadIdx.x; c < a.value_size; c += THREADS) {
            float v = 0;
            for (int w = 0; w < WARPS; w++)
                v += sums[w * a.value_size + c];
            hn_store(y + c, attention_result(a, most, sum, v));
        }
        __syncthreads();
    }
}

template <typename T> __device__ void attention_present(const HnCudaPresentArgs &a)
{
    const int64_t length = a.past_length + a.length;
    for (int64_t at = hn_first(); at < a.batch * a.heads * length * a.size; at += hn_stride()) {
        const int64_t c = at % a.size, t = at / a.size % length, h = at / a.size / length % a.heads;
        const int64_t b = at / a.size / length / a.heads;
        hn_at<T>(a.y)[at] = t < a.past_length
                                ? hn_at<const T>(a.past)[((b * a.heads + h) * a.past_length + t) * a.size + c]
                                : attention_vector<T>(a.x, b, h, t - a.past_length)[c];
    }
}

#define DEFINE(suffix, type)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                              \
        attention_rows_##suffix(const __grid_constant__ HnCudaAttentionArgs a)                         \
    {                                                                                                  \
        attention_rows<type>(a);                                                                       \
    }                                                                                                  \
    extern "C" __global__ void attention_present_##suffix(const __grid_constant__ HnCudaPresentArgs a) \
    {                                                                                                  \
        attention_present<type>(a);                                                                    \
    }
HN_EACH_FLOAT(DEFINE)
