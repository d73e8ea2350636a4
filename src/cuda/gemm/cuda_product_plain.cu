/*
 * Products by plain multiply-adds in f32: tiles for small or exact ones, and the end of those whose sums were computed
 * in parts.
 */
#include "cuda/gemm/cuda_product.cuh"

#define TILE HN_CUDA_PLAIN_TILE
#define DEPTH 16
#define EACH 4 /* rows and columns of a thread */
#define THREADS HN_CUDA_PLAIN_THREADS

/* --- tiles ------------------------------------------------------------------------------------------------------- */

/* [DEPTH][TILE] in shared memory, lines padded. `along`: k is what lies side by side in x. */
template <typename T>
__device__ void load_plain(float (*to)[TILE + EACH], const T *x, int64_t row_step, int64_t k_step, int64_t rows,
                           int64_t depth, bool along)
{
    for (int i = threadIdx.x; i < DEPTH * TILE; i += THREADS) {
        const int k = along ? i % DEPTH : i / TILE, row = along ? i / DEPTH : i % TILE;
        to[k][row] = k < depth && row < rows ? hn_load(x + row * row_step + k * k_step) : 0.0f;
    }
}

template <typename T> __device__ void product_plain(const HnCudaProductArgs &a)
{
    __shared__ float as[DEPTH][TILE + EACH], bs[DEPTH][TILE + EACH];
    const int row = threadIdx.x / (TILE / EACH), column = threadIdx.x % (TILE / EACH);
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, TILE, TILE); at += gridDim.x) {
        const HnProductJob job(a, at, TILE, TILE);
        int64_t at_a, at_b;
        product_stack(a, job.stack, &at_a, &at_b);
        const T *x = hn_at<const T>(a.a) + at_a + job.row * a.a_row;
        const T *w = hn_at<const T>(a.b) + at_b + job.column * a.b_col;
        float sum[EACH][EACH] = {};
        for (int64_t k = job.k; k < job.k_end; k += DEPTH) {
            load_plain(as, x + k * a.a_col, a.a_row, a.a_col, a.m - job.row, job.k_end - k, a.a_col == 1);
            load_plain(bs, w + k * a.b_row, a.b_col, a.b_row, a.n - job.column, job.k_end - k, a.b_row == 1);
            __syncthreads();
            const int depth = (int)min(job.k_end - k, (int64_t)DEPTH); /* 0 * infinity is no product */
            for (int d = 0; d < depth; d++) {
                float p[EACH], q[EACH];
#pragma unroll
                for (int i = 0; i < EACH; i++) {
                    p[i] = as[d][row + i * (TILE / EACH)];
                    q[i] = bs[d][column + i * (TILE / EACH)];
                }
#pragma unroll
                for (int i = 0; i < EACH; i++)
#pragma unroll
                    for (int j = 0; j < EACH; j++)
                        sum[i][j] = fmaf(p[i], q[j], sum[i][j]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const int64_t r = job.row + row + i * (TILE / EACH), c = job.column + column + j * (TILE / EACH);
                if (r < a.m && c < a.n)
                    product_result<T>(a, job.split, job.stack, r, c, sum[i][j]);
            }
    }
}

#define DEFINE(suffix, type)                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        product_plain_##suffix(const __grid_constant__ HnCudaProductArgs a)                        \
    {                                                                                              \
        product_plain<type>(a);                                                                    \
    }                                                                                              \
    extern "C" __global__ void product_parts_##suffix(const __grid_constant__ HnCudaProductArgs a) \
    {                                                                                              \
        product_parts<type, HnDense<type>>(a, sizeof(type) == sizeof(float));                      \
    }
HN_EACH_FLOAT(DEFINE)
