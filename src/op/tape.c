#include "op/tape.h"

#include <stdarg.h>

#include "op/internal.h"

#define MOVED_INPUTS 5 /* inputs of an operator that moves, at most */

/* --- what is known ------------------------------------------------------------------------------------------------ */

gboolean hn_tape_needs(const HnTape *t, int i)
{
    return i < (int)t->node->in->len && t->needs[i];
}

HnValue *hn_tape_in(const HnTape *t, int i)
{
    return hn_node_in(t->node, i);
}

HnValue *hn_tape_out(const HnTape *t, int k)
{
    return hn_node_out(t->node, k);
}

HnValue *hn_tape_dy(const HnTape *t, int k)
{
    return k < (int)t->node->out->len ? t->dy[k] : NULL;
}

static const HnType *type_of(const HnTape *t, const HnValue *v)
{
    const HnType *type = v != NULL ? hn_types_get(t->types, v) : NULL;
    return hn_type_is_tensor(type) ? type : NULL;
}

int hn_tape_rank(const HnTape *t, int i)
{
    const HnType *type = type_of(t, hn_tape_in(t, i));
    return type != NULL ? type->rank : -1;
}

HnDtype hn_tape_dtype(const HnTape *t, const HnValue *v)
{
    const HnType *type = type_of(t, v);
    return type != NULL ? type->dtype : HN_UNDEFINED;
}

gboolean hn_tape_dims(const HnTape *t, int i, int64_t *dims)
{
    const HnType *type = type_of(t, hn_tape_in(t, i));
    return type != NULL && hn_type_is_fixed(type, dims);
}

gboolean hn_tape_out_dims(const HnTape *t, int k, int64_t *dims)
{
    const HnType *type = type_of(t, hn_tape_out(t, k));
    return type != NULL && hn_type_is_fixed(type, dims);
}

int hn_tape_ints(const HnTape *t, int i, int64_t *v)
{
    const HnValue *from = hn_tape_in(t, i);
    const HnTensor *e = from != NULL ? hn_types_value(t->types, from) : NULL;
    if (e == NULL || e->n > HN_MAX_RANK || !hn_dtype_in(e->dtype, HN_T_INTS))
        return -1;
    for (int64_t k = 0; k < e->n; k++)
        v[k] = hn_tensor_get_i64(e, k);
    return (int)e->n;
}

/* Both are known to be of one shape. */
static gboolean same_shape(const HnTape *t, const HnValue *a, const HnValue *b)
{
    return hn_type_same_shape(type_of(t, a), type_of(t, b));
}

/* --- giving --------------------------------------------------------------------------------------------------------
 */

void hn_tape_refuse(HnTape *t, const char *format, ...)
{
    if (t->error != NULL)
        return;
    va_list args;
    va_start(args, format);
    t->error = g_error_new_valist(HN_ERROR, HN_ERROR_UNSUPPORTED, format, args);
    va_end(args);
}

void hn_tape_give(HnTape *t, int i, HnValue *dx)
{
    if (dx == NULL || !hn_tape_needs(t, i))
        return;
    t->dx[i] = t->dx[i] != NULL ? hn_build_op2(t->build, "Add", t->dx[i], dx) : dx;
}

void hn_tape_give_sum(HnTape *t, int i, HnValue *dx)
{
    if (dx == NULL || !hn_tape_needs(t, i))
        return;
    HnValue *x = hn_tape_in(t, i);
    hn_tape_give(t, i, same_shape(t, x, hn_tape_out(t, 0)) ? dx : hn_tape_sum_like(t, dx, x));
}

void hn_tape_ends(HnTape *t, int i)
{
    if (i < (int)t->node->in->len)
        t->ends[i] = TRUE;
}

void hn_tape_map(HnTape *t, const char *expression)
{
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_calc(t, expression, NULL));
}

void hn_tape_operand(HnTape *t, int i, const char *expression)
{
    if (hn_tape_needs(t, i))
        hn_tape_give_sum(t, i, hn_tape_calc(t, expression, NULL));
}

/* --- building -------------------------------------------------------------------------------------------------------
 */

HnValue *hn_tape_number(HnTape *t, double v)
{
    HnTensor *e = hn_tensor_new(t->dtype, 0, NULL, NULL, NULL);
    hn_tensor_set_f64(e, 0, v);
    return hn_build_constant(t->build, "number", e);
}

HnValue *hn_tape_sum_like(HnTape *t, HnValue *v, HnValue *like)
{
    HnValue *in[] = { v, like };
    return hn_node_out(hn_build_node(t->build, "SumLike", HN_DOMAIN_INTERNAL, 2, in, 1), 0);
}

HnValue *hn_tape_reshape_like(HnTape *t, HnValue *v, HnValue *like)
{
    HnValue *y = hn_build_op2(t->build, "Reshape", v, hn_build_shape(t->build, like, 0, INT64_MAX));
    hn_node_set_int(y->producer, "allowzero", 1);
    return y;
}

HnNode *hn_tape_backward(HnTape *t, const char *op, int n_in, HnValue *const *in, int n_out)
{
    HnNode *n = hn_build_node(t->build, op, HN_DOMAIN_INTERNAL, n_in, in, n_out);
    hn_node_share_attrs(n, t->node);
    return n;
}

void hn_tape_become(HnTape *t, const char *op, int n_out)
{
    HnNode *n = t->node;
    hn_node_become(n, op, HN_DOMAIN_INTERNAL);
    n->version = HN_OPSET_MAX;
    t->params = NULL;
    for (int k = 0; k < n_out; k++)
        if (hn_node_out(n, k) == NULL)
            hn_node_set_out(n, k, hn_graph_new_value(n->graph, op));
    if (t->error == NULL && hn_op_bind(n, &t->error))
        t->params = n->params;
}

HnValue *hn_tape_zeros(HnTape *t, HnValue *like)
{
    return hn_build_op2(t->build, "Expand", hn_tape_number(t, 0), hn_build_shape(t->build, like, 0, INT64_MAX));
}

void hn_tape_reshaped(HnTape *t)
{
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, hn_tape_reshape_like(t, hn_tape_dy(t, 0), hn_tape_in(t, 0)));
}

HnValue *hn_tape_places(HnTape *t, HnValue *like)
{
    HnValue *one = hn_build_list(t->build, (int64_t[]){ 1 }, 1);
    HnValue *all = hn_build_op2(t->build, "Expand", one, hn_build_shape(t->build, like, 0, INT64_MAX));
    HnValue *flat = hn_build_reshape(t->build, all, (int64_t[]){ -1 }, 1);
    HnValue *axis = hn_build_constant(t->build, "axis", hn_tensor_new(HN_I64, 0, NULL, NULL, NULL));
    hn_tensor_set_i64(axis->weight, 0, 0);
    return hn_tape_reshape_like(t, hn_build_op2(t->build, "CumSum", flat, axis), like);
}

void hn_tape_moved(HnTape *t)
{
    HnValue *x = hn_tape_in(t, 0), *in[MOVED_INPUTS] = { NULL };
    if (!hn_tape_needs(t, 0))
        return;
    in[0] = hn_tape_places(t, x);
    for (int i = 1; i < (int)t->node->in->len && i < MOVED_INPUTS; i++) {
        const HnType *type = type_of(t, hn_tape_in(t, i));
        in[i] = type != NULL && hn_dtype_in(type->dtype, HN_T_FLOATS) ? NULL : hn_tape_in(t, i);
    }
    HnNode *n = hn_build_node(t->build, t->node->op_type, t->node->domain, MOVED_INPUTS, in, 1);
    hn_node_share_attrs(n, t->node);
    HnValue *back[] = { hn_tape_dy(t, 0), hn_node_out(n, 0), x };
    hn_tape_give(t, 0, hn_node_out(hn_build_node(t->build, "ScatterAdd", HN_DOMAIN_INTERNAL, 3, back, 1), 0));
}

void hn_tape_apart(HnTape *t)
{
    t->apart = TRUE;
}

void hn_tape_steps(HnTape *t)
{
    if (hn_tape_needs(t, 0))
        hn_tape_give(t, 0, t->straight ? hn_tape_dy(t, 0) : hn_tape_zeros(t, hn_tape_in(t, 0)));
}

gboolean hn_op_grad(HnTape *t, GError **error)
{
    const HnOp *op = t->node->op;
    for (int k = 0; k < (int)t->node->out->len && t->dtype == HN_UNDEFINED; k++)
        if (hn_tape_dy(t, k) != NULL)
            t->dtype = hn_tape_dtype(t, hn_tape_out(t, k));
    if (op == NULL || op->grad == NULL)
        hn_tape_refuse(t, "operator '%s' has no gradient", t->node->op_type);
    else if (t->dtype == HN_UNDEFINED)
        hn_tape_refuse(t, "the type of what operator '%s' gives is not known", op->name);
    else
        op->grad(t);
    if (t->error == NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&t->error));
    return FALSE;
}
