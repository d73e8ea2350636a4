#include "cuda/recurrent/recurrent.cuh"

/*
 * Gradients through time. Launch number k multiplies the gradients of the sums of step k - 1 of the walk, which gives
 * what the state behind step k gets, and goes on to the gradients of step k's own sums. A GRU that resets before R has
 * another launch in between.
 */

#define COLUMNS 32 /* elements of a state that a block makes, for ... */
#define SAMPLES 8  /* ... so many samples */
#define SLICES 8   /* warps, which share the rows of R */

enum Kind { RNN, GRU, LSTM };

/* part[b][i] of the block's samples and columns: sums over the rows [row, row + n) of R of dg's gates from `gate` on.
 */
template <typename T>
__device__ inline void multiply(const HnCudaRecurrentGradArgs &a, const int64_t *dg_row, int64_t d, int64_t column,
                                int64_t row, int64_t gate, int64_t n, float *part)
{
    const HnCudaLayer &l = a.layer;
    const T *r = hn_at<const T>(a.r) + (d * l.width + row) * l.hidden;
    const float *dg = hn_at<const float>(a.dg);
    for (int64_t g = threadIdx.x / COLUMNS; g < n && column < l.hidden; g += SLICES) {
        const float w = hn_load(r + g * l.hidden + column);
#pragma unroll
        for (int b = 0; b < SAMPLES; b++)
            if (dg_row[b] >= 0)
                part[b] += dg[dg_row[b] * l.slots + gate + g] * w;
    }
}

/* A step of the walk as a time of sample b. */
__device__ inline int64_t time_of(const HnCudaLayer &l, int64_t d, int64_t step)
{
    return goes_back(l, d) ? step : l.steps - 1 - step;
}

template <typename T> struct Sample {
    const HnCudaRecurrentGradArgs &a;
    const HnCudaLayer &l;
    const HnCudaGate *act;
    int64_t d, b, i, t, state, row, before_row; /* rows of steps: X's; before_row: -1 where it is the first one */
    __device__ Sample(const HnCudaRecurrentGradArgs &a, int64_t d, int64_t b, int64_t i, int64_t t)
        : a(a), l(a.layer), act(a.layer.act + d * a.layer.functions), d(d), b(b), i(i), t(t)
    {
        state = (d * l.batch + b) * l.hidden + i;
        row = x_row(l, t, b);
    }
    __device__ float *dg(int g) const
    {
        return hn_at<float>(a.dg) + (row * l.directions + d) * l.slots + g * l.hidden + i;
    }
    __device__ float kept(int g) const
    {
        return element<T>(a.gates, kept_row(l, d, t, b) * l.slots + g * l.hidden + i);
    }
    __device__ float peep(int which) const
    {
        return element<T>(a.peep, (d * 3 + which) * l.hidden + i);
    }
    __device__ float *at(uint64_t values) const /* of [X's rows][D][H] */
    {
        return hn_at<float>(values) + (row * l.directions + d) * l.hidden + i;
    }
    __device__ void rnn(float dh, int64_t y) const
    {
        *dg(0) = dh * gate_slope(act[0], element<T>(a.y, y));
        hn_at<float>(a.carry)[state] = 0;
    }
    __device__ void lstm(float dh, float after, float old) const
    {
        const float in = kept(0), out = kept(1), forget = kept(2), cell = kept(3);
        const float now = gate_value(act[2], element<T>(a.cells, kept_row(l, d, t, b) * l.hidden + i));
        const float d_out = dh * now * gate_slope(act[0], out);
        const float dc = after + dh * out * gate_slope(act[2], now) + d_out * peep(1);
        const float d_in = dc * (l.input_forget ? cell - old : cell) * gate_slope(act[0], in);
        const float d_forget = l.input_forget ? 0 : dc * old * gate_slope(act[0], forget);
        *dg(0) = d_in;
        *dg(1) = d_out;
        *dg(2) = d_forget;
        *dg(3) = dc * in * gate_slope(act[1], cell);
        hn_at<float>(a.dc)[state] = dc * forget + d_in * peep(0) + d_forget * peep(2);
        hn_at<float>(a.carry)[state] = 0;
    }
    __device__ void gru(float dh, float before) const
    {
        const float z = kept(0), reset = kept(1), hidden = kept(2);
        const float d_hidden = dh * (1 - z) * gate_slope(act[1], hidden);
        *dg(0) = dh * (before - hidden) * gate_slope(act[0], z);
        *dg(2) = d_hidden;
        hn_at<float>(a.carry)[state] = dh * z;
        if (!l.linear_before_reset)
            return;
        *dg(1) = d_hidden * kept(3) * gate_slope(act[0], reset);
        *dg(3) = d_hidden * reset;
    }
    /* There is no such step: nothing is added to sums over all of them. */
    __device__ void none() const
    {
        for (int g = 0; g < l.slots / l.hidden; g++)
            *dg(g) = 0;
        *at(a.before) = 0;
        if (a.reset != 0)
            *at(a.reset) = 0;
    }
    __device__ void walk(float dh) const /* dh: of the state behind this step, by later ones */
    {
        const int64_t len = length_of(l, a.lens, b);
        if (t >= len) {
            hn_at<float>(a.dh)[state] = dh;
            none();
            return;
        }
        const bool back = goes_back(l, d), first = back ? t == len - 1 : t == 0, last = back ? t == 0 : t == len - 1;
        const int64_t own = state_row(l, d, b) * l.hidden + i, from = back ? t + 1 : t - 1;
        float dc = a.kind == LSTM ? hn_at<const float>(a.dc)[state] : 0;
        if (last) {
            dh = element<T>(a.dy_h, own);
            dc = element<T>(a.dy_c, own);
        }
        const int64_t y = y_row(l, d, t, b) * l.hidden + i;
        dh += element<T>(a.dy, y);
        const float before = first ? element<T>(a.h0, own) : element<T>(a.y, y_row(l, d, from, b) * l.hidden + i);
        *at(a.before) = before;
        hn_at<float>(a.dh)[state] = dh;
        if (a.kind == RNN)
            rnn(dh, y);
        else if (a.kind == GRU)
            gru(dh, before);
        else
            lstm(dh, dc, first ? element<T>(a.c0, own) : element<T>(a.cells, kept_row(l, d, from, b) * l.hidden + i));
    }
    /* part: of r * before, whose product the hidden gate's R makes. */
    __device__ void reset(float part) const
    {
        if (t >= length_of(l, a.lens, b))
            return;
        const float r = kept(1), before = *at(a.before);
        *dg(1) = part * before * gate_slope(act[0], r);
        hn_at<float>(a.carry)[state] += part * r;
        *at(a.reset) = r * before;
    }
};

/* Blocks: [D][tiles of samples][tiles of columns]. */
template <typename T> __device__ void grad_step(const HnCudaRecurrentGradArgs &a)
{
    __shared__ float slices[SLICES][SAMPLES][COLUMNS];
    const HnCudaLayer &l = a.layer;
    const int64_t tiles = (l.batch + SAMPLES - 1) / SAMPLES, across = (l.hidden + COLUMNS - 1) / COLUMNS;
    const int64_t column = blockIdx.x % across * COLUMNS + threadIdx.x % COLUMNS;
    const int64_t b0 = blockIdx.x / across % tiles * SAMPLES, d = blockIdx.x / across / tiles, n = l.hidden;
    const int slice = threadIdx.x / COLUMNS, lane = threadIdx.x % COLUMNS;
    const int64_t before = a.resets ? a.step : a.step - 1; /* whose gradients are multiplied */
    int64_t dg_row[SAMPLES];
    float part[SAMPLES] = {};
    for (int b = 0; b < SAMPLES; b++) {
        const int64_t t = time_of(l, d, before);
        const bool is = before >= 0 && b0 + b < l.batch && t < length_of(l, a.lens, b0 + b);
        dg_row[b] = is ? x_row(l, t, b0 + b) * l.directions + d : -1;
    }
    const bool linear = a.kind == GRU && l.linear_before_reset;
    if (a.resets) {
        multiply<T>(a, dg_row, d, column, 2 * n, 2 * n, n, part);
    } else {
        multiply<T>(a, dg_row, d, column, 0, 0, a.kind == GRU ? 2 * n : l.width, part);
        if (linear)
            multiply<T>(a, dg_row, d, column, 2 * n, 3 * n, n, part);
    }
    for (int b = 0; b < SAMPLES; b++)
        slices[slice][b][lane] = part[b];
    __syncthreads();
    const int64_t b = b0 + slice; /* a warp for each sample from here on */
    if (b >= l.batch || column >= n)
        return;
    float sum = 0;
    for (int k = 0; k < SLICES; k++)
        sum += slices[k][slice][lane];
    const int64_t state = (d * l.batch + b) * n + column;
    if (a.resets) {
        Sample<T>(a, d, b, column, time_of(l, d, a.step)).reset(sum);
        return;
    }
    float dh = 0;
    if (before < 0 && a.kind == LSTM)
        hn_at<float>(a.dc)[state] = 0;
    if (before >= 0)
        dh = time_of(l, d, before) < length_of(l, a.lens, b) ? hn_at<const float>(a.carry)[state] + sum
                                                             : hn_at<const float>(a.dh)[state];
    if (a.step < l.steps) {
        Sample<T>(a, d, b, column, time_of(l, d, a.step)).walk(dh);
        return;
    }
    const int64_t own = state_row(l, d, b) * n + column;
    if (a.out_h != 0)
        hn_store(hn_at<T>(a.out_h) + own, dh);
    if (a.out_c != 0)
        hn_store(hn_at<T>(a.out_c) + own, a.kind == LSTM ? hn_at<const float>(a.dc)[state] : 0.0f);
}

/* --- sums over rows ----------------------------------------------------------------------------------------------- */

#define ROWS 8 /* warps of a block, which share the rows; lanes have columns */

__device__ inline float over_warps(float v)
{
    __shared__ float parts[ROWS][HN_WARP];
    const int lane = threadIdx.x % HN_WARP;
    __syncthreads();
    parts[threadIdx.x / HN_WARP][lane] = v;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < ROWS; k++)
        sum += parts[k][lane];
    return sum;
}

/* Blocks: [D][tiles of slots]. */
template <typename T> __device__ void grad_bias(const HnCudaRecurrentRowsArgs &a)
{
    const HnCudaLayer &l = a.layer;
    const int64_t across = (l.slots + HN_WARP - 1) / HN_WARP, d = blockIdx.x / across;
    const int64_t g = blockIdx.x % across * HN_WARP + threadIdx.x % HN_WARP;
    float sum = 0;
    for (int64_t r = threadIdx.x / HN_WARP; r < l.steps * l.batch && g < l.slots; r += ROWS)
        sum += hn_at<const float>(a.dg)[(r * l.directions + d) * l.slots + g];
    sum = over_warps(sum);
    if (threadIdx.x >= HN_WARP || g >= l.slots)
        return;
    /* A fourth gate of a GRU is the hidden one's product with R, to which its bias belongs. */
    T *w = hn_at<T>(a.db) + d * 2 * l.width, *own = w + l.width;
    const bool apart = l.slots > l.width;
    if (g < l.width)
        hn_store(w + g, sum);
    if (!apart || g < 2 * l.hidden)
        hn_store(own + g, sum);
    else if (g >= l.width)
        hn_store(own + g - l.hidden, sum);
}

/* Blocks: [D][tiles of units]. */
template <typename T> __device__ void grad_peep(const HnCudaRecurrentRowsArgs &a)
{
    const HnCudaLayer &l = a.layer;
    const int64_t across = (l.hidden + HN_WARP - 1) / HN_WARP, d = blockIdx.x / across;
    const int64_t i = blockIdx.x % across * HN_WARP + threadIdx.x % HN_WARP;
    const bool back = goes_back(l, d);
    float sums[3] = {};
    for (int64_t r = threadIdx.x / HN_WARP; r < l.steps * l.batch && i < l.hidden && a.cells != 0; r += ROWS) {
        const int64_t t = r / l.batch, b = r % l.batch, len = length_of(l, a.lens, b);
        if (t >= len)
            continue;
        const bool first = back ? t == len - 1 : t == 0;
        const float *dg = hn_at<const float>(a.dg) + (x_row(l, t, b) * l.directions + d) * l.slots + i;
        const float now = element<T>(a.cells, kept_row(l, d, t, b) * l.hidden + i);
        const float old = first ? element<T>(a.c0, state_row(l, d, b) * l.hidden + i)
                                : element<T>(a.cells, kept_row(l, d, back ? t + 1 : t - 1, b) * l.hidden + i);
        sums[0] += dg[0] * old;
        sums[1] += dg[l.hidden] * now;
        sums[2] += dg[2 * l.hidden] * old;
    }
    for (int k = 0; k < 3; k++) {
        const float sum = over_warps(sums[k]);
        if (threadIdx.x < HN_WARP && i < l.hidden)
            hn_store(hn_at<T>(a.dp) + (d * 3 + k) * l.hidden + i, sum);
    }
}

#define DEFINE(suffix, type)                                                        \
    extern "C" __global__ __launch_bounds__(256) void recurrent_grad_step_##suffix( \
        const __grid_constant__ HnCudaRecurrentGradArgs a)                          \
    {                                                                               \
        grad_step<type>(a);                                                         \
    }                                                                               \
    extern "C" __global__ __launch_bounds__(256) void recurrent_grad_bias_##suffix( \
        const __grid_constant__ HnCudaRecurrentRowsArgs a)                          \
    {                                                                               \
        grad_bias<type>(a);                                                         \
    }                                                                               \
    extern "C" __global__ __launch_bounds__(256) void recurrent_grad_peep_##suffix( \
        const __grid_constant__ HnCudaRecurrentRowsArgs a)                          \
    {                                                                               \
        grad_peep<type>(a);                                                         \
    }
HN_EACH_FLOAT(DEFINE)
