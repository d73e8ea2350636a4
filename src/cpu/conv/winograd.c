/*
 * Convolutions with 3x3 kernels and stride 1 in fewer products, after Winograd (S. Winograd, Arithmetic Complexity of
 * Computations, 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
 *
 * F(m x m, 3x3): a tile of m x m outputs is read as the coefficients of a product of polynomials that is computed from
 * its values at p = m + 2 points along either axis: p * p products per tile and pair of channels instead of 9 * m * m.
 *
 *     V[point][tile][in channel]                 the tile's p x p inputs, transformed
 *     U[point][in channel][out channel]          the weights, transformed when the kernel is prepared, packed in panels
 *     M[point][tile][out channel] = V * U        p * p matrix products
 *     y = M transformed, bias, residual sum, clamp
 *
 * Where windows are dilated by d, every d-th row and column of outputs sees its own rows and columns of the source
 * only: tiles are of these.
 *
 * Tiles are taken in blocks whose V and M stay in the second cache. Threads share the blocks; where tiles are few and
 * weights many, they share the output channels instead, so that each reads its part of the weights only.
 */
#include "cpu/conv/winograd.h"

#include <math.h>
#include <string.h>

#include "cpu/conv/turned.h"
#include "cpu/core/epilogue.h"
#include "cpu/gemm/gemm_kernel.h"
#include "op/conv.h"

#define ROUND 16                    /* floats: whole vectors of any level */
#define BLOCK_BYTES 5e5             /* V and M of a block of tiles: these and U are to stay in the second cache */
#define OWN_BYTES (6.0 * (1 << 20)) /* weights that each thread may well read alone */
#define WEIGHT_BYTES 16e6 /* where U does not, it is read once for each block: blocks are as large as U, up to this */
#define FAR_BYTES 12e6    /* weights that no cache may hold until the next run */
#define MAX_POINTS 36
#define PACK_ROWS 8 /* input channels at a time: points lie far apart, in the same few lines of a cache */
#define PACK_PITCH (PACK_ROWS * HN_GEMM_KERNEL_MAX_COLS + 16)

typedef void (*OutFn)(const HnWinogradOut *o);
/* k [3][3][columns of a panel], g [side][3] -> u: points lie `plane` apart */
typedef void (*TapsFn)(float *u, int64_t plane, const float *k, const double *g, int side);

#define HN_LEVEL plain
#include "cpu/conv/winograd_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/conv/winograd_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/conv/winograd_loops.h"
#undef HN_LEVEL

typedef struct {
    HnConvPlan plan;
    gboolean turned;        /* weights are those of a ConvTranspose */
    int edge, side, points; /* m, p, p * p */
    HnWinogradInFn in;
    OutFn out;
    int64_t down, across, tiles;                /* tiles of an image; of all images */
    int64_t block;                              /* tiles at a time */
    int64_t v_pitch, v_plane, m_pitch, m_plane; /* floats */
    int threads;
    gboolean by_channels; /* threads share output channels; otherwise tiles */
    HnPack *weights;      /* [points] panels */
    float *zeros;         /* what lies in the padding: a pixel's channels */
    float *scale, *shift; /* [out channels, rounded up]: bias, and what is fused of that kind */
    HnEpilogue epilogue;
    int constants;     /* so many */
    HnEpilogueEnd end; /* the other fused nodes */
} Winograd;

/* --- which convolutions ------------------------------------------------------------------------------------------ */

/* Estimates, in products that the level computes in the same time: how many a weight is worth that comes from the third
 * cache, a float that is transformed, and what a tile's row costs besides its products. */
static const struct {
    int lanes, weight, transformed, row;
} costs[HN_LEVELS] = { { 4, 1, 2, 4 }, { 8, 8, 7, 12 }, { 16, 16, 13, 12 } };

static double rounded(int64_t n, int64_t to)
{
    return (double)((n + to - 1) / to * to);
}

/* Tiles along an axis: of every d-th output, so many for each of the d first ones. */
static int64_t tiles_along(const HnWindowAxis *a, int edge)
{
    const int64_t each = (a->out + a->dilation - 1) / a->dilation;
    return (each + edge - 1) / edge * a->dilation;
}

static double cost_of(const HnConvPlan *p, int edge)
{
    const int level = hn_cpu_level(), lanes = costs[level].lanes;
    const double in = (double)p->in_channels, out = rounded(p->out_channels, lanes);
    const double points = edge == 0 ? 9 : (edge + 2) * (edge + 2), weights = points * in * out;
    const double far = weights * sizeof(float) > FAR_BYTES ? 2 : 1;
    const double read = weights * far * costs[level].weight;
    if (edge == 0)
        return weights * (double)(p->batch * p->y_plane) + read;
    const double tiles =
        (double)p->batch * (double)tiles_along(&p->axis[0], edge) * (double)tiles_along(&p->axis[1], edge);
    const double moved = points * tiles * (rounded(p->in_channels, lanes) + out);
    return points * tiles * (in + costs[level].row) * out + moved * costs[level].transformed + read;
}

/* m of F(m x m, 3x3) for a convolution; 0: direct ones are as fast. F(2x2) is the more accurate one. */
static int edge_for(const HnConvPlan *p)
{
    const double direct = cost_of(p, 0), two = cost_of(p, 2), four = cost_of(p, 4);
    const double best = MIN(two * 0.95, four);
    return best * 1.05 > direct ? 0 : best == four ? 4 : 2;
}

static gsize weight_bytes(const HnConvPlan *p, int edge)
{
    return (gsize)((edge + 2) * (edge + 2) * hn_gemm_kernel_packed(p->in_channels, p->out_channels)) * sizeof(float);
}

static const char *reject(const HnStep *s, gboolean turned)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *b = hn_cpu_in(s, 2), *y = s->out[0].slot->tensor;
    HnConvPlan plan;
    if (x->ndim != 4 || w->dims[2] != 3 || w->dims[3] != 3)
        return "only kernels of 3x3";
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (b != NULL && (!hn_slot_is_weight(s->in[2].slot) || b->ndim != 1 || b->n != y->dims[1]))
        return "a bias that is computed or of another size than the output's channels";
    if (!hn_conv_plan_of(s, turned, &plan, NULL))
        return turned ? "the window does not fit, or strides" : "the window does not fit";
    for (int i = 0; i < 2; i++)
        if (plan.axis[i].stride != 1)
            return "only stride 1";
    if (plan.group != 1)
        return "groups";
    if (s->strict_math)
        return "strict math: its rounding differs more from that of a sum";
    if (hn_cpu_in_bf16(s, 2 * (double)y->n * (double)plan.in_channels * (double)plan.taps))
        return "bf16 is asked for";
    const int edge = edge_for(&plan);
    const gsize limit = hn_budget_limit(s->budget);
    if (edge == 0)
        return "a direct convolution is as fast";
    if (limit > 0 && weight_bytes(&plan, edge) > (limit - hn_budget_used(s->budget)) / 2)
        return "transformed weights take too much of the memory that is left";
    return NULL;
}

static const char *winograd_reject(const HnStep *s)
{
    return reject(s, FALSE);
}

static const char *turned_reject(const HnStep *s)
{
    return reject(s, TRUE);
}

/* --- weights ----------------------------------------------------------------------------------------------------- */

HnWinogradInFn hn_winograd_in(int edge)
{
    static const HnWinogradInFn in4[] = HN_TABLE_OF_LEVELS(in4), in2[] = HN_TABLE_OF_LEVELS(in2);
    return (edge == 4 ? in4 : in2)[hn_cpu_level()];
}

/* Row i of G takes the 3 taps along an axis to point i: the powers of the point, over its distances from the others. */
void hn_winograd_taps(int edge, double g[6][3])
{
    static const double four[] = { 0, 0.625, -0.625, 1.5, -1.5 }, two[] = { 0, 1, -1 };
    const double *at = edge == 4 ? four : two;
    const int finite = edge + 1;
    for (int i = 0; i < finite; i++) {
        double distances = 1;
        for (int k = 0; k < finite; k++)
            distances *= k == i ? 1 : at[i] - at[k];
        for (int k = 0; k < 3; k++)
            g[i][k] = pow(at[i], k) / distances;
    }
    for (int k = 0; k < 3; k++)
        g[finite][k] = k == 2;
}

/* The taps from input channels [i, i + rows) to output channels [o, o + width), k [rows][3][3][cols], zeros beyond; of
 * a turned convolution in the order in which they lie, from the last to the first. Of any alignment */
static void read_taps(const Winograd *c, const HnTensor *w, int64_t o, int64_t width, int64_t i, int64_t rows, float *k)
{
    const int64_t in = c->plan.in_channels, cols = hn_gemm_kernel_cols();
    const char *from = w->data;
    int64_t step;
    if (!c->turned) {
        from += hn_conv_weight_at(&c->plan, FALSE, o, i, &step) * (int64_t)sizeof *k;
        hn_gemm_kernel_pack(k, from, 1, in * 9, rows * 9, width);
        return;
    }
    for (int64_t r = 0; r < rows; r++, k += 9 * cols) {
        const int64_t last = hn_conv_weight_at(&c->plan, TRUE, o, i + r, &step);
        hn_gemm_kernel_pack(k, from + (last - 8) * (int64_t)sizeof *k, 1, 9, 9, width);
    }
}

/* w [out channels][in channels][3][3], or turned */
static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    static const TapsFn fns[] = HN_TABLE_OF_LEVELS(taps);
    const Winograd *c = data;
    const int64_t in = c->plan.in_channels, out = c->plan.out_channels, cols = hn_gemm_kernel_cols();
    const int64_t point = hn_gemm_kernel_packed(in, out);
    float k[PACK_ROWS * 9 * HN_GEMM_KERNEL_MAX_COLS], u[MAX_POINTS][PACK_PITCH];
    double g[6][3];
    hn_winograd_taps(c->edge, g);
    for (int p = 0; p < c->side && c->turned; p++) {
        const double first = g[p][0];
        g[p][0] = g[p][2];
        g[p][2] = first;
    }
    for (int64_t o = 0; o < out; o += cols)
        for (int64_t i = 0; i < in; i += PACK_ROWS) {
            const int64_t rows = MIN(PACK_ROWS, in - i);
            read_taps(c, w, o, MIN(cols, out - o), i, rows, k);
            for (int64_t r = 0; r < rows; r++)
                fns[hn_cpu_level()](&u[0][r * cols], PACK_PITCH, k + r * 9 * cols, &g[0][0], c->side);
            float *panel = (float *)to + o * in + i * cols;
            for (int p = 0; p < c->points; p++, panel += point)
                memcpy(panel, u[p], (gsize)(rows * cols) * sizeof *panel);
        }
}

/* --- prepare ----------------------------------------------------------------------------------------------------- */

/* Bias and the constants per channel that are fused first. */
static void read_constants(const HnStep *s, G_GNUC_UNUSED gpointer data)
{
    const Winograd *c = s->state;
    const HnTensor *b = hn_cpu_in(s, 2);
    for (int64_t i = 0; i < c->plan.out_channels; i++) {
        double scale = 1, shift = b != NULL ? hn_tensor_get_f64(b, i) : 0;
        for (int j = 0; j < c->constants; j++) {
            const HnEpilogueOp *op = &c->epilogue.op[j];
            const double by = op->scale != NULL ? (double)op->scale[i] : 1;
            scale *= by;
            shift = shift * by + (double)op->shift[i];
        }
        c->scale[i] = (float)scale;
        c->shift[i] = (float)shift;
    }
}

/* Tiles of a block and how they lie: rows and points are apart by an odd number of cache lines, so that they do not
 * meet in one set of the first cache. */
static void place(Winograd *c, HnStep *s)
{
    const HnConvPlan *p = &c->plan;
    const int64_t panels = (p->out_channels + hn_gemm_kernel_cols() - 1) / hn_gemm_kernel_cols();
    c->down = tiles_along(&p->axis[0], c->edge);
    c->across = tiles_along(&p->axis[1], c->edge);
    c->tiles = p->batch * c->down * c->across;
    c->v_pitch = ((p->in_channels + ROUND - 1) / ROUND | 1) * ROUND;
    c->m_pitch = ((p->out_channels + ROUND - 1) / ROUND | 1) * ROUND;
    c->threads = hn_cpu_threads_for(s, 2.0 * c->points * (double)c->tiles * (double)(p->in_channels * p->out_channels));
    /* each thread reads all of U, or all of V, half of which another one made: that has to pay; even shares */
    c->by_channels = c->threads > 1 && p->out_channels > c->tiles && panels >= c->threads &&
                     (double)weight_bytes(p, c->edge) > OWN_BYTES &&
                     (panels % c->threads == 0 || panels > 4 * c->threads);
    const double bytes = MAX(BLOCK_BYTES, MIN((double)weight_bytes(p, c->edge), WEIGHT_BYTES));
    const int64_t most = MAX((int64_t)(bytes / ((double)(c->v_pitch + c->m_pitch) * c->points * sizeof(float))), 12);
    const int64_t share = c->by_channels ? c->tiles : (c->tiles + c->threads - 1) / c->threads;
    const int64_t blocks = c->by_channels ? 1 : (share + most - 1) / most;
    c->block = (share + blocks - 1) / blocks;
    c->v_plane = (c->block | 1) * c->v_pitch;
    c->m_plane = (c->block | 1) * c->m_pitch;
    s->scratch_bytes =
        (gsize)(c->points * (c->v_plane + c->m_plane)) * sizeof(float) * (gsize)(c->by_channels ? 1 : c->threads);
}

static gboolean prepare(HnStep *s, gboolean turned, GError **error)
{
    static const OutFn out4[] = HN_TABLE_OF_LEVELS(out4), out2[] = HN_TABLE_OF_LEVELS(out2);
    const HnTensor *x = hn_cpu_in(s, 0);
    Winograd *c = g_new0(Winograd, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_plan_of(s, turned, p, error))
        return FALSE;
    c->turned = turned;
    c->edge = edge_for(p);
    c->side = c->edge + 2;
    c->points = c->side * c->side;
    c->in = hn_winograd_in(c->edge);
    c->out = (c->edge == 4 ? out4 : out2)[hn_cpu_level()];
    place(c, s);
    c->zeros = g_new0(float, (gsize)p->in_channels);
    c->scale = g_new0(float, (gsize)p->out_channels + ROUND);
    c->shift = g_new0(float, (gsize)p->out_channels + ROUND);
    while (c->constants < c->epilogue.n && c->epilogue.op[c->constants].kind == HN_EPILOGUE_AFFINE)
        c->constants++;
    read_constants(s, NULL);
    if (hn_cpu_in(s, 2) != NULL && s->in[2].slot->variable)
        hn_step_renews(s, read_constants, NULL);
    c->end = hn_epilogue_end(&c->epilogue, c->constants);
    if (hn_cpu_in(s, 2) != NULL)
        s->in[2].unread = TRUE;
    s->in[0].want = hn_layout_last(x);
    s->out[0].slot->layout = hn_layout_last(s->out[0].slot->tensor);
    for (int k = 0; k < c->epilogue.n; k++)
        if (c->epilogue.op[k].kind == HN_EPILOGUE_ADD)
            s->in[c->epilogue.op[k].port].want = hn_layout_last(s->out[0].slot->tensor);
    return hn_pack_normal(s, 1, pack_weights, c->edge * 2 + turned, weight_bytes(p, c->edge), c, &c->weights, error);
}

static gboolean winograd_prepare(HnStep *s, GError **error)
{
    return prepare(s, FALSE, error);
}

static gboolean turned_prepare(HnStep *s, GError **error)
{
    return prepare(s, TRUE, error);
}

static void winograd_release(HnStep *s)
{
    Winograd *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->weights);
    hn_epilogue_clear(&c->epilogue);
    g_free(c->zeros);
    g_free(c->scale);
    g_free(c->shift);
    g_free(c);
    s->state = NULL;
}

/* --- run --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const Winograd *c;
    const HnStep *s;
    const float *x;
    float *y;
    const float *add;
    int64_t x_pitch, y_pitch, add_pitch; /* of pixels */
} Run;

/* A tile's first output, and how many there are each way, `dilation` apart; 0: none. */
typedef struct {
    int64_t image, row, col;
    int rows, cols;
} Tile;

/* Tile i of those along an axis: the first output. */
static int64_t along(const HnWindowAxis *a, int64_t i, int64_t tiles, int edge)
{
    const int64_t each = tiles / a->dilation;
    return i / each + i % each * edge * a->dilation;
}

static int outputs(const HnWindowAxis *a, int64_t first, int edge)
{
    return (int)CLAMP((a->out - first + a->dilation - 1) / a->dilation, 0, edge);
}

static Tile tile_at(const Winograd *c, int64_t tile)
{
    const HnWindowAxis *h = &c->plan.axis[0], *w = &c->plan.axis[1];
    Tile t = { .image = tile / (c->down * c->across),
               .row = along(h, tile / c->across % c->down, c->down, c->edge),
               .col = along(w, tile % c->across, c->across, c->edge) };
    t.rows = outputs(h, t.row, c->edge);
    t.cols = outputs(w, t.col, c->edge);
    return t;
}

/* Tile `tile` into row t of V. */
static void transform_in(const Run *r, int64_t tile, float *v)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->plan.axis[0], *w = &c->plan.axis[1];
    const float *x[MAX_POINTS];
    const Tile t = tile_at(c, tile);
    const int64_t row = t.row - h->pad, col = t.col - w->pad;
    const int64_t last_row = row + (c->side - 1) * h->dilation, last_col = col + (c->side - 1) * w->dilation;
    const float *first = r->x + ((t.image * h->in + row) * w->in + col) * r->x_pitch;
    const int64_t line = w->in * r->x_pitch * h->dilation, next = r->x_pitch * w->dilation;
    if (row >= 0 && col >= 0 && last_row < h->in && last_col < w->in) {
        for (int i = 0, n = 0; i < c->side; i++)
            for (int j = 0; j < c->side; j++)
                x[n++] = first + i * line + j * next;
    } else {
        for (int i = 0, n = 0; i < c->side; i++)
            for (int j = 0; j < c->side; j++, n++) {
                const int64_t a = row + i * h->dilation, b = col + j * w->dilation;
                x[n] = a >= 0 && a < h->in && b >= 0 && b < w->in ? first + i * line + j * next : c->zeros;
            }
    }
    c->in(v, c->v_plane, x, c->plan.in_channels);
}

/* Row of M -> outputs of channels [from, from + n) of tile `tile` */
static void transform_out(const Run *r, int64_t tile, const float *m, int64_t from, int64_t n)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->plan.axis[0], *w = &c->plan.axis[1];
    const Tile t = tile_at(c, tile);
    const int64_t at = (t.image * h->out + t.row) * w->out + t.col, line = w->out * h->dilation;
    if (t.rows == 0 || t.cols == 0)
        return;
    const HnWinogradOut o = { .m = m + from,
                              .plane = c->m_plane,
                              .n = n,
                              .y = r->y + at * r->y_pitch + from,
                              .y_row = line * r->y_pitch,
                              .y_pitch = r->y_pitch * w->dilation,
                              .add = r->add != NULL ? r->add + at * r->add_pitch + from : NULL,
                              .add_row = line * r->add_pitch,
                              .add_pitch = r->add_pitch * w->dilation,
                              .rows = t.rows,
                              .cols = t.cols,
                              .scale = c->scale + from,
                              .shift = c->shift + from,
                              .lo = c->end.lo,
                              .hi = c->end.hi };
    c->out(&o);
}

/* The fused nodes that are left, while a tile's outputs are hot */
static void rest_of_tile(const Run *r, int64_t tile, int64_t from, int64_t n)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->plan.axis[0], *w = &c->plan.axis[1];
    if (c->end.rest == c->epilogue.n)
        return;
    const Tile t = tile_at(c, tile);
    const int together = w->dilation == 1 ? t.cols : 1; /* adjacent ones */
    for (int i = 0; i < t.rows; i++)
        for (int j = 0; j < t.cols; j += together)
            hn_epilogue_rest(&c->epilogue, c->end.rest, r->s, r->y, r->y_pitch,
                             (t.image * h->out + t.row + i * h->dilation) * w->out + t.col + j * w->dilation, together,
                             from, n);
}

/* M of `tiles` tiles and channels [from, from + n), from the first of a panel */
static void multiply(const Run *r, const float *v, float *m, int64_t tiles, int64_t from, int64_t n)
{
    const Winograd *c = r->c;
    const int64_t in = c->plan.in_channels;
    const float *u = hn_pack_data(c->weights, r->s, 1);
    HnGemmBlocked g = { .m = tiles,
                        .n = n,
                        .k = in,
                        .a = v,
                        .b = u + from * in,
                        .c = m + from,
                        .a_pitch = c->v_pitch,
                        .c_pitch = c->m_pitch,
                        .lo = HN_GEMM_KERNEL_LOW,
                        .hi = HN_GEMM_KERNEL_HIGH };
    for (int i = 0; i < c->points; i++) {
        hn_gemm_blocked(&g, 0, 1);
        g.a += c->v_plane;
        g.b += hn_gemm_kernel_packed(in, c->plan.out_channels);
        g.c += c->m_plane;
    }
}

typedef void (*PartFn)(const Run *r, int part, int parts);

static void each_part(const Run *r, PartFn fn)
{
    const int n = r->c->threads;
    if (n == 1) {
        fn(r, 0, 1);
        return;
    }
#pragma omp parallel for num_threads(n)
    for (int i = 0; i < n; i++)
        fn(r, i, n);
}

/* A share of the tiles, block by block */
static void blocks_of_tiles(const Run *r, int part, int parts)
{
    const Winograd *c = r->c;
    const int64_t begin = c->tiles * part / parts, end = c->tiles * (part + 1) / parts;
    float *v = (float *)r->s->scratch + part * c->points * (c->v_plane + c->m_plane);
    float *m = v + c->points * c->v_plane;
    for (int64_t at = begin; at < end; at += c->block) {
        const int64_t tiles = MIN(c->block, end - at);
        for (int64_t t = 0; t < tiles; t++)
            transform_in(r, at + t, v + t * c->v_pitch);
        multiply(r, v, m, tiles, 0, c->plan.out_channels);
        for (int64_t t = 0; t < tiles; t++) {
            transform_out(r, at + t, m + t * c->m_pitch, 0, c->plan.out_channels);
            rest_of_tile(r, at + t, 0, c->plan.out_channels);
        }
    }
}

/* All tiles in one block: its inputs, shared by tiles */
static void inputs_of_all(const Run *r, int part, int parts)
{
    const Winograd *c = r->c;
    for (int64_t t = c->tiles * part / parts; t < c->tiles * (part + 1) / parts; t++)
        transform_in(r, t, (float *)r->s->scratch + t * c->v_pitch);
}

/* ... its products and outputs, shared by panels of output channels */
static void outputs_of_panels(const Run *r, int part, int parts)
{
    const Winograd *c = r->c;
    const int64_t cols = hn_gemm_kernel_cols(), panels = (c->plan.out_channels + cols - 1) / cols;
    const int64_t from = panels * part / parts * cols;
    const int64_t n = MIN(panels * (part + 1) / parts * cols, c->plan.out_channels) - from;
    const float *v = r->s->scratch;
    float *m = (float *)r->s->scratch + c->points * c->v_plane;
    multiply(r, v, m, c->tiles, from, n);
    for (int64_t t = 0; t < c->tiles; t++) {
        transform_out(r, t, m + t * c->m_pitch, from, n);
        rest_of_tile(r, t, from, n);
    }
}

static gboolean winograd_run(HnStep *s, GError **error)
{
    (void)error;
    const Winograd *c = s->state;
    const HnPort *add = c->end.add_port >= 0 ? &s->in[c->end.add_port] : NULL;
    const Run r = { .c = c,
                    .s = s,
                    .x = hn_cpu_data(&s->in[0]),
                    .y = hn_cpu_data(&s->out[0]),
                    .add = add != NULL ? hn_cpu_data(add) : NULL,
                    .x_pitch = hn_slot_pitch(s->in[0].slot),
                    .y_pitch = hn_slot_pitch(s->out[0].slot),
                    .add_pitch = add != NULL ? hn_slot_pitch(add->slot) : 0 };
    each_part(&r, c->by_channels ? inputs_of_all : blocks_of_tiles);
    if (c->by_channels)
        each_part(&r, outputs_of_panels);
    return TRUE;
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

#define SAMPLES 256           /* pixels to look at ... */
#define SAMPLE_PRODUCTS 100e6 /* ... as long as they take no more than this */

/* The result's pixel `at`, image by image, by plain sums. */
static void plain_pixel(const Winograd *c, const HnStep *s, int64_t at, float *y)
{
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &p->axis[0], *v = &p->axis[1];
    const int64_t image = at / p->y_plane, row = at / v->out % h->out - h->pad, col = at % v->out - v->pad;
    const int64_t pitch = hn_slot_pitch(s->in[0].slot);
    const float *x = hn_cpu_data(&s->in[0]);
    const char *w = hn_cpu_data(&s->in[1]);
    for (int64_t o = 0; o < p->out_channels; o++) {
        double sum = 0;
        for (int64_t i = 0; i < p->in_channels; i++) {
            int64_t step;
            const char *tap = w + hn_conv_weight_at(p, c->turned, o, i, &step) * (int64_t)sizeof(float);
            for (int t = 0; t < 9; t++, tap += step * (int64_t)sizeof(float)) {
                float weight;
                memcpy(&weight, tap, sizeof weight);
                const int64_t a = row + t / 3 * h->dilation, b = col + t % 3 * v->dilation;
                if (a >= 0 && a < h->in && b >= 0 && b < v->in)
                    sum += (double)weight * (double)x[((image * h->in + a) * v->in + b) * pitch + i];
            }
        }
        y[o] = (float)(sum * (double)c->scale[o] + (double)c->shift[o]);
    }
    hn_epilogue_rest(&c->epilogue, c->constants, s, y, 0, at, 1, 0, p->out_channels); /* pitch 0: y is the row */
}

static double winograd_error(const HnStep *s)
{
    const Winograd *c = s->state;
    const HnConvPlan *p = &c->plan;
    const int64_t pixels = p->batch * p->y_plane, pitch = hn_slot_pitch(s->out[0].slot), n = p->out_channels;
    const float *y = hn_cpu_data(&s->out[0]);
    if (hn_cpu_data(&s->in[1]) == NULL) /* dropped after it was packed */
        return NAN;
    g_autofree float *row = g_new(float, (gsize)n);
    double worst = 0, largest = 0;
    const double most = SAMPLE_PRODUCTS / (9 * (double)p->in_channels * (double)n);
    const int64_t samples = MIN(pixels, (int64_t)CLAMP(most, 1, SAMPLES));
    for (int64_t k = 0; k < samples; k++) {
        const int64_t at = k * (pixels / samples | 1) % pixels; /* odd steps: every place within a tile */
        plain_pixel(c, s, at, row);
        for (int64_t o = 0; o < n; o++) {
            worst = fmax(worst, fabs((double)y[at * pitch + o] - (double)row[o]));
            largest = fmax(largest, fabs((double)row[o]));
        }
    }
    return largest > 0 ? worst / largest : worst;
}

static double winograd_products(const HnStep *s)
{
    const Winograd *c = s->state;
    return (double)c->points / (9 * c->edge * c->edge);
}

const HnKernel hn_cpu_winograd_turned = {
    .name = "cpu.winograd",
    .reject = turned_reject,
    .prepare = turned_prepare,
    .run = winograd_run,
    .release = winograd_release,
    .error = winograd_error,
    .products = winograd_products,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};

const HnKernel hn_cpu_winograd = {
    .name = "cpu.winograd",
    .reject = winograd_reject,
    .prepare = winograd_prepare,
    .run = winograd_run,
    .release = winograd_release,
    .error = winograd_error,
    .products = winograd_products,
    .fuses = hn_epilogue_conv_fuses,
    .pitched = TRUE,
};
