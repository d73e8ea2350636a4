#include "cuda/gemm/cuda_lt.h"

#include "cuda/core/nvtx.h"
#include "cuda/elementwise/cuda_end.h"
#include "op/activation.h"
#include "op/ops.h"

#define ALIGNMENT                                                                                       \
    16 /* bytes: on the device all values begin at multiples of it, within others, too (cuda_strided.c) \
        */
/* Workspace at most, as the library's manual recommends for compute capability 9.0 and for the others. */
#define MOST_WORKSPACE_90 ((uint64_t)32 << 20)
#define MOST_WORKSPACE ((uint64_t)4 << 20)

/* What is added, and what the sum goes through: ports of the step, -1: none. */
typedef struct {
    int bias, addend; /* a number for each column of y; one for each element */
    float beta;       /* of the addend */
    uint32_t end;     /* HN_LT_END_* */
} Around;

/* The state of a step. */
typedef struct {
    const HnCublasLt *lt;
    HnLtProduct product;
    HnLtMatrix a, b, y; /* cuBLASLt's, so that a is input 1; y is its C and D */
    HnLtChoice choice;
    float alpha;
    Around around;
} Lt;

/* --- what is computed along --------------------------------------------------------------------------------------- */

static uint32_t function_of(const HnNode *u)
{
    if (u->op == &hn_op_relu)
        return HN_LT_END_RELU;
    return u->op == &hn_op_gelu && ((const HnActivation *)u->params)->tanh ? HN_LT_END_GELU : HN_LT_END_NONE;
}

/* Fused nodes: at most one bias, one residual, and one function in the end. */
static gboolean read_fused(const HnStep *s, Around *r)
{
    const HnTensor *y = hn_cuda_out(s, 0);
    for (int k = 0; k < s->n_fused; k++) {
        int port = -1;
        const int32_t of = hn_cuda_end_adds(s, k, y->ndim - 1, &port);
        const uint32_t end = function_of(s->fused[k]);
        if (r->end != HN_LT_END_NONE)
            return FALSE;
        if (of == HN_CUDA_END_CHANNEL && r->bias < 0) {
            r->bias = port;
        } else if (of == HN_CUDA_END_ELEMENT && r->addend < 0) {
            r->addend = port;
            r->beta = 1;
        } else if (end != HN_LT_END_NONE) {
            r->end = end;
        } else {
            return FALSE;
        }
    }
    return TRUE;
}

gboolean hn_cuda_lt_fuses(const HnStep *s)
{
    Around r = { -1, -1, 0, HN_LT_END_NONE };
    const HnTensor *y = hn_cuda_out(s, 0), *b = hn_cuda_in(s, 1);
    /* of a matrix times a vector the last axis are rows */
    return y != NULL && y->ndim > 0 && b != NULL && b->ndim > 1 && read_fused(s, &r);
}

/* The node's own addend takes the place of a fused one. A bias has no factor. */
static gboolean read_around(const HnStep *s, const HnCudaProductArgs *a, Around *r)
{
    *r = (Around){ -1, -1, 0, HN_LT_END_NONE };
    if (!read_fused(s, r))
        return FALSE;
    if (hn_cuda_in(s, 2) == NULL || a->beta == 0)
        return TRUE;
    const gboolean row = a->c_row == 0 && a->c_col == 1;
    if (row && a->beta == 1 && r->bias < 0) {
        r->bias = 2;
        return TRUE;
    }
    if (r->addend >= 0 || a->c_col != 1 || (a->c_row != a->n && !(row && a->m == 1)))
        return FALSE;
    r->addend = 2;
    r->beta = a->beta;
    return TRUE;
}

/* --- descriptions ------------------------------------------------------------------------------------------------- */

/* Elements at row * i + col * j, i < rows, j < columns, as columns that lie one behind the other: of the transpose, or
 * turned once more. Each repeated `step` elements on. */
static gboolean describe(const HnCublasLt *lt, HnLtMatrix *m, int32_t *turned, int type, int64_t rows, int64_t columns,
                         int64_t row, int64_t col, int64_t stacks, int64_t step)
{
    const gboolean by_rows = col == 1 && row >= columns;
    const int32_t batch = (int32_t)stacks;
    *turned = by_rows ? HN_LT_NO_TRANSPOSE : HN_LT_TRANSPOSE;
    const int made = by_rows ? lt->matrix_new(m, type, (uint64_t)columns, (uint64_t)rows, row)
                             : lt->matrix_new(m, type, (uint64_t)rows, (uint64_t)columns, col);
    return made == HN_LT_SUCCESS &&
           (stacks == 1 || (lt->matrix_set(*m, HN_LT_BATCH, &batch, sizeof batch) == HN_LT_SUCCESS &&
                            lt->matrix_set(*m, HN_LT_BATCH_STEP, &step, sizeof step) == HN_LT_SUCCESS));
}

/* The first algorithm; FALSE: there is none. */
static gboolean choose(Lt *p, const HnCuda *c)
{
    const HnCublasLt *lt = p->lt;
    const uint64_t most = c->capability >= 90 ? MOST_WORKSPACE_90 : MOST_WORKSPACE;
    const uint32_t reductions = HN_LT_REDUCE_F32, alignment = ALIGNMENT;
    const void *bias = (const void *)(uintptr_t)ALIGNMENT; /* nothing else of it is looked at */
    HnLtWish wish;
    int n = 0;
    if (lt->wish_new(&wish) != HN_LT_SUCCESS)
        return FALSE;
    gboolean ok = lt->wish_set(wish, HN_LT_WORKSPACE, &most, sizeof most) == HN_LT_SUCCESS &&
                  lt->wish_set(wish, HN_LT_REDUCTIONS, &reductions, sizeof reductions) == HN_LT_SUCCESS;
    for (int i = HN_LT_ALIGNMENT_A; i <= HN_LT_ALIGNMENT_D; i++)
        ok = ok && lt->wish_set(wish, i, &alignment, sizeof alignment) == HN_LT_SUCCESS;
    if (p->around.bias >= 0)
        ok = ok && lt->product_set(p->product, HN_LT_BIAS, &bias, sizeof bias) == HN_LT_SUCCESS;
    ok = ok && lt->choose(c->lt, p->product, p->a, p->b, p->y, p->y, wish, 1, &p->choice, &n) == HN_LT_SUCCESS &&
         n == 1 && p->choice.state == HN_LT_SUCCESS;
    lt->wish_free(wish);
    return ok;
}

static gboolean fill(Lt *p, const HnStep *s, const HnCudaProductArgs *a)
{
    const HnCublasLt *lt = p->lt;
    const int type = hn_cuda_in(s, 0)->dtype == HN_F16 ? HN_LT_F16 : HN_LT_BF16;
    const int64_t a_step = a->axes > 0 ? a->a_step[0] : 0, b_step = a->axes > 0 ? a->b_step[0] : 0;
    const uint32_t end = p->around.bias < 0                ? p->around.end
                         : p->around.end == HN_LT_END_NONE ? HN_LT_END_BIAS
                                                           : p->around.end | HN_LT_END_BIAS;
    int32_t turned_a = 0, turned_b = 0, turned_y = 0;
    if (lt->product_new(&p->product, HN_LT_SUMS_F32, HN_LT_F32) != HN_LT_SUCCESS)
        return FALSE;
    if (!describe(lt, &p->a, &turned_a, type, a->k, a->n, a->b_row, a->b_col, a->stacks, b_step) ||
        !describe(lt, &p->b, &turned_b, type, a->m, a->k, a->a_row, a->a_col, a->stacks, a_step) ||
        !describe(lt, &p->y, &turned_y, type, a->m, a->n, a->n, 1, a->stacks, a->m * a->n))
        return FALSE;
    return lt->product_set(p->product, HN_LT_TRANSPOSE_A, &turned_a, sizeof turned_a) == HN_LT_SUCCESS &&
           lt->product_set(p->product, HN_LT_TRANSPOSE_B, &turned_b, sizeof turned_b) == HN_LT_SUCCESS &&
           lt->product_set(p->product, HN_LT_EPILOGUE, &end, sizeof end) == HN_LT_SUCCESS && choose(p, s->device);
}

static void clear(Lt *p)
{
    if (p->y != NULL)
        p->lt->matrix_free(p->y);
    if (p->b != NULL)
        p->lt->matrix_free(p->b);
    if (p->a != NULL)
        p->lt->matrix_free(p->a);
    if (p->product != NULL)
        p->lt->product_free(p->product);
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

static gboolean is_small(const HnCudaProductArgs *a)
{
    return MAX(MAX(a->m, a->n), MAX(a->k, a->stacks)) <= G_MAXINT32;
}

const char *hn_cuda_lt_reject(const HnStep *s, const HnCudaProductArgs *a)
{
    HnCuda *c = s->device;
    const char *why = NULL;
    Lt p = { 0 };
    if (!c->asks_lt)
        return "HONE_CUDA_LIBRARIES does not ask for cuBLASLt";
    if (!hn_dtype_is_half(hn_cuda_in(s, 0)->dtype))
        return "only f16, bf16: it would round f32 to TF32, or be slower";
    if (s->strict_math)
        return "not with --strict-math";
    if (a->axes > 1 || !is_small(a))
        return "stacks along more than one axis, or too large";
    if (!read_around(s, a, &p.around))
        return "cuBLASLt adds no such addends";
    if ((p.lt = hn_cuda_lt(c, &why)) == NULL)
        return why;
    const gboolean found = hn_cuda_enter(c, NULL) && fill(&p, s, a);
    clear(&p);
    return found ? NULL : "cuBLASLt has no algorithm for it";
}

gboolean hn_cuda_lt_prepare(HnStep *s, const HnCudaProductArgs *a, GError **error)
{
    const char *why = NULL;
    Lt *p = g_new0(Lt, 1);
    s->state = p;
    p->alpha = a->alpha;
    p->lt = hn_cuda_lt(s->device, &why);
    if (!hn_cuda_enter(s->device, error))
        return FALSE;
    if (p->lt == NULL || !read_around(s, a, &p->around) || !fill(p, s, a)) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "cuBLASLt does not describe a product that it took before");
        return FALSE;
    }
    if (p->choice.workspace > 0)
        s->scratch_bytes = p->choice.workspace + HN_LT_WORKSPACE_ALIGNMENT;
    return TRUE;
}

static int multiply(const Lt *p, const HnStep *s)
{
    const HnCuda *c = s->device;
    const HnCudaStream *t = s->stream;
    const uint64_t mask = HN_LT_WORKSPACE_ALIGNMENT - 1, a = hn_cuda_in_address(s, 1), b = hn_cuda_in_address(s, 0),
                   y = hn_cuda_out_address(s, 0), workspace = (hn_cuda_scratch(s) + mask) & ~mask,
                   addend = p->around.addend >= 0 ? hn_cuda_in_address(s, p->around.addend) : y,
                   bias = p->around.bias >= 0 ? hn_cuda_in_address(s, p->around.bias) : 0;
    const int status = bias != 0 ? p->lt->product_set(p->product, HN_LT_BIAS, &bias, sizeof bias) : HN_LT_SUCCESS;
    if (status != HN_LT_SUCCESS)
        return status;
    return p->lt->multiply(c->lt, p->product, &p->alpha, (const void *)(uintptr_t)a, p->a, (const void *)(uintptr_t)b,
                           p->b, &p->around.beta, (const void *)(uintptr_t)addend, p->y, (void *)(uintptr_t)y, p->y,
                           &p->choice.algorithm, (void *)(uintptr_t)workspace, p->choice.workspace, t->stream);
}

gboolean hn_cuda_lt_run(HnStep *s, GError **error)
{
    const HnCuda *c = s->device;
    HnCudaStream *t = s->stream;
    const HnNvtx *watched = hn_nvtx();
    if (!hn_cuda_enter(c, error))
        return FALSE;
    t->launches++; /* or two, where parts of k are added up: nobody can tell */
    t->work++;     /* records show it then, and are not used */
    if (watched != NULL)
        watched->push(hn_node_label(s->origin));
    const int status = multiply(s->state, s);
    if (watched != NULL)
        watched->pop();
    if (status == HN_LT_SUCCESS)
        return TRUE;
    g_set_error(error, HN_ERROR, status == HN_LT_EXECUTION_FAILED ? HN_ERROR_VALUE : HN_ERROR_UNSUPPORTED,
                "device 'cuda:%d': cuBLASLt does not compute a product: status %d", c->index, status);
    return FALSE;
}

void hn_cuda_lt_release(HnStep *s)
{
    if (s->state != NULL && hn_cuda_enter(s->device, NULL))
        clear(s->state);
    hn_cuda_release(s);
}
