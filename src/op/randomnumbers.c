/*
 * Random numbers: RandomUniform and RandomNormal with their Like forms, Bernoulli, Multinomial. ONNX leaves the
 * generator open. Here element i follows from a key and i alone (op/randomnumbers.h); the key is attribute `seed` where
 * it is given, else the session's seed and the node. A run repeats the numbers of the one before.
 */
#include "op/randomnumbers.h"

#include <math.h>
#include <string.h>

#include "op/convert.h"
#include "op/move.h"
#include "op/tape.h"
#include "op/unbind.h"

#define PI 3.14159265358979323846

/* --- attributes -------------------------------------------------------------------------------------------------- */

static void bind_seed(HnBind *b, HnRandom *p)
{
    const float seed = hn_bind_float(b, "seed", 0);
    uint32_t bits;
    memcpy(&bits, &seed, sizeof bits);
    p->has_seed = hn_bind_has(b, "seed");
    p->seed = bits;
}

static void bind_dtype(HnBind *b, HnRandom *p, HnDtype def, HnTypeMask types)
{
    const int64_t dtype = hn_bind_int(b, "dtype", def);
    if (dtype == HN_UNDEFINED || (dtype > 0 && dtype < HN_DTYPE_COUNT && hn_dtype_in((HnDtype)dtype, types)))
        p->dtype = (HnDtype)dtype;
    else
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'dtype' cannot be %" PRId64, dtype);
}

static void bind_shape(HnBind *b, HnRandom *p)
{
    int64_t n;
    const int64_t *dims = hn_bind_ints(b, "shape", &n);
    hn_bind_require(b, "shape");
    if (n > HN_MAX_RANK) {
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "%" PRId64 " dimensions are more than %d", n, HN_MAX_RANK);
        return;
    }
    for (p->ndim = 0; p->ndim < n; p->ndim++) {
        if (dims[p->ndim] < 0)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "the shape cannot have a size of %" PRId64, dims[p->ndim]);
        p->dims[p->ndim] = dims[p->ndim];
    }
}

static void uniform_bind(HnBind *b, void *params)
{
    HnRandom *p = params;
    bind_seed(b, p);
    bind_dtype(b, p, HN_F32, HN_T_FLOATS);
    bind_shape(b, p);
    p->a = (double)hn_bind_float(b, "low", 0);
    p->b = (double)hn_bind_float(b, "high", 1);
}

static void normal_bind(HnBind *b, void *params)
{
    HnRandom *p = params;
    bind_seed(b, p);
    bind_dtype(b, p, HN_F32, HN_T_FLOATS);
    bind_shape(b, p);
    p->a = (double)hn_bind_float(b, "mean", 0);
    p->b = (double)hn_bind_float(b, "scale", 1);
}

static void uniformlike_bind(HnBind *b, void *params)
{
    HnRandom *p = params;
    bind_seed(b, p);
    bind_dtype(b, p, HN_UNDEFINED, HN_T_FLOATS);
    p->a = (double)hn_bind_float(b, "low", 0);
    p->b = (double)hn_bind_float(b, "high", 1);
}

static void normallike_bind(HnBind *b, void *params)
{
    HnRandom *p = params;
    bind_seed(b, p);
    bind_dtype(b, p, HN_UNDEFINED, HN_T_FLOATS);
    p->a = (double)hn_bind_float(b, "mean", 0);
    p->b = (double)hn_bind_float(b, "scale", 1);
}

static void bernoulli_bind(HnBind *b, void *params)
{
    bind_seed(b, params);
    bind_dtype(b, params, HN_UNDEFINED, HN_T_COMPUTE);
}

static void multinomial_bind(HnBind *b, void *params)
{
    HnRandom *p = params;
    bind_seed(b, p);
    bind_dtype(b, p, HN_I32, HN_BIT(HN_I32) | HN_BIT(HN_I64));
    p->draws = hn_bind_int(b, "sample_size", 1);
    if (p->draws < 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'sample_size' cannot be %" PRId64, p->draws);
}

/* --- shapes ------------------------------------------------------------------------------------------------------ */

static void shaped_infer(HnInfer *x)
{
    const HnRandom *p = x->params;
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < p->ndim; a++)
        dims[a] = hn_dim(p->dims[a]);
    hn_infer_out(x, 0, p->dtype, p->ndim, dims);
}

static HnDtype dtype_like(const HnRandom *p, HnDtype in)
{
    return p->dtype != HN_UNDEFINED ? p->dtype : in;
}

static void like_infer(HnInfer *x)
{
    const HnDtype dtype = dtype_like(x->params, hn_infer_dtype(x, 0));
    if (dtype != HN_UNDEFINED && !hn_dtype_in(dtype, HN_T_FLOATS))
        hn_infer_fail(x, HN_ERROR_TYPE, "attribute 'dtype' is missing: numbers like %s cannot be random",
                      hn_dtype_name(dtype));
    hn_infer_out_shape_of(x, 0, dtype, 0);
}

static void bernoulli_infer(HnInfer *x)
{
    hn_infer_out_shape_of(x, 0, dtype_like(x->params, hn_infer_dtype(x, 0)), 0);
}

static void multinomial_infer(HnInfer *x)
{
    const HnRandom *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    HnDim dims[] = { rank == 2 ? hn_infer_dim(x, 0, 0) : hn_dim_unknown(), hn_dim(p->draws) };
    if (rank >= 0 && rank != 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions instead of 2", rank);
    hn_infer_out(x, 0, p->dtype, 2, dims);
}

static void random_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 40 * hn_type_count(x->out[0]); /* ten rounds for two of them, and what is made of the bits */
}

/* --- numbers ----------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const HnEval *e)
{
    const HnRandom *p = e->params;
    return p->has_seed ? p->seed : e->seed;
}

/* Binary digits of a type's numbers. */
static int digits_of(HnDtype dtype)
{
    return dtype == HN_F64 ? 53 : dtype == HN_F32 ? 24 : dtype == HN_F16 ? 11 : 8;
}

static void uniform_pair(const HnRandom *p, const uint64_t bits[2], int digits, double *v)
{
    for (int k = 0; k < 2; k++)
        v[k] = p->a + hn_random_unit(bits[k], digits) * (p->b - p->a);
}

/* Two independent normal numbers of two even ones (G. Box and M. Muller, 1958). */
static void normal_pair(const HnRandom *p, const uint64_t bits[2], int digits, double *v)
{
    const double r = sqrt(-2 * log(1 - hn_random_unit(bits[0], 53))), turn = 2 * PI * hn_random_unit(bits[1], 53);
    (void)digits;
    v[0] = p->a + p->b * r * cos(turn);
    v[1] = p->a + p->b * r * sin(turn);
}

typedef void (*PairFn)(const HnRandom *p, const uint64_t bits[2], int digits, double *v);

static void fill(HnEval *e, PairFn pair, HnDtype dtype, int ndim, const int64_t *dims)
{
    const HnConvert how = { TRUE, HN_E8M0_UP };
    void *y = hn_eval_out(e, 0, dtype, ndim, dims);
    const int64_t n = y != NULL ? e->out[0]->n : 0;
    double v[HN_CONVERT_CHUNK];
    for (int64_t at = 0; at < n; at += HN_CONVERT_CHUNK) {
        const int64_t m = MIN(HN_CONVERT_CHUNK, n - at);
        for (int64_t i = 0; i < m; i += 2) {
            uint64_t bits[2];
            hn_random_pair(key_of(e), (uint64_t)(at + i) / 2, bits);
            pair(e->params, bits, digits_of(dtype), v + i);
        }
        hn_convert_from_f64(dtype, y, at, m, v, &how);
    }
}

static void fill_shape(HnEval *e, PairFn pair)
{
    const HnRandom *p = e->params;
    fill(e, pair, p->dtype, p->ndim, p->dims);
}

static void fill_like(HnEval *e, PairFn pair)
{
    const HnTensor *x = hn_eval_in(e, 0);
    const HnDtype dtype = dtype_like(e->params, x->dtype);
    if (hn_dtype_in(dtype, HN_T_FLOATS))
        fill(e, pair, dtype, x->ndim, x->dims);
    else
        hn_eval_fail(e, HN_ERROR_TYPE, "attribute 'dtype' is missing: numbers like %s cannot be random",
                     hn_dtype_name(dtype));
}

static void uniform_ref(HnEval *e)
{
    fill_shape(e, uniform_pair);
}

static void normal_ref(HnEval *e)
{
    fill_shape(e, normal_pair);
}

static void uniformlike_ref(HnEval *e)
{
    fill_like(e, uniform_pair);
}

static void normallike_ref(HnEval *e)
{
    fill_like(e, normal_pair);
}

static double unit_at(uint64_t key, int64_t i)
{
    uint64_t bits[2];
    hn_random_pair(key, (uint64_t)i / 2, bits);
    return hn_random_unit(bits[i % 2], 53);
}

static void bernoulli_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    const HnDtype dtype = dtype_like(e->params, x->dtype);
    if (hn_eval_out(e, 0, dtype, x->ndim, x->dims) == NULL)
        return;
    for (int64_t i = 0; i < x->n; i++)
        hn_tensor_set_i64(e->out[0], i, unit_at(key_of(e), i) < hn_tensor_get_f64(x, i));
}

/* Sums of e^(x - max) over the classes of a row up to each one; 0: there is no probability in it. */
static double sum_row(const HnTensor *x, int64_t row, double *sums)
{
    const int64_t n = x->dims[1];
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, hn_tensor_get_f64(x, row * n + i));
    for (int64_t i = 0; i < n; i++)
        sums[i] = sum += exp(hn_tensor_get_f64(x, row * n + i) - most);
    return isfinite(sum) ? sum : 0;
}

/* The first class whose sum is larger. */
static int64_t class_at(const double *sums, int64_t n, double v)
{
    int64_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        if (sums[mid] > v)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void multinomial_ref(HnEval *e)
{
    const HnRandom *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    if (x->ndim != 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input has %d dimensions instead of 2", x->ndim);
        return;
    }
    double *sums = hn_eval_scratch(e, x->dims[1], sizeof *sums);
    if (sums != NULL && hn_eval_out(e, 0, p->dtype, 2, (int64_t[]){ x->dims[0], p->draws }) != NULL)
        for (int64_t r = 0; r < x->dims[0]; r++) {
            const double all = sum_row(x, r, sums);
            if (!(all > 0)) {
                hn_eval_fail(e, HN_ERROR_VALUE, "no class of row %" PRId64 " has a probability", r);
                break;
            }
            for (int64_t k = 0; k < p->draws; k++)
                hn_tensor_set_i64(e->out[0], r * p->draws + k,
                                  class_at(sums, x->dims[1], all * unit_at(key_of(e), r * p->draws + k)));
        }
    hn_eval_scratch_free(e, sums);
}

/* Numbers by chance do not depend on a shape, nor on probabilities, by any slope. */
static void random_grad(HnTape *t)
{
    hn_tape_ends(t, 0);
}

/* --- records ----------------------------------------------------------------------------------------------------- */

/* Before opset 15: an even number below the probability is a 1. */
static void bernoulli_unbind(HnUnbind *u)
{
    const HnRandom *p = u->params;
    HnValue *x = hn_unbind_in(u, 0);
    const HnDtype in = hn_unbind_dtype(u, 0), to = dtype_like(p, in);
    if (u->to >= 15)
        return;
    if (in == HN_UNDEFINED) {
        hn_unbind_refuse(u, "the type of the probabilities is not known");
        return;
    }
    HnNode *draw = hn_unbind_node(u, "RandomUniformLike", 1, &x, 1);
    hn_node_set_int(draw, "dtype", in);
    const HnAttr *seed = hn_node_attr(u->node, "seed");
    if (seed != NULL)
        hn_node_set_float(draw, "seed", seed->f);
    hn_unbind_take(u, 0, hn_unbind_cast(u, hn_unbind_op2(u, "Less", hn_node_out(draw, 0), x), to));
}

#define NO_BF16(letter)                \
    {                                  \
        letter, 22, 0, HN_BIT(HN_BF16) \
    }

const HnOp hn_op_randomuniform = {
    .name = "RandomUniform",
    .flags = HN_OP_RANDOM,
    .since = { 1, 22 },
    .lacks = HN_LACKS(NO_BF16('T')),
    .in = "",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnRandom),
    .bind = uniform_bind,
    .infer = shaped_infer,
    .cost = random_cost,
    .ref = uniform_ref,
};

const HnOp hn_op_randomnormal = {
    .name = "RandomNormal",
    .flags = HN_OP_RANDOM,
    .since = { 1, 22 },
    .lacks = HN_LACKS(NO_BF16('T')),
    .in = "",
    .out = "T",
    .T = HN_T_FLOATS,
    .params_size = sizeof(HnRandom),
    .bind = normal_bind,
    .infer = shaped_infer,
    .cost = random_cost,
    .ref = normal_ref,
};

const HnOp hn_op_randomuniformlike = {
    .name = "RandomUniformLike",
    .flags = HN_OP_RANDOM,
    .since = { 1, 22 },
    .lacks = HN_LACKS(NO_BF16('T'), NO_BF16('U')),
    .in = "T",
    .out = "U",
    .T = HN_T_PLAIN,
    .U = HN_T_FLOATS,
    .params_size = sizeof(HnRandom),
    .bind = uniformlike_bind,
    .infer = like_infer,
    .cost = random_cost,
    .ref = uniformlike_ref,
    .grad = random_grad,
};

const HnOp hn_op_randomnormallike = {
    .name = "RandomNormalLike",
    .flags = HN_OP_RANDOM,
    .since = { 1, 22 },
    .lacks = HN_LACKS(NO_BF16('T'), NO_BF16('U')),
    .in = "T",
    .out = "U",
    .T = HN_T_PLAIN,
    .U = HN_T_FLOATS,
    .params_size = sizeof(HnRandom),
    .bind = normallike_bind,
    .infer = like_infer,
    .cost = random_cost,
    .ref = normallike_ref,
    .grad = random_grad,
};

const HnOp hn_op_bernoulli = {
    .name = "Bernoulli",
    .flags = HN_OP_RANDOM,
    .since = { 15, 22 },
    .lacks = HN_LACKS(NO_BF16('T')),
    .in = "T",
    .out = "U",
    .T = HN_T_FLOATS,
    .U = HN_T_COMPUTE,
    .unbind = bernoulli_unbind,
    .params_size = sizeof(HnRandom),
    .bind = bernoulli_bind,
    .infer = bernoulli_infer,
    .cost = random_cost,
    .ref = bernoulli_ref,
    .grad = random_grad,
};

const HnOp hn_op_multinomial = {
    .name = "Multinomial",
    .flags = HN_OP_RANDOM,
    .since = { 7, 22 },
    .lacks = HN_LACKS(NO_BF16('T')),
    .in = "T",
    .out = "U",
    .T = HN_T_FLOATS,
    .U = HN_BIT(HN_I32) | HN_BIT(HN_I64),
    .params_size = sizeof(HnRandom),
    .bind = multinomial_bind,
    .infer = multinomial_infer,
    .cost = random_cost,
    .ref = multinomial_ref,
    .grad = random_grad,
};
