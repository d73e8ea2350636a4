/*
 * The gradient of depthwise weights, channels last: dW[tap][c] is the sum over output pixels of dy[p][c] * x[p * stride
 * + tap][c]. Vectors are channels; the sums of up to nine taps stay in registers while all pixels of a band of lines
 * pass by. Source lines are copied with their padding, a strip of channels at a time, so that a tap is an offset.
 */
#include <string.h>

#include "cpu/conv/weight_grad.h"

#define HN_LOOPS "cpu/conv/weight_grad_depthwise_loops.h"
#include "base/every_level.h"

#define STRIP 512              /* channels that are copied at once: long stretches of memory */
#define BAND_FLOATS (24 << 10) /* of copied lines, in the second cache beside dy */
#define MOST_FLOATS 4e6        /* of the lines that one line of outputs looks at */
#define MOST_PIXELS 1024
#define MAX_TAPS 1024

enum { D, H, W };

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[3];
    HnWeightGradCut cut;
    int64_t channels, strip, strips;
    int64_t band;                 /* lines of outputs at a time, at most, of one image */
    int64_t columns, lines, part; /* of the copy of one depth; floats of the sums of a part */
    gsize copy_bytes;             /* of a thread */
    int64_t *off;                 /* [taps]: floats in the copy */
    int threads, lanes;
    const HnWeightGradDepthFn *fns; /* by taps; behind them, of 3x3 taps side by side */
    gboolean square;
} Depthwise;

static const char *depthwise_reject(const HnStep *s)
{
    HnConvPlan plan;
    HnWindowAxis axis[3];
    const char *reason = hn_weight_grad_plan(s, &plan, axis);
    if (reason != NULL)
        return reason;
    if (plan.in_channels != 1 || plan.out_channels != 1 || plan.group < 4)
        return "groups of several channels, or few groups";
    double seen = STRIP;
    for (int i = 0; i < 3; i++)
        seen *= (double)(axis[i].kernel - 1) * (double)axis[i].dilation + 1;
    const double columns = (double)axis[W].stride * MOST_PIXELS;
    return plan.taps > MAX_TAPS || seen > MOST_FLOATS || columns > MOST_FLOATS ? "a window that is large or spread wide"
                                                                               : NULL;
}

static void depthwise_release(HnStep *s)
{
    Depthwise *d = s->state;
    if (d == NULL)
        return;
    g_free(d->off);
    g_free(d);
    s->state = NULL;
}

/* Bands of lines, and where taps lie in the copy of one: [depth of the kernel][lines][columns][strip]. */
static void measure(Depthwise *d)
{
    const HnWindowAxis *a = &d->axis[D], *h = &d->axis[H], *w = &d->axis[W];
    const int64_t reach = (h->kernel - 1) * h->dilation + 1, out = (w->out + d->cut.across - 1) / d->cut.across;
    d->strip = MIN(d->channels, STRIP);
    d->strips = (d->channels + STRIP - 1) / STRIP;
    d->columns = (out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    const int64_t lines = BAND_FLOATS / (a->kernel * d->columns * d->strip);
    d->band = d->cut.across > 1 ? 1 : CLAMP((lines - reach) / h->stride + 1, 1, h->out);
    d->lines = (d->band - 1) * h->stride + reach;
    d->copy_bytes = ((gsize)(a->kernel * d->lines * d->columns * d->strip) * sizeof(float) + 63) / 64 * 64;
    d->off = g_new(int64_t, (gsize)d->plan.taps);
    for (int64_t k = 0; k < d->plan.taps; k++) {
        const int64_t kd = k / w->kernel / h->kernel, kh = k / w->kernel % h->kernel, kw = k % w->kernel;
        d->off[k] = ((kd * d->lines + kh * h->dilation) * d->columns + kw * w->dilation) * d->strip;
    }
}

static gboolean depthwise_prepare(HnStep *s, GError **error)
{
    static const HnWeightGradDepthFn *const levels[] = HN_TABLE_OF_LEVELS(depths);
    static const int lanes[] = { HN_LANES_plain, HN_LANES_avx2, HN_LANES_avx512 };
    const HnTensor *x = hn_cpu_in(s, 0), *dy = hn_cpu_in(s, 1);
    (void)error;
    Depthwise *d = g_new0(Depthwise, 1);
    s->state = d;
    hn_weight_grad_plan(s, &d->plan, d->axis);
    d->channels = d->plan.group;
    d->part = ((d->plan.taps + 1) * d->channels + 15) / 16 * 16;
    const double flops = 2 * (double)dy->n * (double)d->plan.taps;
    /* memory is what takes the time: a float of x or dy as long as ten operations */
    d->cut = hn_weight_grad_cut(&d->plan, d->axis, MOST_PIXELS, (double)x->bytes + (double)dy->bytes,
                                flops + 10 * (double)(x->n + dy->n), d->part);
    measure(d);
    int level = hn_cpu_level();
    while (level > 0 && d->channels < lanes[level])
        level--;
    d->lanes = lanes[level];
    d->fns = levels[level];
    const HnWindowAxis *w = &d->axis[W];
    d->square = d->plan.taps == 9 && w->kernel == 3 && w->stride == 1 && w->dilation == 1;
    d->threads = hn_cpu_threads_for(s, flops);
    s->in[0].want = hn_layout_last(x);
    s->in[1].want = hn_layout_last(dy);
    s->in[2].unread = TRUE;
    s->scratch_bytes = (gsize)d->threads * d->copy_bytes + (gsize)(d->cut.parts * d->part) * sizeof(float);
    return TRUE;
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const Depthwise *d;
    const float *x, *dy;
    float *sums;
    int64_t x_pitch, y_pitch;
} Run;

/* Output lines [oh, oh + n) of depth od of an image, outputs [begin, end) of each. */
typedef struct {
    int64_t image, od, oh, n, begin, end;
} Band;

static void copy_band(const Run *r, const Band *b, float *to, int64_t channel, int64_t channels)
{
    const Depthwise *d = r->d;
    const HnWindowAxis *a = &d->axis[D], *h = &d->axis[H], *w = &d->axis[W];
    const int64_t lines = (b->n - 1) * h->stride + (h->kernel - 1) * h->dilation + 1;
    const int64_t columns = (b->end - b->begin - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    for (int64_t k = 0; k < a->kernel; k++)
        for (int64_t i = 0; i < lines; i++) {
            const int64_t id = b->od * a->stride + k * a->dilation - a->pad, ih = b->oh * h->stride + i - h->pad;
            const gboolean inside = id >= 0 && id < a->in && ih >= 0 && ih < h->in;
            const float *line = r->x + ((b->image * a->in + id) * h->in + ih) * w->in * r->x_pitch + channel;
            hn_weight_grad_copy(to + (k * d->lines + i) * d->columns * channels, channels, inside ? line : NULL,
                                r->x_pitch, w->in, b->begin * w->stride - w->pad, columns);
        }
}

/* Channels [channel, channel + n) of a band. */
static void run_strip(const Run *r, const Band *b, float *sums, float *copy, int64_t channel, int64_t n)
{
    const Depthwise *d = r->d;
    const HnWindowAxis *a = &d->axis[D], *h = &d->axis[H], *w = &d->axis[W];
    const int64_t line = (b->image * a->out + b->od) * h->out + b->oh;
    int64_t off[HN_WEIGHT_GRAD_TAPS];
    HnWeightGradDepth t = { .off = off,
                            .lines = b->n,
                            .n = b->end - b->begin,
                            .x_line = h->stride * d->columns * n,
                            .y_line = w->out * r->y_pitch,
                            .x_step = w->stride * n,
                            .y_step = r->y_pitch,
                            .pitch = d->channels };
    const int64_t pixels = (b->n - 1) * w->out + t.n;
    const float *dy = r->dy + (line * w->out + b->begin) * r->y_pitch + channel;
    copy_band(r, b, copy, channel, n);
    hn_weight_grad_sum()(sums + d->plan.taps * d->channels + channel, dy, r->y_pitch, pixels, n); /* dy comes near */
    for (int64_t k = 0; k < d->plan.taps; k += HN_WEIGHT_GRAD_TAPS) {
        const int64_t taps = MIN(HN_WEIGHT_GRAD_TAPS, d->plan.taps - k);
        for (int64_t i = 0; i < taps; i++)
            off[i] = d->off[k + i] / d->strip * n;
        for (int64_t c = 0; c < n; c += d->lanes) {
            t.x = copy + c;
            t.dy = dy + c;
            t.sums = sums + k * d->channels + channel + c;
            t.some = n - c < d->lanes ? (int)(n - c) : 0;
            d->fns[d->square ? HN_WEIGHT_GRAD_TAPS : taps - 1](&t);
        }
    }
}

static void run_part(const Run *r, int64_t part, float *copy, int share, int shares)
{
    const Depthwise *d = r->d;
    const HnWindowAxis *a = &d->axis[D], *h = &d->axis[H];
    const int64_t across = d->cut.across, units = d->cut.lines * across, out = d->axis[W].out;
    const int64_t from = units * part / d->cut.parts, to = units * (part + 1) / d->cut.parts;
    for (int64_t at = from, n; at < to; at += n) {
        const int64_t line = at / across, piece = at % across;
        Band b = { .image = line / h->out / a->out, .od = line / h->out % a->out, .oh = line % h->out };
        b.n = n = across > 1 ? 1 : MIN(MIN(d->band, h->out - b.oh), to - at);
        b.begin = out * piece / across;
        b.end = out * (piece + 1) / across;
        for (int64_t k = d->strips * share / shares; k < d->strips * (share + 1) / shares; k++)
            run_strip(r, &b, r->sums + part * d->part, copy, k * STRIP, MIN(STRIP, d->channels - k * STRIP));
    }
}

/* Share `share` of the parts; where these are too few, of the channels of each. */
static void run_share(const Run *r, float *copy, int share, int shares)
{
    const int64_t parts = r->d->cut.parts;
    if (parts < shares) {
        for (int64_t k = 0; k < parts; k++)
            run_part(r, k, copy, share, shares);
        return;
    }
    for (int64_t k = parts * share / shares; k < parts * (share + 1) / shares; k++)
        run_part(r, k, copy, 0, 1);
}

static gboolean depthwise_run(HnStep *s, GError **error)
{
    (void)error;
    const Depthwise *d = s->state;
    const int n = d->threads;
    const gsize sums = (gsize)(d->cut.parts * d->part) * sizeof(float);
    char *copy = (char *)s->scratch + sums;
    float *dw = hn_cpu_data(&s->out[0]), *db = s->n_out > 1 && s->out[1].slot != NULL ? hn_cpu_data(&s->out[1]) : NULL;
    const Run r = { .d = d,
                    .x = hn_cpu_data(&s->in[0]),
                    .dy = hn_cpu_data(&s->in[1]),
                    .sums = s->scratch,
                    .x_pitch = hn_slot_pitch(s->in[0].slot),
                    .y_pitch = hn_slot_pitch(s->in[1].slot) };
    memset(s->scratch, 0, sums);
    if (n == 1) {
        run_share(&r, (float *)(gpointer)copy, 0, 1);
    } else {
#pragma omp parallel for num_threads(n)
        for (int i = 0; i < n; i++)
            run_share(&r, (float *)(gpointer)(copy + (gsize)i * d->copy_bytes), i, n);
    }
    hn_weight_grad_join(r.sums, d->cut.parts, d->part, 0, d->part);
    for (int64_t c = 0; c < d->channels; c++)
        for (int64_t k = 0; k < d->plan.taps; k++)
            dw[c * d->plan.taps + k] = r.sums[k * d->channels + c];
    if (db != NULL)
        memcpy(db, r.sums + d->plan.taps * d->channels, (gsize)d->channels * sizeof(float));
    return TRUE;
}

const HnKernel hn_cpu_weight_grad_depthwise = {
    .name = "cpu.convweightgrad_depthwise",
    .reject = depthwise_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
};
