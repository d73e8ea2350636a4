/*
 * What kernels of products share: where operands lie, tiles on their way into shared memory, results.
 */
#pragma once

#include "cuda/elementwise/cuda_end.cuh"
#include "cuda/gemm/copies.cuh"
#include "cuda/gemm/cuda_product_args.h"

/* First elements of the operands of stack s. */
__device__ inline void product_stack(const HnCudaProductArgs &a, int64_t s, int64_t *at_a, int64_t *at_b)
{
    *at_a = *at_b = 0;
    for (int i = a.axes - 1; i >= 0; i--) {
        const int64_t at = s % a.dims[i];
        s /= a.dims[i];
        *at_a += at * a.a_step[i];
        *at_b += at * a.b_step[i];
    }
}

/* The element of y that a result is. */
__device__ inline int64_t product_place(const HnCudaProductArgs &a, int64_t s, int64_t i, int64_t j)
{
    return s * a.m * a.n + i * a.y_row + j * a.y_col;
}

/* Results from N whole sums; row(k), column(k): which, there(k): whether there is such a one. */
template <typename T, int N, typename Row, typename Column, typename There>
__device__ __forceinline__ void product_finish_all(const HnCudaProductArgs &a, int64_t s, float (&v)[N], Row row,
                                                   Column column, There there)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        v[k] *= a.alpha;
        if (a.c != 0 && there(k))
            v[k] += a.beta * hn_load(hn_at<const T>(a.c) + row(k) * a.c_row + column(k) * a.c_col);
    }
    if (a.end.n > 0)
        hn_end_of<T, N>(
            a.end, v, [&](int k) { return a.end_rows ? (int64_t)row(k) : (int64_t)column(k); },
            [&](int k) { return there(k) ? product_place(a, s, row(k), column(k)) : -1; });
#pragma unroll
    for (int k = 0; k < N; k++)
        if (there(k))
            hn_store(hn_at<T>(a.y) + product_place(a, s, row(k), column(k)), v[k]);
}

template <typename T>
__device__ __noinline__ float product_end(const HnCudaEnd &e, float v, int64_t channel, int64_t at)
{
    float one[1] = { v };
    hn_end_of<T, 1>(
        e, one, [&](int) { return channel; }, [&](int) { return at; });
    return one[0];
}

/* The result from a whole sum. */
template <typename T>
__device__ inline void product_finish(const HnCudaProductArgs &a, int64_t s, int64_t i, int64_t j, float sum)
{
    const int64_t at = product_place(a, s, i, j);
    float v = a.alpha * sum;
    if (a.c != 0)
        v += a.beta * hn_load(hn_at<const T>(a.c) + i * a.c_row + j * a.c_col);
    if (a.end.n > 0)
        v = product_end<T>(a.end, v, a.end_rows ? i : j, at);
    hn_store(hn_at<T>(a.y) + at, v);
}

/* The result, or what part `split` of k gave of it. */
template <typename T>
__device__ inline void product_result(const HnCudaProductArgs &a, int64_t split, int64_t s, int64_t i, int64_t j,
                                      float sum)
{
    if (a.parts != 0)
        hn_at<float>(a.parts)[((split * a.stacks + s) * a.m + i) * a.n + j] = sum;
    else
        product_finish<T>(a, s, i, j, sum);
}

/* What a block computes at a time: one of splits * stacks * rows of tiles * columns of tiles. */
struct HnProductJob {
    int64_t split, stack, row, column; /* row and column: first elements */
    int64_t k, k_end;

    /* Tiles that follow each other share what they read: eight rows of them go together. */
    __device__ HnProductJob(const HnCudaProductArgs &a, int64_t job, int tile_rows, int tile_columns)
    {
        const int64_t rows = (a.m + tile_rows - 1) / tile_rows, columns = (a.n + tile_columns - 1) / tile_columns;
        const int64_t tile = job % (rows * columns), group = tile / (8 * columns), first = group * 8;
        const int64_t height = rows - first < 8 ? rows - first : 8, within = tile - group * 8 * columns;
        row = (first + within % height) * tile_rows;
        column = within / height * tile_columns;
        stack = job / (rows * columns) % a.stacks;
        split = job / (rows * columns) / a.stacks;
        k = split * a.chunk;
        k_end = k + a.chunk < a.k ? k + a.chunk : a.k;
    }
    __device__ static int64_t count(const HnCudaProductArgs &a, int tile_rows, int tile_columns)
    {
        return a.splits * a.stacks * ((a.m + tile_rows - 1) / tile_rows) * ((a.n + tile_columns - 1) / tile_columns);
    }
};

/* --- tiles on tensor cores ---------------------------------------------------------------------------------------- */

/*
 * Part of an operand in shared memory: ROWS rows of a (columns of b) and DEPTH of k, in lines that lie as they do in
 * memory: along k or across it. Lines are padded so that fragments are read without conflicts of banks.
 */
template <typename T, int ROWS, bool ALONG_K> struct HnTile {
    static constexpr bool TURNED = !ALONG_K;
    static constexpr int DEPTH = 64 / (int)sizeof(T), VECTOR = 16 / (int)sizeof(T);
    static constexpr int LINES = ALONG_K ? ROWS : DEPTH, LENGTH = ALONG_K ? DEPTH : ROWS;
    static constexpr int PITCH = ALONG_K ? DEPTH + VECTOR : ROWS + 8;
    static constexpr int SIZE = LINES * PITCH;

    __device__ static int at(int row, int k)
    {
        return ALONG_K ? row * PITCH + k : k * PITCH + row;
    }

    /* x: the operand's element at `row` and k; `rows` and `depth`: how many are left there. What is not becomes 0. */
    template <int THREADS>
    __device__ static void load(T *to, const T *x, int64_t line_step, int64_t rows, int64_t depth, bool wide)
    {
        const int lines = (int)min((ALONG_K ? rows : depth), (int64_t)LINES);
        const int length = (int)min((ALONG_K ? depth : rows), (int64_t)LENGTH);
#pragma unroll
        for (int v = threadIdx.x; v < LINES * LENGTH / VECTOR; v += THREADS) {
            const int line = v / (LENGTH / VECTOR), first = v % (LENGTH / VECTOR) * VECTOR;
            const int n = line < lines ? max(0, min(length - first, VECTOR)) : 0;
            const T *from = n > 0 ? x + line * line_step + first : x;
            T *place = to + line * PITCH + first;
            if (wide)
                hn_copy_16(place, from, n * (int)sizeof(T));
            else
                single(place, from, n);
        }
    }
    __device__ static void single(float *to, const float *from, int n)
    {
        for (int i = 0; i < VECTOR; i++)
            hn_copy_4(to + i, i < n ? from + i : from, i < n ? 4 : 0);
    }
    template <typename H> __device__ static void single(H *to, const H *from, int n)
    {
        for (int i = 0; i < VECTOR; i++)
            to[i] = i < n ? from[i] : H(0.0f);
    }
};

__device__ inline const HnCudaProductArgs &product_of(const HnCudaProductArgs &a)
{
    return a;
}

/* What a kernel knows of b: where a tile of it comes from, and sums by plain operations. This one: it lies in memory.
 */
template <typename T> struct HnDense {
    using Args = HnCudaProductArgs;

    /* Elements from `column` and k on, of a part that ends at k_end. */
    template <typename Tile, int THREADS>
    __device__ static void load(T *to, const Args &a, int64_t at, int64_t column, int64_t k, int64_t k_end)
    {
        Tile::template load<THREADS>(to, hn_at<const T>(a.b) + at + column * a.b_col + k * a.b_row,
                                     Tile::TURNED ? a.b_row : a.b_col, a.n - column, k_end - k, a.b_wide != 0);
    }
    __device__ static float element(const Args &a, int64_t at, int64_t k, int64_t j)
    {
        return hn_load(hn_at<const T>(a.b) + at + k * a.b_row + j * a.b_col);
    }
};

/* The sum of element i, j over all of k, by plain operations. */
template <typename T, typename Right>
__device__ inline float product_plain_sum_here(const typename Right::Args &all, int64_t s, int64_t i, int64_t j)
{
    const HnCudaProductArgs &a = product_of(all);
    int64_t at_a, at_b;
    product_stack(a, s, &at_a, &at_b);
    const T *x = hn_at<const T>(a.a) + at_a + i * a.a_row;
    float sum = 0;
    for (int64_t k = 0; k < a.k; k++)
        sum = fmaf(hn_load(x + k * a.a_col), Right::element(all, at_b, k, j), sum);
    return sum;
}

template <typename T, typename Right>
__device__ __noinline__ float product_plain_sum(const typename Right::Args &all, int64_t s, int64_t i, int64_t j)
{
    return product_plain_sum_here<T, Right>(all, s, i, j);
}

/* The results that sums of parts make. `checked`: they may be infinite or NaN where those of f32 would not be. */
template <typename T, typename Right> __device__ void product_parts(const typename Right::Args &all, bool checked)
{
    const HnCudaProductArgs &a = product_of(all);
    const int64_t each = a.m * a.n, count = a.stacks * each;
    for (int64_t at = hn_first(); at < count; at += hn_stride()) {
        const int64_t s = at / each, i = at % each / a.n, j = at % a.n;
        const float *parts = hn_at<const float>(a.parts) + at;
        float sum = 0;
        for (int64_t p = 0; p < a.splits; p++)
            sum += parts[p * count];
        if (checked && !isfinite(sum))
            sum = product_plain_sum<T, Right>(all, s, i, j);
        product_finish<T>(a, s, i, j, sum);
    }
}

/*
 * Products on tensor cores: a block's tile of ROWS x COLUMNS results, whose warps compute parts of WARP_ROWS x
 * WARP_COLUMNS. How: fragments, and what a step through a tile's depth does with them.
 */
template <typename T, typename How, typename Right, bool A_ALONG_K, bool B_ALONG_K, int ROWS, int COLUMNS>
__device__ void product_tiles(const typename Right::Args &all)
{
    const HnCudaProductArgs &a = product_of(all);
    using A = HnTile<T, ROWS, A_ALONG_K>;
    using B = HnTile<T, COLUMNS, B_ALONG_K>;
    constexpr int STAGES = HN_CUDA_TILE_STAGES;
    constexpr int THREADS = ROWS / How::ROWS * (COLUMNS / How::COLUMNS) * HN_WARP;
    extern __shared__ __align__(128) unsigned char shared[];
    T *const as = reinterpret_cast<T *>(shared), *const bs = as + STAGES * A::SIZE;
    const int warp = threadIdx.x / HN_WARP;
    const int row = warp / (COLUMNS / How::COLUMNS) * How::ROWS,
              column = warp % (COLUMNS / How::COLUMNS) * How::COLUMNS;
    const int64_t a_step = A_ALONG_K ? a.a_row : a.a_col;
    for (int64_t j = blockIdx.x; j < HnProductJob::count(a, ROWS, COLUMNS); j += gridDim.x) {
        const HnProductJob job(a, j, ROWS, COLUMNS);
        int64_t at_a, at_b;
        product_stack(a, job.stack, &at_a, &at_b);
        const T *x = hn_at<const T>(a.a) + at_a + job.row * a.a_row + job.k * a.a_col;
        const int steps = (int)((job.k_end - job.k + A::DEPTH - 1) / A::DEPTH);
        const auto load = [&](int step) {
            if (step < steps) {
                const int64_t k = (int64_t)step * A::DEPTH, left = job.k_end - job.k - k;
                A::template load<THREADS>(as + step % STAGES * A::SIZE, x + k * a.a_col, a_step, a.m - job.row, left,
                                          a.a_wide != 0);
                Right::template load<B, THREADS>(bs + step % STAGES * B::SIZE, all, at_b, job.column, job.k + k,
                                                 job.k_end);
            }
            hn_copies_close();
        };
        How how;
        for (int i = 0; i < STAGES - 1; i++)
            load(i);
        for (int i = 0; i < steps; i++) {
            hn_copies_wait<STAGES - 2>();
            __syncthreads();
            load(i + STAGES - 1);
            how.template step<A, B>(as + i % STAGES * A::SIZE, bs + i % STAGES * B::SIZE, row, column, i);
        }
        how.end();
        hn_copies_wait<0>();
        __syncthreads();
        how.results([&](int r, int c, float sum) {
            const int64_t at = job.row + row + r, to = job.column + column + c;
            if (at >= a.m || to >= a.n)
                return;
            if (How::CHECKED && a.parts == 0 && !isfinite(sum)) /* sums of parts are looked at when they meet */
                sum = product_plain_sum<T, Right>(all, job.stack, at, to);
            product_result<T>(a, job.split, job.stack, at, to, sum);
        });
    }
}
