#include "cuda/core/device.cuh"
#include "cuda/int8/cuda_int8_product_args.h"

/*
 * A block makes a tile of ROWS x 64 sums, 64 bytes of k at a time, by matrix units. Unsigned bytes become signed ones
 * (128 less), and so do their zero points; these are taken into account behind the products:
 *
 *     sum (r - rz) * (c - cz) = sum r * c - rz * sum c - cz * sum r + k * rz * cz
 */
#define COLS 64
#define DEPTH 64          /* bytes of k in shared memory */
#define WORDS (DEPTH / 4) /* the same as words of 4 bytes */
#define PITCH (WORDS + 4) /* words from row to row: no two of 8 rows in one bank */
#define THREADS 256
#define ONES 0x01010101u

struct Piece { /* 16 bytes that a thread brings at a time */
    uint32_t w[4];
};

__device__ inline int dot(uint32_t a, uint32_t b, int sum)
{
    return __dp4a((int)a, (int)b, sum);
}

__device__ inline uint32_t flip_word(int32_t flip)
{
    return (uint32_t)flip * ONES;
}

/* Bytes [at, at + 16) of a row of k bytes, flipped; 0 behind its end. */
__device__ inline Piece row_piece(const uint8_t *row, int64_t at, int64_t k, int32_t flip)
{
    Piece p = { { 0, 0, 0, 0 } };
    const uint32_t f = flip_word(flip);
    if (at + 16 <= k && (reinterpret_cast<uint64_t>(row + at) & 15) == 0) {
        const uint4 v = *reinterpret_cast<const uint4 *>(row + at);
        p.w[0] = v.x ^ f;
        p.w[1] = v.y ^ f;
        p.w[2] = v.z ^ f;
        p.w[3] = v.w ^ f;
        return p;
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        if (at + i < k)
            p.w[i / 4] |= (uint32_t)(uint8_t)(row[at + i] ^ flip) << (i % 4 * 8);
    return p;
}

__device__ inline int piece_sum(const Piece &p)
{
    return dot(p.w[0], ONES, dot(p.w[1], ONES, dot(p.w[2], ONES, dot(p.w[3], ONES, 0))));
}

/* --- columns: how a thread brings 16 bytes of them, and for which it keeps sums ---------------------------------- */

struct Tap { /* of a window: from the input position that its first tap reads */
    int64_t offset;
    int32_t at[HN_CUDA_INT8_AXES];
    int32_t is; /* 0: behind the last one */
};

/* [n][k]: thread t has column t / 4, a quarter of its bytes. */
struct Turned {
    static constexpr int SUMS = 1, TAPS = 1;
    const uint8_t *row;
    __device__ Turned(const HnCudaInt8Args &a, const uint8_t *cols, int64_t, int64_t first)
    {
        const int64_t c = first + threadIdx.x / 4;
        row = c < a.n ? cols + c * a.k : nullptr;
    }
    __device__ void taps(const HnCudaInt8Args &, int64_t, Tap *)
    {
    }
    __device__ Piece load(const HnCudaInt8Args &a, int64_t from, const Tap *, int *sums)
    {
        Piece p = { { 0, 0, 0, 0 } };
        if (row != nullptr)
            p = row_piece(row, from + threadIdx.x % 4 * 16, a.k, a.col_flip);
        sums[0] += piece_sum(p);
        return p;
    }
    __device__ void store(const Piece &p, uint32_t (*cols)[PITCH])
    {
        for (int i = 0; i < 4; i++)
            cols[threadIdx.x / 4][threadIdx.x % 4 * 4 + i] = p.w[i];
    }
    __device__ static int column(int)
    {
        return threadIdx.x / 4;
    }
};

/* [k][n]: thread t has 4 columns from t % 16 * 4 on, 4 bytes of each from t / 16 * 4 on. */
struct Straight {
    static constexpr int SUMS = 4, TAPS = 1;
    const uint8_t *cols;
    int64_t first;
    __device__ Straight(const HnCudaInt8Args &, const uint8_t *c, int64_t, int64_t from)
    {
        cols = c;
        first = from + threadIdx.x % 16 * 4;
    }
    __device__ void taps(const HnCudaInt8Args &, int64_t, Tap *)
    {
    }
    __device__ Piece load(const HnCudaInt8Args &a, int64_t from, const Tap *, int *sums)
    {
        uint32_t line[4];
        Piece p = { { 0, 0, 0, 0 } };
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t k = from + threadIdx.x / 16 * 4 + i;
            const uint8_t *at = cols + k * a.n + first;
            line[i] = 0;
            if (k < a.k && first + 4 <= a.n && (reinterpret_cast<uint64_t>(at) & 3) == 0) {
                line[i] = *reinterpret_cast<const uint32_t *>(at) ^ flip_word(a.col_flip);
            } else if (k < a.k) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    if (first + j < a.n)
                        line[i] |= (uint32_t)(uint8_t)(at[j] ^ a.col_flip) << (8 * j);
            }
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                p.w[j] |= (line[i] >> (8 * j) & 0xff) << (8 * i);
            sums[j] += dot(p.w[j], ONES, 0);
        }
        return p;
    }
    __device__ void store(const Piece &p, uint32_t (*to)[PITCH])
    {
        for (int j = 0; j < 4; j++)
            to[threadIdx.x % 16 * 4 + j][threadIdx.x / 16] = p.w[j];
    }
    __device__ static int column(int j)
    {
        return threadIdx.x % 16 * 4 + j;
    }
};

/* Input byte of a tap, or the zero point outside of the input. */
__device__ inline uint8_t seen(const HnCudaInt8Args &a, const uint8_t *x, int64_t base, const int32_t *origin,
                               const Tap &tap, int zero)
{
    bool inside = true;
#pragma unroll
    for (int i = 0; i < HN_CUDA_INT8_AXES; i++)
        inside = inside && (uint32_t)(origin[i] + tap.at[i]) < (uint32_t)a.in[i];
    return inside ? (uint8_t)(x[base + tap.offset] ^ a.col_flip) : (uint8_t)zero;
}

/* Tap number k of a window, channels first. */
__device__ inline Tap tap_of(const HnCudaInt8Args &a, int64_t k)
{
    Tap t = { 0, { 0, 0, 0 }, k < a.k };
    int64_t rest = k, plane = 0, step = 1;
#pragma unroll
    for (int i = HN_CUDA_INT8_AXES - 1; i >= 0; i--) {
        t.at[i] = (int32_t)(rest % a.kernel[i]) * a.dilation[i];
        rest /= a.kernel[i];
        plane += t.at[i] * step;
        step *= a.in[i];
    }
    t.offset = rest * a.x_plane + plane;
    return t;
}

/* Where the first tap of output position p of a sample's plane reads; may lie outside. */
__device__ inline int64_t origin_of(const HnCudaInt8Args &a, int64_t p, int32_t *origin)
{
    int64_t offset = 0, step = 1;
#pragma unroll
    for (int i = HN_CUDA_INT8_AXES - 1; i >= 0; i--) {
        origin[i] = (int32_t)(p % a.out[i]) * a.stride[i] - a.pad[i];
        p /= a.out[i];
        offset += origin[i] * step;
        step *= a.in[i];
    }
    return offset;
}

__device__ inline int zero_point(uint64_t address, int64_t i, int32_t flip)
{
    if (address == 0)
        return -flip;
    const uint8_t byte = hn_at<const uint8_t>(address)[i];
    return flip != 0 ? (int)byte - flip : (int)(int8_t)byte;
}

/* Windows: thread t has output position t % 64, a quarter of its taps. */
struct Windows {
    static constexpr int SUMS = 1, TAPS = DEPTH;
    const uint8_t *x;
    int64_t base;
    int32_t origin[HN_CUDA_INT8_AXES];
    int zero;
    bool is;
    __device__ Windows(const HnCudaInt8Args &a, const uint8_t *cols, int64_t unit, int64_t first)
    {
        const int64_t n = first + threadIdx.x % COLS;
        is = n < a.n;
        x = cols;
        base = (n / a.y_plane * a.units + unit) * a.in_channels * a.x_plane + origin_of(a, n % a.y_plane, origin);
        zero = zero_point(a.col_zero, 0, a.col_flip);
    }
    __device__ void taps(const HnCudaInt8Args &a, int64_t from, Tap *taps)
    {
        if (threadIdx.x < DEPTH)
            taps[threadIdx.x] = tap_of(a, from + threadIdx.x);
    }
    __device__ Piece load(const HnCudaInt8Args &a, int64_t, const Tap *taps, int *sums)
    {
        Piece p = { { 0, 0, 0, 0 } };
        const Tap *mine = taps + threadIdx.x / COLS * 16;
#pragma unroll
        for (int i = 0; i < 16; i++)
            if (is && mine[i].is)
                p.w[i / 4] |= (uint32_t)seen(a, x, base, origin, mine[i], zero) << (i % 4 * 8);
        sums[0] += piece_sum(p);
        return p;
    }
    __device__ void store(const Piece &p, uint32_t (*cols)[PITCH])
    {
        for (int i = 0; i < 4; i++)
            cols[threadIdx.x % COLS][threadIdx.x / COLS * 4 + i] = p.w[i];
    }
    __device__ static int column(int)
    {
        return threadIdx.x % COLS;
    }
};

/* --- what becomes of sums ----------------------------------------------------------------------------------------- */

__device__ inline float scale_at(uint64_t address, int32_t type, int64_t i)
{
    if (address == 0)
        return 1;
    if (type == HN_CUDA_SCALE_F32)
        return hn_at<const float>(address)[i];
    return type == HN_CUDA_SCALE_F16 ? hn_load(hn_at<const hn_f16>(address) + i)
                                     : hn_load(hn_at<const hn_bf16>(address) + i);
}

/* What all elements share. */
struct Result {
    float y_scale, lo, hi; /* of bytes: before the zero point is added */
    int zero;
    __device__ explicit Result(const HnCudaInt8Finish &f)
    {
        y_scale = scale_at(f.y_scale, f.y_scale_type, 0);
        zero = f.y_zero == 0 ? 0 : f.y_signed ? hn_at<const int8_t>(f.y_zero)[0] : hn_at<const uint8_t>(f.y_zero)[0];
        lo = f.lo;
        hi = f.hi;
        if (f.how == HN_CUDA_SUMS || f.how == HN_CUDA_SUMS_NUMBERS)
            return;
        const float lowest = (float)((f.y_signed ? -128 : 0) - zero), highest = lowest + 255;
        if (f.how == HN_CUDA_SUMS_QLINEAR) {
            lo = lowest;
            hi = highest;
            return;
        }
        const float from = rintf(f.lo / y_scale), to = rintf(f.hi / y_scale);
        lo = from > lowest ? (from < highest ? from : highest) : lowest;
        hi = to < highest ? (to > lowest ? to : lowest) : highest;
    }
};

/* Element i of y, whose weights are of output channel `channel`, and whose data of line `line`. */
__device__ inline void finish(const HnCudaInt8Finish &f, const Result &r, const uint8_t *table, int sum, int64_t i,
                              int64_t channel, int64_t line)
{
    if (f.bias != 0 && !f.bias_is_f32)
        sum = (int)((unsigned)sum + hn_at<const unsigned>(f.bias)[channel]);
    if (f.how == HN_CUDA_SUMS) {
        hn_at<int32_t>(f.y)[i] = sum;
        return;
    }
    const float scale = __fmul_rn(scale_at(f.x_scale, f.x_scale_type, f.x_scale_each ? line : 0),
                                  scale_at(f.w_scale, f.w_scale_type, f.w_scale_each ? channel : 0));
    const bool shifts = f.bias != 0 && f.bias_is_f32;
    if (f.how == HN_CUDA_SUMS_NUMBERS) {
        float v = __fmul_rn((float)sum, scale);
        if (shifts)
            v = __fadd_rn(v, hn_at<const float>(f.bias)[channel]);
        v = r.lo > v ? r.lo : v;
        hn_at<float>(f.y)[i] = r.hi < v ? r.hi : v;
        return;
    }
    float v = __fmul_rn((float)sum, __fdiv_rn(scale, r.y_scale));
    if (shifts)
        v = __fadd_rn(v, __fdiv_rn(hn_at<const float>(f.bias)[channel], r.y_scale));
    if (f.nan_is_zero && v != v)
        v = 0;
    v = v > r.lo ? v : r.lo; /* which NaN becomes */
    v = v < r.hi ? v : r.hi;
    const uint8_t byte = (uint8_t)((int)rintf(v) + r.zero);
    hn_at<uint8_t>(f.y)[i] = f.exchanges ? table[byte] : byte;
}

/* The table in shared memory, where lanes may read different places of it at once; before a barrier. */
__device__ inline void load_table(const HnCudaInt8Finish &f, uint8_t *table)
{
    for (int i = threadIdx.x; f.exchanges && i < 256; i += blockDim.x)
        table[i] = f.table[i];
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

__device__ inline void mma(int *c, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int ROWS> struct Tiles {
    uint32_t rows[ROWS][PITCH], cols[COLS][PITCH];
};
template <int ROWS> union Room {
    Tiles<ROWS> tiles;
    int sums[ROWS][COLS + 1];
};

/* A warp makes 16 rows, and all columns or a part of them: eight warps are ROWS / 16 x what is left. */
template <int ROWS, typename Columns, bool CONV> __device__ void product(const HnCudaInt8Args &a)
{
    constexpr int ACROSS = THREADS / HN_WARP / (ROWS / 16), EACH = COLS / 8 / ACROSS;
    __shared__ Room<ROWS> room;
    __shared__ int row_sum[ROWS], col_sum[COLS];
    __shared__ Tap taps[Columns::TAPS];
    __shared__ uint8_t table[256];
    const int64_t unit = blockIdx.x / (a.row_tiles * a.col_tiles), tile = blockIdx.x % (a.row_tiles * a.col_tiles);
    const int64_t first_row = tile % a.row_tiles * ROWS, first_col = tile / a.row_tiles * COLS;
    const uint8_t *rows = hn_at<const uint8_t>(a.rows), *cols = hn_at<const uint8_t>(a.cols);
    if (CONV) {
        rows += unit * a.m * a.k;
    } else {
        int64_t rest = unit;
        for (int i = a.stack_rank - 1; i >= 0; i--) {
            rows += rest % a.stack[i] * a.row_stride[i];
            cols += rest % a.stack[i] * a.col_stride[i];
            rest /= a.stack[i];
        }
    }
    const int t = threadIdx.x, lane = t % HN_WARP, warp = t / HN_WARP;
    const int row = warp % (ROWS / 16) * 16, col = warp / (ROWS / 16) * EACH * 8;
    const bool brings_row = t < ROWS * 4;
    const int64_t my_row = first_row + t / 4;
    Columns columns(a, cols, unit, first_col);
    int sums[EACH][4] = {}, of_row = 0, of_cols[Columns::SUMS] = {};
    if (t < ROWS)
        row_sum[t] = 0;
    if (t < COLS)
        col_sum[t] = 0;
    load_table(a.finish, table);
    for (int64_t from = 0; from < a.k; from += DEPTH) {
        if (Columns::TAPS > 1) {
            columns.taps(a, from, taps);
            __syncthreads();
        }
        Piece p = { { 0, 0, 0, 0 } };
        if (brings_row && my_row < a.m)
            p = row_piece(rows + my_row * a.k, from + t % 4 * 16, a.k, a.row_flip);
        of_row += piece_sum(p);
        const Piece q = columns.load(a, from, taps, of_cols);
        if (brings_row)
            for (int i = 0; i < 4; i++)
                room.tiles.rows[t / 4][t % 4 * 4 + i] = p.w[i];
        columns.store(q, room.tiles.cols);
        __syncthreads();
#pragma unroll
        for (int w = 0; w < WORDS; w += 8) {
            const int g = lane / 4, k = w + lane % 4;
            const uint32_t left[4] = { room.tiles.rows[row + g][k], room.tiles.rows[row + g + 8][k],
                                       room.tiles.rows[row + g][k + 4], room.tiles.rows[row + g + 8][k + 4] };
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const uint32_t right[2] = { room.tiles.cols[col + e * 8 + g][k],
                                            room.tiles.cols[col + e * 8 + g][k + 4] };
                mma(sums[e], left, right);
            }
        }
        __syncthreads();
    }
    if (a.k == 0)
        __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++)
        for (int i = 0; i < 4; i++)
            room.sums[row + lane / 4 + i / 2 * 8][col + e * 8 + lane % 4 * 2 + i % 2] = sums[e][i];
    if (brings_row)
        atomicAdd(&row_sum[t / 4], of_row);
    for (int i = 0; i < Columns::SUMS; i++)
        atomicAdd(&col_sum[Columns::column(i)], of_cols[i]);
    __syncthreads();
    const Result result(a.finish);
    for (int i = t; i < ROWS * COLS; i += THREADS) {
        const int r = i / COLS, c = i % COLS;
        const int64_t m = first_row + r, n = first_col + c;
        if (m >= a.m || n >= a.n)
            continue;
        const int64_t channel = CONV ? unit * a.m + m : n;
        const int rz = zero_point(a.row_zero, a.row_zero_each ? (CONV ? channel : m) : 0, a.row_flip);
        const int cz = zero_point(a.col_zero, a.col_zero_each ? n : 0, a.col_flip);
        const unsigned sum = (unsigned)room.sums[r][c] - (unsigned)rz * (unsigned)col_sum[c] -
                             (unsigned)cz * (unsigned)row_sum[r] + (unsigned)a.k * (unsigned)rz * (unsigned)cz;
        const int64_t at =
            CONV ? (n / a.y_plane * a.units * a.m + channel) * a.y_plane + n % a.y_plane : (unit * a.m + m) * a.n + n;
        finish(a.finish, result, table, (int)sum, at, channel, m);
    }
}

#define DEFINE(name, rows, columns, conv)                                                                \
    extern "C" __global__ __launch_bounds__(THREADS) void name(const __grid_constant__ HnCudaInt8Args a) \
    {                                                                                                    \
        product<rows, columns, conv>(a);                                                                 \
    }
DEFINE(int8_straight, 64, Straight, false)
DEFINE(int8_straight_few, 16, Straight, false)
DEFINE(int8_turned, 64, Turned, false)
DEFINE(int8_turned_few, 16, Turned, false)
DEFINE(int8_windows, 64, Windows, true)
DEFINE(int8_windows_few, 16, Windows, true)

/* Convolutions whose groups have few rows: a thread for each output. */
extern "C" __global__ void int8_direct(const __grid_constant__ HnCudaInt8Args a)
{
    __shared__ uint8_t table[256];
    load_table(a.finish, table);
    __syncthreads();
    const Result result(a.finish);
    const uint8_t *x = hn_at<const uint8_t>(a.cols), *w = hn_at<const uint8_t>(a.rows);
    const int cz = zero_point(a.col_zero, 0, a.col_flip);
    const int64_t channels = a.units * a.m;
    for (int64_t i = hn_first(); i < a.n * channels; i += hn_stride()) {
        const int64_t p = i % a.y_plane, channel = i / a.y_plane % channels, batch = i / a.y_plane / channels;
        int32_t origin[HN_CUDA_INT8_AXES];
        const int64_t offset = origin_of(a, p, origin);
        const int64_t base = (batch * a.units + channel / a.m) * a.in_channels * a.x_plane + offset;
        const int rz = zero_point(a.row_zero, a.row_zero_each ? channel : 0, a.row_flip);
        const uint8_t *row = w + channel * a.k;
        unsigned sum = 0;
        for (int64_t c = 0; c < a.in_channels; c++)
            for (int d = 0; d < a.kernel[0]; d++)
                for (int h = 0; h < a.kernel[1]; h++)
                    for (int v = 0; v < a.kernel[2]; v++, row++) {
                        const int at[] = { d * a.dilation[0], h * a.dilation[1], v * a.dilation[2] };
                        const Tap tap = { c * a.x_plane + ((int64_t)at[0] * a.in[1] + at[1]) * a.in[2] + at[2],
                                          { at[0], at[1], at[2] },
                                          1 };
                        const int value = (int8_t)seen(a, x, base, origin, tap, cz) - cz;
                        sum += (unsigned)(value * ((int)(int8_t)(uint8_t)(*row ^ a.row_flip) - rz));
                    }
        finish(a.finish, result, table, (int)sum, i, channel, 0);
    }
}
