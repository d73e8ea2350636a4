/*
 * Each output pixel is a row of sums over taps; a tap's part of A is the row of input channels that it looks at, so
 * strides, dilations and padding are only pointers (padding: to zeros), and nothing is copied. A source of few channels
 * (images) would give short rows: there input rows are copied with their padding, channels last, and the taps of one
 * kernel row become one row, which is adjacent in memory. Such a source is read as it is stored.
 *
 * Constants per channel that follow at once (BatchNormalization) are folded into the packed weights and the bias.
 *
 * Where bf16 is asked for and there are instructions for it (cpu/gemm/gemm_pairs.h), all elements are words of two
 * channels: of weights when they are packed, of the source at the beginning of a run, or a block of it at a time where
 * that is one product.
 */
#include "cpu/conv/conv_gemm.h"

#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/epilogue.h"
#include "cpu/core/even_block.h"
#include "cpu/gemm/gemm_pairs.h"
#include "op/conv.h"

#define FEW 4                     /* channels of a source whose rows are copied */
#define MOST_COPIED 4e6           /* floats for one line of outputs */
#define BLOCK_FLOATS (128 * 1024) /* of the source that a block of rows looks at; of copied rows */
#define BLOCK_PIXELS 512          /* whose rows are copied at once, so that results stay in the second cache */
#define BLOCK_K 2400              /* rows of a panel that are used at once */

enum { D, H, W };

typedef struct {
    HnConvPlan plan;
    gboolean turned;       /* weights are those of a ConvTranspose */
    HnWindowAxis axis[3];  /* depth, height, width: those that are not there have one position */
    gboolean direct;       /* 1 x 1, nothing skipped: one product */
    gboolean few;          /* rows are copied */
    gboolean planar;       /* ... from a plain source */
    gboolean pairs;        /* elements are words of two channels */
    int64_t taps, depth;   /* segments of a row, elements of each */
    int64_t pixels;        /* all output rows */
    int64_t panels;        /* of a group's output channels */
    int64_t block;         /* output rows that are computed at once, at most */
    int64_t rows, columns; /* few: rows and columns of outputs of a block */
    int64_t copy_pitch;    /* few: floats from a copied row to the next ... */
    int64_t a_step;        /* ... and to that of the next tap; else 0 */
    int threads;
    HnGemmCut cut;      /* unless rows are copied */
    int64_t *from, *to; /* [kernel width]: outputs of a line whose tap lies in the source */
    HnPack *weights;    /* [group][panels][taps][depth][tile columns] */
    gsize thread_bytes; /* scratch of a thread: pointers, copied rows */
    float *scale;       /* [group * out_channels], folded into the weights; NULL: 1 */
    float *bias;        /* [group * out_channels]; NULL: input 2 as it is, if any */
    HnEpilogue epilogue;
    HnEpilogueEnd end;
    HnPost post[HN_FUSED_MAX + 1];
    int posts;
} Conv;

/* --- prepare ------------------------------------------------------------------------------------------------------ */

static const char *reject(const HnStep *s, HnConvKind kind)
{
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, kind, 3, &plan);
    if (reason != NULL)
        return reason;
    if (plan.group > 1 && plan.out_channels < 4)
        return "groups of few channels";
    const double n = (double)s->out[0].slot->tensor->n;
    return plan.in_channels > FEW && hn_cpu_in_bf16(s, 2 * n * (double)plan.in_channels * (double)plan.taps)
               ? "bf16 is asked for"
               : NULL;
}

static const char *conv_reject(const HnStep *s)
{
    return reject(s, HN_CONV_PLAIN);
}

static const char *turned_reject(const HnStep *s)
{
    return reject(s, HN_CONV_TURNED);
}

static void conv_release(HnStep *s)
{
    Conv *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_epilogue_clear(&c->epilogue);
    g_free(c->from);
    g_free(c->to);
    g_free(c->scale);
    g_free(c->bias);
    g_free(c);
    s->state = NULL;
}

/* y = (w x + b) * s + t is w s x + (b s + t). Returns how many of c->epilogue that was. */
static int fold(Conv *c, const HnStep *s)
{
    const HnSlot *b = s->n_in > 2 ? s->in[2].slot : NULL;
    const int64_t n = c->plan.group * c->plan.out_channels;
    int k = 0;
    if (c->epilogue.n == 0 || c->epilogue.op[0].kind != HN_EPILOGUE_AFFINE || !s->in[1].slot->constant ||
        (b != NULL && !b->constant))
        return 0;
    c->bias = g_new0(float, (gsize)n);
    for (int64_t i = 0; b != NULL && i < n; i++)
        c->bias[i] = (float)hn_tensor_get_f64(b->tensor, i);
    for (; k < c->epilogue.n && c->epilogue.op[k].kind == HN_EPILOGUE_AFFINE; k++) {
        const HnEpilogueOp *op = &c->epilogue.op[k];
        for (int64_t i = 0; i < n; i++)
            c->bias[i] = c->bias[i] * (op->scale != NULL ? op->scale[i] : 1) + op->shift[i];
        if (op->scale == NULL)
            continue;
        for (int64_t i = 0; c->scale != NULL && i < n; i++)
            c->scale[i] *= op->scale[i];
        if (c->scale == NULL)
            c->scale = g_memdup2(op->scale, (gsize)n * sizeof(float));
    }
    return k;
}

/* Of the output channels from m on, `width` of them: [taps][in_channels][tile columns]. */
static void pack_panel(float *panel, const Conv *c, const HnTensor *w, int64_t m, int64_t width)
{
    const HnConvPlan *p = &c->plan;
    const int64_t cols = hn_gemm_kernel_cols(), taps = p->taps, depth = p->in_channels, size = sizeof(float);
    const char *from = w->data; /* [group * out_channels][depth][taps], or turned */
    if (width < cols)
        memset(panel, 0, (gsize)(taps * depth * cols * size));
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < width; j++) {
            int64_t step;
            const char *in = from + hn_conv_weight_at(p, c->turned, m + j, k, &step) * size;
            const float scale = c->scale != NULL ? c->scale[m + j] : 1;
            for (int64_t t = 0; t < taps; t++) {
                float v;
                memcpy(&v, in + t * step * size, sizeof v);
                panel[(t * depth + k) * cols + j] = v * scale;
            }
        }
}

static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    const Conv *c = data;
    const HnConvPlan *p = &c->plan;
    const int64_t cols = hn_gemm_kernel_cols(), floats = p->taps * p->in_channels * cols;
    const int64_t words = p->taps * hn_gemm_pairs_words(p->in_channels) * cols;
    g_autofree float *whole = c->pairs ? g_new(float, (gsize)floats) : NULL;
    float *panel = to;
    for (int64_t g = 0; g < p->group; g++)
        for (int64_t first = 0; first < p->out_channels; first += cols, panel += c->pairs ? words : floats) {
            pack_panel(c->pairs ? whole : panel, c, w, g * p->out_channels + first, MIN(cols, p->out_channels - first));
            for (int64_t t = 0; c->pairs && t < p->taps; t++)
                hn_gemm_pairs_pack(panel + t * words / p->taps, whole + t * floats / p->taps, cols, 1, p->in_channels,
                                   cols);
        }
}

/* Tells packed weights apart: FNV-1a of what was folded in, and the groups. */
static int64_t variant_of(const Conv *c)
{
    guint64 hash = 14695981039346656037u ^ (guint64)(c->plan.group * 4 + c->pairs * 2 + c->turned);
    const guint8 *bytes = (const guint8 *)c->scale;
    for (gsize i = 0; bytes != NULL && i < (gsize)(c->plan.group * c->plan.out_channels) * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return (int64_t)hash;
}

/* Blocks of output rows, and the scratch memory of a thread. */
static void measure(Conv *c)
{
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t strip = hn_gemm_kernel_rows();
    int64_t copied = 0;
    if (c->few) {
        const int64_t row = ((w->out - 1) * w->stride + w->kernel) * p->in_channels * h->stride;
        const int64_t most = MAX(1, MIN(BLOCK_FLOATS / 4 / row, BLOCK_PIXELS / w->out));
        c->rows = hn_even_block(h->out, 1, most, p->batch, c->threads);
        c->columns = w->out;
        if (c->rows == 1) {
            const int64_t strips = (w->out + strip - 1) / strip;
            const int64_t fit = MAX(1, BLOCK_FLOATS / 4 / p->in_channels / w->stride / strip);
            c->columns = MIN(w->out, strip * hn_even_block(strips, 1, fit, p->batch * h->out, c->threads));
        }
        c->block = c->rows * c->columns;
        c->copy_pitch = ((c->columns - 1) * w->stride + w->kernel) * p->in_channels;
        c->a_step = c->copy_pitch * h->dilation;
        copied = ((c->rows - 1) * h->stride + (h->kernel - 1) * h->dilation + 1) * c->copy_pitch;
    } else {
        int64_t seen = p->group * p->in_channels; /* floats of the source for each output */
        for (int i = 0; i < 3; i++)
            seen *= MIN(c->axis[i].kernel, c->axis[i].stride);
        c->block = MIN(c->pixels, CLAMP(BLOCK_FLOATS / seen / strip, 4, 32) * strip);
    }
    if (c->pairs && c->direct)
        copied = hn_gemm_kernel_room(c->pixels, c->depth);
    c->thread_bytes = (gsize)((c->few ? 1 : c->taps) * c->block) * sizeof(float *) + (gsize)copied * sizeof(float);
    c->thread_bytes = (c->thread_bytes + 63) / 64 * 64;
}

static gboolean is_pairs(const Conv *c, const HnStep *s)
{
    const HnConvPlan *p = &c->plan;
    if (!s->bf16 || !hn_slot_is_weight(s->in[1].slot) || c->few)
        return FALSE;
    return hn_gemm_pairs_pay(p->in_channels, p->out_channels) && (p->group == 1 || p->in_channels % 2 == 0);
}

static gboolean is_direct(const Conv *c)
{
    for (int i = 0; i < 3; i++) {
        const HnWindowAxis *a = &c->axis[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad != 0 || a->in != a->out)
            return FALSE;
    }
    return c->plan.group == 1;
}

/* Rows are copied: not where windows reach far beyond what they read. */
static gboolean is_few(const Conv *c)
{
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const double lines = (double)(h->kernel - 1) * (double)h->dilation + 1;
    const double columns = (double)(w->out - 1) * (double)w->stride + (double)w->kernel;
    if (c->direct || p->group != 1 || p->n > 2 || w->dilation != 1)
        return FALSE;
    return p->in_channels <= FEW && lines * columns * (double)p->in_channels <= MOST_COPIED;
}

static gboolean prepare(HnStep *s, gboolean turned, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    Conv *c = g_new0(Conv, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_plan_of(s, turned, p, error))
        return FALSE;
    c->turned = turned;
    c->end = hn_epilogue_end(&c->epilogue, fold(c, s));
    c->posts = hn_epilogue_posts(&c->epilogue, &c->end, c->post);
    hn_window_axes(p->n, p->axis, 3, c->axis);
    c->from = g_new(int64_t, (gsize)c->axis[W].kernel);
    c->to = g_new(int64_t, (gsize)c->axis[W].kernel);
    for (int64_t k = 0; k < c->axis[W].kernel; k++)
        hn_window_range(&c->axis[W], k, &c->from[k], &c->to[k]);
    c->threads = hn_cpu_threads_for(s, 2 * (double)y->n * (double)p->in_channels * (double)p->taps);
    c->pixels = p->batch * p->y_plane;
    c->panels = (p->out_channels + hn_gemm_kernel_cols() - 1) / hn_gemm_kernel_cols();
    c->direct = is_direct(c);
    c->few = is_few(c);
    c->planar = c->few && !hn_slot_is_last(s->in[0].slot);
    c->pairs = is_pairs(c, s);
    c->taps = c->few ? c->axis[H].kernel : p->taps;
    c->depth = c->few     ? c->axis[W].kernel * p->in_channels
               : c->pairs ? hn_gemm_pairs_words(p->in_channels)
                          : p->in_channels;
    c->cut = hn_gemm_cut(c->pixels, p->group * p->out_channels, c->taps * c->depth, c->pairs && c->direct, c->threads);
    measure(c);
    s->in[0].want = c->planar ? NULL : hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(y);
    for (int i = 0; i < c->epilogue.n; i++)
        if (c->epilogue.op[i].kind == HN_EPILOGUE_ADD)
            s->in[c->epilogue.op[i].port].want = hn_layout_last(y);
    const gsize packed = (gsize)(p->group * hn_gemm_kernel_packed(c->taps * c->depth, p->out_channels)) * sizeof(float);
    s->scratch_bytes = (gsize)c->threads * c->thread_bytes + (gsize)(p->group * p->in_channels + 16) * sizeof(float);
    if (c->pairs && !c->direct)
        s->scratch_bytes += (gsize)(p->batch * p->x_plane * p->group * c->depth) * sizeof(float);
    if (hn_slot_is_weight(s->in[1].slot))
        return (c->pairs ? hn_pack_normal : hn_pack_own)(s, 1, pack_weights, variant_of(c), packed, c, &c->weights,
                                                         error);
    s->scratch_bytes += packed; /* at each run */
    return TRUE;
}

static gboolean conv_prepare(HnStep *s, GError **error)
{
    return prepare(s, FALSE, error);
}

static gboolean turned_prepare(HnStep *s, GError **error)
{
    return prepare(s, TRUE, error);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

/* One run: addresses, elements from pixel to pixel. */
typedef struct {
    const Conv *c;
    const HnStep *s;
    const float *x, *weights, *bias, *add, *zeros;
    float *y;
    char *scratch; /* of the threads */
    int64_t x_pitch, y_pitch, add_pitch;
} Run;

/* Output rows [row, row + rows) of columns [u0, u1), counted in panels of all groups. a: pointers [taps][rows], or
 * [rows] where they are copied. */
static void compute(const Run *r, const float *const *a, int64_t row, int64_t rows, int64_t u0, int64_t u1)
{
    const Conv *c = r->c;
    const int64_t oc = c->plan.out_channels, most = hn_gemm_kernel_rows(), width = hn_gemm_kernel_cols();
    const int64_t strips = (rows + most - 1) / most, each = rows / strips, more = rows % strips;
    const int64_t at_once = MAX(1, BLOCK_K / c->depth);
    for (int64_t tap = 0; tap < c->taps; tap += at_once) {
        const gboolean last = tap + at_once >= c->taps;
        HnGemmKernelArgs t = { .a_tap = c->few ? 0 : rows,
                               .a_step = c->a_step,
                               .taps = MIN(at_once, c->taps - tap),
                               .k = c->depth,
                               .b_pitch = width,
                               .b_tap = c->depth * width,
                               .add_pitch = r->add_pitch,
                               .c_pitch = r->y_pitch,
                               .accumulate = tap > 0,
                               .post = c->post,
                               .posts = last ? c->posts : 0,
                               .lo = last ? c->end.lo : HN_GEMM_KERNEL_LOW,
                               .hi = last ? c->end.hi : HN_GEMM_KERNEL_HIGH };
        for (int64_t u = u0; u < u1; u++) {
            const int64_t g = u / c->panels, j = u % c->panels * width, m = g * oc + j;
            t.cols = (int)MIN(width, oc - j);
            t.channel = m;
            const HnGemmKernelFn *fns = c->pairs ? hn_gemm_pairs_fns(t.cols) : hn_gemm_kernel_fns(t.cols);
            t.a_at = g * c->depth + tap * c->a_step;
            t.b = r->weights + (u * c->taps + tap) * c->depth * width;
            t.bias = r->bias != NULL ? r->bias + m : NULL;
            for (int64_t i = 0, from = 0, n; i < strips; i++, from += n) { /* the first `more` have a row more */
                n = each + (i < more);
                t.a = a + tap * t.a_tap + from;
                t.c = r->y + (row + from) * r->y_pitch + m;
                t.add = last && r->add != NULL ? r->add + (row + from) * r->add_pitch + m : NULL;
                fns[n - 1](&t);
            }
        }
    }
    if (c->end.rest == c->epilogue.n)
        return;
    const int64_t from = u0 / c->panels * oc + u0 % c->panels * width;
    const int64_t to = u1 / c->panels * oc + u1 % c->panels * width;
    hn_epilogue_rest(&c->epilogue, c->end.rest, r->s, r->y, r->y_pitch, row, rows, from, to - from);
}

/* For the taps along a line, `next` pointers apart: pointers of n outputs of a line from position ow on, which look at
 * the source line x; NULL: padding. */
static void point_line(const Run *r, const float **to, int64_t next, const float *x, int64_t ow, int64_t n)
{
    const HnWindowAxis *w = &r->c->axis[W];
    const int64_t step = w->stride * r->x_pitch;
    for (int64_t kw = 0; kw < w->kernel; kw++, to += next) {
        int64_t lo = CLAMP(r->c->from[kw] - ow, 0, n), hi = CLAMP(r->c->to[kw] - ow, lo, n);
        if (x == NULL)
            lo = hi = n;
        for (int64_t i = 0; i < lo; i++)
            to[i] = r->zeros;
        for (int64_t i = hi; i < n; i++)
            to[i] = r->zeros;
        if (lo == hi)
            continue;
        const float *from = x + ((ow + lo) * w->stride + kw * w->dilation - w->pad) * r->x_pitch;
        for (int64_t i = lo; i < hi; i++)
            to[i] = from + (i - lo) * step;
    }
}

/* Pointers of output rows [row, row + rows) to the source: [taps][rows]. */
static void point(const Run *r, const float **a, int64_t row, int64_t rows)
{
    const Conv *c = r->c;
    const HnWindowAxis *d = &c->axis[D], *h = &c->axis[H], *w = &c->axis[W];
    for (int64_t at = 0, n; at < rows; at += n) { /* stretches of one output line */
        const int64_t ow = (row + at) % w->out, line = (row + at) / w->out, oh = line % h->out;
        const int64_t od = line / h->out % d->out, image = line / h->out / d->out;
        n = MIN(rows - at, w->out - ow);
        const float **to = a + at;
        for (int64_t kd = 0; kd < d->kernel; kd++)
            for (int64_t kh = 0; kh < h->kernel; kh++, to += rows * w->kernel) {
                const int64_t id = od * d->stride + kd * d->dilation - d->pad;
                const int64_t ih = oh * h->stride + kh * h->dilation - h->pad;
                const gboolean in = id >= 0 && id < d->in && ih >= 0 && ih < h->in;
                point_line(r, to, rows, in ? r->x + ((image * d->in + id) * h->in + ih) * w->in * r->x_pitch : NULL, ow,
                           n);
            }
    }
}

static void by_pointers(const Run *r, const float **a, int64_t r0, int64_t r1, int64_t u0, int64_t u1)
{
    const int64_t blocks = (r1 - r0 + r->c->block - 1) / r->c->block;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t from = r0 + (r1 - r0) * i / blocks, to = r0 + (r1 - r0) * (i + 1) / blocks;
        point(r, a, from, to - from);
        compute(r, a, from, to - from, u0, u1);
    }
}

/* Source line ih, columns [iw, iw + n) channels last, zeros outside of the image. */
static void copy_line(const Run *r, float *to, int64_t image, int64_t ih, int64_t iw, int64_t n)
{
    const HnWindowAxis *h = &r->c->axis[H], *w = &r->c->axis[W];
    const int64_t channels = r->c->plan.in_channels, lo = CLAMP(-iw, 0, n), hi = CLAMP(w->in - iw, lo, n);
    if (ih < 0 || ih >= h->in) {
        memset(to, 0, (gsize)(n * channels) * sizeof *to);
        return;
    }
    memset(to, 0, (gsize)(lo * channels) * sizeof *to);
    memset(to + hi * channels, 0, (gsize)((n - hi) * channels) * sizeof *to);
    to += lo * channels;
    if (r->c->planar) {
        const int64_t plane = r->c->plan.x_plane;
        hn_gemm_kernel_interleave(to, r->x + image * channels * plane + ih * w->in + iw + lo, plane, channels, hi - lo);
        return;
    }
    const float *from = r->x + ((image * h->in + ih) * w->in + iw + lo) * r->x_pitch;
    if (r->x_pitch == channels)
        memcpy(to, from, (gsize)((hi - lo) * channels) * sizeof *to);
    for (int64_t i = lo; r->x_pitch != channels && i < hi; i++, from += r->x_pitch, to += channels)
        memcpy(to, from, (gsize)channels * sizeof *to);
}

static int64_t copied_blocks(const Conv *c)
{
    const int64_t down = (c->axis[H].out + c->rows - 1) / c->rows;
    return c->plan.batch * down * ((c->axis[W].out + c->columns - 1) / c->columns);
}

/* Those blocks, through copied rows in `copy`. */
static void by_copies(const Run *r, const float **a, float *copy, int64_t begin, int64_t end)
{
    const Conv *c = r->c;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    const int64_t down = (h->out + c->rows - 1) / c->rows, across = (w->out + c->columns - 1) / c->columns;
    const int64_t step = w->stride * c->plan.in_channels;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / across / down, oh = i / across % down * c->rows, ow = i % across * c->columns;
        const int64_t rows = MIN(c->rows, h->out - oh), columns = MIN(c->columns, w->out - ow);
        const int64_t lines = (rows - 1) * h->stride + (h->kernel - 1) * h->dilation + 1;
        for (int64_t line = 0; line < lines; line++)
            copy_line(r, copy + line * c->copy_pitch, image, oh * h->stride - h->pad + line, ow * w->stride - w->pad,
                      (columns - 1) * w->stride + w->kernel);
        const float **to = a;
        for (int64_t y = 0; y < rows; y++)
            for (int64_t k = 0; k < columns; k++)
                *to++ = copy + y * h->stride * c->copy_pitch + k * step;
        compute(r, a, (image * h->out + oh) * w->out + ow, rows * columns, 0, c->panels);
    }
}

static void product_done(gpointer data, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const Run *r = data;
    hn_epilogue_rest(&r->c->epilogue, r->c->end.rest, r->s, r->y, r->y_pitch, row, rows, col, cols);
}

/* Of the product's parts, or of blocks that are copied. */
static void conv_parts(gpointer run, int thread, int64_t begin, int64_t end)
{
    Run *r = run;
    const Conv *c = r->c;
    const HnConvPlan *p = &c->plan;
    const float **a = (const float **)(gpointer)(r->scratch + (gsize)thread * c->thread_bytes);
    if (c->direct) {
        HnGemmBlocked g = { .m = c->pixels,
                            .n = p->out_channels,
                            .k = p->in_channels,
                            .pairs = c->pairs,
                            .room = c->pairs ? (float *)(gpointer)(a + c->taps * c->block) : NULL,
                            .a = r->x,
                            .b = r->weights,
                            .c = r->y,
                            .a_pitch = r->x_pitch,
                            .c_pitch = r->y_pitch,
                            .bias = r->bias,
                            .add = r->add,
                            .add_pitch = r->add_pitch,
                            .post = c->post,
                            .posts = c->posts,
                            .lo = c->end.lo,
                            .hi = c->end.hi,
                            .done = c->end.rest < c->epilogue.n ? product_done : NULL,
                            .data = r };
        hn_gemm_blocked_units(&g, &c->cut, begin, end);
        return;
    }
    if (c->few) {
        by_copies(r, a, (float *)(gpointer)(a + c->block), begin, end);
        return;
    }
    for (int64_t unit = begin, next; unit < end; unit = next) {
        int64_t r0, r1, u0, u1;
        next = hn_gemm_unit(&c->cut, c->pixels, p->group * c->panels, unit, end, &r0, &r1, &u0, &u1);
        if (r0 < r1 && u0 < u1)
            by_pointers(r, a, r0, r1, u0, u1);
    }
}

/* The source as words, into `to`. */
static void round_source(Run *r, float *to)
{
    const Conv *c = r->c;
    const int64_t pixels = c->plan.batch * c->plan.x_plane, channels = c->plan.group * c->plan.in_channels;
    const int64_t pitch = c->plan.group * c->depth;
#pragma omp parallel for num_threads(c->threads)
    for (int t = 0; t < c->threads; t++)
        for (int64_t i = pixels * t / c->threads; i < pixels * (t + 1) / c->threads; i++)
            hn_gemm_pairs_row(to + i * pitch, r->x + i * r->x_pitch, channels);
    r->x = to;
    r->x_pitch = pitch;
}

static gboolean conv_run(HnStep *s, GError **error)
{
    (void)error;
    const Conv *c = s->state;
    const HnConvPlan *p = &c->plan;
    float *zeros = s->scratch;
    char *scratch = (char *)s->scratch + ((gsize)(p->group * p->in_channels) * sizeof(float) + 63) / 64 * 64;
    Run r = { .c = c,
              .s = s,
              .x = hn_cpu_data(&s->in[0]),
              .bias = c->bias != NULL           ? c->bias
                      : hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2])
                                                : NULL,
              .zeros = zeros,
              .y = hn_cpu_data(&s->out[0]),
              .scratch = scratch,
              .x_pitch = hn_slot_pitch(s->in[0].slot),
              .y_pitch = hn_slot_pitch(s->out[0].slot) };
    memset(zeros, 0, (gsize)(p->group * p->in_channels) * sizeof *zeros);
    if (c->weights != NULL) {
        r.weights = hn_pack_data(c->weights, s, 1);
    } else {
        float *packed = (float *)(gpointer)(scratch + (gsize)c->threads * c->thread_bytes);
        pack_weights(packed, hn_cpu_in(s, 1), c);
        r.weights = packed;
    }
    if (c->end.add_port >= 0) {
        r.add = hn_cpu_data(&s->in[c->end.add_port]);
        r.add_pitch = hn_slot_pitch(s->in[c->end.add_port].slot);
    }
    if (c->pairs && !c->direct)
        round_source(&r, (float *)(gpointer)(scratch + (gsize)c->threads * c->thread_bytes));
    hn_parallel_for(c->few ? copied_blocks(c) : (int64_t)c->cut.down * c->cut.across, c->threads, conv_parts, &r);
    return TRUE;
}

const HnKernel hn_cpu_conv_gemm_turned = {
    .name = "cpu.conv_gemm",
    .reject = turned_reject,
    .prepare = turned_prepare,
    .run = conv_run,
    .release = conv_release,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};

const HnKernel hn_cpu_conv_gemm = {
    .name = "cpu.conv_gemm",
    .reject = conv_reject,
    .prepare = conv_prepare,
    .run = conv_run,
    .release = conv_release,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};
