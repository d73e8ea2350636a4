/*
 * Products of f32 with weights of 4 and 8 bits, and rows of such weights.
 */
#include "cuda/gemm/tf32_tiles.cuh"
#include "cuda/gemm/weights.cuh"

using Args = HnCudaWeightMatMulArgs;

__device__ inline const HnCudaProductArgs &product_of(const Args &a)
{
    return a.product;
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

/* --- few rows of weights of any kind ----------------------------------------------------------------------------- */

#define ROWS HN_CUDA_FEW_ROWS
#define WARPS (HN_CUDA_ROWS_THREADS / HN_WARP)

/* A warp for each column, lanes go along k. */
extern "C" __global__ void __launch_bounds__(HN_CUDA_ROWS_THREADS)
    weight_any_k(const __grid_constant__ HnCudaWeightMatMulArgs all)
{
    const HnCudaProductArgs &a = all.product;
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, ROWS, WARPS); at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WARPS);
        const int64_t column = job.column + warp;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        const float *x = hn_at<const float>(a.a) + job.row * a.k;
        float sum[ROWS] = {};
        if (column >= a.n)
            continue;
        for (int64_t k = job.k + lane; k < job.k_end; k += HN_WARP) {
            const float v = Packed::element(all, 0, k, column);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < rows)
                    sum[r] = fmaf(x[r * a.k + k], v, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
            const float whole = hn_warp_reduce<HnSum>(sum[r]);
            if (lane == 0)
                product_result<float>(a, job.split, 0, job.row + r, column, whole);
        }
    }
}

/* A lane for each column, warps share k. */
extern "C" __global__ void __launch_bounds__(HN_CUDA_ROWS_THREADS)
    weight_any_n(const __grid_constant__ HnCudaWeightMatMulArgs all)
{
    const HnCudaProductArgs &a = all.product;
    __shared__ float room[WARPS][HN_WARP];
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, ROWS, HN_WARP); at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, HN_WARP);
        const int64_t column = job.column + lane;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        const float *x = hn_at<const float>(a.a) + job.row * a.k;
        float sum[ROWS] = {};
        for (int64_t k = job.k + warp; column < a.n && k < job.k_end; k += WARPS) {
            const float v = Packed::element(all, 0, k, column);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < rows)
                    sum[r] = fmaf(x[r * a.k + k], v, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
            room[warp][lane] = sum[r];
            __syncthreads();
            if (warp == 0 && column < a.n) {
                float whole = 0;
                for (int i = 0; i < WARPS; i++)
                    whole += room[i][lane];
                product_result<float>(a, job.split, 0, job.row + r, column, whole);
            }
            __syncthreads();
        }
    }
}

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
