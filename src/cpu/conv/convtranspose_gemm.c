/*
 * Along an axis with stride s, output o reads taps k with (o + pad - k * dilation) % s == 0 only, at source position
 * (o + pad - k * dilation) / s. Outputs fall into s phases by (o + pad) % s along each axis; each phase is a
 * convolution of stride 1 with taps of its own. Its outputs of one line lie s pixels apart and become the rows of
 * tiles.
 */
#include "cpu/conv/convtranspose_gemm.h"

#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/epilogue.h"
#include "cpu/gemm/gemm_kernel.h"
#include "op/conv.h"

#define MAX_PHASES 4096
#define SEGMENT 192 /* outputs of a line at a time */
#define BLOCK 8     /* segments at a time */

enum { D, H, W };

/* One axis. `size` and `out` are those of the operator's input and output. */
typedef struct {
    int64_t size, out, kernel, stride, dilation, pad;
    int64_t most;   /* taps of a phase at most */
    int64_t *shift; /* [stride][most]: how far taps of a phase look back from an output's place divided by the stride */
} Axis;

/* One axis of one phase: its taps, outputs begin, begin + stride, ... */
typedef struct {
    int64_t rest, taps, begin, count;
} Side;

typedef struct {
    HnConvPlan plan;
    Axis axis[3]; /* those that are not there have one position */
    int threads;
    int64_t panels, most; /* of a group's output channels; taps of a phase at most */
    HnPack *weights;      /* [phases][group][panels][taps of the phase][in_channels][tile columns] */
    HnEpilogue epilogue;
    HnEpilogueEnd end;
} Conv;

static const char *tile_reject(const HnStep *s)
{
    HnConvPlan plan;
    double phases = 1;
    const char *reason = hn_conv_reject(s, HN_CONV_TRANSPOSE, 3, &plan);
    if (reason != NULL)
        return reason;
    for (int i = 0; i < plan.n; i++) {
        phases *= (double)plan.axis[i].stride;
        if (plan.axis[i].pad < 0)
            return "negative padding";
    }
    if (phases > MAX_PHASES)
        return "a large stride";
    return plan.group > 1 && plan.out_channels < 4 ? "groups of few channels" : NULL;
}

static void tile_release(HnStep *s)
{
    Conv *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_epilogue_clear(&c->epilogue);
    for (int i = 0; i < 3; i++)
        g_free(c->axis[i].shift);
    g_free(c);
    s->state = NULL;
}

/* Tap number i, in order, of those whose offset leaves `rest`; i may be one too many: then the kernel's size. */
static int64_t tap_of(const Axis *a, int64_t rest, int64_t i)
{
    int64_t k = 0;
    for (; k < a->kernel; k++)
        if (k * a->dilation % a->stride == rest && i-- == 0)
            break;
    return k;
}

static Side side_of(const Axis *a, int64_t rest)
{
    Side s = { .rest = rest, .begin = ((rest - a->pad) % a->stride + a->stride) % a->stride };
    for (int64_t k = 0; k < a->kernel; k++)
        s.taps += k * a->dilation % a->stride == rest;
    s.count = s.begin < a->out ? (a->out - s.begin + a->stride - 1) / a->stride : 0;
    return s;
}

/* Sides of a phase; returns its number of taps. */
static int64_t sides_of(const Conv *c, int64_t phase, Side *side)
{
    side[W] = side_of(&c->axis[W], phase % c->axis[W].stride);
    side[H] = side_of(&c->axis[H], phase / c->axis[W].stride % c->axis[H].stride);
    side[D] = side_of(&c->axis[D], phase / c->axis[W].stride / c->axis[H].stride);
    return side[D].taps * side[H].taps * side[W].taps;
}

static int64_t phases_of(const Conv *c)
{
    return c->axis[D].stride * c->axis[H].stride * c->axis[W].stride;
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Conv *c = data;
    const HnConvPlan *p = &c->plan;
    const int64_t cols = hn_gemm_kernel_cols(), oc = p->out_channels;
    const char *from = w->data; /* [group * in_channels][out_channels][taps] */
    float *row = to;
    Side side[3];
    for (int64_t phase = 0; phase < phases_of(c); phase++) {
        const int64_t taps = sides_of(c, phase, side);
        for (int64_t u = 0; u < p->group * c->panels; u++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t g = u / c->panels, first = u % c->panels * cols, width = MIN(cols, oc - first);
                const int64_t kd = tap_of(&c->axis[D], side[D].rest, t / side[W].taps / side[H].taps);
                const int64_t kh = tap_of(&c->axis[H], side[H].rest, t / side[W].taps % side[H].taps);
                const int64_t kw = tap_of(&c->axis[W], side[W].rest, t % side[W].taps);
                const int64_t tap = (kd * c->axis[H].kernel + kh) * c->axis[W].kernel + kw;
                for (int64_t k = 0; k < p->in_channels; k++, row += cols) {
                    const int64_t at = (g * p->in_channels + k) * oc + first;
                    memset(row, 0, (gsize)cols * sizeof *row);
                    for (int64_t j = 0; j < width; j++)
                        memcpy(row + j, from + ((at + j) * p->taps + tap) * (int64_t)sizeof *row, sizeof *row);
                }
            }
    }
}

/* Tells arrangements of the same weights apart: FNV-1a. */
static int64_t variant_of(const Conv *c)
{
    guint64 hash = 14695981039346656037u ^ (guint64)c->plan.group;
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ (guint64)c->axis[i].stride) * 1099511628211u;
        hash = (hash ^ (guint64)(c->axis[i].dilation % c->axis[i].stride)) * 1099511628211u;
    }
    return (int64_t)hash;
}

/* Pointers of a block of segments. */
static gsize thread_bytes(const Conv *c)
{
    return ((gsize)(c->most * SEGMENT * BLOCK) * sizeof(float *) + 63) / 64 * 64;
}

static void find_shifts(Axis *a)
{
    a->shift = g_new0(int64_t, (gsize)(a->stride * a->most));
    for (int64_t rest = 0; rest < a->stride; rest++)
        for (int64_t i = 0, n = side_of(a, rest).taps; i < n; i++)
            a->shift[rest * a->most + i] = (tap_of(a, rest, i) * a->dilation - rest) / a->stride;
}

static gboolean tile_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *y = s->out[0].slot->tensor;
    Conv *c = g_new0(Conv, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    c->end = hn_epilogue_end(&c->epilogue, 0);
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    c->most = 1;
    HnWindowAxis axis[3];
    hn_window_axes(p->n, p->axis, 3, axis);
    for (int i = 0; i < 3; i++) {
        const HnWindowAxis *a = &axis[i];
        c->axis[i] = (Axis){ a->out, a->in, a->kernel, a->stride, a->dilation, a->pad, 0, NULL };
        for (int64_t r = 0; r < a->stride; r++)
            c->axis[i].most = MAX(c->axis[i].most, side_of(&c->axis[i], r).taps);
        c->most *= c->axis[i].most;
        find_shifts(&c->axis[i]);
    }
    c->threads = hn_cpu_threads_for(s, 2 * (double)x->n * (double)p->out_channels * (double)p->taps);
    c->panels = (p->out_channels + hn_gemm_kernel_cols() - 1) / hn_gemm_kernel_cols();
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    if (c->end.add_port >= 0)
        s->in[c->end.add_port].want = hn_layout_last(y);
    const gsize packed =
        (gsize)(p->group * hn_gemm_kernel_packed(p->taps * p->in_channels, p->out_channels)) * sizeof(float);
    s->scratch_bytes = (gsize)c->threads * thread_bytes(c) + (gsize)(p->group * p->in_channels + 16) * sizeof(float);
    if (hn_slot_is_weight(s->in[1].slot))
        return hn_pack_own(s, 1, pack_weights, variant_of(c), packed, c, &c->weights, error);
    s->scratch_bytes += packed; /* at each run */
    return TRUE;
}

/* One run: addresses, elements from pixel to pixel. */
typedef struct {
    const Conv *c;
    const float *x, *bias, *add, *zeros, *weights;
    float *y;
    char *scratch; /* of the threads */
    int parts;
    int64_t x_pitch, y_pitch, add_pitch;
} Run;

/* Outputs of one line: the number of the first pixel, how many, and [taps][n] pointers. */
typedef struct {
    int64_t pixel, n;
    const float **a;
} Segment;

/* n pointers from column `first` of a source line on; NULL: padding, and so is what lies outside. */
static void point_line(const Run *r, const float **to, const float *line, int64_t first, int64_t n)
{
    const int64_t lo = line != NULL ? CLAMP(-first, 0, n) : n, hi = CLAMP(r->c->axis[W].size - first, lo, n);
    for (int64_t i = 0; i < lo; i++)
        to[i] = r->zeros;
    for (int64_t i = lo; i < hi; i++)
        to[i] = line + (first + i) * r->x_pitch;
    for (int64_t i = hi; i < n; i++)
        to[i] = r->zeros;
}

/* Segment `item` of the phase; its pointers into a. */
static Segment segment_of(const Run *r, const Side *side, int64_t item, const float **a)
{
    const Axis *axis = r->c->axis;
    const int64_t across = (side[W].count + SEGMENT - 1) / SEGMENT, line = item / across;
    const int64_t first = item % across * SEGMENT, n = MIN(SEGMENT, side[W].count - first);
    const int64_t image = line / side[H].count / side[D].count;
    const int64_t at[3] = { side[D].begin + line / side[H].count % side[D].count * axis[D].stride,
                            side[H].begin + line % side[H].count * axis[H].stride,
                            side[W].begin + first * axis[W].stride };
    int64_t place[3]; /* of the source, that a tap without a shift looks at */
    const int64_t *shift[3];
    for (int k = 0; k < 3; k++) {
        place[k] = (at[k] + axis[k].pad) / axis[k].stride;
        shift[k] = axis[k].shift + side[k].rest * axis[k].most;
    }
    const float **to = a;
    for (int64_t d = 0; d < side[D].taps; d++)
        for (int64_t h = 0; h < side[H].taps; h++) {
            const int64_t id = place[D] - shift[D][d], ih = place[H] - shift[H][h];
            const gboolean in = id >= 0 && id < axis[D].size && ih >= 0 && ih < axis[H].size;
            const int64_t row = ((image * axis[D].size + id) * axis[H].size + ih) * axis[W].size;
            for (int64_t w = 0; w < side[W].taps; w++, to += n)
                point_line(r, to, in ? r->x + row * r->x_pitch : NULL, place[W] - shift[W][w], n);
        }
    return (Segment){ ((image * axis[D].out + at[D]) * axis[H].out + at[H]) * axis[W].out + at[W], n, a };
}

/* Columns [u0, u1), counted in panels of all groups, of some segments. */
static void compute(const Run *r, const float *weights, int64_t taps, const Segment *segment, int n, int64_t u0,
                    int64_t u1)
{
    const Conv *c = r->c;
    const int64_t oc = c->plan.out_channels, depth = c->plan.in_channels, width = hn_gemm_kernel_cols();
    const int64_t most = hn_gemm_kernel_rows(), step = c->axis[W].stride;
    for (int64_t u = u0; u < u1; u++) {
        const int64_t g = u / c->panels, j = u % c->panels * width, m = g * oc + j;
        HnGemmKernelArgs t = { .a_at = g * depth,
                               .taps = taps,
                               .k = depth,
                               .b = weights + u * taps * depth * width,
                               .b_pitch = width,
                               .b_tap = depth * width,
                               .bias = r->bias != NULL ? r->bias + m : NULL,
                               .add_pitch = step * r->add_pitch,
                               .c_pitch = step * r->y_pitch,
                               .cols = (int)MIN(width, oc - j),
                               .lo = c->end.lo,
                               .hi = c->end.hi };
        const HnGemmKernelFn *fns = hn_gemm_kernel_fns(t.cols);
        for (int k = 0; k < n; k++) {
            const Segment *s = &segment[k];
            const int64_t strips = (s->n + most - 1) / most, each = s->n / strips, more = s->n % strips;
            for (int64_t i = 0, from = 0, rows; i < strips; i++, from += rows) { /* the first `more` have one more */
                rows = each + (i < more);
                const int64_t pixel = s->pixel + from * step;
                t.a = s->a + from;
                t.a_tap = s->n;
                t.c = r->y + pixel * r->y_pitch + m;
                t.add = r->add != NULL ? r->add + pixel * r->add_pitch + m : NULL;
                fns[rows - 1](&t);
            }
        }
    }
}

/* In how many parts threads share each phase: more than threads where every phase has enough items. */
static int parts_of(const Conv *c)
{
    const int most = HN_PARALLEL_PIECES * c->threads;
    Side side[3];
    for (int64_t phase = 0; phase < phases_of(c); phase++) {
        sides_of(c, phase, side);
        if (c->plan.batch * side[D].count * side[H].count < most)
            return c->threads;
    }
    return c->threads == 1 ? 1 : most;
}

/* Parts [from, to) of every phase. */
static void run_parts(gpointer run, int thread, int64_t from, int64_t to)
{
    const Run *r = run;
    const Conv *c = r->c;
    const int64_t parts = r->parts;
    const float *weights = r->weights, **a = (const float **)(gpointer)(r->scratch + (gsize)thread * thread_bytes(c));
    const HnConvPlan *p = &c->plan;
    const int64_t units = p->group * c->panels, phases = phases_of(c);
    Segment segment[BLOCK];
    Side side[3];
    for (int64_t phase = 0; phase < phases; phase++) {
        const int64_t taps = sides_of(c, phase, side);
        const int64_t across = (side[W].count + SEGMENT - 1) / SEGMENT;
        const int64_t items = p->batch * side[D].count * side[H].count * across;
        const gboolean by_items = items >= parts;
        const int64_t u0 = by_items ? 0 : units * from / parts, u1 = by_items ? units : units * to / parts;
        const int64_t end = by_items ? items * to / parts : items;
        for (int64_t at = by_items ? items * from / parts : 0; at < end && u0 < u1; at += BLOCK) {
            const int n = (int)MIN(BLOCK, end - at);
            for (int k = 0; k < n; k++)
                segment[k] = segment_of(r, side, at + k, a + k * c->most * SEGMENT);
            compute(r, weights, taps, segment, n, u0, u1);
        }
        weights += units * taps * p->in_channels * hn_gemm_kernel_cols();
    }
}

static gboolean tile_run(HnStep *s, GError **error)
{
    (void)error;
    const Conv *c = s->state;
    const int64_t channels = c->plan.group * c->plan.in_channels;
    float *zeros = s->scratch;
    char *scratch = (char *)s->scratch + ((gsize)channels * sizeof(float) + 63) / 64 * 64;
    Run r = { .c = c,
              .x = hn_cpu_data(&s->in[0]),
              .bias = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL,
              .zeros = zeros,
              .y = hn_cpu_data(&s->out[0]),
              .x_pitch = hn_slot_pitch(s->in[0].slot),
              .y_pitch = hn_slot_pitch(s->out[0].slot) };
    memset(zeros, 0, (gsize)channels * sizeof *zeros);
    if (c->end.add_port >= 0) {
        r.add = hn_cpu_data(&s->in[c->end.add_port]);
        r.add_pitch = hn_slot_pitch(s->in[c->end.add_port].slot);
    }
    const float *weights = c->weights != NULL ? hn_pack_data(c->weights, s, 1) : NULL;
    if (weights == NULL) {
        float *packed = (float *)(gpointer)(scratch + (gsize)c->threads * thread_bytes(c));
        pack_weights(packed, hn_cpu_in(s, 1), c);
        weights = packed;
    }
    r.weights = weights;
    r.scratch = scratch;
    r.parts = parts_of(c);
    hn_parallel_for(r.parts, c->threads, run_parts, &r);
    return TRUE;
}

/* What the tiles end with, nothing else. */
static gboolean tile_fuses(const HnStep *s)
{
    if (hn_cpu_reject_f32(s) != NULL || !hn_epilogue_fits(s, 1))
        return FALSE;
    HnEpilogue epilogue;
    hn_epilogue_init(&epilogue, (HnStep *)s, 1);
    gboolean all = hn_epilogue_end(&epilogue, 0).rest == epilogue.n;
    hn_epilogue_clear(&epilogue);
    return all;
}

const HnKernel hn_cpu_convtranspose_gemm = {
    .name = "cpu.convtranspose_gemm",
    .reject = tile_reject,
    .prepare = tile_prepare,
    .run = tile_run,
    .release = tile_release,
    .fuses = tile_fuses,
    .pitched = TRUE,
};
