#include "cuda/gemm/cuda_warpgroup.h"

#include "cuda/gemm/cuda_product.h"

#define CAPABILITY 90 /* no other one runs such code */
#define LEAST 64      /* columns and terms: below them tiles are mostly empty */
#define PART 128      /* of k, that is worth a block of its own */
#define UNIT 64       /* parts of k are multiples of it */

/* Microseconds, as measured on an H200 and an H100: of a term of a tile that is alone on a multiprocessor, that shares
 * it with others, and where several rounds of tiles follow each other; of what comes before and behind a tile; of each
 * part of sums that meet, for 64 columns. */
typedef struct {
    int rows, columns, together;
    double alone, shared, many;
} Tile;
#define AROUND 2.0
#define PART_MEETS 2.6

static const Tile half_tiles[] = { { 128, 256, 1, 0.0110, 0.0110, 0.0110 },
                                   { 128, 128, 1, 0.0059, 0.0059, 0.0059 },
                                   { 64, 128, 1, 0.0041, 0.0041, 0.0041 },
                                   { 64, 64, 1, 0.0030, 0.0030, 0.0030 } };
static const Tile f32_tiles[] = { { 128, 128, 1, 0.070, 0.040, 0.040 },
                                  { 64, 64, HN_WARPGROUP_F32_TOGETHER(64, 64), 0.036, 0.045, 0.028 } };

typedef struct {
    const Tile *tile;
    int64_t tiles, parts;
} Choice;

static double time_of(const HnCuda *c, const HnCudaProductArgs *a, const Choice *w)
{
    const Tile *t = w->tile;
    const int64_t blocks = w->tiles * w->parts, rounds = hn_cuda_parts(blocks, t->together * c->multiprocessors);
    const double term = rounds > 1 ? t->many : blocks > c->multiprocessors ? t->shared : t->alone;
    const double meeting = w->parts > 1 ? PART_MEETS * (double)(w->parts * t->columns) / 64 : 0;
    return (double)rounds * (AROUND + term * (double)a->k / (double)w->parts) + meeting;
}

/* The tile, and into how many parts k is cut, with which the last block ends first. */
static Choice choose(const HnCuda *c, const HnCudaProductArgs *a, gboolean half)
{
    Choice best = { NULL, 0, 0 };
    for (int i = 0; i < (half ? (int)G_N_ELEMENTS(half_tiles) : (int)G_N_ELEMENTS(f32_tiles)); i++) {
        Choice w = { half ? &half_tiles[i] : &f32_tiles[i], 0, 0 };
        w.tiles = hn_cuda_parts(a->m, w.tile->rows) * hn_cuda_parts(a->n, w.tile->columns) * a->stacks;
        for (w.parts = 1; w.parts == 1 || (w.parts * PART <= a->k && w.tiles * w.parts <= 2 * c->multiprocessors);
             w.parts++)
            if (best.tile == NULL || time_of(c, a, &w) < time_of(c, a, &best))
                best = w;
    }
    return best;
}

/* b of f32 is split by a kernel of its own where that takes less time than what is saved: its blocks wait for memory
 * only. */
#define SPLIT_ROWS 400
#define SPLIT_ROWS_ALONG 1000 /* where b lies along k, and tiles are split faster */

static gboolean split_before(HnCudaWarpgroup *w, const HnStep *s, GError **error)
{
    const HnCudaProductArgs *a = &w->product;
    const int64_t stacks = a->axes > 0 && a->b_step[0] != 0 ? a->stacks : 1, line = (a->k + 3) / 4 * 4;
    w->split_at = (w->scratch_bytes + 255) / 256 * 256;
    w->scratch_bytes = w->split_at + (gsize)(2 * stacks * a->n * line) * sizeof(float);
    w->split_args = (HnCudaSplitArgs){ .n = a->n,
                                       .k = a->k,
                                       .stacks = stacks,
                                       .row = a->b_row,
                                       .col = a->b_col,
                                       .step = stacks > 1 ? a->b_step[0] : 0,
                                       .line = line };
    w->split_grid = hn_cuda_loop(s, stacks * a->n * line / 4, HN_WARPGROUP_SPLIT_THREADS);
    w->split = hn_cuda_named(s, "cuda_warpgroup_f32", "warpgroup_split_f32", error);
    return w->split != NULL;
}

/* Room where parts of sums of `tiles` tiles meet. */
static gboolean book_parts(HnCudaWarpgroup *w, const HnStep *s, int64_t tiles, GError **error)
{
    const int64_t groups = tiles * (w->rows / HN_WARPGROUP_ROWS);
    w->scratch_bytes = (gsize)(w->product.splits * tiles * w->rows * w->columns) * sizeof(float);
    g_autofree uint32_t *zeros = g_new0(uint32_t, (gsize)groups);
    w->counts = hn_cuda_table_new(s, zeros, (gsize)groups * sizeof *zeros, error);
    return w->counts != 0;
}

/* Lines and stacks of an operand begin at multiples of 16 bytes. */
static gboolean is_even(int64_t line, const int64_t *steps, int axes, int size)
{
    return line * size % 16 == 0 && line * size < (int64_t)1 << 40 && (axes == 0 || steps[0] * size % 16 == 0);
}

static gboolean takes(const HnStep *s, const HnCudaProductArgs *a, int size)
{
    const HnCuda *c = s->device;
    const int64_t line_a = a->a_col == 1 ? a->a_row : a->a_col, line_b = a->b_row == 1 ? a->b_col : a->b_row;
    const gboolean enough = a->m > HN_CUDA_FEW_ROWS && a->n >= LEAST && a->k >= LEAST;
    const gboolean small = MAX(MAX(a->m, a->n), MAX(a->k, a->stacks)) < G_MAXINT32 / 1024 &&
                           hn_cuda_parts(a->m, LEAST) * hn_cuda_parts(a->n, LEAST) * a->stacks < G_MAXINT32 / 1024;
    if (c->capability != CAPABILITY || s->strict_math || !enough || !small || a->axes > 1)
        return FALSE;
    return is_even(line_a, a->a_step, a->axes, size) && is_even(line_b, a->b_step, a->axes, size);
}

gboolean hn_cuda_warpgroup_prepare(HnCudaWarpgroup *w, const HnStep *s, const HnCudaProductArgs *product, HnDtype dtype,
                                   GError **error)
{
    const HnCuda *c = s->device;
    const gboolean half = dtype != HN_F32;
    w->size = (int)hn_dtype_size(dtype);
    if (!takes(s, product, w->size))
        return TRUE;
    HnCudaProductArgs *a = &w->product;
    *a = *product;
    const Choice best = choose(c, a, half);
    const Tile *t = best.tile;
    const gsize rows = (gsize)t->rows, columns = (gsize)t->columns;
    const gsize shared = half ? HN_WARPGROUP_HALF_BYTES(rows, columns, HN_WARPGROUP_HALF_STAGES(rows, columns))
                              : HN_WARPGROUP_F32_BYTES(rows, columns);
    if ((gsize)c->shared_bytes < shared)
        return TRUE;
    a->chunk = hn_cuda_parts(hn_cuda_parts(a->k, best.parts), UNIT) * UNIT;
    a->splits = hn_cuda_parts(a->k, a->chunk);
    w->rows = t->rows;
    w->columns = t->columns;
    w->grid = hn_cuda_row(MIN(best.tiles * a->splits, t->together * c->multiprocessors),
                          (t->rows / HN_WARPGROUP_ROWS + 1) * HN_WARPGROUP_THREADS);
    w->grid.shared = shared;
    if (a->splits > 1 && !book_parts(w, s, best.tiles, error))
        return FALSE;
    const int64_t times = a->axes > 0 && a->b_step[0] == 0 ? a->stacks : 1; /* that each b is read */
    if (!half && a->m * times >= (a->b_row == 1 ? SPLIT_ROWS_ALONG : SPLIT_ROWS) && !split_before(w, s, error))
        return FALSE;
    const char right = w->split != NULL ? 's' : a->b_row == 1 ? 'k' : 'n';
    g_autofree char *name = g_strdup_printf("warpgroup_%dx%d_%c%c%s", t->rows, t->columns, a->a_col == 1 ? 'k' : 'm',
                                            right, half && a->end.n > 0 ? "_end" : "");
    w->f = hn_cuda_typed(s, half ? "cuda_warpgroup_half" : "cuda_warpgroup_f32", name, dtype, error);
    return w->f != NULL && hn_cuda_allow_shared(s, w->f, shared, error);
}

gboolean hn_cuda_warpgroup_fits(const HnCudaWarpgroup *w, const HnCudaProductArgs *product)
{
    return w->f != NULL && product->a % 16 == 0 && product->b % 16 == 0;
}

/* Of an operand: `outer` lines of `inner` elements, boxes of `box` lines. */
static gboolean map(const HnCudaWarpgroup *w, const HnStep *s, HnCuTensorMap *m, uint64_t address, int64_t inner,
                    int64_t outer, int64_t line, int box, int64_t step, int64_t stacks, GError **error)
{
    const HnCuda *c = s->device;
    const int64_t size = w->size;
    const uint64_t dims[] = { (uint64_t)inner, (uint64_t)outer, (uint64_t)stacks };
    const uint64_t strides[] = { (uint64_t)(line * size), (uint64_t)((stacks > 1 ? step : outer * line) * size) };
    const unsigned boxes[] = { 128 / (unsigned)size, (unsigned)box, 1 }, steps[] = { 1, 1, 1 };
    const HnDtype t = s->in[0].slot->tensor->dtype;
    const int type = t == HN_F32 ? HN_CU_MAP_F32 : t == HN_F16 ? HN_CU_MAP_F16 : HN_CU_MAP_BF16;
    return hn_cuda_check(c,
                         c->driver->tensor_map((struct CUtensorMap_st *)m, (unsigned)type, 3,
                                               (void *)(uintptr_t)address, dims, strides, boxes, steps, 0,
                                               HN_CU_MAP_SWIZZLE_128, HN_CU_MAP_PROMOTE_128, 0),
                         "describing an operand", error);
}

/* What follows reads its operands 16 bytes at a time. */
static gboolean end_wide(const HnCudaEnd *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->at[i].of != HN_CUDA_END_NONE && e->at[i].of != HN_CUDA_END_ONE && e->at[i].x % 16 != 0)
            return FALSE;
    return TRUE;
}

gboolean hn_cuda_warpgroup_run(const HnCudaWarpgroup *w, const HnStep *s, const HnCudaProductArgs *product,
                               GError **error)
{
    HnCudaWarpgroupArgs g = { .product = w->product };
    HnCudaProductArgs *a = &g.product;
    const int across = 128 / w->size; /* lines that a box has where they lie across k: as many terms as a stage has */
    const gboolean a_along = a->a_col == 1, b_along = a->b_row == 1;
    a->a = product->a;
    a->b = product->b;
    a->c = product->c;
    a->y = product->y;
    a->parts = product->parts;
    a->counts = w->counts;
    a->end = product->end;
    g.a_stacked = a->axes > 0 && a->a_step[0] != 0;
    g.b_stacked = a->axes > 0 && a->b_step[0] != 0;
    const gboolean each_column = a->c == 0 || (a->c_row == 0 && a->c_col == 1);
    g.y_wide =
        each_column && end_wide(&a->end) && a->y_col == 1 && a->y % 16 == 0 && a->n % 8 == 0 && a->y_row % 8 == 0;
    HnCudaSplitArgs split = w->split_args;
    split.from = a->b;
    split.to = hn_cuda_scratch(s) + w->split_at;
    if (w->split != NULL && !hn_cuda_launch(s, w->split, w->split_grid, &split, error))
        return FALSE;
    const gboolean b_mapped =
        w->split != NULL
            ? map(w, s, &g.b, split.to, a->k, a->n, split.line, w->columns, a->n * split.line, 2 * split.stacks, error)
            : map(w, s, &g.b, a->b, b_along ? a->k : a->n, b_along ? a->n : a->k, b_along ? a->b_col : a->b_row,
                  b_along ? w->columns : across, a->b_step[0], g.b_stacked ? a->stacks : 1, error);
    return b_mapped &&
           map(w, s, &g.a, a->a, a_along ? a->k : a->m, a_along ? a->m : a->k, a_along ? a->a_row : a->a_col,
               a_along ? w->rows : across, a->a_step[0], g.a_stacked ? a->stacks : 1, error) &&
           hn_cuda_launch(s, w->f, w->grid, &g, error);
}

void hn_cuda_warpgroup_clear(const HnStep *s, HnCudaWarpgroup *w)
{
    hn_cuda_table_free(s, w->counts);
}
