/*
 * Arithmetic, comparison and bits of integers and f64 that broadcast, and what is left over from a division of floats;
 * of more than two operands by pairs, from the second pair on with the result so far.
 */
#include "cuda/elementwise/cuda_elements.h"
#include "cuda/elementwise/cuda_pair_args.h"
#include "cuda/elementwise/cuda_sum.h"
#include "cuda/elementwise/cuda_walk.h"
#include "op/elementwise.h"
#include "op/index.h"
#include "op/ops.h"
#include "op/types.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    int n;
    HnCudaPairArgs pass[];
} Pairs;

#define NUMBERS (HN_T_INTS | HN_BIT(HN_F64))

static const struct {
    const HnOp *op;
    int f;
    HnTypeMask types;
} functions[] = {
    { &hn_op_add, HN_CUDA_ADD, NUMBERS },
    { &hn_op_sum, HN_CUDA_ADD, NUMBERS },
    { &hn_op_sub, HN_CUDA_SUB, NUMBERS },
    { &hn_op_mul, HN_CUDA_MUL, NUMBERS },
    { &hn_op_div, HN_CUDA_DIV, NUMBERS },
    { &hn_op_max, HN_CUDA_MAX, NUMBERS },
    { &hn_op_min, HN_CUDA_MIN, NUMBERS },
    { &hn_op_equal, HN_CUDA_EQUAL, NUMBERS },
    { &hn_op_greater, HN_CUDA_GREATER, NUMBERS },
    { &hn_op_greaterorequal, HN_CUDA_GREATEROREQUAL, NUMBERS },
    { &hn_op_less, HN_CUDA_LESS, NUMBERS },
    { &hn_op_lessorequal, HN_CUDA_LESSOREQUAL, NUMBERS },
    { &hn_op_bitwiseand, HN_CUDA_BITS_AND, HN_T_INTS },
    { &hn_op_bitwiseor, HN_CUDA_BITS_OR, HN_T_INTS },
    { &hn_op_bitwisexor, HN_CUDA_BITS_XOR, HN_T_INTS },
};

/* Mod is two operators, by its attribute. -1: not of this type. */
static int function_of(const HnStep *s, HnDtype d)
{
    if (s->op == &hn_op_mod && ((const HnBinary *)s->params)->mode == 1)
        return hn_dtype_in(d, HN_T_INTS | HN_T_FLOATS) ? HN_CUDA_REM : -1;
    if (s->op == &hn_op_mod)
        return hn_dtype_in(d, HN_T_INTS) ? HN_CUDA_MOD : -1;
    for (guint i = 0; i < G_N_ELEMENTS(functions); i++)
        if (functions[i].op == s->op)
            return hn_dtype_in(d, functions[i].types) ? functions[i].f : -1;
    return -1;
}

static const char *pairs_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0), *z = hn_cuda_out(s, 0);
    if (function_of(s, x->dtype) < 0)
        return "a type without a kernel";
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *y = hn_cuda_in(s, i);
        if (y->dtype != x->dtype)
            return "inputs of different types";
        if (!hn_broadcasts_to(y, z))
            return "an input that does not broadcast as numpy's";
        if (i > 1 && s->in[i].slot == s->in[0].slot) /* the first pass may be in its place */
            return "one tensor as first and later input";
    }
    const gboolean old = s->node->version < 7 && s->op->in[1] != '*';
    return old && hn_cuda_in(s, 1)->n != 1 && !hn_tensor_same_dims(hn_cuda_in(s, 1), z) ? "axes as in old opsets"
                                                                                        : NULL;
}

static gboolean pairs_prepare(HnStep *s, GError **error)
{
    const HnTensor *z = hn_cuda_out(s, 0);
    const int n = MAX(s->n_in - 1, 1);
    Pairs *p = g_malloc0(sizeof *p + (gsize)n * sizeof p->pass[0]);
    s->state = p;
    p->n = n;
    for (int i = 0; i < n; i++) {
        const HnTensor *const x[] = { i == 0 ? hn_cuda_in(s, 0) : z, hn_cuda_in(s, MIN(i + 1, s->n_in - 1)) };
        hn_cuda_walk(&p->pass[i].walk, p->pass[i].seen, z, x, 2);
        p->pass[i].f = function_of(s, x[1]->dtype);
    }
    p->grid = hn_cuda_quads(s, z->n, THREADS);
    p->f = hn_cuda_typed(s, "cuda_pair", "pair", hn_cuda_in(s, 0)->dtype, error);
    return p->f != NULL;
}

static gboolean pairs_run(HnStep *s, GError **error)
{
    const Pairs *p = s->state;
    for (int i = 0; i < p->n; i++) {
        HnCudaPairArgs a = p->pass[i];
        a.z = hn_cuda_out_address(s, 0);
        a.x = i == 0 ? hn_cuda_in_address(s, 0) : a.z;
        a.y = hn_cuda_in_address(s, MIN(i + 1, s->n_in - 1));
        if (a.walk.shape.total > 0 && !hn_cuda_launch(s, p->f, p->grid, &a, error))
            return FALSE;
    }
    return TRUE;
}

static const HnKernel pairs = {
    .name = "cuda.pair",
    .reject = pairs_reject,
    .prepare = pairs_prepare,
    .run = pairs_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

#define KERNELS(symbol) const HnKernel *const hn_cuda_##symbol[] = { &hn_cuda_elements, &pairs, NULL };
KERNELS(add)
KERNELS(sub)
KERNELS(mul)
KERNELS(div)
KERNELS(max)
KERNELS(min)
KERNELS(equal)
KERNELS(greater)
KERNELS(greaterorequal)
KERNELS(less)
KERNELS(lessorequal)
#define WHOLE(symbol) const HnKernel *const hn_cuda_##symbol[] = { &pairs, NULL };
WHOLE(mod)
WHOLE(bitwiseand)
WHOLE(bitwiseor)
WHOLE(bitwisexor)
const HnKernel *const hn_cuda_sum[] = { &hn_cuda_elements, &pairs, &hn_cuda_sums, NULL };
