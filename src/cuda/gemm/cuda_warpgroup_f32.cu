/*
 * Products of f32 by warpgroups, in the two numbers of TF32 that cuda_mma.cuh makes of each. A consumer splits its rows
 * of a in registers. b is split into two, lines along k, in shared memory by the copying warpgroup, or in a kernel of
 * its own before. One set of sums serves twice each HN_TF32_TERMS terms: for hi hi, then for the small products; both
 * go into sums of plain f32.
 */
#include "cuda/gemm/tf32.cuh"
#include "cuda/gemm/warpgroup_tiles.cuh"

#define DEPTH 32 /* of a stage: lines of 128 bytes */

/* A block's tile. */
template <int R, int C> struct Tile {
    static constexpr int ROWS = R, COLUMNS = C, GROUPS = R / HN_WARPGROUP_ROWS,
                         TOGETHER = HN_WARPGROUP_F32_TOGETHER(R, C);
    static constexpr int STAGES = HN_WARPGROUP_F32_STAGES(R, C), STAGE = HN_WARPGROUP_STAGE(R, 2 * C);
    static constexpr int B_BYTES = C * HN_LINE, THREADS = HN_WARPGROUP_THREADS * (GROUPS + 1);
};

/* Where element k of that row lies: lines along k, or across it in parts of 32 rows. */
template <bool ALONG_K> __device__ inline int place(int row, int k)
{
    return ALONG_K ? row * HN_LINE + ((k / 4 ^ row % 8) * 16) + k % 4 * 4
                   : row / 32 * DEPTH * HN_LINE + k * HN_LINE + ((row % 32 / 4 ^ k % 8) * 16) + row % 4 * 4;
}

/* A tile of b as it came becomes two. A step of a warp takes 8 k of 8 columns, so that neither its reads nor its
 * writes meet in a bank. Some are read before the first one is written: the compiler would not turn that round. */
template <typename F, bool ALONG_K> __device__ inline void split_tile(const uint8_t *from, uint8_t *hi)
{
    const int lane = threadIdx.x % HN_WARP, warp = threadIdx.x / HN_WARP;
    if constexpr (ALONG_K) {
        constexpr int EACH = 4, STEP = HN_WARPGROUP_THREADS * 16;
#pragma unroll 1
        for (int v = threadIdx.x * 16; v < F::B_BYTES; v += EACH * STEP) {
            float4 x[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                x[i] = *reinterpret_cast<const float4 *>(from + v + i * STEP);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                uint4 h, l;
                hn_tf32_split(x[i].x, h.x, l.x);
                hn_tf32_split(x[i].y, h.y, l.y);
                hn_tf32_split(x[i].z, h.z, l.z);
                hn_tf32_split(x[i].w, h.w, l.w);
                *reinterpret_cast<uint4 *>(hi + v + i * STEP) = h;
                *reinterpret_cast<uint4 *>(hi + F::B_BYTES + v + i * STEP) = l;
            }
        }
    } else {
        const int near = lane % 4 + lane / 16 * 4, turned = lane / 4 % 4;
#pragma unroll 1
        for (int part = 0; part < F::COLUMNS / 32; part++) {
            float x[8];
            const auto column = [&](int i) { return part * 32 + warp * 8 + turned + (lane / 16 ^ i % 2) * 4; };
#pragma unroll
            for (int i = 0; i < 8; i++)
                x[i] = *reinterpret_cast<const float *>(from + place<false>(column(i), i / 2 * 8 + near));
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int to = place<true>(column(i), i / 2 * 8 + near);
                uint32_t h, l;
                hn_tf32_split(x[i], h, l);
                *reinterpret_cast<uint32_t *>(hi + to) = h;
                *reinterpret_cast<uint32_t *>(hi + F::B_BYTES + to) = l;
            }
        }
    }
}

/* The copying warpgroup. raw: two tiles of b on their way, with barriers behind. */
template <typename F, bool A_ALONG_K, bool B_ALONG_K>
__device__ inline void feed(const HnCudaWarpgroupArgs &all, int jobs, uint8_t *stages, uint32_t base, uint32_t raw,
                            uint32_t full, uint32_t empty, uint32_t raw_full)
{
    using A = HnLines<4, F::ROWS, A_ALONG_K>;
    using B = HnLines<4, F::COLUMNS, B_ALONG_K>;
    const HnCudaProductArgs &a = all.product;
    HnRing<F::STAGES> ring;
    HnRing<2> coming, come; /* tiles of b that are asked for, and taken */
    const auto ask = [&](const HnTileJob &job, int k) {
        const uint32_t gate = raw_full + 8 * coming.at;
        if (threadIdx.x == 0) {
            hn_gate_expect(gate, F::B_BYTES);
            B::copy(raw + coming.at * F::B_BYTES, &all.b, gate, job.column, k, all.b_stacked ? job.stack : 0);
        }
        coming.next();
    };
    for (int j = blockIdx.x; j < jobs; j += gridDim.x) {
        const HnTileJob job(a, j, F::ROWS, F::COLUMNS);
        if (j == (int)blockIdx.x)
            ask(job, job.k);
        for (int k = job.k; k < job.k_end; k += DEPTH, ring.next(), come.next()) {
            const uint32_t to = base + ring.at * F::STAGE, gate = full + 8 * ring.at;
            if (k + DEPTH < job.k_end) {
                ask(job, k + DEPTH);
            } else if (j + (int)gridDim.x < jobs) {
                const HnTileJob next(a, j + gridDim.x, F::ROWS, F::COLUMNS);
                ask(next, next.k);
            }
            hn_gate_wait(empty + 8 * ring.at, ring.turn ^ 1);
            if (threadIdx.x == 0) {
                hn_gate_expect(gate, A::BYTES);
                A::copy(to, &all.a, gate, job.row, k, all.a_stacked ? job.stack : 0);
            }
            hn_gate_wait(raw_full + 8 * come.at, come.turn);
            split_tile<F, B_ALONG_K>(stages + F::STAGES * F::STAGE + come.at * F::B_BYTES,
                                     stages + ring.at * F::STAGE + A::BYTES);
            hn_written();
            hn_gate_arrive(gate);
            __syncwarp();
            asm volatile("bar.sync 4, %0;" ::"n"(HN_WARPGROUP_THREADS) : "memory"); /* b as it came is read */
        }
    }
}

/* The same in one thread where b was split before: stack s of its map is 2 s and the next one. */
template <typename F, bool A_ALONG_K>
__device__ inline void feed_split(const HnCudaWarpgroupArgs &all, int jobs, uint32_t base, uint32_t full,
                                  uint32_t empty)
{
    using A = HnLines<4, F::ROWS, A_ALONG_K>;
    const HnCudaProductArgs &a = all.product;
    HnRing<F::STAGES> ring;
    for (int j = blockIdx.x; j < jobs; j += gridDim.x) {
        const HnTileJob job(a, j, F::ROWS, F::COLUMNS);
        const int stack = all.b_stacked ? job.stack : 0;
        for (int k = job.k; k < job.k_end; k += DEPTH, ring.next()) {
            const uint32_t to = base + ring.at * F::STAGE, gate = full + 8 * ring.at;
            hn_gate_wait(empty + 8 * ring.at, ring.turn ^ 1);
            hn_gate_expect(gate, F::STAGE);
            A::copy(to, &all.a, gate, job.row, k, all.a_stacked ? job.stack : 0);
            hn_copy_tile(to + A::BYTES, &all.b, gate, k, job.column, 2 * stack);
            hn_copy_tile(to + A::BYTES + F::B_BYTES, &all.b, gate, k, job.column, 2 * stack + 1);
        }
    }
}

/* What a stage has of a for this lane, as the first number of each, and as the second one. */
template <bool A_ALONG_K> __device__ inline float a_at(const uint8_t *x, int row, int i, int r)
{
    return *reinterpret_cast<const float *>(x + place<A_ALONG_K>(row + r % 2 * 8, i * 8 + threadIdx.x % 4 + r / 2 * 4));
}
template <bool A_ALONG_K> __device__ inline void take_hi(uint32_t (*hi)[4], const uint8_t *x, int row)
{
#pragma unroll
    for (int i = 0; i < DEPTH / 8; i++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            hi[i][r] = hn_tf32(a_at<A_ALONG_K>(x, row, i, r));
}
template <bool A_ALONG_K>
__device__ inline void take_lo(uint32_t (*lo)[4], const uint32_t (*hi)[4], const uint8_t *x, int row)
{
#pragma unroll
    for (int i = 0; i < DEPTH / 8; i++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            lo[i][r] = hn_tf32((a_at<A_ALONG_K>(x, row, i, r) - __uint_as_float(hi[i][r])) * HN_TF32_LO);
}
/* The products of a stage with one of the parts of b. */
template <int COLUMNS> __device__ inline void multiply(float *d, const uint32_t (*a)[4], uint32_t b, int go_on)
{
#pragma unroll
    for (int i = 0; i < DEPTH / 8; i++)
        HnWarpgroup<float, COLUMNS>::add(d, a[i], hn_operand(b + i * 32, 0), go_on | i);
}

/* The sums of HN_TF32_TERMS terms, two stages or, at the end, one, are added to sum. The stages are left for others as
 * soon as they are read. */
template <typename F, bool A_ALONG_K, bool TWO>
__device__ inline void add_terms(float *sum, HnRing<F::STAGES> &ring, const uint8_t *stages, uint32_t base,
                                 uint32_t full, uint32_t empty, int row)
{
    constexpr int COLUMNS = F::COLUMNS;
    float d[COLUMNS / 2];
    uint32_t hi[2][DEPTH / 8][4], lo[2][DEPTH / 8][4];
    HnRing<F::STAGES> next = ring;
    next.next();
    const uint8_t *const x[2] = { stages + ring.at * F::STAGE, stages + next.at * F::STAGE };
    const uint32_t b[2] = { base + ring.at * F::STAGE + F::ROWS * HN_LINE,
                            base + next.at * F::STAGE + F::ROWS * HN_LINE };
    const int lane = threadIdx.x % HN_WARP;
#pragma unroll
    for (int s = 0; s < 1 + TWO; s++) {
        hn_gate_wait(full + 8 * (s ? next.at : ring.at), s ? next.turn : ring.turn);
        take_hi<A_ALONG_K>(hi[s], x[s], row);
        hn_products_begin();
        multiply<COLUMNS>(d, hi[s], b[s], s);
        hn_products_close();
    }
    hn_products_wait<0>();
    hn_sums_ready<COLUMNS / 2>(d);
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
        sum[i] += d[i];
    hn_products_begin();
#pragma unroll
    for (int s = 0; s < 1 + TWO; s++)
        multiply<COLUMNS>(d, hi[s], b[s] + F::B_BYTES, s);
    hn_products_close();
    take_lo<A_ALONG_K>(lo[0], hi[0], x[0], row);
    hn_products_begin();
    multiply<COLUMNS>(d, lo[0], b[0], 1);
    hn_products_close();
    if (TWO) {
        hn_products_wait<1>();
        take_lo<A_ALONG_K>(lo[1], hi[1], x[1], row);
        hn_products_begin();
        multiply<COLUMNS>(d, lo[1], b[1], 1);
        hn_products_close();
        hn_products_wait<1>();
        if (lane == 0)
            hn_gate_arrive(empty + 8 * ring.at);
        ring.next();
    }
    hn_products_wait<0>();
    hn_sums_ready<COLUMNS / 2>(d);
    if (lane == 0)
        hn_gate_arrive(empty + 8 * ring.at);
    ring.next();
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
        sum[i] = fmaf(d[i], 1 / HN_TF32_LO, sum[i]);
}

/* Results of a warp, 16 rows, eight at a time: those of two columns and rows of two times eight columns. What became
 * infinite or NaN is computed again by plain operations. */
template <int COLUMNS>
__device__ inline void store(const HnCudaWarpgroupArgs &all, const HnTileJob &job, int64_t first, float *sum)
{
    const HnCudaProductArgs &a = all.product;
#pragma unroll 1
    for (int part = 0; part < COLUMNS / 16; part++) {
        const auto row = [&](int k) { return first + k % 4 / 2 * 8; };
        const auto column = [&](int k) {
            return (int64_t)job.column + part * 16 + k / 4 * 8 + hn_mma_column() + k % 2;
        };
        const auto there = [&](int k) { return row(k) < a.m && column(k) < a.n; };
        float v[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = sum[k];
#pragma unroll
        for (int i = 0; i < COLUMNS / 2 - 8; i++)
            sum[i] = sum[i + 8];
        unsigned wrong = 0;
#pragma unroll
        for (int k = 0; k < 8; k++)
            wrong |= there(k) && !isfinite(v[k]) ? 1u << k : 0;
        for (; wrong != 0; wrong &= wrong - 1) {
            const int which = __ffs(wrong) - 1;
            const float whole = product_plain_sum_here<float, HnDense<float>>(a, job.stack, row(which), column(which));
#pragma unroll
            for (int k = 0; k < 8; k++)
                v[k] = k == which ? whole : v[k];
        }
        product_finish_all<float, 8>(a, job.stack, v, row, column, there);
    }
}

/* The compiler must not see that it is the same number. */
__device__ __forceinline__ int hn_again(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

enum Right { ALONG_K, ACROSS_K, SPLIT };

template <typename F, bool A_ALONG_K, Right B> __device__ void warpgroup_tiles(const HnCudaWarpgroupArgs &all)
{
    extern __shared__ uint8_t shared[];
    constexpr int STAGES = F::STAGES, GROUPS = F::GROUPS;
    constexpr int LEAST = B == SPLIT ? 40 : 72, MOST = (F::TOGETHER == 1 ? GROUPS == 1  ? 240
                                                                           : B == SPLIT ? 232
                                                                                        : 216
                                                                         : 256 - LEAST);
    const HnCudaProductArgs &a = all.product;
    const uint32_t base = (hn_shared(shared) + HN_PATTERN - 1) & ~(HN_PATTERN - 1), raw = base + STAGES * F::STAGE;
    const uint32_t full = B == SPLIT ? raw : raw + 2 * F::B_BYTES, empty = full + 8 * STAGES,
                   raw_full = empty + 8 * STAGES;
    uint8_t *const stages = shared + (base - hn_shared(shared));
    const int group = threadIdx.x / HN_WARPGROUP_THREADS, jobs = HnTileJob::count(a, F::ROWS, F::COLUMNS);
    if (threadIdx.x == 0) {
        hn_map_soon(&all.a);
        hn_map_soon(&all.b);
        for (int i = 0; i < STAGES; i++) {
            hn_gate_init(full + 8 * i, B == SPLIT ? 1 : 1 + HN_WARPGROUP_THREADS);
            hn_gate_init(empty + 8 * i, GROUPS * 4);
        }
        hn_gate_init(raw_full, 1);
        hn_gate_init(raw_full + 8, 1);
        hn_gates_ready();
    }
    __syncthreads();
    if (group == 0) {
        hn_registers_less<LEAST>();
        if (B != SPLIT)
            feed<F, A_ALONG_K, B == ALONG_K>(all, jobs, stages, base, raw, full, empty, raw_full);
        else if (threadIdx.x == 0)
            feed_split<F, A_ALONG_K>(all, jobs, base, full, empty);
        return;
    }
    hn_registers_more<MOST>();
    const int row = (group - 1) * HN_WARPGROUP_ROWS + threadIdx.x / HN_WARP % 4 * 16 + hn_mma_row();
    HnRing<STAGES> ring;
    for (int j = blockIdx.x; j < jobs; j += gridDim.x) {
        float sum[F::COLUMNS / 2] = {};
        const HnTileJob terms(a, j, F::ROWS, F::COLUMNS);
        int left = terms.k_end - terms.k;
#pragma unroll 1
        for (; left > DEPTH; left -= HN_TF32_TERMS)
            add_terms<F, A_ALONG_K, true>(sum, ring, stages, base, full, empty, row);
        if (left > 0)
            add_terms<F, A_ALONG_K, false>(sum, ring, stages, base, full, empty, row);
        const HnTileJob job(a, hn_again(j), F::ROWS, F::COLUMNS); /* registers are too few to keep it */
        if (a.parts == 0 || hn_group_sum<GROUPS, F::COLUMNS / 2>(a, j, jobs, group, sum))
            store<F::COLUMNS>(all, job, job.row + row, sum);
    }
}

#define DEFINE_FORM(a, b, a_along, right, rows, columns)                                                      \
    extern "C" __global__ void __launch_bounds__(Tile<rows, columns>::THREADS, Tile<rows, columns>::TOGETHER) \
        warpgroup_##rows##x##columns##_##a##b##_f32(const __grid_constant__ HnCudaWarpgroupArgs p)            \
    {                                                                                                         \
        warpgroup_tiles<Tile<rows, columns>, a_along, right>(p);                                              \
    }
#define DEFINE(rows, columns)                         \
    DEFINE_FORM(k, k, true, ALONG_K, rows, columns)   \
    DEFINE_FORM(k, n, true, ACROSS_K, rows, columns)  \
    DEFINE_FORM(k, s, true, SPLIT, rows, columns)     \
    DEFINE_FORM(m, k, false, ALONG_K, rows, columns)  \
    DEFINE_FORM(m, n, false, ACROSS_K, rows, columns) \
    DEFINE_FORM(m, s, false, SPLIT, rows, columns)
DEFINE(128, 128)
DEFINE(64, 64)

/* --- b, split before -----------------------------------------------------------------------------------------------
 */

#define TILE 32

/* Tiles of 32 x 32, lines along k at last. */
extern "C" __global__ void __launch_bounds__(TILE * 8) warpgroup_split_f32(const __grid_constant__ HnCudaSplitArgs a)
{
    __shared__ float tile[TILE][TILE + 1]; /* [column][k] */
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const int64_t columns = (a.n + TILE - 1) / TILE, terms = (a.k + TILE - 1) / TILE;
    for (int64_t at = blockIdx.x; at < columns * terms * a.stacks; at += gridDim.x) {
        const int64_t k = at % terms * TILE, column = at / terms % columns * TILE, stack = at / terms / columns;
        const float *from = hn_at<const float>(a.from) + stack * a.step;
        float *to = hn_at<float>(a.to) + stack * 2 * a.n * a.line;
#pragma unroll
        for (int i = 0; i < TILE / 8; i++) {
            const int c = a.row == 1 ? y + i * 8 : x, t = a.row == 1 ? x : y + i * 8;
            if (column + c < a.n && k + t < a.k)
                tile[c][t] = from[(column + c) * a.col + (k + t) * a.row];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE / 8; i++) {
            const int64_t c = column + y + i * 8;
            if (c < a.n && k + x < a.k) {
                uint32_t hi, lo;
                hn_tf32_split(tile[y + i * 8][x], hi, lo);
                to[c * a.line + k + x] = __uint_as_float(hi);
                to[(a.n + c) * a.line + k + x] = __uint_as_float(lo);
            }
        }
        __syncthreads();
    }
}
