/*
 * Conv by tensor cores where the weights are known at prepare: they are packed as fragments, taps before channels. A
 * block's tile and how many blocks share the terms of a sum follow from the sizes and the device. Where windows
 * overlap, and there is enough to do for all of the device, a block reads what its tile of an image looks at once.
 */
#include <string.h>

#include "cuda/conv/cuda_conv.h"
#include "cuda/elementwise/cuda_end.h"
#include "cuda/conv/cuda_conv_packed_args.h"
#include "cuda/conv/cuda_window.h"

#define FEW_CHANNELS 16 /* of a group's output, and ... */
#define FEW_TERMS 64    /* ... of a sum: not worth a tile */
#define PART_STAGES 2   /* of a part of the terms, at least */

enum { X, W, BIAS };

typedef struct {
    HnCuFunction f, fours; /* fours: where x lies at a multiple of four elements; else NULL */
    HnCudaGrid grid;
    HnPack *pack;
    HnCudaConvPackedArgs args;
} Conv;

/* A form (cuda_conv_packed_args.h) and nanoseconds of a stage, measured on an H200: of a block alone, and where blocks
 * fill a multiprocessor, each in f32 and in halves; 0: the form is not there. */
typedef struct {
    const char *name;
    int rows, columns, threads;
    int shared; /* but for lists; of a window's form, of the weights */
    gboolean window;
    int alone[2], full[2];
    int fours[2]; /* as full, by loads of four pixels */
} Form;

#define FORM_OF(name, down, across, deep, rows, columns, fetched, ...)                                         \
    {                                                                                                          \
        name, (down) * (rows)*16, (across) * (columns)*8, (down) * (across) * (deep)*HN_CUDA_WARP,             \
            HN_CUDA_CONV_SHARED((down) * (rows)*16, (across) * (columns)*8, deep, fetched), FALSE, __VA_ARGS__ \
    }
#define FORM(...) FORM_OF(__VA_ARGS__)
#define WINDOW_OF(name, down, across, rows, columns, jobs, ...)                           \
    {                                                                                     \
        name, (down) * (rows)*16, (across) * (columns)*8, (down) * (across)*HN_CUDA_WARP, \
            3 * (down) * (rows)*HN_CUDA_CONV_PACKED_BYTES, TRUE, __VA_ARGS__              \
    }
#define WINDOW(...) WINDOW_OF(__VA_ARGS__)

static const Form forms[] = {
    FORM("conv_packed_16x32", HN_CUDA_CONV_16x32, { 430, 540 }, { 280, 290 }, { 0, 0 }),
    FORM("conv_packed_32x32", HN_CUDA_CONV_32x32, { 600, 540 }, { 440, 370 }, { 0, 0 }),
    FORM("conv_packed_64x64", HN_CUDA_CONV_64x64, { 1600, 1200 }, { 1050, 700 }, { 1030, 0 }),
    FORM("conv_packed_64x64_deep", HN_CUDA_CONV_64x64_deep, { 1300, 1200 }, { 1250, 900 }, { 0, 0 }),
    FORM("conv_packed_64x128", HN_CUDA_CONV_64x128, { 0, 1800 }, { 0, 1450 }, { 0, 1200 }),
    WINDOW("conv_window_64x64", HN_CUDA_CONV_WINDOW_64x64, { 1300, 0 }, { 980, 0 }, { 0, 0 }),
    WINDOW("conv_window_64x128", HN_CUDA_CONV_WINDOW_64x128, { 0, 1050 }, { 0, 800 }, { 0, 0 }),
};

/* Nanoseconds of a launch, about, with what a block does before and behind its stages. */
#define LAUNCH_NS 5000
/* Nanoseconds that sharing the terms costs, and each part of them: as often as a thread adds eight results. */
#define SPLIT_NS 1500
#define PART_NS 300

static int64_t tiles(int64_t n, int64_t of)
{
    return n / of + (n % of != 0);
}

static int unit_of(const HnStep *s)
{
    return hn_cuda_in(s, X)->dtype == HN_F32 ? 4 : 8;
}

static int64_t stages_of(const HnStep *s, const HnConvPlan *p, gboolean window)
{
    const int64_t units = tiles(p->in_channels, unit_of(s));
    return window ? p->taps * tiles(units, HN_CUDA_CONV_UNITS) : tiles(p->taps * units, HN_CUDA_CONV_UNITS);
}

/* How a form shares the work. */
typedef struct {
    const Form *form;
    int64_t stages, rows, columns; /* ...; tiles */
    int64_t splits, part;          /* parts of the terms, stages of each */
    int64_t blocks, ns;
    int64_t down, across, places; /* of a window's form: tiles of an image, places of x that one looks at */
    int shift;
} Share;

#define WIDEST 5    /* tiles of an image are 8 to 1 << WIDEST wide */
#define MOST_TAPS 7 /* along an axis */

static gboolean overlaps(const HnConvPlan *p)
{
    gboolean fits = p->n == 2 && p->taps > 1;
    for (int i = 0; fits && i < p->n; i++)
        fits = p->axis[i].stride == 1 && p->axis[i].dilation == 1 && p->axis[i].kernel <= MOST_TAPS;
    return fits;
}

/* Pixels of y are those of x, and four of them of one image. */
static gboolean fours_fit(const HnConvPlan *p)
{
    gboolean fits = p->taps == 1 && p->x_plane % 4 == 0;
    for (int i = 0; fits && i < p->n; i++)
        fits = p->axis[i].stride == 1 && p->axis[i].pad == 0 && p->axis[i].in == p->axis[i].out;
    return fits;
}

/* Tiles of an image, as wide as makes them fewest. */
static void cut_image(const HnConvPlan *p, Share *h)
{
    const HnWindowAxis *y = &p->axis[0], *x = &p->axis[1];
    h->columns = G_MAXINT64;
    for (int shift = 3; shift <= WIDEST; shift++) {
        const int64_t wide = 1 << shift, high = h->form->columns >> shift;
        const int64_t down = tiles(y->out, high), across = tiles(x->out, wide);
        if (p->batch * down * across >= h->columns)
            continue;
        h->columns = p->batch * down * across;
        h->down = down;
        h->across = across;
        h->places = (wide + x->kernel - 1) * (high + y->kernel - 1);
        h->shift = shift;
    }
}

static Share share_of(const HnStep *s, const HnConvPlan *p, const Form *f, int64_t splits)
{
    const HnCuda *c = s->device;
    const int64_t most = f->window ? G_MAXINT32 : HN_CUDA_CONV_PART_UNITS / HN_CUDA_CONV_UNITS;
    const gboolean half = hn_cuda_in(s, X)->dtype != HN_F32;
    Share h = { .form = f, .stages = stages_of(s, p, f->window) };
    h.rows = tiles(p->out_channels, f->rows);
    if (f->window)
        cut_image(p, &h);
    else
        h.columns = tiles(p->batch * p->y_plane, f->columns);
    h.part = MIN(tiles(h.stages, splits), most);
    h.splits = tiles(h.stages, h.part);
    h.blocks = h.rows * p->group < G_MAXINT32 && h.columns < G_MAXINT32 / (h.rows * p->group)
                   ? h.rows * h.columns * p->group * h.splits
                   : G_MAXINT64;
    if (h.blocks >= G_MAXINT32)
        return h;
    const int full = f->fours[half] > 0 && fours_fit(p) ? f->fours[half] : f->full[half];
    h.ns = h.part * MAX(f->alone[half], tiles(h.blocks, c->multiprocessors) * full);
    if (h.splits > 1)
        h.ns += SPLIT_NS + h.splits * PART_NS * tiles((int64_t)f->rows * f->columns / f->threads, 8);
    return h;
}

/* The one that takes the least time by what forms took. FALSE: more blocks than a launch has, or too many stages. */
static gboolean choose(const HnStep *s, const HnConvPlan *p, Share *best)
{
    static const int64_t splits[] = { 1, 2, 3, 4, 5, 6, 8, 12, 16 };
    const int64_t stages = stages_of(s, p, TRUE);
    best->form = NULL;
    for (guint i = 0; stages < G_MAXINT32 / HN_CUDA_CONV_UNITS && i < G_N_ELEMENTS(forms); i++) {
        const Form *f = &forms[i];
        if (f->full[hn_cuda_in(s, X)->dtype != HN_F32] == 0 || (f->window && !overlaps(p)))
            continue;
        for (guint k = 0; k < G_N_ELEMENTS(splits); k++) {
            if (k > 0 && (f->window || stages_of(s, p, FALSE) < splits[k] * PART_STAGES))
                break;
            const Share h = share_of(s, p, f, splits[k]);
            if (h.blocks < G_MAXINT32 && (best->form == NULL || h.ns < best->ns))
                *best = h;
        }
    }
    return best->form != NULL;
}

static void describe(const HnConvPlan *p, const Share *h, HnCudaConvPackedArgs *a)
{
    *a = (HnCudaConvPackedArgs){ .pixels = p->batch * p->y_plane, .x_plane = p->x_plane, .y_plane = p->y_plane };
    hn_cuda_axes(p->n, p->axis, a->axis);
    a->groups = (int32_t)p->group;
    a->in_channels = (int32_t)p->in_channels;
    a->out_channels = (int32_t)p->out_channels;
    a->rows = (int32_t)h->rows;
    a->columns = h->columns;
    a->splits = (int32_t)h->splits;
    a->share = (int32_t)h->part;
    a->stages = (int32_t)h->stages;
    a->down = (int32_t)h->down;
    a->across = (int32_t)h->across;
    a->places = (int32_t)h->places;
    a->shift = h->shift;
    a->list = h->form->shared + 2 * a->places * HN_CUDA_CONV_UNITS * 16;
}

/* Places that a unit names fit it (HnCudaConvUnit). */
static gboolean fits_list(const HnConvPlan *p)
{
    static const int64_t reach[HN_CUDA_SPATIAL] = { 255, 255, 4095 };
    HnCudaWindowAxis a[HN_CUDA_SPATIAL];
    int64_t far = 0;
    hn_cuda_axes(p->n, p->axis, a);
    for (int i = 0; i < HN_CUDA_SPATIAL; i++) {
        const int64_t last = ((int64_t)a[i].kernel - 1) * a[i].dilation;
        if (last > reach[i] || far >= G_MAXINT32 / a[i].in)
            return FALSE;
        far = far * a[i].in + last;
    }
    return far < G_MAXINT32 / 2 && p->in_channels < G_MAXINT32 / 2 / p->x_plane;
}

static const char *packed_reject(const HnStep *s)
{
    HnConvPlan p;
    Share h;
    const char *reason = hn_cuda_conv_reject(s, &p);
    if (reason != NULL)
        return reason;
    if (!s->in[W].slot->constant)
        return "weights that are not known ahead";
    if (s->strict_math)
        return "strict math: no tensor cores";
    if (p.out_channels < FEW_CHANNELS && p.in_channels * p.taps < FEW_TERMS)
        return "too few channels for a tile";
    if (!fits_list(&p))
        return "a window that reaches too far, or 2^30 elements of a group";
    if (!choose(s, &p, &h))
        return "more blocks than a launch has";
    return hn_cuda_conv_last_pays(s, LAUNCH_NS + (double)h.ns) ? "channels last takes less time" : NULL;
}

/* --- what is packed ----------------------------------------------------------------------------------------------- */

typedef struct {
    HnConvPlan plan;
    int unit;        /* elements */
    int64_t stages;  /* ... */
    int64_t lines;   /* 16 rows each, of a group */
    gboolean window; /* taps lie within stages of channels */
} Packing;

static gsize list_bytes(const Packing *k)
{
    return (gsize)k->stages * HN_CUDA_CONV_UNITS * sizeof(HnCudaConvUnit);
}

static gsize packed_bytes(const Packing *k)
{
    return (gsize)(k->plan.group * k->lines * k->stages) * HN_CUDA_CONV_PACKED_BYTES;
}

/* The unit of a tap and these channels. */
static int64_t unit_at(const Packing *k, int64_t tap, int64_t channels)
{
    const HnConvPlan *p = &k->plan;
    if (!k->window)
        return tap * tiles(p->in_channels, k->unit) + channels;
    return (channels / HN_CUDA_CONV_UNITS * p->taps + tap) * HN_CUDA_CONV_UNITS + channels % HN_CUDA_CONV_UNITS;
}

/* Where element e of unit u of a row lies in its line, in elements. */
static int64_t place_of(const Packing *k, int64_t row, int64_t u, int e)
{
    const int each = k->unit / 4; /* elements of a word */
    const int64_t lane = row % 8 * 4 + e / each, word = row / 8 % 2 + u % 2 * 2;
    return ((u / 2 * HN_CUDA_WARP + lane) * 4 + word) * each + e % each;
}

static void fill_row(const Packing *k, guint8 *line, int64_t row, const guint8 *w, gsize size)
{
    const HnConvPlan *p = &k->plan;
    for (int64_t tap = 0; tap < p->taps; tap++)
        for (int64_t c = 0; c < p->in_channels; c++)
            memcpy(line + (gsize)place_of(k, row, unit_at(k, tap, c / k->unit), (int)(c % k->unit)) * size,
                   w + (gsize)(c * p->taps + tap) * size, size);
}

static void fill_list(const Packing *k, HnCudaConvUnit *list)
{
    const HnConvPlan *p = &k->plan;
    const int64_t units = tiles(p->in_channels, k->unit);
    HnCudaWindowAxis a[HN_CUDA_SPATIAL];
    hn_cuda_axes(p->n, p->axis, a);
    for (int64_t i = 0; i < p->taps * units; i++) {
        const int64_t tap = i / units, c = i % units * k->unit;
        const int64_t z = tap / a[2].kernel / a[1].kernel * a[0].dilation;
        const int64_t y = tap / a[2].kernel % a[1].kernel * a[1].dilation, x = tap % a[2].kernel * a[2].dilation;
        HnCudaConvUnit *u = &list[unit_at(k, tap, i % units)];
        u->offset = (int32_t)(c * p->x_plane + (z * a[1].in + y) * a[2].in + x);
        u->place = (uint32_t)(z << 24 | y << 16 | x << 4 | MIN(k->unit, p->in_channels - c));
    }
}

/* The list of units, then the weights. */
static gboolean fill(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    const Packing *k = data;
    const HnConvPlan *p = &k->plan;
    const gsize size = t->bytes / (gsize)t->n, line = (gsize)k->stages * HN_CUDA_CONV_PACKED_BYTES;
    const gsize row = (gsize)(p->in_channels * p->taps) * size;
    guint8 *packed = (guint8 *)to + list_bytes(k);
    (void)s;
    (void)error;
    memset(to, 0, list_bytes(k) + packed_bytes(k));
    fill_list(k, to);
    for (int64_t g = 0; g < p->group; g++)
        for (int64_t i = 0; i < p->out_channels; i++)
            fill_row(k, packed + (gsize)(g * k->lines + i / 16) * line, i,
                     (const guint8 *)t->data + (gsize)(g * p->out_channels + i) * row, size);
    return TRUE;
}

/* What tells packs of one weight apart: the list depends on sizes of x and on dilation. */
static int64_t variant_of(const Packing *k)
{
    const HnConvPlan *p = &k->plan;
    uint64_t h = (uint64_t)((k->lines * 31 + p->group) * 2 + k->window);
    for (int i = 0; i < p->n; i++)
        h = (h * 1000003 + (uint64_t)p->axis[i].in) * 1000003 + (uint64_t)p->axis[i].dilation;
    return (int64_t)h;
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

/* Results of parts, and the numbers of them that are there. */
static gboolean prepare_parts(HnStep *s, Conv *c, const Form *f, int64_t blocks, GError **error)
{
    const gsize n = (gsize)(blocks / c->args.splits);
    if (c->args.splits == 1)
        return TRUE;
    s->scratch_bytes = (gsize)blocks * (gsize)(f->rows * f->columns) * sizeof(float);
    g_autofree uint32_t *zeros = g_new0(uint32_t, n);
    return (c->args.done = hn_cuda_table_new(s, zeros, n * sizeof *zeros, error)) != 0;
}

static gsize shared_of(const Form *f, int64_t units, int64_t places)
{
    if (!f->window)
        return (gsize)f->shared + (gsize)units * sizeof(HnCudaConvUnit);
    return MAX((gsize)f->shared + (gsize)places * (2 * HN_CUDA_CONV_UNITS * 16 + sizeof(int32_t)),
               (gsize)HN_CUDA_CONV_SUMS(f->rows, f->columns, 1));
}

/* Of any step. */
static gsize most_shared(const Form *f)
{
    const int wide = 1 << WIDEST, more = MOST_TAPS - 1;
    return shared_of(f, HN_CUDA_CONV_PART_UNITS, (wide + more) * (f->columns / wide + more));
}

static gboolean prepare_fours(HnStep *s, Conv *c, const Form *f, const HnConvPlan *p, GError **error)
{
    const HnDtype t = hn_cuda_in(s, X)->dtype;
    if (f->fours[t != HN_F32] == 0 || !fours_fit(p))
        return TRUE;
    g_autofree char *name = g_strconcat(f->name, "_fours", NULL);
    c->fours = hn_cuda_typed(s, "cuda_conv_packed", name, t, error);
    return c->fours != NULL && hn_cuda_allow_shared(s, c->fours, most_shared(f), error);
}

static gboolean packed_prepare(HnStep *s, GError **error)
{
    Conv *c = g_new0(Conv, 1);
    Packing k = { .unit = unit_of(s) };
    Share h;
    s->state = c;
    (void)hn_cuda_conv_reject(s, &k.plan);
    (void)choose(s, &k.plan, &h);
    const Form *f = h.form;
    describe(&k.plan, &h, &c->args);
    k.window = f->window;
    k.stages = c->args.stages;
    k.lines = (int64_t)c->args.rows * (f->rows / 16);
    const HnPackForm form = { .variant = variant_of(&k) };
    c->pack = hn_packs_get(s, s->in[W].slot, &form, list_bytes(&k) + packed_bytes(&k), fill, &k, error);
    if (c->pack == NULL)
        return FALSE;
    s->in[W].unread = TRUE;
    c->args.units = (uint64_t)(uintptr_t)c->pack->data;
    c->args.packed = c->args.units + list_bytes(&k);
    hn_cuda_end_init(s, &c->args.end, 1);
    c->grid = hn_cuda_row(h.blocks, f->threads);
    c->grid.shared = shared_of(f, c->args.share * HN_CUDA_CONV_UNITS, h.places);
    c->f =
        hn_cuda_typed(s, f->window ? "cuda_conv_window" : "cuda_conv_packed", f->name, hn_cuda_in(s, X)->dtype, error);
    return c->f != NULL && hn_cuda_allow_shared(s, c->f, most_shared(f), error) &&
           prepare_fours(s, c, f, &k.plan, error) && prepare_parts(s, c, f, h.blocks, error);
}

static gboolean packed_run(HnStep *s, GError **error)
{
    const Conv *c = s->state;
    HnCudaConvPackedArgs a = c->args;
    a.x = hn_cuda_in_address(s, X);
    a.bias = s->n_in > BIAS ? hn_cuda_in_address(s, BIAS) : 0;
    a.y = hn_cuda_out_address(s, 0);
    a.parts = a.splits > 1 ? hn_cuda_scratch(s) : 0;
    hn_cuda_end_place(s, &a.end);
    const gboolean fours = c->fours != NULL && a.x % (hn_cuda_in(s, X)->dtype == HN_F32 ? 16 : 8) == 0;
    return hn_cuda_launch(s, fours ? c->fours : c->f, c->grid, &a, error);
}

static void packed_release(HnStep *s)
{
    Conv *c = s->state;
    if (c != NULL) {
        hn_pack_unref(c->pack);
        hn_cuda_table_free(s, c->args.done);
    }
    hn_cuda_release(s);
}

const HnKernel hn_cuda_conv_packed = {
    .name = "cuda.conv_packed",
    .reject = packed_reject,
    .prepare = packed_prepare,
    .run = packed_run,
    .release = packed_release,
    .fuses = hn_cuda_end_fits,
};
