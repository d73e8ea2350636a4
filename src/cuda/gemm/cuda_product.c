#include "cuda/gemm/cuda_product.h"

#include "cuda/elementwise/cuda_end.h"

#define LEAST_DEPTH 32 /* below it a tile on tensor cores is mostly zeros */
#define PART 256       /* of k, that is worth a block of its own */
#define UNIT 64

/* Lines of the operand begin at multiples of 16 bytes, from an address that does. */
static gboolean is_wide(const int64_t *steps, int n, int64_t line, HnDtype dtype)
{
    const int64_t elements = 16 / (int64_t)hn_dtype_size(dtype);
    for (int i = 0; i < n; i++)
        if (steps[i] % elements != 0)
            return FALSE;
    return line % elements == 0;
}

/* y' = b'a': few columns become few rows. */
static void swap_operands(HnCudaProduct *p)
{
    const HnCudaProductArgs a = p->args;
    HnCudaProductArgs *t = &p->args;
    p->swapped = TRUE;
    t->end_rows = TRUE;
    t->m = a.n;
    t->n = a.m;
    t->a_row = a.b_col;
    t->a_col = a.b_row;
    t->b_row = a.a_col;
    t->b_col = a.a_row;
    t->c_row = a.c_col;
    t->c_col = a.c_row;
    t->y_row = a.y_col;
    t->y_col = a.y_row;
    for (int i = 0; i < a.axes; i++) {
        t->a_step[i] = a.b_step[i];
        t->b_step[i] = a.a_step[i];
    }
}

static void cut(HnCudaProductArgs *a, const HnStep *s, int64_t tiles, int each) /* blocks of a multiprocessor */
{
    const int64_t wanted = each * (int64_t)((const HnCuda *)s->device)->multiprocessors;
    const int64_t most = a->k / PART, n = tiles * 2 > wanted ? 1 : CLAMP(wanted / tiles, 1, MAX(most, 1));
    a->chunk = MAX(hn_cuda_parts(hn_cuda_parts(a->k, n), UNIT), 1) * UNIT;
    a->splits = MAX(hn_cuda_parts(a->k, a->chunk), 1);
}

void hn_cuda_product_cut(HnCudaProductArgs *a, const HnStep *s, int64_t tiles)
{
    cut(a, s, tiles, 2);
}

gboolean hn_cuda_product_cut_rows(HnCudaProductArgs *a, HnStep *s, int64_t tiles, int each, int64_t most,
                                  uint64_t *counts, GError **error)
{
    cut(a, s, tiles, each);
    a->chunk = MIN(a->chunk, most);
    a->splits = MAX(hn_cuda_parts(a->k, a->chunk), 1);
    if (a->splits == 1)
        return TRUE;
    s->scratch_bytes = (gsize)(a->splits * a->stacks * a->m * a->n) * sizeof(float);
    g_autofree uint32_t *zeros = g_new0(uint32_t, (gsize)tiles);
    *counts = hn_cuda_table_new(s, zeros, (gsize)tiles * sizeof *zeros, error);
    return *counts != 0;
}

static gboolean few_rows(HnCudaProduct *p, HnStep *s, HnDtype dtype, GError **error)
{
    HnCudaProductArgs *a = &p->args;
    const gboolean along = a->b_row == 1;
    const int64_t elements = 16 / (int64_t)hn_dtype_size(dtype), rows = a->m == 1 ? 1 : HN_CUDA_FEW_ROWS;
    const int64_t width = along ? HN_CUDA_FEW_THREADS / HN_CUDA_WARP * HN_CUDA_FEW_COLUMNS : 8 * elements;
    if ((along ? a->k : a->n) % elements != 0)
        a->b_wide = FALSE;
    const int64_t tiles = hn_cuda_parts(a->m, rows) * hn_cuda_parts(a->n, width) * a->stacks;
    g_autofree char *name = g_strdup_printf("product_rows_%c_%d", along ? 'k' : 'n', (int)rows);
    if (!hn_cuda_product_cut_rows(a, s, tiles, 2, G_MAXINT64, &p->counts, error))
        return FALSE;
    p->grid = hn_cuda_row(tiles * a->splits, HN_CUDA_FEW_THREADS);
    p->f = hn_cuda_typed(s, "cuda_product_rows", name, dtype, error);
    return p->f != NULL;
}

static gboolean plain_tiles(HnCudaProduct *p, const HnStep *s, HnDtype dtype, GError **error)
{
    HnCudaProductArgs *a = &p->args;
    const int64_t tiles = hn_cuda_parts(a->m, HN_CUDA_PLAIN_TILE) * hn_cuda_parts(a->n, HN_CUDA_PLAIN_TILE) * a->stacks;
    hn_cuda_product_cut(a, s, tiles);
    p->grid = hn_cuda_row(tiles * a->splits, HN_CUDA_PLAIN_THREADS);
    p->f = hn_cuda_typed(s, "cuda_product_plain", "product_plain", dtype, error);
    return p->f != NULL;
}

gboolean hn_cuda_product_tiles(HnCudaProductArgs *a, const HnStep *s, gboolean half, HnCudaGrid *grid)
{
    const int64_t large = HN_CUDA_TILE_LARGE, small = HN_CUDA_TILE_SMALL;
    int64_t rows = large, columns = half ? large : small;
    int64_t tiles = hn_cuda_parts(a->m, rows) * hn_cuda_parts(a->n, columns) * a->stacks;
    const gboolean is_large = tiles >= ((const HnCuda *)s->device)->multiprocessors;
    if (!is_large) {
        rows = columns = small;
        tiles = hn_cuda_parts(a->m, rows) * hn_cuda_parts(a->n, columns) * a->stacks;
    }
    hn_cuda_product_cut(a, s, tiles);
    *grid = hn_cuda_row(tiles * a->splits, is_large ? 256 : 128);
    grid->shared = HN_CUDA_TILE_BYTES((gsize)rows, (gsize)columns);
    return is_large;
}

static gboolean tensor_tiles(HnCudaProduct *p, const HnStep *s, HnDtype dtype, GError **error)
{
    HnCudaProductArgs *a = &p->args;
    const gboolean half = dtype != HN_F32, large = hn_cuda_product_tiles(a, s, half, &p->grid);
    g_autofree char *name = g_strdup_printf("product_%s_%c%c", large ? "large" : "small", a->a_col == 1 ? 'k' : 'm',
                                            a->b_row == 1 ? 'k' : 'n');
    p->f = hn_cuda_typed(s, half ? "cuda_product_half" : "cuda_product_f32", name, dtype, error);
    return p->f != NULL && hn_cuda_allow_shared(s, p->f, p->grid.shared, error);
}

gboolean hn_cuda_product_prepare(HnCudaProduct *p, HnStep *s, HnDtype dtype, GError **error)
{
    HnCudaProductArgs *a = &p->args;
    a->y_row = a->n;
    a->y_col = 1;
    if (s->n_fused > 0)
        hn_cuda_end_init(s, &a->end, hn_cuda_out(s, 0)->ndim - 1);
    if (a->m > HN_CUDA_FEW_ROWS && a->n <= HN_CUDA_FEW_ROWS)
        swap_operands(p);
    a->a_wide = is_wide(a->a_step, a->axes, a->a_col == 1 ? a->a_row : a->a_col, dtype);
    a->b_wide = is_wide(a->b_step, a->axes, a->b_row == 1 ? a->b_col : a->b_row, dtype);
    if (a->m <= HN_CUDA_FEW_ROWS)
        return few_rows(p, s, dtype, error);
    gboolean ok;
    if (s->strict_math || a->k < LEAST_DEPTH)
        ok = plain_tiles(p, s, dtype, error);
    else
        ok = tensor_tiles(p, s, dtype, error);
    if (!ok || !hn_cuda_warpgroup_prepare(&p->wide, s, a, dtype, error))
        return FALSE;
    if (a->splits > 1)
        s->scratch_bytes = (gsize)(a->splits * a->stacks * a->m * a->n) * sizeof(float);
    s->scratch_bytes = MAX(s->scratch_bytes, p->wide.scratch_bytes);
    if (a->splits == 1)
        return TRUE;
    p->parts_grid = hn_cuda_loop(s, a->stacks * a->m * a->n, HN_CUDA_ROWS_THREADS);
    p->parts = hn_cuda_typed(s, "cuda_product_plain", "product_parts", dtype, error);
    return p->parts != NULL;
}

gboolean hn_cuda_product_fuses(const HnStep *s)
{
    const HnTensor *y = hn_cuda_out(s, 0), *b = hn_cuda_in(s, 1);
    /* of a matrix times a vector the last axis are rows */
    return y != NULL && y->ndim > 0 && b != NULL && b->ndim > 1 && hn_cuda_end_fits_axis(s, y->ndim - 1) &&
           hn_cuda_end_is_short(s);
}

gboolean hn_cuda_product_run(const HnCudaProduct *p, const HnStep *s, uint64_t c, GError **error)
{
    HnCudaProductArgs a = p->args;
    a.a = hn_cuda_in_address(s, p->swapped ? 1 : 0);
    a.b = hn_cuda_in_address(s, p->swapped ? 0 : 1);
    a.c = c;
    a.a_wide = a.a_wide && a.a % 16 == 0;
    a.b_wide = a.b_wide && a.b % 16 == 0;
    a.y = hn_cuda_out_address(s, 0);
    a.counts = p->counts;
    hn_cuda_end_place(s, &a.end);
    const gboolean wide = hn_cuda_warpgroup_fits(&p->wide, &a);
    if (wide) {
        a.splits = p->wide.product.splits;
        a.chunk = p->wide.product.chunk;
    }
    a.parts = a.splits > 1 ? hn_cuda_scratch(s) : 0;
    if (wide)
        return hn_cuda_warpgroup_run(&p->wide, s, &a, error);
    return hn_cuda_launch(s, p->f, p->grid, &a, error) &&
           (a.parts == 0 || p->parts == NULL || hn_cuda_launch(s, p->parts, p->parts_grid, &a, error));
}

void hn_cuda_product_release(HnStep *s)
{
    HnCudaProduct *p = s->state;
    if (p != NULL) {
        hn_cuda_table_free(s, p->counts);
        hn_cuda_warpgroup_clear(s, &p->wide);
    }
    hn_cuda_release(s);
}
