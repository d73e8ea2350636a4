/*
 * Attention of halves by warpgroups (warpgroup.cuh): a block for GROUPS * 64 queries of a head, a warpgroup for 64 of
 * them. Tiles of keys and values come in turns, all threads copy them; queries stay in shared memory, scores in
 * registers. Lines of 128 bytes hold 64 elements of a vector: SIZE / 64 parts of them.
 */
#pragma once

#include "cuda/gemm/attention.cuh"
#include "cuda/gemm/halves.cuh"
#include "cuda/gemm/warpgroup.cuh"

/* A from registers, as in cuda_mma.cuh; lines of b lie across k. */
template <typename T, int N> struct HnRegisterProduct;
#define HN_REGISTER_PRODUCT(type, name, n, numbers, a0, a1, a2, a3, b, ...)                                       \
    template <> struct HnRegisterProduct<type, n> {                                                               \
        __device__ static inline void add(float *d, const uint32_t *x, uint64_t w)                                \
        {                                                                                                         \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name " {" numbers "}, {%" #a0 \
                         ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", 1, 1, 1, 1;"                                  \
                         : __VA_ARGS__                                                                            \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(w));                                   \
        }                                                                                                         \
    };
#define HN_REGISTER_PRODUCTS(type, name)                                                 \
    HN_REGISTER_PRODUCT(type, name, 64, HN_SUMS_0, 32, 33, 34, 35, 36, HN_KEEP_32(d, 0)) \
    HN_REGISTER_PRODUCT(type, name, 128, HN_SUMS_0 HN_SUMS_1, 64, 65, 66, 67, 68, HN_KEEP_32(d, 0), HN_KEEP_32(d, 32))
HN_REGISTER_PRODUCTS(hn_f16, "f16")
HN_REGISTER_PRODUCTS(hn_bf16, "bf16")

/* SIZE: elements of vectors, 64 or 128; KEYS of a tile, 64 or 128; STAGES of tiles. */
template <typename T, int SIZE, int GROUPS, int KEYS, int STAGES> struct WarpgroupAttention {
    static constexpr int THREADS = GROUPS * 128, QUERIES = GROUPS * 64, PARTS = SIZE / 64;
    static constexpr int TILE = KEYS * SIZE * 2, BYTES = HN_CUDA_ATTENTION_WARPGROUP_BYTES(SIZE, GROUPS, KEYS, STAGES);

    static constexpr int ACROSS = SIZE / 8; /* threads that copy a vector */
    static_assert(THREADS / ACROSS % 8 == 0, "a thread's place in patterns of lines is the same in all of its lines");

    __device__ static void copy(uint32_t to, const T *from, int bytes) /* as hn_copy_16() */
    {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }
    /* COUNT lines of SIZE elements, of which n and `size` elements are there; what is not becomes 0. */
    template <int COUNT, typename At>
    __device__ static void lines(uint32_t to, uint8_t *generic, int n, int size, bool wide, At at)
    {
        const int c = threadIdx.x % ACROSS, left = max(0, min(size - c * 8, 8));
#pragma unroll
        for (int first = 0; first < COUNT; first += THREADS / ACROSS) {
            const int line = first + threadIdx.x / ACROSS, there = line < n ? left : 0;
            if (COUNT % (THREADS / ACROSS) != 0 && line >= COUNT)
                break;
            const T *from = there > 0 ? at(line) + c * 8 : at(0);
            const int place = c / 8 * COUNT * HN_LINE + line * HN_LINE + (c % 8 ^ line % 8) * 16;
            if (wide)
                copy(to + place, from, there * 2);
            else
                for (int j = 0; j < 8; j++)
                    reinterpret_cast<T *>(generic + place)[j] = j < there ? from[j] : T(0.0f);
        }
    }

    /* Scores into powers of 2 of `factor` times them; most: the largest exponent so far, sum: this lane's part of what
     * the powers make; y is scaled down where a larger one came. */
    __device__ static void powers(float *s, float factor, float *most, float *sum, float *y)
    {
        float fade[2];
        bool changed = false;
#pragma unroll
        for (int row = 0; row < 2; row++) {
            float next = s[row * 2];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                next = fmaxf(next, fmaxf(s[n * 4 + row * 2], s[n * 4 + row * 2 + 1]));
            next = fmaxf(next, __shfl_xor_sync(HN_ALL_LANES, next, 1));
            next = fmaxf(next, __shfl_xor_sync(HN_ALL_LANES, next, 2));
            next = fmaxf(most[row], next * factor);
            const float base = attention_base(next);
            float all = 0;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int r = row * 2; r < row * 2 + 2; r++)
                    all += s[n * 4 + r] = attention_exp2(fmaf(s[n * 4 + r], factor, -base));
            changed = changed || next != most[row];
            fade[row] = attention_exp2(most[row] - base);
            sum[row] = fmaf(sum[row], fade[row], all);
            most[row] = next;
        }
        if (__any_sync(HN_ALL_LANES, changed))
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++)
                y[i] *= fade[i / 2 % 2];
    }

    __device__ static void run(const HnCudaAttentionArgs &a)
    {
        extern __shared__ uint8_t shared[];
        const uint32_t base = (hn_shared(shared) + HN_PATTERN - 1) & ~(HN_PATTERN - 1),
                       tiles = base + QUERIES * SIZE * 2;
        uint8_t *const generic = shared + (base - hn_shared(shared));
        const int warp = threadIdx.x / HN_WARP, group = warp / 4;
        const int size = (int)a.size, value_size = (int)a.value_size;
        const bool wide = a.wide != 0, plain = a.mask_kind == HN_CUDA_MASK_NONE && !(a.softcap > 0) && a.scale > 0;
        const int blocks = (int)((a.queries + QUERIES - 1) / QUERIES);
        /* heads of a group share keys, so they follow each other; queries that see the most keys come first */
        const int64_t job = blockIdx.x / blocks;
        const int64_t h = job % a.heads, b = job / a.heads, g = h / (a.heads / a.kv_heads);
        const int start = (blocks - 1 - (int)(blockIdx.x % blocks)) * QUERIES, first = start + warp * 16;
        const int rows = (int)min(a.queries - start, (int64_t)QUERIES);
        const int end = (int)attention_end(a, start + rows - 1), begin = (int)attention_begin(a, start);
        const int seen_begin = (int)attention_begin(a, min(first + 16, (int)a.queries) - 1);
        const int seen_end = plain && first < a.queries ? (int)attention_end(a, first) : -1;
        /* where this thread begins to copy whole tiles of whole vectors that lie in one place */
        const bool whole = wide && size == SIZE && value_size == SIZE && a.past == 0;
        const int line = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
        const T *const keys = attention_vector<T>(a.k, b, g, line) + column * 8;
        const T *const values = attention_vector<T>(a.v, b, g, line) + column * 8;
        const uint32_t place =
            base + QUERIES * SIZE * 2 + column / 8 * KEYS * HN_LINE + line * HN_LINE + (column % 8 ^ line % 8) * 16;
        const auto load = [&](int t, int stage) {
            if (whole && t + KEYS <= end) {
#pragma unroll
                for (int i = 0; i < KEYS; i += THREADS / ACROSS) {
                    const uint32_t to = place + stage * 2 * TILE + i * HN_LINE;
                    if (KEYS % (THREADS / ACROSS) != 0 && i + line >= KEYS)
                        break;
                    copy(to, keys + (int64_t)(t + i) * a.k.token, 16);
                    copy(to + TILE, values + (int64_t)(t + i) * a.v.token, 16);
                }
            } else if (t < end) {
                const int n = min(end - t, KEYS), to = QUERIES * SIZE * 2 + stage * 2 * TILE;
                lines<KEYS>(base + to, generic + to, n, size, wide,
                            [&](int i) { return attention_key<T>(a, b, g, t + i); });
                lines<KEYS>(base + to + TILE, generic + to + TILE, n, value_size, wide,
                            [&](int i) { return attention_value<T>(a, b, g, t + i); });
            }
            hn_copies_close();
        };
        float y[SIZE / 2], most[2] = { -INFINITY, -INFINITY }, sum[2] = {};
#pragma unroll
        for (int i = 0; i < SIZE / 2; i++)
            y[i] = 0;
        lines<QUERIES>(base, generic, rows, size, wide,
                       [&](int i) { return attention_vector<T>(a.q, b, h, start + i); });
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++)
            load(begin + i * KEYS, i);
        int stage = 0;
        for (int t = begin; t < end; t += KEYS) {
            hn_copies_wait<STAGES - 2>();
            hn_written();
            __syncthreads(); /* the tile is there, and nobody reads the one before it any more */
            load(t + (STAGES - 1) * KEYS, stage == 0 ? STAGES - 1 : stage - 1);
            const uint32_t k = tiles + stage * 2 * TILE;
            float s[KEYS / 2];
            hn_products_begin();
#pragma unroll
            for (int c = 0; c < SIZE / 16; c++)
                HnWarpgroup<T, KEYS>::template add<0, 0>(
                    s, hn_operand(base + c / 4 * QUERIES * HN_LINE + group * 64 * HN_LINE + c % 4 * 32, 64 * HN_LINE),
                    hn_operand(k + c / 4 * KEYS * HN_LINE + c % 4 * 32, 64 * HN_LINE), c);
            hn_products_close();
            hn_products_wait<0>();
            hn_sums_ready<KEYS / 2>(s);
            float factor = a.scale * HN_LOG2_E;
            if (t + KEYS > seen_end || t < seen_begin) {
                factor = HN_LOG2_E;
#pragma unroll
                for (int i = 0; i < KEYS / 2; i++) {
                    const int query = first + hn_mma_row() + i / 2 % 2 * 8,
                              at = t + i / 4 * 8 + hn_mma_column() + i % 2;
                    s[i] = query < a.queries && at < end ? attention_score<T>(a, b, h, query, at, s[i]) : -INFINITY;
                }
            }
            powers(s, factor, most, sum, y);
            uint32_t p[KEYS / 16][4];
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    p[n][r] = attention_pair(T(), s[n * 8 + r * 2], s[n * 8 + r * 2 + 1]);
            hn_products_begin();
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++)
                HnRegisterProduct<T, SIZE>::add(y, p[n], hn_operand(k + TILE + n * 16 * HN_LINE, KEYS * HN_LINE));
            hn_products_close();
            hn_products_wait<0>();
            hn_sums_ready<SIZE / 2>(y);
            stage = stage == STAGES - 1 ? 0 : stage + 1;
        }
        hn_copies_wait<0>();
        T *const to = hn_at<T>(a.y.data) + b * a.y.batch + h * a.y.head;
        const bool y_wide = a.y_wide != 0;
#pragma unroll
        for (int row = 0; row < 2; row++) {
            float all = sum[row];
            all += __shfl_xor_sync(HN_ALL_LANES, all, 1);
            all += __shfl_xor_sync(HN_ALL_LANES, all, 2);
            const int i = first + hn_mma_row() + row * 8;
            if (i >= a.queries)
                continue;
            const float top = isnan(all) ? all : most[row];
#pragma unroll
            for (int c = 0; c < SIZE / 8; c++) {
                const int at = c * 8 + hn_mma_column();
                const float v[2] = { attention_result(a, top, all, y[c * 4 + row * 2]),
                                     attention_result(a, top, all, y[c * 4 + row * 2 + 1]) };
                if (y_wide && at + 1 < value_size)
                    *reinterpret_cast<uint32_t *>(to + i * a.y.token + at) = attention_pair(T(), v[0], v[1]);
                else
                    for (int r = 0; r < 2; r++)
                        if (at + r < value_size)
                            hn_store(to + i * a.y.token + at + r, v[r]);
            }
        }
    }
};
