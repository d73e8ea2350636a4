#include "cuda/reduce/cuda_rows.cuh"
#include "cuda/reduce/cuda_softmax_args.h"

/* Elements [i, i + 4) of a row of n; behind its end what is never the largest. */
template <typename T> __device__ void load_four(float v[4], const T *x, int64_t i, int64_t n, bool vector)
{
    hn_load4(v, x, i, n, vector);
#pragma unroll
    for (int j = 0; j < 4; j++)
        v[j] = i + j < n ? v[j] : HnMost::start;
}

/* A warp or a block for each row, which its threads hold: PIECES of four elements each. */
template <typename T, bool BLOCK, int PIECES> __device__ void softmax_held(const HnCudaSoftmaxArgs &a)
{
    typedef HnTeam<BLOCK> Team;
    __shared__ float room[HN_WARP];
    for (int64_t row = Team::first(); row < a.outer; row += Team::step()) {
        const T *x = hn_at<const T>(a.x) + row * a.n;
        T *y = hn_at<T>(a.y) + row * a.n;
        float v[PIECES][4], most = HnMost::start, sum = 0;
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            load_four(v[k], x, 4 * (k * Team::size() + Team::rank()), a.n, a.vector != 0);
#pragma unroll
        for (int k = 0; k < 4 * PIECES; k++)
            most = HnMost::of(most, v[k / 4][k % 4]);
        most = Team::template reduce<HnMost>(most, room);
#pragma unroll
        for (int k = 0; k < 4 * PIECES; k++) {
            float &one = v[k / 4][k % 4];
            const float d = one - most, e = expf(d);
            sum += e;
            one = a.logs ? d : e;
        }
        sum = Team::template reduce<HnSum>(sum, room);
        const float log_sum = logf(sum), scale = 1.0f / sum;
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[k][j] = a.logs ? v[k][j] - log_sum : v[k][j] * scale;
            hn_store4(y, v[k], 4 * (k * Team::size() + Team::rank()), a.n, a.vector != 0);
        }
    }
}

/* e^(x - most); 0 as long as nothing is above -infinity. */
__device__ inline float power(float x, float most)
{
    return most == HnMost::start ? 0.0f : expf(x - most);
}

/* A block for each row, which is read twice. */
template <typename T> __device__ void softmax_long(const HnCudaSoftmaxArgs &a)
{
    __shared__ float room[HN_WARP];
    const int64_t step = 4 * (int64_t)blockDim.x;
    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const T *x = hn_at<const T>(a.x) + row * a.n;
        T *y = hn_at<T>(a.y) + row * a.n;
        float mine = HnMost::start, sum = 0, v[4];
#pragma unroll 4
        for (int64_t i = 4 * threadIdx.x; i < a.n; i += step) {
            load_four(v, x, i, a.n, a.vector != 0);
            const float next = HnMost::of(mine, HnMost::of(HnMost::of(v[0], v[1]), HnMost::of(v[2], v[3])));
            sum =
                sum * power(mine, next) + power(v[0], next) + power(v[1], next) + power(v[2], next) + power(v[3], next);
            mine = next;
        }
        const float most = hn_block_reduce<HnMost>(mine, room);
        sum = hn_block_reduce<HnSum>(sum * power(mine, most), room);
        const float log_sum = logf(sum), scale = 1.0f / sum;
#pragma unroll 4
        for (int64_t i = 4 * threadIdx.x; i < a.n; i += step) {
            load_four(v, x, i, a.n, a.vector != 0);
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = a.logs ? v[j] - most - log_sum : expf(v[j] - most) * scale;
            hn_store4(y, v, i, a.n, a.vector != 0);
        }
    }
}

/* A thread for each row, whose elements lie `inner` apart; it reads it twice. */
template <typename T> __device__ void softmax_columns(const HnCudaSoftmaxArgs &a)
{
    for (int64_t i = hn_first(); i < a.outer * a.inner; i += hn_stride()) {
        const int64_t outer = hn_divide(i, a.inner), at = outer * a.n * a.inner + (i - outer * a.inner);
        const T *x = hn_at<const T>(a.x) + at;
        T *y = hn_at<T>(a.y) + at;
        float most = HnMost::start, sum = 0, v[4];
        for (int64_t k = 0; k < a.n; k += 4) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = k + j < a.n ? hn_load(x + (k + j) * a.inner) : HnMost::start;
            const float next = HnMost::of(most, HnMost::of(HnMost::of(v[0], v[1]), HnMost::of(v[2], v[3])));
            sum *= power(most, next);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum += power(v[j], next);
            most = next;
        }
        const float log_sum = logf(sum), scale = 1.0f / sum;
#pragma unroll 4
        for (int64_t k = 0; k < a.n; k++) {
            const float d = hn_load(x + k * a.inner) - most;
            hn_store(y + k * a.inner, a.logs ? d - log_sum : expf(d) * scale);
        }
    }
}

#define KERNEL(name, suffix, ...)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, 3) name##_##suffix(const __grid_constant__ HnCudaSoftmaxArgs a) \
    {                                                                                                                 \
        __VA_ARGS__(a);                                                                                               \
    }
#define DEFINE(suffix, type)                                     \
    KERNEL(softmax_warp_1, suffix, softmax_held<type, false, 1>) \
    KERNEL(softmax_warp_2, suffix, softmax_held<type, false, 2>) \
    KERNEL(softmax_warp_4, suffix, softmax_held<type, false, 4>) \
    KERNEL(softmax_warp_8, suffix, softmax_held<type, false, 8>) \
    KERNEL(softmax_block_1, suffix, softmax_held<type, true, 1>) \
    KERNEL(softmax_block_2, suffix, softmax_held<type, true, 2>) \
    KERNEL(softmax_block_4, suffix, softmax_held<type, true, 4>) \
    KERNEL(softmax_block_8, suffix, softmax_held<type, true, 8>) \
    KERNEL(softmax_long, suffix, softmax_long<type>)             \
    KERNEL(softmax_columns, suffix, softmax_columns<type>)
HN_EACH_FLOAT(DEFINE)
