#include "cuda/core/device.cuh"
#include "cuda/move/cuda_tfidf_args.h"

/* Which of n elements, whose first member ascends, has this one; -1: none. */
__device__ inline int32_t find(const HnCudaNgramItem *v, int32_t n, int64_t x)
{
    for (int32_t lo = 0, hi = n; lo < hi;) {
        const int32_t middle = lo + (hi - lo) / 2;
        if (v[middle].value == x)
            return v[middle].number;
        if (v[middle].value < x)
            lo = middle + 1;
        else
            hi = middle;
    }
    return -1;
}
__device__ inline int32_t next(const HnCudaNgramStep *v, int32_t n, int32_t node, int32_t item)
{
    const int64_t key = (int64_t)node << 32 | (uint32_t)item;
    for (int32_t lo = 0, hi = n; lo < hi;) {
        const int32_t middle = lo + (hi - lo) / 2;
        if (v[middle].key == key)
            return v[middle].node;
        if (v[middle].key < key)
            lo = middle + 1;
        else
            hi = middle;
    }
    return 0;
}

extern "C" __global__ void tfidf_items(const __grid_constant__ HnCudaTfIdfArgs a)
{
    for (int64_t i = hn_first(); i < a.rows * a.n; i += hn_stride())
        hn_at<int32_t>(a.item)[i] = find(hn_at<const HnCudaNgramItem>(a.items), a.n_items,
                                         a.wide ? hn_at<const int64_t>(a.x)[i] : hn_at<const int32_t>(a.x)[i]);
}

/* A thread for each distance, row and first item. Single items count once, whatever the distance. */
extern "C" __global__ void tfidf_count(const __grid_constant__ HnCudaTfIdfArgs a)
{
    for (int64_t i = hn_first(); i < a.distances * a.rows * a.n; i += hn_stride()) {
        const int64_t start = i % a.n, row = i / a.n % a.rows, apart = i / a.n / a.rows + 1;
        const int64_t shortest = apart > 1 && a.shortest < 2 ? 2 : a.shortest;
        const int32_t *item = hn_at<const int32_t>(a.item) + row * a.n;
        int32_t node = 0;
        int64_t length = 1;
        for (int64_t k = start; k < a.n && item[k] >= 0 && length <= a.longest; k += apart, length++) {
            node = next(hn_at<const HnCudaNgramStep>(a.steps), a.n_steps, node, item[k]);
            if (node == 0)
                break;
            const int32_t place = hn_at<const int32_t>(a.place)[node];
            if (length >= shortest && place >= 0)
                atomicAdd(hn_at<unsigned>(a.y) + row * a.width + place, 1u);
        }
    }
}

extern "C" __global__ void tfidf_weigh(const __grid_constant__ HnCudaTfIdfArgs a)
{
    for (int64_t i = hn_first(); i < a.rows * a.width; i += hn_stride()) {
        const unsigned count = hn_at<const unsigned>(a.y)[i];
        const float w = a.weigh && a.weights != 0 ? hn_at<const float>(a.weights)[i % a.width] : 1.0f;
        hn_at<float>(a.y)[i] = a.flags ? (count > 0 ? w : 0.0f) : (float)count * w;
    }
}
