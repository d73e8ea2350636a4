/*
 * InstanceNormalization, GroupNormalization: each sample's channels, alone or in groups of neighbours, brought to mean
 * 0 and variance 1, then scaled and shifted: per channel, but per group in GroupNormalization before opset 21.
 */
#include "op/instancenorm.h"

#include <math.h>

#include "op/batch.h"
#include "op/index.h"
#include "op/narrow.h"
#include "op/norm_grad.h"
#include "op/op.h"
#include "op/types.h"
#include "op/unbind.h"

static void instancenorm_bind(HnBind *b, void *params)
{
    HnGroupNorm *p = params;
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
}

static void groupnorm_bind(HnBind *b, void *params)
{
    HnGroupNorm *p = params;
    p->epsilon = hn_bind_float(b, "epsilon", 1e-5f);
    hn_bind_require(b, "num_groups");
    p->groups = hn_bind_int(b, "num_groups", 1);
    p->per_group = b->version < 21;
    if (p->groups < 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'num_groups' is %" PRId64 ", less than 1", p->groups);
}

static void norm_infer(HnInfer *x)
{
    const HnGroupNorm *p = x->params;
    int rank = hn_infer_rank(x, 0);
    HnDim channels = rank > 1 ? hn_infer_dim(x, 0, 1) : hn_dim_unknown();
    hn_infer_same(x);
    if (rank >= 0 && rank < 2) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has %d dimensions, at least 2 are needed", rank);
        return;
    }
    if (channels.known && p->groups > 0 && channels.n % p->groups != 0) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " channels do not make %" PRId64 " groups", channels.n, p->groups);
        return;
    }
    for (int i = 1; i < 3; i++) {
        int r = hn_infer_rank(x, i);
        if (r >= 0 && r != 1)
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, not 1", i, r);
        else if (r == 1 && hn_dim_differ(hn_infer_dim(x, i, 0), p->per_group ? hn_dim(p->groups) : channels))
            hn_infer_fail(x, HN_ERROR_SHAPE, "the size of input %d is not the number of %s", i,
                          p->per_group ? "groups" : "channels");
    }
}

static void norm_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 6 * hn_type_count(x->in[0]);
}

/* One group: `channels` rows of n elements; factors are `step` apart, 0 where all channels share them. */
#define DEFINE_GROUP(T)                                                                                          \
    static void group_##T(const T *x, T *y, int64_t channels, int64_t n, double epsilon, const T *scale,         \
                          const T *bias, int64_t step)                                                           \
    {                                                                                                            \
        double sum = 0, squares = 0, count = (double)(channels * n);                                             \
        for (int64_t i = 0; i < channels * n; i++)                                                               \
            sum += (double)x[i];                                                                                 \
        double mean = sum / count;                                                                               \
        for (int64_t i = 0; i < channels * n; i++)                                                               \
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);                                            \
        double inv = 1 / sqrt(squares / count + epsilon);                                                        \
        for (int64_t c = 0; c < channels; c++)                                                                   \
            for (int64_t i = 0; i < n; i++)                                                                      \
                y[c * n + i] =                                                                                   \
                    (T)(((double)x[c * n + i] - mean) * inv * (double)scale[c * step] + (double)bias[c * step]); \
    }
DEFINE_GROUP(float)
DEFINE_GROUP(double)

static void norm_ref(HnEval *e)
{
    const HnGroupNorm *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *scale = hn_eval_in(e, 1), *bias = hn_eval_in(e, 2);
    if (x->ndim < 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 has %d dimensions, at least 2 are needed", x->ndim);
        return;
    }
    int64_t channels = x->dims[1], groups = p->groups > 0 ? p->groups : channels;
    int64_t inner = hn_span(x->dims, 2, x->ndim), factors = p->per_group ? groups : channels;
    if (groups > 0 && channels % groups != 0) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " channels do not make %" PRId64 " groups", channels, groups);
        return;
    }
    if (scale->n != factors || bias->n != factors) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "scale or bias does not have %" PRId64 " elements", factors);
        return;
    }
    void *y = hn_eval_out_like(e, 0, x);
    if (y == NULL || x->n == 0)
        return;
    int64_t each = channels / groups, at = 0;
    for (int64_t n = 0; n < x->dims[0]; n++)
        for (int64_t g = 0; g < groups; g++, at += each * inner) {
            int64_t f = p->per_group ? g : g * each;
#define RUN(T)                                                                                                   \
    group_##T((const T *)x->data + at, (T *)y + at, each, inner, (double)p->epsilon, (const T *)scale->data + f, \
              (const T *)bias->data + f, p->per_group ? 0 : 1);
            HN_FOR_FLOAT(x->dtype, RUN)
#undef RUN
        }
}

/* Axes 2 and on of x; with groups, of x as [batch, groups, the rest]. */
static void norm_grad(HnTape *t)
{
    const HnGroupNorm *p = t->params;
    const int rank = hn_tape_rank(t, 0);
    HnNormGrad g = { .epsilon = (double)p->epsilon, .centred = TRUE };
    HnValue *x = hn_tape_in(t, 0), *dy = hn_tape_dy(t, 0);
    if (rank < 3 || p->per_group) {
        hn_tape_refuse(t, "the number of dimensions is not known, or below 3");
        return;
    }
    const int64_t grouped[] = { 0, p->groups, -1 };
    for (int a = 2; a < (p->groups > 0 ? 3 : rank); a++)
        g.axes[g.n++] = a;
    hn_norm_hat(t, &g, p->groups > 0 ? hn_build_reshape(t->build, x, grouped, 3) : x);
    HnValue *hat = p->groups > 0 ? hn_tape_reshape_like(t, g.hat, x) : g.hat;
    if (hn_tape_needs(t, 0)) {
        HnValue *dhat = hn_build_op2(t->build, "Mul", dy, hn_norm_by_channel(t, hn_tape_in(t, 1), rank));
        HnValue *dx = hn_norm_dx(t, &g, p->groups > 0 ? hn_build_reshape(t->build, dhat, grouped, 3) : dhat);
        hn_tape_give(t, 0, p->groups > 0 ? hn_tape_reshape_like(t, dx, x) : dx);
    }
    if (hn_tape_needs(t, 1))
        hn_tape_give(t, 1, hn_norm_channel_sum(t, hn_build_op2(t->build, "Mul", dy, hat), 1, rank));
    if (hn_tape_needs(t, 2))
        hn_tape_give(t, 2, hn_norm_channel_sum(t, dy, 2, rank));
}

#define NORM_RECORD                                                                                             \
    .flags = HN_OP_HALF_VIA_F32, .in = "TTT", .out = "T", .T = HN_T_FLOATS, .params_size = sizeof(HnGroupNorm), \
    .infer = norm_infer, .cost = norm_cost, .ref = norm_ref

const HnOp hn_op_instancenormalization = {
    .name = "InstanceNormalization",
    NORM_RECORD,
    .since = { 1, 6, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .bind = instancenorm_bind,
    .range = { .kind = HN_R_SQUARES, .row = HN_ROW_SPATIAL },
    .channels = { HN_CH_PLANES },
    .grad = norm_grad,
    .batch = hn_batch_first,
    .trained = 1 << 1 | 1 << 2,
};

/* As an instance norm over the groups. Before opset 21 scale and bias are those of groups, and the operator was
 * withdrawn again: it is not made for these. */
static void groupnorm_unbind(HnUnbind *u)
{
    const HnGroupNorm *p = u->params;
    HnDtype dtype = hn_unbind_dtype(u, 0);
    int rank = hn_unbind_rank(u, 0);
    int64_t dims[HN_MAX_RANK], groups = p->groups;
    if (u->to >= 21 && !p->per_group)
        return;
    if (dtype == HN_UNDEFINED || rank < 2) {
        hn_unbind_refuse(u, "type or number of dimensions of input 0 are not known");
        return;
    }
    HnValue *x = hn_unbind_in(u, 0), *scale = hn_unbind_in(u, 1), *bias = hn_unbind_in(u, 2);
    if (!p->per_group) {
        scale = hn_unbind_fill(u, dtype, 1, &groups, 1);
        bias = hn_unbind_fill(u, dtype, 1, &groups, 0);
    }
    HnValue *in[] = { hn_unbind_reshape(u, x, (int64_t[]){ 0, groups, -1 }, 3), scale, bias };
    HnNode *n = hn_unbind_node(u, "InstanceNormalization", 3, in, 1);
    hn_node_set_float(n, "epsilon", p->epsilon);
    HnValue *y = hn_unbind_op2(u, "Reshape", hn_node_out(n, 0), hn_unbind_shape(u, x, 0, INT64_MAX));
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 ? -1 : 1;
    if (!p->per_group) {
        y = hn_unbind_op2(u, "Mul", y, hn_unbind_reshape(u, hn_unbind_in(u, 1), dims, rank));
        y = hn_unbind_op2(u, "Add", y, hn_unbind_reshape(u, hn_unbind_in(u, 2), dims, rank));
    }
    hn_unbind_take(u, 0, y);
}

static gboolean groupnorm_narrow(const HnNarrow *x)
{
    const HnAttr *groups = hn_node_attr(x->node, "num_groups");
    return groups != NULL && hn_narrow_groups(x, "num_groups", groups->i);
}

const HnOp hn_op_groupnormalization = {
    .name = "GroupNormalization",
    NORM_RECORD,
    .since = { 18, 21 },
    .forms = HN_FORMS({ "stash_type", HN_ATTR_INT, .since = 21, .any = TRUE }),
    .unbind = groupnorm_unbind,
    .bind = groupnorm_bind,
    .range = { .kind = HN_R_SQUARES, .row = HN_ROW_SPATIAL },
    .channels = { HN_CH_PLANES },
    .narrow = groupnorm_narrow,
    .grad = norm_grad,
    .batch = hn_batch_first,
    .trained = 1 << 1 | 1 << 2,
};
