#include "cuda/conv/cuda_last.h"

#include <string.h>

#include "cuda/conv/cuda_conv.h"
#include "cuda/elementwise/cuda_end.h"
#include "cuda/conv/cuda_last_args.h"
#include "cuda/conv/cuda_window.h"
#include "op/concat.h"
#include "op/index.h"
#include "op/ops.h"
#include "op/pool.h"
#include "op/transpose.h"
#include "run/axis_forms.h"
#include "run/resize_forms.h"

enum { X, W, BIAS };

gboolean hn_cuda_goes_last(const HnStep *s, const HnKernel *last)
{
    return s->in[X].slot != NULL && s->in[X].slot->layout != NULL && last->reject(s) == NULL;
}

/* --- what is around a step ---------------------------------------------------------------------------------------- */

#define LOOKED_AT 8 /* nodes one behind the other */

static gboolean is_wanted(const HnValue *v, int64_t channels, int depth);

/* A node that takes x, of so many channels (0: not known), as it lies. */
static gboolean passes(const HnNode *u, int64_t *channels)
{
    if (u->op == &hn_op_conv && ((const HnConv *)u->params)->group == *channels)
        return TRUE;
    if (u->op == &hn_op_concat || u->op == &hn_op_split || u->op == &hn_op_slice) {
        *channels = 0;
        return TRUE;
    }
    return (u->op->flags & HN_OP_ELEMENTWISE) != 0 || u->op == &hn_op_maxpool || u->op == &hn_op_averagepool ||
           (u->op == &hn_op_resize &&
            (((const HnResize *)u->params)->mode == HN_RESIZE_NEAREST || *channels % HN_CUDA_LINE == 0));
}

static gboolean wants(const HnNode *u, const HnValue *v, int64_t channels, int depth)
{
    if (u->op == NULL)
        return FALSE;
    if (u->op == &hn_op_conv && (hn_node_in(u, X) != v || ((const HnConv *)u->params)->group == 1))
        return hn_node_in(u, X) == v;
    if (channels % HN_CUDA_LINE == 0 && channels > 0 && u->op == &hn_op_transpose)
        return hn_cuda_turn_of(u, (int)((const HnTranspose *)u->params)->n) > 0;
    if (!passes(u, &channels))
        return FALSE;
    for (guint k = 0; k < u->out->len; k++)
        if (is_wanted(hn_node_out(u, (int)k), channels, depth - 1))
            return TRUE;
    return FALSE;
}

static gboolean is_wanted(const HnValue *v, int64_t channels, int depth)
{
    for (guint i = 0; v != NULL && depth > 0 && i < v->users->len; i++)
        if (wants(v->users->pdata[i], v, channels, depth))
            return TRUE;
    return FALSE;
}

gboolean hn_cuda_last_is_wanted(const HnValue *v, int64_t channels)
{
    return is_wanted(v, channels, LOOKED_AT);
}

/* --- what kernels have in common ---------------------------------------------------------------------------------- */

static const char *reject_tensors(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, X), *y = hn_cuda_out(s, 0);
    if (x == NULL || y == NULL || !hn_cuda_has_last(x) || !hn_cuda_has_last(y) || x->ndim > 4)
        return "no plane of 2 or 4 bytes";
    if (!hn_cuda_wants_only(s, 1))
        return "places are wanted";
    return MAX(x->n / x->dims[1] * hn_cuda_padded(x), y->n / y->dims[1] * hn_cuda_padded(y)) < HN_DIVIDE_LIMIT
               ? NULL
               : "2^31 elements or more";
}

/* A thread for each unit of `columns` pixels of y side by side. */
static HnCudaGrid describe(const HnStep *s, int n, const HnWindowAxis *axis, int columns, HnCudaLast *a)
{
    const HnTensor *y = hn_cuda_out(s, 0);
    HnCudaWindowAxis axes[HN_CUDA_SPATIAL];
    hn_cuda_axes(n, axis, axes);
    a->height = axes[1];
    a->width = axes[2];
    const int64_t units = hn_cuda_padded(y) / hn_cuda_line(y->dtype);
    const int64_t across = (axes[2].out + columns - 1) / columns;
    a->channels = (int32_t)y->dims[1];
    a->units = hn_divisor(units);
    a->of_width = hn_divisor(across);
    a->of_height = hn_divisor(axes[1].out);
    a->n = (uint32_t)(y->dims[0] * axes[1].out * across * units);
    return hn_cuda_row((a->n - 1) / HN_CUDA_LAST_THREADS + 1, HN_CUDA_LAST_THREADS);
}

static void place(const HnStep *s, HnCudaLast *a)
{
    a->x = hn_cuda_in_address(s, X);
    a->y = hn_cuda_out_address(s, 0);
    a->x_pitch = hn_cuda_pitch(s->in[X].slot);
    a->y_pitch = hn_cuda_pitch(s->out[0].slot);
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaPoolLastArgs args;
} Pool;

static const char *pool_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t out[HN_MAX_RANK];
    if (reason != NULL || (reason = reject_tensors(s)) != NULL)
        return reason;
    const HnTensor *x = hn_cuda_in(s, X), *y = hn_cuda_out(s, 0);
    if (!hn_pool_place(s->params, x->ndim, x->dims, axis, out, NULL) ||
        memcmp(out, y->dims, (gsize)x->ndim * sizeof *out) != 0)
        return "the window does not fit";
    return hn_cuda_reject_axes(x->ndim - 2, axis);
}

static gboolean pool_new(HnStep *s, const char *name, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, X);
    const HnPool *params = s->params;
    HnWindowAxis axis[HN_MAX_RANK];
    int64_t out[HN_MAX_RANK];
    Pool *p = g_new0(Pool, 1);
    s->state = p;
    if (!hn_pool_place(params, x->ndim, x->dims, axis, out, error))
        return FALSE;
    p->grid = describe(s, x->ndim - 2, axis, 1, &p->args.of);
    p->args.count_pad = params->count_pad;
    hn_cuda_want_last(s, X);
    hn_cuda_make_last(s);
    p->f = hn_cuda_typed(s, "cuda_last", name, x->dtype, error);
    return p->f != NULL;
}

static gboolean max_prepare(HnStep *s, GError **error)
{
    return pool_new(s, "pool_last_max", error);
}

static gboolean mean_prepare(HnStep *s, GError **error)
{
    return pool_new(s, "pool_last_mean", error);
}

static gboolean pool_run(HnStep *s, GError **error)
{
    const Pool *p = s->state;
    HnCudaPoolLastArgs a = p->args;
    place(s, &a.of);
    return hn_cuda_launch(s, p->f, p->grid, &a, error);
}

const HnKernel hn_cuda_max_pool_last = {
    .name = "cuda.max_pool_last",
    .reject = pool_reject,
    .prepare = max_prepare,
    .run = pool_run,
    .release = hn_cuda_release,
    .pitched = TRUE,
};

const HnKernel hn_cuda_mean_pool_last = {
    .name = "cuda.mean_pool_last",
    .reject = pool_reject,
    .prepare = mean_prepare,
    .run = pool_run,
    .release = hn_cuda_release,
    .pitched = TRUE,
};

/* --- whole planes ------------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaGlobalLastArgs args;
} Global;

static const char *global_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    const HnTensor *x = hn_cuda_in(s, X);
    if (reason != NULL)
        return reason;
    if (!hn_cuda_has_last(x))
        return "no plane";
    return x->n / x->dims[1] * hn_cuda_padded(x) < HN_DIVIDE_LIMIT ? NULL : "2^31 elements or more";
}

/* The mean of all but images and channels. */
static const char *reduce_reject(const HnStep *s)
{
    gboolean mask[HN_MAX_RANK];
    const char *reason = global_reject(s);
    if (reason != NULL || (reason = hn_reduced_axes(s, FALSE, mask)) != NULL)
        return reason;
    for (int i = 0; i < hn_cuda_in(s, X)->ndim; i++)
        if (mask[i] != (i > 1))
            return "other axes than those of a plane";
    return NULL;
}

/* Parts of the pixels, where blocks are few. */
static gboolean cut(HnStep *s, Global *g, int64_t blocks, int width, GError **error)
{
    const HnCuda *c = s->device;
    HnCudaGlobalLastArgs *a = &g->args;
    const int64_t wanted = MIN(2 * c->multiprocessors / blocks, a->pixels / HN_CUDA_GLOBAL_LEAST);
    a->splits = (int32_t)MAX(wanted, 1);
    a->share = (a->pixels + a->splits - 1) / a->splits;
    a->splits = (int32_t)((a->pixels + a->share - 1) / a->share);
    g->grid = hn_cuda_row(blocks * a->splits, HN_CUDA_LAST_THREADS);
    if (a->splits == 1)
        return TRUE;
    s->scratch_bytes = (gsize)(blocks * a->splits * width) * sizeof(float);
    g_autofree uint32_t *zeros = g_new0(uint32_t, (gsize)blocks);
    return (a->done = hn_cuda_table_new(s, zeros, (gsize)blocks * sizeof *zeros, error)) != 0;
}

static gboolean global_new(HnStep *s, gboolean mean, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, X);
    const int width = HN_CUDA_GLOBAL_UNITS * hn_cuda_line(x->dtype);
    Global *g = g_new0(Global, 1);
    HnCudaGlobalLastArgs *a = &g->args;
    s->state = g;
    a->channels = (int32_t)x->dims[1];
    a->pixels = x->n / x->dims[0] / x->dims[1];
    a->across = (a->channels + width - 1) / width;
    a->mean = mean;
    hn_cuda_want_last(s, X);
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = TRUE;
    g->f = hn_cuda_typed(s, "cuda_last", mean ? "global_last_mean" : "global_last_max", x->dtype, error);
    return g->f != NULL && cut(s, g, x->dims[0] * a->across, width, error);
}

static gboolean global_max_prepare(HnStep *s, GError **error)
{
    return global_new(s, FALSE, error);
}

static gboolean global_mean_prepare(HnStep *s, GError **error)
{
    return global_new(s, TRUE, error);
}

static gboolean global_run(HnStep *s, GError **error)
{
    const Global *g = s->state;
    HnCudaGlobalLastArgs a = g->args;
    a.x = hn_cuda_in_address(s, X);
    a.y = hn_cuda_out_address(s, 0);
    a.pitch = hn_cuda_pitch(s->in[X].slot);
    a.y_pitch = s->out[0].slot->pitch > 0 ? s->out[0].slot->pitch : a.channels;
    a.parts = a.splits > 1 ? hn_cuda_scratch(s) : 0;
    return hn_cuda_launch(s, g->f, g->grid, &a, error);
}

static void global_release(HnStep *s)
{
    const Global *g = s->state;
    if (g != NULL)
        hn_cuda_table_free(s, g->args.done);
    hn_cuda_release(s);
}

const HnKernel hn_cuda_global_max_last = {
    .name = "cuda.global_max_last",
    .reject = global_reject,
    .prepare = global_max_prepare,
    .run = global_run,
    .release = global_release,
    .pitched = TRUE,
};

const HnKernel hn_cuda_global_mean_last = {
    .name = "cuda.global_mean_last",
    .reject = global_reject,
    .prepare = global_mean_prepare,
    .run = global_run,
    .release = global_release,
    .pitched = TRUE,
};

const HnKernel hn_cuda_reduce_last = {
    .name = "cuda.reduce_last",
    .reject = reduce_reject,
    .prepare = global_mean_prepare,
    .run = global_run,
    .release = global_release,
    .pitched = TRUE,
};

/* --- depthwise convolutions --------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnPack *pack;
    HnCudaDepthwiseLastArgs args;
} Depthwise;

static const char *depthwise_reject(const HnStep *s)
{
    HnConvPlan p;
    const char *reason = hn_cuda_conv_reject(s, &p);
    if (reason != NULL || (reason = reject_tensors(s)) != NULL)
        return reason;
    if (p.in_channels != 1 || p.out_channels != 1 || p.n > 2)
        return "more than one channel of a group, or three axes";
    return s->in[W].slot->constant ? NULL : "weights that are not known ahead";
}

/* Weights of a tap of all channels, side by side. */
static gboolean fill(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    const gsize taps = (gsize)(t->n / t->dims[0]), size = t->bytes / (gsize)t->n, line = *(const gsize *)data;
    (void)s;
    (void)error;
    memset(to, 0, taps * line * size);
    for (gsize c = 0; c < (gsize)t->dims[0]; c++)
        for (gsize k = 0; k < taps; k++)
            memcpy((guint8 *)to + (k * line + c) * size, (const guint8 *)t->data + (c * taps + k) * size, size);
    return TRUE;
}

/* By the window's taps side by side, and its stride. */
static const char *depthwise_name(const HnConvPlan *p, int *columns)
{
    static const struct {
        int taps, stride;
        const char *name;
    } forms[] = {
        { 3, 1, "depthwise_last_3_by_1" }, { 3, 2, "depthwise_last_3_by_2" }, { 5, 1, "depthwise_last_5_by_1" },
        { 5, 2, "depthwise_last_5_by_2" }, { 7, 1, "depthwise_last_7_by_1" },
    };
    const HnWindowAxis *w = &p->axis[p->n - 1];
    for (guint i = 0; i < G_N_ELEMENTS(forms); i++)
        if (w->kernel == forms[i].taps && w->stride == forms[i].stride && w->dilation == 1) {
            *columns = HN_CUDA_DEPTHWISE_COLUMNS;
            return forms[i].name;
        }
    *columns = 1;
    return "depthwise_last_0_by_1";
}

static gboolean depthwise_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, X), *w = hn_cuda_in(s, W);
    Depthwise *d = g_new0(Depthwise, 1);
    HnConvPlan p;
    int columns;
    s->state = d;
    (void)hn_cuda_conv_reject(s, &p);
    const char *name = depthwise_name(&p, &columns);
    d->grid = describe(s, p.n, p.axis, columns, &d->args.of);
    const gsize line = (gsize)hn_cuda_padded(x);
    const HnPackForm form = { .variant = -1 };
    d->pack = hn_packs_get(s, s->in[W].slot, &form, (gsize)(w->n / w->dims[0]) * line * hn_dtype_size(x->dtype), fill,
                           &line, error);
    if (d->pack == NULL)
        return FALSE;
    s->in[W].unread = TRUE;
    d->args.w = (uint64_t)(uintptr_t)d->pack->data;
    hn_cuda_end_init(s, &d->args.end, 1);
    hn_cuda_want_last(s, X);
    hn_cuda_end_last(s);
    hn_cuda_make_last(s);
    d->f = hn_cuda_typed(s, "cuda_last", name, x->dtype, error);
    return d->f != NULL;
}

static gboolean depthwise_run(HnStep *s, GError **error)
{
    const Depthwise *d = s->state;
    HnCudaDepthwiseLastArgs a = d->args;
    place(s, &a.of);
    a.bias = s->n_in > BIAS ? hn_cuda_in_address(s, BIAS) : 0;
    hn_cuda_end_place(s, &a.end);
    return hn_cuda_launch(s, d->f, d->grid, &a, error);
}

static void depthwise_release(HnStep *s)
{
    const Depthwise *d = s->state;
    if (d != NULL)
        hn_pack_unref(d->pack);
    hn_cuda_release(s);
}

const HnKernel hn_cuda_conv_depthwise_last = {
    .name = "cuda.conv_depthwise_last",
    .reject = depthwise_reject,
    .prepare = depthwise_prepare,
    .run = depthwise_run,
    .release = depthwise_release,
    .pitched = TRUE,
    .fuses = hn_cuda_end_fits,
};

/* --- nearest elements --------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaNearestLastArgs args;
} Nearest;

/* Images, rows, columns, channels, of which the first and the last stay. */
static const char *nearest_form(const HnStep *s, HnResizeAxis *axis)
{
    const HnResize *p = s->params;
    int n;
    const char *reason = reject_tensors(s);
    if (reason != NULL || (reason = hn_resize_form(s, TRUE, &n, axis)) != NULL)
        return reason;
    const HnTensor *x = hn_cuda_in(s, X);
    return p->mode == HN_RESIZE_NEAREST && x->ndim == 4 && n == 4 && hn_resize_stays(p, &axis[0]) &&
                   hn_resize_stays(p, &axis[3])
               ? NULL
               : "no nearest pixel of a plane";
}

static const char *nearest_reject(const HnStep *s)
{
    HnResizeAxis axis[HN_MAX_RANK];
    return nearest_form(s, axis);
}

/* Rows, then columns. */
static gboolean make_tables(HnStep *s, Nearest *r, const HnResizeAxis *axis, GError **error)
{
    const int64_t rows = axis[1].out, columns = axis[2].out;
    int32_t *table = hn_resize_table(s, rows + columns, sizeof *table, error);
    if (table == NULL)
        return FALSE;
    for (int64_t i = 0; i < rows + columns; i++)
        table[i] = (int32_t)(i < rows ? hn_resize_nearest(s->params, &axis[1], i)
                                      : hn_resize_nearest(s->params, &axis[2], i - rows));
    r->args.row_table = hn_cuda_table_new(s, table, (gsize)(rows + columns) * sizeof *table, error);
    r->args.column_table = r->args.row_table + (uint64_t)rows * sizeof *table;
    hn_budget_free(s->budget, table);
    return r->args.row_table != 0;
}

static gboolean nearest_prepare(HnStep *s, GError **error)
{
    const HnTensor *x = hn_cuda_in(s, X);
    HnResizeAxis axis[HN_MAX_RANK];
    Nearest *r = g_new0(Nearest, 1);
    s->state = r;
    (void)nearest_form(s, axis);
    const HnWindowAxis window[2] = {
        { .in = axis[1].in, .out = axis[1].out, .kernel = 1, .stride = 1, .dilation = 1 },
        { .in = axis[2].in, .out = axis[2].out, .kernel = 1, .stride = 1, .dilation = 1 },
    };
    r->grid = describe(s, 2, window, 1, &r->args.of);
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = TRUE;
    hn_cuda_want_last(s, X);
    hn_cuda_make_last(s);
    r->f = hn_cuda_named(s, "cuda_last", hn_dtype_size(x->dtype) == 2 ? "nearest_last_2" : "nearest_last_4", error);
    return r->f != NULL && make_tables(s, r, axis, error);
}

static gboolean nearest_run(HnStep *s, GError **error)
{
    const Nearest *r = s->state;
    HnCudaNearestLastArgs a = r->args;
    place(s, &a.of);
    return hn_cuda_launch(s, r->f, r->grid, &a, error);
}

static void nearest_release(HnStep *s)
{
    const Nearest *r = s->state;
    if (r != NULL)
        hn_cuda_table_free(s, r->args.row_table);
    hn_cuda_release(s);
}

const HnKernel hn_cuda_nearest_last = {
    .name = "cuda.resize_nearest_last",
    .reject = nearest_reject,
    .prepare = nearest_prepare,
    .run = nearest_run,
    .release = nearest_release,
    .pitched = TRUE,
};
