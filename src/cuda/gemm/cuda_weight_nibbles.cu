/*
 * One row of f32 times weights of 4 bits [K][N], on tensor cores: unpacking is what takes time, and there a pair of
 * weights takes three instructions. Weights less their zero points are exact in bf16, and so is an element of x as the
 * sum of three such numbers, which are columns of the other operand. What has one scale, 128 terms at most, is summed
 * at once.
 *
 * A warp has 128 columns, lanes l / 4 two words of them each, and 16 rows of k at a time, lanes l % 4 four of them
 * each.
 */
#include "cuda/gemm/cuda_mma.cuh"
#include "cuda/gemm/few_rows.cuh"
#include "cuda/gemm/weights.cuh"

#define WIDTH HN_CUDA_WEIGHT_WIDTH
#define EACH 16  /* columns of a lane */
#define DEPTH 16 /* rows of k at a time */
#define TERMS 128
#define PARTS 3

/* Two numbers 128 + a nibble below 16: the bits are where an exponent of 7 puts them. */
__device__ inline uint32_t two_nibbles(uint32_t word, int place)
{
    return (word >> (4 * place) & 0x000f000fu) | 0x43004300u;
}
__device__ inline uint32_t two_of(float x)
{
    const __nv_bfloat162 v = __floats2bfloat162_rn(x, x);
    return *reinterpret_cast<const uint32_t *>(&v);
}
__device__ inline uint32_t less(uint32_t a, uint32_t b)
{
    const __nv_bfloat162 v =
        __hsub2(*reinterpret_cast<const __nv_bfloat162 *>(&a), *reinterpret_cast<const __nv_bfloat162 *>(&b));
    return *reinterpret_cast<const uint32_t *>(&v);
}

/* n elements of x as pairs, [n / 2][4]: their three parts. */
__device__ inline void split_row(uint32_t *to, const float *x, int n)
{
    for (int i = threadIdx.x; i < n / 2; i += HN_FEW_THREADS) {
        float a = x[2 * i], b = x[2 * i + 1];
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
            to[i * 4 + p] = *reinterpret_cast<const uint32_t *>(&v);
            const float2 f = __bfloat1622float2(v);
            a -= f.x;
            b -= f.y;
        }
    }
}

/* Four rows from k on, of the lane's two words. */
__device__ inline void load_rows(uint2 *to, const HnCudaWeightMatMulArgs &all, int k, int k_end, int column)
{
    const HnCudaProductArgs &a = all.product;
    const uint2 *from = hn_at<const uint2>(all.weights.w) + ((int64_t)k * a.n + column) / EACH;
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = k < k_end && column < a.n ? from[i * (a.n / EACH)] : make_uint2(0, 0);
}

template <bool ZEROS> __device__ void nibbles(const HnCudaWeightMatMulArgs &all)
{
    const HnCudaProductArgs &a = all.product;
    const HnCudaWeights &w = all.weights;
    __shared__ uint32_t x[HN_CUDA_WEIGHT_TERMS * 2];
    __shared__ float room[HN_FEW_WARPS][WIDTH];
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP, group = lane / 4, t = lane % 4;
    const int64_t jobs = HnProductJob::count(a, 1, WIDTH);
    const uint32_t flips = weight_flips(w);
    for (int64_t at = blockIdx.x; at < jobs; at += gridDim.x) {
        const HnProductJob job(a, at, 1, WIDTH);
        const int start = (int)job.k,
                  run = ((int)(job.k_end - job.k) / DEPTH + HN_FEW_WARPS - 1) / HN_FEW_WARPS * DEPTH;
        const int begin = start + warp * run, end = min(begin + run, (int)job.k_end);
        const int column = (int)job.column + group * EACH;
        uint2 next[4];
        load_rows(next, all, begin + 4 * t, end, column);
        __syncthreads(); /* nobody reads x any more */
        split_row(x, hn_at<const float>(a.a) + job.row * a.k + start, (int)(job.k_end - job.k));
        __syncthreads();
        float sum[EACH] = {}, part[EACH / 2][4] = {};
        uint32_t zero[ZEROS ? EACH : 1];
        int until = begin; /* of the present scales */
        int64_t from = 0;
        for (int k = begin; k < end; k += DEPTH) {
            if (k >= until) {
                from = k / w.row_block * w.row_step + column * w.col_step;
                until = w.row_step == 0 ? end : (int)min((int64_t)end, (k / w.row_block + 1) * w.row_block);
                zero[0] = two_of(128.0f + (float)w.flip);
                if (ZEROS)
#pragma unroll
                    for (int c = 0; c < EACH; c++)
                        zero[c] = two_of(column < a.n ? weight_less(w, from + c * w.col_step) - HN_WEIGHT_BASE + 128.0f
                                                      : 128.0f);
            }
            uint32_t q[2][2][2]; /* words, pairs of rows, low and high halves */
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint2 first = next[2 * i], second = next[2 * i + 1];
                q[0][i][0] = __byte_perm(first.x, second.x, 0x5410) ^ flips;
                q[0][i][1] = __byte_perm(first.x, second.x, 0x7632) ^ flips;
                q[1][i][0] = __byte_perm(first.y, second.y, 0x5410) ^ flips;
                q[1][i][1] = __byte_perm(first.y, second.y, 0x7632) ^ flips;
            }
            load_rows(next, all, k + DEPTH + 4 * t, end, column);
            const uint32_t *const pairs = x + (k - start + 4 * t) * 2;
            const uint32_t b[2] = { group < PARTS ? pairs[group] : 0, group < PARTS ? pairs[4 + group] : 0 };
#pragma unroll
            for (int m = 0; m < EACH / 2; m++) {
                uint32_t v[4];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    v[i] = less(two_nibbles(q[i % 2][i / 2][m / 4], m % 4), zero[ZEROS ? m + i % 2 * 8 : 0]);
                hn_mma(hn_bf16(), part[m], v, b);
            }
            if (k + DEPTH < until && (k + DEPTH) % TERMS != 0)
                continue;
#pragma unroll
            for (int c = 0; c < EACH; c++) {
                const float scale = column < a.n ? hn_at<const float>(w.scale)[from + c * w.col_step] : 0.0f;
                float *const two = part[c % 8] + c / 8 * 2; /* parts of x are in columns */
                sum[c] = fmaf(two[0] + two[1], scale, sum[c]);
                two[0] = two[1] = 0;
            }
        }
#pragma unroll
        for (int c = 0; c < EACH; c++) { /* the third part is in the lane beside */
            const float whole = sum[c] + __shfl_xor_sync(HN_ALL_LANES, sum[c], 1);
            if (t == 0)
                room[warp][group * EACH + c] = whole;
        }
        __syncthreads();
        few_rows_finish<float>(
            a, job, at % (jobs / a.splits), 1, WIDTH,
            [&](int, int c) {
                float whole = 0;
                for (int i = 0; i < HN_FEW_WARPS; i++)
                    whole += room[i][c];
                return whole;
            },
            [&](int64_t row, int64_t j, float whole) { /* parts of what is infinite, or nearly so, are NaN */
                                                       if (isfinite(whole))
                                                           return whole;
                                                       float plain = 0;
                                                       for (int64_t k = 0; k < a.k; k++)
                                                           plain = fmaf(hn_at<const float>(a.a)[row * a.k + k],
                                                                        weight_at(w, k, j, a.n), plain);
                                                       return plain;
            });
    }
}

extern "C" __global__ void __launch_bounds__(HN_FEW_THREADS, 2)
    weight_nibbles(const __grid_constant__ HnCudaWeightMatMulArgs a)
{
    nibbles<false>(a);
}
extern "C" __global__ void __launch_bounds__(HN_FEW_THREADS, 2)
    weight_nibbles_zeros(const __grid_constant__ HnCudaWeightMatMulArgs a)
{
    nibbles<true>(a);
}
