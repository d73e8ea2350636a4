/*
 * Depthwise convolutions channels last: each channel has a window of its own. Vectors are channels; tiles of a few
 * output columns read their inputs through pointers, so that a column or row of padding is one of zeros.
 *
 * Groups of a few channels differ in their tiles, weights and name only (depthwise_group.h).
 *
 * Channels go in strips whose rows stay in the first cache from one row of outputs to the next. Where a channel of the
 * source has a few outputs, it is copied as often first.
 */
#include "cpu/conv/depthwise.h"

#include <string.h>

#include "cpu/conv/depthwise_group.h"
#include "cpu/conv/depthwise_packed.h"
#include "cpu/conv/turned.h"
#include "cpu/core/epilogue.h"
#include "op/conv.h"
#include "op/index.h"

#define SMALL_FLOPS 1e5        /* below it a plain source is left to cpu.conv: reorders would cost more */
#define NEAR_BYTES (640 << 10) /* of a source that is likely in the second cache; others are read in order */
#define STRIP_BYTES (24 << 10) /* of source rows that a row of outputs looks at */
#define STRIP_LEAST 32         /* channels */
#define TILE_BYTES (40 << 10)  /* of weights and inputs of all channels of a tile, which stay in the first cache */
#define SAME_LINE 512          /* channels, of pixels that are in the same lines of the first cache */
#define MAX_TAPS 1024
#define MOST_TIMES 4   /* outputs of a channel */
#define MAX_SPREAD 256 /* columns from output to output, from tap to tap: there is a pointer for each */

#define HN_LOOPS "cpu/conv/depthwise_loops.h"
#include "base/every_level.h"

typedef struct {
    HnConvPlan plan;
    gboolean turned;         /* weights are those of a ConvTranspose */
    HnWindowAxis axis[3];    /* depth, height, width */
    int64_t channels, strip; /* of the result */
    int64_t times;           /* outputs of each channel of the source */
    int64_t columns, taps;   /* input columns of the widest tile; taps of the window */
    int64_t each;            /* inputs of each output: channels of a group */
    HnDepthGroup group;      /* where these are several */
    const HnDepthFn *fn;     /* by outputs of a tile */
    float *weights;          /* [taps][channels], or as `group` says; the bias [channels]; as many zeros; spread */
    float *bias;
    const float *zeros, *spread;
    int64_t w_row;      /* of the weights: elements from a row of the window to the next one */
    gboolean bias_read; /* the bias is an input at run time, with nothing to be folded into it */
    HnEpilogue epilogue;
    int folded; /* operations that went into weights and bias */
    HnEpilogueEnd end;
    HnPost post[HN_FUSED_MAX + 1];
    int posts;
    int threads;
    gsize part_bytes; /* scratch of a thread */
    gboolean packed;  /* rows are copied first */
    HnDepthPacked rows;
} Depthwise;

/* Whatever the groups are. */
static const char *reject(const HnStep *s, HnConvKind kind, HnConvPlan *plan)
{
    const HnTensor *y = s->out[0].slot->tensor;
    const char *reason = hn_conv_reject(s, kind, 3, plan);
    if (reason != NULL)
        return reason;
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    const HnWindowAxis *v = &plan->axis[plan->n - 1];
    if (plan->taps > MAX_TAPS || v->stride > MAX_SPREAD || v->dilation > MAX_SPREAD)
        return "a window that is large or spread wide";
    const double flops = 2.0 * (double)y->n * (double)plan->in_channels * (double)plan->taps;
    return !hn_slot_is_last(s->in[0].slot) && flops < SMALL_FLOPS ? "too small to change the layout for" : NULL;
}

static const char *of_one(const HnConvPlan *p, int most)
{
    return p->in_channels != 1 || p->out_channels > most || p->group < 4 ? "groups of several channels, or few groups"
                                                                         : NULL;
}

static const char *depthwise_reject(const HnStep *s)
{
    HnConvPlan plan;
    const char *reason = reject(s, HN_CONV_PLAIN, &plan);
    return reason != NULL ? reason : of_one(&plan, MOST_TIMES);
}

static const char *turned_reject(const HnStep *s)
{
    HnConvPlan plan;
    const char *reason = reject(s, HN_CONV_TURNED, &plan);
    return reason != NULL ? reason : of_one(&plan, 1);
}

static const char *group_reject(const HnStep *s)
{
    HnConvPlan plan;
    const char *reason = reject(s, HN_CONV_PLAIN, &plan);
    if (reason != NULL)
        return reason;
    if (plan.out_channels != plan.in_channels || plan.group < 2)
        return "no groups, or other channels than those that are read";
    if (hn_cpu_in_bf16(s, 2 * (double)s->out[0].slot->tensor->n * (double)plan.in_channels * (double)plan.taps))
        return "bf16 is asked for";
    return hn_depth_group_fits(plan.in_channels, plan.group * plan.in_channels)
               ? NULL
               : "groups of other numbers of channels than those of which a vector is made";
}

static void depthwise_release(HnStep *s)
{
    Depthwise *d = s->state;
    if (d == NULL)
        return;
    hn_epilogue_clear(&d->epilogue);
    hn_depth_packed_clear(&d->rows);
    g_free(d->weights);
    g_free(d);
    s->state = NULL;
}

static float element(const HnTensor *t, int64_t i)
{
    float v; /* weights of a mapped file may lie anywhere */
    memcpy(&v, (const char *)t->data + i * (int64_t)sizeof v, sizeof v);
    return v;
}

/* The weight of output c's input i at a tap. */
static void put(const Depthwise *d, int64_t c, int64_t i, int64_t tap, float v)
{
    const HnDepthGroup *g = &d->group;
    const int64_t last = d->channels - g->lanes; /* first channel of the last vector */
    if (d->each == 1) {
        d->weights[tap * d->channels + c] = v;
        return;
    }
    if (c < d->channels / g->lanes * g->lanes)
        d->weights[hn_depth_group_at(g, c / g->lanes, tap, i) + c % g->lanes] = v;
    if (c >= last && last % g->lanes > 0)
        d->weights[hn_depth_group_at(g, d->channels / g->lanes, tap, i) + c - last] = v;
}

/* Scales and shifts right behind the sum go into weights and bias. */
static void fold(const HnStep *s, G_GNUC_UNUSED gpointer data)
{
    Depthwise *d = s->state;
    const HnTensor *w = hn_cpu_in(s, 1), *b = d->bias_read ? NULL : hn_cpu_in(s, 2);
    for (int64_t c = 0; c < d->channels; c++) {
        double scale, shift = b != NULL ? (double)element(b, c) : 0;
        hn_epilogue_constants(&d->epilogue, d->folded, c, &scale, &shift);
        d->bias[c] = (float)shift;
        for (int64_t k = 0; k < d->each * d->taps; k++) {
            const int64_t t = k % d->taps;
            put(d, c, k / d->taps, d->turned ? d->taps - 1 - t : t,
                (float)((double)element(w, c * d->each * d->taps + k) * scale));
        }
    }
    if (d->packed)
        hn_depth_packed_fill(&d->rows, d->weights);
}

/* What is done where: in the weights, in registers, behind a row of the result. */
static void choose_along(Depthwise *d, HnStep *s)
{
    const HnEpilogue *a = &d->epilogue;
    while (!d->bias_read && d->folded < a->n && a->op[d->folded].kind == HN_EPILOGUE_AFFINE)
        d->folded++;
    d->end = hn_epilogue_end(a, d->folded);
    d->posts = hn_epilogue_posts(a, &d->end, d->post);
    for (int k = 0; k < a->n; k++)
        if (a->op[k].kind == HN_EPILOGUE_ADD)
            s->in[a->op[k].port].want = hn_layout_last(s->out[0].slot->tensor);
}

/* Runs that an axis of outputs and inputs falls into, each without dilation (Line): 1 where windows have strides. */
static int64_t lines_of(const HnWindowAxis *v)
{
    return v->stride == 1 ? v->dilation : 1;
}

static int level_for(int64_t channels)
{
    int level = hn_cpu_level();
    while (level > 0 && channels < 4 << level)
        level--;
    return level;
}

const HnDepthFn *hn_depth_tiles(int kind, int64_t channels, int64_t *lanes)
{
    static const HnDepthFn(*const levels[HN_LEVELS])[HN_DEPTH_NX] = HN_TABLE_OF_LEVELS(tiles);
    const int level = level_for(channels);
    *lanes = 4 << level;
    return levels[level][kind];
}

void hn_depth_copy(int64_t lanes, float *to, int64_t line, const float *from, int64_t step, int64_t n, int64_t channels)
{
    static void (*const levels[HN_LEVELS])(float *, int64_t, const float *, int64_t, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(copy);
    levels[lanes / 8](to, line, from, step, n, channels);
}

/* Of tiles that read the source as it lies. */
static int kind_of(const HnWindowAxis *w)
{
    if ((w->dilation == 1 || w->stride == 1) && w->stride <= 2 && (w->kernel == 3 || w->kernel == 5))
        return (w->kernel == 3 ? HN_DEPTH_3_1 : HN_DEPTH_5_1) + (int)w->stride - 1;
    if (w->stride == 1 && w->kernel == 7)
        return HN_DEPTH_7_1;
    return w->stride == 1 && w->kernel >= 4 ? HN_DEPTH_LONG : HN_DEPTH_ANY;
}

/* Copying a pixel of the source takes about as long as twelve taps save. Where half vectors read pixels that are a
 * multiple of 2 KiB apart, few lines of the first cache serve all of them, and copying pays for small windows, too. */
static gboolean choose_packed(const Depthwise *d)
{
    const HnWindowAxis *a = &d->axis[0], *h = &d->axis[1], *v = &d->axis[2];
    const int kind = kind_of(v);
    if (a->kernel * h->kernel < 3)
        return FALSE; /* few rows of a window share a copy */
    if (level_for(d->channels) < 2 && d->channels % SAME_LINE == 0)
        return TRUE;
    return (kind == HN_DEPTH_7_1 || kind == HN_DEPTH_LONG || kind == HN_DEPTH_ANY) && v->kernel >= 4 &&
           d->taps >= 12 * a->stride * h->stride * v->stride;
}

/* Where the copied source lies in scratch memory, behind what each thread has. */
static gsize copies_at(const Depthwise *d)
{
    return (d->part_bytes * (gsize)d->threads + 63) / 64 * 64;
}

/* And where weights, the bias and what else is constant lie. */
static void choose_tiles(Depthwise *d)
{
    const HnWindowAxis *v = &d->axis[2];
    int64_t lanes, floats = d->taps * d->channels;
    d->w_row = v->kernel * d->channels;
    if (d->each == 1) {
        d->fn = hn_depth_tiles(kind_of(v), d->channels, &lanes);
    } else {
        d->fn = hn_depth_group_tiles(v, d->each, d->channels, &lanes);
        d->group = (HnDepthGroup){
            .each = d->each, .lanes = lanes, .rows = d->axis[0].kernel * d->axis[1].kernel, .kernel = v->kernel
        };
        d->w_row = d->each * v->kernel * lanes;
        floats = (d->channels + lanes - 1) / lanes * d->group.rows * d->w_row;
    }
    d->weights = g_new0(float, (gsize)(floats + 2 * d->channels + d->each * lanes));
    d->bias = d->weights + floats;
    d->zeros = d->bias + d->channels;
    d->spread = d->zeros + d->channels;
    if (d->each > 1)
        hn_depth_group_spread(d->bias + 2 * d->channels, d->each, lanes);
}

static gboolean prepare(HnStep *s, gboolean turned, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *b = hn_cpu_in(s, 2), *y = s->out[0].slot->tensor;
    Depthwise *d = g_new0(Depthwise, 1);
    s->state = d;
    hn_epilogue_init(&d->epilogue, s, 1);
    if (!hn_conv_plan_of(s, turned, &d->plan, error))
        return FALSE;
    d->turned = turned;
    hn_window_axes(d->plan.n, d->plan.axis, 3, d->axis);
    d->each = d->plan.in_channels;
    d->times = d->plan.out_channels / d->each;
    d->channels = d->plan.group * d->plan.out_channels;
    d->taps = d->plan.taps;
    d->bias_read = b != NULL && !s->in[2].slot->constant;
    choose_tiles(d);
    choose_along(d, s);
    d->packed = d->each == 1 && choose_packed(d) && hn_depth_packed_init(&d->rows, d->axis, d->channels);
    fold(s, NULL);
    if (s->in[1].slot->variable)
        hn_step_renews(s, fold, NULL);
    const HnWindowAxis *v = &d->axis[2];
    d->columns = (HN_DEPTH_NX - 1) * v->stride + (v->kernel - 1) * (v->dilation / lines_of(v)) + 1;
    const int64_t rows = d->axis[0].kernel * d->axis[1].kernel, weights = (d->each - 1) * d->taps;
    const int64_t row = (rows * v->in + weights) * (int64_t)sizeof(float);
    const int64_t tile =
        (2 * d->taps + weights + rows * HN_DEPTH_NX) * (int64_t)sizeof(float); /* weights and inputs of one */
    d->strip = d->channels;
    if (d->end.rest == d->epilogue.n && (x->bytes <= NEAR_BYTES || tile * d->channels > TILE_BYTES))
        d->strip = MAX(STRIP_BYTES / (x->bytes <= NEAR_BYTES ? row : tile) / 16 * 16, STRIP_LEAST);
    d->threads = hn_cpu_threads_for(s, 2 * (double)y->n * (double)(d->each * d->taps));
    d->part_bytes = (gsize)(rows * (d->columns + 1) + 2 * rows) * sizeof(void *);
    if (d->packed)
        d->part_bytes = hn_depth_packed_bytes(&d->rows);
    s->scratch_bytes = copies_at(d) + (d->times > 1 ? (gsize)(x->n * d->times) * sizeof(float) : 0);
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    s->in[1].unread = TRUE;
    if (b != NULL)
        s->in[2].unread = !d->bias_read;
    return TRUE;
}

static gboolean depthwise_prepare(HnStep *s, GError **error)
{
    return prepare(s, FALSE, error);
}

static gboolean turned_prepare(HnStep *s, GError **error)
{
    return prepare(s, TRUE, error);
}

/* What a row of outputs looks at: rows of the source inside it, and the weights for each. */
typedef struct {
    const float **from; /* [rows][columns], for a tile */
    const float **w, **row;
    int rows;
} Rows;

static void find_rows(const Depthwise *d, Rows *r, const float *x, int64_t pitch, int64_t depth, int64_t height)
{
    const HnWindowAxis *a = &d->axis[0], *h = &d->axis[1], *v = &d->axis[2];
    r->rows = 0;
    for (int64_t i = 0; i < a->kernel; i++) {
        const int64_t z = depth * a->stride + i * a->dilation - a->pad;
        for (int64_t j = 0; j < h->kernel && z >= 0 && z < a->in; j++) {
            const int64_t y = height * h->stride + j * h->dilation - h->pad;
            if (y < 0 || y >= h->in)
                continue;
            r->row[r->rows] = x + (z * h->in + y) * v->in * pitch;
            r->w[r->rows++] = d->weights + (i * h->kernel + j) * d->w_row;
        }
    }
}

/* Outputs of a row that lie side by side, or as far apart as the taps of a window do, and the inputs that they see: an
 * axis without dilation, but for windows with strides. */
typedef struct {
    HnWindowAxis v;
    int64_t shift, pitch; /* elements to the first input, from one to the next */
} Line;

/* Output `rest` and every dilation-th one behind it. */
static Line line_of(const HnWindowAxis *v, int64_t pitch, int64_t rest)
{
    const int64_t n = lines_of(v);
    if (n == 1)
        return (Line){ .v = *v, .pitch = pitch };
    const int64_t begin = rest - v->pad, first = (begin % n + n) % n; /* inputs first, first + n, ... */
    Line l = { .v = *v, .shift = first * pitch, .pitch = n * pitch };
    l.v.dilation = 1;
    l.v.pad = (first - begin) / n;
    l.v.in = first < v->in ? (v->in - first + n - 1) / n : 0;
    l.v.out = rest < v->out ? (v->out - rest + n - 1) / n : 0;
    return l;
}

/* Columns of all rows from input column `first` on; `inside`: all are there, and counted from column 0. */
static void point(const Depthwise *d, const Rows *r, const Line *l, int64_t first, int64_t n, gboolean inside)
{
    for (int k = 0; k < r->rows; k++) {
        const float **from = r->from + k * d->columns, *row = r->row[k] + l->shift;
        for (int64_t i = 0; i < n; i++) {
            const int64_t column = inside ? i : first + i;
            from[i] = inside || (column >= 0 && column < l->v.in) ? row + column * l->pitch : d->zeros;
        }
    }
}

/* The outputs of a line in tiles, channels [t->first, t->end). */
static void run_line(const Depthwise *d, HnDepthTile *t, const Rows *r, const Line *l, float *y, const float *add)
{
    const HnWindowAxis *v = &l->v;
    const int64_t tiles = (v->out + HN_DEPTH_NX - 1) / HN_DEPTH_NX;
    gboolean ready = FALSE; /* the pointers are those of tiles inside */
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t o = v->out * i / tiles, n = v->out * (i + 1) / tiles - o, first = o * v->stride - v->pad;
        const int64_t columns = (n - 1) * v->stride + (v->kernel - 1) * v->dilation + 1;
        const gboolean inside = first >= 0 && first + columns <= v->in;
        if (!inside || !ready)
            point(d, r, l, first, inside ? MIN(d->columns, v->in) : columns, inside);
        ready = inside;
        t->at = inside ? first * l->pitch : 0;
        t->y = y + o * t->pitch;
        t->add = add != NULL ? add + o * t->add_pitch : NULL;
        d->fn[n - 1](t);
    }
}

/* One row of outputs, whose pixels are `pitch` apart, those of the sum `add_pitch`. */
static void run_row(const Depthwise *d, HnDepthTile *t, const Rows *r, float *y, const float *add, int64_t x_pitch,
                    int64_t pitch, int64_t add_pitch)
{
    const HnWindowAxis *v = &d->axis[2];
    const int64_t lines = lines_of(v);
    t->from = r->from;
    t->w = r->w;
    t->rows = r->rows;
    t->pitch = pitch * lines;
    t->add_pitch = add_pitch * lines;
    for (int64_t k = 0; k < lines; k++) {
        const Line l = line_of(v, x_pitch, k);
        run_line(d, t, r, &l, y + k * pitch, add != NULL ? add + k * add_pitch : NULL);
    }
}

/* What is read: the source, or its copies. */
static const float *source_of(const Depthwise *d, const HnStep *s)
{
    return d->times > 1 ? (const float *)(gpointer)((char *)s->scratch + copies_at(d)) : hn_cpu_data(&s->in[0]);
}

static int64_t source_pitch(const Depthwise *d, const HnStep *s)
{
    return d->times > 1 ? d->channels : hn_slot_pitch(s->in[0].slot);
}

static HnDepthTile tile_of(const Depthwise *d, const HnStep *s)
{
    const HnPort *sum = d->end.add_port >= 0 ? &s->in[d->end.add_port] : NULL;
    return (HnDepthTile){ .columns = d->columns,
                          .channels = d->channels,
                          .pitch = hn_slot_pitch(s->out[0].slot),
                          .add_pitch = sum != NULL ? hn_slot_pitch(sum->slot) : 0,
                          .bias = d->bias_read ? hn_cpu_data(&s->in[2]) : d->bias,
                          .k = (int)d->axis[2].kernel,
                          .stride = (int)d->axis[2].stride,
                          .dilation = (int)(d->axis[2].dilation / lines_of(&d->axis[2])),
                          .post = d->post,
                          .posts = d->posts,
                          .w_at = d->group.rows * d->w_row,
                          .each = (int)d->each,
                          .spread = d->spread,
                          .lo = d->end.lo,
                          .hi = d->end.hi };
}

/* With copied rows, parts [lo, hi): strip by strip, block by block, row by row. */
static void run_packed(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Depthwise *d = s->state;
    const HnDepthPacked *p = &d->rows;
    const HnWindowAxis *a = &d->axis[0], *h = &d->axis[1], *v = &d->axis[2];
    const int64_t xp = source_pitch(d, s), rows = d->plan.batch * a->out * h->out;
    const float *x = source_of(d, s);
    float *y = hn_cpu_data(&s->out[0]);
    const float *add = d->end.add_port >= 0 ? hn_cpu_data(&s->in[d->end.add_port]) : NULL;
    HnDepthTile t = tile_of(d, s);
    HnDepthRing r;
    hn_depth_packed_begin(p, &r, (char *)s->scratch + (gsize)thread * d->part_bytes);
    for (int64_t i = lo; i < hi; i++) {
        const int64_t row = i % rows, at[] = { row / (a->out * h->out), row / h->out % a->out, row % h->out };
        hn_depth_packed_turn(p, &r, i / (rows * p->blocks), i / rows % p->blocks);
        hn_depth_packed_row(p, &r, &t, x, xp, at, y + row * v->out * t.pitch,
                            add != NULL ? add + row * v->out * t.add_pitch : NULL);
        const int64_t begin = r.block * p->block, c = r.strip * p->wide * p->lanes;
        hn_epilogue_rest(&d->epilogue, d->end.rest, s, y, t.pitch, row * v->out + begin, MIN(p->block, v->out - begin),
                         c, MIN(p->wide * p->lanes, d->channels - c));
    }
}

/* Rows [lo, hi) of the result. */
static void run_rows(gpointer step, int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Depthwise *d = s->state;
    const HnWindowAxis *a = &d->axis[0], *h = &d->axis[1], *v = &d->axis[2];
    const int64_t xp = source_pitch(d, s);
    const int64_t window = a->kernel * h->kernel;
    const float *x = source_of(d, s);
    float *y = hn_cpu_data(&s->out[0]);
    Rows r;
    r.from = (const float **)(void *)((char *)s->scratch + (gsize)thread * d->part_bytes);
    r.row = r.from + window * d->columns;
    r.w = r.row + window;
    HnDepthTile t = tile_of(d, s);
    const int64_t yp = t.pitch, add_pitch = t.add_pitch;
    const float *sum = d->end.add_port >= 0 ? hn_cpu_data(&s->in[d->end.add_port]) : NULL;
    for (t.first = 0; t.first < d->channels; t.first = t.end) {
        t.end = d->channels - t.first < d->strip * 3 / 2 ? d->channels : t.first + d->strip;
        for (int64_t i = lo; i < hi; i++) {
            const int64_t n = i / (a->out * h->out);
            find_rows(d, &r, x + n * d->plan.x_plane * xp, xp, i / h->out % a->out, i % h->out);
            const float *add = sum != NULL ? sum + i * v->out * add_pitch : NULL;
            run_row(d, &t, &r, y + i * v->out * yp, add, xp, yp, add_pitch);
            hn_epilogue_rest(&d->epilogue, d->end.rest, s, y, yp, i * v->out, v->out, 0, d->channels);
        }
    }
}

/* Each of n numbers as often, which is a constant. */
static inline __attribute__((always_inline)) void repeat(float *restrict to, const float *restrict from, int64_t n,
                                                         const int times)
{
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < times; k++)
            to[i * times + k] = from[i];
}

/* Pixels [lo, hi) of the source, each channel as often as it has outputs. */
static void copy_pixels(gpointer step, G_GNUC_UNUSED int thread, int64_t lo, int64_t hi)
{
    const HnStep *s = step;
    const Depthwise *d = s->state;
    const int64_t pitch = hn_slot_pitch(s->in[0].slot), n = d->plan.group;
    const float *x = (const float *)hn_cpu_data(&s->in[0]) + lo * pitch;
    float *to = (float *)(gpointer)((char *)s->scratch + copies_at(d)) + lo * d->channels;
    G_STATIC_ASSERT(MOST_TIMES == 4);
    for (int64_t i = lo; i < hi; i++, x += pitch, to += d->channels) {
        if (d->times == 2)
            repeat(to, x, n, 2);
        else if (d->times == 3)
            repeat(to, x, n, 3);
        else
            repeat(to, x, n, 4);
    }
}

static gboolean depthwise_run(HnStep *s, GError **error)
{
    (void)error;
    const Depthwise *d = s->state;
    const int64_t rows = d->plan.batch * d->axis[0].out * d->axis[1].out;
    if (d->times > 1)
        hn_parallel_for(d->plan.batch * d->plan.x_plane, d->threads, copy_pixels, s);
    if (d->packed)
        hn_parallel_for(rows * d->rows.strips * d->rows.blocks, d->threads, run_packed, s);
    else
        hn_parallel_for(rows, d->threads, run_rows, s);
    return TRUE;
}

const HnKernel hn_cpu_depthwise_turned = {
    .name = "cpu.depthwise",
    .reject = turned_reject,
    .prepare = turned_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .fuses = hn_epilogue_conv_fuses,
};

const HnKernel hn_cpu_conv_group = {
    .name = "cpu.conv_group",
    .reject = group_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .fuses = hn_epilogue_conv_fuses,
};

const HnKernel hn_cpu_depthwise = {
    .name = "cpu.depthwise",
    .reject = depthwise_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .fuses = hn_epilogue_conv_fuses,
};
