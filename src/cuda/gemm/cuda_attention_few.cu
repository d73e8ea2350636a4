/*
 * Attention in f32 where queries and heads are too few to keep the device busy: a block for 16 queries of a head, whose
 * warps take tiles of keys by turns, each with a largest score and sums of its own, which meet in shared memory at the
 * end, in the order of the warps.
 */
#include "cuda/gemm/attention_f32.cuh"

#define WARPS HN_CUDA_ATTENTION_FEW_WARPS
#define THREADS (WARPS * HN_WARP)

/* Where lines of a tile come from: `cached` of them from the cache. */
struct Source {
    const float *cache, *fresh;
    int64_t cache_step, fresh_step;
    int cached;

    __device__ Source(const HnCudaHeads &past, const HnCudaHeads &own, int64_t n_past, int64_t b, int64_t g, int64_t t)
        : cache(attention_vector<float>(past, b, g, t)), fresh(attention_vector<float>(own, b, g, t - n_past)),
          cache_step(past.token), fresh_step(own.token), cached((int)max((int64_t)0, min(n_past - t, (int64_t)1024)))
    {
    }
    __device__ const float *line(int i) const
    {
        return i < cached ? cache + i * cache_step : fresh + i * fresh_step;
    }
};

/* `count` lines of SIZE elements by THREADS_ threads, of which this is number `me`; n lines of `size` elements are
 * there, what is not becomes 0. */
template <int SIZE, int THREADS_>
__device__ void load_lines(float *to, int count, int n, int size, bool wide, int me, const Source &from)
{
    constexpr int ACROSS = SIZE / 4;
    const int c = me % ACROSS * 4, left = max(0, min(size - c, 4));
#pragma unroll 4
    for (int i = me / ACROSS; i < count; i += THREADS_ / ACROSS) {
        const int there = i < n ? left : 0;
        const float *x = there > 0 ? from.line(i) + c : from.line(0);
        float *place = to + i * (SIZE + 4) + c;
        if (wide)
            hn_copy_16(place, x, there * 4);
        else
            for (int j = 0; j < 4; j++)
                place[j] = j < there ? x[j] : 0.0f;
    }
}

/* What a warp has found of its keys. */
template <int SIZE> struct Found {
    float y[SIZE / 8][4], most[2], sum[2];
};

template <int SIZE, int KEYS> struct Few {
    using How = Tiles<SIZE, KEYS>;
    static constexpr int PITCH = How::PITCH, WARP_FLOATS = 2 * KEYS * PITCH + ROWS * KEYS;
    static_assert((ROWS * PITCH + WARPS * WARP_FLOATS) * 4 == HN_CUDA_ATTENTION_FEW_BYTES_F32(SIZE, KEYS),
                  "bytes of shared memory");
    static_assert(KEYS >= ROWS, "sums of values lie where keys did");

    /* Tiles t, t + WARPS * KEYS and so on of the keys, of which the first is on its way already. */
    __device__ static void go_through(const HnCudaAttentionArgs &a, Found<SIZE> &f, const float *qs, float *ks,
                                      int64_t b, int64_t h, int64_t first, int64_t t, int64_t end)
    {
        float *const vs = ks + KEYS * PITCH, *const room = vs + KEYS * PITCH;
        const int64_t g = h / (a.heads / a.kv_heads);
        for (; t < end; t += WARPS * KEYS) {
            float s[KEYS / 8][4], fade[2];
            hn_copies_wait<1>();
            __syncwarp(); /* keys are there */
            How::scores(s, qs, ks);
            __syncwarp();
            load_keys(a, ks, b, g, t + WARPS * KEYS, end);
            finish_scores<How>(a, s, b, h, first, t, end);
            exponentials<How>(s, f.most, f.sum, fade);
            hn_copies_wait<1>();
            __syncwarp(); /* values are there */
            How::mix(f.y, s, fade, vs, room);
            __syncwarp();
            load_values(a, vs, b, g, t + WARPS * KEYS, end);
        }
        hn_copies_wait<0>();
    }
    __device__ static void load_keys(const HnCudaAttentionArgs &a, float *ks, int64_t b, int64_t g, int64_t t,
                                     int64_t end)
    {
        if (t < end)
            load_lines<SIZE, HN_WARP>(ks, KEYS, (int)min(end - t, (int64_t)KEYS), (int)a.size, a.wide != 0,
                                      threadIdx.x % HN_WARP, Source(a.past_k, a.k, a.past, b, g, t));
        hn_copies_close();
    }
    __device__ static void load_values(const HnCudaAttentionArgs &a, float *vs, int64_t b, int64_t g, int64_t t,
                                       int64_t end)
    {
        if (t < end)
            load_lines<SIZE, HN_WARP>(vs, KEYS, (int)min(end - t, (int64_t)KEYS), (int)a.value_size, a.wide != 0,
                                      threadIdx.x % HN_WARP, Source(a.past_v, a.v, a.past, b, g, t));
        hn_copies_close();
    }

    /* Of the first n warps; `sums`: of warp 0, [ROWS][PITCH], others' are WARP_FLOATS apart. */
    __device__ static void merge(const HnCudaAttentionArgs &a, const float *sums, const float (*most_of)[ROWS],
                                 const float (*sum_of)[ROWS], int n, float *to, int rows)
    {
        for (int i = threadIdx.x; i < rows * (SIZE / 4); i += THREADS) {
            const int row = i / (SIZE / 4), c = i % (SIZE / 4) * 4;
            float most = -INFINITY, sum = 0, v[4] = {};
            for (int w = 0; w < n; w++)
                most = HnMost::of(most, most_of[w][row]);
            const float base = attention_base(most);
            for (int w = 0; w < n; w++) {
                const float fade = expf(most_of[w][row] - base);
                const float4 y = *reinterpret_cast<const float4 *>(sums + w * WARP_FLOATS + row * PITCH + c);
                sum = fmaf(sum_of[w][row], fade, sum);
                v[0] = fmaf(y.x, fade, v[0]);
                v[1] = fmaf(y.y, fade, v[1]);
                v[2] = fmaf(y.z, fade, v[2]);
                v[3] = fmaf(y.w, fade, v[3]);
            }
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (c + j < a.value_size)
                    to[row * a.y.token + c + j] = attention_result(a, most, sum, v[j]);
        }
    }

    __device__ static void run(const HnCudaAttentionArgs &a)
    {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ float most_of[WARPS][ROWS], sum_of[WARPS][ROWS];
        float *const qs = reinterpret_cast<float *>(shared), *const regions = qs + ROWS * PITCH;
        const int warp = threadIdx.x / HN_WARP, row = hn_mma_row(), column = hn_mma_column();
        float *const own = regions + warp * WARP_FLOATS;
        const int64_t blocks = (a.queries + ROWS - 1) / ROWS;
        for (int64_t job = blockIdx.x; job < a.batch * a.heads * blocks; job += gridDim.x) {
            const int64_t first = job % blocks * ROWS, h = job / blocks % a.heads, b = job / blocks / a.heads;
            const int64_t g = h / (a.heads / a.kv_heads);
            const int rows = (int)min(a.queries - first, (int64_t)ROWS);
            const int64_t end = attention_end(a, first + rows - 1), begin = attention_begin(a, first);
            const int64_t t = begin + warp * KEYS;
            Found<SIZE> f = {};
            f.most[0] = f.most[1] = -INFINITY;
            load_lines<SIZE, THREADS>(qs, ROWS, rows, (int)a.size, a.wide != 0, threadIdx.x,
                                      Source(a.q, a.q, 0, b, h, first));
            load_keys(a, own, b, g, t, end);
            load_values(a, own + KEYS * PITCH, b, g, t, end);
            hn_copies_wait<1>();
            __syncthreads(); /* queries are there */
            go_through(a, f, qs, own, b, h, first, t, end);
            __syncwarp();
#pragma unroll
            for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    own[(row + r / 2 * 8) * PITCH + c * 8 + column + r % 2] = f.y[c][r];
            if (column == 0)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    most_of[warp][row + r * 8] = f.most[r];
                    sum_of[warp][row + r * 8] = f.sum[r];
                }
            __syncthreads(); /* all warps' sums are there */
            const int64_t tiles = end > begin ? (end - begin + KEYS - 1) / KEYS : 0;
            merge(a, regions, most_of, sum_of, (int)min(tiles, (int64_t)WARPS),
                  hn_at<float>(a.y.data) + b * a.y.batch + h * a.y.head + first * a.y.token, rows);
            __syncthreads();
        }
    }
};

#define DEFINE(size, keys)                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                               \
        attention_few_##size##_##keys##_f32(const __grid_constant__ HnCudaAttentionArgs a) \
    {                                                                                      \
        Few<size, keys>::run(a);                                                           \
    }
DEFINE(32, 16)
DEFINE(32, 32)
DEFINE(64, 16)
DEFINE(64, 32)
DEFINE(128, 16)
