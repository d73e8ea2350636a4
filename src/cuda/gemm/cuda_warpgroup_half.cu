/*
 * Products of f16 and bf16 by warpgroups, summed in f32.
 */
#include "cuda/gemm/warpgroup_tiles.cuh"

#define DEPTH 64 /* of a stage: lines of 128 bytes */

__device__ inline uint32_t pair(hn_f16, float a, float b)
{
    const __half2 v = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&v);
}
__device__ inline uint32_t pair(hn_bf16, float a, float b)
{
    const __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&v);
}

/* Four times 16 bytes of results, of columns from `column` on: at(i) says where in stack `base`, below 0 where there
 * are none. They go through what follows as if it were nodes of their own, their operands all on their way at once. */
template <typename T, class At>
__device__ inline void end_wide(const HnCudaProductArgs &a, uint4 (&all)[4], int column, int64_t base, At at)
{
    float v[32];
#pragma unroll
    for (int k = 0; k < 32; k++)
        v[k] = hn_load(reinterpret_cast<const T *>(&all[k / 8]) + k % 8);
    hn_end_with(a.end, v, [&](const HnCudaEndDo &d, float(&x)[32]) {
        uint4 bits[4];
        if (d.of == HN_CUDA_END_ONE) {
            const float one = hn_load(hn_at<const T>(d.x));
#pragma unroll
            for (int k = 0; k < 32; k++)
                x[k] = one;
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (at(i) >= 0)
                bits[i] = *reinterpret_cast<const uint4 *>(hn_at<const T>(d.x) +
                                                           (d.of == HN_CUDA_END_ELEMENT ? base + at(i) : column));
            else
                bits[i] = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < 32; k++)
            x[k] = hn_load(reinterpret_cast<const T *>(&bits[k / 8]) + k % 8);
    });
#pragma unroll
    for (int i = 0; i < 4; i++)
        all[i] = make_uint4(pair(T(), v[i * 8], v[i * 8 + 1]), pair(T(), v[i * 8 + 2], v[i * 8 + 3]),
                            pair(T(), v[i * 8 + 4], v[i * 8 + 5]), pair(T(), v[i * 8 + 6], v[i * 8 + 7]));
}

/* The sums of a warp, 16 rows, leave through 2048 bytes of its own: 64 columns of halves at a time. An addend is one
 * for each column. */
template <typename T, int COLUMNS, bool END>
__device__ inline void store_wide(const HnCudaProductArgs &a, const HnTileJob &job, int row, const float *d,
                                  uint8_t *out)
{
    const int lane = threadIdx.x % HN_WARP, g = hn_mma_row(), t = lane % 4;
    T *const y = hn_at<T>(a.y) + (int64_t)job.stack * a.m * a.n;
#pragma unroll
    for (int part = 0; part < COLUMNS / 64; part++) {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int column = job.column + part * 64 + i * 8 + t * 2;
            float c[2] = { 0, 0 };
            if (a.c != 0 && column < a.n) {
                c[0] = a.beta * hn_load(hn_at<const T>(a.c) + column);
                c[1] = a.beta * hn_load(hn_at<const T>(a.c) + column + 1);
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float *e = d + part * 32 + i * 4 + h * 2;
                *reinterpret_cast<uint32_t *>(out + (h * 8 + g) * HN_LINE + (i ^ g) * 16 + t * 4) =
                    pair(T(), a.alpha * e[0] + c[0], a.alpha * e[1] + c[1]);
            }
        }
        __syncwarp();
        const int c = lane % 8, column = job.column + part * 64 + c * 8;
        const auto at = [&](int i) {
            const int r = row + i * 4 + lane / 8;
            return r < a.m && column < a.n ? (int64_t)r * a.y_row + column : -1;
        };
        uint4 v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = i * 4 + lane / 8;
            v[i] = *reinterpret_cast<const uint4 *>(out + r * HN_LINE + (c ^ r % 8) * 16);
        }
        if (END)
            end_wide<T>(a, v, column, (int64_t)job.stack * a.m * a.n, at);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (at(i) >= 0)
                *reinterpret_cast<uint4 *>(y + at(i)) = v[i];
    }
}

/* The same for all other results: 32 columns of sums at a time. */
template <typename T, int COLUMNS>
__device__ inline void store_any(const HnCudaProductArgs &a, const HnTileJob &job, int row, const float *d,
                                 uint8_t *out)
{
    const int lane = threadIdx.x % HN_WARP, g = hn_mma_row(), t = lane % 4;
    float *const sums = reinterpret_cast<float *>(out);
#pragma unroll
    for (int part = 0; part < COLUMNS / 32; part++) {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int r = i % 4 / 2 * 8 + g, c = i / 4 * 8 + t * 2 + i % 2;
            sums[r * 32 + (c ^ g * 4)] = d[part * 16 + i];
        }
        __syncwarp();
        const int64_t column = job.column + part * 32 + lane;
#pragma unroll 1
        for (int r = 0; r < 16; r++)
            if (row + r < a.m && column < a.n)
                product_finish<T>(a, job.stack, row + r, column, sums[r * 32 + (lane ^ r % 8 * 4)]);
    }
}

/* END: something follows. Where nothing does, its code would be in the way of a short kernel's. */
template <typename T, bool END, bool A_ALONG_K, bool B_ALONG_K, int ROWS, int COLUMNS, int STAGES>
__device__ void warpgroup_tiles(const HnCudaWarpgroupArgs &all)
{
    using A = HnLines<2, ROWS, A_ALONG_K>;
    using B = HnLines<2, COLUMNS, B_ALONG_K>;
    constexpr int GROUPS = ROWS / HN_WARPGROUP_ROWS, STAGE = HN_WARPGROUP_STAGE(ROWS, COLUMNS);
    extern __shared__ uint8_t shared[];
    const HnCudaProductArgs &a = all.product;
    const uint32_t base = (hn_shared(shared) + HN_PATTERN - 1) & ~(HN_PATTERN - 1), out = base + STAGES * STAGE;
    const uint32_t full = out + GROUPS * HN_WARPGROUP_OUT, empty = full + 8 * STAGES;
    const int group = threadIdx.x / HN_WARPGROUP_THREADS, jobs = HnTileJob::count(a, ROWS, COLUMNS);
    if (threadIdx.x == 0) {
        hn_map_soon(&all.a);
        hn_map_soon(&all.b);
        for (int i = 0; i < STAGES; i++) {
            hn_gate_init(full + 8 * i, 1);
            hn_gate_init(empty + 8 * i, GROUPS * 4);
        }
        hn_gates_ready();
    }
    __syncthreads();
    HnRing<STAGES> ring;
    if (group == 0) {
        hn_registers_less<40>();
        for (int j = blockIdx.x; j < jobs && threadIdx.x == 0; j += gridDim.x) {
            const HnTileJob job(a, j, ROWS, COLUMNS);
            for (int k = job.k; k < job.k_end; k += DEPTH, ring.next()) {
                const uint32_t to = base + ring.at * STAGE, gate = full + 8 * ring.at;
                hn_gate_wait(empty + 8 * ring.at, ring.turn ^ 1);
                hn_gate_expect(gate, STAGE);
                A::copy(to, &all.a, gate, job.row, k, all.a_stacked ? job.stack : 0);
                B::copy(to + A::BYTES, &all.b, gate, job.column, k, all.b_stacked ? job.stack : 0);
            }
        }
    } else {
        hn_registers_more<GROUPS == 1 ? 240 : 232>();
        const int mine = (group - 1) * HN_WARPGROUP_ROWS, warp = threadIdx.x / HN_WARP - 4,
                  lane = threadIdx.x % HN_WARP;
        for (int j = blockIdx.x; j < jobs; j += gridDim.x) {
            const HnTileJob job(a, j, ROWS, COLUMNS);
            float d[COLUMNS / 2];
            uint32_t before = 0; /* the stage whose products may still go on */
            for (int k = job.k; k < job.k_end; k += DEPTH, ring.next()) {
                const uint32_t x = base + ring.at * STAGE + mine * HN_LINE, w = base + ring.at * STAGE + A::BYTES;
                hn_gate_wait(full + 8 * ring.at, ring.turn);
                hn_products_begin();
#pragma unroll
                for (int i = 0; i < DEPTH / 16; i++)
                    HnWarpgroup<T, COLUMNS>::template add<!A_ALONG_K, !B_ALONG_K>(
                        d, hn_operand(x + i * (A_ALONG_K ? 32 : 16 * HN_LINE), 64 * HN_LINE),
                        hn_operand(w + i * (B_ALONG_K ? 32 : 16 * HN_LINE), 64 * HN_LINE), before | i);
                hn_products_close();
                hn_products_wait<1>();
                if (before != 0 && lane == 0)
                    hn_gate_arrive(before);
                before = empty + 8 * ring.at;
            }
            hn_products_wait<0>();
            hn_sums_ready<COLUMNS / 2>(d);
            if (lane == 0)
                hn_gate_arrive(before);
            if (a.parts != 0 && !hn_group_sum<GROUPS, COLUMNS / 2>(a, j, jobs, group, d))
                continue;
            uint8_t *const own = shared + (out - hn_shared(shared)) + warp * (HN_WARPGROUP_OUT / 4);
            if (all.y_wide)
                store_wide<T, COLUMNS, END>(a, job, job.row + mine + warp % 4 * 16, d, own);
            else
                store_any<T, COLUMNS>(a, job, job.row + mine + warp % 4 * 16, d, own);
        }
    }
}

#define DEFINE_FORM(suffix, type, form, end, a_along, b_along, rows, columns)                                    \
    extern "C" __global__ void __launch_bounds__(HN_WARPGROUP_THREADS *(rows / HN_WARPGROUP_ROWS + 1), 1)        \
        warpgroup_##rows##x##columns##_##form##_##suffix(const __grid_constant__ HnCudaWarpgroupArgs p)          \
    {                                                                                                            \
        warpgroup_tiles<type, end, a_along, b_along, rows, columns, HN_WARPGROUP_HALF_STAGES(rows, columns)>(p); \
    }
#define DEFINE_FORMS(suffix, type, a, b, a_along, b_along, rows, columns)   \
    DEFINE_FORM(suffix, type, a##b, false, a_along, b_along, rows, columns) \
    DEFINE_FORM(suffix, type, a##b##_end, true, a_along, b_along, rows, columns)
#define DEFINE_TILE(suffix, type, rows, columns)                 \
    DEFINE_FORMS(suffix, type, k, k, true, true, rows, columns)  \
    DEFINE_FORMS(suffix, type, k, n, true, false, rows, columns) \
    DEFINE_FORMS(suffix, type, m, k, false, true, rows, columns) \
    DEFINE_FORMS(suffix, type, m, n, false, false, rows, columns)
#define DEFINE(suffix, type)            \
    DEFINE_TILE(suffix, type, 128, 256) \
    DEFINE_TILE(suffix, type, 128, 128) \
    DEFINE_TILE(suffix, type, 64, 128)  \
    DEFINE_TILE(suffix, type, 64, 64)
DEFINE(f16, hn_f16)
DEFINE(bf16, hn_bf16)
