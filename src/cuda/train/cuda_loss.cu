#include "cuda/reduce/cuda_rows.cuh"
#include "cuda/train/cuda_loss_args.h"
#include "op/loss_limits.h"

#define THREADS HN_TILE_THREADS

struct Add {
    __device__ static double of(double a, double b)
    {
        return a + b;
    }
};

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* What a thread has of its row: elements first, first + step, ... below n. Threads without a row have none, but take
 * part in sums. */
template <typename T> struct Row {
    const HnCudaLossArgs &p;
    const T *a, *b;
    T *y;
    int64_t first, n, step, inner;
    int64_t row, label; /* label: -1: ignored */
    bool mine;
    double dy;
    double *room;

    __device__ float at(const T *x, int64_t k) const
    {
        return hn_load(x + k * inner);
    }
    __device__ void put(int64_t k, double v) const
    {
        hn_store(y + k * inner, (float)v);
    }
    __device__ double sum(double x) const
    {
        return hn_tile_reduce<Add>(x, p.width, room);
    }
    __device__ float most(const T *x) const
    {
        float v = HnMost::start;
        for (int64_t k = first; k < n; k += step)
            v = HnMost::of(v, at(x, k));
        return hn_tile_reduce<HnMost>(v, p.width, reinterpret_cast<float *>(room));
    }
};

/* A row whose elements are taken as (x - most) * by. */
template <typename T> struct Soft {
    const T *x;
    float most, by;
    double sum; /* of e^... */

    __device__ Soft(const Row<T> &r, const T *x, double by) : x(x), most(r.most(x)), by((float)by)
    {
        double s = 0;
        for (int64_t k = r.first; k < r.n; k += r.step)
            s += (double)expf(of(r, k));
        sum = r.sum(s);
    }
    __device__ float of(const Row<T> &r, int64_t k) const
    {
        return (r.at(x, k) - most) * by;
    }
};

__device__ static int64_t label_of(const HnCudaLossArgs &p, int64_t row)
{
    const int64_t label =
        p.label_bytes == 4 ? hn_at<const int32_t>(p.labels)[row] : hn_at<const int64_t>(p.labels)[row];
    if (label == p.ignore_index)
        return -1;
    if (label >= 0 && label < p.n)
        return label;
    hn_complain(p.complaint, row);
    return -1;
}

struct CrossEntropy {
    template <typename T> __device__ static double loss(const Row<T> &r)
    {
        const Soft<T> a(r, r.a, 1);
        const double smoothing = (double)r.p.smoothing, log_sum = log(a.sum);
        double all = 0;
        if (smoothing > 0) {
            double s = 0;
            for (int64_t k = r.first; k < r.n; k += r.step)
                s += (double)a.of(r, k);
            all = smoothing * (log_sum - r.sum(s) / (double)r.p.n);
        }
        if (r.label < 0)
            return 0;
        return all + (smoothing < 1 ? (1 - smoothing) * (log_sum - (double)a.of(r, r.label)) : 0);
    }
    template <typename T> __device__ static void grad(const Row<T> &r)
    {
        const Soft<T> a(r, r.a, 1);
        const double least = (double)r.p.smoothing / (double)r.p.n, by = 1 / a.sum;
        for (int64_t k = r.first; k < r.n; k += r.step) {
            double v = 0;
            if (k == r.label)
                v = exp((double)a.of(r, k)) * by - least - (1 - (double)r.p.smoothing);
            else if (r.label >= 0)
                v = (double)expf(a.of(r, k)) * by - least;
            r.put(k, v * r.dy);
        }
    }
};

struct Kl {
    /* What x becomes by, and its mean: with `standardize` it is (x - mean) / s. */
    template <typename T> __device__ static double softening(const Row<T> &r, const T *x, double *mean, double *s)
    {
        *mean = 0;
        *s = 1;
        if (r.p.standardize) {
            double sum = 0;
            for (int64_t k = r.first; k < r.n; k += r.step)
                sum += (double)r.at(x, k);
            *mean = r.sum(sum) / (double)r.p.n;
            sum = 0;
            for (int64_t k = r.first; k < r.n; k += r.step) {
                const double d = (double)r.at(x, k) - *mean;
                sum += d * d;
            }
            *s = sqrt(r.sum(sum) / (double)r.p.n) + HN_LOSS_STD_EPSILON;
        }
        return 1 / (*s * (double)r.p.temperature);
    }
    template <typename T> __device__ static double loss(const Row<T> &r)
    {
        double mean, s, t = (double)r.p.temperature, excess = 0;
        const double by = softening(r, r.a, &mean, &s);
        const Soft<T> a(r, r.a, by), b(r, r.b, softening(r, r.b, &mean, &s));
        for (int64_t k = r.first; k < r.n; k += r.step) {
            const float of_b = b.of(r, k), e = expf(of_b);
            excess += e == 0 ? 0 : (double)(e * (of_b - a.of(r, k)));
        }
        return t * t * (r.sum(excess) / b.sum + log(a.sum) - log(b.sum));
    }
    template <typename T> __device__ static void grad(const Row<T> &r)
    {
        double mean, s, unused, t = (double)r.p.temperature;
        const Soft<T> b(r, r.b, softening(r, r.b, &mean, &unused));
        const Soft<T> a(r, r.a, softening(r, r.a, &mean, &s));
        const float of_a = (float)(1 / a.sum), of_b = (float)(1 / b.sum);
        double along = 0, c = 0;
        if (r.p.standardize) { /* through (x - mean) / s; the differences' own mean is 0 */
            for (int64_t k = r.first; k < r.n; k += r.step)
                along += (double)(fmaf(expf(a.of(r, k)), of_a, -expf(b.of(r, k)) * of_b) * a.of(r, k));
            const double std = s - HN_LOSS_STD_EPSILON, stretch = std > 0 ? s / std : 0;
            c = t * t * r.sum(along) / (double)r.p.n * stretch / (s * s);
        }
        for (int64_t k = r.first; k < r.n; k += r.step) {
            const float d = fmaf(expf(a.of(r, k)), of_a, -expf(b.of(r, k)) * of_b);
            r.put(k, r.dy * ((double)d * t / s - c * ((double)r.at(r.a, k) - mean)));
        }
    }
};

struct Cosine {
    double ab, a, b; /* a and b: lengths */

    template <typename T> __device__ explicit Cosine(const Row<T> &r)
    {
        double sums[3] = { 0, 0, 0 };
        for (int64_t k = r.first; k < r.n; k += r.step) {
            const double u = (double)r.at(r.a, k), v = (double)r.at(r.b, k);
            sums[0] += u * v;
            sums[1] += u * u;
            sums[2] += v * v;
        }
        ab = r.sum(sums[0]);
        a = fmax(sqrt(r.sum(sums[1])), HN_LOSS_LEAST_NORM);
        b = fmax(sqrt(r.sum(sums[2])), HN_LOSS_LEAST_NORM);
    }
    template <typename T> __device__ static double loss(const Row<T> &r)
    {
        const Cosine c(r);
        return 1 - c.ab / c.a / c.b;
    }
    template <typename T> __device__ static void grad(const Row<T> &r)
    {
        const Cosine c(r);
        const double along = c.a > HN_LOSS_LEAST_NORM ? c.ab / (c.a * c.b) / (c.a * c.a) : 0;
        for (int64_t k = r.first; k < r.n; k += r.step)
            r.put(k, r.dy * ((double)r.at(r.a, k) * along - (double)r.at(r.b, k) / c.b / c.a));
    }
};

template <typename T> __device__ static Row<T> row_at(const HnCudaLossArgs &p, int64_t tile, double *room)
{
    const int64_t row = tile * p.width + threadIdx.x % p.width;
    const bool mine = row < p.rows;
    const int64_t outer = mine ? hn_divide(row, p.inner) : 0;
    const int64_t from = mine ? outer * p.n * p.inner + (row - outer * p.inner) : 0;
    Row<T> r = { p, hn_at<const T>(p.a) + from, hn_at<const T>(p.b) + from, hn_at<T>(p.y) + from };
    r.first = threadIdx.x / p.width;
    r.n = mine ? p.n : 0;
    r.step = THREADS / p.width;
    r.inner = p.inner;
    r.row = row;
    r.mine = mine;
    r.label = mine && p.labels != 0 ? label_of(p, row) : -1;
    r.dy = p.dy != 0 ? (double)hn_load(hn_at<const T>(p.dy)) : 0;
    r.room = room;
    return r;
}

/* Sums of losses of rows: one for each block. */
template <typename How, typename T> __device__ static void losses(const HnCudaLossArgs &p)
{
    __shared__ double room[THREADS];
    double all = 0;
    for (int64_t tile = blockIdx.x; tile * p.width < p.rows; tile += gridDim.x) {
        const Row<T> r = row_at<T>(p, tile, room);
        const double loss = How::template loss<T>(r);
        all += r.mine && r.first == 0 ? loss : 0;
    }
    all = hn_block_sum(all, room);
    if (threadIdx.x == 0)
        hn_at<double>(p.partial)[blockIdx.x] = all;
}

template <typename How, typename T> __device__ static void grads(const HnCudaLossArgs &p)
{
    __shared__ double room[THREADS];
    for (int64_t tile = blockIdx.x; tile * p.width < p.rows; tile += gridDim.x)
        How::template grad<T>(row_at<T>(p, tile, room));
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

struct Mse {
    __device__ static double of(const HnCudaLossArgs &, float x, float y)
    {
        const double d = (double)x - (double)y;
        return d * d;
    }
};
struct L1 {
    __device__ static double of(const HnCudaLossArgs &, float x, float y)
    {
        return fabs((double)x - (double)y);
    }
};
struct Bce {
    __device__ static double of(const HnCudaLossArgs &p, float x, float y)
    {
        if (!p.probabilities)
            return (double)fmaxf(x, 0.0f) - (double)x * (double)y + (double)log1pf(expf(-fabsf(x)));
        const float least = HN_LOSS_LEAST_LOG;
        return -(double)y * (double)fmaxf(logf(x), least) - (1 - (double)y) * (double)fmaxf(log1pf(-x), least);
    }
    __device__ static float grad(const HnCudaLossArgs &p, float x, float y)
    {
        const float least = (float)HN_LOSS_LEAST_PROBABILITY;
        if (!p.probabilities)
            return 1.0f / (1.0f + expf(-x)) - y;
        return (1.0f - y) / fmaxf(1.0f - x, least) - y / fmaxf(x, least);
    }
};

/* Sums of losses of elements, of which there are p.rows: one for each block. */
template <typename How, typename T> __device__ static void elements(const HnCudaLossArgs &p)
{
    __shared__ double room[HN_WARP];
    double sum = 0;
    for (int64_t i = hn_first(); i < p.rows; i += hn_stride())
        sum += How::of(p, hn_load(hn_at<const T>(p.a) + i), hn_load(hn_at<const T>(p.b) + i));
    sum = hn_block_sum(sum, room);
    if (threadIdx.x == 0)
        hn_at<double>(p.partial)[blockIdx.x] = sum;
}

template <typename T> __device__ static void element_grads(const HnCudaLossArgs &p)
{
    const float dy = hn_load(hn_at<const T>(p.dy));
    for (int64_t i = hn_first(); i < p.rows; i += hn_stride())
        hn_store(hn_at<T>(p.y) + i,
                 dy * Bce::grad(p, hn_load(hn_at<const T>(p.a) + i), hn_load(hn_at<const T>(p.b) + i)));
}

/* The sum of all blocks', in one block. */
template <typename T> __device__ static void join(const HnCudaLossArgs &p)
{
    __shared__ double room[HN_WARP];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < p.parts; i += THREADS)
        sum += hn_at<const double>(p.partial)[i];
    sum = hn_block_sum(sum, room);
    if (threadIdx.x == 0)
        hn_store(hn_at<T>(p.y), (float)sum);
}

#define KERNEL(name, suffix, ...)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) name##_##suffix(const __grid_constant__ HnCudaLossArgs p) \
    {                                                                                                               \
        __VA_ARGS__(p);                                                                                             \
    }
#define DEFINE(suffix, type)                                          \
    KERNEL(loss_crossentropy, suffix, losses<CrossEntropy, type>)     \
    KERNEL(loss_kl, suffix, losses<Kl, type>)                         \
    KERNEL(loss_cosine, suffix, losses<Cosine, type>)                 \
    KERNEL(loss_crossentropy_grad, suffix, grads<CrossEntropy, type>) \
    KERNEL(loss_kl_grad, suffix, grads<Kl, type>)                     \
    KERNEL(loss_cosine_grad, suffix, grads<Cosine, type>)             \
    KERNEL(loss_mse, suffix, elements<Mse, type>)                     \
    KERNEL(loss_l1, suffix, elements<L1, type>)                       \
    KERNEL(loss_bce, suffix, elements<Bce, type>)                     \
    KERNEL(loss_bce_grad, suffix, element_grads<type>)                \
    KERNEL(loss_join, suffix, join<type>)
HN_EACH_FLOAT(DEFINE)
