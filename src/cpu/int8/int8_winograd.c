/*
 * Convolutions of bytes with 3x3 kernels and stride 1 by Winograd's F(4x4, 3x3) in whole numbers: the sums are the same
 * ones, to the last bit, as those of the direct kernel.
 *
 * At the points 0, 1, -1, 2, -2 and infinity inputs need no fractions, and values at points of unsigned bytes fit into
 * 16 bits. Weights times 24 along either axis (12 at infinity) are whole numbers that fit into 16 bits, too. So a
 * product of 32-bit sums of pairs gives M; outputs are 24 * 24 = 64 * 9 times what is asked for. All sums are taken
 * modulo 2^32, where 9 has an inverse; 26 bits of a sum are left, which are all of it: weights for which they may not
 * be are refused.
 *
 *     V[point][tile][in channel]                       16 bits
 *     U[panel][point][pair of in channels][column][2]  16 bits
 *     M[point][tile][column] = V * U                   of one panel
 */
#include "cpu/int8/int8_winograd.h"

#include <string.h>

#include "base/cpu.h"
#include "cpu/int8/int8_gemm.h"

#define HN_LEVEL avx2
#include "cpu/int8/int8_winograd_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/int8/int8_winograd_loops.h"
#undef HN_LEVEL

#define EDGE 4
#define SIDE 6
#define SUM_BITS 25 /* besides the sign */
#define LANES 16    /* channels of the narrowest input vector */
#define BLOCK_BYTES (160 * 1024)
#define MOST_TILES 48
#define LEAST_GAIN 1.03
#define MOST_CHANNELS 65536 /* V of the fewest tiles is 1000 times as many bytes */

typedef struct {
    HnInt8Gemm product; /* what sums begin with and become */
    HnConvPlan plan;
    int64_t down, across, tiles; /* tiles of an image; of all images */
    int64_t blocks;              /* of tiles, in all, which are computed at a time */
    int64_t pairs;
    int64_t v_pitch, v_plane; /* bytes */
    int64_t m_plane, line;    /* numbers; of finished sums from row to row of outputs */
    int threads;
    gboolean by_panels; /* threads share output channels; otherwise tiles */
    uint8_t flip;
    uint8_t *padding; /* of a pixel */
    int32_t *zeros;   /* of a panel */
    HnPack *weights;
    gsize v_bytes, m_bytes, thread_bytes;
} Winograd;

/* --- which convolutions --------------------------------------------------------------------------------------------
 */

/* Cycles, roughly: products that are added in one, directly and by pairs; for the inputs of 16 channels of a tile, for
 * its outputs, for a tile besides, for a result of the direct kernel. */
typedef struct {
    double direct, pairs, in, out, tile, finish;
} Cost;

static const Cost *costs(void)
{
    static const Cost of_level[] = { { 29, 22, 150, 420, 190, 5 },
                                     { 38, 31, 100, 230, 190, 4 },
                                     { 104, 54, 100, 230, 190, 4 } };
    const HnIsa isa = hn_cpu_isa();
    return &of_level[isa >= HN_ISA_VNNI ? 2 : isa >= HN_ISA_AVX512 ? 1 : 0];
}

/* Of the direct convolution's time. */
static double gain_of(const HnConvPlan *p)
{
    const Cost *cost = costs();
    const double in = (double)((p->in_channels + 15) / 16), out = (double)((p->out_channels + 15) / 16);
    const double tiles = (double)(p->batch * ((p->axis[0].out + 3) / 4) * ((p->axis[1].out + 3) / 4));
    const double pixels = (double)(p->batch * p->y_plane), each = 256 * in * out, bytes = each / 16;
    const double direct = pixels * out * (9 * 16 * (double)p->in_channels / cost->direct + cost->finish);
    const double far = HN_INT8_POINTS * 2 * each > 1e6 ? 2 : 1; /* weights that do not stay in the second cache */
    const double tile = HN_INT8_POINTS * each / cost->pairs + in * cost->in + out * cost->out + cost->tile;
    return (direct + 9 * bytes) / (tiles * tile + HN_INT8_POINTS * 2 * far * bytes);
}

/* All that a sum of products with bytes can be stays in SUM_BITS. */
static gboolean sums_fit(const HnStep *s, const HnConvPlan *p)
{
    const HnInt8Weights weights = hn_int8_weights(s);
    const int64_t each = p->in_channels * p->taps;
    for (int64_t m = 0; m < p->out_channels; m++) {
        int64_t above = 0, below = 0;
        for (int64_t i = 0; i < each; i++) {
            const int w = hn_int8_weight(&weights, m * each + i, each, 0);
            above += MAX(w, 0);
            below -= MIN(w, 0);
        }
        if (MAX(above, below) * 255 >= (int64_t)1 << SUM_BITS)
            return FALSE;
    }
    return TRUE;
}

static gsize weight_bytes(const HnConvPlan *p)
{
    const int64_t cols = hn_int8_cols(), panels = (p->out_channels + cols - 1) / cols;
    return (gsize)(HN_INT8_POINTS * panels * cols * ((p->in_channels + 1) / 2)) * 4;
}

static const char *winograd_reject(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    HnConvPlan plan;
    if (hn_int8_pair_fns(TRUE) == NULL || hn_int8_has_blocks())
        return "matrix units are faster, or there are no vectors";
    if (x->ndim != 4 || w->ndim != 4 || w->dims[2] != 3 || w->dims[3] != 3)
        return "only kernels of 3x3";
    if (!hn_int8_conv_plan(s, &plan))
        return "the window does not fit";
    for (int i = 0; i < 2; i++)
        if (plan.axis[i].stride != 1 || plan.axis[i].dilation != 1)
            return "only stride 1 and dilation 1";
    if (plan.group != 1)
        return "groups";
    if (plan.in_channels > MOST_CHANNELS)
        return "very many channels";
    const char *reason = hn_int8_reject(s, w->dims[0]);
    if (reason != NULL)
        return reason;
    const gsize limit = hn_budget_limit(s->budget);
    if (gain_of(&plan) <= LEAST_GAIN)
        return "a direct convolution is as fast";
    if (limit > 0 && weight_bytes(&plan) > (limit - hn_budget_used(s->budget)) / 2)
        return "transformed weights take too much of the memory that is left";
    return sums_fit(s, &plan) ? NULL : "sums of more than 26 bits";
}

double hn_int8_winograd_gain(const HnStep *s)
{
    HnConvPlan plan;
    return winograd_reject(s) == NULL && hn_int8_conv_plan(s, &plan) ? gain_of(&plan) : 1;
}

/* --- prepare -------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const Winograd *c;
    const HnStep *s;
} Source;

/* 24 times the values at points of weights a + b t + c t^2; at infinity 12 times. */
static void to_points(int *to, int step, int a, int b, int c)
{
    to[0] = 6 * a;
    to[step] = -4 * (a + b + c);
    to[2 * step] = -4 * (a - b + c);
    to[3 * step] = a + 2 * b + 4 * c;
    to[4 * step] = a - 2 * b + 4 * c;
    to[5 * step] = 12 * c;
}

static void pack_weights(void *to, const HnTensor *t, gconstpointer data)
{
    (void)t;
    const Source *from = data;
    const Winograd *c = from->c;
    const HnInt8Weights weights = hn_int8_weights(from->s);
    const int64_t cols = hn_int8_cols(), in = c->plan.in_channels, plane = c->pairs * cols * 2;
    memset(to, 0, weight_bytes(&c->plan));
    for (int64_t o = 0; o < c->plan.out_channels; o++)
        for (int64_t i = 0; i < in; i++) {
            int16_t *u = (int16_t *)to + o / cols * HN_INT8_POINTS * plane + (i / 2 * cols + o % cols) * 2 + i % 2;
            int w[9], half[3 * SIDE], point[HN_INT8_POINTS];
            for (int k = 0; k < 9; k++)
                w[k] = hn_int8_weight(&weights, (o * in + i) * 9 + k, in * 9, 0);
            for (int k = 0; k < 3; k++) /* [SIDE][3] */
                to_points(half + k, 3, w[k], w[3 + k], w[6 + k]);
            for (int k = 0; k < SIDE; k++)
                to_points(point + k * SIDE, 1, half[3 * k], half[3 * k + 1], half[3 * k + 2]);
            for (int k = 0; k < HN_INT8_POINTS; k++, u += plane)
                *u = (int16_t)point[k];
        }
}

/* Tiles of a block and how they lie: rows and points are apart by an odd number of cache lines. */
static void place(Winograd *c, HnStep *s)
{
    const HnConvPlan *p = &c->plan;
    const int64_t cols = hn_int8_cols(), rows = hn_int8_rows();
    c->down = (p->axis[0].out + EDGE - 1) / EDGE;
    c->across = (p->axis[1].out + EDGE - 1) / EDGE;
    c->tiles = p->batch * c->down * c->across;
    c->pairs = (p->in_channels + 1) / 2;
    c->v_pitch = ((p->in_channels * 2 + 63) / 64 | 1) * 64;
    c->threads = hn_cpu_threads_for(s, (double)HN_INT8_POINTS * (double)c->tiles *
                                           (double)(p->in_channels * p->out_channels) / 2);
    const int64_t most = CLAMP(BLOCK_BYTES / (c->v_pitch * HN_INT8_POINTS) / rows * rows, rows, MOST_TILES);
    c->by_panels = c->threads > 1 && c->tiles < c->threads * rows && c->product.panels >= c->threads;
    const int64_t share = c->by_panels ? c->tiles : (c->tiles + c->threads - 1) / c->threads;
    c->blocks = MIN(c->tiles, (share + most - 1) / most * (c->by_panels ? 1 : c->threads));
    const int64_t largest = (c->tiles + c->blocks - 1) / c->blocks;
    c->v_plane = (largest | 1) * c->v_pitch;
    c->m_plane = (largest * cols + 15) / 16 * 16 + 16;
    c->line = largest * EDGE * cols;
    c->v_bytes = (gsize)(HN_INT8_POINTS * c->v_plane);
    c->m_bytes = (gsize)(HN_INT8_POINTS * c->m_plane) * sizeof(int32_t);
    c->thread_bytes = c->v_bytes + c->m_bytes + (gsize)(EDGE * c->line) * sizeof(int32_t);
    s->scratch_bytes = c->thread_bytes * (gsize)c->threads;
}

static gboolean winograd_prepare(HnStep *s, GError **error)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *zero = hn_int8_input(s, in->x_zero);
    Winograd *c = g_new0(Winograd, 1);
    HnInt8Gemm *p = &c->product;
    s->state = c;
    hn_int8_conv_plan(s, &c->plan);
    const int64_t each = c->plan.in_channels * 9, n = c->plan.out_channels;
    p->n_groups = p->segs = 1;
    p->out = n;
    p->depth = each;
    int8_t *w = hn_budget_alloc_n(s->budget, (gsize)n, (gsize)each, error);
    if (w == NULL) {
        g_prefix_error(error, "node '%s': ", hn_node_label(s->node));
        return FALSE;
    }
    const HnInt8Weights weights = hn_int8_weights(s);
    for (int64_t i = 0; i < n * each; i++)
        w[i] = (int8_t)hn_int8_weight(&weights, i, each, 0);
    hn_int8_gemm_columns(p, s, w);
    hn_budget_free(s->budget, w);
    place(c, s);
    c->flip = x->dtype == HN_I8 ? 128 : 0;
    c->padding = g_new(uint8_t, (gsize)c->plan.in_channels);
    memset(c->padding, zero != NULL ? (int)hn_tensor_get_i64(zero, 0) : 0, (gsize)c->plan.in_channels);
    c->zeros = g_new0(int32_t, HN_INT8_MAX_COLS);
    for (int i = 0; i < s->n_in; i++)
        s->in[i].unread = i != in->x;
    s->in[in->x].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(s->out[0].slot->tensor);
    const Source from = { c, s };
    return hn_pack_own(s, in->w, pack_weights, hn_int8_variant(s, 3 * 64 + (guint64)hn_int8_cols()),
                       weight_bytes(&c->plan), &from, &c->weights, error);
}

static void winograd_release(HnStep *s)
{
    Winograd *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_int8_gemm_clear(&c->product);
    g_free(c->padding);
    g_free(c->zeros);
    g_free(c);
    s->state = NULL;
}

/* --- run -----------------------------------------------------------------------------------------------------------
 */

/* The channels of a tile: whole vectors of the level, then those of AVX2, and what is left by way of a copy. */
static void tile_in(const Winograd *c, int16_t *v, const uint8_t *const *x)
{
    const int64_t n = c->plan.in_channels, plane = c->v_plane / 2;
    int64_t at = 0;
    if (hn_cpu_isa() >= HN_ISA_AVX512)
        at = byte_inputs_avx512(v, plane, x, n, c->flip);
    const uint8_t *rest[HN_INT8_POINTS];
    for (int i = 0; at < n && i < HN_INT8_POINTS; i++)
        rest[i] = x[i] + at;
    if (at < n)
        at += byte_inputs_avx2(v + at, plane, rest, n - at, c->flip);
    if (at == n)
        return;
    uint8_t few[HN_INT8_POINTS][LANES] = { 0 };
    for (int i = 0; i < HN_INT8_POINTS; i++) {
        memcpy(few[i], x[i] + at, (gsize)(n - at));
        rest[i] = few[i];
    }
    byte_inputs_avx2(v + at, plane, rest, LANES, c->flip);
}

typedef struct {
    const Winograd *c;
    const HnStep *s;
    const uint8_t *x;
    int64_t x_pitch; /* of pixels */
    const int16_t *u;
    HnInt8Out finish;
    char *y;
    gsize y_size;
    int64_t y_pitch;
} Run;

/* Image, row and column of a tile's first output */
static void tile_at(const Winograd *c, int64_t tile, int64_t *image, int64_t *row, int64_t *col)
{
    *image = tile / (c->down * c->across);
    *row = tile / c->across % c->down * EDGE;
    *col = tile % c->across * EDGE;
}

static void transform_in(const Run *r, int64_t tile, int16_t *v)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->plan.axis[0], *w = &c->plan.axis[1];
    const uint8_t *x[HN_INT8_POINTS];
    int64_t image, row, col;
    tile_at(c, tile, &image, &row, &col);
    row -= h->pad;
    col -= w->pad;
    for (int i = 0, n = 0; i < SIDE; i++) {
        const uint8_t *from = r->x + ((image * h->in + row + i) * w->in + col) * r->x_pitch;
        const gboolean inside = row + i >= 0 && row + i < h->in;
        for (int j = 0; j < SIDE; j++, n++)
            x[n] = inside && col + j >= 0 && col + j < w->in ? from + j * r->x_pitch : c->padding;
    }
    tile_in(c, v, x);
}

/* Finished sums of `n` tiles side by side, from the first's on. */
static void finish_line(const Run *r, const int32_t *sums, int64_t tile, int64_t n, int64_t u)
{
    const Winograd *c = r->c;
    const int64_t down = c->plan.axis[0].out, across = c->plan.axis[1].out, cols = hn_int8_cols();
    int64_t image, row, col;
    tile_at(c, tile, &image, &row, &col);
    for (int64_t i = 0; i < MIN(EDGE, down - row); i++) {
        const int64_t at = (image * down + row + i) * across + col;
        hn_int8_finish(&r->finish, r->y + (gsize)(at * r->y_pitch + u * cols) * r->y_size, r->y_pitch,
                       sums + i * c->line, MIN(n * EDGE, across - col), c->product.panel[u].cols, u * cols);
    }
}

/* Tiles [from, to), at most a block of them, and panels [u0, u1). */
static void run_block(const Run *r, char *scratch, int64_t from, int64_t to, int64_t u0, int64_t u1)
{
    const Winograd *c = r->c;
    const HnInt8Gemm *p = &c->product;
    const int64_t tiles = to - from, most = hn_int8_rows(), cols = hn_int8_cols(), strips = (tiles + most - 1) / most;
    char *v = scratch;
    int32_t *m = (int32_t *)(void *)(v + c->v_bytes), *sums = (int32_t *)(void *)((char *)m + c->m_bytes);
    for (int64_t t = 0; t < tiles; t++)
        transform_in(r, from + t, (int16_t *)(void *)(v + t * c->v_pitch));
    for (int64_t u = u0; u < u1; u++) {
        const gboolean whole = p->panel[u].cols > cols / 2;
        const HnInt8KernelFn *fns = hn_int8_pair_fns(whole);
        const int64_t only = 0;
        HnInt8Kernel t = { .step = c->v_pitch,
                           .seg_at = &only,
                           .segs = 1,
                           .groups = c->pairs,
                           .b = (const int8_t *)(r->u + u * HN_INT8_POINTS * c->pairs * cols * 2),
                           .begin = c->zeros };
        for (int i = 0; i < HN_INT8_POINTS; i++) {
            for (int64_t k = 0; k < strips; k++) {
                const int64_t first = tiles * k / strips, n = tiles * (k + 1) / strips - first;
                t.a = (const uint8_t *)v + i * c->v_plane + first * c->v_pitch;
                t.c = m + i * c->m_plane + first * cols;
                fns[n - 1](&t);
            }
            t.b += c->pairs * cols * HN_INT8_GROUP;
        }
        for (int64_t k = 0; k < tiles; k++) {
            const HnInt8Outputs o = { .m = m + k * cols,
                                      .plane = c->m_plane,
                                      .begin = p->begin + u * cols,
                                      .c = sums + k * EDGE * cols,
                                      .line = c->line,
                                      .whole = whole };
            if (hn_cpu_isa() >= HN_ISA_AVX512)
                byte_outputs_avx512(&o);
            else
                byte_outputs_avx2(&o);
        }
        for (int64_t k = 0, n; k < tiles; k += n) {
            n = MIN(tiles - k, c->across - (from + k) % c->across);
            finish_line(r, sums + k * EDGE * cols, from + k, n, u);
        }
    }
}

/* All panels of blocks [lo, hi) of tiles, or these shares of the panels for all tiles, whose inputs each makes anew. */
static void run_units(gpointer run, int thread, int64_t lo, int64_t hi)
{
    const Run *r = run;
    const Winograd *c = r->c;
    const int64_t panels = c->product.panels, u0 = c->by_panels ? panels * lo / c->threads : 0;
    const int64_t u1 = c->by_panels ? panels * hi / c->threads : panels;
    char *scratch = (char *)r->s->scratch + (gsize)thread * c->thread_bytes;
    for (int64_t i = c->by_panels ? 0 : lo; i < (c->by_panels ? c->blocks : hi); i++)
        run_block(r, scratch, c->tiles * i / c->blocks, c->tiles * (i + 1) / c->blocks, u0, u1);
}

static gboolean winograd_run(HnStep *s, GError **error)
{
    (void)error;
    Winograd *c = s->state;
    const int in = hn_int8_inputs(s)->x;
    const HnTensor *y = s->out[0].slot->tensor;
    Run r = { .c = c,
              .s = s,
              .x = hn_cpu_data(&s->in[in]),
              .x_pitch = hn_slot_pitch(s->in[in].slot),
              .u = hn_pack_data(c->weights, s, hn_int8_inputs(s)->w),
              .finish = c->product.finish,
              .y = y->data,
              .y_size = hn_dtype_size(y->dtype),
              .y_pitch = hn_slot_pitch(s->out[0].slot) };
    hn_int8_gemm_exchange(&c->product, &r.finish, s);
    hn_parallel_for(c->by_panels ? c->threads : c->blocks, c->threads, run_units, &r);
    return TRUE;
}

static double winograd_products(const HnStep *s)
{
    (void)s;
    return (double)HN_INT8_POINTS / (9 * EDGE * EDGE);
}

const HnKernel hn_cpu_int8_winograd = {
    .name = "cpu.int8_winograd",
    .reject = winograd_reject,
    .prepare = winograd_prepare,
    .run = winograd_run,
    .release = winograd_release,
    .products = winograd_products,
    .pitched = TRUE,
    .exchanges = TRUE,
};
