/*
 * Products of f32 by warpgroups, in the two numbers of TF32 that cuda_mma.cuh makes of each. A consumer splits its rows
 * of a in registers; the copying warpgroup splits b into two parts in shared memory, lines along k. One set of sums
 * serves twice each HN_TF32_TERMS terms: for hi hi, then for the small products; both go into sums of plain f32.
 */
#include "cuda/gemm/tf32.cuh"
#include "cuda/gemm/warpgroup_tiles.cuh"

#define DEPTH 32 /* of a stage: lines of 128 bytes */
#define ROWS 128
#define COLUMNS 128
#define STAGES HN_WARPGROUP_F32_STAGES
#define GROUPS (ROWS / HN_WARPGROUP_ROWS)
#define STAGE HN_WARPGROUP_STAGE(ROWS, 2 * COLUMNS)
#define B_BYTES (COLUMNS * HN_LINE)

/* Where element k of that row lies: lines along k, or across it in parts of 32 rows. */
template <bool ALONG_K> __device__ inline int place(int row, int k)
{
    return ALONG_K ? row * HN_LINE + ((k / 4 ^ row % 8) * 16) + k % 4 * 4
                   : row / 32 * DEPTH * HN_LINE + k * HN_LINE + ((row % 32 / 4 ^ k % 8) * 16) + row % 4 * 4;
}

/* A tile of b as it came becomes two. A step of a warp takes 8 k of 8 columns, so that neither its reads nor its
 * writes meet in a bank. */
template <bool ALONG_K> __device__ inline void split_tile(const uint8_t *from, uint8_t *hi)
{
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    if constexpr (ALONG_K) {
#pragma unroll 4
        for (int v = threadIdx.x * 16; v < B_BYTES; v += HN_WARPGROUP_THREADS * 16) {
            const float4 x = *reinterpret_cast<const float4 *>(from + v);
            uint4 h, l;
            hn_tf32_split(x.x, h.x, l.x);
            hn_tf32_split(x.y, h.y, l.y);
            hn_tf32_split(x.z, h.z, l.z);
            hn_tf32_split(x.w, h.w, l.w);
            *reinterpret_cast<uint4 *>(hi + v) = h;
            *reinterpret_cast<uint4 *>(hi + B_BYTES + v) = l;
        }
    } else {
#pragma unroll 2
        for (int p = 0; p < COLUMNS / 8; p++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = p % 4 * 8 + lane % 4 + lane / 16 * 4;
                const int column = p / 4 * 32 + warp * 8 + lane / 4 % 4 + (lane / 16 ^ half) * 4;
                uint32_t h, l;
                hn_tf32_split(*reinterpret_cast<const float *>(from + place<false>(column, k)), h, l);
                *reinterpret_cast<uint32_t *>(hi + place<true>(column, k)) = h;
                *reinterpret_cast<uint32_t *>(hi + B_BYTES + place<true>(column, k)) = l;
            }
    }
}

/* The copying warpgroup. raw: two tiles of b on their way, with barriers behind. */
template <bool A_ALONG_K, bool B_ALONG_K>
__device__ inline void feed(const HnCudaWarpgroupArgs &all, int jobs, uint8_t *stages, uint32_t base, uint32_t raw,
                            uint32_t full, uint32_t empty, uint32_t raw_full)
{
    using A = HnLines<4, ROWS, A_ALONG_K>;
    using B = HnLines<4, COLUMNS, B_ALONG_K>;
    const HnCudaProductArgs &a = all.product;
    HnRing<STAGES> ring;
    HnRing<2> coming, come; /* tiles of b that are asked for, and taken */
    const auto ask = [&](const HnTileJob &job, int k) {
        const uint32_t gate = raw_full + 8 * coming.at;
        if (threadIdx.x == 0) {
            hn_gate_expect(gate, B_BYTES);
            B::copy(raw + coming.at * B_BYTES, &all.b, gate, job.column, k, all.b_stacked ? job.stack : 0);
        }
        coming.next();
    };
    for (int j = blockIdx.x; j < jobs; j += gridDim.x) {
        const HnTileJob job(a, j, ROWS, COLUMNS);
        if (j == (int)blockIdx.x)
            ask(job, job.k);
        for (int k = job.k; k < job.k_end; k += DEPTH, ring.next(), come.next()) {
            const uint32_t to = base + ring.at * STAGE, gate = full + 8 * ring.at;
            if (k + DEPTH < job.k_end) {
                ask(job, k + DEPTH);
            } else if (j + (int)gridDim.x < jobs) {
                const HnTileJob next(a, j + gridDim.x, ROWS, COLUMNS);
                ask(next, next.k);
            }
            hn_gate_wait(empty + 8 * ring.at, ring.turn ^ 1);
            if (threadIdx.x == 0) {
                hn_gate_expect(gate, A::BYTES);
                A::copy(to, &all.a, gate, job.row, k, all.a_stacked ? job.stack : 0);
            }
            hn_gate_wait(raw_full + 8 * come.at, come.turn);
            split_tile<B_ALONG_K>(stages + STAGES * STAGE + come.at * B_BYTES, stages + ring.at * STAGE + A::BYTES);
            hn_written();
            hn_gate_arrive(gate);
            __syncwarp();
            asm volatile("bar.sync 1, %0;" ::"n"(HN_WARPGROUP_THREADS) : "memory"); /* b as it came is read */
        }
    }
}

/* Sums of one stage: hi hi, or the small products. */
template <bool A_ALONG_K, bool SMALL>
__device__ inline void multiply(float *d, const uint8_t *x, uint32_t w, int row, uint32_t (*hi)[4], uint32_t (*lo)[4],
                                int go_on)
{
#pragma unroll
    for (int i = 0; i < DEPTH / 8; i++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float v = *reinterpret_cast<const float *>(
                x + place<A_ALONG_K>(row + r % 2 * 8, i * 8 + threadIdx.x % 4 + r / 2 * 4));
            if (SMALL)
                hn_tf32_split(v, hi[i][r], lo[i][r]);
            else
                hi[i][r] = hn_tf32(v);
        }
    hn_products_begin();
#pragma unroll
    for (int i = 0; i < DEPTH / 8; i++) {
        if (SMALL)
            HnWarpgroup<float, COLUMNS>::add(d, lo[i], hn_operand(w + i * 32, 0), go_on | i);
        HnWarpgroup<float, COLUMNS>::add(d, hi[i], hn_operand(w + (SMALL ? B_BYTES : 0) + i * 32, 0),
                                         SMALL ? 1 : go_on | i);
    }
    hn_products_close();
}

/* Results of a warp, 16 rows. What became infinite or NaN is computed again by plain operations. */
__device__ inline void store(const HnCudaWarpgroupArgs &all, const HnTileJob &job, int64_t row, const float *sum)
{
    const HnCudaProductArgs &a = all.product;
    uint64_t wrong = 0;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) {
        const int64_t r = row + i % 4 / 2 * 8, c = job.column + i / 4 * 8 + hn_mma_column() + i % 2;
        if (r >= a.m || c >= a.n)
            continue;
        if (a.parts == 0 && !isfinite(sum[i]))
            wrong |= (uint64_t)1 << i;
        else
            product_result<float>(a, job.split, job.stack, r, c, sum[i]);
    }
    for (; wrong != 0; wrong &= wrong - 1) {
        const int i = __ffsll(wrong) - 1;
        const int64_t r = row + i % 4 / 2 * 8, c = job.column + i / 4 * 8 + hn_mma_column() + i % 2;
        product_result<float>(a, job.split, job.stack, r, c,
                              product_plain_sum_here<float, HnDense<float>>(a, job.stack, r, c));
    }
}

template <bool A_ALONG_K, bool B_ALONG_K> __device__ void warpgroup_tiles(const HnCudaWarpgroupArgs &all)
{
    extern __shared__ uint8_t shared[];
    const HnCudaProductArgs &a = all.product;
    const uint32_t base = (hn_shared(shared) + HN_PATTERN - 1) & ~(HN_PATTERN - 1), raw = base + STAGES * STAGE;
    const uint32_t full = raw + 2 * B_BYTES, empty = full + 8 * STAGES, raw_full = empty + 8 * STAGES;
    uint8_t *const stages = shared + (base - hn_shared(shared));
    const int group = threadIdx.x / HN_WARPGROUP_THREADS, jobs = HnTileJob::count(a, ROWS, COLUMNS);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            hn_gate_init(full + 8 * i, 1 + HN_WARPGROUP_THREADS);
            hn_gate_init(empty + 8 * i, GROUPS * 4);
        }
        hn_gate_init(raw_full, 1);
        hn_gate_init(raw_full + 8, 1);
        hn_gates_ready();
    }
    __syncthreads();
    if (group == 0) {
        hn_registers_less<88>();
        feed<A_ALONG_K, B_ALONG_K>(all, jobs, stages, base, raw, full, empty, raw_full);
        return;
    }
    hn_registers_more<208>();
    const int row = (group - 1) * HN_WARPGROUP_ROWS + threadIdx.x / HN_WARP % 4 * 16 + hn_mma_row();
    HnRing<STAGES> ring;
    for (int j = blockIdx.x; j < jobs; j += gridDim.x) {
        const HnTileJob job(a, j, ROWS, COLUMNS);
        float sum[COLUMNS / 2] = {}, d[COLUMNS / 2];
        for (int k = job.k; k < job.k_end; k += HN_TF32_TERMS) {
            const bool two = k + DEPTH < job.k_end; /* stages */
            uint32_t hi[2][DEPTH / 8][4], lo[DEPTH / 8][4];
            HnRing<STAGES> at = ring;
#pragma unroll
            for (int s = 0; s < 2; s++, at.next())
                if (s == 0 || two) {
                    hn_gate_wait(full + 8 * at.at, at.turn);
                    multiply<A_ALONG_K, false>(d, stages + at.at * STAGE, base + at.at * STAGE + ROWS * HN_LINE, row,
                                               hi[s], lo, s);
                }
            hn_products_wait<0>();
            hn_sums_ready<COLUMNS / 2>(d);
#pragma unroll
            for (int i = 0; i < COLUMNS / 2; i++)
                sum[i] += d[i];
#pragma unroll
            for (int s = 0; s < 2; s++)
                if (s == 0 || two) {
                    multiply<A_ALONG_K, true>(d, stages + ring.at * STAGE, base + ring.at * STAGE + ROWS * HN_LINE, row,
                                              hi[s], lo, s);
                    hn_products_wait<0>();
                    hn_sums_ready<COLUMNS / 2>(d);
                    if (threadIdx.x % HN_WARP == 0)
                        hn_gate_arrive(empty + 8 * ring.at);
                    ring.next();
                }
#pragma unroll
            for (int i = 0; i < COLUMNS / 2; i++)
                sum[i] = fmaf(d[i], 1 / HN_TF32_LO, sum[i]);
        }
        store(all, job, job.row + row, sum);
    }
}

#define DEFINE(a, b, a_along, b_along)                                                  \
    extern "C" __global__ void __launch_bounds__(HN_WARPGROUP_THREADS *(GROUPS + 1), 1) \
        warpgroup_128x128_##a##b##_f32(const __grid_constant__ HnCudaWarpgroupArgs p)   \
    {                                                                                   \
        warpgroup_tiles<a_along, b_along>(p);                                           \
    }
DEFINE(k, k, true, true)
DEFINE(k, n, true, false)
DEFINE(m, k, false, true)
DEFINE(m, n, false, false)
