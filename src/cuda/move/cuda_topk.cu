#include "cuda/move/cuda_topk_args.h"
#include "cuda/move/order.cuh"

#define NONE 0xffffffffffffffffull

/* What comes first has the least number. */
__device__ inline uint32_t key_of(const HnCudaTopKArgs &a, float v)
{
    return a.smallest ? hn_order(v) : ~hn_order(v);
}

/* n numbers, a power of two, in ascending order, by all threads. */
__device__ void sort_room(uint64_t *room, int n)
{
    for (int size = 2; size <= n; size *= 2)
        for (int d = size / 2; d > 0; d /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
                const int low = i / d * 2 * d + i % d;
                const uint64_t x = room[low], y = room[low + d];
                if ((x > y) == ((low & size) == 0)) {
                    room[low] = y;
                    room[low + d] = x;
                }
            }
        }
    __syncthreads();
}

/* The elements of [begin, end) in room[0, k), sorted: those so far, and behind them the ones that are better than the
 * k-th of these, until there is no room for more. */
template <typename T>
__device__ void best_of(const HnCudaTopKArgs &a, const T *x, const uint64_t *found, int64_t begin, int64_t end,
                        uint64_t *room, uint32_t *more)
{
    const int k = (int)a.k;
    uint64_t worst = NONE;
    for (int i = threadIdx.x; i < HN_CUDA_TOPK_ROOM; i += blockDim.x)
        room[i] = NONE;
    if (threadIdx.x == 0)
        *more = 0;
    __syncthreads();
    for (int64_t base = begin; base < end; base += blockDim.x) {
        const int64_t i = base + threadIdx.x;
        const uint64_t rank = i >= end           ? NONE
                              : found != nullptr ? found[i]
                                                 : hn_ranked(key_of(a, hn_load(x + i * a.inner)), (uint32_t)i);
        if (rank < worst)
            room[k + atomicAdd(more, 1u)] = rank;
        __syncthreads();
        const int used = k + (int)*more;
        const bool last = base + blockDim.x >= end;
        __syncthreads();
        if (!last && used + (int)blockDim.x <= HN_CUDA_TOPK_ROOM)
            continue;
        int n = 2;
        while (n < used)
            n *= 2;
        sort_room(room, n);
        worst = room[k - 1];
        for (int j = k + threadIdx.x; j < used; j += blockDim.x)
            room[j] = NONE;
        if (threadIdx.x == 0)
            *more = 0;
        __syncthreads();
    }
}

__device__ inline int64_t row_begin(const HnCudaTopKArgs &a, int64_t row, int64_t length)
{
    return row / a.inner * length * a.inner + row % a.inner;
}

template <typename T> __device__ inline void write(const HnCudaTopKArgs &a, int64_t row, int64_t place, uint32_t from)
{
    const int64_t to = row_begin(a, row, a.k) + place * a.inner;
    hn_at<T>(a.y)[to] = hn_at<const T>(a.x)[row_begin(a, row, a.n) + from * a.inner];
    if (a.index != 0)
        hn_at<int64_t>(a.index)[to] = from;
}

template <typename T> __device__ void topk(const HnCudaTopKArgs &a)
{
    __shared__ uint64_t room[HN_CUDA_TOPK_ROOM];
    __shared__ uint32_t more;
    for (int64_t b = blockIdx.x; b < a.rows * a.parts; b += gridDim.x) {
        const int64_t row = b / a.parts, begin = b % a.parts * a.part, end = min(a.n, begin + a.part);
        if (a.from_found)
            best_of<T>(a, nullptr, hn_at<const uint64_t>(a.found) + row * a.part, 0, a.part, room, &more);
        else
            best_of<T>(a, hn_at<const T>(a.x) + row_begin(a, row, a.n), nullptr, begin, end, room, &more);
        for (int64_t i = threadIdx.x; i < a.k; i += blockDim.x)
            if (a.to_found)
                hn_at<uint64_t>(a.found)[b * a.k + i] = room[i];
            else
                write<T>(a, row, i, (uint32_t)room[i]);
        __syncthreads();
    }
}

/* --- by sorting all elements ------------------------------------------------------------------------------------- */

template <typename T> __device__ void topk_keys(const HnCudaTopKArgs &a)
{
    for (int64_t i = hn_first(); i < a.rows * a.n; i += hn_stride())
        hn_at<uint32_t>(a.key)[i] =
            key_of(a, hn_load(hn_at<const T>(a.x) + row_begin(a, i / a.n, a.n) + i % a.n * a.inner));
}

template <typename T> __device__ void topk_sorted(const HnCudaTopKArgs &a)
{
    for (int64_t i = hn_first(); i < a.rows * a.k; i += hn_stride()) {
        const int64_t row = i / a.k, place = i % a.k;
        write<T>(a, row, place, (uint32_t)(hn_at<const uint32_t>(a.item)[row * a.n + place] - row * a.n));
    }
}

/* Which row an element is of. */
extern "C" __global__ void topk_row_keys(const __grid_constant__ HnCudaTopKArgs a)
{
    for (int64_t i = hn_first(); i < a.rows * a.n; i += hn_stride())
        hn_at<uint32_t>(a.key)[i] = (uint32_t)(hn_at<const uint32_t>(a.item)[i] / a.n);
}

#define DEFINE(suffix, type)                                                                  \
    extern "C" __global__ void topk_##suffix(const __grid_constant__ HnCudaTopKArgs a)        \
    {                                                                                         \
        topk<type>(a);                                                                        \
    }                                                                                         \
    extern "C" __global__ void topk_keys_##suffix(const __grid_constant__ HnCudaTopKArgs a)   \
    {                                                                                         \
        topk_keys<type>(a);                                                                   \
    }                                                                                         \
    extern "C" __global__ void topk_sorted_##suffix(const __grid_constant__ HnCudaTopKArgs a) \
    {                                                                                         \
        topk_sorted<type>(a);                                                                 \
    }
HN_EACH_FLOAT(DEFINE)
