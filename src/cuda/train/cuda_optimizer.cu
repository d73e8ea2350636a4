#include "cuda/reduce/cuda_rows.cuh"
#include "cuda/train/cuda_optimizer_args.h"
#include "op/hyper.h"

#define THREADS 256

/* What a step multiplies by. */
struct Numbers {
    float scale, rate, keep; /* keep: 1 - rate * decay */
    float decay;
    float rate1, root2; /* rate / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
};

struct AdamW {
    __device__ static void step(const HnCudaOptimizer &a, const Numbers &k, float s[HN_CUDA_STATES], float dw)
    {
        const float g = dw * k.scale, mean = fmaf(a.new1, g - s[1], s[1]), square = fmaf(a.new2 * g, g, a.keep2 * s[2]);
        s[0] = fmaf(s[0], k.keep, -k.rate1 * mean / fmaf(sqrtf(square), k.root2, a.epsilon));
        s[1] = mean;
        s[2] = square;
    }
};
struct Descend {
    __device__ static void step(const HnCudaOptimizer &a, const Numbers &k, float s[HN_CUDA_STATES], float dw)
    {
        s[0] = fmaf(-k.rate, fmaf(k.decay, s[0], dw * k.scale), s[0]);
    }
};
struct Momentum {
    __device__ static void step(const HnCudaOptimizer &a, const Numbers &k, float s[HN_CUDA_STATES], float dw)
    {
        s[1] = fmaf(a.momentum, s[1], fmaf(k.decay, s[0], dw * k.scale));
        s[0] = fmaf(-k.rate, s[1], s[0]);
    }
};
struct Nesterov {
    __device__ static void step(const HnCudaOptimizer &a, const Numbers &k, float s[HN_CUDA_STATES], float dw)
    {
        const float g = fmaf(k.decay, s[0], dw * k.scale);
        s[1] = fmaf(a.momentum, s[1], g);
        s[0] = fmaf(-k.rate, fmaf(a.momentum, s[1], g), s[0]);
    }
};
struct Lion {
    __device__ static void step(const HnCudaOptimizer &a, const Numbers &k, float s[HN_CUDA_STATES], float dw)
    {
        const float g = dw * k.scale, by = fmaf(a.new1, g - s[1], s[1]);
        const float rate = by > 0 ? k.rate : by < 0 ? -k.rate : by; /* 0, or NaN */
        s[1] = fmaf(a.new2, g - s[1], s[1]);
        s[0] = fmaf(s[0], k.keep, -rate);
    }
};
struct Average {
    __device__ static void step(const HnCudaOptimizer &a, const Numbers &, float s[HN_CUDA_STATES], float w)
    {
        s[0] = fmaf(a.new1, w - s[0], s[0]);
    }
};

/* Four elements a thread at a time; where the scale is not finite, results are the operands, bit by bit. */
template <typename How>
__device__ static void update(const HnCudaOptimizer &a, const HnCudaOptimized &w, int64_t first, int64_t stride)
{
    const float *hyper = hn_at<const float>(w.hyper);
    Numbers k = { 1, 0, 1, w.decay, 0, 1 };
    bool skip = false, vector = w.n % 4 == 0 && w.dw % 16 == 0;
    if (w.hyper != 0) {
        k.scale = hyper[HN_HYPER_SCALE];
        k.rate = hyper[HN_HYPER_RATE];
        k.keep = fmaf(-k.rate, w.decay, 1.0f);
        k.rate1 = k.rate * hyper[HN_HYPER_FIRST];
        k.root2 = sqrtf(hyper[HN_HYPER_SECOND]);
        skip = !isfinite(k.scale);
    }
    for (int j = 0; j < a.states; j++)
        vector = vector && (w.in[j] | w.out[j]) % 16 == 0;
    for (int64_t i = 4 * first; i < w.n; i += 4 * stride) {
        float s[HN_CUDA_STATES][4], dw[4], one[HN_CUDA_STATES];
        hn_load4(dw, hn_at<const float>(w.dw), i, w.n, vector);
        for (int j = 0; j < HN_CUDA_STATES; j++)
            if (j < a.states)
                hn_load4(s[j], hn_at<const float>(w.in[j]), i, w.n, vector);
        for (int e = 0; e < 4 && !skip; e++) {
            for (int j = 0; j < HN_CUDA_STATES; j++)
                one[j] = j < a.states ? s[j][e] : 0.0f;
            How::step(a, k, one, dw[e]);
            for (int j = 0; j < HN_CUDA_STATES; j++)
                s[j][e] = one[j];
        }
        for (int j = 0; j < HN_CUDA_STATES; j++)
            if (j < a.states)
                hn_store4(hn_at<float>(w.out[j]), s[j], i, w.n, vector);
    }
}

/* The weight that the block is one of: the last one whose first block is not behind this one. */
template <typename How> __device__ static void update_one(const HnCudaOptimizersArgs &a)
{
    int lo = 0, hi = a.weights - 1;
    while (lo < hi) {
        const int mid = (lo + hi + 1) / 2;
        if (a.weight[mid].first <= (int32_t)blockIdx.x)
            lo = mid;
        else
            hi = mid - 1;
    }
    const int32_t first = a.weight[lo].first, end = lo + 1 < a.weights ? a.weight[lo + 1].first : a.blocks;
    update<How>(a.how, a.weight[lo], (int64_t)((int32_t)blockIdx.x - first) * blockDim.x + threadIdx.x,
                (int64_t)(end - first) * blockDim.x);
}

#define KERNEL(name, How)                                                                             \
    extern "C" __global__ void optimizer_##name##_f32(const __grid_constant__ HnCudaOptimizersArgs a) \
    {                                                                                                 \
        update_one<How>(a);                                                                           \
    }
KERNEL(adamw, AdamW)
KERNEL(descend, Descend)
KERNEL(momentum, Momentum)
KERNEL(nesterov, Nesterov)
KERNEL(lion, Lion)
KERNEL(average, Average)

/* --- the norm of all gradients ------------------------------------------------------------------------------------ */

/* Sums of squares of chunks, a block for each, in f64: squares of large numbers are beyond f32. */
extern "C" __global__ void optimizer_squares(const __grid_constant__ HnCudaNormArgs a)
{
    __shared__ double room[HN_WARP];
    for (int64_t chunk = a.from + blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
        int lo = 0, hi = a.inputs - 1; /* the last input whose first chunk is not behind this one */
        while (lo < hi) {
            const int mid = (lo + hi + 1) / 2;
            if (a.input[mid].first <= chunk)
                lo = mid;
            else
                hi = mid - 1;
        }
        const int64_t from = (chunk - a.input[lo].first) * HN_CUDA_NORM_CHUNK;
        const int64_t end = min(from + HN_CUDA_NORM_CHUNK, a.input[lo].n);
        double sum = 0;
        for (int64_t i = from + threadIdx.x; i < end; i += blockDim.x) {
            const double v = (double)hn_at<const float>(a.input[lo].x)[i];
            sum += v * v;
        }
        sum = hn_block_sum(sum, room);
        if (threadIdx.x == 0)
            hn_at<double>(a.sums)[chunk] = sum;
    }
}

/* One block. */
extern "C" __global__ void optimizer_clip(const __grid_constant__ HnCudaClipArgs a)
{
    __shared__ double room[HN_WARP];
    double squares = 0;
    for (int64_t i = threadIdx.x; i < a.chunks; i += blockDim.x)
        squares += hn_at<const double>(a.sums)[i];
    squares = hn_block_sum(squares, room);
    if (threadIdx.x != 0)
        return;
    const float *hyper = hn_at<const float>(a.hyper);
    float *next = hn_at<float>(a.next), scale = hyper[HN_HYPER_SCALE];
    const double norm = sqrt(squares) * fabs((double)scale), by = a.limit / (norm + HN_CLIP_EPSILON);
    if (!isfinite(norm))
        scale = nanf("");
    else if (by < 1)
        scale = (float)((double)scale * by);
    for (int k = 0; k < HN_HYPERS; k++)
        next[k] = k == HN_HYPER_SCALE ? scale : hyper[k];
    if (a.norm != 0)
        *hn_at<float>(a.norm) = (float)norm;
}
