/*
 * Planning: constants that are many bytes made of few.
 *
 * What DequantizeLinear, or Cast and Mul in its place, make of a large constant is not made ahead: most of it is never
 * read as numbers. Whoever does gets them when it asks (hn_plan_slot()), together with what only moves them on the way.
 */
#include "op/ops.h"
#include "pass/fuse/fuse_dequantize.h"
#include "run/plan.h"

gboolean hn_plan_unpacks(const HnPlan *p, HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    if (!p->integers || v == NULL || v->is_output ||
        ((n->op->flags & HN_OP_UNPACK) == 0 && !hn_spells_dequantize(p->known, n)))
        return FALSE;
    for (guint i = 0; i < v->users->len; i++)
        if (((const HnNode *)v->users->pdata[i])->graph != v->graph)
            return FALSE;
    return TRUE;
}

gboolean hn_plan_is_deferred(const HnPlan *p, const HnNode *n)
{
    if (!p->integers || n == NULL || n->out->len == 0 || hn_node_out(n, 0) == NULL || hn_node_out(n, 0)->is_output)
        return FALSE;
    return hn_lower_unpacks(p->types, n, HN_LOWER_MOVES);
}

/* What stands for v in all plans where it is made of the same. NULL: it is not deferred. */
static HnTensor *standin_of(const HnPlan *p, const HnValue *v)
{
    HnTensor *in[HN_CONSTANT_INPUTS] = { NULL };
    const HnNode *n = v->producer;
    if (n == NULL || n->in->len > G_N_ELEMENTS(in) || !hn_plan_is_deferred(p, n))
        return NULL;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *from = n->in->pdata[i];
        HnTensor *t = from != NULL ? hn_types_value(p->types, from) : NULL;
        in[i] = from == NULL || t != NULL ? hn_tensor_ref(t) : standin_of(p, from);
    }
    HnTensor *standin = hn_constants_standin(p->exec->env->engine->constants, hn_lowered_node(p->low, n), in);
    for (guint i = 0; i < n->in->len; i++)
        hn_tensor_unref(in[i]);
    return standin;
}

/* The elements of v, which is deferred. */
static HnTensor *unpacked(const HnPlan *p, const HnValue *v, GError **error)
{
    HnConstants *constants = p->exec->env->engine->constants;
    HnTensor *in[HN_CONSTANT_INPUTS] = { NULL }, *out[1] = { NULL };
    const HnNode *n = v->producer;
    gboolean ok = TRUE;
    for (guint i = 0; i < n->in->len && ok; i++) {
        const HnValue *from = n->in->pdata[i];
        HnTensor *t = from != NULL ? hn_types_value(p->types, from) : NULL;
        if (from != NULL)
            in[i] = t != NULL ? hn_constants_aligned(constants, t, error) : hn_plan_deferred(p, from, NULL, error);
        ok = from == NULL || in[i] != NULL;
    }
    HnEval e = { .node = n,
                 .params = n->params,
                 .n_in = (int)n->in->len,
                 .n_out = 1,
                 .in = in,
                 .out = out,
                 .budget = p->exec->env->o.budget };
    ok = ok && hn_op_eval(&e, error);
    for (guint i = 0; i < n->in->len; i++)
        hn_constants_unref(constants, in[i]);
    return ok ? out[0] : NULL;
}

HnTensor *hn_plan_deferred(const HnPlan *p, const HnValue *v, HnTensor **origin, GError **error)
{
    HnConstants *constants = p->exec->env->engine->constants;
    HnTensor *standin = standin_of(p, v);
    if (standin == NULL)
        return NULL;
    HnTensor *t = hn_constants_made(constants, standin);
    if (t == NULL && (t = unpacked(p, v, error)) != NULL)
        hn_constants_note_made(constants, standin, t);
    if (origin != NULL && t != NULL)
        *origin = standin;
    else
        hn_tensor_unref(standin);
    return t;
}
