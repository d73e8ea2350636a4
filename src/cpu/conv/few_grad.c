/*
 * Gradients of a convolution whose result's gradient is 0 nearly everywhere (attribute `few`), as behind a maximum over
 * all pixels, channels last: what is not 0 is looked for, and each such number adds a multiple of
 *
 *     a row of x, of all input channels of a tap's pixel, to a row of the weights' gradient,
 *     a row of the weights, of a channel and a tap, to a pixel of the source's gradient.
 *
 * Threads share the output channels of the first and the samples of the second, so that sums are in the order of the
 * pixels for any number of them. Where nothing is 0 after all it takes a few times as long as a product of matrices.
 */
#include <string.h>

#include "cpu/conv/weight_grad.h"

#define HN_LOOPS "cpu/conv/few_grad_loops.h"
#include "base/every_level.h"

#define MAX_TAPS 1024
#define ROUND 16     /* floats: whole vectors of any level */
#define SEEN_FLOPS 2 /* that looking at a number takes */

enum { D, H, W };

typedef void (*AddRowFn)(float *to, const float *from, float v, int64_t n);

typedef struct {
    HnConvPlan plan;
    HnWindowAxis axis[3]; /* of the convolution: x is `in`, dy is `out` */
    AddRowFn add;
    int threads;
    HnPack *weights; /* [all output channels][taps][input channels of a group], of the source's gradient; else NULL */
} Few;

/* A tap of a pixel that lies in the source, and there. */
typedef struct {
    int64_t tap, pixel;
} Tap;

static const char *few_reject(const HnConvPlan *plan)
{
    return plan->taps > MAX_TAPS ? "a large window" : NULL;
}

static Few *few_new(const HnConvPlan *plan)
{
    static const AddRowFn add[] = HN_TABLE_OF_LEVELS(add_row);
    Few *f = g_new0(Few, 1);
    f->plan = *plan;
    f->add = add[hn_cpu_level()];
    hn_window_axes(plan->n, plan->axis, 3, f->axis);
    return f;
}

int64_t hn_weight_grad_next(const float *row, int64_t i, int64_t n)
{
    for (; i + 8 <= n; i += 8) {
        guint64 bits[4];
        memcpy(bits, row + i, sizeof bits);
        if (((bits[0] | bits[1] | bits[2] | bits[3]) & G_GUINT64_CONSTANT(0x7fffffff7fffffff)) != 0)
            break;
    }
    while (i < n && row[i] == 0)
        i++;
    return i;
}

/* Of output (d, h, w) of a sample. */
static int taps_of(const Few *f, int64_t d, int64_t h, int64_t w, Tap *taps)
{
    const HnWindowAxis *a = f->axis;
    int n = 0;
    int64_t tap = 0;
    for (int64_t kd = 0; kd < a[D].kernel; kd++)
        for (int64_t kh = 0; kh < a[H].kernel; kh++)
            for (int64_t kw = 0; kw < a[W].kernel; kw++, tap++) {
                const int64_t id = d * a[D].stride + kd * a[D].dilation - a[D].pad;
                const int64_t ih = h * a[H].stride + kh * a[H].dilation - a[H].pad;
                const int64_t iw = w * a[W].stride + kw * a[W].dilation - a[W].pad;
                if (id >= 0 && id < a[D].in && ih >= 0 && ih < a[H].in && iw >= 0 && iw < a[W].in)
                    taps[n++] = (Tap){ tap, (id * a[H].in + ih) * a[W].in + iw };
            }
    return n;
}

typedef struct {
    const Few *f;
    const float *dy;
    int64_t y_pitch;
    const float *weights; /* as packed */
    const float *x;       /* the weights' gradient: sums [output channels][taps][input channels of a group] */
    int64_t x_pitch;
    float *sums, *dw, *db;
    float *dx; /* the source's gradient */
    int64_t dx_pitch;
} Run;

/* dy[o] of a pixel of a sample. */
static void add_weights(const Run *r, int64_t sample, int64_t o, float v, const Tap *taps, int n)
{
    const HnConvPlan *p = &r->f->plan;
    const int64_t in = p->in_channels, group = o / p->out_channels;
    for (int k = 0; k < n; k++)
        r->f->add(r->sums + (o * p->taps + taps[k].tap) * in,
                  r->x + (sample * p->x_plane + taps[k].pixel) * r->x_pitch + group * in, v, in);
    if (r->db != NULL)
        r->db[o] += v;
}

static void add_source(const Run *r, int64_t sample, int64_t o, float v, const Tap *taps, int n)
{
    const HnConvPlan *p = &r->f->plan;
    const int64_t in = p->in_channels, group = o / p->out_channels;
    for (int k = 0; k < n; k++)
        r->f->add(r->dx + (sample * p->x_plane + taps[k].pixel) * r->dx_pitch + group * in,
                  r->weights + (o * p->taps + taps[k].tap) * in, v, in);
}

/* What channels [from, to) of dy of a sample add. */
static void run_sample(const Run *r, int64_t sample, int64_t from, int64_t to, Tap *taps)
{
    const HnWindowAxis *a = r->f->axis;
    const float *row = r->dy + sample * r->f->plan.y_plane * r->y_pitch;
    for (int64_t d = 0; d < a[D].out; d++)
        for (int64_t h = 0; h < a[H].out; h++)
            for (int64_t w = 0; w < a[W].out; w++, row += r->y_pitch) {
                int64_t o = hn_weight_grad_next(row, from, to);
                const int n = o < to ? taps_of(r->f, d, h, w, taps) : 0;
                for (; o < to; o = hn_weight_grad_next(row, o + 1, to)) {
                    if (r->dx != NULL)
                        add_source(r, sample, o, row[o], taps, n);
                    else
                        add_weights(r, sample, o, row[o], taps, n);
                }
            }
}

/* --- of the weights ----------------------------------------------------------------------------------------------- */

static const char *weights_reject(const HnStep *s)
{
    HnConvPlan plan;
    HnWindowAxis axis[3];
    const char *reason = hn_weight_grad_plan(s, &plan, axis);
    if (reason == NULL && !((const HnConv *)s->params)->few)
        reason = "the result's gradient is not known to be 0 nearly everywhere";
    return reason != NULL ? reason : few_reject(&plan);
}

static gboolean weights_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *dy = hn_cpu_in(s, 1), *w = hn_cpu_in(s, 2);
    HnConvPlan plan;
    HnWindowAxis axis[3];
    hn_weight_grad_plan(s, &plan, axis);
    Few *f = few_new(&plan);
    s->state = f;
    f->threads = (int)MIN(hn_cpu_threads_for(s, SEEN_FLOPS * (double)dy->n), dy->dims[1]);
    s->in[0].want = hn_layout_last(x);
    s->in[1].want = hn_layout_last(dy);
    s->in[2].unread = TRUE;
    s->scratch_bytes = (gsize)((w->n + ROUND - 1) / ROUND * ROUND) * sizeof(float) +
                       (gsize)f->threads * (gsize)plan.taps * sizeof(Tap);
    return TRUE;
}

/* Output channels [from, to). */
static void run_channels(const Run *r, int64_t from, int64_t to, Tap *taps)
{
    const HnConvPlan *p = &r->f->plan;
    const int64_t in = p->in_channels;
    memset(r->sums + from * p->taps * in, 0, (gsize)((to - from) * p->taps * in) * sizeof(float));
    if (r->db != NULL)
        memset(r->db + from, 0, (gsize)(to - from) * sizeof(float));
    for (int64_t sample = 0; sample < p->batch; sample++)
        run_sample(r, sample, from, to, taps);
    for (int64_t o = from; o < to; o++)
        for (int64_t k = 0; k < p->taps; k++)
            for (int64_t c = 0; c < in; c++)
                r->dw[(o * in + c) * p->taps + k] = r->sums[(o * p->taps + k) * in + c];
}

static gboolean weights_run(HnStep *s, GError **error)
{
    (void)error;
    const Few *f = s->state;
    const int n = f->threads;
    const int64_t channels = f->plan.group * f->plan.out_channels, w = hn_cpu_in(s, 2)->n;
    const Run r = { .f = f,
                    .dy = hn_cpu_data(&s->in[1]),
                    .y_pitch = hn_slot_pitch(s->in[1].slot),
                    .x = hn_cpu_data(&s->in[0]),
                    .x_pitch = hn_slot_pitch(s->in[0].slot),
                    .sums = s->scratch,
                    .dw = hn_cpu_data(&s->out[0]),
                    .db = s->n_out > 1 && s->out[1].slot != NULL ? hn_cpu_data(&s->out[1]) : NULL };
    Tap *taps = (Tap *)(gpointer)((float *)s->scratch + (w + ROUND - 1) / ROUND * ROUND);
    if (n == 1) {
        run_channels(&r, 0, channels, taps);
        return TRUE;
    }
#pragma omp parallel for num_threads(n)
    for (int i = 0; i < n; i++)
        run_channels(&r, channels * i / n, channels * (i + 1) / n, taps + i * f->plan.taps);
    return TRUE;
}

const HnKernel hn_cpu_weight_grad_few = {
    .name = "cpu.convweightgrad_few",
    .reject = weights_reject,
    .prepare = weights_prepare,
    .run = weights_run,
    .release = hn_cpu_release,
    .pitched = TRUE,
};

/* --- of the source ------------------------------------------------------------------------------------------------ */

/* Of the convolution that s, a ConvTranspose, is the gradient of. */
static gboolean source_plan(const HnStep *s, HnConvPlan *plan)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    HnConvPlan p;
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &p, NULL))
        return FALSE;
    *plan = p;
    plan->in_channels = p.out_channels;
    plan->out_channels = p.in_channels;
    plan->x_plane = p.y_plane;
    plan->y_plane = p.x_plane;
    return TRUE;
}

static const char *source_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    HnConvPlan plan;
    if (reason != NULL)
        return reason;
    if (!((const HnConvTranspose *)s->params)->few)
        return "the source is not known to be 0 nearly everywhere";
    if (hn_cpu_in(s, 0)->ndim > 5)
        return "only 1 to 3 spatial axes";
    if (hn_cpu_in(s, 2) != NULL || !hn_slot_is_weight(s->in[1].slot))
        return "a bias, or weights that are computed";
    return source_plan(s, &plan) ? few_reject(&plan) : "the window does not fit";
}

/* HnPackFn: [channels][input channels][taps] of any alignment, turned. */
static void pack(void *to, const HnTensor *t, gconstpointer data)
{
    const Few *f = data;
    const char *w = t->data;
    float *turned = to;
    const int64_t in = f->plan.in_channels, taps = f->plan.taps, n = f->plan.group * f->plan.out_channels;
    for (int64_t o = 0; o < n; o++)
        for (int64_t c = 0; c < in; c++)
            for (int64_t k = 0; k < taps; k++)
                memcpy(turned + (o * taps + k) * in + c, w + ((o * in + c) * taps + k) * (int64_t)sizeof(float),
                       sizeof(float));
}

static void source_release(HnStep *s)
{
    Few *f = s->state;
    if (f == NULL)
        return;
    hn_pack_unref(f->weights);
    g_free(f);
    s->state = NULL;
}

static gboolean source_prepare(HnStep *s, GError **error)
{
    const HnTensor *dy = hn_cpu_in(s, 0);
    HnConvPlan plan;
    (void)source_plan(s, &plan);
    Few *f = few_new(&plan);
    s->state = f;
    if (!hn_pack_own(s, 1, pack, plan.in_channels, hn_cpu_in(s, 1)->bytes, f, &f->weights, error))
        return FALSE;
    f->threads = (int)MIN(hn_cpu_threads_for(s, SEEN_FLOPS * (double)dy->n), plan.batch);
    s->in[0].want = hn_layout_last(dy);
    s->out[0].slot->layout = hn_layout_last(s->out[0].slot->tensor);
    s->scratch_bytes = (gsize)f->threads * (gsize)plan.taps * sizeof(Tap);
    return TRUE;
}

static void run_samples(const Run *r, int64_t from, int64_t to, Tap *taps)
{
    const HnConvPlan *p = &r->f->plan;
    const int64_t channels = p->group * p->in_channels;
    for (int64_t sample = from; sample < to; sample++) {
        for (int64_t i = 0; i < p->x_plane; i++)
            memset(r->dx + (sample * p->x_plane + i) * r->dx_pitch, 0, (gsize)channels * sizeof(float));
        run_sample(r, sample, 0, p->group * p->out_channels, taps);
    }
}

static gboolean source_run(HnStep *s, GError **error)
{
    (void)error;
    const Few *f = s->state;
    const int n = f->threads;
    const Run r = { .f = f,
                    .weights = hn_pack_data(f->weights, s, 1),
                    .dy = hn_cpu_data(&s->in[0]),
                    .y_pitch = hn_slot_pitch(s->in[0].slot),
                    .dx = hn_cpu_data(&s->out[0]),
                    .dx_pitch = hn_slot_pitch(s->out[0].slot) };
    if (n == 1) {
        run_samples(&r, 0, f->plan.batch, s->scratch);
        return TRUE;
    }
#pragma omp parallel for num_threads(n)
    for (int i = 0; i < n; i++)
        run_samples(&r, f->plan.batch * i / n, f->plan.batch * (i + 1) / n, (Tap *)s->scratch + i * f->plan.taps);
    return TRUE;
}

const HnKernel hn_cpu_source_grad_few = {
    .name = "cpu.convsourcegrad_few",
    .reject = source_reject,
    .prepare = source_prepare,
    .run = source_run,
    .release = source_release,
    .pitched = TRUE,
};
