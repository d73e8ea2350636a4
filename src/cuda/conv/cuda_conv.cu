#include "cuda/conv/cuda_conv_args.h"
#include "cuda/conv/cuda_conv_core.cuh"
#include "cuda/conv/cuda_window.cuh"

/* --- geometry ---------------------------------------------------------------------------------------------------- */

/* One axis of a phase: output q, at place start + q * step of y, reads places q * stride + j * dilation + base of x by
 * tap j, which is tap k_start + j * k_step of the weights. */
struct Axis {
    int32_t size, count, taps;
    int32_t stride, dilation, base, start, step, k_start, k_step;
};

/* Outputs of a phase of a transposed convolution read the taps k for which k * dilation has their remainder. */
__device__ inline Axis phase_of(const HnCudaWindowAxis &a, int32_t phase)
{
    int32_t common = a.stride, k = 0;
    for (int32_t d = a.dilation, rest; d != 0; d = rest) {
        rest = common % d;
        common = d;
    }
    const int32_t step = a.stride / common, first = min(step, a.kernel);
    while (k < first && (phase + a.pad - k * a.dilation) % a.stride != 0)
        k++;
    Axis r;
    r.size = a.out;
    r.count = phase < a.in ? (a.in - phase - 1) / a.stride + 1 : 0;
    r.taps = k < first ? (a.kernel - k - 1) / step + 1 : 0;
    r.stride = 1;
    r.dilation = -(a.dilation / common);
    r.base = (phase + a.pad - k * a.dilation) / a.stride;
    r.start = phase;
    r.step = a.stride;
    r.k_start = k;
    r.k_step = step;
    return r;
}

__device__ inline Axis axis_of(const HnCudaConvArgs &a, int i, int32_t phase)
{
    const HnCudaWindowAxis &w = a.axis[i];
    if (a.transposed)
        return phase_of(w, phase);
    return Axis{ w.in, w.out, w.kernel, w.stride, w.dilation, -w.pad, 0, 1, 0, 1 };
}

/* The part of the phase's number that is of axis i. */
__device__ inline int32_t phase_along(const HnCudaConvArgs &a, int i, int32_t phase)
{
    for (int k = 2; k > i; k--)
        phase /= a.phases[k];
    return phase % a.phases[i];
}

/* A pixel of a group's output, or a tap of a group's input channels: where it is in x, to be added to the other's
 * place, and where in y, or in the weights. */
struct Point {
    int64_t x, other; /* other: < 0: there is no such point */
    int32_t at[3];
};

__device__ inline Point no_point()
{
    return Point{ 0, -1, { INT32_MIN / 2, 0, 0 } };
}

__device__ inline int64_t place_in_x(const Axis *g, const int32_t *at)
{
    return ((int64_t)at[0] * g[1].size + at[1]) * g[2].size + at[2];
}

__device__ inline int64_t y_size(const HnCudaConvArgs &a, int i)
{
    return a.transposed ? a.axis[i].in : a.axis[i].out;
}

__device__ inline int64_t pixels_of(const HnCudaConvArgs &a, const Axis *g)
{
    return a.batch * g[0].count * g[1].count * g[2].count;
}

__device__ inline int64_t taps_of(const HnCudaConvArgs &a, const Axis *g)
{
    return (int64_t)a.in_channels * g[0].taps * g[1].taps * g[2].taps;
}

__device__ inline Point pixel(const HnCudaConvArgs &a, const Axis *g, int64_t i)
{
    int32_t q[3], to[3];
    Point p;
    const int64_t n = hn_place(i, g[0].count, g[1].count, g[2].count, q);
    for (int k = 0; k < 3; k++) {
        p.at[k] = q[k] * g[k].stride + g[k].base;
        to[k] = g[k].start + q[k] * g[k].step;
    }
    p.x = n * a.groups * a.in_channels * a.x_plane + place_in_x(g, p.at);
    p.other = n * a.groups * a.out_channels * a.y_plane + (to[0] * y_size(a, 1) + to[1]) * y_size(a, 2) + to[2];
    return p;
}

__device__ inline Point tap(const HnCudaConvArgs &a, const Axis *g, int64_t i)
{
    int32_t j[3], k[3];
    Point p;
    const int64_t channel = hn_place(i, g[0].taps, g[1].taps, g[2].taps, j);
    for (int n = 0; n < 3; n++) {
        p.at[n] = j[n] * g[n].dilation;
        k[n] = g[n].k_start + j[n] * g[n].k_step;
    }
    p.x = channel * a.x_plane + place_in_x(g, p.at);
    p.other = channel * a.w_in + ((int64_t)k[0] * a.axis[1].kernel + k[1]) * a.axis[2].kernel + k[2];
    return p;
}

/* The place in x that both are of lies in it. */
__device__ inline bool meet(const Axis *g, const Point &a, const Point &b)
{
    return (uint32_t)(a.at[0] + b.at[0]) < (uint32_t)g[0].size && (uint32_t)(a.at[1] + b.at[1]) < (uint32_t)g[1].size &&
           (uint32_t)(a.at[2] + b.at[2]) < (uint32_t)g[2].size;
}

/* What a block computes of. */
struct Part {
    int32_t row, group, phase, split; /* row: tile of output channels */
    int64_t column;
};

__device__ inline Part part_of(const HnCudaConvArgs &a)
{
    Part p;
    int64_t i = hn_divide(blockIdx.x, a.rows, p.row);
    const int64_t rest = i / a.columns;
    p.column = i - rest * a.columns;
    i = hn_divide(rest, a.groups, p.group);
    p.split = (int32_t)hn_divide(i, a.phases[0] * a.phases[1] * a.phases[2], p.phase);
    return p;
}

/* --- tiles ------------------------------------------------------------------------------------------------------- */

/* Columns of the result, and terms of their sums: pixels and taps, or the other way round. */
template <bool GRAD> struct Sides {
    __device__ static int64_t columns(const HnCudaConvArgs &a, const Axis *g)
    {
        return GRAD ? taps_of(a, g) : pixels_of(a, g);
    }
    __device__ static int64_t terms(const HnCudaConvArgs &a, const Axis *g)
    {
        return GRAD ? pixels_of(a, g) : taps_of(a, g);
    }
    __device__ static Point column(const HnCudaConvArgs &a, const Axis *g, int64_t i)
    {
        return i >= columns(a, g) ? no_point() : GRAD ? tap(a, g, i) : pixel(a, g, i);
    }
    __device__ static Point term(const HnCudaConvArgs &a, const Axis *g, int64_t i, int64_t end)
    {
        return i >= end ? no_point() : GRAD ? pixel(a, g, i) : tap(a, g, i);
    }
    /* The first element of a group in what is multiplied by x, and from row to row. */
    __device__ static uint64_t factor(const HnCudaConvArgs &a)
    {
        return GRAD ? a.y : a.w;
    }
    __device__ static int64_t factor_group(const HnCudaConvArgs &a, int32_t group)
    {
        return group * (GRAD ? a.out_channels * a.y_plane : w_group(a));
    }
    __device__ static int64_t factor_row(const HnCudaConvArgs &a)
    {
        return GRAD ? a.y_plane : a.w_out;
    }
    __device__ static uint64_t result(const HnCudaConvArgs &a)
    {
        return GRAD ? a.w : a.y;
    }
    __device__ static int64_t result_group(const HnCudaConvArgs &a, int32_t group)
    {
        return group * (GRAD ? w_group(a) : a.out_channels * a.y_plane);
    }
    __device__ static int64_t result_row(const HnCudaConvArgs &a)
    {
        return GRAD ? a.w_out : a.y_plane;
    }
    __device__ static int64_t w_group(const HnCudaConvArgs &a)
    {
        return (int64_t)a.out_channels * a.in_channels * a.axis[0].kernel * a.axis[1].kernel * a.axis[2].kernel;
    }
};

/* Stores a result, or a part of it. */
template <typename T, bool GRAD>
__device__ inline void put(const HnCudaConvArgs &a, const Part &p, int64_t at, int32_t channel, float sum)
{
    if (a.parts != 0) {
        hn_at<float>(a.parts)[p.split * a.result + at] = sum;
        return;
    }
    if (!GRAD) {
        channel += p.group * a.out_channels;
        if (a.bias != 0)
            sum += hn_load(hn_at<const T>(a.bias) + channel);
    }
    hn_store(hn_at<T>(Sides<GRAD>::result(a)) + at, sum);
}

/* One result without tiles: for sums that tensor cores get no number of. */
template <typename T, bool GRAD>
__device__ float sum_of(const HnCudaConvArgs &a, const Axis *g, const T *factor, const T *x, const Point &column,
                        int64_t from, int64_t end)
{
    float sum = 0;
    for (int64_t k = from; k < end; k++) {
        const Point t = Sides<GRAD>::term(a, g, k, end);
        sum += hn_load(factor + t.other) * (meet(g, t, column) ? hn_load(x + t.x + column.x) : 0.0f);
    }
    return sum;
}

/*
 * A tile of the product. Terms come by tiles of DEPTH: elements of the next one are on their way to registers while one
 * is multiplied in shared memory. Where they are is known from a list of its terms, which is made a tile earlier.
 */
template <typename T, class Core, bool GRAD> __device__ void conv_tile(const HnCudaConvArgs &a)
{
    typedef Sides<GRAD> Side;
    typedef typename Element<T>::Bits Bits;
    constexpr int PER = Core::PER, DEPTH = HN_TILE_WORDS * PER;
    constexpr int A_WORDS = HN_TILE * HN_PITCH_A, B_WORDS = HN_TILE_WORDS * HN_PITCH_B, OUT_PITCH = HN_TILE + 4;
    __shared__ __align__(16) uint32_t room[2 * (A_WORDS + B_WORDS)];
    __shared__ Point list[2][DEPTH];
    __shared__ Axis g[3];
    const Part p = part_of(a);
    const int tid = threadIdx.x, lane = tid % HN_TILE_WORDS, line = tid / HN_TILE_WORDS;
    if (tid < 3)
        g[tid] = axis_of(a, tid, phase_along(a, tid, p.phase));
    __syncthreads();
    const int64_t from = p.split * a.terms, end = min(from + a.terms, Side::terms(a, g));
    const int64_t first = p.column * HN_TILE;
    if (first >= Side::columns(a, g))
        return; /* the whole block: of a phase that has fewer pixels than others */
    const Point column = Side::column(a, g, first + tid % HN_TILE);
    const Bits *x = hn_at<const Bits>(a.x) + (int64_t)p.group * a.in_channels * a.x_plane;
    const Bits *factor = hn_at<const Bits>(Side::factor(a)) + Side::factor_group(a, p.group) +
                         (int64_t)p.row * HN_TILE * Side::factor_row(a);
    const int rows = min(HN_TILE, a.out_channels - p.row * HN_TILE);
    if (tid < 2 * DEPTH)
        list[tid / DEPTH][tid % DEPTH] = Side::term(a, g, from + tid, end);
    __syncthreads();

    uint32_t next_a[8], next_b[8];
    const auto fetch = [&](const Point *terms) {
        for (int i = 0; i < 8; i++) { /* rows line + 8 i, word lane */
            Bits bits[PER];
            for (int e = 0; e < PER; e++) {
                const int64_t at = terms[lane * PER + e].other;
                bits[e] = at >= 0 && line + 8 * i < rows ? factor[(line + 8 * i) * Side::factor_row(a) + at] : (Bits)0;
            }
            next_a[i] = Core::word(bits);
        }
        for (int i = 0; i < 8; i++) { /* a column, words tid / 64 + 2 i */
            Bits bits[PER];
            for (int e = 0; e < PER; e++) {
                const Point &t = terms[(tid / HN_TILE + 2 * i) * PER + e];
                bits[e] = meet(g, t, column) ? x[t.x + column.x] : (Bits)0;
            }
            next_b[i] = Core::word(bits);
        }
    };

    Core core;
    core.start();
    if (from < end)
        fetch(list[0]);
    int turn = 0;
    for (int64_t k = from; k < end; k += DEPTH, turn++) {
        uint32_t *as = room + (turn & 1) * (A_WORDS + B_WORDS), *bs = as + A_WORDS;
        for (int i = 0; i < 8; i++) {
            as[(line + 8 * i) * HN_PITCH_A + lane] = next_a[i];
            bs[(tid / HN_TILE + 2 * i) * HN_PITCH_B + tid % HN_TILE] = next_b[i];
        }
        __syncthreads();
        if (k + DEPTH < end)
            fetch(list[(turn + 1) & 1]);
        if (tid < DEPTH)
            list[turn & 1][tid] = Side::term(a, g, k + 2 * DEPTH + tid, end);
        core.add(as, bs);
        if (turn % HN_RENEWED == HN_RENEWED - 1)
            core.renew();
    }
    core.renew();
    __syncthreads();

    /* through shared memory, so that neighbouring threads write neighbouring columns */
    float *out = reinterpret_cast<float *>(room);
    core.each([&](int row, int col, float v) { out[row * OUT_PITCH + col] = v; });
    __syncthreads();
    if (column.other < 0)
        return;
    const int64_t base = Side::result_group(a, p.group) + column.other;
#pragma unroll 1
    for (int i = tid / HN_TILE; i < rows; i += HN_TILE_THREADS / HN_TILE) {
        const int32_t channel = p.row * HN_TILE + i;
        float v = out[i * OUT_PITCH + tid % HN_TILE];
        if (!Core::EXACT && !isfinite(v))
            v = sum_of<T, GRAD>(a, g, reinterpret_cast<const T *>(factor) + i * Side::factor_row(a),
                                reinterpret_cast<const T *>(x), column, from, end);
        put<T, GRAD>(a, p, base + channel * Side::result_row(a), channel, v);
    }
}

/* --- few channels: no tiles -------------------------------------------------------------------------------------- */

#define HN_DIRECT_THREADS 128

/* PIXELS pixels of CHANNELS output channels, by each thread. */
template <typename T, int CHANNELS, int PIXELS> __device__ void conv_direct(const HnCudaConvArgs &a)
{
    __shared__ Axis g[3];
    __shared__ float out[PIXELS][CHANNELS][HN_DIRECT_THREADS];
    __shared__ int64_t to[PIXELS][HN_DIRECT_THREADS];
    const Part p = part_of(a);
    if (threadIdx.x < 3)
        g[threadIdx.x] = axis_of(a, threadIdx.x, phase_along(a, threadIdx.x, p.phase));
    __syncthreads();
    const int64_t pixels = pixels_of(a, g);
    const int32_t channel = p.row * CHANNELS, channels = min(CHANNELS, a.out_channels - channel);
    Point at[PIXELS];
    float sum[PIXELS][CHANNELS];
    for (int i = 0; i < PIXELS; i++) {
        const int64_t k = (p.column * PIXELS + i) * HN_DIRECT_THREADS + threadIdx.x;
        at[i] = k < pixels ? pixel(a, g, k) : no_point();
        for (int c = 0; c < CHANNELS; c++)
            sum[i][c] = 0;
    }
    const T *x = hn_at<const T>(a.x) + (int64_t)p.group * a.in_channels * a.x_plane;
    const T *w = hn_at<const T>(a.w) + Sides<false>::factor_group(a, p.group) + channel * a.w_out;
    for (int32_t c = 0; c < a.in_channels; c++, x += a.x_plane, w += a.w_in)
        for (int32_t j0 = 0; j0 < g[0].taps; j0++)
            for (int32_t j1 = 0; j1 < g[1].taps; j1++)
                for (int32_t j2 = 0; j2 < g[2].taps; j2++) {
                    const int32_t d[3] = { j0 * g[0].dilation, j1 * g[1].dilation, j2 * g[2].dilation };
                    const Point t = { place_in_x(g, d), 0, { d[0], d[1], d[2] } };
                    const int64_t k = ((int64_t)(g[0].k_start + j0 * g[0].k_step) * a.axis[1].kernel + g[1].k_start +
                                       j1 * g[1].k_step) *
                                          a.axis[2].kernel +
                                      g[2].k_start + j2 * g[2].k_step;
                    float v[CHANNELS];
                    for (int i = 0; i < CHANNELS; i++)
                        v[i] = i < channels ? hn_load(w + k + i * a.w_out) : 0.0f;
                    for (int i = 0; i < PIXELS; i++) {
                        const float u = meet(g, t, at[i]) ? hn_load(x + t.x + at[i].x) : 0.0f;
                        for (int n = 0; n < CHANNELS; n++)
                            sum[i][n] += u * v[n];
                    }
                }
    for (int i = 0; i < PIXELS;
         i++) { /* registers have no index: a thread's own places, so that what ends is there once */
        to[i][threadIdx.x] = at[i].other;
        for (int n = 0; n < CHANNELS; n++)
            out[i][n][threadIdx.x] = sum[i][n];
    }
#pragma unroll 1
    for (int i = 0; i < PIXELS * CHANNELS; i++) {
        const int32_t n = i % CHANNELS;
        const int64_t at_y = to[i / CHANNELS][threadIdx.x];
        if (at_y >= 0 && n < channels)
            put<T, false>(a, p, Sides<false>::result_group(a, p.group) + (channel + n) * a.y_plane + at_y, channel + n,
                          out[i / CHANNELS][n][threadIdx.x]);
    }
}

/* A block for each weight: the sum over all pixels. */
template <typename T> __device__ void conv_weight(const HnCudaConvArgs &a)
{
    __shared__ float room[HN_WARP];
    __shared__ Axis g[3];
    const Part p = part_of(a); /* rows and columns: of single ones */
    if (threadIdx.x < 3)
        g[threadIdx.x] = axis_of(a, threadIdx.x, 0);
    __syncthreads();
    const Point t = tap(a, g, p.column);
    const T *x = hn_at<const T>(a.x) + (int64_t)p.group * a.in_channels * a.x_plane + t.x;
    const T *dy = hn_at<const T>(a.y) + ((int64_t)p.group * a.out_channels + p.row) * a.y_plane;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < pixels_of(a, g); i += blockDim.x) {
        const Point at = pixel(a, g, i);
        if (meet(g, t, at))
            sum += hn_load(x + at.x) * hn_load(dy + at.other);
    }
    sum = hn_block_reduce<HnSum>(sum, room);
    if (threadIdx.x == 0)
        hn_store(hn_at<T>(a.w) + Sides<true>::result_group(a, p.group) + p.row * a.w_out + t.other, sum);
}

/* --- sums of parts ----------------------------------------------------------------------------------------------- */

template <typename T> __device__ void conv_sum(const HnCudaConvSumArgs &a)
{
    for (int64_t i = hn_first(); i < a.n; i += hn_stride()) {
        const float *part = hn_at<const float>(a.parts) + i;
        float sum = 0;
        for (int32_t k = 0; k < a.splits; k++)
            sum += part[k * a.n];
        const int64_t channel = i / a.plane % a.channels;
        if (a.bias != 0)
            sum += hn_load(hn_at<const T>(a.bias) + channel);
        hn_store(hn_at<T>(a.y) + i, sum);
    }
}

/* A block for each channel. */
template <typename T> __device__ void conv_bias(const HnCudaConvBiasArgs &a)
{
    __shared__ float room[HN_WARP];
    for (int32_t c = blockIdx.x; c < a.channels; c += gridDim.x) {
        float sum = 0;
        for (int64_t n = 0; n < a.batch; n++) {
            const T *dy = hn_at<const T>(a.dy) + (n * a.channels + c) * a.plane;
            for (int64_t i = threadIdx.x; i < a.plane; i += blockDim.x)
                sum += hn_load(dy + i);
        }
        sum = hn_block_reduce<HnSum>(sum, room);
        if (threadIdx.x == 0)
            hn_store(hn_at<T>(a.db) + c, sum);
    }
}

#define KERNEL(name, args, ...)                                     \
    extern "C" __global__ void name(const __grid_constant__ args a) \
    {                                                               \
        __VA_ARGS__(a);                                             \
    }
#define DEFINE(suffix, type)                                                                      \
    KERNEL(conv_plain_##suffix, HnCudaConvArgs, conv_tile<type, PlainCore<type>, false>)          \
    KERNEL(conv_plain_weights_##suffix, HnCudaConvArgs, conv_tile<type, PlainCore<type>, true>)   \
    KERNEL(conv_tensor_##suffix, HnCudaConvArgs, conv_tile<type, TensorCore<type>, false>)        \
    KERNEL(conv_tensor_weights_##suffix, HnCudaConvArgs, conv_tile<type, TensorCore<type>, true>) \
    KERNEL(conv_direct1_##suffix, HnCudaConvArgs, conv_direct<type, 1, 4>)                        \
    KERNEL(conv_direct4_##suffix, HnCudaConvArgs, conv_direct<type, 4, 2>)                        \
    KERNEL(conv_direct8_##suffix, HnCudaConvArgs, conv_direct<type, 8, 1>)                        \
    KERNEL(conv_weight_##suffix, HnCudaConvArgs, conv_weight<type>)                               \
    KERNEL(conv_sum_##suffix, HnCudaConvSumArgs, conv_sum<type>)                                  \
    KERNEL(conv_bias_##suffix, HnCudaConvBiasArgs, conv_bias<type>)
HN_EACH_FLOAT(DEFINE)
