/*
 * Results of a plane lie side by side, and so do the pixels that a tap looks at, if lines of both are equally long: a
 * source with padding or strides is copied first, with its padding, each remainder by the strides in a plane of its
 * own, and results are computed for such lines. What is computed beyond a line's end is dropped. Of large planes bands
 * of lines are copied one after the other, so that what taps read is near. A 1 x 1 convolution
 * reads its source as it is, or, where planes are so far apart that they meet in the same lines of the cache, block by
 * block out of a copy.
 */
#include "cpu/sparse/sparse_conv.h"

#include <string.h>

#include "cpu/core/epilogue.h"
#include "cpu/sparse/sparse_cost.h"
#include "cpu/conv/turned.h"
#include "cpu/conv/winograd.h"
#include "cpu/sparse/sparse_rows.h"
#include "op/conv.h"

#define SMALL_MAPS \
    2.7 /* what 3x3 over maps too small for Winograd has to gain: plain results slow down their readers */
#define MOST_OFFSET 1e9 /* elements */
#define LINE 64         /* bytes: a vector that lies across two of them takes two loads */
#define MANY_READS 5    /* of a pixel, which a copy pays for then; */
#define MORE_READS 1.5  /* the same of planes that clash */
#define CLASH 1024      /* bytes: planes that are a multiple of that apart share lines of the cache */
#define BAND 262144     /* bytes: of a copy that stays in the cache of a core; */
#define FEW_LINES 4     /* a band of fewer results copies most lines twice and more */

enum { H, W };

typedef enum { READ, BLOCKS, COPIED, BANDS } Source;

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[2];
    Source source;
    int64_t rows, columns; /* of a copied plane or band, remainders by the strides side by side */
    int64_t pitch;         /* elements from channel to channel of what is read */
    int64_t line, width;   /* results computed for each line, those beyond its end included, and kept of them */
    int64_t lines;         /* of a band; those of the plane where it is whole */
    HnSparseRows lists;
    HnPack *weights;
    HnEpilogue epilogue;
    HnEpilogueEnd end;
    gboolean late; /* the epilogue comes behind whole planes */
    int threads;
    gsize copy_bytes, part_bytes, tile_bytes; /* scratch: of all threads, and copies and results of each */
} Conv;

/* --- prepare ------------------------------------------------------------------------------------------------------ */

static gboolean is_one(const HnWindowAxis *a)
{
    return a->in == 1 && a->out == 1 && a->kernel == 1 && a->pad == 0;
}

/* Where there is one axis alone its pixels are lines, which can be taken in bands; not where strides part them. */
static void axes_of(const HnConvPlan *p, HnWindowAxis *axis)
{
    const HnWindowAxis one = hn_window_one(), *last = &p->axis[p->n - 1];
    const gboolean alone = p->n == 1 || is_one(last), parted = alone && p->axis[0].stride > 1;
    axis[H] = parted ? one : p->axis[0];
    axis[W] = parted ? p->axis[0] : alone ? one : *last;
}

/* Pixels of an axis with padding that windows reach, and those that are there. */
static int64_t reach(const HnWindowAxis *a)
{
    return MAX(a->in + a->pad, (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1);
}

static gboolean is_point(const HnWindowAxis *a)
{
    return a->kernel == 1 && a->stride == 1 && a->pad == 0 && a->in == a->out;
}

/* How many times fewer products than a direct one the dense convolution that would run counts for. */
static double dense_gain(const HnConvPlan *p, const HnWindowAxis *axis)
{
    const gboolean three = p->n == 2 && p->taps == 9 && axis[H].kernel == 3;
    const gboolean plain = axis[H].stride * axis[W].stride == 1 && axis[H].dilation * axis[W].dilation == 1;
    const double gain = hn_winograd_gain(p);
    return three && plain ? MAX(gain, SMALL_MAPS) : gain;
}

/* NULL: sparse weights pay. */
static const char *count_zeros(const HnStep *s, const HnConvPlan *p, const HnWindowAxis *axis, HnSparseCount *count)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    const int64_t k = p->in_channels * p->taps;
    const gboolean point = is_point(&axis[H]) && is_point(&axis[W]);
    const int64_t line = (reach(&axis[W]) + axis[W].stride - 1) / axis[W].stride;
    if (!hn_sparse_count(w->data, p->out_channels, k, k, 1, HN_SPARSE_LEAST_ZEROS, count))
        return "few weights are 0";
    const HnSparseWork work = { .columns = point ? p->y_plane : (axis[H].out - 1) * line + axis[W].out,
                                .dense = (double)p->y_plane / dense_gain(p, axis),
                                .window = !point,
                                .reorder = s->in[0].slot->layout != NULL ? x->n / p->batch : 0 };
    return hn_sparse_pays(count, &work) ? NULL : "too few weights are 0 to gain by it";
}

static const char *sparse_reject(const HnStep *s)
{
    const HnTensor *y = s->out[0].slot->tensor;
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, HN_CONV_PLAIN, 2, &plan);
    if (reason != NULL)
        return reason;
    if (!hn_sparse_weights_stay(s, 1))
        return "weights that change";
    if (plan.group != 1)
        return "groups";
    if (2.0 * (double)y->n * (double)plan.in_channels * (double)plan.taps < HN_SPARSE_LEAST_WORK)
        return "little work";
    HnWindowAxis axis[2];
    axes_of(&plan, axis);
    if (axis[H].pad < 0 || axis[W].pad < 0)
        return "negative padding";
    if ((double)plan.in_channels * (double)(reach(&axis[H]) + axis[H].stride) *
            (double)(reach(&axis[W]) + axis[W].stride) >
        MOST_OFFSET)
        return "a large source";
    HnSparseCount count;
    return count_zeros(s, &plan, axis, &count);
}

static void sparse_release(HnStep *s)
{
    Conv *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_epilogue_clear(&c->epilogue);
    hn_sparse_rows_clear(&c->lists);
    g_free(c);
    s->state = NULL;
}

static int64_t spread_out(int64_t elements)
{
    const int64_t vector = 16, round = (elements + vector - 1) / vector * vector;
    return round * (int64_t)sizeof(float) % CLASH == 0 ? round + vector : round;
}

static int64_t bands(const Conv *c, int64_t lines)
{
    return (c->axis[H].out + lines - 1) / lines;
}

/* So many lines of results at a time. */
static void set_lines(Conv *c, int64_t lines)
{
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    c->lines = lines;
    c->rows = lines + (h->kernel - 1) * h->dilation / h->stride;
    c->pitch = spread_out(c->rows * c->columns * h->stride * w->stride);
}

static gsize copy_bytes(const Conv *c)
{
    return (gsize)(c->plan.in_channels * c->pitch) * sizeof(float);
}

/* Where sources are read, and how far apart channels lie there. */
static void lay_out(Conv *c, const HnSparseCount *count)
{
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    if (is_point(h) && is_point(w)) {
        const int64_t apart = c->plan.x_plane * (int64_t)sizeof(float);
        const double reads = (double)(count->entries4 + count->entries1) / (double)count->inputs; /* of each pixel */
        c->source = apart % CLASH == 0 && reads > MORE_READS  ? BLOCKS
                    : apart % LINE != 0 && reads > MANY_READS ? BLOCKS
                                                              : READ;
        c->pitch = c->source == READ ? c->plan.x_plane : hn_sparse_columns() + 16;
        c->line = c->width = c->plan.y_plane;
        c->lines = 1;
        return;
    }
    c->source = COPIED;
    c->columns = (reach(w) + w->stride - 1) / w->stride;
    c->line = c->columns;
    c->width = w->out;
    set_lines(c, h->out);
    if (copy_bytes(c) <= BAND)
        return;
    const int64_t apart = (h->kernel - 1) * h->dilation / h->stride; /* rows that bands share */
    const int64_t fit = BAND / ((int64_t)copy_bytes(c) / c->rows) - apart,
                  each = (h->out + c->threads - 1) / c->threads;
    const int64_t most = hn_sparse_columns(), some = MAX(MIN(fit, each), FEW_LINES);
    const int64_t lines = c->line == 1 && some > most ? some / most * most : some; /* whole blocks */
    if (lines < h->out && bands(c, lines) >= c->threads) {
        c->source = BANDS;
        set_lines(c, lines);
    }
}

static int64_t *offsets_of(const Conv *c)
{
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t plane = c->rows * c->columns;
    int64_t *offset = g_new(int64_t, (gsize)(c->plan.in_channels * c->plan.taps)), *to = offset;
    for (int64_t i = 0; i < c->plan.in_channels; i++)
        for (int64_t a = 0; a < h->kernel; a++)
            for (int64_t b = 0; b < w->kernel; b++) {
                const int64_t y = a * h->dilation, x = b * w->dilation;
                *to++ = i * c->pitch + (y % h->stride * w->stride + x % w->stride) * plane +
                        y / h->stride * c->columns + x / w->stride;
            }
    return offset;
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Conv *c = data;
    hn_sparse_pack(&c->lists, to, w->data, c->lists.count.inputs, 1);
}

static gboolean sparse_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    Conv *c = g_new0(Conv, 1);
    HnSparseCount count;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &c->plan, error))
        return FALSE;
    axes_of(&c->plan, c->axis);
    (void)count_zeros(s, &c->plan, c->axis, &count);
    c->threads = hn_cpu_threads_for(s, 2 * (double)y->n / (double)c->plan.out_channels *
                                           (double)(count.entries4 * HN_SPARSE_STRIP + count.entries1));
    lay_out(c, &count);
    c->end = hn_epilogue_end(&c->epilogue, 0);
    c->late = c->end.rest < c->epilogue.n || (c->end.add_port >= 0 && c->line != c->width);
    g_autofree int64_t *offset = offsets_of(c);
    hn_sparse_rows_init(&c->lists, &count, w->data, count.inputs, 1, offset);
    c->copy_bytes = c->source == COPIED ? copy_bytes(c) : 0;
    c->part_bytes = c->source == BLOCKS || c->source == BANDS ? copy_bytes(c) : 0;
    c->tile_bytes = (gsize)(HN_SPARSE_STRIP * hn_sparse_columns()) * sizeof(float);
    s->scratch_bytes = c->copy_bytes + (gsize)c->threads * (c->part_bytes + c->tile_bytes);
    return hn_pack_own(s, 1, pack_weights, 0, hn_sparse_floats(&count) * sizeof(float) + sizeof(float), c, &c->weights,
                       error);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const Conv *c;
    const HnStep *s;
    const float *x, *weights, *bias, *add; /* x, add: of the image */
    float *copy, *y;
    char *scratch; /* of threads */
    int64_t first; /* element of y */
} Run;

/* Lines [first, first + n) of results, read from `x`. */
typedef struct {
    int64_t first, n;
    const float *x;
} Band;

/* Channels [from, to) of the image, with padding, as the lines of results from `first` on look at them. */
static void copy_channels(const Run *r, float *copy, int64_t first, int64_t from, int64_t to)
{
    const Conv *c = r->c;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t plane = c->rows * c->columns, top = first * h->stride - h->pad; /* of the source */
    for (int64_t i = from; i < to; i++) {
        const int64_t from_row = MAX(top, 0), to_row = MIN(top + c->rows * h->stride, h->in);
        memset(copy + i * c->pitch, 0, (gsize)c->pitch * sizeof *copy);
        if (c->columns == w->in && h->stride * w->stride == 1) { /* lines follow each other in both */
            memcpy(copy + i * c->pitch + (from_row - top) * w->in, r->x + (i * h->in + from_row) * w->in,
                   (gsize)(MAX(to_row - from_row, 0) * w->in) * sizeof *copy);
            continue;
        }
        for (int64_t k = from_row; k < to_row; k++) {
            const float *line = r->x + (i * h->in + k) * w->in;
            const int64_t y = k - top;
            float *base = copy + i * c->pitch + y % h->stride * w->stride * plane + y / h->stride * c->columns;
            if (w->stride == 1) {
                memcpy(base + w->pad, line, (gsize)w->in * sizeof *line);
                continue;
            }
            for (int64_t e = 0; e < w->in; e++)
                base[(e + w->pad) % w->stride * plane + (e + w->pad) / w->stride] = line[e];
        }
    }
}

/* Results [p, p + n) of a band in a tile of the strip's outputs, those beyond lines' ends included, to their places. */
static void put(const Run *r, const Band *band, const float *tile, const HnSparseStrip *strip, int64_t p, int64_t n)
{
    const Conv *c = r->c;
    const int64_t pitch = hn_sparse_columns();
    for (int64_t at = 0; at < n;) {
        const int64_t line = (p + at) / c->line, column = (p + at) % c->line, m = MIN(c->line - column, n - at);
        for (int q = 0; q < strip->outs && column < c->width; q++)
            memcpy(r->y + (strip->first + q) * c->plan.y_plane + (band->first + line) * c->width + column,
                   tile + q * pitch + at, (gsize)MIN(m, c->width - column) * sizeof *tile);
        at += m;
    }
}

/* Positions [p, p + n) of a band, strips [from, to). */
static void block(const Run *r, const Band *band, char *scratch, int64_t p, int64_t n, int64_t from, int64_t to)
{
    const Conv *c = r->c;
    HnSparseArgs a = { .rows = &c->lists,
                       .weights = r->weights,
                       .bias = r->bias,
                       .x = band->x + p,
                       .lo = c->late ? -G_MAXFLOAT * 2 : c->end.lo,
                       .hi = c->late ? G_MAXFLOAT * 2 : c->end.hi,
                       .columns = n };
    if (c->source == BLOCKS) {
        float *copy = (float *)(gpointer)scratch;
        hn_sparse_copy(copy, c->pitch, a.x, c->plan.x_plane, c->plan.in_channels, n);
        a.x = copy;
    }
    if (c->line == c->width) {
        const int64_t first = band->first * c->width + p;
        a.y = r->y + first;
        a.y_pitch = c->plan.y_plane;
        a.add = r->add != NULL ? r->add + first : NULL;
        a.add_pitch = c->plan.y_plane;
        hn_sparse_strips(&a, from, to);
        return;
    }
    a.y = (float *)(gpointer)(scratch + c->part_bytes);
    a.y_pitch = hn_sparse_columns();
    for (int64_t k = from; k < to; k++) {
        hn_sparse_tile(&a, k);
        put(r, band, a.y, &c->lists.strip[k], p, n);
    }
}

static char *scratch_of(const Run *r, int part)
{
    return r->scratch + (gsize)part * (r->c->part_bytes + r->c->tile_bytes);
}

/* A part of a band: by positions, or where these are few by strips. */
static void part_of(const Run *r, const Band *band, char *scratch, int part, int parts)
{
    const Conv *c = r->c;
    const int64_t most = hn_sparse_columns(), strips = c->lists.count.strips;
    const int64_t positions = (band->n - 1) * c->line + c->width, blocks = (positions + most - 1) / most;
    const gboolean by_blocks = blocks >= 4 * parts || blocks % parts == 0;
    const int64_t b0 = by_blocks ? blocks * part / parts : 0, b1 = by_blocks ? blocks * (part + 1) / parts : blocks;
    const int64_t s0 = by_blocks ? 0 : strips * part / parts, s1 = by_blocks ? strips : strips * (part + 1) / parts;
    for (int64_t b = b0; b < b1; b++)
        block(r, band, scratch, b * most, MIN(most, positions - b * most), s0, s1);
}

/* Some of the plane's bands, each copied and computed by one thread; or a part of the plane, which is there. */
static void compute(const Run *r, int part, int parts)
{
    const Conv *c = r->c;
    char *scratch = scratch_of(r, part);
    if (c->source != BANDS) {
        const Band whole = { .first = 0, .n = c->lines, .x = c->source == COPIED ? r->copy : r->x };
        part_of(r, &whole, scratch, part, parts);
        return;
    }
    float *copy = (float *)(gpointer)scratch;
    const int64_t n = bands(c, c->lines);
    for (int64_t k = n * part / parts; k < n * (part + 1) / parts; k++) {
        const int64_t first = k * c->lines;
        const Band band = { .first = first, .n = MIN(c->lines, c->axis[H].out - first), .x = copy };
        copy_channels(r, copy, first, 0, c->plan.in_channels);
        part_of(r, &band, scratch, 0, 1);
    }
}

static void late_part(const Run *r, int part, int parts)
{
    const HnConvPlan *p = &r->c->plan;
    for (int64_t o = p->out_channels * part / parts; o < p->out_channels * (part + 1) / parts; o++)
        hn_epilogue_row(&r->c->epilogue, r->s, r->y + o * p->y_plane, r->first + o * p->y_plane, p->y_plane, o);
}

static void run_image(const Run *r)
{
    const Conv *c = r->c;
    const int64_t channels = c->plan.in_channels;
    if (c->threads == 1) {
        if (c->source == COPIED)
            copy_channels(r, r->copy, 0, 0, channels);
        compute(r, 0, 1);
        if (c->late)
            late_part(r, 0, 1);
        return;
    }
    if (c->source == COPIED) {
#pragma omp parallel for num_threads(c->threads)
        for (int t = 0; t < c->threads; t++)
            copy_channels(r, r->copy, 0, channels * t / c->threads, channels * (t + 1) / c->threads);
    }
#pragma omp parallel for num_threads(c->threads)
    for (int t = 0; t < c->threads; t++)
        compute(r, t, c->threads);
    if (!c->late)
        return;
#pragma omp parallel for num_threads(c->threads)
    for (int t = 0; t < c->threads; t++)
        late_part(r, t, c->threads);
}

static gboolean sparse_run(HnStep *s, GError **error)
{
    (void)error;
    const Conv *c = s->state;
    const HnConvPlan *p = &c->plan;
    const gboolean adds = !c->late && c->end.add_port >= 0;
    const float *add = adds ? hn_cpu_data(&s->in[c->end.add_port]) : NULL;
    for (int64_t n = 0; n < p->batch; n++) {
        const int64_t first = n * p->out_channels * p->y_plane;
        const Run r = { .c = c,
                        .s = s,
                        .x = (const float *)hn_cpu_data(&s->in[0]) + n * p->in_channels * p->x_plane,
                        .weights = hn_pack_data(c->weights, s, 1),
                        .bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL,
                        .add = add != NULL ? add + first : NULL,
                        .copy = s->scratch,
                        .y = (float *)hn_cpu_data(&s->out[0]) + first,
                        .scratch = (char *)s->scratch + c->copy_bytes,
                        .first = first };
        run_image(&r);
    }
    return TRUE;
}

const HnKernel hn_cpu_sparse_conv = {
    .name = "cpu.sparse_conv",
    .reject = sparse_reject,
    .prepare = sparse_prepare,
    .run = sparse_run,
    .release = sparse_release,
    .fuses = hn_epilogue_conv_fuses,
};
