/*
 * Conv where each group has one input channel, with small square windows: read once, and computed along with what
 * follows.
 */
#include "cuda/conv/cuda_conv.h"
#include "cuda/elementwise/cuda_end.h"
#include "cuda/conv/cuda_depthwise_args.h"
#include "cuda/conv/cuda_last.h"
#include "cuda/conv/cuda_window.h"

#define FEW 2 /* rows of a thread, where there are few of them, ... */
#define MANY 8
#define FOURS 4 /* rows, of four columns */
#define BUSY_FOURS 64
#define BUSY 1024 /* ... below so many threads of each multiprocessor */

enum { X, W, BIAS };

typedef struct {
    HnCuFunction f, fours; /* fours: where x and y lie at multiples of four elements; else NULL */
    HnCudaGrid grid, fours_grid;
    HnCudaDepthwiseArgs args;
    int64_t fours_threads;
    int32_t fours_strips;
} Depthwise;

static const char *depthwise_reject(const HnStep *s)
{
    HnConvPlan p;
    const char *reason = hn_cuda_conv_reject(s, &p);
    if (reason != NULL)
        return reason;
    const HnWindowAxis *h = &p.axis[0], *w = &p.axis[1];
    if (p.in_channels != 1 || p.n != 2)
        return "more than one channel of a group, or no plane";
    if (h->kernel != w->kernel || (h->kernel != 3 && h->kernel != 5))
        return "windows other than 3 x 3 and 5 x 5";
    if (h->stride != w->stride || h->stride > 2 || h->dilation != 1 || w->dilation != 1)
        return "a stride other than 1 and 2, or dilation";
    return hn_cuda_goes_last(s, &hn_cuda_conv_depthwise_last) ? HN_CUDA_GOES_LAST : NULL;
}

/* Four columns for each thread, where that leaves enough of them. */
static gboolean prepare_fours(const HnStep *s, Depthwise *d, int64_t planes, GError **error)
{
    const HnCuda *c = s->device;
    const HnCudaWindowAxis *h = &d->args.axis[0], *w = &d->args.axis[1];
    d->fours_strips = (h->out - 1) / FOURS + 1;
    d->fours_threads = planes * d->fours_strips * (w->out / 4);
    if (w->stride != 1 || w->pad != w->kernel / 2 || w->in % 4 != 0 || w->out % 4 != 0 ||
        d->fours_threads < (int64_t)c->multiprocessors * BUSY_FOURS)
        return TRUE;
    d->fours_grid = hn_cuda_row((d->fours_threads - 1) / HN_CUDA_DEPTHWISE_THREADS + 1, HN_CUDA_DEPTHWISE_THREADS);
    g_autofree char *name = g_strdup_printf("depthwise_%d_fours_rows_%d", w->kernel, FOURS);
    d->fours = hn_cuda_typed(s, "cuda_depthwise", name, hn_cuda_in(s, X)->dtype, error);
    return d->fours != NULL;
}

static gboolean depthwise_prepare(HnStep *s, GError **error)
{
    const HnCuda *c = s->device;
    Depthwise *d = g_new0(Depthwise, 1);
    HnCudaDepthwiseArgs *a = &d->args;
    HnCudaWindowAxis axis[HN_CUDA_SPATIAL];
    HnConvPlan p;
    s->state = d;
    (void)hn_cuda_conv_reject(s, &p);
    hn_cuda_axes(p.n, p.axis, axis);
    a->axis[0] = axis[1];
    a->axis[1] = axis[2];
    a->channels = (int32_t)(p.group * p.out_channels);
    a->each = (int32_t)p.out_channels;
    const int64_t columns = p.batch * a->channels * axis[2].out;
    const gboolean many = columns * axis[1].out / MANY >= (int64_t)c->multiprocessors * BUSY;
    a->strips = (axis[1].out - 1) / (many ? MANY : FEW) + 1;
    a->threads = columns * a->strips;
    hn_cuda_end_init(s, &a->end, 1);
    d->grid = hn_cuda_row((a->threads - 1) / HN_CUDA_DEPTHWISE_THREADS + 1, HN_CUDA_DEPTHWISE_THREADS);
    g_autofree char *name =
        g_strdup_printf("depthwise_%d_by_%d_rows_%d", axis[1].kernel, axis[1].stride, many ? MANY : FEW);
    d->f = hn_cuda_typed(s, "cuda_depthwise", name, hn_cuda_in(s, X)->dtype, error);
    return d->f != NULL && prepare_fours(s, d, p.batch * a->channels, error);
}

static gboolean depthwise_run(HnStep *s, GError **error)
{
    const Depthwise *d = s->state;
    HnCudaDepthwiseArgs a = d->args;
    a.x = hn_cuda_in_address(s, X);
    a.w = hn_cuda_in_address(s, W);
    a.bias = s->n_in > BIAS ? hn_cuda_in_address(s, BIAS) : 0;
    a.y = hn_cuda_out_address(s, 0);
    hn_cuda_end_place(s, &a.end);
    if (d->fours == NULL || (a.x | a.y) % (hn_cuda_in(s, X)->dtype == HN_F32 ? 16 : 8) != 0)
        return hn_cuda_launch(s, d->f, d->grid, &a, error);
    a.strips = d->fours_strips;
    a.threads = d->fours_threads;
    return hn_cuda_launch(s, d->fours, d->fours_grid, &a, error);
}

const HnKernel hn_cuda_conv_depthwise = {
    .name = "cuda.conv_depthwise",
    .reject = depthwise_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = hn_cuda_release,
    .fuses = hn_cuda_end_fits,
};
