/*
 * WeightMatMul: weights stay packed in 8 or 4 bits. Rows of x become integers of 16 bits (cpu/gemm/wq_kernel.h), many
 * of them on matrix units (cpu/gemm/wq_block.h) or by taller tiles (cpu/gemm/wq_tall.h). Where that is slower, or not
 * wanted, panels of weights are unpacked one by one and multiplied as f32. And WeightGather: rows of a table, unpacked
 * one by one.
 */
#include "op/weightmatmul.h"

#include <math.h>
#include <string.h>

#include "cpu/core/epilogue.h"
#include "cpu/core/indices.h"
#include "cpu/gemm/gemm_kernel.h"
#include "cpu/gemm/wq_block.h"
#include "cpu/gemm/wq_tall.h"
#include "op/index.h"

/* --- elements of weights -------------------------------------------------------------------------------------------
 */

/* Bytes are kept signed and nibbles unsigned: what is added to an element (and its zero point) for that, without carry.
 */
static int flip_of(HnDtype d)
{
    return d == HN_U8 ? 0x80 : d == HN_I4 ? 8 : 0;
}

static gboolean is_nibbles(HnDtype d)
{
    return d == HN_I4 || d == HN_U4;
}

/* As it is kept. */
static int element(const HnTensor *w, int64_t i)
{
    const uint8_t *const bytes = w->data;
    return is_nibbles(w->dtype) ? ((bytes[i / 2] >> (i % 2 * 4)) & 15) ^ flip_of(w->dtype)
                                : (int8_t)(bytes[i] ^ flip_of(w->dtype));
}

static float scale_at(const HnTensor *t, int64_t i)
{
    float v;
    memcpy(&v, (const char *)t->data + (gsize)i * sizeof v, sizeof v); /* perhaps misaligned */
    return v;
}

/* Zero points that are all the same; absent ones are 0. */
static gboolean is_one_zero(const HnTensor *zero)
{
    const uint8_t *z = zero != NULL ? zero->data : NULL;
    return z == NULL || zero->n == 1 ||
           (memcmp(z, z + 1, zero->bytes - 1) == 0 && (!is_nibbles(zero->dtype) || z[0] >> 4 == (z[0] & 15)));
}

/* --- the product ---------------------------------------------------------------------------------------------------
 */

typedef struct {
    int64_t rows, n, panels;
    HnWqForm form;
    gsize panel;   /* bytes */
    gboolean wide; /* unpacked */
    gboolean many; /* on matrix units */
    gboolean tall; /* by taller tiles */
    HnWqBlock block;
    int64_t depth; /* ... so many segments at once */
    int threads;
    HnEpilogue epilogue;
    int rest;           /* the first that is left to hn_epilogue_rest() */
    const float *shift; /* a bias out of the epilogue; NULL: none */
    HnPack *packed;
} Product;

/* So many weights stay in the first cache as f32, where many rows multiply them as fast as integers without becoming
 * some. */
#define FEW_WEIGHTS 16384
#define FEW_ROWS 8
#define NEAR_BYTES (1 << 20) /* of weights as numbers, or of rows as integers, in the second cache */
#define ROWS 96              /* that are integers at once, at most */
#define TALL_ROWS 144        /* the same of taller tiles, for which weights become wider once */
#define LONG 64              /* segments that matrix units are faster for, ... */
#define DEEP 256             /* ... and sums */
#define DEPTH 512            /* rows of weights that are unpacked at once */
#define WIDE 128             /* columns of results that stay close */

static double flops_of(const HnStep *s)
{
    const HnWeights *p = s->params;
    return 2 * (double)s->out[0].slot->tensor->n * (double)hn_cpu_in(s, HN_WEIGHT_W)->dims[p->turned ? 1 : 0];
}

static int channel_axis(const HnStep *s)
{
    const HnWeights *p = s->params;
    return hn_axis(p->axis, s->out[0].slot->tensor->ndim);
}

static gboolean is_constant(const HnStep *s, int i)
{
    return hn_cpu_in(s, i) == NULL || s->in[i].slot->constant;
}

static const char *weight_reject(const HnStep *s)
{
    const HnWeights *p = s->params;
    const HnTensor *w = hn_cpu_in(s, HN_WEIGHT_W), *scale = hn_cpu_in(s, HN_WEIGHT_SCALE);
    const HnTensor *zero = hn_cpu_in(s, HN_WEIGHT_ZERO), *bias = hn_cpu_in(s, HN_WEIGHT_BIAS);
    if (!is_constant(s, HN_WEIGHT_W) || !is_constant(s, HN_WEIGHT_SCALE) || !is_constant(s, HN_WEIGHT_ZERO))
        return "weights that are no constants";
    if (s->out[0].slot->tensor->n == 0 || w->n == 0)
        return "nothing to compute";
    if (!hn_weights_fit(p, w, scale, zero, bias))
        return "the shapes do not fit";
    if (p->block > 0 && (p->block < HN_WQ_GROUP || (p->block > HN_WQ_SEGMENT && p->block % HN_WQ_SEGMENT != 0)))
        return "blocks of another size";
    if (w->n <= FEW_WEIGHTS && hn_cpu_in(s, HN_WEIGHT_X)->n > FEW_ROWS * w->dims[p->turned ? 1 : 0])
        return "so few weights are as well numbers";
    if (!s->strict_math && (gsize)w->n * sizeof(float) <= NEAR_BYTES &&
        !hn_wq_is_few(hn_cpu_in(s, HN_WEIGHT_X)->n / w->dims[p->turned ? 1 : 0], is_nibbles(w->dtype) ? 4 : 8))
        return "so many rows that unpacked weights are faster, which stay in the cache";
    return hn_cpu_in_bf16(s, flops_of(s)) ? "bf16 is asked for" : NULL;
}

static gboolean weight_fuses(const HnStep *s)
{
    return hn_epilogue_fits(s, channel_axis(s));
}

/* --- packing */

typedef struct {
    const Product *p;
    const HnWeights *params;
    const HnTensor *scale, *zero;
    HnScaleGrid grid;
} Source;

/* Scales and zero points of the columns from `col` on at k. */
static char *pack_head(const Source *src, char *to, int64_t k, int64_t col, int64_t width, int64_t cols)
{
    memset(to, 0, (gsize)cols * sizeof(float));
    for (int64_t c = 0; c < width; c++) {
        const gboolean turned = src->params->turned;
        const int64_t at = hn_scale_at(&src->grid, turned ? col + c : k, turned ? k : col + c);
        const float v = scale_at(src->scale, at);
        memcpy(to + (gsize)c * sizeof v, &v, sizeof v);
        if (src->p->form.zeros)
            to[(gsize)cols * sizeof v + (gsize)c] = (char)element(src->zero, at);
    }
    to += (gsize)cols * sizeof(float);
    if (!src->p->form.zeros)
        return to;
    memset(to + width, 0, (gsize)(cols - width));
    return to + cols;
}

/* Weights [k, k + depth) of the columns from `col` on. */
static void load_group(const Source *src, const HnTensor *w, int64_t k, int64_t depth, int64_t col, int64_t width,
                       int8_t (*group)[HN_WQ_MAX_COLS])
{
    const gboolean turned = src->params->turned;
    memset(group, 0, HN_WQ_GROUP * sizeof *group);
    for (int64_t i = 0; i < depth; i++)
        for (int64_t c = 0; c < width; c++)
            group[i][c] = (int8_t)element(w, turned ? (col + c) * w->dims[1] + k + i : (k + i) * w->dims[1] + col + c);
}

static char *pack_group(int bits, int64_t cols, int8_t (*group)[HN_WQ_MAX_COLS], char *to)
{
    for (int64_t c = 0; c < cols; c++) {
        if (bits == 8) {
            for (int i = 0; i < HN_WQ_GROUP; i++)
                to[(i / 2 * cols + c) * 2 + i % 2] = group[i][c];
            continue;
        }
        uint16_t both[2] = { 0 };
        for (int i = 0; i < HN_WQ_GROUP; i++)
            both[i % 2] = (uint16_t)(both[i % 2] | group[i][c] << (i / 2 * 4));
        memcpy(to + c * (int64_t)sizeof both, both, sizeof both);
    }
    return to + cols * bits;
}

static void pack_panels(void *to, const HnTensor *w, gconstpointer data)
{
    const Source *src = data;
    const HnWqCut *cut = &src->p->form.cut;
    const int64_t cols = hn_wq_cols();
    int8_t group[HN_WQ_GROUP][HN_WQ_MAX_COLS];
    char *at = to;
    for (int64_t p = 0; p < src->p->panels; p++) {
        const int64_t col = p * cols, width = MIN(cols, src->p->n - col);
        for (int64_t s = 0; s < cut->segs; s++) {
            const int64_t from = s * cut->segment, end = MIN(cut->k, from + cut->segment);
            if (s == 0 || src->p->form.blocked)
                at = pack_head(src, at, from, col, width, cols);
            for (int64_t k = from; k < end; k += HN_WQ_GROUP) {
                load_group(src, w, k, MIN(HN_WQ_GROUP, end - k), col, width, group);
                at = pack_group(src->p->form.bits, cols, group, at);
            }
        }
    }
}

/* Tells packed weights apart: other scales of the same weights. */
static int64_t variant_of(const Source *src)
{
    const guint64 how = (guint64)src->params->block * 2 + (src->params->turned ? 1 : 0);
    return (int64_t)hn_pack_mix(hn_pack_mix((14695981039346656037u ^ how) * 1099511628211u, src->scale), src->zero);
}

/* Of a panel's weights that are unpacked at once. */
static gsize depth_bytes(const Product *p)
{
    return (gsize)(p->depth * p->form.cut.segment * hn_wq_cols()) * sizeof(float);
}

/* Rows that are integers at once: those of equal parts. */
static int64_t at_once(const Product *p)
{
    const gsize bytes = TALL_ROWS * (gsize)p->form.cut.padded * sizeof(int16_t);
    const int64_t most = p->tall && bytes <= NEAR_BYTES ? TALL_ROWS : ROWS, parts = (p->rows + most - 1) / most;
    return (p->rows + parts - 1) / parts;
}

/* Of as few segments as there can be, whole lines of integers. */
static int64_t even_segment(int64_t k)
{
    const int64_t segs = (k + HN_WQ_LONG_SEGMENT - 1) / HN_WQ_LONG_SEGMENT, line = 64;
    return ((k + segs - 1) / segs + line - 1) / line * line;
}

static gboolean weight_prepare(HnStep *s, GError **error)
{
    const HnWeights *params = s->params;
    const HnTensor *w = hn_cpu_in(s, HN_WEIGHT_W);
    Product *p = g_new0(Product, 1);
    Source src = { p, params, hn_cpu_in(s, HN_WEIGHT_SCALE), hn_cpu_in(s, HN_WEIGHT_ZERO), { 0 } };
    s->state = p;
    (void)hn_scale_grid(params, w, src.scale, &src.grid);
    const int64_t k = w->dims[params->turned ? 1 : 0];
    const gboolean blocked = params->block > 0 && src.scale->n > 1;
    p->n = w->dims[params->turned ? 0 : 1];
    p->rows = hn_cpu_in(s, HN_WEIGHT_X)->n / k;
    p->panels = (p->n + hn_wq_cols() - 1) / hn_wq_cols();
    p->form = (HnWqForm){ .cut = hn_wq_cut(k, blocked ? MIN(params->block, HN_WQ_SEGMENT) : HN_WQ_SEGMENT),
                          .bits = is_nibbles(w->dtype) ? 4 : 8,
                          .blocked = blocked,
                          .zeros = !is_one_zero(src.zero),
                          .zero = src.zero != NULL    ? element(src.zero, 0)
                                  : w->dtype == HN_U8 ? -128
                                                      : flip_of(w->dtype) };
    p->threads = hn_cpu_threads_for(s, flops_of(s));
    if (s->n_fused > 0)
        hn_epilogue_init(&p->epilogue, s, channel_axis(s));
    if (p->epilogue.n > 0 && p->epilogue.op[0].kind == HN_EPILOGUE_AFFINE && p->epilogue.op[0].scale == NULL &&
        hn_cpu_in(s, HN_WEIGHT_BIAS) == NULL) {
        p->shift = p->epilogue.op[0].shift;
        p->rest = 1;
    }
    p->wide = s->strict_math || !hn_wq_is_few(p->rows, p->form.bits);
    p->many = !p->wide && p->rows >= HN_WQ_BLOCK_ROWS && p->form.cut.segment >= LONG && k >= DEEP && hn_wq_has_blocks();
    if (!blocked && p->form.bits == 8 && !p->form.zeros && p->form.zero == 0 && !hn_wq_has_blocks())
        p->form.cut = hn_wq_cut(k, even_segment(k));
    p->panel = hn_wq_panel(&p->form);
    p->depth = MAX(1, DEPTH / p->form.cut.segment);
    p->tall = !p->wide && !p->many && p->rows >= HN_WQ_TALL_ROWS && hn_wq_has_tall();
    p->block = hn_wq_block_of(&p->form);
    s->scratch_bytes =
        p->wide   ? (gsize)p->threads * depth_bytes(p)
        : p->many ? hn_wq_planes_bytes(&p->block, at_once(p)) + (gsize)p->threads * hn_wq_block_bytes(&p->block)
                  : hn_wq_rows_bytes(&p->form.cut, at_once(p)) +
                        (p->tall ? (gsize)p->threads * hn_wq_tall_bytes(at_once(p)) : 0);
    for (int i = HN_WEIGHT_SCALE; i <= HN_WEIGHT_ZERO; i++)
        s->in[i].unread = TRUE;
    return hn_pack_own(s, HN_WEIGHT_W, pack_panels, variant_of(&src), (gsize)p->panels * p->panel, &src, &p->packed,
                       error);
}

static void weight_release(HnStep *s)
{
    Product *p = s->state;
    if (p == NULL)
        return;
    hn_epilogue_clear(&p->epilogue);
    hn_pack_unref(p->packed);
    g_free(p);
    s->state = NULL;
}

/* --- run */

typedef struct {
    const Product *p;
    const HnStep *s;
    const float *from; /* x */
    HnWqRows x;        /* as integers, */
    HnWqPlanes planes; /* or for matrix units */
    int64_t row, rows; /* of the result, which these begin with */
    const char *w;
    const float *bias;
    float *y;
} Run;

/* Rows [r0, r1) of those that are integers, panels [p0, p1); `buffer`: of taller tiles. */
static void some_panels(const Run *r, int64_t r0, int64_t r1, int64_t p0, int64_t p1, char *buffer)
{
    const Product *p = r->p;
    const HnWqCut *cut = &p->form.cut;
    const gboolean tall = p->tall && r1 - r0 >= HN_WQ_TALL_ROWS;
    const int64_t most = hn_wq_rows(), cols = hn_wq_cols(), strips = tall ? 1 : (r1 - r0 + most - 1) / most;
    const HnWqFn *fns = hn_wq_fns(p->form.bits);
    int64_t done = p0;
    for (int64_t i = p0; i < p1; i++) {
        const int64_t col = i * cols;
        HnWqKernel t = { .form = &p->form,
                         .w = r->w + (gsize)i * p->panel,
                         .bias = r->bias != NULL ? r->bias + col : NULL,
                         .c_pitch = p->n,
                         .cols = (int)MIN(cols, p->n - col) };
        for (int64_t k = 0; k < strips; k++) {
            const int64_t at = r0 + (r1 - r0) * k / strips, n = r0 + (r1 - r0) * (k + 1) / strips - at;
            t.x = (HnWqRows){ r->x.q + at * cut->padded, r->x.scale + at * cut->segs, r->x.sum + at * cut->segs };
            t.c = r->y + (r->row + at) * p->n + col;
            if (tall)
                hn_wq_tall(&t, n, buffer);
            else
                fns[n - 1](&t);
        }
        const gboolean hot = tall ? col + t.cols - done * cols >= WIDE : strips > 1; /* and soon no longer */
        if (p->rest < p->epilogue.n && (hot || i == p1 - 1)) {
            hn_epilogue_rest(&p->epilogue, p->rest, r->s, r->y, p->n, r->row + r0, r1 - r0, done * cols,
                             col + t.cols - done * cols);
            done = i + 1;
        }
    }
}

/* The same of x as it is, with weights unpacked into `buffer`. */
static void wide_panels(const Run *r, int64_t r0, int64_t r1, int64_t p0, int64_t p1, float *buffer)
{
    const Product *p = r->p;
    const HnWqCut *cut = &p->form.cut;
    const int64_t cols = hn_wq_cols();
    for (int64_t i = p0; i < p1; i++) {
        const int64_t col = i * cols, width = MIN(cols, p->n - col);
        for (int64_t s = 0; s < cut->segs; s += p->depth) {
            const int64_t k = s * cut->segment, end = MIN(cut->segs, s + p->depth);
            hn_wq_unpack(&p->form, r->w + (gsize)i * p->panel, s, end, buffer);
            const HnGemmBlocked g = { .m = r1 - r0,
                                      .n = width,
                                      .k = MIN(cut->k, end * cut->segment) - k,
                                      .a = r->from + r0 * cut->k + k,
                                      .b = buffer,
                                      .c = r->y + r0 * p->n + col,
                                      .a_pitch = cut->k,
                                      .c_pitch = p->n,
                                      .bias = r->bias != NULL ? r->bias + col : NULL,
                                      .accumulate = s > 0,
                                      .lo = HN_GEMM_KERNEL_LOW,
                                      .hi = HN_GEMM_KERNEL_HIGH };
            hn_gemm_blocked(&g, 0, 1);
        }
        if (p->rest < p->epilogue.n)
            hn_epilogue_rest(&p->epilogue, p->rest, r->s, r->y, p->n, r0, r1 - r0, col, width);
    }
}

/* The same of all rows on matrix units. */
static void blocks(const Run *r, int64_t p0, int64_t p1, char *buffer)
{
    const Product *p = r->p;
    const int64_t cols = hn_wq_cols();
    hn_wq_blocks_begin(&p->block);
    for (int64_t i = p0; i < p1; i++) {
        const int64_t col = i * cols;
        const HnWqKernel t = { .form = &p->form,
                               .w = r->w + (gsize)i * p->panel,
                               .bias = r->bias != NULL ? r->bias + col : NULL,
                               .c = r->y + r->row * p->n + col,
                               .c_pitch = p->n,
                               .cols = (int)MIN(cols, p->n - col) };
        hn_wq_block(&p->block, &r->planes, 0, r->rows, &t, buffer);
        if (p->rest < p->epilogue.n)
            hn_epilogue_rest(&p->epilogue, p->rest, r->s, r->y, p->n, r->row, r->rows, col, t.cols);
    }
    hn_wq_blocks_end();
}

static void one_part(const Run *r, int part, int parts)
{
    const Product *p = r->p;
    if (p->many) {
        blocks(r, p->panels * part / parts, p->panels * (part + 1) / parts,
               (char *)r->s->scratch + hn_wq_planes_bytes(&p->block, at_once(p)) +
                   (gsize)part * hn_wq_block_bytes(&p->block));
        return;
    }
    const int64_t most = hn_wq_rows(), panels = p->panels, strips = (r->rows + most - 1) / most;
    const gboolean by_rows = (strips + parts - 1) / parts * panels < (panels + parts - 1) / parts * strips;
    const int64_t r0 = by_rows ? r->rows * part / parts : 0, r1 = by_rows ? r->rows * (part + 1) / parts : r->rows;
    const int64_t p0 = by_rows ? 0 : panels * part / parts, p1 = by_rows ? panels : panels * (part + 1) / parts;
    if (p->wide)
        wide_panels(r, r0, r1, p0, p1, (float *)r->s->scratch + (gsize)part * depth_bytes(p) / sizeof(float));
    else
        some_panels(r, r0, r1, p0, p1,
                    p->tall ? (char *)r->s->scratch + hn_wq_rows_bytes(&p->form.cut, at_once(p)) +
                                  (gsize)part * hn_wq_tall_bytes(at_once(p))
                            : NULL);
}

static void all_parts(const Run *r)
{
    const int threads = r->p->threads;
    if (threads == 1) {
        one_part(r, 0, 1);
        return;
    }
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        one_part(r, t, threads);
}

static void make_integers(const Run *r, int part, int parts)
{
    const HnWqCut *cut = &r->p->form.cut;
    for (int64_t i = r->rows * part / parts; i < r->rows * (part + 1) / parts; i++)
        if (r->p->many)
            hn_wq_planes_row(&r->p->block, &r->planes, i, r->from + (r->row + i) * cut->k);
        else
            hn_wq_row(cut, &r->x, i, r->from + (r->row + i) * cut->k, r->p->form.zeros || r->p->form.zero != 0);
}

static gboolean weight_run(HnStep *s, GError **error)
{
    (void)error;
    const Product *p = s->state;
    const int threads = p->threads;
    Run r = { .p = p,
              .s = s,
              .from = hn_cpu_data(&s->in[HN_WEIGHT_X]),
              .w = hn_pack_data(p->packed, s, HN_WEIGHT_W),
              .bias = p->shift,
              .y = hn_cpu_data(&s->out[0]) };
    if (hn_cpu_in(s, HN_WEIGHT_BIAS) != NULL)
        r.bias = hn_cpu_data(&s->in[HN_WEIGHT_BIAS]);
    if (p->wide) {
        r.rows = p->rows;
        all_parts(&r);
        return TRUE;
    }
    const int64_t parts = (p->rows + at_once(p) - 1) / at_once(p);
    if (p->many)
        r.planes = hn_wq_planes_in(s->scratch, &p->block, at_once(p));
    else
        r.x = hn_wq_rows_in(s->scratch, &p->form.cut, at_once(p));
    for (int64_t i = 0; i < parts; i++) {
        r.row = p->rows * i / parts;
        r.rows = p->rows * (i + 1) / parts - r.row;
        if (threads == 1 || r.rows == 1) {
            make_integers(&r, 0, 1);
        } else {
#pragma omp parallel for num_threads(threads)
            for (int t = 0; t < threads; t++)
                make_integers(&r, t, threads);
        }
        all_parts(&r);
    }
    return TRUE;
}

#define SAMPLES 16          /* rows that are computed again */
#define SAMPLE_PRODUCTS 1e8 /* at most, but for one row */

static double weight_error(const HnStep *s)
{
    const Product *p = s->state;
    Product plain = *p;
    const int64_t k = p->form.cut.k;
    const float *x = hn_cpu_data(&s->in[HN_WEIGHT_X]), *y = hn_cpu_data(&s->out[0]);
    g_autofree float *row = g_new(float, (gsize)p->n), *buffer = g_malloc(depth_bytes(p));
    const int64_t samples = MIN(p->rows, (int64_t)CLAMP(SAMPLE_PRODUCTS / ((double)k * (double)p->n), 1, SAMPLES));
    double worst = 0, largest = 0;
    plain.rest = plain.epilogue.n;
    for (int64_t i = 0; i < samples; i++) {
        const int64_t at = p->rows * i / samples;
        Run r = { .p = &plain, .s = s, .from = x + at * k, .w = hn_pack_data(p->packed, s, HN_WEIGHT_W), .y = row };
        r.bias = hn_cpu_in(s, HN_WEIGHT_BIAS) != NULL ? hn_cpu_data(&s->in[HN_WEIGHT_BIAS]) : p->shift;
        wide_panels(&r, 0, 1, 0, p->panels, buffer);
        hn_epilogue_rest(&p->epilogue, p->rest, s, row, 0, at, 1, 0, p->n); /* pitch 0: y is the row */
        for (int64_t c = 0; c < p->n; c++) {
            worst = fmax(worst, fabs((double)y[at * p->n + c] - (double)row[c]));
            largest = fmax(largest, fabs((double)row[c]));
        }
    }
    return largest > 0 ? worst / largest : worst;
}

static const HnKernel wq_kernel = {
    .name = "cpu.wq_kernel",
    .reject = weight_reject,
    .prepare = weight_prepare,
    .run = weight_run,
    .release = weight_release,
    .error = weight_error,
    .fuses = weight_fuses,
};

const HnKernel *const hn_cpu_weightmatmul[] = { &wq_kernel, NULL };

/* --- rows of a table -----------------------------------------------------------------------------------------------
 */

typedef struct {
    HnScaleGrid grid;
    int threads;
} Rows;

static const char *rows_reject(const HnStep *s)
{
    const HnTensor *w = hn_cpu_in(s, HN_ROWS_W), *scale = hn_cpu_in(s, HN_ROWS_SCALE);
    const HnTensor *zero = hn_cpu_in(s, HN_ROWS_ZERO);
    if (!hn_weights_fit(s->params, w, scale, zero, NULL))
        return "the shapes do not fit";
    return s->out[0].slot->tensor->n == 0 ? "nothing to compute" : NULL;
}

static gboolean rows_prepare(HnStep *s, GError **error)
{
    (void)error;
    Rows *r = g_new0(Rows, 1);
    s->state = r;
    (void)hn_scale_grid(s->params, hn_cpu_in(s, HN_ROWS_W), hn_cpu_in(s, HN_ROWS_SCALE), &r->grid);
    r->threads = (int)MIN(hn_cpu_threads_for(s, 0), hn_cpu_in(s, HN_ROWS_AT)->n);
    s->scratch_bytes = (gsize)hn_cpu_in(s, HN_ROWS_AT)->n * sizeof(int64_t);
    return TRUE;
}

/* y = (element - less) * by, n of them from `first` on. */
static void unpack(const HnTensor *w, int64_t first, int64_t n, int less, float by, float *restrict y)
{
    const uint8_t *const bytes = w->data;
    const int flip = flip_of(w->dtype);
    if (is_nibbles(w->dtype))
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((((bytes[(first + i) / 2] >> ((first + i) % 2 * 4)) & 15) ^ flip) - less) * by;
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((int8_t)(bytes[first + i] ^ flip) - less) * by;
}

static void unpack_row(const HnStep *s, int64_t row, float *y)
{
    const Rows *r = s->state;
    const HnTensor *w = hn_cpu_in(s, HN_ROWS_W), *scale = hn_cpu_in(s, HN_ROWS_SCALE);
    const HnTensor *zero = hn_cpu_in(s, HN_ROWS_ZERO);
    const int64_t cols = w->dims[1], first = row * cols, run = r->grid.col_step > 0 ? r->grid.col_block : cols;
    const int none = w->dtype == HN_U8 ? -128 : flip_of(w->dtype);
    for (int64_t c = 0; c < cols; c += run) {
        const int64_t at = hn_scale_at(&r->grid, row, c);
        unpack(w, first + c, MIN(run, cols - c), zero != NULL ? element(zero, at) : none, scale_at(scale, at), y + c);
    }
}

static gboolean rows_run(HnStep *s, GError **error)
{
    const Rows *r = s->state;
    const HnTensor *w = hn_cpu_in(s, HN_ROWS_W), *at = hn_cpu_in(s, HN_ROWS_AT);
    int64_t *place = s->scratch;
    float *y = hn_cpu_data(&s->out[0]);
    memset(place, 0, (gsize)at->n * sizeof *place);
    if (!hn_indices_add(s, at, 0, 1, at->n, w->dims[0], 1, place, error))
        return FALSE;
    if (r->threads <= 1) {
        for (int64_t i = 0; i < at->n; i++)
            unpack_row(s, place[i], y + i * w->dims[1]);
        return TRUE;
    }
#pragma omp parallel for num_threads(r->threads)
    for (int64_t i = 0; i < at->n; i++)
        unpack_row(s, place[i], y + i * w->dims[1]);
    return TRUE;
}

static const HnKernel weight_rows = {
    .name = "cpu.wq_rows",
    .reject = rows_reject,
    .prepare = rows_prepare,
    .run = rows_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_weightgather[] = { &weight_rows, NULL };
