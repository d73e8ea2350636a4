/*
 * Constant, ConstantOfShape, EyeLike, Range: tensors out of attributes and a few numbers.
 */
#include "op/constant.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/move.h"
#include "op/types.h"
#include "op/unbind.h"

/* --- Constant -------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const HnAttr *attr; /* the one that holds the value */
} HnConstant;

static void constant_bind(HnBind *b, void *params)
{
    static const struct {
        const char *name;
        HnAttrKind kind;
        int since;
    } forms[] = {
        { "value", HN_ATTR_TENSOR, 1 },         { "sparse_value", HN_ATTR_SPARSE, 11 },
        { "value_float", HN_ATTR_FLOAT, 12 },   { "value_floats", HN_ATTR_FLOATS, 12 },
        { "value_int", HN_ATTR_INT, 12 },       { "value_ints", HN_ATTR_INTS, 12 },
        { "value_string", HN_ATTR_STRING, 12 }, { "value_strings", HN_ATTR_STRINGS, 12 },
    };
    HnConstant *p = params;
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        const HnAttr *a = hn_node_attr(b->node, forms[i].name);
        if (a == NULL || b->version < forms[i].since)
            continue;
        if (p->attr != NULL)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "both attributes '%s' and '%s' give the value", p->attr->name, a->name);
        if (a->ref_attr != NULL)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' refers to '%s' of a function that is not inlined",
                         a->name, a->ref_attr);
        else if (a->kind != forms[i].kind)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is of the wrong kind", a->name);
        p->attr = a;
    }
    if (p->attr == NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'value' is missing");
    else if (p->attr->kind == HN_ATTR_TENSOR && p->attr->t->ndim > HN_MAX_RANK)
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", p->attr->t->ndim, HN_MAX_RANK);
    else if (p->attr->kind == HN_ATTR_SPARSE &&
             (p->attr->sparse->ndim > HN_MAX_RANK || p->attr->sparse->values == NULL))
        hn_bind_fail(b, HN_ERROR_UNSUPPORTED, "attribute 'sparse_value' cannot be made dense");
}

static void constant_contents(HnInfer *x, int rank, int64_t n, const int64_t *v, const HnTensor *t)
{
    if (n > HN_CONTENTS_MAX)
        return;
    HnContents *c = hn_contents_new(rank, (int)n);
    for (int i = 0; i < c->n; i++)
        c->d[i] = hn_dim(t != NULL ? hn_tensor_get_i64(t, i) : v[i]);
    hn_infer_out_contents(x, 0, c);
}

static void constant_out(HnInfer *x, HnDtype dtype, int rank, const int64_t *n)
{
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < rank; a++)
        dims[a] = hn_dim(n[a]);
    hn_infer_out(x, 0, dtype, rank, dims);
}

static void constant_infer(HnInfer *x)
{
    const HnAttr *a = ((const HnConstant *)x->params)->attr;
    switch (a->kind) {
    case HN_ATTR_TENSOR:
        constant_out(x, a->t->dtype, a->t->ndim, a->t->dims);
        if (a->t->ndim <= 1 && (a->t->dtype == HN_I32 || a->t->dtype == HN_I64))
            constant_contents(x, a->t->ndim, a->t->n, NULL, a->t);
        break;
    case HN_ATTR_SPARSE:
        constant_out(x, a->sparse->values->dtype, a->sparse->ndim, a->sparse->dims);
        break;
    case HN_ATTR_INT:
    case HN_ATTR_INTS: {
        int rank = a->kind == HN_ATTR_INTS;
        constant_out(x, HN_I64, rank, &a->n);
        constant_contents(x, rank, rank == 1 ? a->n : 1, rank == 1 ? a->ints : &a->i, NULL);
        break;
    }
    case HN_ATTR_FLOAT:
    case HN_ATTR_FLOATS:
        constant_out(x, HN_F32, a->kind == HN_ATTR_FLOATS, &a->n);
        break;
    default:
        constant_out(x, HN_STRING, a->kind == HN_ATTR_STRINGS, &a->n);
        break;
    }
}

static void constant_ref(HnEval *e)
{
    const HnAttr *a = ((const HnConstant *)e->params)->attr;
    gboolean plural = a->kind == HN_ATTR_INTS || a->kind == HN_ATTR_FLOATS || a->kind == HN_ATTR_STRINGS;
    int64_t n = plural ? a->n : 1;
    if (a->kind == HN_ATTR_TENSOR) {
        hn_eval_view(e, 0, a->t, a->t->ndim, a->t->dims);
    } else if (a->kind == HN_ATTR_SPARSE) {
        g_autoptr(HnTensor) t = hn_sparse_dense(a->sparse, e->budget, &e->error);
        if (t != NULL)
            hn_eval_view(e, 0, t, t->ndim, t->dims);
    } else if (a->kind == HN_ATTR_INT || a->kind == HN_ATTR_INTS) {
        int64_t *y = hn_eval_out(e, 0, HN_I64, plural, &n);
        for (int64_t i = 0; y != NULL && i < n; i++)
            y[i] = plural ? a->ints[i] : a->i;
    } else if (a->kind == HN_ATTR_FLOAT || a->kind == HN_ATTR_FLOATS) {
        float *y = hn_eval_out(e, 0, HN_F32, plural, &n);
        for (int64_t i = 0; y != NULL && i < n; i++)
            y[i] = plural ? a->floats[i] : a->f;
    } else if (hn_eval_out(e, 0, HN_STRING, plural, &n) != NULL) {
        for (int64_t i = 0; i < n; i++)
            hn_tensor_set_string(e->out[0], i, plural ? a->strings[i] : a->s);
    }
}

/* Numbers, strings and lists of them came with opset 12, sparse values with 11, and others than floats with 9. */
static void constant_unbind(HnUnbind *u)
{
    const HnConstant *p = u->params;
    const HnValue *v = hn_node_out(u->node, 0);
    HnTensor *t = v != NULL ? hn_types_value(u->types, v) : NULL;
    if (t == NULL || u->to >= 12)
        return;
    if (u->to < 9 && !hn_dtype_in(t->dtype, HN_T_FLOATS)) {
        hn_unbind_settle(u, 0);
    } else if (p->attr->kind != HN_ATTR_TENSOR && !(p->attr->kind == HN_ATTR_SPARSE && u->to >= 11)) {
        HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
        g_autofree char *old = g_strdup(p->attr->name);
        a->t = hn_tensor_ref(t);
        hn_node_remove_attr(u->node, old);
        hn_node_set_attr(u->node, a);
    }
}

const HnOp hn_op_constant = {
    .name = "Constant",
    .since = { 1, 9, 11, 12, 13, 19, 21, 23, 24, 25 },
    .lacks = HN_LACKS({ '.', 9, 0, HN_T_INTS | HN_BIT(HN_STRING) | HN_BIT(HN_BOOL) | HN_BIT(HN_C64) | HN_BIT(HN_C128) },
                      { '.', 13, 0, HN_BIT(HN_BF16) }, HN_SMALL_TYPES('.', 19)),
    .in = "",
    .out = ".",
    .unbind = constant_unbind,
    .params_size = sizeof(HnConstant),
    .bind = constant_bind,
    .infer = constant_infer,
    .cost = hn_cost_nothing,
    .ref = constant_ref,
};

/* --- ConstantOfShape ------------------------------------------------------------------------------------------------
 */

static void constantofshape_bind(HnBind *b, void *params)
{
    HnFilled *p = params;
    p->value = hn_bind_tensor(b, "value");
    if (p->value != NULL && p->value->n != 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'value' has %" PRId64 " elements instead of 1", p->value->n);
}

static void constantofshape_infer(HnInfer *x)
{
    const HnFilled *p = x->params;
    const HnContents *c = hn_infer_contents(x, 0);
    HnDtype dtype = p->value != NULL ? p->value->dtype : HN_F32;
    int n = hn_infer_length(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (n > HN_MAX_RANK)
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", n, HN_MAX_RANK);
    if (n < 0 || n > HN_MAX_RANK) {
        hn_infer_out_unknown(x, 0, dtype);
        return;
    }
    for (int i = 0; i < n; i++) {
        dims[i] = c != NULL ? c->d[i] : hn_dim_unknown();
        if (dims[i].known && dims[i].n < 0)
            hn_infer_fail(x, HN_ERROR_VALUE, "the shape cannot have a size of %" PRId64, dims[i].n);
    }
    hn_infer_out(x, 0, dtype, n, dims);
    if (x->error != NULL || !hn_dtype_in(dtype, HN_T_INTS) || !hn_infer_is_list(n, dims))
        return;
    HnContents *r = hn_contents_new(n, n == 1 ? (int)dims[0].n : 1);
    for (int i = 0; i < r->n; i++)
        r->d[i] = hn_dim(hn_tensor_get_i64(p->value, 0));
    hn_infer_out_contents(x, 0, r);
}

static void constantofshape_ref(HnEval *e)
{
    const HnFilled *p = e->params;
    HnDtype dtype = p->value != NULL ? p->value->dtype : HN_F32;
    int64_t dims[HN_MAX_RANK];
    size_t size = hn_move_size(e, dtype);
    int n = hn_eval_ints(e, 0, dims, HN_MAX_RANK);
    if (size == 0 || n < 0)
        return;
    for (int i = 0; i < n; i++)
        if (dims[i] < 0) {
            hn_eval_fail(e, HN_ERROR_VALUE, "the shape cannot have a size of %" PRId64, dims[i]);
            return;
        }
    void *y = hn_move_out(e, 0, dtype, n, dims);
    if (y == NULL)
        return;
    hn_move_fill(y, p->value != NULL ? p->value->data : NULL, size, e->out[0]->n);
    hn_move_done(e, 0);
}

static void constantofshape_unbind(HnUnbind *u)
{
    const HnFilled *p = u->params;
    HnDtype dtype = p->value != NULL ? p->value->dtype : HN_F32;
    if ((u->to >= 9 && (dtype != HN_BF16 || u->to >= 20)) || hn_unbind_settle(u, 0) || dtype == HN_STRING)
        return;
    HnTensor *one = hn_tensor_new(u->to >= 9 ? HN_F32 : dtype, 0, NULL, NULL, NULL);
    hn_tensor_set_f64(one, 0, p->value != NULL ? hn_tensor_get_f64(p->value, 0) : 0);
    if (p->value != NULL && hn_dtype_in(dtype, HN_T_INTS))
        hn_tensor_set_i64(one, 0, hn_tensor_get_i64(p->value, 0));
    HnValue *v = hn_unbind_op2(u, "Expand", hn_unbind_const(u, one), hn_unbind_in(u, 0));
    hn_unbind_take(u, 0, u->to >= 9 ? hn_unbind_cast(u, v, dtype) : v);
}

const HnOp hn_op_constantofshape = {
    .name = "ConstantOfShape",
    .since = { 9, 20, 21, 23, 24, 25 },
    .lacks = HN_LACKS({ '.', 20, 0, HN_BIT(HN_BF16) }, HN_SMALL_TYPES('.', 20)),
    .in = "i",
    .out = ".",
    .unbind = constantofshape_unbind,
    .params_size = sizeof(HnFilled),
    .bind = constantofshape_bind,
    .infer = constantofshape_infer,
    .ref = constantofshape_ref,
};

/* --- EyeLike --------------------------------------------------------------------------------------------------------
 */

typedef struct {
    int64_t k;     /* diagonal, above the main one where positive */
    HnDtype dtype; /* HN_UNDEFINED: the input's */
} HnEye;

static void eyelike_bind(HnBind *b, void *params)
{
    HnEye *p = params;
    int64_t dtype = hn_bind_int(b, "dtype", HN_UNDEFINED);
    p->k = hn_bind_int(b, "k", 0);
    if (dtype != HN_UNDEFINED && (dtype < 0 || dtype >= HN_DTYPE_COUNT || !hn_dtype_in((HnDtype)dtype, HN_T_COMPUTE)))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'dtype' cannot be %" PRId64, dtype);
    else
        p->dtype = (HnDtype)dtype;
}

static void eyelike_infer(HnInfer *x)
{
    const HnEye *p = x->params;
    int rank = hn_infer_rank(x, 0);
    if (rank >= 0 && rank != 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions instead of 2", rank);
    hn_infer_out_shape_of(x, 0, p->dtype != HN_UNDEFINED ? p->dtype : hn_infer_dtype(x, 0), 0);
}

static void eyelike_ref(HnEval *e)
{
    const HnEye *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    if (x->ndim != 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input has %d dimensions instead of 2", x->ndim);
        return;
    }
    void *y = hn_eval_out(e, 0, p->dtype != HN_UNDEFINED ? p->dtype : x->dtype, 2, x->dims);
    if (y == NULL)
        return;
    memset(y, 0, e->out[0]->bytes);
    int64_t rows = x->dims[0], cols = x->dims[1];
    for (int64_t i = p->k < 0 ? (p->k < -rows ? rows : -p->k) : 0; i < rows && p->k < cols - i; i++)
        hn_tensor_set_i64(e->out[0], i * cols + i + p->k, 1);
}

static void eyelike_unbind(HnUnbind *u)
{
    if (u->to < 9)
        hn_unbind_settle(u, 0);
}

const HnOp hn_op_eyelike = {
    .name = "EyeLike",
    .flags = HN_OP_SHAPE_ONLY,
    .since = { 9, 22 },
    .lacks = HN_LACKS(HN_BF16_SINCE(22), { 'U', 22, 0, HN_BIT(HN_BF16) }),
    .in = "T",
    .out = "U",
    .T = HN_T_COMPUTE,
    .U = HN_T_COMPUTE,
    .unbind = eyelike_unbind,
    .params_size = sizeof(HnEye),
    .bind = eyelike_bind,
    .infer = eyelike_infer,
    .ref = eyelike_ref,
};

/* --- Range ----------------------------------------------------------------------------------------------------------
 */

/* Numbers from start by delta, limit not included: how many; -1: no such number, or far too many. */
static int64_t range_count_f64(double start, double limit, double delta)
{
    double n = ceil((limit - start) / delta);
    return n <= 0 ? 0 : n < 0x1p62 ? (int64_t)n : -1; /* NaN is neither */
}

static int64_t range_count_i64(int64_t start, int64_t limit, int64_t delta)
{
    if (delta == 0)
        return -1;
    if (delta > 0 ? limit <= start : limit >= start)
        return 0;
    uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta, n = (distance - 1) / step + 1;
    return n <= INT64_MAX ? (int64_t)n : -1;
}

static int64_t range_count(const HnTensor *start, const HnTensor *limit, const HnTensor *delta)
{
    if (hn_dtype_in(start->dtype, HN_T_INTS))
        return range_count_i64(hn_tensor_get_i64(start, 0), hn_tensor_get_i64(limit, 0), hn_tensor_get_i64(delta, 0));
    return range_count_f64(hn_tensor_get_f64(start, 0), hn_tensor_get_f64(limit, 0), hn_tensor_get_f64(delta, 0));
}

static void range_contents(HnInfer *x, int64_t n)
{
    if (n < 0 || n > HN_CONTENTS_MAX || !hn_dtype_in(x->value[0]->dtype, HN_T_INTS))
        return;
    HnContents *c = hn_contents_new(1, (int)n);
    uint64_t v = (uint64_t)hn_tensor_get_i64(x->value[0], 0), step = (uint64_t)hn_tensor_get_i64(x->value[2], 0);
    for (int i = 0; i < c->n; i++, v += step)
        c->d[i] = hn_dim((int64_t)v);
    hn_infer_out_contents(x, 0, c);
}

static void range_infer(HnInfer *x)
{
    HnDim n = hn_dim_unknown(), d[3];
    gboolean values = TRUE, symbols = TRUE;
    for (int i = 0; i < 3; i++) {
        const HnContents *c = hn_infer_contents(x, i);
        values = values && x->value[i] != NULL && x->value[i]->n == 1;
        symbols = symbols && c != NULL && c->n == 1;
        if (symbols)
            d[i] = c->d[0];
        if (hn_infer_rank(x, i) > 1)
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is not a scalar", i);
    }
    if (values) {
        int64_t count = range_count(x->value[0], x->value[1], x->value[2]);
        if (count < 0)
            hn_infer_fail(x, HN_ERROR_VALUE, "start, limit and delta make no range");
        n = hn_dim(count);
        range_contents(x, count);
    } else if (symbols && d[2].known && d[2].n != 0) {
        HnDim distance = d[2].n > 0 ? hn_dim_sub(d[1], d[0]) : hn_dim_sub(d[0], d[1]);
        if (!hn_dim_nonnegative(distance))
            distance = hn_dim_max(distance, hn_dim(0));
        n = d[2].n == INT64_MIN ? n : hn_dim_ceil_div(distance, hn_dim(d[2].n > 0 ? d[2].n : -d[2].n));
    }
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), 1, &n);
}

static void range_ref(HnEval *e)
{
    const HnTensor *start = hn_eval_in(e, 0), *limit = hn_eval_in(e, 1), *delta = hn_eval_in(e, 2);
    for (int i = 0; i < 3; i++)
        if (e->in[i]->n != 1 || e->in[i]->dtype != start->dtype) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d is not a scalar of type %s", i, hn_dtype_name(start->dtype));
            return;
        }
    int64_t n = range_count(start, limit, delta);
    if (n < 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "start, limit and delta make no range");
        return;
    }
    void *out = hn_eval_out(e, 0, start->dtype, 1, &n);
    if (out == NULL)
        return;
    if (hn_dtype_in(start->dtype, HN_T_INTS)) {
        uint64_t v = (uint64_t)hn_tensor_get_i64(start, 0), step = (uint64_t)hn_tensor_get_i64(delta, 0);
#define COUNT(T)                               \
    T *y = out;                                \
    for (int64_t i = 0; i < n; i++, v += step) \
        y[i] = (T)v;
        HN_FOR_INT(start->dtype, COUNT)
#undef COUNT
        return;
    }
    double v = hn_tensor_get_f64(start, 0), step = hn_tensor_get_f64(delta, 0);
#define COUNT(T)                    \
    T *y = out;                     \
    for (int64_t i = 0; i < n; i++) \
        y[i] = (T)(v + (double)i * step);
    HN_FOR_FLOAT(start->dtype, COUNT)
#undef COUNT
}

static void range_unbind(HnUnbind *u)
{
    if (u->to < 11)
        hn_unbind_settle(u, 0);
}

const HnOp hn_op_range = {
    .name = "Range",
    .flags = HN_OP_HALF_VIA_F32, /* as stash_type 1 of opset 27 asks for; a double differs in no half result */
    .since = { 11, 27 },
    .forms = HN_FORMS({ "stash_type", HN_ATTR_INT, .since = 27, .any = TRUE }),
    .lacks = HN_LACKS({ 'T', 27, 0, HN_BIT(HN_F16) | HN_BIT(HN_BF16) }),
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS | HN_BIT(HN_I16) | HN_BIT(HN_I32) | HN_BIT(HN_I64),
    .unbind = range_unbind,
    .infer = range_infer,
    .ref = range_ref,
    .range = { .exact = "T" },
};
