/*
 * Few rows times a matrix of f32, f16, bf16: as fast as the matrix can be read, 16 bytes at a time. ROWS is 1 or
 * HN_CUDA_FEW_ROWS.
 */
#include "cuda/gemm/few_rows.cuh"
#include "cuda/gemm/vectors.cuh"

/* N elements that are read at once. */
template <typename T, int N> struct Piece {
    struct alignas(N * sizeof(T)) {
        T each[N];
    } all;

    __device__ void load(const T *from)
    {
        all = *reinterpret_cast<const decltype(all) *>(from);
    }
    __device__ void clear()
    {
#pragma unroll
        for (int i = 0; i < N; i++)
            all.each[i] = T(0.0f);
    }
    __device__ float operator[](int i) const
    {
        return hn_load(&all.each[i]);
    }
};

/* N elements of a line of x from k on, of which `depth` are there. */
template <typename T, int N> __device__ inline void load_line(float *to, const T *x, int64_t step, int depth, bool wide)
{
    if (wide && depth >= N) {
        Piece<T, N> p;
        p.load(x);
#pragma unroll
        for (int i = 0; i < N; i++)
            to[i] = p[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = i < depth ? hn_load(x + i * step) : 0.0f;
}

#define TILE(type) (8 * HnVector<type>::N) /* columns of a block where rows of b lie side by side */

/* Rows of b lie side by side: threads side by side read one, lines of threads share k. */
template <typename T, int ROWS, bool WIDE> __device__ void rows_n(const HnCudaProductArgs &a, float *room)
{
    constexpr int EACH = WIDE ? HnVector<T>::N : 1, ACROSS = TILE(T) / EACH, LINES = HN_FEW_THREADS / ACROSS;
    constexpr int DEPTH = ROWS == 1 ? HnVector<T>::N : 4; /* of k that a thread reads at once */
    const int line = threadIdx.x / ACROSS;
    const bool x_wide = a.a_wide != 0 && a.a_col == 1;
    const int64_t jobs = HnProductJob::count(a, ROWS, TILE(T));
    for (int64_t at = blockIdx.x; at < jobs; at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, TILE(T));
        const int64_t column = job.column + threadIdx.x % ACROSS * EACH;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        int64_t at_a, at_b;
        product_stack(a, job.stack, &at_a, &at_b);
        const T *x = hn_at<const T>(a.a) + at_a + job.row * a.a_row, *w = hn_at<const T>(a.b) + at_b + column * a.b_col;
        float sum[ROWS][EACH] = {};
        for (int64_t k = job.k + line * DEPTH; column < a.n && k < job.k_end; k += LINES * DEPTH) {
            const int depth = (int)min(job.k_end - k, (int64_t)DEPTH);
            Piece<T, EACH> b[DEPTH];
#pragma unroll
            for (int i = 0; i < DEPTH; i++)
                if (i < depth)
                    b[i].load(w + (k + i) * a.b_row);
                else
                    b[i].clear();
            float p[ROWS][DEPTH];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < rows)
                    load_line<T, DEPTH>(p[r], x + r * a.a_row + k * a.a_col, a.a_col, depth, x_wide);
#pragma unroll
            for (int i = 0; i < DEPTH; i++) {
                float v[EACH];
#pragma unroll
                for (int c = 0; c < EACH; c++)
                    v[c] = b[i][c];
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    if (r < rows)
#pragma unroll
                        for (int c = 0; c < EACH; c++)
                            sum[r][c] = fmaf(p[r][i], v[c], sum[r][c]);
            }
        }
        few_rows_gather<ROWS, EACH, ACROSS>(room, sum, rows);
        few_rows_finish<T>(a, job, at % (jobs / a.splits), rows, TILE(T),
                           [&](int r, int c) { return few_rows_sum<ROWS, EACH, ACROSS>(room, r, c); });
    }
}

#define COLUMNS HN_CUDA_FEW_COLUMNS /* of a warp that goes along k */

/* Columns of b lie along k: a warp for each few of them, lanes go along it. */
template <typename T, int ROWS, bool WIDE> __device__ void rows_k(const HnCudaProductArgs &a, float *room)
{
    constexpr int EACH = WIDE ? HnVector<T>::N : 1, TIMES = ROWS == 1 ? 2 : 1, STEP = HN_WARP * EACH;
    constexpr int WIDTH = HN_FEW_WARPS * COLUMNS;
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    const bool x_wide = a.a_wide != 0 && a.a_col == 1;
    const int64_t jobs = HnProductJob::count(a, ROWS, WIDTH);
    for (int64_t at = blockIdx.x; at < jobs; at += gridDim.x) {
        const HnProductJob job(a, at, ROWS, WIDTH);
        const int64_t first = job.column + warp * COLUMNS;
        const int rows = (int)min(a.m - job.row, (int64_t)ROWS);
        int64_t at_a, at_b;
        product_stack(a, job.stack, &at_a, &at_b);
        const T *x = hn_at<const T>(a.a) + at_a + job.row * a.a_row;
        const T *w[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) /* what is too much is read, and not used */
            w[c] = hn_at<const T>(a.b) + at_b + min(first + c, a.n - 1) * a.b_col;
        float sum[ROWS][COLUMNS] = {};
        for (int64_t start = job.k; first < a.n && start < job.k_end; start += STEP * TIMES) {
            Piece<T, EACH> b[TIMES][COLUMNS];
#pragma unroll
            for (int i = 0; i < TIMES; i++) {
                const int64_t k = start + i * STEP + lane * EACH;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    if (k < job.k_end) /* and so is all of the piece */
                        b[i][c].load(w[c] + k);
                    else
                        b[i][c].clear();
            }
#pragma unroll
            for (int i = 0; i < TIMES; i++) {
                const int64_t k = start + i * STEP + lane * EACH;
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    if (r >= rows)
                        break;
                    float p[EACH];
                    load_line<T, EACH>(p, x + r * a.a_row + k * a.a_col, a.a_col, k < job.k_end ? EACH : 0, x_wide);
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                        for (int j = 0; j < EACH; j++)
                            sum[r][c] = fmaf(p[j], b[i][c][j], sum[r][c]);
                }
            }
        }
        few_rows_lanes<ROWS, COLUMNS>(room, sum, rows);
        few_rows_finish<T>(a, job, at % (jobs / a.splits), rows, WIDTH,
                           [&](int r, int c) { return room[r * WIDTH + c]; });
    }
}

#define DEFINE_ROWS(form, rows, suffix, type)                                           \
    extern "C" __global__ void __launch_bounds__(HN_FEW_THREADS, (rows) == 1 ? 3 : 1)   \
        product_##form##_##rows##_##suffix(const __grid_constant__ HnCudaProductArgs a) \
    {                                                                                   \
        __shared__ float room[HN_FEW_WARPS * (rows)*TILE(type)];                        \
        if (a.b_wide)                                                                   \
            form<type, rows, true>(a, room);                                            \
        else                                                                            \
            form<type, rows, false>(a, room);                                           \
    }
#define DEFINE(suffix, type)             \
    DEFINE_ROWS(rows_k, 1, suffix, type) \
    DEFINE_ROWS(rows_k, 8, suffix, type) \
    DEFINE_ROWS(rows_n, 1, suffix, type) \
    DEFINE_ROWS(rows_n, 8, suffix, type)
HN_EACH_FLOAT(DEFINE)
