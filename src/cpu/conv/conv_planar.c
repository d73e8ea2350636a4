/*
 * Source rows are copied into scratch memory with their padding, from channels last too, and columns sorted by their
 * remainder modulo the stride: the inputs of neighbouring outputs lie side by side then, for any stride and dilation,
 * and a tap is an offset from the output's position. A block of rows and columns of outputs is computed at a time, all
 * channels of it. Of one tap on plain rows nothing is copied, but where whole vectors would read past the last column.
 *
 * Against tiles of channels (conv_gemm.c) this is chosen by what a pixel takes of either, in cycles.
 */
#include "cpu/conv/conv_planar.h"

#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/cpu_level.h"
#include "cpu/core/epilogue.h"
#include "cpu/core/even_block.h"
#include "cpu/gemm/gemm_kernel.h"
#include "op/conv.h"

#define HN_LOOPS "cpu/conv/conv_planar_loops.h"
#include "base/every_level.h"

#define MOST_CHANNELS 64         /* of the result, and of a source whose rows may be long */
#define MOST_LINES (192 * 1024)  /* floats of rows of more channels, for one row of outputs */
#define BLOCK_FLOATS (48 * 1024) /* of the copied source, in the second cache */
#define MARGIN 1.2               /* what two estimates may be wrong by */
#define FEW 4                    /* channels of a source whose rows conv_gemm.c copies */
#define SLACK 64                 /* floats behind the copied source that tiles read, and do not use */

typedef struct {
    HnConvPlan plan;
    HnWindowAxis h, w;
    int blocks;                  /* of output channels */
    int64_t taps;                /* of all input channels */
    int64_t rows, columns;       /* outputs of a block, at most */
    int64_t lines, phase, pitch; /* copied: rows of a channel, floats from remainder to remainder, from row to row */
    int64_t *off;                /* [taps] in the copy, [taps] in the source as it lies */
    gboolean last;               /* the source is channels last */
    gboolean lies;               /* one tap on plain rows: the source may be read as it lies */
    HnPack *weights;             /* [blocks][taps][channels of the block] */
    HnEpilogue epilogue;
    HnEpilogueEnd end;
    int threads;
    gsize part_bytes; /* scratch of a thread */
} Planar;

static int lanes(void)
{
    return 4 << hn_cpu_level();
}

static int most_vectors(void)
{
    return hn_cpu_level() == 2 ? PLANAR_NV_avx512 : PLANAR_NV_avx2;
}

/* First output channel of a block. */
static int64_t first_of(const HnConvPlan *p, int blocks, int64_t block)
{
    return p->out_channels * block / blocks;
}

/* Height and width. A signal is one row, and so is an image whose windows are one column wide, all of it. */
static void height_width(const HnConvPlan *p, HnWindowAxis *h, HnWindowAxis *w)
{
    *h = p->n == 2 ? p->axis[0] : hn_window_one();
    *w = p->axis[p->n - 1];
    if (w->kernel > 1 || w->stride > 1 || w->in != w->out || w->pad != 0 || h->stride > 1)
        return;
    const int64_t wide = w->in;
    *w = (HnWindowAxis){ .in = h->in * wide,
                         .out = h->out * wide,
                         .kernel = h->kernel,
                         .stride = 1,
                         .dilation = h->dilation * wide,
                         .pad = h->pad * wide };
    *h = hn_window_one();
}

/* Columns or rows that n outputs look at. */
static int64_t seen(const HnWindowAxis *a, int64_t n)
{
    return (n - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
}

#define LATENCY 4 /* of an addition, in cycles: each tap waits for the one before */

/* Cycles that a pixel takes: of products and of loads of tiles, whichever are more. */
static double planar_cycles(const HnConvPlan *p, const HnWindowAxis *w)
{
    const int64_t blocks = (p->out_channels + HN_PLANAR_OC - 1) / HN_PLANAR_OC,
                  vectors = (w->out + lanes() - 1) / lanes();
    const double oc = (double)p->out_channels / (double)blocks, nv = (double)MIN(most_vectors(), vectors);
    const double load = (1 + 1.75 * nv + oc) / 2; /* two a cycle, most of which cross a line */
    const double tap = MAX(MAX(nv * oc / 2, load), LATENCY) + 0.5, pixels = (double)w->out / (double)vectors * nv;
    return (double)(p->taps * p->in_channels * blocks) * tap / pixels + 0.2 * (double)p->out_channels;
}

/* The same of conv_gemm.c's tiles: two vectors of channels, or one, by rows of pixels; pointers or copied rows. */
static double tile_cycles(const HnConvPlan *p, const HnWindowAxis *h)
{
    const int l = lanes();
    const int64_t rest = p->out_channels % (2 * l), whole = p->out_channels / (2 * l);
    const double rows = hn_gemm_kernel_rows(), one = (rows + 1) / rows / 2;
    const double k = (double)whole + (rest > l ? 1 : rest > 0 ? one : 0);
    const gboolean few = p->in_channels <= FEW && p->n <= 2;
    const double segments = few ? (double)h->kernel : (double)p->taps, panels = (double)(whole + (rest > 0));
    return (double)(p->taps * p->in_channels) * k + segments * (few ? 1 : 3) * panels +
           (few ? (double)p->in_channels : 0);
}

/* The source is read channels last, which it is, or else plain. */
static gboolean reads_last(const HnStep *s, const HnWindowAxis *w)
{
    return s->in[0].slot->layout != NULL && w->stride == 1;
}

/* Output k is of input k alone. */
static gboolean is_each(const HnWindowAxis *a)
{
    return a->kernel == 1 && a->stride == 1 && a->in == a->out; /* and no padding, then */
}

/* The source need not be copied: one tap, all of it one row. */
static gboolean reads_plain(const HnStep *s, const HnWindowAxis *h, const HnWindowAxis *w)
{
    return s->in[0].slot->layout == NULL && h->in == 1 && is_each(h) && is_each(w);
}

/* Why no such step, of one group, is taken, whatever it takes */
static const char *refusal(const HnStep *s, const HnConvPlan *plan, HnWindowAxis *h, HnWindowAxis *w)
{
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (plan->n > 2)
        return "three axes";
    if (plan->group > 1)
        return "groups";
    height_width(plan, h, w);
    const double lines = (double)plan->in_channels * (double)seen(h, 1) * (double)(h->out > 1 ? seen(w, w->out) : 1);
    if (plan->out_channels > MOST_CHANNELS || (plan->in_channels > MOST_CHANNELS && lines > MOST_LINES))
        return "enough channels for tiles of them";
    return h->pad < 0 || w->pad < 0 ? "a window that leaves out the first elements" : NULL;
}

/* Rows of outputs of a block, at most, whose source has these rows. */
static int64_t rows_that_fit(const HnWindowAxis *h, int64_t ic, int64_t pitch)
{
    const int64_t around = seen(h, 1) - 1;
    return MAX(1, MAX(BLOCK_FLOATS / ic / pitch - around, around) / h->stride);
}

/* With what other steps take: what comes behind may have to be put channels last, and what came channels last is to be
 * put back. Lines that blocks share are copied for each of them. */
static double cycles_of(const HnStep *s, const HnConvPlan *plan, const HnWindowAxis *h, const HnWindowAxis *w)
{
    const double in = (double)plan->in_channels, out = (double)plan->out_channels;
    const int64_t rows = MIN(h->out, rows_that_fit(h, plan->in_channels, seen(w, w->out)));
    const double lines = h->out > 1 ? (double)seen(h, rows) / (double)rows : 1;
    const double before = reads_plain(s, h, w)            ? 0
                          : s->in[0].slot->layout == NULL ? 0.5 * lines
                          : reads_last(s, w)              ? 0.75 * lines
                                                          : 1.5;
    return planar_cycles(plan, w) + before * in + (s->in[0].slot->layout != NULL ? out : out / 2);
}

gboolean hn_conv_planar_beats(const HnStep *s, const HnConvPlan *plan, double products)
{
    HnWindowAxis h, w;
    if (refusal(s, plan, &h, &w) != NULL)
        return FALSE;
    const double pixels = (double)(plan->batch * plan->y_plane), each = 2.0 * lanes(); /* products of a cycle */
    return cycles_of(s, plan, &h, &w) * each * pixels * MARGIN < products;
}

static const char *planar_reject(const HnStep *s)
{
    HnConvPlan plan;
    HnWindowAxis h, w;
    const char *reason = hn_conv_reject(s, HN_CONV_PLAIN, 2, &plan);
    if (reason != NULL || (reason = refusal(s, &plan, &h, &w)) != NULL)
        return reason;
    return cycles_of(s, &plan, &h, &w) < tile_cycles(&plan, &h) ? NULL : "tiles of channels are faster";
}

static void planar_release(HnStep *s)
{
    Planar *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_epilogue_clear(&c->epilogue);
    g_free(c->off);
    g_free(c);
    s->state = NULL;
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Planar *c = data;
    const char *from = w->data; /* [out_channels][taps] */
    float *out = to;
    for (int64_t i = 0; i < c->blocks; i++)
        for (int64_t t = 0; t < c->taps; t++)
            for (int64_t m = first_of(&c->plan, c->blocks, i); m < first_of(&c->plan, c->blocks, i + 1); m++)
                memcpy(out++, from + (m * c->taps + t) * (int64_t)sizeof *out, sizeof *out);
}

/* Blocks of outputs, and the scratch memory of a thread. */
static void measure(Planar *c)
{
    const int64_t ic = c->plan.in_channels, tile = (int64_t)most_vectors() * lanes();
    const int64_t halo = (c->w.kernel - 1) * c->w.dilation, room = BLOCK_FLOATS / ic / c->w.stride;
    c->columns = c->w.out;
    if (c->h.out == 1) { /* tiles of the line; more than what surrounds them */
        const int64_t tiles = (c->w.out + tile - 1) / tile, least = (MAX(2 * halo, 1) + tile - 1) / tile;
        const int64_t most = (MAX(room, 4 * halo) + tile - 1) / tile;
        c->columns = MIN(c->w.out, tile * hn_even_block(tiles, least, most, c->plan.batch, c->threads));
    }
    c->phase = (seen(&c->w, c->columns) + c->w.stride - 1) / c->w.stride;
    c->pitch = c->phase * c->w.stride;
    c->rows = hn_even_block(c->h.out, 1, rows_that_fit(&c->h, ic, c->pitch), c->plan.batch, c->threads);
    c->lines = seen(&c->h, c->rows);
    c->part_bytes = ((gsize)(ic * c->lines * c->pitch + SLACK) * sizeof(float) + 63) / 64 * 64;
}

static gboolean planar_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    Planar *c = g_new0(Planar, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    c->end = hn_epilogue_end(&c->epilogue, 0);
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    height_width(p, &c->h, &c->w);
    c->last = reads_last(s, &c->w);
    c->lies = reads_plain(s, &c->h, &c->w);
    if (c->last)
        s->in[0].want = hn_layout_last(x);
    c->blocks = (int)((p->out_channels + HN_PLANAR_OC - 1) / HN_PLANAR_OC);
    c->taps = p->in_channels * p->taps;
    c->threads = hn_cpu_threads_for(s, 2 * (double)y->n * (double)c->taps);
    measure(c);
    s->scratch_bytes = (gsize)c->threads * c->part_bytes;
    c->off = g_new(int64_t, 2 * (gsize)c->taps);
    for (int64_t i = 0, t = 0; i < p->in_channels; i++)
        for (int64_t a = 0; a < c->h.kernel; a++)
            for (int64_t b = 0; b < c->w.kernel; b++, t++) {
                const int64_t at = b * c->w.dilation;
                c->off[t] =
                    (i * c->lines + a * c->h.dilation) * c->pitch + at % c->w.stride * c->phase + at / c->w.stride;
                c->off[c->taps + t] = i * p->x_plane; /* of one tap */
            }
    return hn_pack_own(s, 1, pack_weights, c->blocks, (gsize)(p->out_channels * c->taps) * sizeof(float), c,
                       &c->weights, error);
}

/* n columns of a source line from iw on, with zeros beside it, into a row of scratch memory; NULL: all zeros. */
static void copy_line(const Planar *c, float *to, const float *line, int64_t iw, int64_t n)
{
    const int64_t lo = CLAMP(-iw, 0, n), hi = line != NULL ? CLAMP(c->w.in - iw, lo, n) : lo, stride = c->w.stride;
    if (stride == 1) {
        memset(to, 0, (gsize)lo * sizeof *to);
        if (hi > lo)
            memcpy(to + lo, line + iw + lo, (gsize)(hi - lo) * sizeof *to);
        memset(to + hi, 0, (gsize)(n - hi) * sizeof *to);
        return;
    }
    for (int64_t r = 0; r < stride; r++, to += c->phase) { /* columns r, r + stride, ... */
        int64_t i = 0, k = r;
        for (; k < lo; k += stride)
            to[i++] = 0;
        for (; k < hi; k += stride)
            to[i++] = line[iw + k];
        for (; k < n; k += stride)
            to[i++] = 0;
    }
}

/* A block: output rows [oh, oh + rows), columns [ow, ow + columns) of an image. */
typedef struct {
    int64_t image, oh, rows, ow, columns;
} Block;

/* The same of all channels at once, `row` floats apart; line: of pixels that are channels last. */
static void turn_line(const Planar *c, float *to, int64_t row, const float *line, int64_t pitch, int64_t iw, int64_t n)
{
    static void (*const turn[HN_LEVELS])(float *, int64_t, const float *, int64_t, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(turn_pixels);
    const int64_t lo = CLAMP(-iw, 0, n), hi = line != NULL ? CLAMP(c->w.in - iw, lo, n) : lo;
    for (int64_t i = 0; i < c->plan.in_channels; i++) {
        memset(to + i * row, 0, (gsize)lo * sizeof *to);
        memset(to + i * row + hi, 0, (gsize)(n - hi) * sizeof *to);
    }
    if (hi > lo)
        turn[hn_cpu_level()](to + lo, row, line + (iw + lo) * pitch, pitch, c->plan.in_channels, hi - lo);
}

static void copy_block(const Planar *c, const Block *b, const HnSlot *x, const float *data, float *to)
{
    const int64_t lines = seen(&c->h, b->rows), columns = seen(&c->w, b->columns), ic = c->plan.in_channels;
    const int64_t ih = b->oh * c->h.stride - c->h.pad, iw = b->ow * c->w.stride - c->w.pad;
    const int64_t pitch = c->last ? hn_slot_pitch(x) : 0, wide = c->last ? c->w.in * pitch : c->w.in;
    for (int64_t i = 0; i < (c->last ? 1 : ic); i++) {
        const float *plane = data + (c->last ? b->image * c->h.in * wide : (b->image * ic + i) * c->plan.x_plane);
        for (int64_t r = 0; r < lines; r++) {
            const int64_t at = ih + r;
            const float *line = at >= 0 && at < c->h.in ? plane + at * wide : NULL;
            float *row = to + (i * c->lines + r) * c->pitch;
            if (c->last)
                turn_line(c, row, c->lines * c->pitch, line, pitch, iw, columns);
            else
                copy_line(c, row, line, iw, columns);
        }
    }
}

/* x: where the block's first column is; off: of each tap, from there on. */
static void compute_block(const HnStep *s, const Block *b, const float *x, const int64_t *off)
{
    static const HnPlanarFn(*const levels[HN_LEVELS])[HN_PLANAR_OC] = HN_TABLE_OF_LEVELS(planar_fns);
    const HnPlanarFn(*const fns)[HN_PLANAR_OC] = levels[hn_cpu_level()];
    const Planar *c = s->state;
    const int64_t oc = c->plan.out_channels, plane = c->plan.y_plane, tile = (int64_t)most_vectors() * lanes();
    const float *w = hn_pack_data(c->weights, s, 1), *bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    const float *add = c->end.add_port >= 0 ? hn_cpu_data(&s->in[c->end.add_port]) : NULL;
    float *y = hn_cpu_data(&s->out[0]);
    const int64_t tiles = (b->columns + tile - 1) / tile;
    HnPlanarTile t = { .off = off, .taps = c->taps, .plane = plane, .lo = c->end.lo, .hi = c->end.hi };
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t i = 0; i < c->blocks; i++) {
            const int64_t m = first_of(&c->plan, c->blocks, i), channels = first_of(&c->plan, c->blocks, i + 1) - m;
            const int64_t at = (b->image * oc + m) * plane + (b->oh + r) * c->w.out + b->ow;
            t.w = w + m * c->taps;
            t.bias = bias != NULL ? bias + m : NULL;
            for (int64_t k = 0; k < tiles; k++) {
                t.x = x + r * c->h.stride * c->pitch + k * tile;
                t.y = y + at + k * tile;
                t.add = add != NULL ? add + at + k * tile : NULL;
                t.columns = (int)MIN(tile, b->columns - k * tile);
                fns[(t.columns + lanes() - 1) / lanes() - 1][channels - 1](&t);
            }
            for (int64_t k = 0; c->end.rest < c->epilogue.n && k < channels; k++) {
                const HnEpilogue rest = { .n = c->epilogue.n - c->end.rest,
                                          .channels = oc,
                                          .op = c->epilogue.op + c->end.rest };
                hn_epilogue_row(&rest, s, y + at + k * plane, at + k * plane, b->columns, m + k);
            }
        }
}

static int64_t planar_blocks(const Planar *c)
{
    return c->plan.batch * ((c->h.out + c->rows - 1) / c->rows) * ((c->w.out + c->columns - 1) / c->columns);
}

static void run_blocks(gpointer step, int thread, int64_t begin, int64_t end)
{
    const HnStep *s = step;
    const Planar *c = s->state;
    const int64_t down = (c->h.out + c->rows - 1) / c->rows, across = (c->w.out + c->columns - 1) / c->columns;
    float *copy = (float *)(gpointer)((char *)s->scratch + (gsize)thread * c->part_bytes);
    for (int64_t i = begin; i < end; i++) {
        const int64_t oh = i / across % down * c->rows, ow = i % across * c->columns;
        const Block b = { .image = i / across / down,
                          .oh = oh,
                          .rows = MIN(c->rows, c->h.out - oh),
                          .ow = ow,
                          .columns = MIN(c->columns, c->w.out - ow) };
        const float *x = hn_cpu_data(&s->in[0]);
        if (c->lies && b.columns % lanes() == 0) {
            compute_block(s, &b, x + b.image * c->plan.in_channels * c->plan.x_plane + b.ow, c->off + c->taps);
            continue;
        }
        copy_block(c, &b, s->in[0].slot, x, copy);
        compute_block(s, &b, copy, c->off);
    }
}

static gboolean planar_run(HnStep *s, GError **error)
{
    (void)error;
    const Planar *c = s->state;
    hn_parallel_for(planar_blocks(c), c->threads, run_blocks, s);
    return TRUE;
}

const HnKernel hn_cpu_conv_planar = {
    .name = "cpu.conv_planar",
    .reject = planar_reject,
    .prepare = planar_prepare,
    .run = planar_run,
    .release = planar_release,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};
