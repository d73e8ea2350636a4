#include "cuda/reduce/cuda_reduce_args.h"
#include "cuda/reduce/cuda_rows.cuh"

#define THREADS 256

/* EXACT: sums of f32 are kept in double, since a file may go on with the difference of two of them. */
struct Sum {
    static constexpr float start = 0.0f;
    static constexpr bool EXACT = true;
    __device__ static float term(float x, float)
    {
        return x;
    }
    template <typename N> __device__ static N of(N a, N b)
    {
        return a + b;
    }
};
struct Sizes : Sum {
    __device__ static float term(float x, float)
    {
        return fabsf(x);
    }
};
struct Squares : Sum {
    __device__ static float term(float x, float)
    {
        return x * x;
    }
};
struct Powers : Sum {
    __device__ static float term(float x, float shift)
    {
        return expf(x - shift);
    }
};
struct Product {
    static constexpr float start = 1.0f;
    static constexpr bool EXACT = false;
    __device__ static float term(float x, float)
    {
        return x;
    }
    __device__ static float of(float a, float b)
    {
        return a * b;
    }
};
struct Most : HnMost {
    static constexpr bool EXACT = false;
    __device__ static float term(float x, float)
    {
        return x;
    }
};
struct Least { /* NaN stays */
    static constexpr float start = __builtin_huge_valf();
    static constexpr bool EXACT = false;
    __device__ static float term(float x, float)
    {
        return x;
    }
    __device__ static float of(float a, float b)
    {
        return a < b || a != a ? a : b;
    }
};

template <bool WIDE> struct Kept {
    typedef float Number;
};
template <> struct Kept<true> {
    typedef double Number;
};
/* What results of elements of T are kept in on the way. */
template <typename How, typename T> using Wide = typename Kept<How::EXACT && sizeof(T) == sizeof(float)>::Number;

__device__ static int64_t offset_of(const HnCudaAxes &axes, int64_t i)
{
    int64_t at = 0;
#pragma unroll 1 /* a division each, and mostly there is one axis */
    for (int k = axes.n - 1; k > 0; k--) {
        const int64_t n = axes.dims[k], q = hn_divide(i, n);
        at += (i - q * n) * axes.strides[k];
        i = q;
    }
    return axes.n > 0 ? at + i * axes.strides[0] : 0;
}

__device__ static float shift_of(const HnCudaReduceArgs &a, int64_t o)
{
    const float shift = a.shift != 0 ? hn_at<const float>(a.shift)[o] : 0.0f;
    return isinf(shift) ? 0.0f : shift;
}

template <typename T, typename N> __device__ static void finish(const HnCudaReduceArgs &a, int64_t o, N all)
{
    float v = (float)(a.last == HN_CUDA_REDUCE_MEAN ? all / (N)a.each : all);
    if (a.last == HN_CUDA_REDUCE_ROOT)
        v = sqrtf(v);
    else if (a.last == HN_CUDA_REDUCE_LOG)
        v = logf(v);
    else if (a.last == HN_CUDA_REDUCE_SHIFTED)
        v = shift_of(a, o) + logf(v);
    if (a.last == HN_CUDA_REDUCE_KEPT)
        hn_at<float>(a.y)[o] = v;
    else
        hn_store(hn_at<T>(a.y) + o, v);
}

template <typename T, typename N> __device__ static void put(const HnCudaReduceArgs &a, int64_t o, int64_t part, N v)
{
    if (a.parts > 1)
        hn_at<float>(a.partial)[o * a.parts + part] = (float)v;
    else
        finish<T>(a, o, v);
}

template <typename How, typename N> __device__ static N over_group(N v, int group)
{
    for (int d = group / 2; d > 0; d /= 2)
        v = How::of(v, __shfl_xor_sync(HN_ALL_LANES, v, d));
    return v;
}

/* Of all threads; room: [HN_WARP] in shared memory, which may be used again at once. */
template <typename How, typename N> __device__ static N over_block(N v, N *room)
{
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    v = over_group<How>(v, HN_WARP);
    __syncthreads();
    if (lane == 0)
        room[warp] = v;
    __syncthreads();
    return over_group<How>(lane < THREADS / HN_WARP ? room[lane] : (N)How::start, HN_WARP);
}

/* Short rows: some lanes of a warp for each result. */
template <typename How, typename T> __device__ static void groups(const HnCudaReduceArgs &a)
{
    const int64_t each = THREADS / a.group;
    const int lane = threadIdx.x % a.group;
    for (int64_t first = blockIdx.x * each; first < a.outputs; first += gridDim.x * each) {
        const int64_t o = first + threadIdx.x / a.group;
        Wide<How, T> sum = How::start;
        if (o < a.outputs) {
            const T *x = hn_at<const T>(a.x) + offset_of(a.kept, o);
            const float shift = shift_of(a, o);
            for (int64_t r = lane; r < a.each; r += a.group)
                sum = How::of(sum, (Wide<How, T>)How::term(hn_load(x + offset_of(a.reduced, r)), shift));
        }
        sum = over_group<How>(sum, a.group);
        if (o < a.outputs && lane == 0)
            finish<T>(a, o, sum);
    }
}

#define AT_ONCE 8 /* vectors that a thread reads before it adds them */

/* Over elements [from, to) side by side from x on, by `team` threads of which this is `rank`; four at a time. */
template <typename How, typename T>
__device__ static Wide<How, T> over_run(const T *x, int64_t from, int64_t to, int team, int rank, bool vector,
                                        float shift)
{
    const int step = 4 * team;
    Wide<How, T> sum = How::start;
    for (int64_t r = from + 4 * rank; r < to; r += AT_ONCE * step) {
        float v[AT_ONCE][4];
        hn_load_pieces(v, x, r, (int64_t)step, to, vector);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (r + k * step < to) {
                float four = How::start;
#pragma unroll
                for (int j = 0; j < 4; j++)
                    if (r + k * step + j < to)
                        four = How::of(four, How::term(v[k][j], shift));
                sum = How::of(sum, (Wide<How, T>)four);
            }
    }
    return sum;
}

/* Elements of a result lie side by side: some lanes of a warp for each result. */
template <typename How, typename T> __device__ static void runs(const HnCudaReduceArgs &a)
{
    const int64_t each = THREADS / a.group;
    const int lane = threadIdx.x % a.group;
    for (int64_t first = blockIdx.x * each; first < a.outputs; first += gridDim.x * each) {
        const int64_t o = first + threadIdx.x / a.group;
        Wide<How, T> sum = How::start;
        if (o < a.outputs)
            sum = over_run<How>(hn_at<const T>(a.x) + offset_of(a.kept, o), 0, a.each, a.group, lane, a.vector != 0,
                                shift_of(a, o));
        sum = over_group<How>(sum, a.group);
        if (o < a.outputs && lane == 0)
            finish<T>(a, o, sum);
    }
}

/* Long rows: a block for each part of a result. */
template <typename How, typename T> __device__ static void rows(const HnCudaReduceArgs &a)
{
    __shared__ Wide<How, T> room[HN_WARP];
    for (int64_t unit = blockIdx.x; unit < a.outputs * a.parts; unit += gridDim.x) {
        const int64_t o = unit / a.parts, part = unit % a.parts, end = min((part + 1) * a.part, a.each);
        const T *x = hn_at<const T>(a.x) + offset_of(a.kept, o);
        const float shift = shift_of(a, o);
        Wide<How, T> sum = How::start;
        if (a.vector)
            sum = over_run<How>(x, part * a.part, end, THREADS, threadIdx.x, true, shift);
        else
            for (int64_t r = part * a.part + threadIdx.x; r < end; r += THREADS)
                sum = How::of(sum, (Wide<How, T>)How::term(hn_load(x + offset_of(a.reduced, r)), shift));
        sum = over_block<How>(sum, room);
        if (threadIdx.x == 0)
            put<T>(a, o, part, sum);
    }
}

/* Over elements `apart` from one another, of rows from r on, `step` rows apart, in their order. */
template <typename How, typename T>
__device__ static Wide<How, T> over_column(const T *x, int64_t r, int64_t end, int step, int64_t apart, float shift)
{
    Wide<How, T> sum = How::start;
    for (; r < end; r += AT_ONCE * step) {
        T v[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (r + k * step < end)
                v[k] = x[(r + k * step) * apart];
        float some = How::start;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (r + k * step < end)
                some = How::of(some, How::term(hn_load(&v[k]), shift));
        sum = How::of(sum, (Wide<How, T>)some);
    }
    return sum;
}

/* The last axis is kept: a block for each part of some results side by side. */
template <typename How, typename T> __device__ static void columns(const HnCudaReduceArgs &a)
{
    __shared__ Wide<How, T> room[THREADS];
    const int64_t tiles = (a.inner + a.width - 1) / a.width, all = a.outputs / a.inner * tiles * a.parts;
    const int column = threadIdx.x % a.width, row = threadIdx.x / a.width;
    for (int64_t unit = blockIdx.x; unit < all; unit += gridDim.x) {
        const int64_t part = unit % a.parts, tile = unit / a.parts, c = tile % tiles * a.width + column;
        const int64_t o = tile / tiles * a.inner + c, end = min((part + 1) * a.part, a.each);
        const bool mine = row < a.rows && c < a.inner;
        Wide<How, T> sum = How::start;
        if (mine) {
            const T *x = hn_at<const T>(a.x) + offset_of(a.kept, o);
            const float shift = shift_of(a, o);
            const int64_t first = part * a.part + row;
            if (a.reduced.n == 1)
                sum = over_column<How>(x, first, end, a.rows, a.reduced.strides[0], shift);
            for (int64_t r = first; r < end && a.reduced.n > 1; r += a.rows)
                sum = How::of(sum, (Wide<How, T>)How::term(hn_load(x + offset_of(a.reduced, r)), shift));
        }
        __syncthreads();
        room[threadIdx.x] = sum;
        for (int n = a.rows, half; n > 1; n = half) {
            half = (n + 1) / 2;
            __syncthreads();
            if (row + half < n)
                room[threadIdx.x] = How::of(room[threadIdx.x], room[threadIdx.x + half * a.width]);
        }
        if (mine && row == 0)
            put<T>(a, o, part, room[threadIdx.x]);
    }
}

/* Results from their parts: some lanes of a warp for each. */
template <typename How, typename T> __device__ static void join(const HnCudaReduceArgs &a)
{
    const int64_t each = THREADS / a.group;
    const int lane = threadIdx.x % a.group;
    for (int64_t first = blockIdx.x * each; first < a.outputs; first += gridDim.x * each) {
        const int64_t o = first + threadIdx.x / a.group;
        Wide<How, T> sum = How::start;
        for (int64_t p = lane; o < a.outputs && p < a.parts; p += a.group)
            sum = How::of(sum, (Wide<How, T>)hn_at<const float>(a.partial)[o * a.parts + p]);
        sum = over_group<How>(sum, a.group);
        if (o < a.outputs && lane == 0)
            finish<T>(a, o, sum);
    }
}

#define KERNEL(title, how, form, suffix, type)                                         \
    extern "C" __global__ void __launch_bounds__(THREADS)                              \
        reduce_##form##_##title##_##suffix(const __grid_constant__ HnCudaReduceArgs a) \
    {                                                                                  \
        form<how, type>(a);                                                            \
    }
#define FORMS(title, how, suffix, type)      \
    KERNEL(title, how, groups, suffix, type) \
    KERNEL(title, how, runs, suffix, type)   \
    KERNEL(title, how, rows, suffix, type)   \
    KERNEL(title, how, columns, suffix, type)
#define DEFINE(suffix, type)                     \
    FORMS(sum, Sum, suffix, type)                \
    FORMS(sizes, Sizes, suffix, type)            \
    FORMS(squares, Squares, suffix, type)        \
    FORMS(powers, Powers, suffix, type)          \
    FORMS(product, Product, suffix, type)        \
    FORMS(most, Most, suffix, type)              \
    FORMS(least, Least, suffix, type)            \
    KERNEL(sum, Sum, join, suffix, type)         \
    KERNEL(product, Product, join, suffix, type) \
    KERNEL(most, Most, join, suffix, type)       \
    KERNEL(least, Least, join, suffix, type)
HN_EACH_FLOAT(DEFINE)
