#include "cuda/reduce/cuda_rotary_args.h"
#include "cuda/reduce/cuda_rows.cuh"

__device__ static int64_t place_of(const HnCudaRotaryArgs &a, int64_t token)
{
    if (a.ids == 0)
        return token;
    const int64_t id = hn_at<const int64_t>(a.ids)[token];
    if (id >= 0 && id < a.places)
        return id;
    hn_complain(a.complaint, token);
    return 0;
}

/* A thread for each pair; behind the pairs, for each element that is left as it is. */
template <typename T> __device__ static void rotary(const HnCudaRotaryArgs &a)
{
    const int64_t each = a.head - a.half, all = a.batch * a.heads * a.length * each;
    for (int64_t i = hn_first(); i < all; i += hn_stride()) {
        const int64_t vector = hn_divide(i, each), k = i - vector * each;
        const int64_t t = vector % a.length, h = vector / a.length % a.heads, b = vector / a.length / a.heads;
        const int64_t at = b * a.s_batch + h * a.s_head + t * a.s_token;
        const T *x = hn_at<const T>(a.x) + at;
        T *y = hn_at<T>(a.y) + at;
        if (k >= a.half) {
            y[a.half + k] = x[a.half + k];
            continue;
        }
        const int64_t row = place_of(a, b * a.length + t) * a.half + k;
        const float c = hn_load(hn_at<const T>(a.cosine) + row), s = hn_load(hn_at<const T>(a.sine) + row);
        const int64_t first = a.interleaved ? 2 * k : k, second = a.interleaved ? 2 * k + 1 : k + a.half;
        const float u = hn_load(x + first), v = hn_load(x + second);
        hn_store(y + first, c * u - s * v);
        hn_store(y + second, s * u + c * v);
    }
}

#define DEFINE(suffix, type)                                                               \
    extern "C" __global__ void rotary_##suffix(const __grid_constant__ HnCudaRotaryArgs a) \
    {                                                                                      \
        rotary<type>(a);                                                                   \
    }
HN_EACH_FLOAT(DEFINE)
