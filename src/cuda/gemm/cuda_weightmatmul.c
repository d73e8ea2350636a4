/*
 * WeightMatMul: weights of 4 and 8 bits, which stay so in the device's memory, as the file has them. Few rows of x read
 * them once; many unpack tiles of them for tensor cores. And WeightGather: rows of a table of such weights.
 */
#include "op/weightmatmul.h"

#include "cuda/gemm/cuda_product.h"
#include "cuda/gemm/cuda_weights_args.h"

typedef struct {
    HnCuFunction f, parts; /* parts: NULL where there is one only */
    HnCudaGrid grid, parts_grid;
    HnCudaWeightMatMulArgs args;
    uint64_t counts; /* of few rows; zeros between runs */
} Product;

static int bits_of(HnDtype d)
{
    return d == HN_I4 || d == HN_U4 ? 4 : 8;
}

static const char *weight_reject(const HnStep *s)
{
    const HnWeights *p = s->params;
    const HnTensor *w = hn_cuda_in(s, HN_WEIGHT_W), *scale = hn_cuda_in(s, HN_WEIGHT_SCALE);
    const HnTensor *zero = hn_cuda_in(s, HN_WEIGHT_ZERO), *bias = hn_cuda_in(s, HN_WEIGHT_BIAS);
    if (hn_cuda_out(s, 0)->n == 0 || w->n == 0)
        return "nothing to compute";
    if (!hn_weights_fit(p, w, scale, zero, bias))
        return "the shapes do not fit";
    return NULL;
}

static void weights_of(const HnWeights *p, const HnTensor *w, const HnTensor *scale, HnCudaWeights *q)
{
    HnScaleGrid g;
    (void)hn_scale_grid(p, w, scale, &g);
    q->row_block = g.row_block;
    q->row_step = g.row_step;
    q->col_block = g.col_block;
    q->col_step = g.col_step;
    q->bits = bits_of(w->dtype);
    q->flip = w->dtype == HN_I8 ? 0x80 : w->dtype == HN_I4 ? 8 : 0;
}

static void measure(const HnStep *s, HnCudaWeightMatMulArgs *a)
{
    const HnWeights *p = s->params;
    const HnTensor *w = hn_cuda_in(s, HN_WEIGHT_W);
    HnCudaProductArgs *m = &a->product;
    weights_of(p, w, hn_cuda_in(s, HN_WEIGHT_SCALE), &a->weights);
    a->turned = p->turned;
    m->k = w->dims[p->turned ? 1 : 0];
    m->n = w->dims[p->turned ? 0 : 1];
    m->m = hn_cuda_out(s, 0)->n / m->n;
    m->a_row = m->k;
    m->a_col = m->c_col = m->y_col = m->stacks = 1;
    m->y_row = m->n;
    m->alpha = m->beta = 1;
    m->a_wide = m->k % 4 == 0;
}

/* Eight weights side by side can be read at once: along k they share a scale. */
static gboolean by_eight(const HnStep *s, const HnCudaWeightMatMulArgs *a)
{
    const HnCudaWeights *w = &a->weights;
    if (!s->in[HN_WEIGHT_W].slot->constant || a->product.k % 8 != 0)
        return FALSE;
    if (a->turned)
        return w->col_step == 0 || w->col_block % 8 == 0;
    if (a->product.n % 8 != 0 || (w->row_step != 0 && w->row_block % 16 != 0))
        return FALSE;
    return w->col_step == 0 || w->col_block == 1;
}

/* One row, and weights that tensor cores unpack faster. */
static gboolean by_nibbles(const HnStep *s, const HnCudaWeightMatMulArgs *a)
{
    const HnCudaProductArgs *m = &a->product;
    if (a->weights.bits != 4 || a->turned || s->strict_math)
        return FALSE;
    if (m->n % 16 != 0 || m->k % 16 != 0 || MAX(m->n, m->k) >= G_MAXINT32 / 2)
        return FALSE;
    return m->m == 1;
}

/* As fast as the weights can be read. */
static gboolean few_rows(HnStep *s, Product *p, GError **error)
{
    HnCudaProductArgs *m = &p->args.product;
    const int64_t rows = m->m == 1 ? 1 : HN_CUDA_FEW_ROWS, warps = HN_CUDA_FEW_THREADS / HN_CUDA_WARP;
    const int64_t width = p->args.turned ? warps * HN_CUDA_WEIGHT_COLUMNS : HN_CUDA_WEIGHT_WIDTH;
    const int64_t tiles = hn_cuda_parts(m->m, rows) * hn_cuda_parts(m->n, width);
    const gboolean nibbles = by_nibbles(s, &p->args);
    g_autofree char *name =
        nibbles ? g_strdup(hn_cuda_in(s, HN_WEIGHT_ZERO) != NULL ? "weight_nibbles_zeros" : "weight_nibbles")
                : g_strdup_printf("weight_rows_%c_%d_%d", p->args.turned ? 'k' : 'n', p->args.weights.bits, (int)rows);
    if (!hn_cuda_product_cut_rows(m, s, tiles, rows == 1 && !nibbles ? 3 : 2,
                                  nibbles ? HN_CUDA_WEIGHT_TERMS : G_MAXINT64, &p->counts, error))
        return FALSE;
    p->grid = hn_cuda_row(tiles * m->splits, HN_CUDA_FEW_THREADS);
    p->f = hn_cuda_named(s, nibbles ? "cuda_weight_nibbles" : "cuda_weight_rows", name, error);
    return p->f != NULL;
}

static const char *name_of(const HnStep *s, Product *p)
{
    HnCudaProductArgs *m = &p->args.product;
    const gboolean turned = p->args.turned;
    if (m->m > HN_CUDA_FEW_ROWS && !s->strict_math) {
        const gboolean large = hn_cuda_product_tiles(m, s, FALSE, &p->grid);
        return large ? (turned ? "weight_large_kk" : "weight_large_kn")
                     : (turned ? "weight_small_kk" : "weight_small_kn");
    }
    const int64_t width = turned ? HN_CUDA_ROWS_THREADS / HN_CUDA_WARP : HN_CUDA_WARP;
    const int64_t tiles = hn_cuda_parts(m->m, HN_CUDA_FEW_ROWS) * hn_cuda_parts(m->n, width);
    hn_cuda_product_cut(m, s, tiles);
    p->grid = hn_cuda_row(tiles * m->splits, HN_CUDA_ROWS_THREADS);
    return turned ? "weight_any_k" : "weight_any_n";
}

static gboolean weight_prepare(HnStep *s, GError **error)
{
    Product *p = g_new0(Product, 1);
    s->state = p;
    measure(s, &p->args);
    if (by_eight(s, &p->args) && (p->args.product.m <= HN_CUDA_FEW_ROWS || s->strict_math))
        return few_rows(s, p, error);
    p->f = hn_cuda_named(s, "cuda_weightmatmul", name_of(s, p), error);
    if (p->f == NULL || (p->grid.shared > 0 && !hn_cuda_allow_shared(s, p->f, p->grid.shared, error)))
        return FALSE;
    const HnCudaProductArgs *m = &p->args.product;
    if (m->splits == 1)
        return TRUE;
    s->scratch_bytes = (gsize)(m->splits * m->m * m->n) * sizeof(float);
    p->parts_grid = hn_cuda_loop(s, m->m * m->n, HN_CUDA_ROWS_THREADS);
    p->parts = hn_cuda_named(s, "cuda_weightmatmul", "weight_parts", error);
    return p->parts != NULL;
}

static gboolean weight_run(HnStep *s, GError **error)
{
    const Product *p = s->state;
    HnCudaWeightMatMulArgs a = p->args;
    a.product.a = hn_cuda_in_address(s, HN_WEIGHT_X);
    a.product.c = hn_cuda_in_address(s, HN_WEIGHT_BIAS);
    a.product.y = hn_cuda_out_address(s, 0);
    a.product.parts = a.product.splits > 1 ? hn_cuda_scratch(s) : 0;
    a.product.counts = p->counts;
    a.product.a_wide = a.product.a_wide && a.product.a % 16 == 0;
    a.weights.w = hn_cuda_in_address(s, HN_WEIGHT_W);
    a.weights.scale = hn_cuda_in_address(s, HN_WEIGHT_SCALE);
    a.weights.zero = hn_cuda_in_address(s, HN_WEIGHT_ZERO);
    return hn_cuda_launch(s, p->f, p->grid, &a, error) &&
           (p->parts == NULL || hn_cuda_launch(s, p->parts, p->parts_grid, &a, error));
}

static void weight_release(HnStep *s)
{
    Product *p = s->state;
    if (p != NULL)
        hn_cuda_table_free(s, p->counts);
    hn_cuda_release(s);
}

static const HnKernel weightmatmul = {
    .name = "cuda.weightmatmul",
    .reject = weight_reject,
    .prepare = weight_prepare,
    .run = weight_run,
    .release = weight_release,
};

const HnKernel *const hn_cuda_weightmatmul[] = { &weightmatmul, NULL };

/* --- rows of a table --------------------------------------------------------------------------------------------- */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaWeightGatherArgs args;
} Rows;

static const char *rows_reject(const HnStep *s)
{
    const HnTensor *w = hn_cuda_in(s, HN_ROWS_W), *scale = hn_cuda_in(s, HN_ROWS_SCALE);
    const HnTensor *zero = hn_cuda_in(s, HN_ROWS_ZERO);
    if (!hn_weights_fit(s->params, w, scale, zero, NULL))
        return "the shapes do not fit";
    return hn_cuda_out(s, 0)->n == 0 ? "nothing to compute" : NULL;
}

static void say(const HnStep *s, int64_t at, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "index number %" PRId64 " of input %d is outside an axis of %" PRId64,
                at, HN_ROWS_AT, hn_cuda_in(s, HN_ROWS_W)->dims[0]);
}

static gboolean rows_prepare(HnStep *s, GError **error)
{
    Rows *r = g_new0(Rows, 1);
    const HnTensor *w = hn_cuda_in(s, HN_ROWS_W);
    s->state = r;
    weights_of(s->params, w, hn_cuda_in(s, HN_ROWS_SCALE), &r->args.weights);
    r->args.rows = hn_cuda_in(s, HN_ROWS_AT)->n;
    r->args.vocabulary = w->dims[0];
    r->args.n = w->dims[1];
    r->args.wide = hn_cuda_in(s, HN_ROWS_AT)->dtype == HN_I64;
    r->grid = hn_cuda_loop(s, r->args.rows * r->args.n, HN_CUDA_ROWS_THREADS);
    r->f = hn_cuda_named(s, "cuda_weightmatmul", "weight_gather", error);
    return r->f != NULL && hn_cuda_complains(s, say, &r->args.complaint, error);
}

static gboolean rows_run(HnStep *s, GError **error)
{
    const Rows *r = s->state;
    HnCudaWeightGatherArgs a = r->args;
    a.weights.w = hn_cuda_in_address(s, HN_ROWS_W);
    a.weights.scale = hn_cuda_in_address(s, HN_ROWS_SCALE);
    a.weights.zero = hn_cuda_in_address(s, HN_ROWS_ZERO);
    a.at = hn_cuda_in_address(s, HN_ROWS_AT);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, r->f, r->grid, &a, error);
}

static void rows_release(HnStep *s)
{
    hn_cuda_complains_no_more(s);
    hn_cuda_release(s);
}

static const HnKernel weightgather = {
    .name = "cuda.weightgather",
    .reject = rows_reject,
    .prepare = rows_prepare,
    .run = rows_run,
    .release = rows_release,
};

const HnKernel *const hn_cuda_weightgather[] = { &weightgather, NULL };
