/*
 * Identity and Dropout. Dropout hands its input on unless it is told to train: before opset 7 it trains unless
 * `is_test` is set, from 7 to 11 it never does, since 12 input 2 says so (and input 1 gives the ratio).
 */
#include "op/batch.h"
#include "op/dropout.h"

#include <string.h>

#include "base/rng.h"
#include "op/convert.h"
#include "op/elementwise.h"
#include "op/tape.h"
#include "op/training.h"
#include "op/unbind.h"

/* --- Identity ---------------------------------------------------------------------------------------------------- */

static void identity_infer(HnInfer *x)
{
    if (x->in[0] != NULL && x->in[0]->kind != HN_TYPE_TENSOR && x->n_out > 0) {
        x->out[0] = hn_type_ref(x->in[0]);
        return;
    }
    hn_infer_same(x);
    hn_infer_map1(x, hn_dim_same);
}

static void identity_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0);
    hn_eval_view(e, 0, t, t->ndim, t->dims);
}

static void identity_grad(HnTape *t)
{
    hn_tape_map(t, "dy");
}

static void identity_unbind(HnUnbind *u)
{
    const HnType *t = hn_types_get(u->types, hn_unbind_in(u, 0));
    if (hn_unbind_below(u, 14) && t != NULL && t->kind == HN_TYPE_SEQUENCE)
        hn_unbind_refuse(u, "sequences were taken from opset 14 on");
    else if (hn_unbind_below(u, 16) && t != NULL && t->kind == HN_TYPE_OPTIONAL)
        hn_unbind_refuse(u, "optionals were taken from opset 16 on");
}

const HnOp hn_op_identity = {
    .name = "Identity",
    .flags = HN_OP_ELEMENTWISE | HN_OP_VIEW,
    .since = { 1, 13, 14, 16, 19, 21, 23, 24, 25 },
    .lacks = HN_LACKS({ '.', 13, 0, HN_BIT(HN_BF16) }, HN_SMALL_TYPES('.', 19)),
    .wide = HN_WIDE_PICKS,
    .in = ".",
    .out = ".",
    .unbind = identity_unbind,
    .infer = identity_infer,
    .ref = identity_ref,
    .grad = identity_grad,
    .quant = { .kind = HN_Q_PASS },
    .channels = { .unit = HN_UNIT_SAME },
};

/* --- Dropout ----------------------------------------------------------------------------------------------------- */

static void dropout_bind(HnBind *b, void *params)
{
    HnDropout *p = params;
    p->ratio = 0.5f;
    if (b->version < 12)
        p->ratio = hn_bind_float(b, "ratio", 0.5f);
    p->train = b->version < 7 && !hn_bind_bool(b, "is_test", FALSE);
    p->by_input = b->version >= 12;
    p->bool_mask = b->version >= 10;
    p->has_seed = p->by_input && hn_bind_has(b, "seed");
    p->seed = p->has_seed ? (uint64_t)hn_bind_int(b, "seed", 0) : 0;
    if (!p->by_input && b->node->in->len > 1)
        hn_bind_fail(b, HN_ERROR_GRAPH, "has %u inputs, 1 is allowed before opset 12", b->node->in->len);
}

static void dropout_infer(HnInfer *x)
{
    const HnDropout *p = x->params;
    for (int i = 1; i <= 2; i++)
        for (int a = 0; a < hn_infer_rank(x, i); a++)
            if (hn_infer_dim(x, i, a).known && !hn_dim_is(hn_infer_dim(x, i, a), 1)) {
                hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is not a scalar", i);
                return;
            }
    hn_infer_same(x);
    hn_infer_out_shape_of(x, 1, p->bool_mask ? HN_BOOL : hn_infer_dtype(x, 0), 0);
}

static gboolean dropout_setting(HnEval *e, const HnDropout *p, gboolean *train, double *ratio)
{
    const HnTensor *r = p->by_input ? hn_eval_in(e, 1) : NULL, *t = p->by_input ? hn_eval_in(e, 2) : NULL;
    for (int i = 1; i <= 2; i++) {
        const HnTensor *s = i == 1 ? r : t;
        if (s != NULL && (s->n != 1 || !hn_convertible(s->dtype))) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d is not a scalar", i);
            return FALSE;
        }
    }
    *train = t != NULL ? hn_tensor_get_i64(t, 0) != 0 : p->train;
    *ratio = r != NULL ? hn_tensor_get_f64(r, 0) : (double)p->ratio;
    if (*train && !(*ratio >= 0 && *ratio < 1)) {
        hn_eval_fail(e, HN_ERROR_VALUE, "the ratio %g is outside [0,1)", *ratio);
        return FALSE;
    }
    *train = *train && *ratio != 0;
    return TRUE;
}

/* data, output and mask in step; mask_type is the data's type or bool, mask NULL where nobody wants it */
static void drop(HnEval *e, const HnTensor *t, void *y, HnDtype mask_type, void *mask, double ratio)
{
    const HnDropout *p = e->params;
    const HnConvert how = { TRUE, HN_E8M0_UP };
    HnRng rng = hn_rng(p->has_seed ? p->seed : e->seed);
    for (int64_t at = 0; at < t->n; at += HN_CONVERT_CHUNK) {
        int64_t n = MIN(HN_CONVERT_CHUNK, t->n - at);
        float part[HN_CONVERT_CHUNK];
        double out[HN_CONVERT_CHUNK], keep[HN_CONVERT_CHUNK];
        if (t->dtype != HN_F64)
            hn_convert_to_f32(t, at, n, part);
        for (int64_t i = 0; i < n; i++) {
            double v = t->dtype == HN_F64 ? ((const double *)t->data)[at + i] : (double)part[i];
            keep[i] = hn_rng_double(&rng) >= ratio ? 1 : 0;
            out[i] = keep[i] != 0 ? v / (1 - ratio) : 0;
        }
        hn_convert_from_f64(t->dtype, y, at, n, out, &how);
        if (mask != NULL)
            hn_convert_from_f64(mask_type, mask, at, n, keep, &how);
    }
}

static void dropout_ref(HnEval *e)
{
    const HnDropout *p = e->params;
    const HnTensor *t = hn_eval_in(e, 0);
    HnDtype mask_type = p->bool_mask ? HN_BOOL : t->dtype;
    gboolean train;
    double ratio;
    void *mask = NULL, *y = NULL;
    if (!hn_convertible(t->dtype)) {
        hn_eval_fail_type(e, 0);
        return;
    }
    if (!dropout_setting(e, p, &train, &ratio))
        return;
    if (hn_eval_wants(e, 1) && (mask = hn_eval_out(e, 1, mask_type, t->ndim, t->dims)) == NULL)
        return;
    if (!train) {
        if (mask != NULL && mask_type == HN_BOOL)
            memset(mask, 1, (size_t)t->n);
        for (int64_t i = 0; mask != NULL && mask_type != HN_BOOL && i < t->n; i++)
            hn_tensor_set_f64(e->out[1], i, 1);
        hn_eval_view(e, 0, t, t->ndim, t->dims);
    } else if ((y = hn_eval_out_like(e, 0, t)) != NULL) {
        drop(e, t, y, mask_type, mask, ratio);
    }
}

/* Before opset 12 nothing is dropped; before 10 the mask is of the type of the data. */
static void dropout_unbind(HnUnbind *u)
{
    const HnDropout *p = u->params;
    double train = 0, ratio;
    if (hn_unbind_below(u, 12) && hn_unbind_in(u, 2) != NULL && (!hn_unbind_number(u, 2, &train) || train != 0)) {
        hn_unbind_refuse(u, "training was not asked for by an input before opset 12");
        return;
    }
    if (hn_unbind_below(u, 12)) {
        hn_unbind_drop(u, 2);
        if (!hn_unbind_number(u, 1, &ratio))
            hn_unbind_drop(u, 1);
    }
    if (p->bool_mask == (u->to >= 10) && !hn_unbind_below(u, 12))
        return;
    if (hn_unbind_wants(u, 1)) {
        HnDtype dtype = hn_unbind_out_dtype(u, 1); /* stays: what the new form would make is not asked for */
        if (dtype == HN_UNDEFINED) {
            hn_unbind_refuse(u, "the mask is of a type that is not known");
            return;
        }
        int64_t one = 1;
        HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
        a->t = hn_tensor_new(dtype, 1, &one, NULL, NULL);
        hn_tensor_set_i64(a->t, 0, 1);
        HnNode *ones = hn_unbind_node(u, "ConstantOfShape", 1,
                                      (HnValue *[]){ hn_unbind_shape(u, hn_unbind_in(u, 0), 0, INT64_MAX) }, 1);
        hn_node_set_attr(ones, a);
        hn_unbind_take(u, 1, hn_node_out(ones, 0));
    }
    hn_unbind_give_up(u, 1);
}

/* By the mask, which the node is asked for: what it keeps is scaled. */
static void dropout_grad(HnTape *t)
{
    HnNode *n = t->node;
    HnValue *ratio = hn_tape_in(t, 1), *train = hn_tape_in(t, 2), *dy = hn_tape_dy(t, 0);
    hn_tape_ends(t, 1);
    if (dy == NULL || !hn_tape_needs(t, 0))
        return;
    if (train == NULL) {
        hn_tape_give(t, 0, dy);
        return;
    }
    if (hn_node_out(n, 1) == NULL)
        hn_node_set_out(n, 1, hn_graph_new_value(t->build->graph, "mask"));
    HnValue *values[] = { hn_node_out(n, 1), train,
                          ratio != NULL ? hn_build_cast(t->build, ratio, t->dtype) : hn_tape_number(t, 0.5) };
    hn_tape_give(t, 0, hn_tape_calc(t, "Where(q, Where(p, dy / (1 - r), 0), dy)", values));
}

/* A mask that follows from seed, step and node. What nobody drops, or no one knows how much of, stays as it is. */
static void dropout_train(HnTraining *t)
{
    HnValue *x = hn_node_in(t->node, 0), *by = hn_node_in(t->node, 1), *in[] = { x, t->state };
    const HnTensor *ratio = by != NULL ? t->elements(t, by) : NULL;
    const double part = by == NULL ? 0.5 : ratio != NULL && ratio->n == 1 ? hn_tensor_get_f64(ratio, 0) : 0;
    if (hn_node_out(t->node, 1) != NULL || !(part > 0 && part < 1))
        return;
    HnNode *n = hn_build_node(t->build, "TrainDropout", HN_DOMAIN_INTERNAL, 2, in, 1);
    hn_node_set_float(n, "ratio", (float)part);
    hn_node_set_int(n, "salt", t->salt);
    hn_value_replace(hn_node_out(t->node, 0), hn_node_out(n, 0));
}

void hn_dropout_batch(HnBatch *b)
{
    const HnDropout *p = b->params;
    const HnTensor *train = hn_batch_has(b, 2) ? hn_types_value(b->types, b->in[2].v) : NULL;
    if (p->train || (p->by_input && hn_batch_has(b, 2) && (train == NULL || hn_tensor_get_i64(train, 0) != 0)))
        hn_batch_fail(b, "what it drops is random");
    else
        hn_batch_elementwise(b);
}

const HnOp hn_op_dropout = {
    .name = "Dropout",
    .flags = HN_OP_ELEMENTWISE | HN_OP_INPLACE | HN_OP_RANDOM,
    .since = { 1, 6, 7, 10, 12, 13, 22 },
    .forms = HN_FORMS({ "ratio", HN_ATTR_FLOAT, .until = 12, .input = 1 },
                      { "seed", HN_ATTR_INT, .since = 12, .any = TRUE }),
    .lacks = HN_LACKS({ '.', 0, 10, HN_BIT(HN_F32) | HN_BIT(HN_F16) | HN_BIT(HN_F64) }, { '.', 10, 0, HN_BIT(HN_BOOL) },
                      HN_BF16_SINCE(13), { 'T', 22, 0, HN_T_F8S }, { 'U', 22, 0, HN_T_F8S | HN_BIT(HN_BF16) }),
    .in = "TUb",
    .out = "T.",
    .T = HN_T_FLOATS | HN_T_F8,
    .U = HN_T_FLOATS | HN_T_F8,
    .min_in = 1,
    .unbind = dropout_unbind,
    .params_size = sizeof(HnDropout),
    .bind = dropout_bind,
    .infer = dropout_infer,
    .cost = hn_cost_elementwise,
    .ref = dropout_ref,
    .grad = dropout_grad,
    .batch = hn_dropout_batch,
    .quant = { .kind = HN_Q_PASS },
    .channels = { .unit = HN_UNIT_SAME },
    .train = dropout_train,
};
