/*
 * Convolutions of stride 1 in fewer products, after Winograd (S. Winograd, Arithmetic Complexity of Computations, 1980;
 * A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
 *
 * F(m x m, r x r): a tile of m x m outputs is read as the coefficients of a product of polynomials that is computed
 * from its values at p = m + r - 1 points along either axis: p * p products per tile and pair of channels instead of m
 * * m * r * r. F(m, r), of kernels that have one tap along the other axis, does that along one axis.
 *
 *     V[point][tile][in channel]                 the tile's p x p inputs, transformed
 *     U[point][in channel][out channel]          the weights, transformed when the kernel is prepared, packed in panels
 *     M[point][tile][out channel] = V * U        p * p matrix products
 *     y = M transformed, bias, residual sum, clamp
 *
 * Where windows are dilated by d, every d-th row and column of outputs sees its own rows and columns of the source
 * only: tiles are of these.
 *
 * Of three axes the first has no points: a tap along it is one more input channel for each (flatten()).
 *
 * Tiles are taken in blocks whose V and M stay in the second cache. Threads share the blocks; where tiles are few and
 * weights many, they share the output channels instead, so that each reads its part of the weights only.
 */
#include "cpu/conv/winograd.h"

#include <math.h>
#include <string.h>

#include "cpu/conv/conv_planar.h"
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
#define MAX_SIDE 8
#define NEAR_PIXELS 16 /* outputs that are in the first cache still */
#define MAX_TAPS 25
#define PACK_ROWS 8 /* input channels at a time: points lie far apart, in the same few lines of a cache */
#define PACK_PITCH (PACK_ROWS * HN_GEMM_KERNEL_MAX_COLS + 16)

typedef void (*OutFn)(const HnWinogradOut *o);
/* k [taps][taps][columns of a panel], or [taps] of these, g [side][taps] -> u: points lie `plane` apart */
typedef void (*TapsFn)(float *u, int64_t plane, const float *k, const double *g, int side, int taps);

enum { H, W };

#define HN_LOOPS "cpu/conv/winograd_loops.h"
#include "base/every_level.h"

/* m, r and p, along one axis or both */
typedef struct {
    int axes, edge, taps, side;
} Form;

typedef struct {
    HnConvPlan plan;
    HnWindowAxis depth;   /* one position unless there are three axes: see flatten() */
    HnWindowAxis axis[2]; /* H, W */
    const Form *form;
    gboolean turned; /* weights are those of a ConvTranspose */
    int edge[2];     /* outputs of a tile: m or 1 */
    int side[2];     /* its inputs: p or 1 */
    int points;      /* products of these */
    HnWinogradInFn in;
    OutFn out;
    int64_t down, across, tiles;                /* tiles of an image; of all images */
    int64_t blocks;                             /* of tiles, in all, which are computed at a time */
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
 * cache, a float that is transformed along two axes, and what a tile's row costs besides its products. */
static const struct {
    int lanes, weight, transformed, row;
} costs[HN_LEVELS] = { { 4, 1, 2, 4 }, { 8, 8, 7, 12 }, { 16, 16, 13, 12 } };

static double rounded(int64_t n, int64_t to)
{
    return (double)((n + to - 1) / to * to);
}

static const Form forms[] = { { 2, 2, 3, 4 }, { 2, 4, 3, 6 }, { 2, 2, 5, 6 },
                              { 1, 4, 3, 6 }, { 1, 4, 5, 8 }, { 1, 2, 7, 8 } };

/* Three axes are two: each output depth is an image, whose input channels are those at each tap along the depth. */
static void flatten(HnConvPlan *p, HnWindowAxis *depth)
{
    *depth = hn_window_one();
    if (p->n < 3)
        return;
    *depth = p->axis[0];
    p->axis[0] = p->axis[1];
    p->axis[1] = p->axis[2];
    p->n = 2;
    p->in_channels *= depth->kernel;
    p->taps /= depth->kernel;
    p->batch *= depth->out;
    p->x_plane /= depth->in;
    p->y_plane /= depth->out;
}

static void axes_of(const HnConvPlan *p, HnWindowAxis *axis)
{
    hn_window_axes(p->n, p->axis, 2, axis);
    for (int i = 0; i < 2; i++)
        if (axis[i].kernel == 1)
            axis[i].dilation = 1;
}

/* Tiles are of several outputs along this axis. */
static gboolean is_tiled(const Form *f, const HnWindowAxis *a)
{
    return f->axes == 2 || a->kernel > 1;
}

static gboolean has_taps(const Form *f, const HnWindowAxis *axis)
{
    const int64_t h = axis[H].kernel, w = axis[W].kernel;
    return f->axes == 2 ? h == f->taps && w == f->taps : MAX(h, w) == f->taps && MIN(h, w) == 1;
}

static int points_of(const Form *f)
{
    return f->axes == 2 ? f->side * f->side : f->side;
}

/* Tiles along an axis: of every d-th output, so many for each of the d first ones. */
static int64_t tiles_along(const HnWindowAxis *a, int edge)
{
    const int64_t each = (a->out + a->dilation - 1) / a->dilation;
    return (each + edge - 1) / edge * a->dilation;
}

/* f NULL: a direct convolution */
static double cost_of(const HnConvPlan *p, const HnWindowAxis *axis, const Form *f)
{
    const int level = hn_cpu_level(), lanes = costs[level].lanes;
    const double in = (double)p->in_channels, out = rounded(p->out_channels, lanes);
    const double points = f == NULL ? (double)p->taps : points_of(f), weights = points * in * out;
    const double far = weights * sizeof(float) > FAR_BYTES ? 2 : 1;
    const double read = weights * far * costs[level].weight;
    if (f == NULL)
        return weights * (double)(p->batch * p->y_plane) + read;
    double tiles = (double)p->batch;
    for (int i = 0; i < 2; i++)
        tiles *= (double)(is_tiled(f, &axis[i]) ? tiles_along(&axis[i], f->edge) : axis[i].out);
    const double moved = points * tiles * (rounded(p->in_channels, lanes) + out) * f->axes / 2;
    return points * tiles * (in + costs[level].row) * out + moved * costs[level].transformed + read;
}

/* NULL: direct convolutions are as fast, or it has other taps. F(2x2, 3x3) is more accurate than F(4x4, 3x3). */
static const Form *form_for(const HnConvPlan *p)
{
    HnWindowAxis axis[2];
    const Form *best = NULL;
    axes_of(p, axis);
    double least = cost_of(p, axis, NULL) / 1.05;
    for (guint i = 0; i < G_N_ELEMENTS(forms); i++) {
        const double odds = i == 0 ? 0.95 : forms[i].axes == 1 ? 1.05 : 1;
        const double cost = cost_of(p, axis, &forms[i]) * odds;
        if (has_taps(&forms[i], axis) && cost < least) {
            best = &forms[i];
            least = cost;
        }
    }
    return best;
}

double hn_winograd_gain(const HnConvPlan *p)
{
    HnWindowAxis axis[2];
    const Form *f = NULL;
    gboolean plain = p->group == 1 && (p->n == 1 || p->n == 2);
    for (int i = 0; i < p->n && plain; i++)
        plain = p->axis[i].stride == 1;
    if (!plain || (f = form_for(p)) == NULL)
        return 1;
    axes_of(p, axis);
    return cost_of(p, axis, NULL) / cost_of(p, axis, f);
}

static gsize weight_bytes(const HnConvPlan *p, const Form *f)
{
    return (gsize)(points_of(f) * hn_gemm_kernel_packed(p->in_channels, p->out_channels)) * sizeof(float);
}

static const char *reject(const HnStep *s, HnConvKind kind)
{
    const HnTensor *b = hn_cpu_in(s, 2), *y = s->out[0].slot->tensor;
    HnConvPlan plan;
    HnWindowAxis depth, axis[2];
    const char *reason = hn_conv_reject(s, kind, kind == HN_CONV_PLAIN ? 3 : 2, &plan);
    if (reason != NULL)
        return reason;
    const int n = plan.n;
    flatten(&plan, &depth);
    if (!hn_slot_is_weight(s->in[1].slot))
        return "weights that are computed";
    if (b != NULL && !hn_slot_is_weight(s->in[2].slot))
        return "a bias that is computed";
    for (int i = 0; i < plan.n; i++)
        if (plan.axis[i].stride != 1)
            return "only stride 1";
    if (plan.group != 1)
        return "groups";
    if (s->strict_math)
        return "strict math: its rounding differs more from that of a sum";
    if (hn_cpu_in_bf16(s, 2 * (double)y->n * (double)plan.in_channels * (double)plan.taps))
        return "bf16 is asked for";
    const Form *form = form_for(&plan);
    const gsize limit = hn_budget_limit(s->budget);
    if (form == NULL)
        return "other taps than 3x3, 5x5, or 3, 5 or 7 along one axis, or a direct convolution is as fast";
    axes_of(&plan, axis);
    if (kind == HN_CONV_PLAIN && plan.n == n && hn_conv_planar_beats(s, &plan, cost_of(&plan, axis, form)))
        return "rows of columns are faster";
    if (limit > 0 && weight_bytes(&plan, form) > (limit - hn_budget_used(s->budget)) / 2)
        return "transformed weights take too much of the memory that is left";
    return NULL;
}

static const char *winograd_reject(const HnStep *s)
{
    return reject(s, HN_CONV_PLAIN);
}

static const char *turned_reject(const HnStep *s)
{
    return reject(s, HN_CONV_TURNED);
}

/* --- weights ----------------------------------------------------------------------------------------------------- */

HnWinogradInFn hn_winograd_in(int side)
{
    static const HnWinogradInFn in6[] = HN_TABLE_OF_LEVELS(in6), in4[] = HN_TABLE_OF_LEVELS(in4);
    return (side == 6 ? in6 : in4)[hn_cpu_level()];
}

static HnWinogradInFn in_of(const Form *f)
{
    static const HnWinogradInFn in6[] = HN_TABLE_OF_LEVELS(in_line6), in8[] = HN_TABLE_OF_LEVELS(in_line8);
    return f->axes == 2 ? hn_winograd_in(f->side) : (f->side == 6 ? in6 : in8)[hn_cpu_level()];
}

static OutFn out_of(const Form *f)
{
    static const OutFn out4_2[] = HN_TABLE_OF_LEVELS(out4_2), out6_4[] = HN_TABLE_OF_LEVELS(out6_4);
    static const OutFn out6_2[] = HN_TABLE_OF_LEVELS(out6_2), line6_4[] = HN_TABLE_OF_LEVELS(out_line6_4);
    static const OutFn line8_4[] = HN_TABLE_OF_LEVELS(out_line8_4), line8_2[] = HN_TABLE_OF_LEVELS(out_line8_2);
    static const OutFn *const fns[] = { out4_2, out6_4, out6_2, line6_4, line8_4, line8_2 };
    return fns[f - forms][hn_cpu_level()];
}

/* Row i of G takes the taps along an axis to point i: the powers of the point, over its distances from the others. */
void hn_winograd_taps(int side, int taps, double *g)
{
    static const double four[] = { 0, 1, -1 }, six[] = { 0, 0.625, -0.625, 1.5, -1.5 };
    static const double eight[] = { 0, 0.5, -0.5, 1, -1, 2, -2 };
    const double *at = side == 4 ? four : side == 6 ? six : eight;
    const int finite = side - 1;
    for (int i = 0; i < finite; i++, g += taps) {
        double distances = 1;
        for (int k = 0; k < finite; k++)
            distances *= k == i ? 1 : at[i] - at[k];
        for (int k = 0; k < taps; k++)
            g[k] = pow(at[i], k) / distances;
    }
    for (int k = 0; k < taps; k++)
        g[k] = k == taps - 1;
}

/* Where the taps from input channel i to output channel o are, *step apart. */
static int64_t taps_at(const Winograd *c, int64_t o, int64_t i, int64_t *step)
{
    const int64_t depth = c->depth.kernel, in = c->plan.in_channels / depth;
    if (depth == 1)
        return hn_conv_weight_at(&c->plan, c->turned, o, i, step);
    *step = 1;
    return ((o * in + i % in) * depth + i / in) * c->plan.taps;
}

/* The taps from input channels [i, i + rows) to output channels [o, o + width), k [rows][taps][cols], zeros beyond; of
 * a turned convolution in the order in which they lie, from the last to the first. Of any alignment */
static void read_taps(const Winograd *c, const HnTensor *w, int64_t o, int64_t width, int64_t i, int64_t rows, float *k)
{
    const int64_t in = c->plan.in_channels, taps = c->plan.taps, cols = hn_gemm_kernel_cols();
    const char *from = w->data;
    int64_t step;
    if (!c->turned && c->depth.kernel == 1) {
        from += taps_at(c, o, i, &step) * (int64_t)sizeof *k;
        hn_gemm_kernel_pack(k, from, 1, in * taps, rows * taps, width);
        return;
    }
    for (int64_t r = 0; r < rows; r++, k += taps * cols) {
        const int64_t last = taps_at(c, o, i + r, &step);
        if (!c->turned) {
            hn_gemm_kernel_pack(k, from + last * (int64_t)sizeof *k, 1, in * taps, taps, width);
            continue;
        }
        hn_gemm_kernel_pack(k, from + (last - taps + 1) * (int64_t)sizeof *k, 1, taps, taps, width);
    }
}

/* w [out channels][in channels][taps], or turned */
static void pack_weights(void *to, const HnTensor *w, gconstpointer data)
{
    static const TapsFn taps3[] = HN_TABLE_OF_LEVELS(taps3), taps5[] = HN_TABLE_OF_LEVELS(taps5);
    static const TapsFn line[] = HN_TABLE_OF_LEVELS(taps_line);
    const Winograd *c = data;
    const Form *f = c->form;
    const TapsFn fn = (f->axes == 1 ? line : f->taps == 3 ? taps3 : taps5)[hn_cpu_level()];
    const int64_t in = c->plan.in_channels, out = c->plan.out_channels, cols = hn_gemm_kernel_cols();
    const int64_t point = hn_gemm_kernel_packed(in, out);
    float k[PACK_ROWS * MAX_TAPS * HN_GEMM_KERNEL_MAX_COLS], u[MAX_POINTS][PACK_PITCH];
    double g[MAX_SIDE * MAX_SIDE];
    hn_winograd_taps(f->side, f->taps, g);
    for (int p = 0; p < f->side && c->turned; p++)
        for (int a = p * f->taps, b = a + f->taps - 1; a < b; a++, b--) {
            const double first = g[a];
            g[a] = g[b];
            g[b] = first;
        }
    for (int64_t o = 0; o < out; o += cols)
        for (int64_t i = 0; i < in; i += PACK_ROWS) {
            const int64_t rows = MIN(PACK_ROWS, in - i);
            read_taps(c, w, o, MIN(cols, out - o), i, rows, k);
            for (int64_t r = 0; r < rows; r++)
                fn(&u[0][r * cols], PACK_PITCH, k + r * c->plan.taps * cols, g, f->side, f->taps);
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
        double scale, shift = b != NULL ? hn_tensor_get_f64(b, i) : 0;
        hn_epilogue_constants(&c->epilogue, c->constants, i, &scale, &shift);
        c->scale[i] = (float)scale;
        c->shift[i] = (float)shift;
    }
}

#define FEW_TILES 16 /* of a block: rows of a product that still runs well */

/* In how many blocks of at most that many tiles threads share them: as many for each; where weights stay in a thread's
 * second cache, some more, so that threads that are not equally fast end at the same time. */
static int64_t blocks_of(int64_t tiles, int64_t most, int threads, gboolean cached)
{
    const int64_t share = (tiles + threads - 1) / threads;
    int64_t each = (share + most - 1) / most;
    if (threads > 1 && cached)
        each = MAX(each, MIN(HN_PARALLEL_PIECES, share / FEW_TILES));
    /* two strips, or one, whose sums are made in the same order whoever makes them */
    return MAX(1, MAX(MIN(each * threads, tiles / (2 * HN_GEMM_KERNEL_FEW)), MIN(threads, tiles / HN_GEMM_KERNEL_FEW)));
}

/* Tiles of a block and how they lie: rows and points are apart by an odd number of cache lines, so that they do not
 * meet in one set of the first cache. */
static void place(Winograd *c, HnStep *s)
{
    const HnConvPlan *p = &c->plan;
    const int64_t panels = (p->out_channels + hn_gemm_kernel_cols() - 1) / hn_gemm_kernel_cols();
    c->down = tiles_along(&c->axis[H], c->edge[H]);
    c->across = tiles_along(&c->axis[W], c->edge[W]);
    c->tiles = p->batch * c->down * c->across;
    const int64_t some = p->in_channels / c->depth.kernel % ROUND; /* the last ones are stored as a whole vector */
    c->v_pitch = ((p->in_channels + (some > 0 ? ROUND - some : 0) + ROUND - 1) / ROUND | 1) * ROUND;
    c->m_pitch = ((p->out_channels + ROUND - 1) / ROUND | 1) * ROUND;
    c->threads = hn_cpu_threads_for(s, 2.0 * c->points * (double)c->tiles * (double)(p->in_channels * p->out_channels));
    /* each thread reads all of U, or all of V, half of which another one made: that has to pay; even shares */
    c->by_channels = c->threads > 1 && p->out_channels > c->tiles && panels >= c->threads &&
                     (double)weight_bytes(p, c->form) > OWN_BYTES &&
                     (panels % c->threads == 0 || panels > 4 * c->threads);
    const double bytes = MAX(BLOCK_BYTES, MIN((double)weight_bytes(p, c->form), WEIGHT_BYTES));
    const int64_t most = MAX((int64_t)(bytes / ((double)(c->v_pitch + c->m_pitch) * c->points * sizeof(float))), 12);
    c->blocks =
        c->by_channels ? 1 : blocks_of(c->tiles, most, c->threads, (double)weight_bytes(p, c->form) <= BLOCK_BYTES);
    const int64_t largest = (c->tiles + c->blocks - 1) / c->blocks;
    c->v_plane = (largest | 1) * c->v_pitch;
    c->m_plane = (largest | 1) * c->m_pitch;
    s->scratch_bytes =
        (gsize)(c->points * (c->v_plane + c->m_plane)) * sizeof(float) * (gsize)(c->by_channels ? 1 : c->threads);
}

static gboolean prepare(HnStep *s, gboolean turned, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    Winograd *c = g_new0(Winograd, 1);
    HnConvPlan *p = &c->plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_conv_plan_of(s, turned, p, error))
        return FALSE;
    c->turned = turned;
    flatten(p, &c->depth);
    axes_of(p, c->axis);
    c->form = form_for(p);
    for (int i = 0; i < 2; i++) {
        const gboolean tiled = is_tiled(c->form, &c->axis[i]);
        c->edge[i] = tiled ? c->form->edge : 1;
        c->side[i] = tiled ? c->form->side : 1;
    }
    c->points = points_of(c->form);
    c->in = in_of(c->form);
    c->out = out_of(c->form);
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
    return hn_pack_normal(s, 1, pack_weights, c->points * 2 + turned, weight_bytes(p, c->form), c, &c->weights, error);
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
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    Tile t = { .image = tile / (c->down * c->across),
               .row = along(h, tile / c->across % c->down, c->down, c->edge[H]),
               .col = along(w, tile % c->across, c->across, c->edge[W]) };
    t.rows = outputs(h, t.row, c->edge[H]);
    t.cols = outputs(w, t.col, c->edge[W]);
    return t;
}

/* The inputs of a tile at tap k along the depth: pointers to pixels. */
static void point(const Run *r, const Tile *t, int64_t k, const float **x)
{
    const Winograd *c = r->c;
    const HnWindowAxis *d = &c->depth, *h = &c->axis[H], *w = &c->axis[W];
    const int64_t row = t->row - h->pad, col = t->col - w->pad;
    const int64_t last_row = row + (c->side[H] - 1) * h->dilation, last_col = col + (c->side[W] - 1) * w->dilation;
    const int64_t deep = t->image % d->out * d->stride + k * d->dilation - d->pad;
    const int64_t image = t->image / d->out * d->in + deep;
    const float *first = r->x + ((image * h->in + row) * w->in + col) * r->x_pitch;
    const int64_t line = w->in * r->x_pitch * h->dilation, next = r->x_pitch * w->dilation;
    const gboolean there = deep >= 0 && deep < d->in;
    if (there && row >= 0 && col >= 0 && last_row < h->in && last_col < w->in) {
        for (int i = 0, n = 0; i < c->side[H]; i++)
            for (int j = 0; j < c->side[W]; j++)
                x[n++] = first + i * line + j * next;
        return;
    }
    for (int i = 0, n = 0; i < c->side[H]; i++)
        for (int j = 0; j < c->side[W]; j++, n++) {
            const int64_t a = row + i * h->dilation, b = col + j * w->dilation;
            const gboolean in = there && a >= 0 && a < h->in && b >= 0 && b < w->in;
            x[n] = in ? first + i * line + j * next : c->zeros;
        }
}

/* Tile `tile` into row t of V. */
static void transform_in(const Run *r, int64_t tile, float *v)
{
    const Winograd *c = r->c;
    const float *x[MAX_POINTS];
    const Tile t = tile_at(c, tile);
    const int64_t channels = c->plan.in_channels / c->depth.kernel;
    for (int64_t k = 0; k < c->depth.kernel; k++) {
        point(r, &t, k, x);
        c->in(v + k * channels, c->v_plane, x, channels);
    }
}

/* Row of M -> outputs of channels [from, from + n) of tile `tile` */
static void transform_out(const Run *r, int64_t tile, const float *m, int64_t from, int64_t n)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    Tile t = tile_at(c, tile);
    const int64_t at = (t.image * h->out + t.row) * w->out + t.col;
    int64_t line = w->out * h->dilation, next = w->dilation;
    if (t.rows == 0 || t.cols == 0)
        return;
    if (c->edge[W] == 1) { /* tiles of one axis are rows */
        t.cols = t.rows;
        t.rows = 1;
        next = line;
    }
    const HnWinogradOut o = { .m = m + from,
                              .plane = c->m_plane,
                              .n = n,
                              .y = r->y + at * r->y_pitch + from,
                              .y_row = line * r->y_pitch,
                              .y_pitch = r->y_pitch * next,
                              .add = r->add != NULL ? r->add + at * r->add_pitch + from : NULL,
                              .add_row = line * r->add_pitch,
                              .add_pitch = r->add_pitch * next,
                              .rows = t.rows,
                              .cols = t.cols,
                              .scale = c->scale + from,
                              .shift = c->shift + from,
                              .lo = c->end.lo,
                              .hi = c->end.hi };
    c->out(&o);
}

/* Tiles from this one on whose outputs lie side by side, of `left` at most: those along one axis. */
static int64_t run_of_tiles(const Winograd *c, int64_t tile, int64_t left)
{
    if (c->form->axes == 2 || c->axis[W].dilation > 1)
        return 1;
    return MIN(MIN(left, c->across - tile % c->across), NEAR_PIXELS / c->edge[W]);
}

/* The fused nodes that are left, while the outputs of these tiles, a run, are hot */
static void rest_of_tiles(const Run *r, int64_t tile, int64_t run, int64_t from, int64_t n)
{
    const Winograd *c = r->c;
    const HnWindowAxis *h = &c->axis[H], *w = &c->axis[W];
    if (c->end.rest == c->epilogue.n)
        return;
    const Tile t = tile_at(c, tile);
    const int64_t cols = w->dilation > 1 ? t.cols : MIN(run * c->edge[W], w->out - t.col);
    const int64_t together = w->dilation > 1 ? 1 : cols; /* adjacent ones */
    for (int i = 0; i < t.rows; i++)
        for (int64_t j = 0; j < cols; j += together)
            hn_epilogue_rest(&c->epilogue, c->end.rest, r->s, r->y, r->y_pitch,
                             (t.image * h->out + t.row + i * h->dilation) * w->out + t.col + j * w->dilation, together,
                             from, n);
}

/* Rows of M -> outputs of `tiles` tiles from the first on */
static void finish(const Run *r, int64_t first, int64_t tiles, const float *m, int64_t from, int64_t n)
{
    for (int64_t t = 0, run; t < tiles; t += run) {
        run = run_of_tiles(r->c, first + t, tiles - t);
        for (int64_t i = t; i < t + run; i++)
            transform_out(r, first + i, m + i * r->c->m_pitch, from, n);
        rest_of_tiles(r, first + t, run, from, n);
    }
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

/* Tiles, block by block */
static void blocks_of_tiles(gpointer run, int thread, int64_t begin, int64_t end)
{
    const Run *r = run;
    const Winograd *c = r->c;
    float *v = (float *)r->s->scratch + thread * c->points * (c->v_plane + c->m_plane);
    float *m = v + c->points * c->v_plane;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = c->tiles * i / c->blocks, tiles = c->tiles * (i + 1) / c->blocks - at;
        for (int64_t t = 0; t < tiles; t++)
            transform_in(r, at + t, v + t * c->v_pitch);
        multiply(r, v, m, tiles, 0, c->plan.out_channels);
        finish(r, at, tiles, m, 0, c->plan.out_channels);
    }
}

/* All tiles in one block: its inputs, shared by tiles */
static void inputs_of_all(gpointer run, G_GNUC_UNUSED int thread, int64_t begin, int64_t end)
{
    const Run *r = run;
    const Winograd *c = r->c;
    for (int64_t t = begin; t < end; t++)
        transform_in(r, t, (float *)r->s->scratch + t * c->v_pitch);
}

/* ... its products and outputs, shared by panels of output channels */
static void outputs_of_panels(gpointer run, G_GNUC_UNUSED int thread, int64_t begin, int64_t end)
{
    const Run *r = run;
    const Winograd *c = r->c;
    const int64_t cols = hn_gemm_kernel_cols(), from = begin * cols;
    const int64_t n = MIN(end * cols, c->plan.out_channels) - from;
    const float *v = r->s->scratch;
    float *m = (float *)r->s->scratch + c->points * c->v_plane;
    multiply(r, v, m, c->tiles, from, n);
    finish(r, 0, c->tiles, m, from, n);
}

static gboolean winograd_run(HnStep *s, GError **error)
{
    (void)error;
    const Winograd *c = s->state;
    const HnPort *add = c->end.add_port >= 0 ? &s->in[c->end.add_port] : NULL;
    Run r = { .c = c,
              .s = s,
              .x = hn_cpu_data(&s->in[0]),
              .y = hn_cpu_data(&s->out[0]),
              .add = add != NULL ? hn_cpu_data(add) : NULL,
              .x_pitch = hn_slot_pitch(s->in[0].slot),
              .y_pitch = hn_slot_pitch(s->out[0].slot),
              .add_pitch = add != NULL ? hn_slot_pitch(add->slot) : 0 };
    if (!c->by_channels) {
        hn_parallel_for(c->blocks, c->threads, blocks_of_tiles, &r);
        return TRUE;
    }
    const int64_t cols = hn_gemm_kernel_cols();
    hn_parallel_for(c->tiles, c->threads, inputs_of_all, &r);
    hn_parallel_for((c->plan.out_channels + cols - 1) / cols, c->threads, outputs_of_panels, &r);
    return TRUE;
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

#define SAMPLES 256           /* pixels to look at ... */
#define SAMPLE_PRODUCTS 100e6 /* ... as long as they take no more than this */

/* The result's pixel `at`, image by image, by plain sums. */
static void plain_pixel(const Winograd *c, const HnStep *s, int64_t at, float *y)
{
    const HnConvPlan *p = &c->plan;
    const HnWindowAxis *h = &c->axis[H], *v = &c->axis[W];
    const HnWindowAxis *d = &c->depth;
    const int64_t image = at / p->y_plane, row = at / v->out % h->out - h->pad, col = at % v->out - v->pad;
    const int64_t channels = p->in_channels / d->kernel;
    const int64_t pitch = hn_slot_pitch(s->in[0].slot);
    const float *x = hn_cpu_data(&s->in[0]);
    const char *w = hn_cpu_data(&s->in[1]);
    for (int64_t o = 0; o < p->out_channels; o++) {
        double sum = 0;
        for (int64_t i = 0; i < p->in_channels; i++) {
            int64_t step;
            const char *tap = w + taps_at(c, o, i, &step) * (int64_t)sizeof(float);
            const int64_t deep = image % d->out * d->stride + i / channels * d->dilation - d->pad;
            const int64_t from = image / d->out * d->in + deep;
            for (int64_t t = 0; t < p->taps; t++, tap += step * (int64_t)sizeof(float)) {
                float weight;
                memcpy(&weight, tap, sizeof weight);
                const int64_t a = row + t / v->kernel * h->dilation, b = col + t % v->kernel * v->dilation;
                if (deep >= 0 && deep < d->in && a >= 0 && a < h->in && b >= 0 && b < v->in)
                    sum += (double)weight * (double)x[((from * h->in + a) * v->in + b) * pitch + i % channels];
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
    const double most = SAMPLE_PRODUCTS / ((double)p->taps * (double)p->in_channels * (double)n);
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
    return (double)c->points / ((double)c->plan.taps * c->edge[H] * c->edge[W]);
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
