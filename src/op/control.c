#include "op/control.h"

#include <math.h>

#include "op/index.h"
#include "op/ops.h"

/* --- types ------------------------------------------------------------------------------------------------------- */

void hn_control_out(HnInfer *x, int k, HnType *t)
{
    if (k < x->n_out && x->error == NULL) {
        hn_type_unref(x->out[k]);
        x->out[k] = t;
    } else {
        hn_type_unref(t);
    }
}

void hn_control_unref_types(HnType **types, int n)
{
    for (int i = 0; i < n; i++) {
        hn_type_unref(types[i]);
        types[i] = NULL;
    }
}

/* Not less than `wide` says; a type that is not known says nothing. */
static gboolean covers(HnType *wide, HnType *t)
{
    if (hn_type_is_list(wide))
        return t != NULL && t->kind == wide->kind && t->dtype == wide->dtype && covers(wide->elem, t->elem);
    if (!hn_type_is_tensor(wide))
        return TRUE;
    if (!hn_type_is_tensor(t) || (wide->dtype != t->dtype && wide->dtype != HN_UNDEFINED))
        return FALSE;
    if (wide->rank < 0)
        return TRUE;
    if (wide->rank != t->rank)
        return FALSE;
    for (int i = 0; i < wide->rank; i++)
        if ((wide->dims[i].known || wide->dims[i].sym != NULL) && !hn_dim_equal(wide->dims[i], t->dims[i]))
            return FALSE;
    return TRUE;
}

gboolean hn_control_carry(HnInfer *x, HnGraph *body, int n_in, HnType **in, int at_in, int n_out, HnType **out,
                          int at_out, int n)
{
    for (int round = 0;; round++) {
        gboolean stable = TRUE;
        if (!x->graph(x, body, n_in, in, n_out, out))
            return FALSE;
        for (int i = 0; i < n; i++) {
            HnType **t = &in[at_in + i], *next;
            if (covers(*t, out[at_out + i]))
                continue;
            stable = FALSE;
            next = round < 2 ? hn_type_common(*t, out[at_out + i]) : NULL; /* dimension, rank, then nothing */
            hn_type_unref(*t);
            *t = next;
        }
        if (stable)
            return TRUE;
        hn_control_unref_types(out, n_out);
    }
}

/* --- tensors ----------------------------------------------------------------------------------------------------- */

void hn_control_unref(HnTensor **t, int n)
{
    for (int i = 0; i < n; i++) {
        hn_tensor_unref(t[i]);
        t[i] = NULL;
    }
}

/* Can elements be cut off one by one? */
static gboolean whole_bytes(HnEval *e, HnDtype dtype)
{
    if (dtype == HN_STRING || hn_dtype_bits(dtype) >= 8)
        return TRUE;
    if (hn_dtype_is_list(dtype))
        hn_eval_fail(e, HN_ERROR_TYPE, "a %s cannot be cut or stacked", hn_dtype_name(dtype));
    else
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%s elements cannot be cut or stacked", hn_dtype_name(dtype));
    return FALSE;
}

static HnTensor *empty_stack(HnEval *e, int64_t total, int64_t axis, const HnValue *formal)
{
    const HnType *t = formal != NULL ? formal->type : NULL;
    int64_t dims[HN_MAX_RANK];
    if (!hn_type_is_tensor(t) || t->rank >= HN_MAX_RANK || t->dtype == HN_UNDEFINED) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "output '%s' of a body that never runs has no declared type",
                     formal != NULL ? formal->name : "");
        return NULL;
    }
    int rank = MAX(t->rank, 0), at = hn_eval_axis(e, axis, rank + 1);
    if (at < 0)
        return NULL;
    for (int i = 0; i <= rank; i++) {
        const HnDim *d = i != at ? &t->dims[i < at ? i : i - 1] : NULL;
        dims[i] = d == NULL ? total : d->known ? d->n : 0;
    }
    return hn_tensor_new(t->dtype, rank + 1, dims, e->budget, &e->error);
}

HnTensor *hn_control_stack(HnEval *e, GPtrArray *items, int64_t total, int64_t axis, gboolean reversed,
                           const HnValue *formal)
{
    if (items->len == 0)
        return empty_stack(e, total, axis, formal);
    const HnTensor *first = items->pdata[0];
    int64_t dims[HN_MAX_RANK];
    int at = hn_eval_axis(e, axis, first->ndim + 1);
    if (at < 0 || !whole_bytes(e, first->dtype))
        return NULL;
    if (first->ndim >= HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", first->ndim + 1, HN_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i <= first->ndim; i++)
        dims[i] = i < at ? first->dims[i] : i == at ? total : first->dims[i - 1];
    HnTensor *y = hn_tensor_new(first->dtype, first->ndim + 1, dims, e->budget, &e->error);
    if (y == NULL)
        return NULL;
    const int64_t inner = hn_span(dims, at + 1, first->ndim + 1), outer = hn_span(dims, 0, at);
    for (guint i = 0; i < items->len; i++) {
        const HnTensor *t = items->pdata[i];
        if (!hn_tensor_same_form(t, first)) {
            g_autofree char *a = hn_tensor_describe(first), *b = hn_tensor_describe(t);
            hn_eval_fail(e, HN_ERROR_SHAPE, "the body gave %s first and %s later", a, b);
            hn_tensor_unref(y);
            return NULL;
        }
        int64_t place = reversed ? (int64_t)(items->len - 1 - i) : (int64_t)i;
        for (int64_t o = 0; o < outer; o++)
            hn_tensor_copy_elements(y, (o * total + place) * inner, t, o * inner, inner);
    }
    return y;
}

HnTensor *hn_control_slice(HnEval *e, const HnTensor *x, int axis, int64_t i)
{
    int64_t dims[HN_MAX_RANK];
    if (!whole_bytes(e, x->dtype))
        return NULL;
    for (int k = 0; k < x->ndim - 1; k++)
        dims[k] = x->dims[k < axis ? k : k + 1];
    HnTensor *y = hn_tensor_new_uninit(x->dtype, x->ndim - 1, dims, e->budget, &e->error);
    if (y == NULL)
        return NULL;
    const int64_t inner = hn_span(x->dims, axis + 1, x->ndim), outer = hn_span(x->dims, 0, axis);
    for (int64_t o = 0; o < outer; o++)
        hn_tensor_copy_elements(y, o * inner, x, (o * x->dims[axis] + i) * inner, inner);
    return y;
}

double hn_control_runs(const HnTypes *t, const HnNode *n, const HnGraph *body)
{
    if (n->op == &hn_op_if)
        return hn_if_runs(t, n, body);
    return n->op == &hn_op_loop ? hn_loop_runs(t, n) : n->op == &hn_op_scan ? hn_scan_runs(t, n) : NAN;
}
