/*
 * GroupNormalization and InstanceNormalization of f32, channels last: sums down the columns of parts of an image that
 * stay in the cache while differences from the part's mean are squared, and then those of a group's channels. Parts do
 * not depend on the number of threads.
 */
#include <math.h>

#include "cpu/reduce/norm.h"
#include "op/index.h"
#include "op/instancenorm.h"

#define PART 8192 /* elements of a part, about */

typedef struct {
    const HnRowFns *fns;
    int64_t n, groups, channels, pixels, parts;
    float epsilon;
    gboolean per_group; /* of scale and bias */
    int threads;
} Norm;

/* One run: factor and shift are [n][channels], mean and squares [n][parts][channels]. */
typedef struct {
    const Norm *g;
    const float *x;
    float *y, *factor, *shift, *mean, *squares;
} Run;

static const char *norm_reject(const HnStep *s)
{
    const HnGroupNorm *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    if (!hn_layout_is_last(s->in[0].slot->layout))
        return "the source is not channels last";
    const int64_t groups = p->groups > 0 ? p->groups : x->dims[1], factors = p->per_group ? groups : x->dims[1];
    return x->dims[1] % groups != 0 || hn_cpu_in(s, 1)->n != factors || hn_cpu_in(s, 2)->n != factors
               ? "scale or bias of another size"
               : NULL;
}

static gboolean norm_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnGroupNorm *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    Norm *g = g_new0(Norm, 1);
    s->state = g;
    g->fns = hn_cpu_rows();
    g->n = x->dims[0];
    g->channels = x->dims[1];
    g->groups = p->groups > 0 ? p->groups : g->channels;
    g->pixels = hn_span(x->dims, 2, x->ndim);
    g->parts = CLAMP(g->pixels * g->channels / PART, 1, g->pixels);
    g->epsilon = p->epsilon;
    g->per_group = p->per_group;
    g->threads = hn_cpu_threads_for(s, 6 * (double)x->n);
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(x);
    s->scratch_bytes = (gsize)(g->n * g->channels * 2 * (g->parts + 1)) * sizeof(float);
    return TRUE;
}

/* Pixels [*from, *to) of the batch are part i. */
static void part(const Norm *g, int64_t i, int64_t *from, int64_t *to)
{
    const int64_t image = i / g->parts * g->pixels, at = i % g->parts;
    *from = image + g->pixels * at / g->parts;
    *to = image + g->pixels * (at + 1) / g->parts;
}

static void sum_parts(gpointer run, G_GNUC_UNUSED int thread, int64_t first, int64_t last)
{
    const Run *r = run;
    const Norm *g = r->g;
    for (int64_t i = first, from, to; i < last; i++) {
        float *mean = r->mean + i * g->channels;
        part(g, i, &from, &to);
        const float *x = r->x + from * g->channels;
        g->fns->down_sum(mean, x, to - from, g->channels);
        for (int64_t c = 0; c < g->channels; c++)
            mean[c] /= (float)(to - from);
        g->fns->down_squares(r->squares + i * g->channels, x, to - from, g->channels, mean);
    }
}

static void scale_parts(gpointer run, G_GNUC_UNUSED int thread, int64_t first, int64_t last)
{
    const Run *r = run;
    const Norm *g = r->g;
    for (int64_t i = first, from, to; i < last; i++) {
        const int64_t at = i / g->parts * g->channels;
        part(g, i, &from, &to);
        g->fns->down_affine(r->y + from * g->channels, r->x + from * g->channels, to - from, g->channels,
                            r->factor + at, r->shift + at);
    }
}

/* Mean and variance over a group of sample i, of those of its parts. */
static void moments(const Norm *g, const Run *r, int64_t i, int64_t group, double *mean, double *variance)
{
    const int64_t each = g->channels / g->groups;
    double sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t p = i * g->parts, from, to; p < (i + 1) * g->parts; p++) {
            const float *m = r->mean + p * g->channels + group * each, *q = r->squares + p * g->channels + group * each;
            part(g, p, &from, &to);
            for (int64_t c = 0; c < each; c++) {
                const double off = (double)m[c] - *mean;
                if (pass == 0)
                    sum += (double)m[c] * (double)(to - from);
                else
                    squares += (double)q[c] + off * off * (double)(to - from);
            }
        }
        *mean = sum / (double)(each * g->pixels);
    }
    *variance = squares / (double)(each * g->pixels);
}

static void set_factors(const Run *r, const float *scale, const float *bias)
{
    const Norm *g = r->g;
    const int64_t each = g->channels / g->groups;
    for (int64_t i = 0; i < g->n * g->groups; i++) {
        const int64_t group = i % g->groups;
        double mean = 0, variance = 0;
        moments(g, r, i / g->groups, group, &mean, &variance);
        const float inv = 1.0f / sqrtf((float)variance + g->epsilon);
        for (int64_t c = 0; c < each; c++) {
            const int64_t k = g->per_group ? group : group * each + c;
            r->factor[i * each + c] = inv * scale[k];
            r->shift[i * each + c] = bias[k] - (float)mean * r->factor[i * each + c];
        }
    }
}

static gboolean norm_run(HnStep *s, GError **error)
{
    (void)error;
    const Norm *g = s->state;
    const int64_t rows = g->n * g->channels, parts = g->n * g->parts;
    float *scratch = s->scratch;
    Run r = { .g = g,
              .x = hn_cpu_data(&s->in[0]),
              .y = hn_cpu_data(&s->out[0]),
              .factor = scratch,
              .shift = scratch + rows,
              .mean = scratch + 2 * rows,
              .squares = scratch + (2 + g->parts) * rows };
    hn_parallel_for(parts, g->threads, sum_parts, &r);
    set_factors(&r, hn_cpu_data(&s->in[1]), hn_cpu_data(&s->in[2]));
    hn_parallel_for(parts, g->threads, scale_parts, &r);
    return TRUE;
}

const HnKernel hn_cpu_groupnorm_last = {
    .name = "cpu.groupnorm_last",
    .reject = norm_reject,
    .prepare = norm_prepare,
    .run = norm_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};
