/*
 * Products of f32 with weights of 4 and 8 bits, and rows of such weights.
 */
#include "cuda/gemm/tf32_tiles.cuh"
#include "cuda/gemm/vectors.cuh"
#include "cuda/gemm/weights.cuh"

using Args = HnCudaWeightMatMulArgs;

__device__ inline const HnCudaProductArgs &product_of(const Args &a)
{
    return a.product;
}

/* Scale's place of the weight of k and column j. */
__device__ inline int64_t scale_at(const Args &a, int64_t k, int64_t j)
{
    return a.turned ? weight_scale_at(a.weights, j, k) : weight_scale_at(a.weights, k, j);
}

/* b as product_tiles() asks for it. */
struct Packed {
    using Args = HnCudaWeightMatMulArgs;

    template <typename Tile, int THREADS>
    __device__ static void load(float *to, const Args &a, int64_t, int64_t column, int64_t k, int64_t k_end)
    {
        for (int i = threadIdx.x; i < Tile::LINES * Tile::LENGTH; i += THREADS) {
            const int line = i / Tile::LENGTH, at = i % Tile::LENGTH;
            const int64_t row = k + (Tile::TURNED ? line : at), j = column + (Tile::TURNED ? at : line);
            to[line * Tile::PITCH + at] = row < k_end && j < a.product.n ? element(a, 0, row, j) : 0.0f;
        }
    }
    __device__ static float element(const Args &a, int64_t, int64_t k, int64_t j)
    {
        return a.turned ? weight_at(a.weights, j, k, a.product.k) : weight_at(a.weights, k, j, a.product.n);
    }
};

#define DEFINE(form, along, rows, threads)                                              \
    extern "C" __global__ void __launch_bounds__(threads)                               \
        weight_##form(const __grid_constant__ HnCudaWeightMatMulArgs a)                 \
    {                                                                                   \
        product_tiles<float, HnTf32, Packed, true, along, rows, HN_CUDA_TILE_SMALL>(a); \
    }
DEFINE(small_kk, true, HN_CUDA_TILE_SMALL, 128)
DEFINE(small_kn, false, HN_CUDA_TILE_SMALL, 128)
DEFINE(large_kk, true, HN_CUDA_TILE_LARGE, 256)
DEFINE(large_kn, false, HN_CUDA_TILE_LARGE, 256)

extern "C" __global__ void weight_parts(const __grid_constant__ HnCudaWeightMatMulArgs a)
{
    product_parts<float, Packed>(a, true);
}

/* --- few rows ------------------------------------------------------------------------------------------------------
 */

#define ROWS HN_CUDA_FEW_ROWS
#define WARPS (HN_CUDA_ROWS_THREADS / HN_WARP)
#define COLUMNS HN_CUDA_WEIGHT_COLUMNS

/* Columns lie along k: a warp for four of them, a word of each for a lane. */
template <int BITS>
__device__ void along_words(const Args &all, const HnProductJob &job, int64_t first, int rows, float (*sum)[COLUMNS])
{
    const HnCudaProductArgs &a = all.product;
    const HnCudaWeights &w = all.weights;
    constexpr int EACH = 32 / BITS;
    const uint32_t flips = weight_flips(w);
    const float *x = hn_at<const float>(a.a) + job.row * a.k;
    for (int64_t k = job.k + threadIdx.x % HN_WARP * EACH; k < job.k_end; k += HN_WARP * EACH) {
        float v[COLUMNS][EACH], scale[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int64_t j = first + c < a.n ? first + c : a.n - 1, at = weight_scale_at(w, j, k);
            const uint32_t word = hn_at<const uint32_t>(w.w)[(j * a.k + k) / EACH] ^ flips;
            const float less = weight_less(w, at);
            scale[c] = hn_at<const float>(w.scale)[at];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                v[c][i] = weight_float(weight_of_word(word, BITS, i)) - less;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
            float p[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i += 4)
                hn_load_vector(p + i, x + r * a.k + k + i);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                float part = 0;
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    part = fmaf(p[i], v[c][i], part);
                sum[r][c] = fmaf(part, scale[c], sum[r][c]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(HN_CUDA_ROWS_THREADS)
    weight_rows_k(const __grid_constant__ HnCudaWeightMatMulArgs all)
{
    const HnCudaProductArgs &a = all.product;
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, ROWS, WARPS * COLUMNS); at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WARPS * COLUMNS);
        const int64_t first = job.column + warp * COLUMNS;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        const float *x = hn_at<const float>(a.a) + job.row * a.k;
        float sum[ROWS][COLUMNS] = {};
        if (first >= a.n)
            continue;
        const bool words = all.words && a.a_wide;
        if (words && all.weights.bits == 8)
            along_words<8>(all, job, first, rows, sum);
        else if (words)
            along_words<4>(all, job, first, rows, sum);
        else
            for (int64_t k = job.k + lane; k < job.k_end; k += HN_WARP)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const float v = first + c < a.n ? Packed::element(all, 0, k, first + c) : 0.0f;
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        if (r < rows)
                            sum[r][c] = fmaf(x[r * a.k + k], v, sum[r][c]);
                }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const float whole = hn_warp_reduce<HnSum>(sum[r][c]);
                if (lane == 0 && first + c < a.n)
                    product_result<float>(a, job.split, 0, job.row + r, first + c, whole);
            }
        }
    }
}

/* Rows lie side by side: a word of columns for a lane (EACH of them), or one column; warps share k. */
template <int BITS, int EACH> __device__ void weight_rows_n(const Args &all)
{
    const HnCudaProductArgs &a = all.product;
    const HnCudaWeights &w = all.weights;
    constexpr int WIDTH = HN_WARP * EACH;
    __shared__ float room[WARPS][WIDTH];
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    const uint32_t flips = weight_flips(w);
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, ROWS, WIDTH); at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WIDTH);
        const int64_t column = job.column + lane * EACH;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        const float *x = hn_at<const float>(a.a) + job.row * a.k;
        float sum[ROWS][EACH] = {}, scale[EACH], less[EACH];
        int64_t until = 0; /* which k the scales are good up to */
        for (int64_t k = job.k + warp; column < a.n && k < job.k_end; k += WARPS) {
            if (k >= until) {
                for (int i = 0; i < EACH; i++) {
                    const int64_t from = weight_scale_at(w, k, column + i);
                    scale[i] = hn_at<const float>(w.scale)[from];
                    less[i] = weight_less(w, from);
                }
                until = w.row_step == 0 ? a.k : (k / w.row_block + 1) * w.row_block;
            }
            const uint32_t word = EACH > 1 ? hn_at<const uint32_t>(w.w)[(k * a.n + column) / EACH] ^ flips
                                           : weight_bits(w, w.w, k * a.n + column);
            float v[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                v[i] = (weight_float(EACH > 1 ? weight_of_word(word, BITS, i) : word) - less[i]) * scale[i];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < rows)
#pragma unroll
                    for (int i = 0; i < EACH; i++)
                        sum[r][i] = fmaf(x[r * a.k + k], v[i], sum[r][i]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
#pragma unroll
            for (int i = 0; i < EACH; i++)
                room[warp][lane * EACH + i] = sum[r][i];
            __syncthreads();
            for (int c = threadIdx.x; c < WIDTH && job.column + c < a.n; c += blockDim.x) {
                float whole = 0;
                for (int i = 0; i < WARPS; i++)
                    whole += room[i][c];
                product_result<float>(a, job.split, 0, job.row + r, job.column + c, whole);
            }
            __syncthreads();
        }
    }
}

#define DEFINE_N(name, bits, each)                                           \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_ROWS_THREADS)       \
        weight_rows_##name(const __grid_constant__ HnCudaWeightMatMulArgs a) \
    {                                                                        \
        weight_rows_n<bits, each>(a);                                        \
    }
DEFINE_N(n, 8, 1) /* of any bits */
DEFINE_N(n_4, 4, 8)
DEFINE_N(n_8, 8, 4)

/* --- rows of a table -----------------------------------------------------------------------------------------------
 */

extern "C" __global__ void weight_gather(const __grid_constant__ HnCudaWeightGatherArgs a)
{
    for (int64_t i = hn_first(); i < a.rows * a.n; i += hn_stride()) {
        const int64_t at = i / a.n, col = i % a.n;
        const int64_t index = a.wide ? hn_at<const int64_t>(a.at)[at] : hn_at<const int32_t>(a.at)[at];
        const int64_t row = index < 0 ? index + a.vocabulary : index;
        const bool inside = row >= 0 && row < a.vocabulary;
        if (!inside)
            hn_complain(a.complaint, at);
        hn_at<float>(a.y)[i] = inside ? weight_at(a.weights, row, col, a.n) : 0.0f;
    }
}
