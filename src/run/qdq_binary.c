/*
 * Planning: sums, products and means of numbers that are held as bytes, and what all steps on bytes read.
 */
#include <math.h>
#include <string.h>

#include "op/ops.h"
#include "op/quantbinary.h"
#include "op/quantpool.h"
#include "op/quantlinear.h"
#include "op/reduce.h"
#include "run/qdq_fusion.h"

/* --- what steps read and make ---------------------------------------------------------------------------------------
 */

/* x, and what others make of the same QuantizeLinear's result, are the slot's bytes from now on. */
static void hold_all(HnPlan *p, const HnValue *x, const HnQdqValue *before, HnSlot *slot, const HnQdqValue *h)
{
    const HnNode *n = x->producer;
    const HnValue *q = n != NULL && n->op == &hn_op_dequantizelinear ? hn_node_in(n, 0) : NULL;
    const HnQdqValue *of_q = hn_plan_quantized_as(p, q);
    if (of_q != NULL && memcmp(of_q->value, before->value, sizeof before->value) == 0) {
        for (guint i = 0; i < q->users->len; i++) {
            const HnValue *v = hn_node_out(q->users->pdata[i], 0);
            if (hn_plan_quantized_as(p, v) != NULL && v != x)
                hn_qdq_hold(p, v, slot, g_memdup2(h, sizeof *h));
        }
        hn_qdq_hold(p, q, slot, g_memdup2(h, sizeof *h));
    }
    hn_qdq_hold(p, x, slot, g_memdup2(h, sizeof *h));
}

HnSlot *hn_qdq_as_step(HnPlan *p, const HnNode *n, const HnValue *x, GError **error)
{
    const HnQdqValue *h = hn_plan_quantized_as(p, x);
    HnSlot *slot = hn_plan_find_slot(p, x);
    const HnQparams to = h->fit;
    uint8_t map[HN_BYTES];
    if (h->plain)
        return slot;
    for (int i = 0; i < HN_BYTES; i++) {
        map[i] = (uint8_t)hn_qdq_of(&to, h->value[i]);
        if (hn_qdq_occurs(h, i) && hn_qdq_number(&to, map[i]) != h->value[i])
            return NULL;
    }
    HnQdqValue *plain = hn_qdq_held_whole(&to);
    if (!hn_qdq_change_nothing(h, map, to.dtype))
        slot = hn_qdq_exchanged(p, n, x, slot, map, to.dtype, NULL, error);
    if (slot != NULL)
        hold_all(p, x, h, slot, plain);
    g_free(plain);
    return slot;
}

HnSlot *hn_qdq_scalar(HnPlan *p, const HnValue *v, HnDtype dtype)
{
    if (v != NULL)
        return hn_qdq_constant(p, hn_tensor_ref(hn_types_value(p->types, v)));
    HnTensor *t = hn_tensor_new(dtype, 0, NULL, NULL, NULL);
    return t != NULL ? hn_qdq_constant(p, t) : NULL;
}

/* What a step makes: bytes as all readers want them, or numbers. */
typedef struct {
    const HnValue *v;
    const HnRequantize *want; /* NULL: numbers */
    float lo, hi;
} Result;

static Result result_of(const HnPlan *p, const HnValue *v, float lo, float hi)
{
    const HnRequantize *want = g_hash_table_lookup(p->wants, v);
    return (Result){ v, want, want != NULL ? MAX(lo, want->lo) : lo, want != NULL ? MIN(hi, want->hi) : hi };
}

/* The slot of s's result; inputs `scale` and `scale` + 1 say what its bytes are. *held: what they stand for, or NULL.
 */
static gboolean set_result(HnPlan *p, HnStep *s, const Result *r, int scale, HnQdqValue **held, GError **error)
{
    const HnRequantize *w = r->want;
    *held = NULL;
    if (w == NULL) {
        s->out[0].slot = hn_plan_result_slot(p, r->v, hn_types_get(p->types, r->v), error);
        return s->out[0].slot != NULL;
    }
    s->in[scale].slot = hn_qdq_scalar(p, w->step.scale_of, HN_F32);
    s->in[scale + 1].slot = hn_qdq_scalar(p, w->step.zero_of, w->step.dtype);
    if (s->in[scale].slot == NULL || s->in[scale + 1].slot == NULL ||
        (s->out[0].slot = hn_qdq_slot(p, r->v, w->step.dtype, error)) == NULL)
        return FALSE;
    const HnQuantProduct limits = { .lo = r->lo, .hi = r->hi };
    const HnQuantBounds b = hn_quant_bounds(&limits, w->step.dtype, w->step.scale, w->step.zero);
    *held = hn_qdq_held(&w->step, (int)b.lo + w->step.zero, (int)b.hi + w->step.zero);
    return TRUE;
}

static gboolean finish(HnPlan *p, HnStep *s, const Result *r, HnQdqValue *held, gboolean *done, GError **error)
{
    const gboolean ok = hn_qdq_finish(p, s, done, error);
    if (ok && *done && held != NULL)
        g_hash_table_insert(p->held, (gpointer)r->v, held);
    else
        g_free(held);
    return ok;
}

/* The step cannot be; TRUE where that is no error. */
static gboolean decline(HnStep *s, HnQdqValue *held, GError *failure, GError **error)
{
    g_free(held);
    hn_step_free(s);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

/* --- two operands --------------------------------------------------------------------------------------------------
 */

static gboolean has_dims_of(const HnPlan *p, const HnValue *a, const HnValue *b)
{
    int64_t x[HN_MAX_RANK], y[HN_MAX_RANK];
    const HnType *s = hn_types_get(p->types, a), *t = hn_types_get(p->types, b);
    return s != NULL && t != NULL && hn_type_is_fixed(s, x) && hn_type_is_fixed(t, y) && s->rank == t->rank &&
           memcmp(x, y, (gsize)s->rank * sizeof *x) == 0;
}

/* Nodes behind the first one only limit its result. */
static gboolean only_limits(const HnPlan *p, HnNode *const *nodes, guint n_nodes, float *lo, float *hi)
{
    *lo = -INFINITY;
    *hi = INFINITY;
    for (guint i = 0; i < n_nodes; i++) {
        float from, to;
        if (g_hash_table_contains(p->fused, nodes[i]))
            return FALSE;
        if (i == 0)
            continue;
        if (hn_node_in(nodes[i], 0) != hn_node_out(nodes[i - 1], 0) || !hn_qdq_limits(p, nodes[i], &from, &to))
            return FALSE;
        *lo = MAX(*lo, from);
        *hi = MIN(*hi, to);
    }
    return *lo <= *hi;
}

/* Fills in the ports of an operand: bytes with their step, or numbers. FALSE: an error, or, without one, it is no
 * operand for a step of bytes. */
static gboolean set_operand(HnPlan *p, const HnNode *n, HnValue *v, HnPort *x, HnPort *scale, HnPort *zero,
                            GError **error)
{
    if (hn_plan_quantized_as(p, v) == NULL)
        return (x->slot = hn_plan_slot(p, v, error)) != NULL;
    if ((x->slot = hn_qdq_as_step(p, n, v, error)) == NULL)
        return FALSE;
    const HnQparams *step = &hn_plan_quantized_as(p, v)->step;
    scale->slot = hn_qdq_scalar(p, step->scale_of, HN_F32);
    zero->slot = hn_qdq_scalar(p, step->zero_of, step->dtype);
    return scale->slot != NULL && zero->slot != NULL;
}

gboolean hn_qdq_add_binary(HnPlan *p, HnNode *const *nodes, guint n_nodes, gboolean *done, GError **error)
{
    HnNode *n = nodes[0];
    const HnValue *v = hn_node_out(nodes[n_nodes - 1], 0);
    const gboolean product = n->op == &hn_op_mul;
    float lo, hi;
    if (n->op->quant.bytes != HN_QB_PAIR || n->version < 7 || !only_limits(p, nodes, n_nodes, &lo, &hi))
        return TRUE;
    HnValue *a = hn_node_in(n, 0), *b = hn_node_in(n, 1);
    const gboolean turned = hn_plan_quantized_as(p, a) == NULL || !has_dims_of(p, a, v);
    if (turned) {
        a = b;
        b = hn_node_in(n, 0);
    }
    if (hn_plan_quantized_as(p, a) == NULL || !has_dims_of(p, a, v) || hn_qdq_dtype(p, v) != HN_F32 ||
        hn_qdq_dtype(p, b) != HN_F32)
        return TRUE;
    const Result r = result_of(p, v, lo, hi);
    HnQuantBinary params = { r.lo, r.hi, n->op == &hn_op_sub && turned, n->op == &hn_op_sub && !turned };
    HnStep *s = hn_step_new(p, nodes[n_nodes - 1], HN_QUANTBINARY_INPUTS, 0, 1);
    HnQdqValue *held = NULL;
    GError *failure = NULL;
    s->op = product ? &hn_op_quantmul : &hn_op_quantadd;
    s->params = g_memdup2(&params, sizeof params);
    g_ptr_array_add(p->owned, (gpointer)s->params);
    if (!set_operand(p, n, a, &s->in[HN_QUANTBINARY_A], &s->in[HN_QUANTBINARY_A_SCALE], &s->in[HN_QUANTBINARY_A_ZERO],
                     &failure) ||
        !set_operand(p, n, b, &s->in[HN_QUANTBINARY_B], &s->in[HN_QUANTBINARY_B_SCALE], &s->in[HN_QUANTBINARY_B_ZERO],
                     &failure) ||
        !set_result(p, s, &r, HN_QUANTBINARY_Y_SCALE, &held, &failure))
        return decline(s, held, failure, error);
    return finish(p, s, &r, held, done, error);
}

/* --- means ---------------------------------------------------------------------------------------------------------
 */

/* The mean over all axes from 2 on. */
static gboolean is_spatial_mean(const HnPlan *p, const HnNode *n, int rank)
{
    const HnReduce *r = n->params;
    const HnTensor *t = hn_node_in(n, 1) != NULL ? hn_types_value(p->types, hn_node_in(n, 1)) : NULL;
    const int64_t count = t != NULL ? t->n : r->axes != NULL ? r->n_axes : 0;
    unsigned seen = 0;
    for (int64_t i = 0; i < count && i < HN_MAX_RANK; i++) {
        const int64_t axis = t != NULL ? hn_tensor_get_i64(t, i) : r->axes[i];
        const int64_t at = axis < 0 ? axis + rank : axis;
        if (at < 2 || at >= rank)
            return FALSE;
        seen |= 1u << at;
    }
    return rank >= 3 && count == rank - 2 && seen == (1u << rank) - 4;
}

static gboolean mean_of(const HnPlan *p, const HnNode *n, HnQuantPool *q)
{
    const HnType *x = hn_node_in(n, 0) != NULL ? hn_types_get(p->types, hn_node_in(n, 0)) : NULL;
    const gboolean windows = n->op == &hn_op_averagepool, reduces = n->op == &hn_op_reducemean;
    *q = (HnQuantPool){ .whole = !windows };
    if (windows)
        q->pool = *(const HnPool *)n->params;
    else if (reduces)
        q->flat = !((const HnReduce *)n->params)->keepdims;
    else if (n->op != &hn_op_globalaveragepool)
        return FALSE;
    return x != NULL && x->rank >= 3 && (!reduces || is_spatial_mean(p, n, x->rank));
}

gboolean hn_qdq_add_mean(HnPlan *p, HnNode *n, gboolean *done, GError **error)
{
    HnValue *x = hn_node_in(n, 0);
    const HnValue *v = hn_node_out(n, 0);
    HnQuantPool q;
    if (hn_plan_quantized_as(p, x) == NULL || hn_qdq_dtype(p, v) != HN_F32 || !mean_of(p, n, &q))
        return TRUE;
    const Result r = result_of(p, v, -INFINITY, INFINITY);
    HnQdqValue *held = NULL;
    GError *failure = NULL;
    q.lo = r.lo;
    q.hi = r.hi;
    HnStep *s = hn_step_new(p, n, HN_MEAN_INPUTS, 0, 1);
    s->op = &hn_op_quantaveragepool;
    s->params = g_memdup2(&q, sizeof q);
    g_ptr_array_add(p->owned, (gpointer)s->params);
    if (!set_operand(p, n, x, &s->in[HN_MEAN_X], &s->in[HN_MEAN_X_SCALE], &s->in[HN_MEAN_X_ZERO], &failure) ||
        !set_result(p, s, &r, HN_MEAN_Y_SCALE, &held, &failure))
        return decline(s, held, failure, error);
    return finish(p, s, &r, held, done, error);
}
