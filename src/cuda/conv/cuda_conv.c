/*
 * Conv, ConvTranspose and ConvWeightGrad of 1 to 3 spatial axes, in plain layouts.
 *
 * They are products of tiles (cuda_conv_core.cuh), whose elements are gathered from x as they are needed. Where there
 * are few tiles, terms are summed in parts by several blocks, and then the parts in their order. With few output
 * channels of a group a thread computes some pixels alone, or, of a gradient, a block each weight.
 *
 * A transposed convolution is one of stride 1 for each remainder that places in y have modulo the stride.
 */
#include "cuda/conv/cuda_conv.h"

#include "cuda/conv/cuda_conv_args.h"
#include "cuda/conv/cuda_last.h"
#include "cuda/conv/cuda_window.h"

#define TILE 64
#define TILE_THREADS 128
#define DIRECT_THREADS 128
#define THREADS 256
#define FEW_CHANNELS 16           /* of a group's output: most of a tile would be empty */
#define PART_TERMS 256            /* at least */
#define PARTS 32                  /* at most */
#define BLOCKS ((int64_t)1 << 31) /* fewer in a launch */

enum { X, W, BIAS };   /* of Conv and ConvTranspose ... */
enum { DY = 1, LIKE }; /* ... and of ConvWeightGrad, whose input LIKE has the shape of the weights */

typedef enum { FORWARD, TRANSPOSED, GRAD } Kind;

typedef struct {
    HnCuFunction f, sum, bias;
    HnCudaGrid grid, sum_grid, bias_grid;
    HnCudaConvArgs args;
    HnCudaConvSumArgs sums;
    HnCudaConvBiasArgs biases;
} Conv;

/* FALSE: sizes do not fit. Of a gradient, axes have as many outputs as there are in dy. */
static gboolean plan_of(const HnStep *s, Kind kind, HnConvPlan *p, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, X), *w = hn_cuda_in(s, kind == GRAD ? LIKE : W);
    if (kind == TRANSPOSED)
        return hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error);
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, p, error))
        return FALSE;
    const HnTensor *dy = hn_cuda_in(s, DY);
    p->y_plane = kind == GRAD ? 1 : p->y_plane;
    for (int i = 0; kind == GRAD && i < p->n; i++) {
        p->axis[i].out = dy->dims[2 + i];
        p->y_plane *= dy->dims[2 + i];
    }
    return TRUE;
}

/* Input 1 of a gradient has the shape of the result, or less of it. */
static gboolean grad_fits(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, X), *dy = hn_cuda_in(s, DY), *w = hn_cuda_in(s, LIKE);
    HnConvPlan p;
    int64_t dims[HN_MAX_RANK];
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, &p, NULL) || dy->ndim != x->ndim)
        return FALSE;
    hn_conv_out_dims(&p, FALSE, dims);
    gboolean fits = dy->dims[0] == dims[0] && dy->dims[1] == dims[1];
    for (int i = 2; fits && i < dy->ndim; i++)
        fits = dy->dims[i] <= dims[i];
    return fits;
}

static int64_t tiles(int64_t n, int64_t of)
{
    return n / of + (n % of != 0);
}

/* As many parts as keep the device busy, of some length each. */
static void split(const HnStep *s, int64_t blocks, int64_t terms, HnCudaConvArgs *a)
{
    const HnCuda *c = s->device;
    const int64_t wanted = MIN(2 * c->multiprocessors / MAX(blocks, 1), PARTS);
    a->splits = (int32_t)CLAMP(wanted, 1, MAX(terms / PART_TERMS, 1));
    a->terms = tiles(tiles(terms, a->splits), PART_TERMS) * PART_TERMS;
    a->splits = (int32_t)MAX(tiles(terms, a->terms), 1);
}

static gboolean is_direct(const HnConvPlan *p)
{
    return p->out_channels < FEW_CHANNELS;
}

static int direct_channels(const HnConvPlan *p)
{
    return p->out_channels == 1 ? 1 : p->out_channels <= 4 ? 4 : 8;
}
static int direct_pixels(const HnConvPlan *p)
{
    return p->out_channels == 1 ? 4 : p->out_channels <= 4 ? 2 : 1;
}

/* How blocks share the work; all of them: rows, then columns, groups, phases, parts. FALSE: too many of them. */
static gboolean share(const HnStep *s, Kind kind, const HnConvPlan *p, HnCudaConvArgs *a, int64_t *blocks)
{
    const gboolean direct = is_direct(p), grad = kind == GRAD;
    int64_t pixels = p->batch, phases = 1;
    for (int i = 0; i < HN_CUDA_SPATIAL; i++) {
        const HnCudaWindowAxis *x = &a->axis[i];
        a->phases[i] = a->transposed ? MIN(x->stride, x->in) : 1;
        phases *= a->phases[i];
        pixels *= a->transposed ? tiles(x->in, x->stride) : x->out;
    }
    const int64_t taps = p->in_channels * p->taps, columns = grad ? taps : pixels;
    const int64_t row = direct ? grad ? 1 : direct_channels(p) : TILE;
    const int64_t column = direct ? grad ? 1 : DIRECT_THREADS * direct_pixels(p) : TILE;
    a->rows = (int32_t)tiles(p->out_channels, row);
    a->columns = tiles(columns, column);
    *blocks = (int64_t)a->rows * a->groups;
    if (a->columns >= BLOCKS / *blocks || phases >= BLOCKS / (*blocks * a->columns))
        return FALSE;
    *blocks *= a->columns * phases;
    a->splits = 1;
    if (!direct)
        split(s, *blocks, grad ? pixels : taps, a);
    *blocks *= a->splits;
    return *blocks < BLOCKS;
}

static gboolean describe(const HnStep *s, Kind kind, const HnConvPlan *p, HnCudaConvArgs *a, int64_t *blocks)
{
    const HnTensor *result = hn_cuda_out(s, 0);
    *a = (HnCudaConvArgs){ .batch = p->batch, .x_plane = p->x_plane, .y_plane = p->y_plane };
    hn_cuda_axes(p->n, p->axis, a->axis);
    a->groups = (int32_t)p->group;
    a->in_channels = (int32_t)p->in_channels;
    a->out_channels = (int32_t)p->out_channels;
    a->transposed = kind == TRANSPOSED;
    a->w_out = a->transposed ? p->taps : p->in_channels * p->taps;
    a->w_in = a->transposed ? p->out_channels * p->taps : p->taps;
    a->result = result->n;
    return share(s, kind, p, a, blocks);
}

static const char *reject_plan(const HnStep *s, Kind kind, HnConvPlan *plan)
{
    const char *reason = hn_cuda_reject_values(s);
    const HnTensor *y = hn_cuda_out(s, 0), *b = kind == GRAD ? NULL : hn_cuda_in(s, BIAS);
    if (reason != NULL)
        return reason;
    if (y == NULL)
        return "only sums are wanted";
    if (!plan_of(s, kind, plan, NULL) || (kind == GRAD && !grad_fits(s)))
        return "inputs that do not fit";
    if (b != NULL && (b->ndim != 1 || b->n != y->dims[1]))
        return "a bias of another size than the output's channels";
    if ((reason = hn_cuda_reject_axes(plan->n, plan->axis)) != NULL)
        return reason;
    if (plan->group * MAX(plan->in_channels, plan->out_channels) >= G_MAXINT32)
        return "2^31 channels or more";
    return NULL;
}

static const char *reject(const HnStep *s, Kind kind)
{
    HnConvPlan plan;
    HnCudaConvArgs a;
    int64_t blocks;
    const char *reason = reject_plan(s, kind, &plan);
    if (reason != NULL)
        return reason;
    return describe(s, kind, &plan, &a, &blocks) ? NULL : "more blocks than a launch has";
}

const char *hn_cuda_conv_reject(const HnStep *s, HnConvPlan *p)
{
    return reject_plan(s, FORWARD, p);
}

/* What run() launches behind the convolution. */
static gboolean prepare_sums(HnStep *s, Kind kind, Conv *c, HnDtype t, GError **error)
{
    if (c->args.splits > 1) {
        const HnTensor *y = hn_cuda_out(s, 0);
        s->scratch_bytes = (gsize)c->args.splits * (gsize)y->n * sizeof(float);
        c->sums = (HnCudaConvSumArgs){ .n = y->n, .plane = c->args.y_plane, .splits = c->args.splits };
        c->sums.channels = c->args.groups * c->args.out_channels;
        c->sum_grid = hn_cuda_loop(s, y->n, THREADS);
        if ((c->sum = hn_cuda_typed(s, "cuda_conv", "conv_sum", t, error)) == NULL)
            return FALSE;
    }
    if (kind == GRAD && hn_cuda_out(s, 1) != NULL) {
        c->biases = (HnCudaConvBiasArgs){ .batch = c->args.batch, .plane = c->args.y_plane };
        c->biases.channels = c->args.groups * c->args.out_channels;
        c->bias_grid = hn_cuda_row(c->biases.channels, THREADS);
        if ((c->bias = hn_cuda_typed(s, "cuda_conv", "conv_bias", t, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

static const char *kernel_name(const HnStep *s, Kind kind, const HnConvPlan *p)
{
    if (!is_direct(p) && s->strict_math)
        return kind == GRAD ? "conv_plain_weights" : "conv_plain";
    if (!is_direct(p))
        return kind == GRAD ? "conv_tensor_weights" : "conv_tensor";
    if (kind == GRAD)
        return "conv_weight";
    return p->out_channels == 1 ? "conv_direct1" : p->out_channels <= 4 ? "conv_direct4" : "conv_direct8";
}

static gboolean prepare(HnStep *s, Kind kind, GError **error)
{
    const HnDtype t = hn_cuda_in(s, X)->dtype;
    Conv *c = g_new0(Conv, 1);
    HnConvPlan plan;
    int64_t blocks = 0;
    s->state = c;
    if (!plan_of(s, kind, &plan, error))
        return FALSE;
    describe(s, kind, &plan, &c->args, &blocks);
    c->grid = hn_cuda_row(blocks, is_direct(&plan) ? DIRECT_THREADS : TILE_THREADS);
    if (kind == GRAD)
        s->in[LIKE].unread = TRUE;
    c->f = hn_cuda_typed(s, "cuda_conv", kernel_name(s, kind, &plan), t, error);
    return c->f != NULL && prepare_sums(s, kind, c, t, error);
}

static gboolean sum_parts(HnStep *s, const Conv *c, const HnCudaConvArgs *of, GError **error)
{
    HnCudaConvSumArgs a = c->sums;
    if (c->sum == NULL)
        return TRUE;
    a.parts = hn_cuda_scratch(s);
    a.bias = of->bias;
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, c->sum, c->sum_grid, &a, error);
}

static gboolean conv_run(HnStep *s, GError **error)
{
    const Conv *c = s->state;
    HnCudaConvArgs a = c->args;
    a.x = hn_cuda_in_address(s, X);
    a.w = hn_cuda_in_address(s, W);
    a.bias = hn_cuda_in_address(s, BIAS);
    a.y = hn_cuda_out_address(s, 0);
    a.parts = c->sum != NULL ? hn_cuda_scratch(s) : 0;
    return hn_cuda_launch(s, c->f, c->grid, &a, error) && sum_parts(s, c, &a, error);
}

static gboolean grad_run(HnStep *s, GError **error)
{
    const Conv *c = s->state;
    HnCudaConvArgs a = c->args;
    HnCudaConvBiasArgs b = c->biases;
    a.x = hn_cuda_in_address(s, X);
    a.y = b.dy = hn_cuda_in_address(s, DY);
    a.w = hn_cuda_out_address(s, 0);
    a.parts = c->sum != NULL ? hn_cuda_scratch(s) : 0;
    b.db = hn_cuda_out_address(s, 1);
    return hn_cuda_launch(s, c->f, c->grid, &a, error) && sum_parts(s, c, &a, error) &&
           (c->bias == NULL || hn_cuda_launch(s, c->bias, c->bias_grid, &b, error));
}

/* Nanoseconds, about, of a thread for each pixel: a launch, and what is multiplied. */
static double direct_ns(const HnConvPlan *p)
{
    const double terms = (double)p->in_channels * (double)p->taps;
    return 3000 + (double)p->batch * (double)p->group * (double)p->out_channels * (double)p->y_plane * terms / 2000;
}

static const char *conv_reject(const HnStep *s)
{
    HnConvPlan p;
    const char *reason = reject(s, FORWARD);
    if (reason != NULL)
        return reason;
    (void)hn_cuda_conv_reject(s, &p);
    return hn_cuda_conv_last_pays(s, direct_ns(&p)) ? "channels last takes less time" : NULL;
}

static gboolean conv_prepare(HnStep *s, GError **error)
{
    return prepare(s, FORWARD, error);
}

static const HnKernel conv = {
    .name = "cuda.conv",
    .reject = conv_reject,
    .prepare = conv_prepare,
    .run = conv_run,
    .release = hn_cuda_release,
};

static const char *transposed_reject(const HnStep *s)
{
    return reject(s, TRANSPOSED);
}

static gboolean transposed_prepare(HnStep *s, GError **error)
{
    return prepare(s, TRANSPOSED, error);
}

static const HnKernel transposed = {
    .name = "cuda.conv_transposed",
    .reject = transposed_reject,
    .prepare = transposed_prepare,
    .run = conv_run,
    .release = hn_cuda_release,
};

static const char *grad_reject(const HnStep *s)
{
    return reject(s, GRAD);
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    return prepare(s, GRAD, error);
}

static const HnKernel weight_grad = {
    .name = "cuda.conv_weight_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_conv[] = { &hn_cuda_conv_depthwise, &hn_cuda_conv_packed,         &conv,
                                         &hn_cuda_conv_last,      &hn_cuda_conv_depthwise_last, NULL };
const HnKernel *const hn_cuda_convtranspose[] = { &transposed, NULL };
const HnKernel *const hn_cuda_convweightgrad[] = { &weight_grad, NULL };
