/*
 * Tiles of output channels read the image as it lies: a line of it, or of one of its channels, for each row of the
 * window. What tiles see is copied, with zeros, only where that is more than the image.
 */
#include "cpu/conv/conv_few.h"

#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/cpu_level.h"
#include "cpu/core/epilogue.h"
#include "op/conv.h"

#define HN_LOOPS "cpu/conv/conv_few_loops.h"
#include "base/every_level.h"

enum { H, W };

#define MOST_IN 4   /* channels of the source */
#define LEAST_OUT 8 /* of the result: of less, lanes are columns (conv_planar.c) */
#define MOST_OUT 64
#define LINE 16          /* floats of a line of a cache */
#define LEAST_WIDE 8     /* outputs of a row */
#define MOST_COPIED 4096 /* floats */

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[2];
    const HnFewFn (*fns)[3][HN_FEW_SIZES];
    int64_t lanes, vectors, panels; /* of output channels: some vectors each */
    int64_t lines;                  /* of the window: rows of all channels */
    int64_t *off, *copied;          /* [lines]: where they are in the source, in a copy */
    void *memory;                   /* of these two */
    float *weights;                 /* [panels][lines][kernel][vectors of the panel][lanes], whole lines of a cache */
    float *bias;
    int folded; /* operations that went into these */
    int threads;
    gsize part_bytes; /* scratch of a thread: a copy */
    HnEpilogue epilogue;
    HnEpilogueEnd end;
} Few;

/* Floats of a line of a copy: what a tile's outputs look at, at least. */
static int64_t copied_width(const HnWindowAxis *w)
{
    return 24 * w->stride + w->kernel;
}

static const char *few_reject(const HnStep *s)
{
    HnConvPlan p;
    HnWindowAxis axis[2];
    const char *reason = hn_conv_reject(s, HN_CONV_PLAIN, 2, &p);
    if (reason != NULL)
        return reason;
    if (s->in[0].slot->layout != NULL)
        return "the source is not plain";
    if (!s->in[1].slot->constant || (hn_cpu_in(s, 2) != NULL && !s->in[2].slot->constant))
        return "weights that are computed, or a bias that is";
    if (p.group > 1 || p.in_channels > MOST_IN)
        return "groups, or more than four channels";
    if (p.out_channels < LEAST_OUT || p.out_channels > MOST_OUT)
        return "too few results, or so many that tiles of them are as fast";
    hn_window_axes(p.n, p.axis, 2, axis);
    const HnWindowAxis *w = &axis[W];
    if ((w->stride != 1 && w->stride != 2 && w->stride != 4) || w->dilation != 1 || w->out < LEAST_WIDE)
        return "another stride along lines than 1, 2 or 4, short lines, or dilation";
    return p.in_channels * axis[H].kernel > MOST_COPIED / copied_width(w) ? "a large window" : NULL;
}

static void few_release(HnStep *s)
{
    Few *c = s->state;
    if (c == NULL)
        return;
    hn_epilogue_clear(&c->epilogue);
    g_free(c->off);
    g_free(c->memory);
    g_free(c);
    s->state = NULL;
}

/* First vector of a panel. */
static int64_t first_of(const Few *c, int64_t panel)
{
    return c->vectors * panel / c->panels;
}

/* Whole vectors, or at AVX-512 half ones where they have fewer lanes that are not used. */
static void choose_vectors(Few *c)
{
    static const HnFewFn(*const levels[HN_LEVELS])[3][HN_FEW_SIZES] = HN_TABLE_OF_LEVELS(few_fns);
    const int64_t out = c->plan.out_channels;
    c->lanes = 4 << hn_cpu_level();
    c->fns = levels[hn_cpu_level()];
    if (c->lanes == 16 && (out + 15) / 16 * 2 > (out + 7) / 8) {
        c->lanes = 8;
        c->fns = hn_few_half;
    }
    c->vectors = (out + c->lanes - 1) / c->lanes;
    c->panels = (c->vectors + HN_FEW_NV - 1) / HN_FEW_NV;
}

/* Scales and shifts right behind the sum go into weights and bias. */
static void pack(Few *c, const HnStep *s)
{
    const HnConvPlan *p = &c->plan;
    const HnTensor *w = hn_cpu_in(s, 1), *b = hn_cpu_in(s, 2);
    const int64_t taps = c->lines * c->axis[W].kernel;
    c->memory = g_new0(float, (gsize)((taps + 1) * c->vectors * c->lanes + LINE));
    c->weights = (float *)(((guintptr)c->memory + LINE * sizeof(float) - 1) & ~(LINE * sizeof(float) - 1));
    c->bias = c->weights + taps * c->vectors * c->lanes;
    for (int64_t m = 0; m < p->out_channels; m++) {
        double scale, shift = b != NULL ? hn_tensor_get_f64(b, m) : 0;
        hn_epilogue_constants(&c->epilogue, c->folded, m, &scale, &shift);
        c->bias[m] = (float)shift;
        const int64_t vector = m / c->lanes;
        int64_t panel = 0;
        while (first_of(c, panel + 1) <= vector)
            panel++;
        const int64_t first = first_of(c, panel), wide = (first_of(c, panel + 1) - first) * c->lanes;
        float *to = c->weights + first * c->lanes * taps + m - first * c->lanes;
        for (int64_t t = 0; t < taps; t++)
            to[t * wide] = (float)(hn_tensor_get_f64(w, m * taps + t) * scale);
    }
}

static gboolean few_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    Few *c = g_new0(Few, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    hn_window_axes(p->n, p->axis, 2, c->axis);
    choose_vectors(c);
    c->lines = p->in_channels * c->axis[H].kernel;
    c->off = g_new(int64_t, (gsize)(2 * c->lines));
    c->copied = c->off + c->lines;
    const int64_t wide = copied_width(&c->axis[W]);
    for (int64_t i = 0; i < c->lines; i++) {
        c->off[i] = i / c->axis[H].kernel * p->x_plane + i % c->axis[H].kernel * c->axis[H].dilation * c->axis[W].in;
        c->copied[i] = i * wide;
    }
    while (c->folded < c->epilogue.n && c->epilogue.op[c->folded].kind == HN_EPILOGUE_AFFINE)
        c->folded++;
    c->end = hn_epilogue_end(&c->epilogue, c->folded);
    pack(c, s);
    c->threads = hn_cpu_threads_for(s, 2 * (double)y->n * (double)p->in_channels * (double)p->taps);
    c->part_bytes = ((gsize)(c->lines * wide) * sizeof(float) + 63) / 64 * 64;
    s->scratch_bytes = c->part_bytes * (gsize)c->threads;
    s->out[0].slot->layout = hn_layout_last(y);
    for (int k = 0; k < c->epilogue.n; k++)
        if (c->epilogue.op[k].kind == HN_EPILOGUE_ADD)
            s->in[c->epilogue.op[k].port].want = hn_layout_last(y);
    s->in[1].unread = TRUE;
    if (hn_cpu_in(s, 2) != NULL)
        s->in[2].unread = TRUE;
    return TRUE;
}

/* What outputs of a tile see, n columns from column `first` and row `top` on. */
static void copy_lines(const Few *c, float *to, const float *x, int64_t top, int64_t first, int64_t n)
{
    const int64_t lo = CLAMP(-first, 0, n), hi = CLAMP(c->axis[W].in - first, lo, n);
    for (int64_t i = 0; i < c->lines; i++) {
        float *line = to + c->copied[i];
        const int64_t row = top + i % c->axis[H].kernel * c->axis[H].dilation;
        const gboolean there = row >= 0 && row < c->axis[H].in && lo < hi;
        const int64_t begin = there ? lo : n, end = there ? hi : n; /* zeros around it: a few, most often */
        for (int64_t k = 0; k < begin; k++)
            line[k] = 0;
        for (int64_t k = end; k < n; k++)
            line[k] = 0;
        if (there)
            memcpy(line + lo, x + i / c->axis[H].kernel * c->plan.x_plane + row * c->axis[W].in + first + lo,
                   (gsize)(hi - lo) * sizeof *line);
    }
}

/* Outputs of a tile of so many vectors, *size of its sizes: by what a row takes. Beginning a tile takes about as long
 * as one of its outputs. */
static int64_t outputs_of(const Few *c, int64_t vectors, int *size)
{
    const int64_t few = hn_cpu_level() == 2 ? 2 : 1, unit = vectors == 1 ? 2 * few : few;
    const int64_t most = MIN(vectors == HN_FEW_NV ? 4 : HN_FEW_SIZES, c->axis[W].out / unit);
    int64_t best = G_MAXINT64;
    *size = 1;
    for (int64_t i = most; i > 0; i--) {
        const int64_t cost = (c->axis[W].out + i * unit - 1) / (i * unit) * (i * unit + 1);
        if (cost < best) {
            best = cost;
            *size = (int)i;
        }
    }
    return *size * unit;
}

/* A row of outputs of a panel; the last tile lies back so that it fits, and computes some of them again. */
static void run_panel(const HnStep *s, const float *x, int64_t image, int64_t row, int64_t panel, float *copy)
{
    const Few *c = s->state;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t first = first_of(c, panel), vectors = first_of(c, panel + 1) - first, channel = first * c->lanes;
    const HnPort *sum = c->end.add_port >= 0 ? &s->in[c->end.add_port] : NULL;
    const int64_t top = row * h->stride - h->pad, at = (image * h->out + row) * w->out;
    const gboolean inside = top >= 0 && top + (h->kernel - 1) * h->dilation < h->in;
    HnFewTile t = { .lines = c->lines,
                    .kernel = w->kernel,
                    .w = c->weights + channel * c->lines * w->kernel,
                    .bias = c->bias + channel,
                    .y_pitch = hn_slot_pitch(s->out[0].slot),
                    .add_pitch = sum != NULL ? hn_slot_pitch(sum->slot) : 0,
                    .tail = (int)(MIN(c->plan.out_channels - channel, vectors * c->lanes) - (vectors - 1) * c->lanes),
                    .lo = c->end.lo,
                    .hi = c->end.hi };
    float *y = (float *)hn_cpu_data(&s->out[0]) + at * t.y_pitch + channel;
    const float *add = sum != NULL ? (const float *)hn_cpu_data(sum) + at * t.add_pitch + channel : NULL;
    int size;
    const int64_t outputs = outputs_of(c, vectors, &size), seen = (outputs - 1) * w->stride + w->kernel;
    const HnFewFn fn = c->fns[vectors - 1][w->stride / 2][size - 1];
    for (int64_t i = 0; i < w->out; i += outputs) {
        const int64_t o = MIN(i, w->out - outputs), column = o * w->stride - w->pad;
        t.x = x + top * w->in + column;
        t.off = c->off;
        if (!inside || column < 0 || column + seen > w->in) {
            copy_lines(c, copy, x, top, column, seen);
            t.x = copy;
            t.off = c->copied;
        }
        t.y = y + o * t.y_pitch;
        t.add = add != NULL ? add + o * t.add_pitch : NULL;
        fn(&t);
    }
}

static void run_rows(gpointer step, int thread, int64_t begin, int64_t end)
{
    const HnStep *s = step;
    const Few *c = s->state;
    float *y = hn_cpu_data(&s->out[0]), *copy = (float *)(gpointer)((char *)s->scratch + (gsize)thread * c->part_bytes);
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / c->axis[H].out;
        const float *x = (const float *)hn_cpu_data(&s->in[0]) + image * c->plan.in_channels * c->plan.x_plane;
        for (int64_t panel = 0; panel < c->panels; panel++)
            run_panel(s, x, image, i % c->axis[H].out, panel, copy);
        hn_epilogue_rest(&c->epilogue, c->end.rest, s, y, hn_slot_pitch(s->out[0].slot), i * c->axis[W].out,
                         c->axis[W].out, 0, c->plan.out_channels);
    }
}

static gboolean few_run(HnStep *s, GError **error)
{
    (void)error;
    const Few *c = s->state;
    hn_parallel_for(c->plan.batch * c->axis[H].out, c->threads, run_rows, s);
    return TRUE;
}

const HnKernel hn_cpu_conv_few = {
    .name = "cpu.conv_few",
    .reject = few_reject,
    .prepare = few_prepare,
    .run = few_run,
    .release = few_release,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};
