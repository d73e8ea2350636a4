/*
 * Gradients of MaxPool and AveragePool: each window gives what it got to its elements. Channels last, or plain with a
 * plane for each channel. A sample or plane is one thread's, so that sums have one order.
 */
#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/core/cpu_level.h"
#include "op/index.h"
#include "op/pool.h"

#define HN_LOOPS "cpu/conv/poolgrad_loops.h"
#include "base/every_level.h"

enum { DY, X, Y }; /* Y: of MaxPoolGrad */

#define MANY_CHANNELS 8 /* from where on plain values are laid channels last first */
#define APART_TAPS 32   /* of windows without a common element, at most */

typedef struct {
    void (*most)(float *restrict dx, const float *restrict x, const float *restrict y, float *restrict left, int64_t n);
    void (*apart)(float *dx, const float *x, const int64_t *at, int taps, const float *y, const float *dy, int64_t n);
    void (*share)(float *restrict dx, const float *restrict dy, float share, int64_t n);
    const HnPool *p;
    HnWindowAxis axis[3];     /* depth, height, width */
    gboolean mean;            /* of AveragePool */
    int64_t channels, planes; /* of a pixel; parts of the batch */
    int64_t x_plane, y_plane; /* elements of one */
    int threads;
    gboolean is_apart; /* no element is in two windows */
    gboolean is_whole; /* each one is in a window */
} PoolGrad;

static gboolean place(const HnStep *s, HnWindowAxis *axis)
{
    const HnTensor *x = hn_cpu_in(s, X);
    HnWindowAxis all[HN_MAX_RANK];
    int64_t dims[HN_MAX_RANK];
    if (!hn_pool_place(s->params, x->ndim, x->dims, all, dims, NULL) ||
        !hn_tensor_has_dims(hn_cpu_in(s, DY), x->ndim, dims))
        return FALSE;
    hn_window_axes(x->ndim - 2, all, 3, axis);
    return TRUE;
}

static const char *poolgrad_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    HnWindowAxis axis[3];
    if (reason != NULL)
        return reason;
    const int rank = hn_cpu_in(s, X)->ndim;
    if (rank < 3 || rank > 5 || hn_cpu_in(s, DY)->ndim != rank)
        return "only 1 to 3 spatial axes";
    return place(s, axis) ? NULL : "inputs that do not fit";
}

/* Channels last where something lies so, or it is worth the while. */
static gboolean lies_last(const HnStep *s)
{
    gboolean last = hn_cpu_in(s, X)->dims[1] >= MANY_CHANNELS;
    for (int i = 0; i < s->n_in; i++)
        last = last || s->in[i].slot->layout != NULL;
    return last;
}

/* Whether windows of many channels share no elements, and leave none out. */
static void look_apart(PoolGrad *g)
{
    int64_t taps = 1;
    g->is_apart = g->channels >= MANY_CHANNELS && !g->mean;
    g->is_whole = TRUE;
    for (int i = 0; i < 3; i++) {
        const HnWindowAxis *a = &g->axis[i];
        taps *= a->kernel;
        g->is_apart = g->is_apart && a->kernel <= a->stride && (a->dilation == 1 || a->kernel == 1);
        g->is_whole = g->is_whole && a->kernel == a->stride && a->out * a->stride - a->pad >= a->in;
    }
    g->is_apart = g->is_apart && taps <= APART_TAPS;
}

static gboolean poolgrad_prepare(HnStep *s, GError **error)
{
    static void (*const most[])(float *restrict, const float *restrict, const float *restrict, float *restrict,
                                int64_t) = HN_TABLE_OF_LEVELS(give_most);
    static void (*const apart[])(float *, const float *, const int64_t *, int, const float *, const float *, int64_t) =
        HN_TABLE_OF_LEVELS(give_apart);
    static void (*const share[])(float *restrict, const float *restrict, float, int64_t) =
        HN_TABLE_OF_LEVELS(give_share);
    (void)error;
    const HnTensor *x = hn_cpu_in(s, X);
    PoolGrad *g = g_new0(PoolGrad, 1);
    s->state = g;
    g->most = most[hn_cpu_level()];
    g->apart = apart[hn_cpu_level()];
    g->share = share[hn_cpu_level()];
    g->p = s->params;
    g->mean = s->n_in == 2;
    place(s, g->axis);
    g->channels = 1;
    g->planes = x->dims[0] * x->dims[1];
    if (lies_last(s)) {
        g->channels = x->dims[1];
        g->planes = x->dims[0];
        for (int i = 0; i < s->n_in; i++)
            s->in[i].want = hn_layout_last(hn_cpu_in(s, i));
        s->out[0].slot->layout = hn_layout_last(x);
    }
    if (g->mean)
        s->in[X].unread = TRUE; /* its shape is known */
    g->x_plane = x->n / g->planes;
    g->y_plane = hn_cpu_in(s, DY)->n / g->planes;
    g->threads = hn_cpu_threads_for(s, 4 * (double)x->n);
    look_apart(g);
    s->scratch_bytes = g->mean ? 0 : (gsize)(g->threads * g->channels) * sizeof(float);
    return TRUE;
}

/* Taps of the window at output o that lie in the source: [*from, *to), and where tap 0 lies. */
static int64_t taps(const HnWindowAxis *a, int64_t o, int64_t *from, int64_t *to)
{
    const int64_t begin = o * a->stride - a->pad;
    *from = begin >= 0 ? 0 : (a->dilation - 1 - begin) / a->dilation;
    *to = begin >= a->in ? 0 : MIN(a->kernel, (a->in - begin + a->dilation - 1) / a->dilation);
    return begin;
}

/* One pixel of the result, at `at` of its plane, and what one plane of each value is. */
typedef struct {
    float *dx, *left;
    const float *dy, *x, *y;
} Plane;

static void give(const PoolGrad *g, const Plane *p, const int64_t *o, int64_t at)
{
    int64_t from[3], to[3], begin[3], held = 1, element[APART_TAPS];
    const int64_t c = g->channels;
    int elements = 0;
    for (int i = 0; i < 3; i++) {
        begin[i] = taps(&g->axis[i], o[i], &from[i], &to[i]);
        held *= g->mean ? hn_pool_held(&g->axis[i], o[i], g->p->count_pad) : 1;
    }
    if (!g->mean && !g->is_apart)
        memcpy(p->left, p->dy + at * c, (gsize)c * sizeof(float));
    const float share = g->p->p > 0 || held == 0 ? 1 : 1 / (float)held;
    for (int64_t k0 = from[0]; k0 < to[0]; k0++)
        for (int64_t k1 = from[1]; k1 < to[1]; k1++)
            for (int64_t k2 = from[2]; k2 < to[2]; k2++) {
                const int64_t z = begin[0] + k0 * g->axis[0].dilation, y = begin[1] + k1 * g->axis[1].dilation;
                const int64_t w = begin[2] + k2 * g->axis[2].dilation;
                const int64_t of = ((z * g->axis[1].in + y) * g->axis[2].in + w) * c;
                if (g->is_apart)
                    element[elements++] = of;
                else if (g->mean)
                    g->share(p->dx + of, p->dy + at * c, share, c);
                else
                    g->most(p->dx + of, p->x + of, p->y + at * c, p->left, c);
            }
    if (g->is_apart)
        g->apart(p->dx, p->x, element, elements, p->y + at * c, p->dy + at * c, c);
}

static void run_plane(const HnStep *s, int thread, int64_t i)
{
    const PoolGrad *g = s->state;
    const Plane p = { .dx = (float *)hn_cpu_data(&s->out[0]) + i * g->x_plane,
                      .left = g->mean ? NULL : (float *)s->scratch + thread * g->channels,
                      .dy = (const float *)hn_cpu_data(&s->in[DY]) + i * g->y_plane,
                      .x = g->mean ? NULL : (const float *)hn_cpu_data(&s->in[X]) + i * g->x_plane,
                      .y = g->mean ? NULL : (const float *)hn_cpu_data(&s->in[Y]) + i * g->y_plane };
    int64_t o[3], at = 0;
    if (!g->is_apart || !g->is_whole)
        memset(p.dx, 0, (gsize)g->x_plane * sizeof(float));
    for (o[0] = 0; o[0] < g->axis[0].out; o[0]++)
        for (o[1] = 0; o[1] < g->axis[1].out; o[1]++)
            for (o[2] = 0; o[2] < g->axis[2].out; o[2]++)
                give(g, &p, o, at++);
}

static gboolean poolgrad_run(HnStep *s, GError **error)
{
    (void)error;
    const PoolGrad *g = s->state;
#pragma omp parallel for num_threads(g->threads) if (g->threads > 1)
    for (int t = 0; t < g->threads; t++)
        for (int64_t i = g->planes * t / g->threads; i < g->planes * (t + 1) / g->threads; i++)
            run_plane(s, t, i);
    return TRUE;
}

static const HnKernel poolgrad = {
    .name = "cpu.pool_grad",
    .reject = poolgrad_reject,
    .prepare = poolgrad_prepare,
    .run = poolgrad_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_maxpoolgrad[] = { &poolgrad, NULL };
const HnKernel *const hn_cpu_poolgrad[] = { &poolgrad, NULL };
