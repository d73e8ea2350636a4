/*
 * The gradient of 3x3 weights of convolutions with stride 1 in fewer products: the transpose, in the weights, of
 * Winograd's algorithm F(4x4, 3x3) in cpu/conv/winograd.c. With G, B and A as they are called there,
 *
 *     V[point][tile][c]     the tile's 6x6 inputs, transformed by B as for the result itself
 *     Y[point][tile][o]     dy of its 4x4 outputs, transformed by A's transpose; zeros beyond the border
 *     M[point][o][c]        sum over tiles of Y * V: 36 products of matrices
 *     dW                    M, transformed by G's transpose, once
 *
 * 36 products for a tile and a pair of channels instead of 144. Tiles are taken in blocks; a part of all tiles
 * (cpu/conv/weight_grad.h) has an M of its own. Threads share the parts, or, where these are too few, the tiles that
 * are transformed and then the points.
 */
#include <string.h>

#include "cpu/conv/weight_grad.h"
#include "cpu/conv/winograd.h"

#define HN_LOOPS "cpu/conv/weight_grad_winograd_loops.h"
#include "base/every_level.h"

#define EDGE 4
#define SIDE 6
#define POINTS 36
#define ROUND HN_WEIGHT_GRAD_ROUND
#define BLOCK_BYTES 5e5 /* V and Y of a block of tiles, in the second cache beside M ... */
#define LEAST_TILES 32  /* M is read and written for each block ... */
#define FEWEST_TILES 16 /* ... and V and Y take no more memory than what they are made of, but for such blocks */
#define MOST_BYTES 16e6 /* ... or as large as that, which is read once for each block */
/* Cycles of a tile's transforms, of a vector of the source and of dy; of an M's float that is transformed back */
#define IN_CYCLES 200
#define SPREAD_CYCLES 120
#define GATHER_CYCLES 1

enum { H = 1, W };

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[3];
    gboolean swapped; /* rows of M are output channels */
    int64_t rows, cols, pitch;
    int64_t down, across, tiles, block; /* tiles of an image; of all; at a time */
    int64_t v_pitch, y_pitch, v_plane, y_plane;
    int64_t parts, part, plane; /* floats of the sums of a part, of a point's */
    int64_t floats;             /* of V and Y */
    int threads;
    float g[SIDE * 3];
    HnWinogradInFn in, spread;
    float *zeros; /* of a pixel */
} Winograd;

static void choose(Winograd *c)
{
    const HnConvPlan *p = &c->plan;
    c->swapped = hn_weight_grad_cycles(p->out_channels, p->in_channels) <=
                 hn_weight_grad_cycles(p->in_channels, p->out_channels);
    c->rows = c->swapped ? p->out_channels : p->in_channels;
    c->cols = c->swapped ? p->in_channels : p->out_channels;
    c->pitch = (c->cols + ROUND - 1) / ROUND * ROUND;
    c->plane = c->rows * c->pitch;
    c->part = (POINTS * c->plane + p->out_channels + ROUND - 1) / ROUND * ROUND;
    c->down = (c->axis[H].out + EDGE - 1) / EDGE;
    c->across = (c->axis[W].out + EDGE - 1) / EDGE;
    c->tiles = p->batch * c->down * c->across;
}

static gboolean pays(const Winograd *c)
{
    static const int lanes[HN_LEVELS] = { HN_LANES_plain, HN_LANES_avx2, HN_LANES_avx512 };
    const HnConvPlan *p = &c->plan;
    const int64_t n = lanes[hn_cpu_level()];
    const double products = hn_weight_grad_cycles(c->rows, c->cols), tiles = (double)c->tiles;
    const double in = (double)((p->in_channels + n - 1) / n), out = (double)((p->out_channels + n - 1) / n);
    const double moved = in * IN_CYCLES + out * SPREAD_CYCLES;
    const double ours = tiles * (POINTS * products + moved) + POINTS * (double)c->plane * GATHER_CYCLES;
    double direct = 9 * products;
    if (p->in_channels < HN_WEIGHT_GRAD_FEW)
        direct = 3 * MIN(hn_weight_grad_cycles(3 * p->in_channels, p->out_channels),
                         hn_weight_grad_cycles(p->out_channels, 3 * p->in_channels));
    return ours < 0.9 * direct * (double)(p->batch * p->y_plane);
}

static const char *winograd_reject(const HnStep *s)
{
    Winograd c;
    const char *reason = hn_weight_grad_plan(s, &c.plan, c.axis);
    if (reason != NULL)
        return reason;
    for (int i = 1; i < 3; i++)
        if (c.plan.n != 2 || c.axis[i].kernel != 3 || c.axis[i].stride != 1 || c.axis[i].dilation != 1)
            return "only kernels of 3x3, stride 1 and dilation 1";
    if (c.plan.group != 1)
        return "groups";
    if (s->strict_math)
        return "strict math: its rounding differs more from that of a sum";
    choose(&c);
    const gsize limit = hn_budget_limit(s->budget);
    if (limit > 0 && (gsize)(2 * c.part) * sizeof(float) > (limit - hn_budget_used(s->budget)) / 2)
        return "sums at all points take too much of the memory that is left";
    return pays(&c) ? NULL : "direct products are as fast";
}

static void winograd_release(HnStep *s)
{
    Winograd *c = s->state;
    if (c == NULL)
        return;
    g_free(c->zeros);
    g_free(c);
    s->state = NULL;
}

static gboolean winograd_prepare(HnStep *s, GError **error)
{
    static const HnWinogradInFn spread[] = HN_TABLE_OF_LEVELS(spread);
    const HnTensor *x = hn_cpu_in(s, 0), *dy = hn_cpu_in(s, 1);
    (void)error;
    Winograd *c = g_new0(Winograd, 1);
    const HnConvPlan *p = &c->plan;
    double g[SIDE][3];
    s->state = c;
    hn_weight_grad_plan(s, &c->plan, c->axis);
    choose(c);
    hn_winograd_taps(SIDE, 3, &g[0][0]);
    for (int i = 0; i < SIDE * 3; i++)
        c->g[i] = (float)g[i / 3][i % 3];
    c->in = hn_winograd_in(SIDE);
    c->spread = spread[hn_cpu_level()];
    c->zeros = g_new0(float, (gsize)MAX(p->in_channels, p->out_channels));
    const double flops = 18 * (double)dy->n * (double)p->in_channels;
    c->parts = hn_weight_grad_parts(c->tiles, (double)x->bytes + (double)dy->bytes, flops, c->part);
    c->v_pitch = ((p->in_channels + ROUND - 1) / ROUND | 1) * ROUND;
    c->y_pitch = ((p->out_channels + ROUND - 1) / ROUND | 1) * ROUND;
    const double bytes = MAX(BLOCK_BYTES, MIN((double)c->part * sizeof(float), MOST_BYTES));
    const double tile = (double)(c->v_pitch + c->y_pitch) * POINTS * sizeof(float);
    c->threads = hn_cpu_threads_for(s, flops / 3);
    const int64_t buffers = c->parts >= c->threads ? c->threads : 1;
    const double own = ((double)x->bytes + (double)dy->bytes) / (double)buffers;
    const double most_tiles = MIN(MAX(bytes / tile, LEAST_TILES), own / tile);
    const int64_t most = MAX((int64_t)most_tiles, FEWEST_TILES);
    const int64_t share = (c->tiles + c->parts - 1) / c->parts, blocks = (share + most - 1) / most;
    c->block = (share + blocks - 1) / blocks;
    c->v_plane = (c->block | 1) * c->v_pitch;
    c->y_plane = (c->block | 1) * c->y_pitch;
    c->floats = POINTS * (c->v_plane + c->y_plane);
    s->in[0].want = hn_layout_last(x);
    s->in[1].want = hn_layout_last(dy);
    s->in[2].unread = TRUE;
    s->scratch_bytes = (gsize)(c->parts * c->part + buffers * c->floats) * sizeof(float);
    return TRUE;
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const Winograd *c;
    const float *x, *dy;
    float *sums, *dw, *db;
    int64_t x_pitch, dy_pitch;
} Run;

/* Tiles [from, to) of a block, into rows from - first on of V and Y. */
static void transform(const Run *r, float *v, int64_t first, int64_t from, int64_t to)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    float *y = v + POINTS * c->v_plane;
    const float *at[POINTS];
    int64_t x_at[POINTS], y_at[EDGE * EDGE]; /* from the tile's first pixel */
    for (int i = 0; i < POINTS; i++)
        x_at[i] = (i / SIDE * w->in + i % SIDE) * r->x_pitch;
    for (int i = 0; i < EDGE * EDGE; i++)
        y_at[i] = (i / EDGE * w->out + i % EDGE) * r->dy_pitch;
    for (int64_t tile = from; tile < to; tile++) {
        const int64_t image = tile / (c->down * c->across);
        const int64_t row = tile / c->across % c->down * EDGE, col = tile % c->across * EDGE;
        const int64_t up = row - h->pad, left = col - w->pad;
        if (up >= 0 && left >= 0 && up + SIDE <= h->in && left + SIDE <= w->in) {
            const float *source = r->x + ((image * h->in + up) * w->in + left) * r->x_pitch;
            for (int i = 0; i < POINTS; i++)
                at[i] = source + x_at[i];
        } else {
            for (int i = 0; i < POINTS; i++) {
                const int64_t ih = up + i / SIDE, iw = left + i % SIDE;
                const gboolean inside = ih >= 0 && ih < h->in && iw >= 0 && iw < w->in;
                at[i] = inside ? r->x + ((image * h->in + ih) * w->in + iw) * r->x_pitch : c->zeros;
            }
        }
        c->in(v + (tile - first) * c->v_pitch, c->v_plane, at, c->plan.in_channels);
        const float *dy = r->dy + ((image * h->out + row) * w->out + col) * r->dy_pitch;
        for (int i = 0; i < EDGE * EDGE; i++)
            at[i] = row + i / EDGE < h->out && col + i % EDGE < w->out ? dy + y_at[i] : c->zeros;
        c->spread(y + (tile - first) * c->y_pitch, c->y_plane, at, c->plan.out_channels);
    }
}

/* Tiles [from, to) of all products' tiles of sums, over n tiles of outputs. */
static void multiply(const Run *r, float *sums, const float *v, int64_t n, gboolean fresh, int64_t from, int64_t to)
{
    const Winograd *c = r->c;
    const int64_t tiles = hn_weight_grad_tiles(c->rows, c->cols);
    for (int64_t point = from / tiles; point * tiles < to; point++) {
        const float *a = v + point * c->v_plane, *b = v + POINTS * c->v_plane + point * c->y_plane;
        const HnWeightGradTile t = { .a = c->swapped ? &b : &a,
                                     .b = c->swapped ? &a : &b,
                                     .lines = 1,
                                     .n = n,
                                     .a_step = c->swapped ? c->y_pitch : c->v_pitch,
                                     .b_step = c->swapped ? c->v_pitch : c->y_pitch,
                                     .c = sums + point * c->plane,
                                     .c_pitch = c->pitch,
                                     .fresh = fresh };
        hn_weight_grad_product(&t, c->rows, c->cols, MAX(from - point * tiles, 0), MIN(to - point * tiles, tiles));
    }
}

/* The bias: dy's pixels of a part, columns [from, to). */
static void sum_pixels(const Run *r, int64_t part, int64_t from, int64_t to)
{
    const Winograd *c = r->c;
    const int64_t pixels = c->plan.batch * c->plan.y_plane;
    const int64_t begin = pixels * part / c->parts, end = pixels * (part + 1) / c->parts;
    if (r->db != NULL && from < to)
        hn_weight_grad_sum()(r->sums + part * c->part + POINTS * c->plane + from, r->dy + begin * r->dy_pitch + from,
                             r->dy_pitch, end - begin, to - from);
}

static void run_part(const Run *r, int64_t part, float *v)
{
    const Winograd *c = r->c;
    const int64_t begin = c->tiles * part / c->parts, end = c->tiles * (part + 1) / c->parts;
    const int64_t all = POINTS * hn_weight_grad_tiles(c->rows, c->cols);
    for (int64_t at = begin, n; at < end; at += n) {
        n = MIN(c->block, end - at);
        transform(r, v, at, at, at + n);
        multiply(r, r->sums + part * c->part, v, n, at == begin, 0, all);
    }
    sum_pixels(r, part, 0, c->plan.out_channels);
}

/* The same by all threads. */
static void share_part(const Run *r, int64_t part, float *v)
{
    const Winograd *c = r->c;
    const int n = c->threads;
    const int64_t begin = c->tiles * part / c->parts, end = c->tiles * (part + 1) / c->parts;
    const int64_t all = POINTS * hn_weight_grad_tiles(c->rows, c->cols), out = c->plan.out_channels;
    const int64_t vectors = (out + ROUND - 1) / ROUND; /* whole: how sums are made depends on it */
    for (int64_t at = begin; at < end; at += c->block) {
        const int64_t size = MIN(c->block, end - at);
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            transform(r, v, at, at + size * i / n, at + size * (i + 1) / n);
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++) {
            multiply(r, r->sums + part * c->part, v, size, at == begin, all * i / n, all * (i + 1) / n);
            if (at == begin)
                sum_pixels(r, part, vectors * i / n * ROUND, MIN(vectors * (i + 1) / n * ROUND, out));
        }
    }
}

/* Rows [from, to) of M to weights [out channels][in channels][9]. */
static void write_weights(const Run *r, int64_t from, int64_t to)
{
    static void (*const fns[])(float *, const float *, int64_t, const float *) = HN_TABLE_OF_LEVELS(gather);
    const Winograd *c = r->c;
    const int64_t in = c->plan.in_channels;
    float taps[9][ROUND];
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < c->cols; j += ROUND) {
            fns[hn_cpu_level()](&taps[0][0], r->sums + i * c->pitch + j, c->plane, c->g);
            float *dw = r->dw + (c->swapped ? i * in + j : j * in + i) * 9;
            const int64_t step = (c->swapped ? 1 : in) * 9;
            for (int64_t k = 0; k < MIN(ROUND, c->cols - j); k++)
                for (int t = 0; t < 9; t++)
                    dw[k * step + t] = taps[t][k];
        }
}

static void run_alone(const Run *r, float *v)
{
    const Winograd *c = r->c;
    for (int64_t k = 0; k < c->parts; k++)
        run_part(r, k, v);
    hn_weight_grad_join(r->sums, c->parts, c->part, 0, c->part);
    write_weights(r, 0, c->rows);
}

static gboolean winograd_run(HnStep *s, GError **error)
{
    (void)error;
    const Winograd *c = s->state;
    const int n = c->threads;
    const Run r = { .c = c,
                    .x = hn_cpu_data(&s->in[0]),
                    .dy = hn_cpu_data(&s->in[1]),
                    .sums = s->scratch,
                    .dw = hn_cpu_data(&s->out[0]),
                    .db = s->n_out > 1 && s->out[1].slot != NULL ? hn_cpu_data(&s->out[1]) : NULL,
                    .x_pitch = hn_slot_pitch(s->in[0].slot),
                    .dy_pitch = hn_slot_pitch(s->in[1].slot) };
    float *v = r.sums + c->parts * c->part;
    for (int64_t k = 0; r.db != NULL && k < c->parts; k++)
        memset(r.sums + k * c->part + POINTS * c->plane, 0, (gsize)c->plan.out_channels * sizeof(float));
    if (n == 1) {
        run_alone(&r, v);
    } else {
        for (int64_t k = 0; c->parts < n && k < c->parts; k++)
            share_part(&r, k, v);
        if (c->parts >= n) {
#pragma omp parallel for num_threads(n)
            for (int i = 0; i < n; i++)
                for (int64_t k = c->parts * i / n; k < c->parts * (i + 1) / n; k++)
                    run_part(&r, k, v + i * c->floats);
        }
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            hn_weight_grad_join(r.sums, c->parts, c->part, c->part * i / n, c->part * (i + 1) / n);
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            write_weights(&r, c->rows * i / n, c->rows * (i + 1) / n);
    }
    if (r.db != NULL)
        memcpy(r.db, r.sums + POINTS * c->plane, (gsize)c->plan.out_channels * sizeof(float));
    return TRUE;
}

static double winograd_products(const HnStep *s)
{
    (void)s;
    return (double)POINTS / (9 * EDGE * EDGE);
}

const HnKernel hn_cpu_weight_grad_winograd = {
    .name = "cpu.convweightgrad_winograd",
    .reject = winograd_reject,
    .prepare = winograd_prepare,
    .run = winograd_run,
    .release = winograd_release,
    .products = winograd_products,
    .pitched = TRUE,
};
