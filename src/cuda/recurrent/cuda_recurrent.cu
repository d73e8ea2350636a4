#include "cuda/recurrent/recurrent.cuh"

#define THREADS 256

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* States before the first step. */
template <typename T> __device__ void begin(const HnCudaRecurrentArgs &a)
{
    const HnCudaLayer &l = a.layer;
    for (int64_t i = hn_first(); i < l.directions * l.batch * l.hidden; i += hn_stride()) {
        const int64_t u = i % l.hidden, b = i / l.hidden % l.batch, d = i / l.hidden / l.batch;
        const int64_t at = state_row(l, d, b) * l.hidden + u;
        hn_at<float>(a.h[0])[i] = element<T>(a.h0, at);
        hn_at<float>(a.c)[i] = element<T>(a.c0, at);
    }
}

extern "C" __global__ void recurrent_lens(const __grid_constant__ HnCudaLensArgs a)
{
    if ((int)threadIdx.x < a.n)
        hn_at<int32_t>(a.to)[threadIdx.x] = a.lens[threadIdx.x];
}

/* A block for each row. */
extern "C" __global__ __launch_bounds__(1024) void recurrent_round(const __grid_constant__ HnCudaRoundArgs a)
{
    __shared__ float room[HN_WARP];
    const float *x = hn_at<const float>(a.x) + blockIdx.x * a.n;
    float *y = hn_at<float>(a.y) + blockIdx.x * a.n, lo = 0, hi = 0;
    for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    hi = hn_block_reduce<HnMost>(hi, room);
    lo = -hn_block_reduce<HnMost>(-lo, room);
    const float scale = hi == lo ? 1.0f : __fdiv_rn(__fsub_rn(hi, lo), 255.0f);
    const float at = __fsub_rn(0.0f, __fdiv_rn(lo, scale));
    const float zero = at > 0 ? at < 255 ? rintf(at) : 255.0f : 0.0f;
    for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
        y[i] = scale * (fminf(fmaxf(rintf(__fdiv_rn(x[i], scale)) + zero, 0.0f), 255.0f) - zero);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* A warp has all gates of a unit for SAMPLES samples: lanes add what N rows of weights, `hidden` rows of n elements
 * apart, make of x(sample, k). The last one's sums are number LAST. */
template <typename T, int N, int LAST, int SAMPLES, typename X>
__device__ inline void multiply(float (*sums)[SAMPLES], const T *w, int64_t hidden, int64_t n, X x)
{
    for (int64_t k = threadIdx.x % HN_WARP; k < n; k += HN_WARP) {
        float v[N];
#pragma unroll
        for (int g = 0; g < N; g++)
            v[g] = hn_load(w + g * hidden * n + k);
#pragma unroll
        for (int b = 0; b < SAMPLES; b++) {
            const float with = x(b, k);
#pragma unroll
            for (int g = 0; g < N; g++)
                sums[g == N - 1 ? LAST : g][b] += v[g] * with;
        }
    }
}

/* Whole sums, in the lane of their sample. */
template <int N, int SAMPLES> __device__ inline void gather(float *mine, float (*sums)[SAMPLES])
{
#pragma unroll
    for (int g = 0; g < N; g++)
#pragma unroll
        for (int b = 0; b < SAMPLES; b++) {
            const float v = hn_warp_reduce<HnSum>(sums[g][b]);
            if (threadIdx.x % HN_WARP == b)
                mine[g] = v;
        }
}

/* Unit u of sample b at step k. */
struct Place {
    int64_t d, b, u, k, t;
    int64_t state; /* in values [D][B][H] */
    bool ended;
    __device__ Place(const HnCudaRecurrentArgs &a, int64_t d, int64_t b, int64_t u, int64_t k) : d(d), b(b), u(u), k(k)
    {
        const HnCudaLayer &l = a.layer;
        const int64_t len = length_of(l, a.lens, b);
        ended = k >= len;
        t = !ended && goes_back(l, d) ? len - 1 - k : k;
        state = (d * l.batch + b) * l.hidden + u;
    }
};

enum Kind { RNN, GRU, LSTM };

template <typename T, Kind KIND> struct Cell {
    const HnCudaRecurrentArgs &a;
    const HnCudaLayer &l;
    const Place &p;
    const HnCudaGate *act;
    __device__ Cell(const HnCudaRecurrentArgs &a, const Place &p)
        : a(a), l(a.layer), p(p), act(a.layer.act + p.d * a.layer.functions)
    {
    }
    __device__ float inputs(int g) const /* what was made of X before, and the bias of W */
    {
        const float bias = element<T>(a.bias, p.d * 2 * l.width + g * l.hidden + p.u);
        if (a.direct)
            return bias;
        return hn_at<const float>(a.xw)[(x_row(l, p.t, p.b) * l.directions + p.d) * l.width + g * l.hidden + p.u] +
               bias;
    }
    __device__ float before(uint64_t state, uint64_t start) const /* the step */
    {
        return a.direct && p.k == 0 ? element<T>(start, state_row(l, p.d, p.b) * l.hidden + p.u)
                                    : hn_at<const float>(state)[p.state];
    }
    __device__ float h_before() const
    {
        return before(a.h[p.k % 2], a.h0);
    }
    __device__ float own_bias(int g) const
    {
        return element<T>(a.bias, (p.d * 2 + 1) * l.width + g * l.hidden + p.u);
    }
    __device__ float peep(int which) const
    {
        return element<T>(a.peep, (p.d * 3 + which) * l.hidden + p.u);
    }
    __device__ float value(int f, float x) const
    {
        return gate_value(act[f], fminf(fmaxf(x, -l.clip), l.clip));
    }
    __device__ void keep(int g, float v) const
    {
        if (a.gates != 0)
            hn_store(hn_at<T>(a.gates) + kept_row(l, p.d, p.t, p.b) * l.slots + g * l.hidden + p.u, v);
    }
    __device__ void finish(float h, float c) const /* of this step */
    {
        hn_at<float>(a.h[(p.k + 1) % 2])[p.state] = h;
        if (a.y != 0)
            hn_store(hn_at<T>(a.y) + y_row(l, p.d, p.t, p.b) * l.hidden + p.u, p.ended ? 0.0f : h);
        if (a.cells != 0)
            hn_store(hn_at<T>(a.cells) + kept_row(l, p.d, p.t, p.b) * l.hidden + p.u, p.ended ? 0.0f : c);
        if (p.k + 1 < l.steps)
            return;
        const int64_t at = state_row(l, p.d, p.b) * l.hidden + p.u;
        const bool empty = length_of(l, a.lens, p.b) == 0;
        if (a.y_h != 0)
            hn_store(hn_at<T>(a.y_h) + at, empty ? 0.0f : h);
        if (a.y_c != 0)
            hn_store(hn_at<T>(a.y_c) + at, empty ? 0.0f : c);
    }
    __device__ void stay() const /* the sequence has ended */
    {
        for (int g = 0; g < l.slots / l.hidden; g++)
            keep(g, 0);
        const float c = KIND == LSTM ? before(a.c, a.c0) : 0;
        if (KIND == LSTM)
            hn_at<float>(a.c)[p.state] = c;
        finish(h_before(), c);
    }
    __device__ void rnn(const float *sums) const
    {
        const float h = value(0, inputs(0) + sums[0] + own_bias(0));
        keep(0, h);
        finish(h, 0);
    }
    __device__ void lstm(const float *sums) const /* gates i, o, f, c; peepholes i, o, f */
    {
        const float old = before(a.c, a.c0);
        float v[4];
        for (int g = 0; g < 4; g++)
            v[g] = inputs(g) + sums[g] + own_bias(g);
        const float in = value(0, v[0] + peep(0) * old);
        const float forget = l.input_forget ? 1 - in : value(0, v[2] + peep(2) * old);
        const float cell = value(1, v[3]), now = forget * old + in * cell;
        const float out = value(0, v[1] + peep(1) * now);
        keep(0, in);
        keep(1, out);
        keep(2, forget);
        keep(3, cell);
        hn_at<float>(a.c)[p.state] = now;
        finish(out * gate_value(act[2], now), now);
    }
    __device__ void gru(float z, float reset, float hidden) const
    {
        const float h = h_before();
        keep(0, z);
        keep(1, reset);
        keep(2, hidden);
        finish((1 - z) * hidden + z * h, 0);
    }
    __device__ void gru_linear(const float *sums) const /* gates z, r, h: of X and of the state */
    {
        const float z = value(0, inputs(0) + sums[0] + own_bias(0)),
                    reset = value(0, inputs(1) + sums[1] + own_bias(1));
        const float plain = sums[3] + own_bias(2);
        keep(3, plain);
        gru(z, reset, value(1, inputs(2) + sums[2] + reset * plain));
    }
    __device__ void gru_reset(const float *sums) const /* before the hidden gate's product */
    {
        const float reset = value(0, inputs(1) + sums[1] + own_bias(1));
        hn_at<float>(a.z)[p.state] = value(0, inputs(0) + sums[0] + own_bias(0));
        hn_at<float>(a.rh)[p.state] = reset * h_before();
        keep(1, reset);
    }
    __device__ void gru_hidden(const float *sums) const
    {
        const float z = hn_at<const float>(a.z)[p.state], h = h_before();
        const float hidden = value(1, inputs(2) + sums[0] + own_bias(2));
        keep(0, z);
        keep(2, hidden);
        finish((1 - z) * hidden + z * h, 0);
    }
};

/* What x(sample, k) gives to the gates of a unit, whose first row of weights w is. Of a GRU that resets what R made of
 * the state, this part of the last gate is number 3, and that of X number 2. */
template <typename T, Kind KIND, int SAMPLES, typename X>
__device__ inline void products(float (*sums)[SAMPLES], const HnCudaLayer &l, const T *w, int64_t n, int pass,
                                bool of_state, X x)
{
    if (KIND == RNN)
        multiply<T, 1, 0, SAMPLES>(sums, w, l.hidden, n, x);
    else if (KIND == LSTM)
        multiply<T, 4, 3, SAMPLES>(sums, w, l.hidden, n, x);
    else if (l.linear_before_reset && of_state)
        multiply<T, 3, 3, SAMPLES>(sums, w, l.hidden, n, x);
    else if (l.linear_before_reset)
        multiply<T, 3, 2, SAMPLES>(sums, w, l.hidden, n, x);
    else if (pass == 0)
        multiply<T, 2, 1, SAMPLES>(sums, w, l.hidden, n, x);
    else
        multiply<T, 1, 0, SAMPLES>(sums, w + 2 * l.hidden * n, l.hidden, n, x);
}

template <typename T, Kind KIND, int SAMPLES>
__device__ inline void unit(const HnCudaRecurrentArgs &a, int64_t d, int64_t b0, int64_t u, int64_t k, int pass)
{
    const HnCudaLayer &l = a.layer;
    const int lane = threadIdx.x % HN_WARP;
    const int64_t n = l.hidden, last = l.batch - 1;
    const bool hidden = KIND == GRU && !l.linear_before_reset && pass == 1;
    float sums[4][SAMPLES] = {}, mine[4] = {};
    const auto sample = [&](int b) { return b0 + b < last ? b0 + b : last; };
    if (a.direct) {
        const T *row[SAMPLES];
#pragma unroll
        for (int b = 0; b < SAMPLES; b++)
            row[b] = hn_at<const T>(a.x) + x_row(l, Place(a, d, sample(b), u, k).t, sample(b)) * l.inputs;
        products<T, KIND, SAMPLES>(sums, l, hn_at<const T>(a.w) + (d * l.width + u) * l.inputs, l.inputs, pass, false,
                                   [&](int b, int64_t i) { return hn_load(row[b] + i); });
    }
    const T *const r = hn_at<const T>(a.r) + (d * l.width + u) * n;
    const float *const h = hn_at<const float>(a.rounded != 0 ? a.rounded
                                              : hidden       ? a.rh
                                                             : a.h[k % 2]) +
                           d * l.batch * n;
    if (!a.direct || k > 0 || hidden)
        products<T, KIND, SAMPLES>(sums, l, r, n, pass, true, [&](int b, int64_t i) { return h[sample(b) * n + i]; });
    else if (a.h0 != 0)
        products<T, KIND, SAMPLES>(sums, l, r, n, pass, true, [&](int b, int64_t i) {
            return hn_load(hn_at<const T>(a.h0) + state_row(l, d, sample(b)) * n + i);
        });
    constexpr int GATES = KIND == RNN ? 1 : 4;
    gather<GATES, SAMPLES>(mine, sums);
    if (lane >= SAMPLES || b0 + lane >= l.batch)
        return;
    const Place p(a, d, b0 + lane, u, k);
    const Cell<T, KIND> cell(a, p);
    if (p.ended && KIND == GRU && !l.linear_before_reset && pass == 0)
        hn_at<float>(a.rh)[p.state] = 0; /* is multiplied, and of no use */
    else if (p.ended)
        cell.stay();
    else if (KIND == RNN)
        cell.rnn(mine);
    else if (KIND == LSTM)
        cell.lstm(mine);
    else if (l.linear_before_reset)
        cell.gru_linear(mine);
    else if (pass == 0)
        cell.gru_reset(mine);
    else
        cell.gru_hidden(mine);
}

/* Blocks: [D][tiles of samples][groups]. With one group for all units a block goes from step to step by itself. */
template <typename T, Kind KIND, int SAMPLES> __device__ void steps(const HnCudaRecurrentArgs &a)
{
    const HnCudaLayer &l = a.layer;
    const int64_t tiles = (l.batch + SAMPLES - 1) / SAMPLES, group = blockIdx.x % a.groups;
    const int64_t tile = blockIdx.x / a.groups % tiles, d = blockIdx.x / a.groups / tiles;
    const int64_t warps = blockDim.x / HN_WARP, first = group * warps + threadIdx.x / HN_WARP;
    for (int64_t k = a.first; k < a.end; k++)
        for (int pass = a.first_pass; pass < a.passes; pass++) {
            for (int64_t u = first; u < l.hidden; u += a.groups * warps)
                unit<T, KIND, SAMPLES>(a, d, tile * SAMPLES, u, k, pass);
            __syncthreads();
        }
}

#define TOGETHER 8 /* samples of a tile */
#define DEFINE_STEPS(name, kind, suffix, type)                                                                       \
    extern "C" __global__ __launch_bounds__(512) void name##_##suffix(const __grid_constant__ HnCudaRecurrentArgs a) \
    {                                                                                                                \
        steps<type, kind, TOGETHER>(a);                                                                              \
    }                                                                                                                \
    extern "C" __global__ __launch_bounds__(512) void name##_one_##suffix(                                           \
        const __grid_constant__ HnCudaRecurrentArgs a)                                                               \
    {                                                                                                                \
        steps<type, kind, 1>(a);                                                                                     \
    }
#define DEFINE(suffix, type)                                                                           \
    extern "C" __global__ void recurrent_begin_##suffix(const __grid_constant__ HnCudaRecurrentArgs a) \
    {                                                                                                  \
        begin<type>(a);                                                                                \
    }                                                                                                  \
    DEFINE_STEPS(recurrent_rnn, RNN, suffix, type)                                                     \
    DEFINE_STEPS(recurrent_gru, GRU, suffix, type)                                                     \
    DEFINE_STEPS(recurrent_lstm, LSTM, suffix, type)
HN_EACH_FLOAT(DEFINE)

/* --- products of all steps ---------------------------------------------------------------------------------------- */

#define TILE 64
#define DEPTH 16
#define PITCH (TILE + 4)

/* A block makes a tile of 64 x 64 sums, a thread 4 x 4 of them. */
template <typename A, typename B, typename C> __device__ void sums(const HnCudaSumsArgs &s)
{
    __shared__ float left[DEPTH][PITCH], right[DEPTH][PITCH];
    const int t = threadIdx.x;
    const int64_t across = (s.n + TILE - 1) / TILE, m0 = blockIdx.x / across * TILE, n0 = blockIdx.x % across * TILE;
    float c[4][4] = {};
    for (int64_t k0 = 0; k0 < s.k; k0 += DEPTH) {
        for (int i = 0; i < 4; i++) { /* threads side by side read side by side */
            const int kk = s.a_k == 1 ? t % DEPTH : t / TILE + 4 * i,
                      mm = s.a_k == 1 ? t / DEPTH + DEPTH * i : t % TILE;
            const int64_t k = k0 + kk, m = m0 + mm;
            left[kk][mm] = k < s.k && m < s.m
                               ? hn_load(hn_at<const A>(s.a) + m * s.a_m + k / s.each * s.a_block + k % s.each * s.a_k)
                               : 0.0f;
        }
        for (int i = 0; i < 4; i++) {
            const int kk = s.b_k == 1 ? t % DEPTH : t / TILE + 4 * i,
                      nn = s.b_k == 1 ? t / DEPTH + DEPTH * i : t % TILE;
            const int64_t k = k0 + kk, n = n0 + nn;
            right[kk][nn] = k < s.k && n < s.n ? hn_load(hn_at<const B>(s.b) + k * s.b_k + n * s.b_n) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            const float4 a = *reinterpret_cast<const float4 *>(&left[k][t / 16 * 4]);
            const float4 b = *reinterpret_cast<const float4 *>(&right[k][t % 16 * 4]);
            const float av[4] = { a.x, a.y, a.z, a.w }, bv[4] = { b.x, b.y, b.z, b.w };
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    c[i][j] += av[i] * bv[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int64_t m = m0 + t / 16 * 4 + i, n = n0 + t % 16 * 4 + j;
            if (m < s.m && n < s.n)
                hn_store(hn_at<C>(s.c) + m * s.c_m + n, c[i][j]);
        }
}

#define DEFINE_SUMS(name, a, b, c)                                                                       \
    extern "C" __global__ __launch_bounds__(THREADS) void name(const __grid_constant__ HnCudaSumsArgs s) \
    {                                                                                                    \
        sums<a, b, c>(s);                                                                                \
    }
/* Of inputs and weights; of gradients of gates and either; of those and states. */
#define DEFINE_ALL_SUMS(suffix, type)                              \
    DEFINE_SUMS(recurrent_inputs_##suffix, type, type, float)      \
    DEFINE_SUMS(recurrent_grad_inputs_##suffix, float, type, type) \
    DEFINE_SUMS(recurrent_grad_states_##suffix, float, float, type)
HN_EACH_FLOAT(DEFINE_ALL_SUMS)
