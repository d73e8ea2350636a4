/*
 * Few rows of f32 times weights of 4 and 8 bits, as fast as these can be read: eight at a time, that share a scale or
 * have eight side by side. ROWS is 1 or HN_CUDA_FEW_ROWS.
 */
#include "cuda/gemm/few_rows.cuh"
#include "cuda/gemm/weights.cuh"

#define EACH 8

/* Eight weights as floats, as weight_float() makes them, but for 4 bits above other powers of two: bits of a word are
 * put where they are under an exponent. BASE(i): what is above weight i. */
template <int BITS> struct Eight;
template <> struct Eight<8> {
    uint2 word;

    __device__ static float base(int)
    {
        return HN_WEIGHT_BASE;
    }
    __device__ void load(uint64_t from, int64_t i, uint32_t flips)
    {
        word = hn_at<const uint2>(from)[i / EACH];
        word.x ^= flips;
        word.y ^= flips;
    }
    __device__ float operator[](int i) const
    {
        return __uint_as_float(__byte_perm(i < 4 ? word.x : word.y, 0x4b000000, 0x7650 + i % 4));
    }
};
template <> struct Eight<4> {
    uint32_t word;

    __device__ static int place(int i) /* five of them fit below an exponent, the others are moved */
    {
        return i < 5 ? i : i - 5;
    }
    __device__ static float base(int i)
    {
        return (float)(1 << (23 - 4 * place(i)));
    }
    __device__ void load(uint64_t from, int64_t i, uint32_t flips)
    {
        word = hn_at<const uint32_t>(from)[i / EACH] ^ flips;
    }
    __device__ float operator[](int i) const
    {
        const uint32_t w = i < 5 ? word : word >> 20, exponent = (uint32_t)(127 + 23 - 4 * place(i)) << 23;
        return __uint_as_float((w & (15u << (4 * place(i)))) | exponent);
    }
};

/* Four elements of a row of x. */
__device__ inline void load_four(float *to, const float *x, bool wide)
{
    if (wide) {
        const float4 v = *reinterpret_cast<const float4 *>(x);
        to[0] = v.x;
        to[1] = v.y;
        to[2] = v.z;
        to[3] = v.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = x[i];
}

/* --- w [K][N] ----------------------------------------------------------------------------------------------------- */

#define ACROSS (HN_CUDA_WEIGHT_WIDTH / EACH)
#define LINES (HN_FEW_THREADS / ACROSS)

/* Threads side by side have eight columns each; lines of threads have a piece of k each, in which scales change rarely.
 */
template <int BITS, int ROWS> __device__ void weight_rows_n(const HnCudaWeightMatMulArgs &all)
{
    constexpr int DEPTH = ROWS > 1 ? 8 : 64 / BITS; /* of k that a thread reads at once */
    const HnCudaProductArgs &a = all.product;
    const HnCudaWeights &w = all.weights;
    __shared__ float room[HN_FEW_WARPS * ROWS * HN_CUDA_WEIGHT_WIDTH];
    const int64_t jobs = HnProductJob::count(a, ROWS, HN_CUDA_WEIGHT_WIDTH);
    const uint32_t flips = weight_flips(w);
    for (int64_t at = blockIdx.x; at < jobs; at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, HN_CUDA_WEIGHT_WIDTH);
        const int64_t column = job.column + threadIdx.x % ACROSS * EACH;
        const int64_t run = ((job.k_end - job.k + LINES - 1) / LINES + DEPTH - 1) / DEPTH * DEPTH;
        const int64_t begin = job.k + threadIdx.x / ACROSS * run, end = min(begin + run, job.k_end);
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        const float *x = hn_at<const float>(a.a) + job.row * a.k;
        float sum[ROWS][EACH] = {}, part[EACH] = {}, scale[EACH] = {}, less[EACH];
        const auto close = [&]() { /* of one row, what has the same scale is multiplied by it at once */
#pragma unroll
                                   for (int c = 0; c < EACH; c++) {
                                       sum[0][c] = fmaf(part[c], scale[c], sum[0][c]);
                                       part[c] = 0;
                                   }
        };
        int64_t until = begin; /* the scales are good up to there */
        for (int64_t k = begin; column < a.n && k < end; k += DEPTH) {
            if (k >= until) {
                if (ROWS == 1)
                    close();
                const int64_t from = k / w.row_block * w.row_step + column * w.col_step;
#pragma unroll
                for (int c = 0; c < EACH; c++) {
                    scale[c] = hn_at<const float>(w.scale)[from + c * w.col_step];
                    less[c] = weight_less(w, from + c * w.col_step) - HN_WEIGHT_BASE + Eight<BITS>::base(c);
                }
                until = w.row_step == 0 ? a.k : (k / w.row_block + 1) * w.row_block;
            }
            Eight<BITS> v[DEPTH];
            const int depth = (int)min(end - k, (int64_t)DEPTH);
#pragma unroll
            for (int i = 0; i < DEPTH; i++) /* what is too much is read twice, and multiplied by 0 */
                v[i].load(w.w, (k + min(i, depth - 1)) * a.n + column, flips);
#pragma unroll
            for (int first = 0; first < DEPTH; first += 4) {
                if (ROWS > 1 && first >= depth)
                    break;
                float f[4][EACH];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int c = 0; c < EACH; c++) {
                        f[i][c] = v[first + i][c] - less[c];
                        if (ROWS > 1)
                            f[i][c] *= scale[c];
                    }
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    if (r >= rows)
                        break;
                    float p[4];
                    if (first + 4 <= depth)
                        load_four(p, x + r * a.k + k + first, a.a_wide != 0);
                    else
#pragma unroll
                        for (int i = 0; i < 4; i++)
                            p[i] = first + i < depth ? x[r * a.k + k + first + i] : 0.0f;
                    float *const to = ROWS == 1 ? part : sum[r];
#pragma unroll
                    for (int i = 0; i < 4; i++)
#pragma unroll
                        for (int c = 0; c < EACH; c++)
                            to[c] = fmaf(p[i], f[i][c], to[c]);
                }
            }
        }
        if (ROWS == 1)
            close();
        few_rows_gather<ROWS, EACH, ACROSS>(room, sum, rows);
        few_rows_finish<float>(a, job, at % (jobs / a.splits), rows, HN_CUDA_WEIGHT_WIDTH,
                               [&](int r, int c) { return few_rows_sum<ROWS, EACH, ACROSS>(room, r, c); });
    }
}

/* --- w [N][K] ----------------------------------------------------------------------------------------------------- */

/* A warp has some columns, of which lanes read eight weights at a time. */
template <int BITS, int ROWS> __device__ void weight_rows_k(const HnCudaWeightMatMulArgs &all)
{
    constexpr int COLUMNS = HN_CUDA_WEIGHT_COLUMNS, WIDTH = HN_FEW_WARPS * COLUMNS, TIMES = ROWS == 1 ? 2 : 1;
    const HnCudaProductArgs &a = all.product;
    const HnCudaWeights &w = all.weights;
    __shared__ float room[ROWS * WIDTH];
    const int64_t jobs = HnProductJob::count(a, ROWS, WIDTH);
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    const uint32_t flips = weight_flips(w);
    for (int64_t at = blockIdx.x; at < jobs; at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WIDTH);
        const int64_t first = job.column + warp * COLUMNS;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        const float *x = hn_at<const float>(a.a) + job.row * a.k;
        float sum[ROWS][COLUMNS] = {};
        for (int64_t start = job.k + lane * EACH; first < a.n && start < job.k_end; start += HN_WARP * EACH * TIMES) {
            Eight<BITS> v[TIMES][COLUMNS];
            float scale[TIMES][COLUMNS], zero[TIMES][COLUMNS];
#pragma unroll
            for (int i = 0; i < TIMES; i++) { /* what is too much is read, and not used */
                const int64_t there = start + i * HN_WARP * EACH, k = there < job.k_end ? there : start;
                const int64_t block = w.col_step == 0 ? 0 : k / w.col_block * w.col_step;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const int64_t j = min(first + c, a.n - 1);
                    v[i][c].load(w.w, j * a.k + k, flips);
                    scale[i][c] = hn_at<const float>(w.scale)[j / w.row_block * w.row_step + block];
                    zero[i][c] = weight_less(w, j / w.row_block * w.row_step + block) - HN_WEIGHT_BASE;
                }
            }
#pragma unroll
            for (int i = 0; i < TIMES; i++) {
                const int64_t k = start + i * HN_WARP * EACH;
                if (k >= job.k_end)
                    break;
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    if (r >= rows)
                        break;
                    float p[EACH];
                    load_four(p, x + r * a.k + k, a.a_wide != 0);
                    load_four(p + 4, x + r * a.k + k + 4, a.a_wide != 0);
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) {
                        float part = 0;
#pragma unroll
                        for (int j = 0; j < EACH; j++)
                            part = fmaf(p[j], v[i][c][j] - (Eight<BITS>::base(j) + zero[i][c]), part);
                        sum[r][c] = fmaf(part, scale[i][c], sum[r][c]);
                    }
                }
            }
        }
        few_rows_lanes<ROWS, COLUMNS>(room, sum, rows);
        few_rows_finish<float>(a, job, at % (jobs / a.splits), rows, WIDTH,
                               [&](int r, int c) { return room[r * WIDTH + c]; });
    }
}

#define DEFINE_ROWS(form, bits, rows)                                                     \
    extern "C" __global__ void __launch_bounds__(HN_FEW_THREADS, (rows) == 1 ? 3 : 1)     \
        weight_##form##_##bits##_##rows(const __grid_constant__ HnCudaWeightMatMulArgs a) \
    {                                                                                     \
        weight_##form<bits, rows>(a);                                                     \
    }
#define DEFINE(form, rows)     \
    DEFINE_ROWS(form, 4, rows) \
    DEFINE_ROWS(form, 8, rows)
DEFINE(rows_n, 1)
DEFINE(rows_n, 8)
DEFINE(rows_k, 1)
DEFINE(rows_k, 8)
