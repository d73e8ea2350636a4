/*
 * ConvWeightGrad: dW[o][c][tap] is the sum over output pixels p of dy[p][o] * x[p * stride + tap][c], both channels
 * last. The pixels of a tap are rows of x and rows of dy, whose outer products are added up in registers: a product of
 * matrices that are read as they lie, without packing. Lines of pixels are given by pointers, each tap has those that
 * do not look at padding.
 *
 * Pixels of which all of dy is 0, as behind a maximum over all pixels or in padding, are left out where they are many:
 * the others of a block become lines of one pixel each.
 *
 * A source of few channels (images) would give small products: its lines are copied with their padding, and the taps
 * of one kernel row, adjacent in memory, become one row.
 */
#include <string.h>

#include "cpu/conv/weight_grad.h"

#define HN_LOOPS "cpu/conv/weight_grad_loops.h"
#include "base/every_level.h"

#define FEW_LINES 64            /* that the window of a copied source reaches over */
#define NEAR_FLOATS (12 * 1024) /* of x and dy, in the first cache */
#define LEAST_PIXELS 256        /* at once: sums are read and written for each */
#define MOST_PIXELS 1024
#define ROUND HN_WEIGHT_GRAD_ROUND
#define MAX_PARTS 32
#define PART_FLOPS 4e6
#define DENSE 0.75 /* share of pixels that are not 0 above which all are taken */

enum { D, H, W };

/* An output pixel. */
typedef struct {
    int64_t line, column;
} Pixel;

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[3];
    gboolean copied, planar; /* lines are copied, of a plain source */
    gboolean swapped;        /* rows of products are output channels, columns those of the source */
    int64_t segments;        /* products of a group: taps, or kernel rows of copied lines */
    int64_t depth;           /* floats of x in a product */
    int64_t rows, cols, pitch;
    int64_t tiles; /* of a product */
    HnWeightGradCut cut;
    int64_t block, pixels;      /* lines at a time, and pixels of these at most */
    int64_t copy_line, part;    /* floats of a copied line; of the sums of a part */
    int64_t line_bytes, thread; /* bytes: pointers of a thread; all scratch of it */
    int threads;
} WeightGrad;

/* --- what the kernels share ------------------------------------------------------------------------------------- */

static const int lanes[HN_LEVELS] = { HN_LANES_plain, HN_LANES_avx2, HN_LANES_avx512 };

const char *hn_weight_grad_plan(const HnStep *s, HnConvPlan *plan, HnWindowAxis *axis)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    const HnTensor *x = hn_cpu_in(s, 0), *dy = hn_cpu_in(s, 1), *w = hn_cpu_in(s, 2);
    int64_t dims[HN_MAX_RANK];
    if (x->ndim < 3 || x->ndim > 5)
        return "only 1 to 3 spatial axes";
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, NULL))
        return "the window does not fit";
    hn_conv_out_dims(plan, FALSE, dims);
    if (dy->ndim != x->ndim || dy->dims[0] != dims[0] || dy->dims[1] != dims[1])
        return "a gradient of another shape than the result's";
    plan->y_plane = 1;
    for (int i = 0; i < plan->n; i++) {
        if (dy->dims[2 + i] > dims[2 + i])
            return "a gradient of another shape than the result's";
        plan->axis[i].out = dy->dims[2 + i];
        plan->y_plane *= dy->dims[2 + i];
    }
    hn_window_axes(plan->n, plan->axis, 3, axis);
    return NULL;
}

HnWeightGradCut hn_weight_grad_cut(const HnConvPlan *plan, const HnWindowAxis *axis, int64_t pixels, double bytes,
                                   double flops, int64_t sums)
{
    HnWeightGradCut cut = { .lines = plan->batch * axis[D].out * axis[H].out };
    cut.across = (axis[W].out + pixels - 1) / pixels;
    cut.parts = hn_weight_grad_parts(cut.lines * cut.across, bytes, flops, sums);
    return cut;
}

int64_t hn_weight_grad_parts(int64_t units, double bytes, double flops, int64_t sums)
{
    const double small = bytes / (4 * sizeof(float) * (double)sums),
                 most = MIN(MIN((double)units, small), flops / PART_FLOPS);
    int64_t parts = 1;
    while (parts < MAX_PARTS && (double)(parts * 2) <= most)
        parts *= 2;
    return parts;
}

void hn_weight_grad_join(float *sums, int64_t parts, int64_t pitch, int64_t from, int64_t to)
{
    for (int64_t step = 1; step < parts; step *= 2)
        for (int64_t k = 0; k + step < parts; k += 2 * step) {
            float *restrict a = sums + k * pitch;
            const float *restrict b = a + step * pitch;
            for (int64_t i = from; i < to; i++)
                a[i] += b[i];
        }
}

void hn_weight_grad_copy(float *to, int64_t channels, const float *line, int64_t pitch, int64_t in, int64_t first,
                         int64_t n)
{
    const int64_t lo = line != NULL ? CLAMP(-first, 0, n) : n, hi = CLAMP(in - first, lo, n);
    memset(to, 0, (gsize)(lo * channels) * sizeof *to);
    static void (*const copy[])(float *, const float *, int64_t, int64_t, int64_t) = HN_TABLE_OF_LEVELS(copy_pixels);
    if (pitch == channels && hi > lo)
        memcpy(to + lo * channels, line + (first + lo) * pitch, (gsize)((hi - lo) * channels) * sizeof *to);
    else if (hi > lo)
        copy[hn_cpu_level()](to + lo * channels, line + (first + lo) * pitch, pitch, hi - lo, channels);
    memset(to + hi * channels, 0, (gsize)((n - hi) * channels) * sizeof *to);
}

HnWeightGradSumFn hn_weight_grad_sum(void)
{
    static const HnWeightGradSumFn fns[] = HN_TABLE_OF_LEVELS(sum_rows);
    return fns[hn_cpu_level()];
}

/* --- products in tiles ------------------------------------------------------------------------------------------ */

/* Strips of rows in a panel of columns. */
static int64_t strips_of(int64_t rows, gboolean two)
{
    return two && hn_cpu_level() < 2 ? (rows + 5) / 6 : (rows + HN_WEIGHT_GRAD_ROWS - 1) / HN_WEIGHT_GRAD_ROWS;
}

/* Only the last panel may be of one vector. */
int64_t hn_weight_grad_tiles(int64_t rows, int64_t cols)
{
    const int64_t width = 2 * lanes[hn_cpu_level()], left = cols % width;
    return cols / width * strips_of(rows, TRUE) + (left > 0 ? strips_of(rows, left > width / 2) : 0);
}

void hn_weight_grad_product(const HnWeightGradTile *t, int64_t rows, int64_t cols, int64_t from, int64_t to)
{
    static const HnWeightGradFn(*const levels[])[HN_WEIGHT_GRAD_ROWS] = HN_TABLE_OF_LEVELS(tiles);
    const int level = hn_cpu_level();
    const int64_t width = 2 * lanes[level];
    HnWeightGradTile one = *t;
    int64_t at = 0; /* the panel's first tile */
    for (int64_t column = 0; column < cols && at < to; column += width) {
        const gboolean two = cols - column > width / 2;
        const int64_t strips = strips_of(rows, two), more = rows % strips, each = rows / strips;
        const int64_t begin = MAX(from - at, 0), end = MIN(to - at, strips);
        one.cols = (int)MIN(width, cols - column);
        one.b_at = t->b_at + column;
        for (int64_t i = begin; i < end; i++) { /* the first `more` have a row more */
            const int64_t row = i * each + MIN(i, more);
            one.a_at = t->a_at + row;
            one.c = t->c + row * t->c_pitch + column;
            levels[level][two][each + (i < more) - 1](&one);
        }
        at += strips;
    }
}

/* In a tile two products or loads in a cycle, four cycles to the next sum. */
double hn_weight_grad_cycles(int64_t rows, int64_t cols)
{
    const int64_t width = 2 * lanes[hn_cpu_level()];
    double sum = 0;
    for (int64_t c = 0; c < cols; c += width) {
        const gboolean two = cols - c > width / 2;
        const double strips = (double)strips_of(rows, two), vectors = two ? 2 : 1, each = (double)rows / strips;
        const double busy = MAX(each * vectors, each + vectors) / 2;
        sum += strips * MAX(busy, 4);
    }
    return sum;
}

/* --- prepare ------------------------------------------------------------------------------------------------------ */

static const char *grad_reject(const HnStep *s)
{
    HnConvPlan plan;
    HnWindowAxis axis[3];
    return hn_weight_grad_plan(s, &plan, axis);
}

/* A convolution that looks at each pixel once has one line of all of them. */
static void join_lines(WeightGrad *c)
{
    HnConvPlan *p = &c->plan;
    for (int i = 0; i < 3; i++) {
        const HnWindowAxis *a = &c->axis[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad != 0 || a->in != a->out)
            return;
    }
    c->axis[W].in = c->axis[W].out = p->batch * p->x_plane;
    c->axis[H].in = c->axis[H].out = c->axis[D].in = c->axis[D].out = p->batch = 1;
}

static void choose_products(WeightGrad *c)
{
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    c->copied = p->group == 1 && p->n <= 2 && p->in_channels < HN_WEIGHT_GRAD_FEW && w->kernel > 1 &&
                w->dilation == 1 && (h->kernel - 1) * h->dilation < FEW_LINES;
    c->depth = (c->copied ? w->kernel : 1) * p->in_channels;
    c->segments = c->copied ? h->kernel : p->taps;
    c->swapped = hn_weight_grad_cycles(p->out_channels, c->depth) <= hn_weight_grad_cycles(c->depth, p->out_channels);
    c->rows = c->swapped ? p->out_channels : c->depth;
    c->cols = c->swapped ? c->depth : p->out_channels;
    c->pitch = (c->cols + ROUND - 1) / ROUND * ROUND;
    c->tiles = hn_weight_grad_tiles(c->rows, c->cols);
    c->part = (p->group * c->segments * c->rows * c->pitch + p->group * p->out_channels + ROUND - 1) / ROUND * ROUND;
}

/* Lines that are computed at once, and the scratch memory for them. */
static void measure(WeightGrad *c, double bytes, double flops)
{
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t pixels = CLAMP(NEAR_FLOATS / (c->depth + p->out_channels), LEAST_PIXELS, MOST_PIXELS);
    c->cut = hn_weight_grad_cut(p, c->axis, pixels, bytes, flops, c->part);
    c->block = c->cut.across > 1 ? 1 : MIN(MAX(1, pixels / w->out), c->cut.lines);
    const int64_t columns = (w->out + c->cut.across - 1) / c->cut.across;
    c->pixels = c->block * columns;
    c->line_bytes = (c->pixels * (int64_t)(2 * sizeof(float *) + sizeof(Pixel)) + 63) / 64 * 64;
    int64_t copied = 0;
    if (c->copied) {
        c->copy_line = (((columns - 1) * w->stride + w->kernel) * p->in_channels + ROUND - 1) / ROUND * ROUND;
        copied = c->block * (h->stride + (h->kernel - 1) * h->dilation) * c->copy_line;
    }
    c->thread = c->line_bytes + copied * (int64_t)sizeof(float);
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *dy = hn_cpu_in(s, 1);
    (void)error;
    WeightGrad *c = g_new0(WeightGrad, 1);
    s->state = c;
    hn_weight_grad_plan(s, &c->plan, c->axis);
    const double flops = 2 * (double)dy->n * (double)c->plan.in_channels * (double)c->plan.taps;
    join_lines(c);
    choose_products(c);
    measure(c, (double)x->bytes + (double)dy->bytes, flops);
    c->threads = hn_cpu_threads_for(s, flops);
    c->planar = c->copied && !hn_slot_is_last(s->in[0].slot);
    s->in[0].want = c->planar ? NULL : hn_layout_last(x);
    s->in[1].want = hn_layout_last(dy);
    s->in[2].unread = TRUE;
    s->scratch_bytes = (gsize)(c->threads * c->thread) + (gsize)(c->cut.parts * c->part) * sizeof(float);
    return TRUE;
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const WeightGrad *c;
    const float *x, *dy;
    float *sums, *dw, *db;
    int64_t x_pitch, y_pitch;
} Run;

/* A block of lines, and the piece of each: outputs [begin, end). */
typedef struct {
    const float **x, **dy;
    float *copy;
    Pixel *some;    /* those that are not 0 */
    int64_t n_some; /* -1: all are taken */
    int64_t from, to, begin, end;
    int64_t lines, first; /* of a tap: lines, and the first output of each */
    int64_t n;
    gboolean fresh; /* the first one of a part */
} Block;

/* Pointers to the lines in which the tap lies inside of the source. */
static void find_lines(const Run *r, Block *b, int64_t kd, int64_t kh, int64_t kw)
{
    const HnWindowAxis *d = &r->c->axis[D], *h = &r->c->axis[H], *w = &r->c->axis[W];
    int64_t oh = b->from % h->out, od = b->from / h->out % d->out, image = b->from / h->out / d->out, lo, hi;
    hn_window_range(w, kw, &lo, &hi);
    b->first = MAX(lo, b->begin);
    b->n = MIN(hi, b->end) - b->first;
    b->lines = 0;
    const int64_t column = b->first * w->stride + kw * w->dilation - w->pad;
    for (int64_t line = b->from; line < b->to && b->n > 0; line++) {
        const int64_t id = od * d->stride + kd * d->dilation - d->pad, ih = oh * h->stride + kh * h->dilation - h->pad;
        if (id >= 0 && id < d->in && ih >= 0 && ih < h->in) {
            b->x[b->lines] = r->x + (((image * d->in + id) * h->in + ih) * w->in + column) * r->x_pitch;
            b->dy[b->lines++] = r->dy + (line * w->out + b->first) * r->y_pitch;
        }
        if (++oh == h->out) {
            oh = 0;
            if (++od == d->out) {
                od = 0;
                image++;
            }
        }
    }
}

/* Looks for the pixels that are not 0. */
static void find_pixels(const Run *r, Block *b)
{
    const HnWindowAxis *w = &r->c->axis[W];
    const int64_t channels = r->c->plan.group * r->c->plan.out_channels;
    const int64_t most = (int64_t)(DENSE * (double)((b->to - b->from) * (b->end - b->begin)));
    b->n_some = 0;
    for (int64_t line = b->from; line < b->to && b->n_some <= most; line++)
        for (int64_t column = b->begin; column < b->end; column++)
            if (hn_weight_grad_next(r->dy + (line * w->out + column) * r->y_pitch, 0, channels) < channels)
                b->some[b->n_some++] = (Pixel){ line, column };
    if (b->n_some > most)
        b->n_some = -1;
}

/* As find_lines(), of the pixels that are not 0. */
static void find_some(const Run *r, Block *b, int64_t kd, int64_t kh, int64_t kw)
{
    const HnWindowAxis *d = &r->c->axis[D], *h = &r->c->axis[H], *w = &r->c->axis[W];
    b->n = 1;
    b->lines = 0;
    for (int64_t i = 0; i < b->n_some; i++) {
        const int64_t line = b->some[i].line, column = b->some[i].column;
        const int64_t oh = line % h->out, od = line / h->out % d->out, image = line / h->out / d->out;
        const int64_t id = od * d->stride + kd * d->dilation - d->pad, ih = oh * h->stride + kh * h->dilation - h->pad;
        const int64_t iw = column * w->stride + kw * w->dilation - w->pad;
        if (id < 0 || id >= d->in || ih < 0 || ih >= h->in || iw < 0 || iw >= w->in)
            continue;
        b->x[b->lines] = r->x + (((image * d->in + id) * h->in + ih) * w->in + iw) * r->x_pitch;
        b->dy[b->lines++] = r->dy + (line * w->out + column) * r->y_pitch;
    }
}

/* Source line ih of an image for the block's outputs. */
static void copy_line(const Run *r, const Block *b, float *to, int64_t image, int64_t ih)
{
    const WeightGrad *c = r->c;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t channels = c->plan.in_channels, first = b->begin * w->stride - w->pad;
    const int64_t n = (b->end - b->begin - 1) * w->stride + w->kernel;
    const gboolean inside = ih >= 0 && ih < h->in;
    if (!c->planar) {
        hn_weight_grad_copy(to, channels, inside ? r->x + (image * h->in + ih) * w->in * r->x_pitch : NULL, r->x_pitch,
                            w->in, first, n);
        return;
    }
    const float *line = r->x + image * channels * h->in * w->in + ih * w->in;
    const int64_t lo = inside ? CLAMP(-first, 0, n) : n, hi = CLAMP(w->in - first, lo, n);
    memset(to, 0, (gsize)(n * channels) * sizeof *to);
    for (int64_t k = 0; k < channels; k++, line += h->in * w->in)
        for (int64_t i = lo; i < hi; i++)
            to[i * channels + k] = line[first + i];
}

/* The block's source lines, each once, and pointers to the first one of each output line. */
static void copy_lines(const Run *r, Block *b)
{
    const WeightGrad *c = r->c;
    const HnWindowAxis *h = &c->axis[H];
    float *to = b->copy;
    for (int64_t line = b->from, n; line < b->to; line += n) { /* of one image each */
        const int64_t image = line / h->out, oh = line % h->out;
        n = MIN(b->to - line, h->out - oh);
        const int64_t rows = (n - 1) * h->stride + (h->kernel - 1) * h->dilation + 1;
        for (int64_t i = 0; i < n; i++) {
            b->x[line - b->from + i] = to + i * h->stride * c->copy_line;
            b->dy[line - b->from + i] = r->dy + ((line + i) * c->axis[W].out + b->begin) * r->y_pitch;
        }
        for (int64_t i = 0; i < rows; i++, to += c->copy_line)
            copy_line(r, b, to, image, oh * h->stride - h->pad + i);
    }
    b->lines = b->to - b->from;
    b->n = b->end - b->begin;
}

/* Tiles [from, to) of one segment of a group. */
static void run_tiles(const Run *r, const Block *b, float *sums, int64_t group, int64_t segment, int64_t from,
                      int64_t to)
{
    const WeightGrad *c = r->c;
    const HnConvPlan *p = &c->plan;
    const int64_t x_step = (c->copied ? p->in_channels : r->x_pitch) * c->axis[W].stride;
    const int64_t x_at = group * p->in_channels + (c->copied ? segment * c->axis[H].dilation * c->copy_line : 0);
    const int64_t y_at = group * p->out_channels;
    const HnWeightGradTile t = { .a = c->swapped ? b->dy : b->x,
                                 .b = c->swapped ? b->x : b->dy,
                                 .a_at = c->swapped ? y_at : x_at,
                                 .b_at = c->swapped ? x_at : y_at,
                                 .lines = b->lines,
                                 .n = b->n,
                                 .a_step = c->swapped ? r->y_pitch : x_step,
                                 .b_step = c->swapped ? x_step : r->y_pitch,
                                 .c = sums + (group * c->segments + segment) * c->rows * c->pitch,
                                 .c_pitch = c->pitch,
                                 .fresh = b->fresh };
    hn_weight_grad_product(&t, c->rows, c->cols, from, to);
}

/* Share `share` of a block's tiles. */
static void run_block(const Run *r, Block *b, float *sums, int share, int shares)
{
    const WeightGrad *c = r->c;
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t tiles = c->tiles, all = p->group * c->segments * tiles;
    const int64_t from = all * share / shares, to = all * (share + 1) / shares;
    if (c->copied)
        copy_lines(r, b);
    else
        find_pixels(r, b);
    for (int64_t k = 0; k < c->segments; k++) {
        gboolean found = c->copied;
        for (int64_t g = 0; g < p->group; g++) {
            const int64_t at = (k * p->group + g) * tiles, lo = MAX(from - at, 0), hi = MIN(to - at, tiles);
            if (lo >= hi)
                continue;
            if (!found)
                (b->n_some < 0 ? find_lines : find_some)(r, b, k / w->kernel / h->kernel, k / w->kernel % h->kernel,
                                                         k % w->kernel);
            found = TRUE;
            run_tiles(r, b, sums, g, k, lo, hi);
        }
    }
    if (r->db != NULL && share == 0) {
        const int64_t at = b->from * w->out + b->begin, n = (b->to - b->from - 1) * w->out + b->end - b->begin;
        const int64_t channels = p->group * p->out_channels;
        hn_weight_grad_sum()(sums + p->group * c->segments * c->rows * c->pitch, r->dy + at * r->y_pitch, r->y_pitch, n,
                             channels);
    }
}

static void run_part(const Run *r, int64_t part, char *scratch, int share, int shares)
{
    const WeightGrad *c = r->c;
    const int64_t across = c->cut.across, units = c->cut.lines * across;
    const int64_t from = units * part / c->cut.parts, to = units * (part + 1) / c->cut.parts;
    Block b = { .x = (const float **)(gpointer)scratch, .copy = (float *)(gpointer)(scratch + c->line_bytes) };
    b.dy = b.x + c->pixels;
    b.some = (Pixel *)(gpointer)(b.dy + c->pixels);
    for (int64_t at = from; at < to; at += c->block) {
        b.fresh = at == from;
        b.from = at / across;
        b.to = across > 1 ? b.from + 1 : MIN(at + c->block, to);
        b.begin = c->axis[W].out * (at % across) / across;
        b.end = c->axis[W].out * (at % across + 1) / across;
        run_block(r, &b, r->sums + part * c->part, share, shares);
    }
}

/* Share `share` of the parts; where these are too few, of the tiles of each. */
static void run_share(const Run *r, char *scratch, int share, int shares)
{
    const WeightGrad *c = r->c;
    if (c->cut.parts < shares) {
        for (int64_t k = 0; k < c->cut.parts; k++)
            run_part(r, k, scratch, share, shares);
        return;
    }
    for (int64_t k = c->cut.parts * share / shares; k < c->cut.parts * (share + 1) / shares; k++)
        run_part(r, k, scratch, 0, 1);
}

/* The sums, in the order of the weights, for output channels [from, to) of all groups. */
static void write_weights(const Run *r, int64_t from, int64_t to)
{
    const WeightGrad *c = r->c;
    const HnConvPlan *p = &c->plan;
    const int64_t together = p->taps / c->segments, product = c->rows * c->pitch;
    for (int64_t m = from; m < to; m++) {
        const int64_t g = m / p->out_channels, o = m % p->out_channels, row = c->swapped ? c->pitch : 1;
        const float *in = r->sums + g * c->segments * product + o * row;
        float *out = r->dw + m * p->in_channels * p->taps;
        for (int64_t k = 0; k < p->taps; k++) {
            const float *v = in + k / together * product;
            const int64_t first = k % together * p->in_channels, step = c->swapped ? 1 : c->pitch;
            for (int64_t i = 0; i < p->in_channels; i++)
                out[i * p->taps + k] = v[(first + i) * step];
        }
    }
}

static gboolean grad_run(HnStep *s, GError **error)
{
    (void)error;
    const WeightGrad *c = s->state;
    const HnConvPlan *p = &c->plan;
    const int n = c->threads;
    const int64_t channels = p->group * p->out_channels, sums = p->group * c->segments * c->rows * c->pitch;
    char *scratch = (char *)s->scratch + (gsize)(c->cut.parts * c->part) * sizeof(float);
    const Run r = { .c = c,
                    .x = hn_cpu_data(&s->in[0]),
                    .dy = hn_cpu_data(&s->in[1]),
                    .sums = s->scratch,
                    .dw = hn_cpu_data(&s->out[0]),
                    .db = s->n_out > 1 && s->out[1].slot != NULL ? hn_cpu_data(&s->out[1]) : NULL,
                    .x_pitch = hn_slot_pitch(s->in[0].slot),
                    .y_pitch = hn_slot_pitch(s->in[1].slot) };
    for (int64_t k = 0; r.db != NULL && k < c->cut.parts; k++)
        memset(r.sums + k * c->part + sums, 0, (gsize)channels * sizeof(float));
    if (n == 1) {
        run_share(&r, scratch, 0, 1);
        hn_weight_grad_join(r.sums, c->cut.parts, c->part, 0, c->part);
        write_weights(&r, 0, channels);
    } else {
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            run_share(&r, scratch + i * c->thread, i, n);
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            hn_weight_grad_join(r.sums, c->cut.parts, c->part, c->part * i / n, c->part * (i + 1) / n);
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            write_weights(&r, channels * i / n, channels * (i + 1) / n);
    }
    if (r.db != NULL)
        memcpy(r.db, r.sums + sums, (gsize)channels * sizeof(float));
    return TRUE;
}

static const HnKernel weight_grad = {
    .name = "cpu.convweightgrad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cpu_release,
    .pitched = TRUE,
};

const HnKernel *const hn_cpu_convweightgrad[] = { &hn_cpu_weight_grad_few, &hn_cpu_weight_grad_depthwise,
                                                  &hn_cpu_weight_grad_winograd, &weight_grad, NULL };
