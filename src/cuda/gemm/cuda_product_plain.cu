/*
 * Products by plain multiply-adds in f32: tiles for small or exact ones, few rows times a matrix, and the end of those
 * whose sums were computed in parts.
 */
#include "cuda/gemm/cuda_product.cuh"
#include "cuda/gemm/vectors.cuh"

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

/* --- few rows ---------------------------------------------------------------------------------------------------- */

#define ROWS HN_CUDA_FEW_ROWS
#define WARPS (HN_CUDA_ROWS_THREADS / HN_WARP)

/* Columns of b lie along k: a warp for each, lanes go along it. */
template <typename T> __device__ void product_rows_k(const HnCudaProductArgs &a)
{
    constexpr int VECTOR = HnVector<T>::N;
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, ROWS, WARPS); at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WARPS);
        const int64_t column = job.column + warp;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        if (column >= a.n)
            continue;
        int64_t at_a, at_b;
        product_stack(a, job.stack, &at_a, &at_b);
        const T *x = hn_at<const T>(a.a) + at_a + job.row * a.a_row, *w = hn_at<const T>(a.b) + at_b + column * a.b_col;
        float sum[ROWS] = {};
        int64_t k = job.k;
        if (a.b_wide) /* a part begins where a vector does */
            for (; k + VECTOR * HN_WARP <= job.k_end; k += VECTOR * HN_WARP) {
                const int64_t first = k + lane * VECTOR;
                float b[VECTOR], v[VECTOR];
                hn_load_vector(b, w + first);
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    if (r >= rows)
                        break;
                    const T *from = x + r * a.a_row + first * a.a_col;
                    if (a.a_wide && a.a_col == 1)
                        hn_load_vector(v, from);
                    else
                        for (int i = 0; i < VECTOR; i++)
                            v[i] = hn_load(from + i * a.a_col);
                    for (int i = 0; i < VECTOR; i++)
                        sum[r] = fmaf(v[i], b[i], sum[r]);
                }
            }
        for (k += lane; k < job.k_end; k += HN_WARP) {
            const float b = hn_load(w + k * a.b_row);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < rows)
                    sum[r] = fmaf(hn_load(x + r * a.a_row + k * a.a_col), b, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
            const float all = hn_warp_reduce<HnSum>(sum[r]);
            if (lane == 0)
                product_result<T>(a, job.split, job.stack, job.row + r, column, all);
        }
    }
}

/* Rows of b lie side by side: a lane for each of so many columns, warps share k. */
template <typename T, int EACH_LANE> __device__ void product_rows_n(const HnCudaProductArgs &a)
{
    constexpr int WIDTH = HN_WARP * EACH_LANE;
    __shared__ float room[WARPS][WIDTH];
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    for (int64_t at = blockIdx.x; at < HnProductJob::count(a, ROWS, WIDTH); at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WIDTH);
        const int64_t column = job.column + lane * EACH_LANE;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        int64_t at_a, at_b;
        product_stack(a, job.stack, &at_a, &at_b);
        const T *x = hn_at<const T>(a.a) + at_a + job.row * a.a_row, *w = hn_at<const T>(a.b) + at_b + column * a.b_col;
        float sum[ROWS][EACH_LANE] = {};
        for (int64_t k = job.k + warp; column < a.n && k < job.k_end; k += WARPS) {
            float b[EACH_LANE];
            if (EACH_LANE > 1)
                hn_load_vector(b, w + k * a.b_row);
            else
                b[0] = hn_load(w + k * a.b_row);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (r >= rows)
                    break;
                const float v = hn_load(x + r * a.a_row + k * a.a_col);
#pragma unroll
                for (int i = 0; i < EACH_LANE; i++)
                    sum[r][i] = fmaf(v, b[i], sum[r][i]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows)
                break;
#pragma unroll
            for (int i = 0; i < EACH_LANE; i++)
                room[warp][lane * EACH_LANE + i] = sum[r][i];
            __syncthreads();
            for (int c = threadIdx.x; c < WIDTH && job.column + c < a.n; c += blockDim.x) {
                float all = 0;
                for (int i = 0; i < WARPS; i++)
                    all += room[i][c];
                product_result<T>(a, job.split, job.stack, job.row + r, job.column + c, all);
            }
            __syncthreads();
        }
    }
}

#define DEFINE(suffix, type)                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        product_plain_##suffix(const __grid_constant__ HnCudaProductArgs a)                        \
    {                                                                                              \
        product_plain<type>(a);                                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_ROWS_THREADS)                             \
        product_rows_k_##suffix(const __grid_constant__ HnCudaProductArgs a)                       \
    {                                                                                              \
        product_rows_k<type>(a);                                                                   \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(HN_CUDA_ROWS_THREADS)                             \
        product_rows_n_##suffix(const __grid_constant__ HnCudaProductArgs a)                       \
    {                                                                                              \
        if (a.b_wide)                                                                              \
            product_rows_n<type, HnVector<type>::N>(a);                                            \
        else                                                                                       \
            product_rows_n<type, 1>(a);                                                            \
    }                                                                                              \
    extern "C" __global__ void product_parts_##suffix(const __grid_constant__ HnCudaProductArgs a) \
    {                                                                                              \
        product_parts<type, HnDense<type>>(a, sizeof(type) == sizeof(float));                      \
    }
HN_EACH_FLOAT(DEFINE)
