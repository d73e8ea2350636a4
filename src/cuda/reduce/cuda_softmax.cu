#include "cuda/reduce/cuda_rows.cuh"
#include "cuda/reduce/cuda_softmax_args.h"

/* The larger one; a NaN comes through e^NaN and the sum. */
struct Larger {
    __device__ static float of(float a, float b)
    {
        return fmaxf(a, b);
    }
    static constexpr float start = -__builtin_huge_valf();
};

__device__ inline float largest_of(const float v[4])
{
    return fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
}

/* Pieces of a row of n; behind its end what is never the largest. */
template <int PIECES, typename T, typename I>
__device__ void load_pieces(float (&v)[PIECES][4], const T *x, I first, I step, I n, bool vector)
{
    hn_load_pieces(v, x, first, step, n, vector);
#pragma unroll
    for (int k = 0; k < PIECES; k++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[k][j] = first + k * step + (vector ? 0 : j) < n ? v[k][j] : Larger::start;
}

/* A warp or a block for each row, which its threads hold: PIECES of four elements each. */
template <typename T, bool BLOCK, int PIECES> __device__ void softmax_held(const HnCudaSoftmaxArgs &a)
{
    typedef HnTeam<BLOCK> Team;
    __shared__ float room[HN_WARP];
    const int n = (int)a.n, first = 4 * Team::rank(), step = 4 * Team::size();
    for (int64_t row = Team::first(); row < a.outer; row += Team::step()) {
        const T *x = hn_at<const T>(a.x) + row * a.n;
        T *y = hn_at<T>(a.y) + row * a.n;
        float v[PIECES][4], most = Larger::start, sum = 0;
        load_pieces(v, x, first, step, n, a.vector != 0);
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            most = fmaxf(most, largest_of(v[k]));
        most = Team::template reduce<Larger>(most, room);
#pragma unroll
        for (int k = 0; k < 4 * PIECES; k++) {
            float &one = v[k / 4][k % 4];
            const float d = one - most, e = expf(d);
            sum += e;
            one = a.logs ? d : e;
        }
        sum = Team::template reduce<HnSum>(sum, room);
        const float scale = a.logs ? 1.0f : 1.0f / sum, plus = a.logs ? -logf(sum) : 0.0f;
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[k][j] = fmaf(v[k][j], scale, plus);
            hn_store4(y, v[k], first + k * step, n, a.vector != 0);
        }
    }
}

/* e^(x - most); 0 as long as nothing is above -infinity. */
__device__ inline float power(float x, float most)
{
    return most == Larger::start ? 0.0f : expf(x - most);
}

#define AT_ONCE 4 /* pieces that a thread reads before it computes */

/* A block for each row, which is read twice. */
template <typename T> __device__ void softmax_long(const HnCudaSoftmaxArgs &a)
{
    __shared__ float room[HN_WARP];
    const int64_t step = 4 * (int64_t)blockDim.x;
    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const T *x = hn_at<const T>(a.x) + row * a.n;
        T *y = hn_at<T>(a.y) + row * a.n;
        float mine = Larger::start, sum = 0, v[AT_ONCE][4];
        for (int64_t i = 4 * threadIdx.x; i < a.n; i += AT_ONCE * step) {
            load_pieces(v, x, i, step, a.n, a.vector != 0);
            float next = mine;
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                next = fmaxf(next, largest_of(v[k]));
            sum *= power(mine, next);
#pragma unroll
            for (int k = 0; k < 4 * AT_ONCE; k++)
                sum += power(v[k / 4][k % 4], next);
            mine = next;
        }
        const float most = hn_block_reduce<Larger>(mine, room);
        sum = hn_block_reduce<HnSum>(sum * power(mine, most), room);
        const float log_sum = logf(sum), scale = 1.0f / sum;
        for (int64_t i = 4 * threadIdx.x; i < a.n; i += AT_ONCE * step) {
            load_pieces(v, x, i, step, a.n, a.vector != 0);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    v[k][j] = a.logs ? v[k][j] - most - log_sum : expf(v[k][j] - most) * scale;
                hn_store4(y, v[k], i + k * step, a.n, a.vector != 0);
            }
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
        float most = Larger::start, sum = 0, v[4];
        for (int64_t k = 0; k < a.n; k += 4) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = k + j < a.n ? hn_load(x + (k + j) * a.inner) : Larger::start;
            const float next = fmaxf(most, largest_of(v));
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
