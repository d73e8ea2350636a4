/*
 * DequantizeLinear instead of what spells it out for a constant of 8 bits:
 *     Mul(Cast(q), scale)    Mul(Sub(Cast(q), zero), scale)
 * (Cast by way of i32 too) with one scale, or one for each index of an axis. Both round once, the product: not a bit
 * differs. The numbers stay in 8 bits in the file, and what reads them may do with these.
 */
#include "pass/fuse/fuse_dequantize.h"

#include "op/cast.h"
#include "pass/pattern.h"

typedef struct {
    HnValue *q;
    HnTensor *scale, *zero; /* zero: NULL where none is subtracted */
    int axis;               /* of q, that scales or zero points belong to; -1: there is one of each */
} Found;

/* t, broadcast to q's dims without changing them, has one element (*axis: -1), or one for each index of *axis. */
static gboolean lies_along(const HnTensor *t, const HnTensor *q, int *axis)
{
    *axis = -1;
    if (t->ndim > q->ndim || t->n == 0)
        return FALSE;
    for (int i = 0; i < t->ndim; i++) {
        const int a = q->ndim - t->ndim + i;
        if (t->dims[i] == 1)
            continue;
        if (*axis >= 0 || t->dims[i] != q->dims[a])
            return FALSE;
        *axis = a;
    }
    return TRUE;
}

/* Every element is an integer that q's type holds. */
static gboolean are_integers(const HnTensor *t, HnDtype dtype)
{
    const int least = dtype == HN_U8 ? 0 : -128;
    for (int64_t i = 0; i < t->n; i++) {
        const double x = hn_tensor_get_f64(t, i);
        if (!(x >= least && x <= least + 255) || x != (double)(int)x)
            return FALSE;
    }
    return TRUE;
}

/* The Cast of q, perhaps by way of wider integers, that v, f32, comes from. */
static HnNode *cast_of(const HnRewrite *r, const HnGraph *g, const HnValue *v)
{
    HnNode *n = hn_pattern_maker(g, v, &hn_op_cast);
    if (n == NULL || hn_rw_dtype(r, v) != HN_F32)
        return NULL;
    if (hn_dtype_in(hn_rw_dtype(r, hn_node_in(n, 0)), HN_BIT(HN_I16) | HN_BIT(HN_I32) | HN_BIT(HN_I64)))
        n = hn_pattern_maker(g, hn_node_in(n, 0), &hn_op_cast);
    if (n == NULL || hn_rw_known(r, hn_node_in(n, 0)) == NULL)
        return NULL;
    const HnDtype d = hn_rw_dtype(r, hn_node_in(n, 0));
    return d == HN_U8 || d == HN_I8 ? n : NULL;
}

/* One of n's inputs is `data`, made by a Cast, or by a Sub of a zero point from one. */
static gboolean read_data(HnRewrite *r, const HnNode *n, HnValue *data, Found *f)
{
    const HnNode *cast = cast_of(r, n->graph, data);
    const HnNode *sub = cast == NULL ? hn_pattern_maker(n->graph, data, &hn_op_sub) : NULL;
    if (sub != NULL && sub->version >= 7)
        cast = cast_of(r, n->graph, hn_node_in(sub, 0));
    if (cast == NULL)
        return FALSE;
    f->q = hn_node_in(cast, 0);
    f->zero = sub != NULL ? hn_rw_known(r, hn_node_in(sub, 1)) : NULL;
    if (sub != NULL && f->zero == NULL)
        return hn_rw_miss(r, n, "what is subtracted is not constant");
    return TRUE;
}

static gboolean read_steps(HnRewrite *r, const HnNode *n, Found *f)
{
    const HnTensor *q = hn_rw_known(r, f->q);
    int of_scale, of_zero = -1;
    if (!lies_along(f->scale, q, &of_scale) || (f->zero != NULL && !lies_along(f->zero, q, &of_zero)))
        return hn_rw_miss(r, n, "its constants are not one for all of '%s' or for each index of an axis", f->q->name);
    if (of_scale >= 0 && of_zero >= 0 && of_scale != of_zero)
        return hn_rw_miss(r, n, "scales and zero points belong to different axes");
    if (f->zero != NULL && !are_integers(f->zero, q->dtype))
        return hn_rw_miss(r, n, "what is subtracted is no integer of '%s'", f->q->name);
    f->axis = MAX(of_scale, of_zero);
    return TRUE;
}

/* As many as the axis is long, or one, of another type; NULL: no memory. */
static HnTensor *list_of(const HnRewrite *r, const HnTensor *t, HnDtype dtype, const Found *f)
{
    const int64_t n = f->axis >= 0 ? hn_rw_known(r, f->q)->dims[f->axis] : 1;
    HnTensor *list = hn_tensor_new_uninit(dtype, f->axis >= 0, &n, hn_rw_budget(r), NULL);
    for (int64_t i = 0; list != NULL && i < n; i++)
        hn_tensor_set_f64(list, i, hn_tensor_get_f64(t, t->n == 1 ? 0 : i));
    return list;
}

static gboolean find(HnRewrite *r, const HnNode *n, Found *f)
{
    if (n->op != &hn_op_mul || n->version < 7 || hn_rw_dtype(r, hn_node_out(n, 0)) != HN_F32)
        return FALSE;
    for (int i = 0; i < 2; i++) {
        *f = (Found){ .scale = hn_rw_known(r, hn_node_in(n, 1 - i)), .axis = -1 };
        if (f->scale != NULL && read_data(r, n, hn_node_in(n, i), f))
            return read_steps(r, n, f);
    }
    return FALSE;
}

static gboolean fuse_dequantize(HnRewrite *r, HnNode *n)
{
    Found f;
    if (!find(r, n, &f))
        return FALSE;
    if (!hn_rw_can(n->graph, &hn_op_dequantizelinear, f.axis >= 0 ? 13 : 10))
        return hn_rw_miss(r, n, "DequantizeLinear of this form needs opset %d", f.axis >= 0 ? 13 : 10);
    if (!hn_rw_go(r, n))
        return FALSE;
    const HnDtype dtype = hn_rw_dtype(r, f.q);
    HnValue *scale = hn_rw_weight(r, n->graph, "scale", list_of(r, f.scale, HN_F32, &f)), *zero = NULL;
    if (f.zero != NULL)
        zero = hn_rw_weight(r, n->graph, "zero", list_of(r, f.zero, dtype, &f));
    HnNode *made = hn_rw_add(r, n, "DequantizeLinear", HN_INS(f.q, scale, zero));
    if (f.axis >= 0)
        hn_node_set_int(made, "axis", f.axis);
    return hn_rw_take(r, made, n);
}

/* --- for planning ------------------------------------------------------------------------------------------------- */

static gboolean is_only_scaled(const HnTypes *types, const HnValue *v, const HnTensor *q, gboolean shifted)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        const int at = hn_node_in(n, 0) == v ? 0 : 1;
        const gboolean subtracts = n->op == &hn_op_sub && at == 0 && !shifted;
        int axis;
        if (n->graph != v->graph || (n->op != &hn_op_mul && !subtracts) || n->version < 7)
            return FALSE;
        const HnTensor *t = hn_types_value(types, hn_node_in(n, 1 - at));
        if (t == NULL || !lies_along(t, q, &axis) || hn_node_out(n, 0)->is_output ||
            (subtracts && !is_only_scaled(types, hn_node_out(n, 0), q, TRUE)))
            return FALSE;
    }
    return v->users->len > 0 && !v->is_output;
}

gboolean hn_spells_dequantize(const HnTypes *types, const HnNode *n)
{
    const HnTensor *q = n->op == &hn_op_cast ? hn_types_value(types, hn_node_in(n, 0)) : NULL;
    return q != NULL && (q->dtype == HN_I8 || q->dtype == HN_U8) && ((const HnCast *)n->params)->to == HN_F32 &&
           is_only_scaled(types, hn_node_out(n, 0), q, FALSE);
}

const HnPass hn_pass_fuse_dequantize = {
    .name = "fuse-dequantize",
    .summary = "DequantizeLinear instead of Cast, Sub and Mul of a constant of 8 bits",
    .level = 3,
    .node = fuse_dequantize,
};
