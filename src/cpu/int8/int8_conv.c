/*
 * Convolutions and matrix products of quantized activations with constant weights: QuantConv, QLinearConv, ConvInteger,
 * QuantMatMul and the first choice of QLinearMatMul and MatMulInteger.
 *
 * Channels last, an output pixel is a row of sums over the bytes that its window sees. Where windows stay inside of the
 * source and signs are right, these are read where they are; else the lines that a block of outputs needs are copied
 * first, with padding of the zero point around them, as unsigned bytes: then a kernel row is adjacent in memory.
 */
#include "cpu/int8/int8_conv.h"

#include <immintrin.h>
#include <string.h>

#include "cpu/core/cpu_level.h"
#include "cpu/core/even_block.h"
#include "cpu/int8/int8_gemm.h"
#include "cpu/int8/int8_winograd.h"
#include "cpu/sparse/sparse_bytes.h"

#define BLOCK_BYTES (160 * 1024) /* of the source that a block of outputs looks at */
#define BLOCK_PIXELS 2048
#define MOST_COPIED 1e8      /* bytes for one line of outputs */
#define WINOGRAD_MARGIN 1.15 /* what two estimates may be wrong by */
#define SLACK 64             /* that are read beyond the last pixel, and multiplied by 0 */

typedef struct {
    HnInt8Gemm product;
    HnWindowAxis h, w;
    int64_t batch, channels, group_in; /* channels of all groups, of one */
    int64_t pixel;                     /* bytes of a copied pixel */
    gboolean direct, planar;           /* read where it is; a plain source of few channels */
    gboolean apart;                    /* by matrix units */
    gboolean is_signed, flat;          /* read as signed; lines of a block are one after the other */
    gboolean joined;                   /* a kernel row is one segment */
    int64_t base_segs, *again;         /* without second copies; see find_wide() */
    int64_t rows, columns;             /* of outputs, in a block at most */
    int64_t across;                    /* blocks in a line: of whole lines where there is one */
    int64_t source_pitch;              /* bytes from pixel to pixel; 0: the slot's */
    int64_t copy_pitch;                /* of copied lines */
    uint8_t zero;                      /* what padding is */
    int threads;
    gsize thread_bytes, shared_bytes;
} Conv;

static void conv_release(HnStep *s)
{
    Conv *c = s->state;
    if (c == NULL)
        return;
    hn_int8_gemm_clear(&c->product);
    g_free(c->again);
    g_free(c);
    s->state = NULL;
}

/* --- prepare -------------------------------------------------------------------------------------------------------
 */

static gboolean stays_inside(const HnWindowAxis *a)
{
    return a->pad <= 0 && hn_window_overhang(a) <= 0 && a->pad == 0;
}

/* Bytes of a segment in whole chunks or groups: none is read beyond it. */
static gboolean cuts_evenly(const HnInt8Gemm *p, int64_t depth)
{
    if (!p->blocks)
        return depth % HN_INT8_GROUP == 0;
    return depth % (HN_INT8_GROUP * ((depth + 63) / 64)) == 0;
}

/* Are matrix units faster than vectors? A chunk takes them as long however short it is. Cycles for 32 rows and columns.
 */
static gboolean pays_in_blocks(const Conv *c, int64_t pixel)
{
    const gboolean joined = c->w.kernel > 1 && c->w.dilation == 1 && c->product.n_groups == 1;
    const int64_t depth = joined ? c->w.kernel * pixel : c->group_in, segs = c->h.kernel * (joined ? 1 : c->w.kernel);
    const double vectors = 100 + 32.0 * (double)(segs * ((depth + HN_INT8_GROUP - 1) / HN_INT8_GROUP));
    return vectors > 1.15 * (150 + 64.0 * (double)(segs * ((depth + 63) / 64)));
}

static void choose_source(Conv *c, const HnStep *s)
{
    /* three bytes become four, which are a group, unless rows of three have fewer groups */
    const gboolean fill = c->planar && c->channels == 3 && (3 * c->w.kernel + 3) / 4 >= c->w.kernel;
    c->pixel = fill ? 4 : c->channels;
    c->product.blocks = hn_int8_has_blocks() && pays_in_blocks(c, c->pixel);
    const gboolean is_signed = hn_int8_input(s, hn_int8_inputs(s)->x)->dtype == HN_I8;
    const gboolean one = c->h.kernel == 1 && c->w.kernel == 1 && c->h.stride == 1 && c->w.stride == 1;
    const int64_t pixels = one ? c->batch * c->h.out * c->w.out : c->w.out;
    c->direct = !c->planar && stays_inside(&c->h) && stays_inside(&c->w) && cuts_evenly(&c->product, c->group_in) &&
                (!is_signed || (c->product.blocks && pixels >= 16));
    c->is_signed = c->direct && is_signed;
    if (c->direct && one) { /* all pixels are one line */
        c->w.in = c->w.out = pixels;
        c->h = hn_window_one();
        c->batch = 1;
    }
    c->joined = !c->direct && c->w.dilation == 1 && c->product.n_groups == 1;
    c->product.rows = c->batch * c->h.out * c->w.out;
    c->product.segs = c->joined ? c->h.kernel : c->h.kernel * c->w.kernel;
    c->product.depth = c->joined ? c->w.kernel * c->pixel : c->group_in;
}

/* Blocks of outputs, and the scratch memory of a thread. */
static void measure(Conv *c)
{
    const int64_t line = c->w.out * c->w.stride * c->channels * c->h.stride, lines = c->batch * c->h.out;
    const int64_t most = MAX(1, MIN(BLOCK_BYTES / MAX(1, line), BLOCK_PIXELS / c->w.out));
    c->rows = hn_even_block(c->h.out, 1, most, c->batch, c->threads);
    c->columns = c->w.out;
    c->across = 1;
    if (c->rows == 1) { /* of 16 columns at least */
        const int64_t fit = CLAMP(BLOCK_BYTES / c->channels / c->w.stride, 64, BLOCK_PIXELS);
        c->columns = hn_even_block(c->w.out, 16, fit, lines, c->threads);
        c->across = (c->w.out + c->columns - 1) / c->columns;
    }
    c->copy_pitch = ((c->columns - 1) * c->w.stride + (c->w.kernel - 1) * c->w.dilation + 1) * c->pixel;
    c->flat = c->h.stride == 1 && c->w.stride == 1;
    c->apart = c->product.blocks && (c->flat ? c->rows : 1) * c->columns >= 16;
    c->thread_bytes = 0;
    if (!c->direct)
        c->thread_bytes =
            (gsize)(((c->rows - 1) * c->h.stride + (c->h.kernel - 1) * c->h.dilation + 1) * c->copy_pitch) + SLACK;
    c->thread_bytes = (c->thread_bytes + 63) / 64 * 64;
}

/* Calls for each weight: the segment and place in it, of column m. */
typedef void (*WeightFn)(Conv *c, int64_t m, int64_t seg, int64_t at, int v, int8_t *to);

static void foreach_weight(Conv *c, const HnStep *s, WeightFn fn, int8_t *to)
{
    const HnInt8Gemm *p = &c->product;
    const int64_t taps = c->h.kernel * c->w.kernel, each = c->group_in * taps;
    const int64_t pixel = c->joined ? c->pixel : c->group_in;
    const HnInt8Weights weights = hn_int8_weights(s);
    const gboolean by_rows = hn_int8_by_rows(s);
    const int64_t n = p->n_groups * p->out;
    for (int64_t m = 0; m < n; m++)
        for (int64_t t = 0; t < taps; t++) { /* a tap's channels are in one segment */
            const int64_t seg = t * pixel / p->depth, at = t * pixel % p->depth;
            for (int64_t k = 0; k < c->group_in; k++) {
                const int64_t from = !by_rows ? k * n + m : m * each + k * taps + t;
                fn(c, m, seg, at + k, hn_int8_weight(&weights, from, by_rows ? each : 0, n), to);
            }
        }
}

static void note_wide(Conv *c, int64_t m, int64_t seg, int64_t at, int v, int8_t *to)
{
    (void)m;
    (void)at;
    (void)to;
    if (v != (int8_t)v)
        c->again[seg] = 1;
}

/* A weight of more than 8 bits is the sum of two: of one in its segment and one in the segment's second copy. */
static void place_weight(Conv *c, int64_t m, int64_t seg, int64_t at, int v, int8_t *to)
{
    const HnInt8Gemm *p = &c->product;
    const int first = CLAMP(v, -128, 127);
    to[(m * p->segs + seg) * p->depth + at] = (int8_t)first;
    if (v != first)
        to[(m * p->segs + c->again[seg]) * p->depth + at] = (int8_t)(v - first);
}

/* Signed bytes without zero points: each is as it stands there. */
static gboolean are_plain(const HnInt8Weights *weights)
{
    return weights->w->dtype == HN_I8 && weights->zero == NULL;
}

static void place_weights(Conv *c, const HnStep *s, int8_t *to)
{
    const HnInt8Gemm *p = &c->product;
    const HnInt8Weights weights = hn_int8_weights(s);
    const int64_t taps = c->h.kernel * c->w.kernel, n = p->n_groups * p->out;
    const int64_t pixel = c->joined ? c->pixel : c->group_in;
    if (!are_plain(&weights) || !hn_int8_by_rows(s)) {
        foreach_weight(c, s, place_weight, to);
        return;
    }
    const int8_t *from = weights.w->data; /* [n][group_in][taps] */
    for (int64_t m = 0; m < n; m++, from += c->group_in * taps, to += p->segs * p->depth)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < c->group_in; k++)
                to[t * pixel + k] = from[k * taps + t];
}

/* Which segments are there twice: c->again[segment] is the second one's number, or 0. */
static void find_wide(Conv *c, const HnStep *s)
{
    HnInt8Gemm *p = &c->product;
    const HnInt8Weights weights = hn_int8_weights(s);
    c->again = g_new0(int64_t, (gsize)p->segs);
    c->base_segs = p->segs;
    if (are_plain(&weights))
        return;
    foreach_weight(c, s, note_wide, NULL);
    for (int64_t i = 0; i < c->base_segs; i++)
        c->again[i] = c->again[i] != 0 ? p->segs++ : 0;
}

static uint8_t zero_of(const HnTensor *x, const HnTensor *zero)
{
    return (uint8_t)((zero != NULL ? hn_tensor_get_i64(zero, 0) : 0) + (x->dtype == HN_I8 ? 128 : 0));
}

/* Behind the geometry. */
static gboolean prepare(HnStep *s, Conv *c, double flops, GError **error)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *zero = hn_int8_input(s, in->x_zero), *x = hn_int8_input(s, in->x);
    HnInt8Gemm *p = &c->product;
    choose_source(c, s);
    find_wide(c, s);
    /* a multiplication of bytes takes a fraction of one of f32, of a quarter of the weights one of that */
    c->threads = hn_cpu_threads_for(s, flops / (p->sparse ? 16 : 4));
    measure(c);
    if (zero == NULL || s->in[in->x_zero].slot->constant)
        c->zero = zero_of(x, zero);
    int8_t *w = hn_budget_alloc_n(s->budget, (gsize)(p->n_groups * p->out), (gsize)(p->segs * p->depth), error);
    if (w == NULL) {
        g_prefix_error(error, "node '%s': ", hn_node_label(s->node));
        return FALSE;
    }
    memset(w, 0, (gsize)(p->n_groups * p->out * p->segs * p->depth));
    place_weights(c, s, w);
    const gboolean ok = hn_int8_gemm_prepare(p, s, w, error);
    hn_budget_free(s->budget, w);
    if (!ok)
        return FALSE;
    c->shared_bytes = (gsize)p->segs * sizeof(int64_t) + (gsize)p->n_extra * sizeof(int32_t);
    c->shared_bytes = (c->shared_bytes + 63) / 64 * 64 + (hn_int8_late_bytes(p) + 63) / 64 * 64;
    s->scratch_bytes = c->shared_bytes + c->thread_bytes * (gsize)c->threads;
    return TRUE;
}

static const char *conv_reject(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    HnConvPlan plan;
    if (x->ndim != 3 && x->ndim != 4)
        return "only 1 or 2 spatial axes";
    if (w->ndim < 1 || !hn_int8_conv_plan(s, &plan))
        return "the window does not fit";
    const HnWindowAxis *a = &plan.axis[plan.n - 1], *h = &plan.axis[0];
    const double lines = (double)(plan.n > 1 ? (h->kernel - 1) * h->dilation + 1 : 1);
    const double columns = (double)(a->out - 1) * (double)a->stride + (double)((a->kernel - 1) * a->dilation + 1);
    if (lines * columns * (double)x->dims[1] > MOST_COPIED || (double)w->n > MOST_COPIED)
        return "windows of very large lines";
    if (plan.group > 1 && plan.out_channels < 2)
        return "groups of few channels";
    return hn_int8_reject_wide(s, w->dims[0]);
}

static void shape_of_conv(const HnStep *s, Conv *c)
{
    const HnSlot *x = s->in[0].slot;
    HnConvPlan plan;
    hn_int8_conv_plan(s, &plan);
    c->h = plan.n > 1 ? plan.axis[0] : hn_window_one();
    c->w = plan.axis[plan.n - 1];
    c->batch = plan.batch;
    c->group_in = plan.in_channels;
    c->channels = plan.in_channels * plan.group;
    c->product.n_groups = plan.group;
    c->product.out = plan.out_channels;
    c->planar = c->channels <= 4 && c->channels > 1 && x->layout == NULL && plan.x_plane > 1 && plan.group == 1 &&
                c->w.dilation == 1;
}

static gboolean prepare_conv(HnStep *s, gboolean sparse, GError **error)
{
    Conv *c = g_new0(Conv, 1);
    HnSlot *x = s->in[0].slot, *y = s->out[0].slot;
    s->state = c;
    shape_of_conv(s, c);
    c->product.sparse = sparse;
    if (!c->planar)
        s->in[0].want = hn_layout_last(x->tensor);
    y->layout = hn_layout_last(y->tensor);
    return prepare(s, c, 2 * (double)y->tensor->n * (double)(c->group_in * c->h.kernel * c->w.kernel), error);
}

static gboolean conv_prepare(HnStep *s, GError **error)
{
    return prepare_conv(s, FALSE, error);
}

/* --- weights of many zeros -----------------------------------------------------------------------------------------
 */

static gboolean half_are_zeros(const HnStep *s, const Conv *c)
{
    const HnInt8Weights weights = hn_int8_weights(s);
    const int64_t n = weights.w->n, channels = c->product.n_groups * c->product.out;
    const int64_t each = hn_int8_by_rows(s) ? MAX(1, n / channels) : 0;
    int64_t others = 0;
    for (int64_t i = 0; i < n && others <= n / 2; i++)
        others += hn_int8_weight(&weights, i, each, channels) != 0;
    return others <= n / 2;
}

/* Behind the shape, of a step that the dense kernel takes. */
static const char *reject_lists(const HnStep *s, Conv *c)
{
    HnInt8Gemm *p = &c->product;
    if (!half_are_zeros(s, c))
        return "few weights are 0";
    const double winograd = hn_int8_inputs(s)->matrix ? 1 : hn_int8_winograd_gain(s);
    choose_source(c, s);
    if (p->blocks)
        return "matrix units are faster";
    if (!hn_sparse_bytes_fit(p->depth))
        return "short rows, or no such instructions";
    find_wide(c, s);
    int8_t *w = hn_budget_alloc_n(s->budget, (gsize)(p->n_groups * p->out), (gsize)(p->segs * p->depth), NULL);
    if (w != NULL) {
        memset(w, 0, (gsize)(p->n_groups * p->out * p->segs * p->depth));
        place_weights(c, s, w);
    }
    const gboolean pays = w != NULL && hn_int8_gemm_has_lists(p, w, winograd > 1 ? winograd * WINOGRAD_MARGIN : 1);
    hn_budget_free(s->budget, w);
    g_clear_pointer(&c->again, g_free);
    return pays ? NULL : "too few weights are 0 to gain by it";
}

static const char *sparse_conv_reject(const HnStep *s)
{
    const char *reason = conv_reject(s);
    Conv c = { 0 };
    if (reason != NULL)
        return reason;
    shape_of_conv(s, &c);
    return reject_lists(s, &c);
}

static gboolean sparse_conv_prepare(HnStep *s, GError **error)
{
    return prepare_conv(s, TRUE, error);
}

/* --- run -----------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const Conv *c;
    HnInt8Run run;
    const uint8_t *x;
    int64_t x_pitch; /* bytes from pixel to pixel */
} Run;

#define LOAD16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE16(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)

/* Bytes of three planes in turns, 16 of each at a time; returns how many of each. */
__attribute__((target("avx2"))) static int64_t interleave_three(uint8_t *to, const uint8_t *from, int64_t plane,
                                                                int64_t n)
{
    __m128i turn[3][3]; /* [16 bytes of the result][plane]: which byte comes there; those of others are 0 */
    for (int k = 0; k < 3; k++)
        for (int p = 0; p < 3; p++) {
            int8_t at[16];
            for (int i = 0; i < 16; i++)
                at[i] = (int8_t)((16 * k + i) % 3 == p ? (16 * k + i) / 3 : -1);
            turn[k][p] = LOAD16(at);
        }
    int64_t i = 0;
    for (; i + 16 <= n; i += 16, to += 48) {
        const __m128i a = LOAD16(from + i), b = LOAD16(from + plane + i), c = LOAD16(from + 2 * plane + i);
        for (int k = 0; k < 3; k++) {
            const __m128i ab = _mm_or_si128(_mm_shuffle_epi8(a, turn[k][0]), _mm_shuffle_epi8(b, turn[k][1]));
            STORE16(to + 16 * k, _mm_or_si128(ab, _mm_shuffle_epi8(c, turn[k][2])));
        }
    }
    return i;
}

/* Bytes of planes in turns; three are filled up to `size` ones. */
static void interleave(uint8_t *restrict to, const uint8_t *restrict from, int64_t plane, int64_t planes, int64_t n,
                       int64_t size)
{
    int64_t first = 0;
    if (size == 4 && planes == 3) {
        const uint8_t *restrict second = from + plane, *restrict third = second + plane;
        for (int64_t i = 0; i < n; i++) {
            const uint32_t v = from[i] | (uint32_t)second[i] << 8 | (uint32_t)third[i] << 16;
            memcpy(to + 4 * i, &v, sizeof v);
        }
        return;
    }
    if (planes == 3 && hn_cpu_level() > 0)
        first = interleave_three(to, from, plane, n);
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = first; i < n; i++)
            to[i * planes + p] = from[p * plane + i];
}

/* Source line ih, columns [iw, iw + n), with the zero point outside of the image. */
static void copy_line(const Run *r, uint8_t *to, int64_t image, int64_t ih, int64_t iw, int64_t n, uint8_t flip)
{
    const Conv *c = r->c;
    const int64_t lo = CLAMP(-iw, 0, n), hi = CLAMP(c->w.in - iw, lo, n), size = c->pixel;
    if (ih < 0 || ih >= c->h.in || lo == hi) {
        memset(to, c->zero, (gsize)(n * size));
        return;
    }
    memset(to, c->zero, (gsize)(lo * size));
    memset(to + hi * size, c->zero, (gsize)((n - hi) * size));
    to += lo * size;
    if (c->planar) {
        const int64_t plane = c->h.in * c->w.in;
        interleave(to, r->x + image * c->channels * plane + ih * c->w.in + iw + lo, plane, c->channels, hi - lo, size);
        if (flip != 0)
            hn_int8_flip(to, to, flip, (hi - lo) * size);
        return;
    }
    const uint8_t *from = r->x + ((image * c->h.in + ih) * c->w.in + iw + lo) * r->x_pitch;
    if (r->x_pitch == size && flip == 0)
        memcpy(to, from, (gsize)((hi - lo) * size));
    else if (r->x_pitch == size)
        hn_int8_flip(to, from, flip, (hi - lo) * size);
    for (int64_t i = lo; r->x_pitch != size && i < hi; i++, from += r->x_pitch, to += size)
        if (flip == 0)
            memcpy(to, from, (gsize)size);
        else
            hn_int8_flip(to, from, flip, size);
}

/* One block: outputs [oh, oh + rows) x [ow, ow + columns) of an image. */
static void run_block(const Run *r, char *scratch, int64_t image, int64_t oh, int64_t ow, int64_t columns, int64_t u0,
                      int64_t u1)
{
    const Conv *c = r->c;
    const HnWindowAxis *h = &c->h, *w = &c->w;
    const int64_t rows = MIN(c->rows, h->out - oh);
    const uint8_t *base;
    int64_t line, pixel = c->pixel;
    if (c->direct) {
        pixel = r->x_pitch;
        line = w->in * pixel;
        base = r->x + ((image * h->in + oh * h->stride) * w->in + ow * w->stride) * pixel;
    } else {
        uint8_t *copy = (uint8_t *)scratch;
        const uint8_t flip = hn_int8_input(r->run.s, hn_int8_inputs(r->run.s)->x)->dtype == HN_I8 ? 128 : 0;
        const int64_t lines = (rows - 1) * h->stride + (h->kernel - 1) * h->dilation + 1;
        line = c->copy_pitch;
        base = copy;
        for (int64_t i = 0; i < lines; i++)
            copy_line(r, copy + i * line, image, oh * h->stride - h->pad + i, ow * w->stride - w->pad,
                      (columns - 1) * w->stride + (w->kernel - 1) * w->dilation + 1, flip);
    }
    const int64_t row = (image * h->out + oh) * w->out + ow, step = w->stride * pixel;
    const int64_t apart = rows > 1 ? line / pixel : columns; /* first pixels of lines */
    if (c->apart && c->flat && (rows - 1) * apart + columns >= 16) {
        hn_int8_rows_apart(&r->run, base, step, row, (rows - 1) * apart + columns, apart, columns, u0, u1);
        return;
    }
    if (c->apart && columns >= 16) {
        for (int64_t i = 0; i < rows; i++)
            hn_int8_rows_apart(&r->run, base + i * h->stride * line, step, row + i * w->out, columns, columns, columns,
                               u0, u1);
        return;
    }
    hn_int8_lines(&r->run, base, h->stride * line, rows, step, columns, row, u0, u1);
}

static int64_t blocks_of(const Conv *c)
{
    return c->batch * ((c->h.out + c->rows - 1) / c->rows) * c->across;
}

/* Blocks of pixels are shared, or panels where those are too few: by as many shares as threads, for each copies pixels
 * anew. */
static gboolean is_by_panels(const Conv *c)
{
    return blocks_of(c) < c->threads && c->product.n_groups * c->product.panels > 1;
}

static void run_units(gpointer run, int thread, int64_t lo, int64_t hi)
{
    const Run *r = run;
    const Conv *c = r->c;
    const HnInt8Gemm *p = &c->product;
    const int64_t down = (c->h.out + c->rows - 1) / c->rows, across = c->across;
    const gboolean by_panels = is_by_panels(c);
    const int64_t units = p->n_groups * p->panels, u0 = by_panels ? units * lo / c->threads : 0;
    const int64_t u1 = by_panels ? units * hi / c->threads : units;
    const int64_t first = by_panels ? 0 : lo, end = by_panels ? blocks_of(c) : hi;
    char *scratch = (char *)r->run.s->scratch + c->shared_bytes + (gsize)thread * c->thread_bytes;
    if (c->apart)
        hn_int8_blocks_begin(p->chunk);
    for (int64_t i = first; i < end && u0 < u1; i++) {
        const int64_t ow = c->w.out * (i % across) / across, next = c->w.out * (i % across + 1) / across;
        run_block(r, scratch, i / across / down, i / across % down * c->rows, ow, next - ow, u0, u1);
    }
    if (c->apart)
        hn_int8_blocks_end();
}

static gboolean conv_run(HnStep *s, GError **error)
{
    (void)error;
    Conv *c = s->state;
    const HnInt8Gemm *p = &c->product;
    const HnTensor *y = s->out[0].slot->tensor;
    const int64_t out = p->n_groups * p->out;
    int64_t *seg_at = s->scratch;
    Run r = { .c = c,
              .x = hn_cpu_data(&s->in[0]),
              .x_pitch = c->source_pitch > 0 ? c->source_pitch : hn_slot_pitch(s->in[0].slot),
              .run = { .p = p,
                       .s = s,
                       .b = hn_pack_data(p->packed, s, hn_int8_inputs(s)->w),
                       .seg_at = seg_at,
                       .at = (int32_t *)(void *)(seg_at + p->segs),
                       .group_step = c->group_in,
                       .is_signed = c->is_signed,
                       .finish = p->finish,
                       .y = y->data,
                       .y_size = hn_dtype_size(y->dtype),
                       .y_pitch = c->source_pitch > 0 ? out : hn_slot_pitch(s->out[0].slot) } };
    const int64_t pixel = c->direct ? r.x_pitch : c->pixel, line = c->direct ? c->w.in * pixel : c->copy_pitch;
    for (int64_t i = 0; i < c->base_segs; i++) {
        const int64_t kh = c->joined ? i : i / c->w.kernel, kw = c->joined ? 0 : i % c->w.kernel;
        seg_at[i] = kh * c->h.dilation * line + kw * c->w.dilation * pixel;
        if (c->again[i] > 0)
            seg_at[c->again[i]] = seg_at[i];
    }
    const gsize late_bytes = (hn_int8_late_bytes(p) + 63) / 64 * 64;
    HnInt8Gemm now;
    Conv late;
    if (late_bytes > 0) {
        const HnInt8Inputs *in = hn_int8_inputs(s);
        hn_int8_gemm_now(p, s, &now, (char *)s->scratch + c->shared_bytes - late_bytes);
        late = *c;
        late.zero = zero_of(hn_int8_input(s, in->x), hn_int8_input(s, in->x_zero));
        r.c = &late;
        r.run.p = &now;
        r.run.finish = now.finish;
    }
    hn_int8_gemm_exchange(&c->product, &r.run.finish, s);
    hn_int8_offsets(&r.run);
    hn_parallel_for(is_by_panels(c) ? c->threads : blocks_of(c), c->threads, run_units, &r);
    return TRUE;
}

const HnKernel hn_cpu_sparse_int8_conv = {
    .name = "cpu.sparse_int8_conv",
    .reject = sparse_conv_reject,
    .prepare = sparse_conv_prepare,
    .run = conv_run,
    .release = conv_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};

const HnKernel hn_cpu_int8_conv = {
    .name = "cpu.int8_conv",
    .reject = conv_reject,
    .prepare = conv_prepare,
    .run = conv_run,
    .release = conv_release,
    .pitched = TRUE,
    .exchanges = TRUE,
};

/* --- matrix products -----------------------------------------------------------------------------------------------
 */

static const char *matmul_reject(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    if (x->ndim < 1 || w->ndim != 2)
        return "a stack of right operands";
    if ((double)w->n > MOST_COPIED || (double)w->dims[0] > MOST_COPIED)
        return "a very large matrix";
    return hn_int8_reject_wide(s, w->dims[hn_int8_by_rows(s) ? 0 : 1]);
}

static void shape_of_matmul(const HnStep *s, Conv *c)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    c->h = c->w = hn_window_one();
    c->batch = 1;
    c->group_in = c->channels = c->source_pitch = w->dims[hn_int8_by_rows(s) ? 1 : 0];
    c->w.in = c->w.out = x->n / c->channels;
    c->product.n_groups = 1;
    c->product.out = w->dims[hn_int8_by_rows(s) ? 0 : 1];
}

static gboolean prepare_matmul(HnStep *s, gboolean sparse, GError **error)
{
    Conv *c = g_new0(Conv, 1);
    s->state = c;
    shape_of_matmul(s, c);
    c->product.sparse = sparse;
    return prepare(s, c, 2 * (double)s->out[0].slot->tensor->n * (double)c->channels, error);
}

static gboolean matmul_prepare(HnStep *s, GError **error)
{
    return prepare_matmul(s, FALSE, error);
}

static const char *sparse_matmul_reject(const HnStep *s)
{
    const char *reason = matmul_reject(s);
    Conv c = { 0 };
    if (reason != NULL)
        return reason;
    shape_of_matmul(s, &c);
    return reject_lists(s, &c);
}

static gboolean sparse_matmul_prepare(HnStep *s, GError **error)
{
    return prepare_matmul(s, TRUE, error);
}

const HnKernel hn_cpu_sparse_int8_matmul = {
    .name = "cpu.sparse_int8_matmul",
    .reject = sparse_matmul_reject,
    .prepare = sparse_matmul_prepare,
    .run = conv_run,
    .release = conv_release,
    .exchanges = TRUE,
};

const HnKernel hn_cpu_int8_matmul = {
    .name = "cpu.int8_matmul",
    .reject = matmul_reject,
    .prepare = matmul_prepare,
    .run = conv_run,
    .release = conv_release,
    .exchanges = TRUE,
};
