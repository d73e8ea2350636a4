#include "cpu/gemm/gemm_kernel.h"

#include <string.h>

#include "base/parallel.h"
#include "cpu/core/vec.h"
#include "cpu/gemm/gemm_pairs.h"

#define HN_LOOPS "cpu/gemm/gemm_kernel_loops.h"
#include "base/every_level.h"

/* --- choice of a level --- */

typedef struct {
    int rows, lanes;
    const HnGemmKernelFn (*fns)[HN_GEMM_KERNEL_MAX_ROWS];
    void (*pack)(float *to, const char *from, int64_t row, int64_t k);
    void (*pack_columns)(float *to, const char *from, int64_t col, int64_t k, int64_t width);
    void (*pack_strip)(float *to, const float *from, int64_t pitch, int64_t k, int n);
    void (*interleave)(float *to, const float *from, int64_t plane, int64_t planes, int64_t n);
} Level;

static const Level *level(void)
{
    static const Level levels[HN_LEVELS] = {
        { TILE_ROWS_plain, HN_LANES_plain, fns_plain, pack_plain, pack_columns_plain, pack_strip_plain,
          interleave_plain },
        { TILE_ROWS_avx2, HN_LANES_avx2, fns_avx2, pack_avx2, pack_columns_avx2, pack_strip_avx2, interleave_avx2 },
        { TILE_ROWS_avx512, HN_LANES_avx512, fns_avx512, pack_avx512, pack_columns_avx512, pack_strip_avx512,
          interleave_avx512 },
    };
    return &levels[hn_cpu_level()];
}

int hn_gemm_kernel_rows(void)
{
    return level()->rows;
}

int hn_gemm_kernel_cols(void)
{
    return level()->lanes * 2;
}

const HnGemmKernelFn *hn_gemm_kernel_fns(int cols)
{
    const Level *l = level();
    if (l->fns == fns_avx512 && cols <= HN_LANES_avx2)
        return hn_gemm_kernel_narrow;
    return l->fns[cols > l->lanes];
}

void hn_gemm_kernel_interleave(float *to, const float *from, int64_t plane, int64_t planes, int64_t n)
{
    level()->interleave(to, from, plane, planes, n);
}

/* --- packing --- */

int64_t hn_gemm_kernel_packed(int64_t k, int64_t n)
{
    const int64_t cols = hn_gemm_kernel_cols();
    return (n + cols - 1) / cols * cols * k;
}

#define PACK_ROWS 16 /* of a column: neighbours in memory when columns are its rows */

void hn_gemm_kernel_pack(float *to, const void *b, int64_t row, int64_t col, int64_t k, int64_t n)
{
    const int64_t cols = hn_gemm_kernel_cols(), size = sizeof(float);
    const char *from = b;
    for (int64_t j = 0; j < n; j += cols, to += k * cols, from += cols * col * size) {
        const int64_t width = MIN(cols, n - j);
        if (col == 1 && width == cols) {
            level()->pack(to, from, row * size, k);
            continue;
        }
        if (col == 1) {
            for (int64_t i = 0; i < k; i++) {
                memcpy(to + i * cols, from + i * row * size, (size_t)(width * size));
                memset(to + i * cols + width, 0, (size_t)((cols - width) * size));
            }
            continue;
        }
        if (row == 1) {
            level()->pack_columns(to, from, col * size, k, width);
            continue;
        }
        if (width < cols)
            memset(to, 0, (size_t)(k * cols * size));
        for (int64_t i0 = 0; i0 < k; i0 += PACK_ROWS)
            for (int64_t c = 0; c < width; c++)
                for (int64_t i = i0; i < MIN(k, i0 + PACK_ROWS); i++)
                    memcpy(to + i * cols + c, from + (i * row + c * col) * size, sizeof(float));
    }
}

/* --- products --- */

#define NEAR_OTHER (256 * 1024 / 4) /* elements of an operand that stays in the second cache */
#define SHORT_FLOPS 2e6             /* some 10 us of two threads: one rectangle each */
#define FAR_SIDE 96                 /* rows or columns that are worth reading another operand anew from beyond */
#define LATE_ROWS 24                /* of results that late post operations are done to at once: near still */
#define BLOCK_K 2400                /* rows of a panel that are used at once */
#define PACK_K 512               /* the same where A is packed: its rows are read as they lie, the panel stays near */
#define BLOCK_A (512 * 1024 / 4) /* elements of A in the second cache; where rows of C are longer ... */
#define BLOCK_C (128 * 1024 / 4) /* ... of C, whose lines come from beyond while others are computed ... */
#define NEAR_B (128 * 1024 / 4)  /* ... and so few elements of B are read anew for each block */

/* What tiles see as k, below too: with pairs, words. */
static int64_t depth_of(const HnGemmBlocked *g)
{
    return g->pairs ? hn_gemm_pairs_words(g->k) : g->k;
}

/* Rows of A lie side by side, not their elements. */
static gboolean is_turned(const HnGemmBlocked *g)
{
    return g->room != NULL && g->a_k > 1;
}

/* Rows [from, to) of the t->cols columns from c on, elements [k, k + t->k) of each product. */
static void strips_of(const HnGemmBlocked *g, HnGemmKernelArgs *t, int64_t from, int64_t to, int64_t c, int64_t k)
{
    const int64_t most = g->b_pitch != 0 ? HN_GEMM_KERNEL_LOOSE_ROWS : hn_gemm_kernel_rows();
    const int64_t strips = (to - from + most - 1) / most, each = (to - from) / strips, more = (to - from) % strips;
    const int64_t whole = depth_of(g);
    const gboolean last = k + t->k >= whole, turned = is_turned(g);
    const HnGemmKernelFn *fns = g->pairs ? hn_gemm_pairs_fns(t->cols) : hn_gemm_kernel_fns(t->cols);
    /* the next columns' panel is brought closer, a part by each strip: memory is slower than the products of one; or,
     * where A is the larger one, at its first reading the next strip */
    const gboolean ahead = g->b_pitch == 0 && g->panels == NULL;
    const gboolean first = c == 0 && g->m > g->n && g->room == NULL && g->a_k <= 1 && g->a_pitch == t->k;
    const int64_t cols = hn_gemm_kernel_cols();
    const float *a[HN_GEMM_KERNEL_MAX_ROWS];
    t->a = a;
    t->accumulate = g->accumulate || k > 0;
    t->lo = last ? g->lo : HN_GEMM_KERNEL_LOW;
    t->hi = last ? g->hi : HN_GEMM_KERNEL_HIGH;
    t->post = g->post;
    t->posts = last ? g->posts : 0;
    t->channel = c;
    int64_t late = from;                                        /* the first row that waits for late post operations */
    for (int64_t s = 0, i = from, n; s < strips; s++, i += n) { /* the first `more` have a row more */
        n = each + (s < more);
        const float *const packed = g->room != NULL ? g->room + (i - from) * t->k : NULL;
        t->a_k = turned ? n : packed != NULL ? 1 : g->a_k;
        for (int64_t r = 0; r < n; r++)
            a[r] = packed != NULL ? packed + r * (turned ? 1 : t->k) : g->a + (i + r) * g->a_pitch + k * MAX(g->a_k, 1);
        t->c = g->c + i * g->c_pitch + c;
        t->next = first ? a[0] + n * t->k : ahead ? t->b + whole * cols + t->k * cols * s / strips : NULL;
        t->next_step = first ? n : (cols + strips - 1) / strips;
        t->add = last && g->add != NULL ? g->add + i * g->add_pitch + c : NULL;
        fns[n - 1](t);
        if (last && g->lates > 0 && (i + n - late >= LATE_ROWS || s == strips - 1)) {
            hn_post_rows(g->late, g->lates, g->c + late * g->c_pitch + c, g->c_pitch, i + n - late, c, t->cols);
            late = i + n;
        }
    }
}

/* The same where B is not packed. Rows of t->cols < hn_gemm_kernel_cols() columns are read beyond their end as long as
 * that is inside of B; the last ones are copied. */
static void loose_strips(const HnGemmBlocked *g, HnGemmKernelArgs *t, int64_t from, int64_t to, int64_t c, int64_t k)
{
    float copy[HN_GEMM_KERNEL_MAX_COLS * HN_GEMM_KERNEL_MAX_COLS];
    const int64_t cols = hn_gemm_kernel_cols(), size = (g->k - 1) * g->b_pitch + g->n, room = size - c - cols;
    const int64_t safe = CLAMP(room < 0 ? 0 : room / g->b_pitch + 1, k, k + t->k), end = k + t->k;
    t->b = g->b + k * g->b_pitch + c;
    t->b_pitch = g->b_pitch;
    t->k = safe - k;
    if (safe > k || k == end)
        strips_of(g, t, from, to, c, k);
    if (safe == end)
        return;
    for (int64_t i = safe; i < end; i++) {
        memset(copy + (i - safe) * cols, 0, (size_t)cols * sizeof *copy);
        memcpy(copy + (i - safe) * cols, g->b + i * g->b_pitch + c, (size_t)t->cols * sizeof *copy);
    }
    t->b = copy;
    t->b_pitch = cols;
    t->k = end - safe;
    strips_of(g, t, from, to, c, safe);
}

#define PACK_DEPTH 32 /* rows of a transposed A whose lines stay close until the next strip reads on */

/* Rows [from, to) of a transposed A, elements [k, k + depth), into strips as strips_of() takes them. */
static void pack_strips(const HnGemmBlocked *g, int64_t from, int64_t to, int64_t k, int64_t depth)
{
    const int64_t most = hn_gemm_kernel_rows(), strips = (to - from + most - 1) / most;
    const int64_t each = (to - from) / strips, more = (to - from) % strips, end = MIN(g->k, 2 * (k + depth));
    for (int64_t at = 0; at < depth; at += PACK_DEPTH)
        for (int64_t s = 0, i = from, n; s < strips; s++, i += n) {
            n = each + (s < more);
            float *const strip = g->room + (i - from) * depth + at * n;
            const int64_t some = MIN(PACK_DEPTH, depth - at), first = 2 * (k + at);
            if (g->pairs)
                hn_gemm_pairs_columns(strip, n, g->a + i + first * g->a_k, g->a_k, MIN(2 * some, end - first), n);
            else
                level()->pack_strip(strip, g->a + i + (k + at) * g->a_k, g->a_k, some, (int)n);
        }
}

static void pack_block(const HnGemmBlocked *g, int64_t from, int64_t to, int64_t k, int64_t depth)
{
    if (!g->pairs || is_turned(g)) {
        pack_strips(g, from, to, k, depth);
        return;
    }
    for (int64_t i = from; i < to; i++) /* rows lie as they are, but for being words */
        hn_gemm_pairs_row(g->room + (i - from) * depth, g->a + i * g->a_pitch + 2 * k, MIN(2 * depth, g->k - 2 * k));
}

/* How a product is cut: *depth of its sums, and rows, at a time; `most`: of depth. */
static int64_t block_of(int64_t k, int64_t most, int64_t *depth)
{
    const int64_t parts = MAX(1, (k + most - 1) / most), rows = hn_gemm_kernel_rows();
    *depth = MAX(1, (k + parts - 1) / parts);
    return MAX(4, BLOCK_A / *depth / rows) * rows;
}

int64_t hn_gemm_kernel_room(int64_t m, int64_t k)
{
    int64_t depth;
    const int64_t rows = block_of(k, PACK_K, &depth);
    return MIN(m, rows) * depth;
}

int64_t hn_gemm_kernel_panels(int64_t k, int64_t n)
{
    return hn_gemm_kernel_packed(MIN(k, PACK_K), n);
}

/* Columns [c0, c1) of a product and its elements [k, k + depth), for rows [from, to); c0 is the first of a panel.
 * `pack`: where B is packed on the way, these are the first rows. */
static void gemm_block(const HnGemmBlocked *g, int64_t from, int64_t to, int64_t c0, int64_t c1, int64_t k,
                       int64_t depth, gboolean pack)
{
    const int64_t cols = hn_gemm_kernel_cols();
    for (int64_t c = c0; c < c1; c += cols) {
        float *const panel = g->panels != NULL ? g->panels + c * depth : NULL;
        HnGemmKernelArgs t = { .taps = 1,
                               .k = depth,
                               .b = panel != NULL ? panel : g->b + c * depth_of(g) + k * cols,
                               .b_pitch = cols,
                               .bias = g->bias != NULL ? g->bias + c : NULL,
                               .add_pitch = g->add_pitch,
                               .c_pitch = g->c_pitch,
                               .cols = (int)MIN(cols, c1 - c) };
        if (panel != NULL && pack && g->pairs)
            hn_gemm_pairs_pack(panel, g->b + 2 * k * g->b_row + c * g->b_col, g->b_row, g->b_col,
                               MIN(2 * depth, g->k - 2 * k), t.cols);
        else if (panel != NULL && pack)
            hn_gemm_kernel_pack(panel, g->b + k * g->b_row + c * g->b_col, g->b_row, g->b_col, depth, t.cols);
        if (g->b_pitch == 0)
            strips_of(g, &t, from, to, c, k);
        else
            loose_strips(g, &t, from, to, c, k);
    }
}

/* Rows [r0, r1) and columns [c0, c1) of the result; c0 is the first of a panel. */
static void gemm_part(const HnGemmBlocked *g, int64_t r0, int64_t r1, int64_t c0, int64_t c1)
{
    const int64_t max_rows = hn_gemm_kernel_rows(), whole = depth_of(g);
    int64_t depth;
    block_of(whole, g->room != NULL || g->panels != NULL ? PACK_K : BLOCK_K, &depth);
    const gboolean longer = 2 * depth <= g->n && depth * g->n <= NEAR_B;
    const int64_t most = MAX(4, (longer ? BLOCK_C / g->n : BLOCK_A / depth) / max_rows) * max_rows;
    const int64_t blocks = (r1 - r0 + most - 1) / most, turns = MAX(1, (whole + depth - 1) / depth);
    for (int64_t i = 0; i < blocks * turns; i++) { /* panels that are packed on the way serve all blocks of rows */
        const int64_t block = g->panels != NULL ? i % blocks : i / turns,
                      k = (g->panels != NULL ? i / blocks : i % turns) * depth;
        const int64_t from = r0 + (r1 - r0) * block / blocks, to = r0 + (r1 - r0) * (block + 1) / blocks;
        if (g->room != NULL)
            pack_block(g, from, to, k, MIN(depth, whole - k));
        gemm_block(g, from, to, c0, c1, k, MIN(depth, whole - k), block == 0);
        if (g->done != NULL && k + depth >= whole)
            g->done(g->data, from, to - from, c0, c1 - c0);
    }
}

void hn_gemm_kernel_grid(int64_t rows, int64_t strips, int64_t panels, gboolean tall, int parts, int *down, int *across)
{
    int64_t best = G_MAXINT64;
    for (int i = 1; i <= parts; i++) {
        const int64_t d = tall ? parts / i : i, a = parts / d;
        const int64_t share = ((strips + d - 1) / d) * ((panels + a - 1) / a);
        const int64_t cost = share * (tall ? (a > 1 ? 8 : 7) : (d > 1 ? 8 : 7));
        if (cost < best && (d == 1 || rows >= HN_GEMM_KERNEL_FEW * d)) {
            best = cost;
            *down = (int)d;
            *across = (int)a;
        }
    }
}

/* In how many pieces of one side threads share a product, where each piece reads the other operand of so many elements
 * anew: as many as cost little, if that does not stay in a thread's second cache, and as many for each thread. 0: not
 * evenly. */
static int64_t pieces_of(int64_t side, int64_t least, int64_t other, int threads)
{
    const int64_t most = MIN(side / least, HN_PARALLEL_PIECES * threads);
    const int64_t pieces = other <= NEAR_OTHER ? most : MIN(most, side / FAR_SIDE);
    return pieces >= 2 * threads ? pieces - pieces % threads : 0;
}

HnGemmCut hn_gemm_cut(int64_t m, int64_t n, int64_t k, gboolean anew, int threads)
{
    HnGemmCut cut = { 1, 1 };
    if (threads == 1)
        return cut;
    const int64_t rows = hn_gemm_kernel_rows(), cols = hn_gemm_kernel_cols(), panels = (n + cols - 1) / cols;
    /* of two strips at least: none is then cut into fewer rows than HN_GEMM_KERNEL_FEW */
    const gboolean one_each = anew || 2 * (double)m * (double)n * (double)k < SHORT_FLOPS;
    const int64_t down = one_each ? 0 : pieces_of(m, 2 * rows, n * k, threads);
    const int64_t across = one_each || down > 0 ? 0 : pieces_of(panels * cols, cols, m * k, threads);
    if (down > 0 || across > 0) {
        cut.down = (int)MAX(down, 1);
        cut.across = (int)MAX(across, 1);
    } else {
        hn_gemm_kernel_grid(m, (m + rows - 1) / rows, panels, !anew || m >= n, threads, &cut.down, &cut.across);
    }
    return cut;
}

void hn_gemm_blocked_units(const HnGemmBlocked *g, const HnGemmCut *cut, int64_t from, int64_t to)
{
    const int64_t cols = hn_gemm_kernel_cols(), panels = (g->n + cols - 1) / cols;
    for (int64_t u = from, next; u < to; u = next) {
        int64_t r0, r1, p0, p1;
        next = hn_gemm_unit(cut, g->m, panels, u, to, &r0, &r1, &p0, &p1);
        if (r0 < r1 && p0 < p1)
            gemm_part(g, r0, r1, p0 * cols, MIN(g->n, p1 * cols));
    }
}

int64_t hn_gemm_unit(const HnGemmCut *cut, int64_t m, int64_t panels, int64_t unit, int64_t end, int64_t *r0,
                     int64_t *r1, int64_t *p0, int64_t *p1)
{
    const int64_t i = unit / cut->across, j = unit % cut->across;
    const int64_t next = cut->across == 1 ? end : MIN(end, (i + 1) * cut->across); /* one rectangle */
    *r0 = m * i / cut->down;
    *r1 = m * (cut->across == 1 ? end : i + 1) / cut->down;
    *p0 = panels * j / cut->across;
    *p1 = cut->across == 1 ? panels : panels * (j + next - unit) / cut->across;
    return next;
}

void hn_gemm_blocked(const HnGemmBlocked *g, int part, int parts)
{
    const int64_t rows = hn_gemm_kernel_rows(), cols = hn_gemm_kernel_cols();
    const int64_t strips = (g->m + rows - 1) / rows, panels = (g->n + cols - 1) / cols;
    HnGemmCut cut = { 1, 1 };
    hn_gemm_kernel_grid(g->m, strips, panels, g->panels == NULL || g->m >= g->n, parts, &cut.down, &cut.across);
    if (part < cut.down * cut.across)
        hn_gemm_blocked_units(g, &cut, part, part + 1);
}
