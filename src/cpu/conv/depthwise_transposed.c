/*
 * ConvTranspose with one channel to a group and strides, channels last, which is the gradient of a depthwise
 * convolution's source. Along an axis with stride s, output o reads taps k with (o + pad - k * dilation) % s == 0 only,
 * at source position (o + pad - k * dilation) / s. The outputs of a line fall into s phases by (o + pad) % s; each is a
 * depthwise convolution of stride 1 with taps of its own, in reverse order, whose outputs lie s pixels apart.
 */
#include <string.h>

#include "cpu/conv/depthwise.h"
#include "cpu/conv/turned.h"
#include "op/conv.h"

#define MAX_TAPS 1024
#define MAX_SPREAD 256 /* as for convolutions */

enum { D, H, W };

typedef struct {
    int64_t at, taps;           /* in order of the weights' taps */
    int64_t begin, count, from; /* outputs begin, begin + stride, ...; source column of the first one's first tap */
} Phase;

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[3];              /* of the convolution that this one is the adjoint of: x is `out`, y is `in` */
    int64_t channels, columns, spread; /* source columns of the widest tile; from tap to tap */
    Phase *phase;                      /* [stride] */
    int64_t *order;                    /* [kernel width]: taps, phase by phase */
    float *weights;                    /* [depth, height][order][channels], then [channels] of zeros and of the bias */
    const float *zeros;
    const HnDepthFn *fn; /* by outputs of a tile */
    int threads;
    gsize part_bytes; /* scratch of a thread */
} Transposed;

static const char *transposed_reject(const HnStep *s)
{
    const HnTensor *b = hn_cpu_in(s, 2);
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, HN_CONV_TRANSPOSE, 3, &plan);
    if (reason != NULL)
        return reason;
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (b != NULL && !hn_slot_is_weight(s->in[2].slot))
        return "a bias that is computed";
    if (plan.in_channels != 1 || plan.out_channels != 1 || plan.group < 4)
        return "groups of several channels, or few groups";
    for (int i = 0; i < plan.n; i++)
        if (plan.axis[i].stride > MAX_SPREAD || plan.axis[i].dilation > MAX_SPREAD)
            return "a window that is spread wide";
    return plan.taps > MAX_TAPS ? "a large window" : NULL;
}

static void transposed_release(HnStep *s)
{
    Transposed *d = s->state;
    if (d == NULL)
        return;
    g_free(d->phase);
    g_free(d->order);
    g_free(d->weights);
    g_free(d);
    s->state = NULL;
}

static void pack(const HnStep *s, G_GNUC_UNUSED gpointer data)
{
    const Transposed *d = s->state;
    const HnTensor *b = hn_cpu_in(s, 2);
    const char *w = hn_cpu_in(s, 1)->data; /* [channels][taps], of any alignment */
    const int64_t kernel = d->axis[W].kernel, n = d->channels;
    for (int64_t t = 0; t < d->plan.taps; t++) {
        const int64_t tap = t / kernel * kernel + d->order[t % kernel];
        for (int64_t c = 0; c < n; c++)
            memcpy(d->weights + t * n + c, w + (c * d->plan.taps + tap) * (int64_t)sizeof(float), sizeof(float));
    }
    if (b != NULL)
        memcpy(d->weights + (d->plan.taps + 1) * n, b->data, (gsize)n * sizeof(float));
}

/* Taps of each phase, the last one, which reads the first column, in front. */
static void find_phases(Transposed *d)
{
    const HnWindowAxis *w = &d->axis[W];
    int64_t common = 1, at = 0, most = 1;
    for (int64_t k = 2; k <= w->stride; k++) /* the greatest common divisor */
        common = w->stride % k == 0 && w->dilation % k == 0 ? k : common;
    d->spread = w->dilation / common;
    d->phase = g_new0(Phase, (gsize)w->stride);
    d->order = g_new(int64_t, (gsize)w->kernel);
    for (int64_t r = 0; r < w->stride; r++) {
        Phase *p = &d->phase[r];
        p->at = at;
        p->begin = ((r - w->pad) % w->stride + w->stride) % w->stride;
        p->count = p->begin < w->in ? (w->in - p->begin + w->stride - 1) / w->stride : 0;
        for (int64_t k = w->kernel - 1; k >= 0; k--)
            if (k * w->dilation % w->stride == r)
                d->order[at++] = k;
        p->taps = at - p->at;
        if (p->taps > 0)
            p->from = (p->begin + w->pad - d->order[p->at] * w->dilation) / w->stride;
        most = MAX(most, p->taps);
    }
    d->columns = HN_DEPTH_NX + (most - 1) * d->spread;
}

static gboolean transposed_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *b = hn_cpu_in(s, 2), *y = s->out[0].slot->tensor;
    Transposed *d = g_new0(Transposed, 1);
    s->state = d;
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &d->plan, error))
        return FALSE;
    hn_window_axes(d->plan.n, d->plan.axis, 3, d->axis);
    d->channels = d->plan.group;
    d->weights = g_new0(float, (gsize)((d->plan.taps + 2) * d->channels));
    d->zeros = d->weights + d->plan.taps * d->channels;
    find_phases(d);
    pack(s, NULL);
    if (s->in[1].slot->variable || (b != NULL && s->in[2].slot->variable))
        hn_step_renews(s, pack, NULL);
    int64_t lanes;
    d->fn = hn_depth_tiles(HN_DEPTH_ANY, d->channels, &lanes);
    d->threads = hn_cpu_threads_for(s, 2 * (double)x->n * (double)d->plan.taps);
    const int64_t rows = d->axis[D].kernel * d->axis[H].kernel;
    d->part_bytes = (gsize)(rows * (d->columns + 2)) * sizeof(void *);
    s->scratch_bytes = d->part_bytes * (gsize)d->threads;
    s->in[0].want = hn_layout_last(x);
    s->in[1].unread = TRUE;
    if (b != NULL)
        s->in[2].unread = TRUE;
    s->out[0].slot->layout = hn_layout_last(y);
    return TRUE;
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

/* What a line of outputs looks at: source lines, and the weights for each. */
typedef struct {
    const float **from, **w, **line; /* from: [lines][columns], for a tile */
    const float **weights;           /* [lines]: of all phases */
    int lines;
} Lines;

/* Position `tap` of output o along an axis; -1: none. */
static int64_t source_of(const HnWindowAxis *a, int64_t o, int64_t tap)
{
    const int64_t at = o + a->pad - tap * a->dilation;
    return at >= 0 && at % a->stride == 0 && at / a->stride < a->out ? at / a->stride : -1;
}

static void find_lines(const Transposed *d, Lines *l, const float *x, int64_t pitch, int64_t od, int64_t oh)
{
    const HnWindowAxis *a = &d->axis[D], *h = &d->axis[H], *w = &d->axis[W];
    l->lines = 0;
    for (int64_t i = 0; i < a->kernel; i++)
        for (int64_t j = 0; j < h->kernel; j++) {
            const int64_t id = source_of(a, od, i), ih = source_of(h, oh, j);
            if (id < 0 || ih < 0)
                continue;
            l->line[l->lines] = x + (id * h->out + ih) * w->out * pitch;
            l->weights[l->lines++] = d->weights + (i * h->kernel + j) * w->kernel * d->channels;
        }
}

/* The outputs of a phase in tiles. */
static void run_phase(const Transposed *d, const Phase *p, const Lines *l, HnDepthTile *t, float *y, int64_t x_pitch)
{
    const int64_t tiles = (p->count + HN_DEPTH_NX - 1) / HN_DEPTH_NX, in = d->axis[W].out;
    t->k = (int)p->taps;
    t->rows = p->taps > 0 ? l->lines : 0;
    for (int k = 0; k < l->lines; k++)
        l->w[k] = l->weights[k] + p->at * d->channels;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t o = p->count * i / tiles, n = p->count * (i + 1) / tiles - o;
        const int64_t columns = n + (p->taps - 1) * d->spread;
        for (int k = 0; k < t->rows; k++)
            for (int64_t c = 0; c < columns; c++) {
                const int64_t column = p->from + o + c;
                l->from[k * d->columns + c] = column >= 0 && column < in ? l->line[k] + column * x_pitch : d->zeros;
            }
        t->y = y + o * t->pitch;
        d->fn[n - 1](t);
    }
}

/* Lines [lo, hi) of the result. */
static void run_part(const HnStep *s, int part, int64_t lo, int64_t hi)
{
    const Transposed *d = s->state;
    const HnWindowAxis *a = &d->axis[D], *h = &d->axis[H], *w = &d->axis[W];
    const int64_t xp = hn_slot_pitch(s->in[0].slot), yp = hn_slot_pitch(s->out[0].slot);
    const int64_t rows = a->kernel * h->kernel, image = a->out * h->out * w->out;
    const float *x = hn_cpu_data(&s->in[0]);
    float *y = hn_cpu_data(&s->out[0]);
    Lines l = { .from = (const float **)(void *)((char *)s->scratch + (gsize)part * d->part_bytes) };
    l.w = l.from + rows * d->columns;
    l.line = l.w + rows;
    const float *weights[MAX_TAPS];
    l.weights = weights;
    HnDepthTile t = { .from = l.from,
                      .w = l.w,
                      .columns = d->columns,
                      .channels = d->channels,
                      .pitch = yp * w->stride,
                      .bias = d->zeros + d->channels,
                      .end = d->channels,
                      .stride = 1,
                      .dilation = (int)d->spread,
                      .lo = -G_MAXFLOAT * 2,
                      .hi = G_MAXFLOAT * 2 };
    for (int64_t i = lo; i < hi; i++) {
        const int64_t n = i / (a->in * h->in);
        find_lines(d, &l, x + n * image * xp, xp, i / h->in % a->in, i % h->in);
        const int64_t line = w->in * yp;
        for (int64_t r = 0; r < w->stride; r++) {
            if (i + 1 < hi)
                hn_depth_come(y + (i + 1) * line, line * r / w->stride, line * (r + 1) / w->stride, TRUE);
            run_phase(d, &d->phase[r], &l, &t, y + (i * w->in + d->phase[r].begin) * yp, xp);
        }
    }
}

static gboolean transposed_run(HnStep *s, GError **error)
{
    (void)error;
    const Transposed *d = s->state;
    const int64_t lines = d->plan.batch * d->axis[D].in * d->axis[H].in;
    const int n = d->threads;
    if (n == 1) {
        run_part(s, 0, 0, lines);
        return TRUE;
    }
#pragma omp parallel for num_threads(n)
    for (int k = 0; k < n; k++)
        run_part(s, k, lines * k / n, lines * (k + 1) / n);
    return TRUE;
}

const HnKernel hn_cpu_depthwise_transposed = {
    .name = "cpu.depthwise_transposed",
    .reject = transposed_reject,
    .prepare = transposed_prepare,
    .run = transposed_run,
    .release = transposed_release,
    .pitched = TRUE,
};
