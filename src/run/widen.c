/*
 * Planning: halves held in f32.
 *
 * A backend that computes f16 and bf16 in f32 would convert around each node, and round what nobody asked to be
 * rounded. Where its `widens` is set, results of such nodes stay f32 until somebody needs the half itself: a result of
 * the graph, a control node, an operator that has no f32 form. Constants are converted for the plan and dropped again
 * where kernels packed them.
 */
#include "run/plan.h"

static HnDtype dtype_of(const HnPlan *p, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(p->types, v) : NULL;
    return t != NULL ? t->dtype : HN_UNDEFINED;
}

gboolean hn_plan_widens(const HnPlan *p, const HnNode *n)
{
    const int n_in = (int)n->in->len, n_out = (int)n->out->len;
    g_autofree HnDtype *dtype = g_new0(HnDtype, (gsize)(n_in + n_out) + 1);
    gboolean half = FALSE, held = FALSE;
    if (!p->exec->env->backend->widens || (n->op->flags & (HN_OP_CONTROL | HN_OP_RANDOM)) != 0)
        return FALSE;
    for (int i = 0; i < n_in + n_out; i++) {
        const HnValue *v = i < n_in ? hn_node_in(n, i) : hn_node_out(n, i - n_in);
        const HnSlot *slot = v != NULL && i < n_in ? hn_plan_find_slot(p, v) : NULL;
        dtype[i] = dtype_of(p, v);
        if (i >= n_in && v != NULL && !hn_type_is_fixed(hn_types_get(p->types, v), NULL))
            return FALSE; /* the result is made as ref has it */
        half = half || hn_dtype_is_half(dtype[i]);
        held = held || (slot != NULL && slot->half != HN_UNDEFINED);
    }
    return half && (held || (n->op->flags & HN_OP_HALF_VIA_F32) != 0) &&
           hn_op_widens(n->op, n_in, dtype, n_out, dtype + n_in);
}

/* The constant's elements in f32. */
static gboolean fill(HnPlan *p, HnSlot *s, GError **error)
{
    HnTensor *t = hn_constants_wide(p->exec->env->engine->constants, s->origin, error);
    if (t == NULL)
        return FALSE;
    hn_tensor_unref(s->tensor);
    s->tensor = t;
    return TRUE;
}

static HnSlot *wide_constant(HnPlan *p, HnSlot *from, GError **error)
{
    HnTensor *half = hn_constants_source(p->exec->env->engine->constants, from->tensor);
    HnSlot *s = NULL;
    for (guint i = 0; i < p->slots->len && s == NULL; i++) {
        HnSlot *other = p->slots->pdata[i];
        if (other->origin == half && other->half != HN_UNDEFINED)
            s = other;
    }
    if (s == NULL) {
        s = hn_plan_new_slot(p);
        s->value = from->value;
        s->constant = TRUE;
        s->half = half->dtype;
        s->origin = hn_tensor_ref(half);
    }
    return (s->tensor != NULL && s->tensor->data != NULL) || fill(p, s, error) ? s : NULL;
}

HnSlot *hn_plan_held(HnPlan *p, HnSlot *from, gboolean wide, GError **error)
{
    if (from->tensor == NULL || (wide ? !hn_dtype_is_half(from->tensor->dtype) : from->half == HN_UNDEFINED))
        return from;
    if (wide && from->constant)
        return wide_constant(p, from, error);
    const HnDtype half = wide ? from->tensor->dtype : from->half;
    HnSlot *to = NULL;
    if ((from = hn_plan_in_layout(p, from, NULL, error)) == NULL ||
        (to = hn_plan_converted(p, from, wide ? HN_F32 : half, NULL, error)) == NULL)
        return NULL;
    to->half = wide ? half : HN_UNDEFINED;
    return to;
}

void hn_plan_widen_result(HnSlot *s)
{
    if (s->tensor == NULL || !hn_dtype_is_half(s->tensor->dtype))
        return;
    s->half = s->tensor->dtype;
    HnTensor *t = hn_tensor_new_borrowed(HN_F32, s->tensor->ndim, s->tensor->dims, NULL);
    hn_tensor_unref(s->tensor);
    s->tensor = t;
}

gboolean hn_plan_round_results(HnPlan *p, const HnStep *s, GError **error)
{
    for (int k = 0; k < s->n_out && p->exec->env->o.round_halves; k++) {
        HnSlot *wide = s->out[k].slot;
        if (wide == NULL || wide->half == HN_UNDEFINED || wide->lowered == NULL)
            continue;
        const HnValue *v = wide->lowered;
        HnSlot *half = hn_plan_held(p, wide, FALSE, error);
        if (half == NULL)
            return FALSE;
        hn_plan_set_slot(p, v, half);
    }
    return TRUE;
}

static void drop_unread(HnPlan *p, HnSlot *s)
{
    if (s == NULL || s->origin == NULL || s->tensor == NULL || s->tensor->data == NULL || s->read)
        return;
    HnTensor *t = hn_tensor_new_borrowed(s->tensor->dtype, s->tensor->ndim, s->tensor->dims, NULL);
    hn_constants_unref(p->exec->env->engine->constants, s->tensor);
    s->tensor = t;
}

void hn_plan_drop_wide(HnPlan *p)
{
    for (guint i = 0; i < p->slots->len; i++)
        drop_unread(p, p->slots->pdata[i]);
}

void hn_plan_drop_packed(HnPlan *p, const HnStep *step)
{
    for (int i = 0; i < step->n_in; i++) {
        HnSlot *s = step->in[i].unread ? step->in[i].slot : NULL;
        if (s != NULL && s->value != NULL && s->value->users->len == 1)
            drop_unread(p, s);
    }
}
