#include "cpu/core/strided_copy.h"

#include <immintrin.h>
#include <string.h>

#include "base/cpu.h"
#include "op/index.h"

/* Elements by size; the wider ones may have been made of several and lie anywhere. */
typedef uint8_t E1;
typedef uint16_t E2 __attribute__((aligned(1), may_alias));
typedef uint32_t E4 __attribute__((aligned(1), may_alias));
typedef uint64_t E8 __attribute__((aligned(1), may_alias));
typedef struct {
    E8 half[2];
} E16;

/* m by n elements; distances in bytes. */
typedef struct {
    int64_t m, ym, xm, n, yn, xn;
    size_t size;
} Block;

typedef void (*BlockFn)(char *restrict y, const char *restrict x, const Block *b);

#define AXES (2 * HN_MAX_RANK)

struct HnCopy {
    BlockFn fn;
    Block b;
    int ndim; /* of the loop around the block; bytes */
    int64_t *dims, *ys, *xs;
    int64_t y0, x0;
    int threads;
    gboolean piece; /* adjacent elements on both sides */
    int cut;        /* which threads share: an axis of the loop; -1: m; -2: n */
    int64_t axes[]; /* what dims, ys and xs point to */
};

/* --- loops over a block ------------------------------------------------------------------------------------------ */

void hn_copy_bytes(void *y, const void *x, size_t bytes)
{
    char *to = y;
    const char *from = x;
    if (bytes > 64) {
        memcpy(to, from, bytes);
    } else if (bytes >= 16) {
        const __m128i last = _mm_loadu_si128((const __m128i *)(const void *)(from + bytes - 16));
        for (size_t i = 0; i + 16 < bytes; i += 16)
            _mm_storeu_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        _mm_storeu_si128((__m128i *)(void *)(to + bytes - 16), last);
    } else if (bytes >= 8) {
        const E8 a = *(const E8 *)from, b = *(const E8 *)(from + bytes - 8);
        *(E8 *)to = a;
        *(E8 *)(to + bytes - 8) = b;
    } else if (bytes >= 4) {
        const E4 a = *(const E4 *)from, b = *(const E4 *)(from + bytes - 4);
        *(E4 *)to = a;
        *(E4 *)(to + bytes - 4) = b;
    } else {
        for (size_t i = 0; i < bytes; i++)
            to[i] = from[i];
    }
}

/* Elements side by side on both sides. */
static void rows(char *restrict y, const char *restrict x, const Block *b)
{
    const size_t bytes = (size_t)b->n * b->size;
    int64_t j = 0;
    if (bytes < 16 && b->ym == (int64_t)bytes && b->xm >= b->ym) { /* more than needed, which the next rows set right */
        const int64_t read = (b->m - 1) * b->xm + b->ym - 16, written = b->m * b->ym - 16;
        const int64_t safe = read < 0 || written < 0 ? 0 : MIN(read / b->xm, written / b->ym) + 1;
        for (; j < safe; j++)
            _mm_storeu_si128((__m128i *)(void *)(y + j * b->ym),
                             _mm_loadu_si128((const __m128i *)(const void *)(x + j * b->xm)));
    }
    for (; j < b->m; j++)
        hn_copy_bytes(y + j * b->ym, x + j * b->xm, bytes);
}

#define AT(T, p, offset) (*(T *)((p) + (offset)))
#define FROM(T, p, offset) (*(const T *)((p) + (offset)))

/* Any distances. */
#define DEFINE_PLAIN(T)                                                              \
    static void each_##T(char *restrict y, const char *restrict x, const Block *b)   \
    {                                                                                \
        for (int64_t j = 0; j < b->m; j++)                                           \
            for (int64_t i = 0; i < b->n; i++)                                       \
                AT(T, y, j * b->ym + i * b->yn) = FROM(T, x, j * b->xm + i * b->xn); \
    }                                                                                \
    static void fill_##T(char *restrict y, const char *restrict x, const Block *b)   \
    {                                                                                \
        for (int64_t j = 0; j < b->m; j++) {                                         \
            const T v = FROM(T, x, j * b->xm);                                       \
            T *to = &AT(T, y, j * b->ym);                                            \
            for (int64_t i = 0; i < b->n; i++)                                       \
                to[i] = v;                                                           \
        }                                                                            \
    }
DEFINE_PLAIN(E1)
DEFINE_PLAIN(E2)
DEFINE_PLAIN(E4)
DEFINE_PLAIN(E8)
DEFINE_PLAIN(E16)

/* Transposition: yn and xm are the element's size. K elements of few columns or rows at once, so that the short side's
 * loop is unrolled. */
#define FEW_COLUMNS(T, K)              \
    for (int64_t j = 0; j < b->m; j++) \
        for (int i = 0; i < (K); i++)  \
            (&AT(T, y, j * b->ym))[i] = FROM(T, x, j * (int64_t)sizeof(T) + i * b->xn);
#define FEW_ROWS(T, K)                 \
    for (int64_t i = 0; i < b->n; i++) \
        for (int j = 0; j < (K); j++)  \
            (&AT(T, y, j * b->ym))[i] = (&FROM(T, x, i * b->xn))[j];

#define EDGE(T, j0, j1, i0, i1)                  \
    for (int64_t jj = (j0); jj < (j1); jj++)     \
        for (int64_t ii = (i0); ii < (i1); ii++) \
            (&AT(T, y, jj * b->ym))[ii] = (&FROM(T, x, ii * b->xn))[jj];

#define NARROW(T)         \
    switch (b->n) {       \
    case 2:               \
        FEW_COLUMNS(T, 2) \
        return;           \
    case 3:               \
        FEW_COLUMNS(T, 3) \
        return;           \
    case 4:               \
        FEW_COLUMNS(T, 4) \
        return;           \
    default:              \
        break;            \
    }                     \
    switch (b->m) {       \
    case 2:               \
        FEW_ROWS(T, 2)    \
        return;           \
    case 3:               \
        FEW_ROWS(T, 3)    \
        return;           \
    case 4:               \
        FEW_ROWS(T, 4)    \
        return;           \
    default:              \
        break;            \
    }

#define LINE 64 /* bytes */

#define DEFINE_TILE(T)                                                             \
    static void tile_##T(char *restrict y, const char *restrict x, const Block *b) \
    {                                                                              \
        enum { TILE = LINE / sizeof(T) };                                          \
        NARROW(T)                                                                  \
        for (int64_t j = 0; j < b->m; j += TILE)                                   \
            for (int64_t i = 0; i < b->n; i += TILE)                               \
                EDGE(T, j, MIN(j + TILE, b->m), i, MIN(i + TILE, b->n))            \
    }
DEFINE_TILE(E1)
DEFINE_TILE(E2)
DEFINE_TILE(E4)
DEFINE_TILE(E8)
DEFINE_TILE(E16)

/* N by N elements that fill N vectors of 16 bytes: log2 N perfect shuffles of the vectors' elements transpose them. */
#define DEFINE_SQUARE(T, N, STEPS, LO, HI)                                                                        \
    __attribute__((target("avx2"))) static inline void square_##T(char *y, int64_t ys, const char *x, int64_t xs) \
    {                                                                                                             \
        __m128i a[N], c[N];                                                                                       \
        for (int i = 0; i < (N); i++)                                                                             \
            a[i] = _mm_loadu_si128((const __m128i *)(const void *)(x + i * xs));                                  \
        for (int k = 0; k < (STEPS); k++) {                                                                       \
            for (int i = 0; i < (N) / 2; i++) {                                                                   \
                c[2 * i] = LO(a[i], a[i + (N) / 2]);                                                              \
                c[2 * i + 1] = HI(a[i], a[i + (N) / 2]);                                                          \
            }                                                                                                     \
            for (int i = 0; i < (N); i++)                                                                         \
                a[i] = c[i];                                                                                      \
        }                                                                                                         \
        for (int i = 0; i < (N); i++)                                                                             \
            _mm_storeu_si128((__m128i *)(void *)(y + i * ys), a[i]);                                              \
    }
DEFINE_SQUARE(E1, 16, 4, _mm_unpacklo_epi8, _mm_unpackhi_epi8)
DEFINE_SQUARE(E2, 8, 3, _mm_unpacklo_epi16, _mm_unpackhi_epi16)

__attribute__((target("avx2"))) static inline void square_E4(char *y, int64_t ys, const char *x, int64_t xs)
{
    __m256 a[8], c[8];
    for (int i = 0; i < 8; i++)
        a[i] = _mm256_loadu_ps((const float *)(const void *)(x + i * xs));
    for (int i = 0; i < 4; i++) {
        c[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
        c[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(c[i], c[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(c[i], c[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(c[i + 1], c[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(c[i + 1], c[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps((float *)(void *)(y + i * ys), _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps((float *)(void *)(y + (i + 4) * ys), _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

__attribute__((target("avx2"))) static inline void square_E8(char *y, int64_t ys, const char *x, int64_t xs)
{
    __m256d a[4], c[4];
    for (int i = 0; i < 4; i++)
        a[i] = _mm256_loadu_pd((const double *)(const void *)(x + i * xs));
    for (int i = 0; i < 4; i += 2) {
        c[i] = _mm256_unpacklo_pd(a[i], a[i + 1]);
        c[i + 1] = _mm256_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        _mm256_storeu_pd((double *)(void *)(y + i * ys), _mm256_permute2f128_pd(c[i], c[i + 2], 0x20));
        _mm256_storeu_pd((double *)(void *)(y + (i + 2) * ys), _mm256_permute2f128_pd(c[i], c[i + 2], 0x31));
    }
}

/* Three columns of bytes as adjacent rows: 16 rows at a time. */
__attribute__((target("avx2"))) static void interleave_three(char *restrict y, const char *restrict x, const Block *b)
{
    __m128i mask[3][3]; /* of the result's part, of the column */
    for (int part = 0; part < 3; part++)
        for (int column = 0; column < 3; column++) {
            uint8_t from[16];
            for (int k = 0; k < 16; k++)
                from[k] = (uint8_t)((16 * part + k) % 3 == column ? (16 * part + k) / 3 : 0x80);
            mask[part][column] = _mm_loadu_si128((const __m128i *)(const void *)from);
        }
    int64_t j = 0;
    for (; j + 16 <= b->m; j += 16, y += 48) {
        __m128i in[3];
        for (int k = 0; k < 3; k++)
            in[k] = _mm_loadu_si128((const __m128i *)(const void *)(x + j + k * b->xn));
        for (int part = 0; part < 3; part++)
            _mm_storeu_si128((__m128i *)(void *)(y + 16 * part),
                             _mm_or_si128(_mm_shuffle_epi8(in[0], mask[part][0]),
                                          _mm_or_si128(_mm_shuffle_epi8(in[1], mask[part][1]),
                                                       _mm_shuffle_epi8(in[2], mask[part][2]))));
    }
    for (; j < b->m; j++, y += 3)
        for (int k = 0; k < 3; k++)
            y[k] = x[j + k * b->xn];
}

/* A line of the source at a time, in squares. What is left at the ends is in a square with what is there already. */
#define DEFINE_TILE_AVX2(T, N)                                                                            \
    __attribute__((target("avx2"))) static void tile_avx2_##T(char *restrict y, const char *restrict x,   \
                                                              const Block *b)                             \
    {                                                                                                     \
        const int64_t size = (int64_t)sizeof(T), me = b->m - (N), ne = b->n - (N);                        \
        if (size == 1 && b->n == 3 && b->ym == 3) {                                                       \
            interleave_three(y, x, b);                                                                    \
            return;                                                                                       \
        }                                                                                                 \
        NARROW(T)                                                                                         \
        if (me < 0 || ne < 0) {                                                                           \
            tile_##T(y, x, b);                                                                            \
            return;                                                                                       \
        }                                                                                                 \
        for (int64_t jb = 0; jb < b->m; jb += LINE / size)                                                \
            for (int64_t i = 0; i < b->n; i += (N))                                                       \
                for (int64_t j = jb; j < MIN(jb + LINE / size, b->m); j += (N)) {                         \
                    const int64_t to = MIN(j, me), from = MIN(i, ne);                                     \
                    square_##T(y + to * b->ym + from * size, b->ym, x + from * b->xn + to * size, b->xn); \
                }                                                                                         \
    }
DEFINE_TILE_AVX2(E1, 16)
DEFINE_TILE_AVX2(E2, 8)
DEFINE_TILE_AVX2(E4, 8)
DEFINE_TILE_AVX2(E8, 4)

#define HN_LEVEL avx512
#include "cpu/core/turn_vec.h"

/* The same of whole lines of the result, whose rows may well be as far apart as what a cache keeps in one place. */
HN_TARGET static void tile_avx512_E4(char *restrict y, const char *restrict x, const Block *b)
{
    enum { N = HN_LANES };
    const int64_t me = b->m - N, ne = b->n - N;
    if (me < 0 || ne < 0) {
        tile_avx2_E4(y, x, b);
        return;
    }
    for (int64_t j = 0; j < b->m; j += N)
        for (int64_t i = 0; i < b->n; i += N) {
            const int64_t to = MIN(j, me), from = MIN(i, ne);
            const char *first = x + from * b->xn + to * (int64_t)sizeof(float);
            char *row = y + to * b->ym + from * (int64_t)sizeof(float);
            HN_VEC v[N];
            HN_UNROLL
            for (int k = 0; k < N; k++)
                v[k] = HN_VLOAD((const float *)(const void *)(first + k * b->xn));
            HN_V(turn_vectors)(v);
            HN_UNROLL
            for (int k = 0; k < N; k++)
                HN_VSTORE((float *)(void *)(row + k * b->ym), v[k]);
        }
}
#undef HN_LEVEL

void hn_copy_fill(void *y, const void *element, size_t size, int64_t n)
{
    const Block b = { .m = 1, .n = n, .size = size };
    switch (size) {
    case 1:
        memset(y, *(const uint8_t *)element, (size_t)n);
        break;
    case 2:
        fill_E2(y, element, &b);
        break;
    case 4:
        fill_E4(y, element, &b);
        break;
    case 8:
        fill_E8(y, element, &b);
        break;
    default:
        fill_E16(y, element, &b);
        break;
    }
}

/* --- what a copy amounts to -------------------------------------------------------------------------------------- */

typedef enum { EACH, FILL, TILE } Loop;

static BlockFn loop_for(Loop loop, size_t size)
{
    static const BlockFn fns[3][5] = {
        { each_E1, each_E2, each_E4, each_E8, each_E16 },
        { fill_E1, fill_E2, fill_E4, fill_E8, fill_E16 },
        { tile_E1, tile_E2, tile_E4, tile_E8, tile_E16 },
    };
    static const BlockFn avx2[5] = { tile_avx2_E1, tile_avx2_E2, tile_avx2_E4, tile_avx2_E8, tile_E16 };
    int k = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4;
    if (loop == TILE && k == 2 && hn_cpu_isa() >= HN_ISA_AVX512)
        return tile_avx512_E4;
    return loop == TILE && hn_cpu_isa() >= HN_ISA_AVX2 ? avx2[k] : fns[loop][k];
}

/* Takes axis a out of the loop. */
static void take(HnCopy *c, int a, int64_t *n, int64_t *y, int64_t *x)
{
    *n = c->dims[a];
    *y = c->ys[a];
    *x = c->xs[a];
    c->ndim--;
    for (int i = a; i < c->ndim; i++) {
        c->dims[i] = c->dims[i + 1];
        c->ys[i] = c->ys[i + 1];
        c->xs[i] = c->xs[i + 1];
    }
}

/* The axis of the loop along which one side is contiguous; -1: none. */
static int contiguous(const HnCopy *c, const int64_t *strides)
{
    for (int a = c->ndim - 1; a >= 0; a--)
        if (strides[a] == (int64_t)c->b.size)
            return a;
    return -1;
}

static void choose_loop(HnCopy *c)
{
    Block *b = &c->b;
    const int64_t size = (int64_t)b->size;
    *b = (Block){ .m = 1, .n = 1, .yn = size, .xn = size, .size = b->size };
    if (c->ndim > 0)
        take(c, c->ndim - 1, &b->n, &b->yn, &b->xn);
    int tile = -1;
    if (b->yn == size && b->xn == size)
        c->fn = rows;
    else if (b->yn == size && b->xn != 0 && (tile = contiguous(c, c->xs)) >= 0)
        c->fn = loop_for(TILE, b->size);
    else if (b->xn == size && (tile = contiguous(c, c->ys)) >= 0) /* the other way round */
        c->fn = loop_for(TILE, b->size);
    else
        c->fn = loop_for(b->yn == size && b->xn == 0 ? FILL : EACH, b->size);
    if (tile >= 0 && b->yn != size) {
        *b = (Block){ .m = b->n, .ym = b->yn, .xm = b->xn, .size = b->size };
        take(c, tile, &b->n, &b->yn, &b->xn);
    } else if (tile >= 0) {
        take(c, tile, &b->m, &b->ym, &b->xm);
    } else if (c->ndim > 0) {
        take(c, c->ndim - 1, &b->m, &b->ym, &b->xm);
    }
}

static void choose_cut(HnCopy *c)
{
    int64_t most = c->b.m;
    c->cut = -1;
    if (c->b.n > most) {
        most = c->b.n;
        c->cut = -2;
    }
    for (int a = 0; a < c->ndim; a++)
        if (c->dims[a] >= MIN(most, 4 * (int64_t)c->threads)) {
            c->cut = a;
            break;
        }
}

HnCopy *hn_copy_new(size_t size, int ndim, const int64_t *dims, int64_t y0, const int64_t *ys, int64_t x0,
                    const int64_t *xs, int threads)
{
    HnCopy *c = g_malloc0(sizeof *c + 3 * (gsize)ndim * sizeof *c->axes);
    c->dims = c->axes;
    c->ys = c->dims + ndim;
    c->xs = c->ys + ndim;
    const int64_t width = (int64_t)size;
    int n = 0;
    c->y0 = y0 * width;
    c->x0 = x0 * width;
    c->threads = threads;
    c->b.size = size;
    for (int a = 0; a < ndim; a++)
        if (dims[a] == 0)
            return c; /* fn stays NULL */
    for (int a = 0; a < ndim; a++) {
        const int64_t y = ys[a] * width, x = xs[a] * width;
        if (dims[a] == 1)
            continue;
        if (n > 0 && c->ys[n - 1] == y * dims[a] && c->xs[n - 1] == x * dims[a]) { /* continues the axis before */
            c->dims[n - 1] *= dims[a];
            c->ys[n - 1] = y;
            c->xs[n - 1] = x;
            continue;
        }
        c->dims[n] = dims[a];
        c->ys[n] = y;
        c->xs[n++] = x;
    }
    c->ndim = n;
    c->piece = n == 0 || (n == 1 && c->ys[0] == width && c->xs[0] == width);
    if (n > 1 && c->ys[n - 1] == width && c->xs[n - 1] == width && c->dims[n - 1] <= 16) { /* a run as one element */
        const int64_t run = c->dims[n - 1] * width;
        if (run <= 16 && (run & (run - 1)) == 0) {
            c->b.size = (size_t)run;
            c->ndim--;
        }
    }
    choose_loop(c);
    choose_cut(c);
    return c;
}

HnCopy *hn_copy_new_last(size_t size, int ndim, const int64_t *dims, int64_t y0, const int64_t *ys, int64_t x0,
                         const int64_t *xs, int threads)
{
    int64_t d[AXES], y[AXES], x[AXES];
    for (int i = 0; i < ndim; i++) {
        const int a = i == 0 ? 0 : i == ndim - 1 ? 1 : i + 1;
        d[i] = dims[a];
        y[i] = ys[a];
        x[i] = xs[a];
    }
    return hn_copy_new(size, ndim, d, y0, y, x0, x, threads);
}

void hn_copy_free(HnCopy *c)
{
    g_free(c);
}

static void run_loop(const HnCopy *c, const Block *b, const int64_t *dims, char *y, const char *x)
{
    int64_t idx[AXES], off[2] = { 0, 0 };
    int64_t *const strides[2] = { (int64_t *)c->ys, (int64_t *)c->xs };
    memset(idx, 0, (size_t)c->ndim * sizeof *idx);
    do
        c->fn(y + off[0], x + off[1], b);
    while (hn_index_next(c->ndim, dims, idx, 2, strides, off));
}

/* What thread k of all does. */
static void run_part(const HnCopy *c, char *y, const char *x, int k)
{
    Block b = c->b;
    int64_t dims[AXES], *length = c->cut >= 0 ? &dims[c->cut] : c->cut == -1 ? &b.m : &b.n;
    memcpy(dims, c->dims, (size_t)c->ndim * sizeof *dims);
    const int64_t unit = c->cut >= 0 ? 1 : LINE, units = (*length + unit - 1) / unit;
    const int64_t first = units * k / c->threads * unit, end = MIN(units * (k + 1) / c->threads * unit, *length);
    if (first >= end)
        return;
    *length = end - first;
    y += first * (c->cut >= 0 ? c->ys[c->cut] : c->cut == -1 ? b.ym : b.yn);
    x += first * (c->cut >= 0 ? c->xs[c->cut] : c->cut == -1 ? b.xm : b.xn);
    run_loop(c, &b, dims, y, x);
}

void hn_copy_run(const HnCopy *c, void *to, const void *from)
{
    char *y = (char *)to + c->y0;
    const char *x = (const char *)from + c->x0;
    if (c->fn == NULL)
        return;
    if (c->threads == 1) {
        run_loop(c, &c->b, c->dims, y, x);
        return;
    }
#pragma omp parallel for num_threads(c->threads)
    for (int k = 0; k < c->threads; k++)
        run_part(c, y, x, k);
}

/* --- kernels that consist of copies ------------------------------------------------------------------------------ */

HnCopies *hn_copies_new(guint n)
{
    HnCopies *c = g_malloc0(sizeof *c + n * sizeof *c->part);
    c->n = n;
    return c;
}

gboolean hn_copies_run(HnStep *s, GError **error)
{
    (void)error;
    const HnCopies *c = s->state;
    for (guint k = 0; k < c->n; k++) {
        const HnPort *from = &s->in[c->part[k].in], *to = &s->out[c->part[k].out];
        if (c->part[k].copy != NULL && !from->joined && !to->joined)
            hn_copy_run(c->part[k].copy, hn_cpu_data(to), hn_cpu_data(from));
    }
    return TRUE;
}

/* The copy of an input, or of an output: each has one, or one alone; NULL: there is none. */
static const HnCopy *copy_of(const HnCopies *c, gboolean in, int port)
{
    const guint k = c->n > 1 ? (guint)port : 0;
    return k < c->n && (in ? c->part[k].in : c->part[k].out) == port ? c->part[k].copy : NULL;
}

static HnPlace place_of(const HnCopy *c)
{
    return c != NULL && c->piece ? HN_PLACE_PIECE : HN_PLACE_NONE;
}

HnPlace hn_copies_joins(const HnStep *s, int i, gsize *offset)
{
    const HnCopy *c = copy_of(s->state, TRUE, i);
    *offset = c != NULL ? (gsize)c->y0 : 0;
    return place_of(c);
}

HnPlace hn_copies_splits(const HnStep *s, int i, gsize *offset)
{
    const HnCopy *c = copy_of(s->state, FALSE, i);
    *offset = c != NULL ? (gsize)c->x0 : 0;
    return place_of(c);
}

void hn_copies_release(HnStep *s)
{
    HnCopies *c = s->state;
    for (guint k = 0; c != NULL && k < c->n; k++)
        hn_copy_free(c->part[k].copy);
    g_free(c);
    s->state = NULL;
}
