/*
 * Conv by tensor cores of values channels last, where the weights are known at prepare. It pays where that takes less
 * time than the form that reads plain values (cuda_conv_packed.c), with what it costs to bring x there; in the middle
 * of a network x mostly lies so, since what is read by a convolution again is made channels last.
 */
#include <string.h>

#include "cuda/conv/cuda_conv.h"
#include "cuda/elementwise/cuda_end.h"
#include "cuda/conv/cuda_conv_last_args.h"
#include "cuda/conv/cuda_last.h"
#include "cuda/conv/cuda_window.h"

enum { X, W, BIAS };

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnPack *pack;
    HnCudaConvLastArgs args;
} Conv;

/* A form (cuda_conv_last_args.h) and nanoseconds of a stage: of a block alone, and for each where they fill a
 * multiprocessor. */
typedef struct {
    const char *name;
    int pixels, channels, threads, shared;
    const char *module;
    int alone, full;
} Form;

#define FORM_OF(name, down, across, high, wide, stages, more, module, ...)                                     \
    {                                                                                                          \
        name, (down) * (high)*16, (across) * (wide)*8, (down) * (across)*HN_CUDA_WARP,                         \
            HN_CUDA_LAST_SHARED((down) * (high)*16, (across) * (wide)*8, stages) + (more), module, __VA_ARGS__ \
    }
#define FORM_IN(...) FORM_OF(__VA_ARGS__)
#define HALF(name, tile, ...) FORM_IN(name, tile, 0, "cuda_conv_last", __VA_ARGS__)
#define GROUP(name, tile, ...) FORM_IN(name, tile, HN_CUDA_LAST_PATTERN, "cuda_conv_last_group", __VA_ARGS__)
#define F32(name, tile, ...) FORM_IN(name, tile, 0, "cuda_conv_last_f32", __VA_ARGS__)

static const Form of_halves[] = {
    HALF("conv_last_128x128", HN_CUDA_LAST_128x128, 1000, 1000),
    HALF("conv_last_128x64", HN_CUDA_LAST_128x64, 650, 600),
    HALF("conv_last_128x32", HN_CUDA_LAST_128x32, 450, 400),
    HALF("conv_last_64x64", HN_CUDA_LAST_64x64, 400, 325),
    HALF("conv_last_64x32", HN_CUDA_LAST_64x32, 300, 225),
};
/* Of compute capability 9.0. */
static const Form of_groups[] = {
    GROUP("conv_last_group_128x256", HN_CUDA_LAST_GROUP_128x256, 1175, 1175),
    GROUP("conv_last_group_128x128", HN_CUDA_LAST_GROUP_128x128, 725, 725),
    GROUP("conv_last_group_128x64", HN_CUDA_LAST_GROUP_128x64, 500, 500),
    GROUP("conv_last_group_64x128", HN_CUDA_LAST_GROUP_64x128, 450, 450),
    GROUP("conv_last_group_64x64", HN_CUDA_LAST_GROUP_64x64, 300, 275),
};
static const Form of_f32[] = {
    F32("conv_last_128x64", HN_CUDA_LAST_F32_128x64, 1750, 1700),
    F32("conv_last_64x64", HN_CUDA_LAST_F32_64x64, 950, 850),
    F32("conv_last_64x32", HN_CUDA_LAST_F32_64x32, 700, 550),
};

/* Nanoseconds: of a launch with what a block does before and behind its stages, of sharing the terms, and of each part
 * of them for 1024 results of a block; bytes of parts that are written and read meanwhile. As whole networks on an H100
 * tell, 2026-11-28. */
#define BLOCK_NS 5000
#define SPLIT_NS 2500
#define PART_NS 90
#define PART_BYTES_PER_NS 3000
#define PART_STAGES 2        /* of a part of the terms, at least */
#define GROUPS_CAPABILITY 90 /* alone */

static int64_t tiles(int64_t n, int64_t of)
{
    return n / of + (n % of != 0);
}

/* How a form shares the work. */
typedef struct {
    const Form *form;
    int64_t rows, columns, splits, part, blocks;
    double ns;
} Share;

static int64_t units_of(const HnStep *s, const HnConvPlan *p)
{
    return p->taps * tiles(p->in_channels, hn_cuda_line(hn_cuda_in(s, X)->dtype));
}

static int64_t stages_of(const HnStep *s, const HnConvPlan *p)
{
    return tiles(units_of(s, p), HN_CUDA_LAST_UNITS);
}

static Share share_of(const HnStep *s, const HnConvPlan *p, const Form *f, int64_t splits)
{
    const HnCuda *c = s->device;
    const int64_t stages = stages_of(s, p);
    Share h = { .form = f, .rows = tiles(p->out_channels, f->channels) };
    h.columns = tiles(p->batch * p->y_plane, f->pixels);
    h.part = tiles(stages, splits);
    h.splits = tiles(stages, h.part);
    h.blocks = h.rows * h.columns * h.splits;
    const int64_t waves = tiles(h.blocks, c->multiprocessors);
    h.ns = BLOCK_NS + (double)h.part * (double)MAX(f->alone, waves * f->full);
    if (h.splits > 1) {
        const double results = (double)f->pixels * f->channels;
        h.ns += SPLIT_NS + (double)(h.splits * PART_NS) * results / 1024;
        h.ns += 2 * (double)h.blocks * results * sizeof(float) / PART_BYTES_PER_NS;
    }
    return h;
}

/* Of one table, better ones than *best. */
static void choose_of(const HnStep *s, const HnConvPlan *p, const Form *forms, guint n, Share *best)
{
    static const int64_t splits[] = { 1, 2, 3, 4, 5, 6, 8, 12, 16 };
    const HnCuda *c = s->device;
    for (guint i = 0; i < n; i++)
        for (guint k = 0; k < G_N_ELEMENTS(splits); k++) {
            if (k > 0 && stages_of(s, p) < splits[k] * PART_STAGES)
                break;
            const Share h = share_of(s, p, &forms[i], splits[k]);
            const gboolean asked = c->conv_form != NULL && strcmp(c->conv_form, forms[i].name) == 0;
            if (asked ? splits[k] <= MAX(c->conv_parts, 1)
                      : c->conv_form == NULL && forms[i].full > 0 && (best->form == NULL || h.ns < best->ns))
                *best = h;
        }
}

static Share choose(const HnStep *s, const HnConvPlan *p)
{
    const gboolean f32 = hn_cuda_in(s, X)->dtype == HN_F32;
    const HnCuda *c = s->device;
    Share best = { .form = NULL };
    if (f32)
        choose_of(s, p, of_f32, G_N_ELEMENTS(of_f32), &best);
    else
        choose_of(s, p, of_halves, G_N_ELEMENTS(of_halves), &best);
    if (!f32 && c->capability == GROUPS_CAPABILITY)
        choose_of(s, p, of_groups, G_N_ELEMENTS(of_groups), &best);
    return best.form != NULL ? best : share_of(s, p, f32 ? &of_f32[0] : &of_halves[0], 1);
}

static gboolean in_reach(const HnWindowAxis *a)
{
    return a->in + a->pad + a->pad_end < HN_CUDA_LAST_REACH && a->pad >= 0 && a->pad_end >= 0 &&
           (a->kernel - 1) * a->dilation < HN_CUDA_LAST_REACH;
}

static const char *last_reject(const HnStep *s)
{
    HnConvPlan p;
    const char *reason = hn_cuda_conv_reject(s, &p);
    if (reason != NULL)
        return reason;
    if (!s->in[W].slot->constant)
        return "weights that are not known ahead";
    if (s->strict_math)
        return "strict math: no tensor cores";
    if (p.group > 1 || p.n > 2)
        return "several groups, or three axes";
    for (int i = 0; i < p.n; i++)
        if (!in_reach(&p.axis[i]))
            return "an axis of 2^14 places";
    if (p.batch * MAX(p.x_plane, p.y_plane) >= G_MAXINT32 / 2 || stages_of(s, &p) >= G_MAXINT32 / HN_CUDA_LAST_LINE)
        return "2^30 pixels, or a window of as many channels";
    return choose(s, &p).blocks < G_MAXINT32 ? NULL : "more blocks than a launch has";
}

/* --- what is around the step -------------------------------------------------------------------------------------- */

static const HnValue *result_of(const HnStep *s)
{
    return s->node != NULL ? hn_node_out(s->n_fused > 0 ? s->fused[s->n_fused - 1] : s->node, 0) : NULL;
}

static gboolean makes_last(const HnStep *s)
{
    const HnTensor *y = hn_cuda_out(s, 0);
    if (!hn_cuda_has_last(y))
        return FALSE;
    for (int i = s->n_in; i < s->n_in + s->n_hidden; i++)
        if (hn_cuda_end_beside(s, i) && hn_cuda_is_last(s->in[i].slot))
            return TRUE;
    return hn_cuda_last_is_wanted(result_of(s), y->dims[1]);
}

gboolean hn_cuda_conv_last_pays(const HnStep *s, double plain_ns)
{
    HnConvPlan p;
    if (hn_cuda_goes_last(s, &hn_cuda_conv_depthwise_last))
        return TRUE;
    if (last_reject(s) != NULL)
        return FALSE;
    (void)hn_cuda_conv_reject(s, &p);
    const gboolean last = makes_last(s);
    double ns = choose(s, &p).ns;
    if (!hn_cuda_is_last(s->in[X].slot))
        ns += hn_cuda_reorder_ns(hn_cuda_in(s, X));
    else
        plain_ns += hn_cuda_reorder_ns(hn_cuda_in(s, X));
    for (int i = s->n_in; i < s->n_in + s->n_hidden; i++)
        if (hn_cuda_end_beside(s, i) && last != hn_cuda_is_last(s->in[i].slot))
            ns += hn_cuda_reorder_ns(s->in[i].slot->tensor);
        else if (hn_cuda_end_beside(s, i) && last)
            plain_ns += hn_cuda_reorder_ns(s->in[i].slot->tensor);
    return ns < plain_ns;
}

/* --- what is packed ----------------------------------------------------------------------------------------------- */

typedef struct {
    HnConvPlan plan;
    int64_t units, stages; /* units of a tap's channels; ... */
    int64_t lines;         /* channels of y, with those that fill the last tile */
    gsize unit;            /* elements */
} Packing;

static gboolean fill(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    const Packing *k = data;
    const HnConvPlan *p = &k->plan;
    const gsize size = t->bytes / (gsize)t->n, line = (gsize)k->stages * HN_CUDA_LAST_LINE;
    const gsize taps = (gsize)p->taps, channels = (gsize)p->in_channels, tap = (gsize)k->units * k->unit;
    (void)s;
    (void)error;
    memset(to, 0, (gsize)k->lines * line);
    for (gsize i = 0; i < (gsize)p->out_channels; i++) {
        guint8 *y = (guint8 *)to + i * line;
        const guint8 *w = (const guint8 *)t->data + i * channels * taps * size;
        for (gsize c = 0; c < channels; c++)
            for (gsize j = 0; j < taps; j++)
                memcpy(y + (j * tap + c) * size, w + (c * taps + j) * size, size);
    }
    return TRUE;
}

/* The list of units. */
static uint64_t send_units(const HnStep *s, const Packing *k, const HnCudaConvLastArgs *a, GError **error)
{
    const gsize size = hn_dtype_size(hn_cuda_in(s, X)->dtype), n = (gsize)k->stages * HN_CUDA_LAST_UNITS;
    g_autofree HnCudaLastUnit *units = g_new0(HnCudaLastUnit, n);
    for (gsize i = (gsize)(k->plan.taps * k->units); i < n; i++)
        units[i].place = (2 * HN_CUDA_LAST_REACH - 1) << 16;
    for (int64_t i = 0; i < k->plan.taps * k->units; i++) {
        const int64_t tap = i / k->units, channel = i % k->units * (int64_t)k->unit;
        const int64_t y = tap / a->width.kernel * a->height.dilation, x = tap % a->width.kernel * a->width.dilation;
        const int64_t count = MIN((int64_t)k->unit, k->plan.in_channels - channel);
        units[i] = (HnCudaLastUnit){ .place = (int32_t)(y << 16 | x),
                                     .pixels = (int32_t)(y * a->width.in + x),
                                     .channel = (int32_t)channel,
                                     .bytes = (int32_t)count * (int32_t)size };
    }
    return hn_cuda_table_new(s, units, n * sizeof *units, error);
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

static void describe(const HnConvPlan *p, const Share *h, HnCudaConvLastArgs *a)
{
    HnCudaWindowAxis axis[HN_CUDA_SPATIAL];
    hn_cuda_axes(p->n, p->axis, axis);
    a->height = axis[1];
    a->width = axis[2];
    a->of_height = hn_divisor(axis[1].out);
    a->of_width = hn_divisor(axis[2].out);
    a->pixels = (int32_t)(p->batch * p->y_plane);
    a->channels = (int32_t)p->out_channels;
    a->rows = (int32_t)h->rows;
    a->splits = (int32_t)h->splits;
    a->share = (int32_t)h->part;
}

/* Results of parts, and the numbers of them that are there. */
static gboolean prepare_parts(HnStep *s, Conv *c, const Share *h, GError **error)
{
    const gsize n = (gsize)(h->blocks / h->splits);
    if (h->splits == 1)
        return TRUE;
    s->scratch_bytes = (gsize)h->blocks * (gsize)(h->form->pixels * h->form->channels) * sizeof(float);
    g_autofree uint32_t *zeros = g_new0(uint32_t, n);
    return (c->args.done = hn_cuda_table_new(s, zeros, n * sizeof *zeros, error)) != 0;
}

static void lay_out(HnStep *s, Conv *c)
{
    const gboolean last = makes_last(s);
    c->args.plain = !last;
    hn_cuda_want_last(s, X);
    if (!last)
        return;
    hn_cuda_end_last(s);
    hn_cuda_make_last(s);
}

static gboolean last_prepare(HnStep *s, GError **error)
{
    Conv *c = g_new0(Conv, 1);
    const HnDtype t = hn_cuda_in(s, X)->dtype;
    Packing k = { .unit = (gsize)hn_cuda_line(t) };
    s->state = c;
    (void)hn_cuda_conv_reject(s, &k.plan);
    const Share h = choose(s, &k.plan);
    k.units = tiles(k.plan.in_channels, (int64_t)k.unit);
    k.stages = stages_of(s, &k.plan);
    k.lines = h.rows * h.form->channels;
    describe(&k.plan, &h, &c->args);
    c->args.stages = (int32_t)k.stages;
    const HnPackForm form = { .variant = k.lines * 2 + 1 };
    c->pack = hn_packs_get(s, s->in[W].slot, &form, (gsize)(k.lines * k.stages) * HN_CUDA_LAST_LINE, fill, &k, error);
    if (c->pack == NULL || (c->args.units = send_units(s, &k, &c->args, error)) == 0)
        return FALSE;
    s->in[W].unread = TRUE;
    c->args.packed = (uint64_t)(uintptr_t)c->pack->data;
    hn_cuda_end_init(s, &c->args.end, 1);
    lay_out(s, c);
    c->grid = hn_cuda_row(h.blocks, h.form->threads);
    c->grid.shared = (gsize)h.form->shared;
    c->f = hn_cuda_typed(s, h.form->module, h.form->name, t, error);
    return c->f != NULL && hn_cuda_allow_shared(s, c->f, c->grid.shared, error) && prepare_parts(s, c, &h, error);
}

static gboolean last_run(HnStep *s, GError **error)
{
    const Conv *c = s->state;
    HnCudaConvLastArgs a = c->args;
    a.x = hn_cuda_in_address(s, X);
    a.bias = s->n_in > BIAS ? hn_cuda_in_address(s, BIAS) : 0;
    a.y = hn_cuda_out_address(s, 0);
    a.x_pitch = hn_cuda_pitch(s->in[X].slot);
    a.y_pitch = hn_cuda_pitch(s->out[0].slot);
    a.parts = a.splits > 1 ? hn_cuda_scratch(s) : 0;
    hn_cuda_end_place(s, &a.end);
    return hn_cuda_launch(s, c->f, c->grid, &a, error);
}

static void last_release(HnStep *s)
{
    Conv *c = s->state;
    if (c != NULL) {
        hn_pack_unref(c->pack);
        hn_cuda_table_free(s, c->args.units);
        hn_cuda_table_free(s, c->args.done);
    }
    hn_cuda_release(s);
}

const HnKernel hn_cuda_conv_last = {
    .name = "cuda.conv_last",
    .reject = last_reject,
    .prepare = last_prepare,
    .run = last_run,
    .release = last_release,
    .pitched = TRUE,
    .fuses = hn_cuda_end_fits,
};
