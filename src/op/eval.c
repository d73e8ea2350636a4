/*
 * Running a record's ref on one node's tensors: where results go, scratch memory, half types as f32.
 */
#include <stdarg.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "op/internal.h"

void hn_eval_fail(HnEval *e, HnError code, const char *format, ...)
{
    if (e->error != NULL)
        return;
    va_list args;
    va_start(args, format);
    e->error = g_error_new_valist(HN_ERROR, (int)code, format, args);
    va_end(args);
}

gboolean hn_eval_wants(const HnEval *e, int k)
{
    return k < e->n_out && hn_node_out(e->node, k) != NULL;
}

/* Does the place that the caller chose fit? A misfit means that infer promised something else: the model's file may
 * be the cause (a declared shape that is wrong), so it is an error and not an assertion. */
static gboolean place_fits(HnEval *e, int k, HnDtype dtype, int ndim, const int64_t *dims)
{
    const HnTensor *t = e->out[k];
    if (t->dtype == dtype && hn_tensor_has_dims(t, ndim, dims))
        return TRUE;
    g_autofree char *text = hn_tensor_describe(t);
    hn_eval_fail(e, HN_ERROR_SHAPE, "output %d is not %s as inferred", k, text);
    return FALSE;
}

void *hn_eval_out(HnEval *e, int k, HnDtype dtype, int ndim, const int64_t *dims)
{
    if (e->error != NULL || k >= e->n_out) {
        hn_eval_fail(e, HN_ERROR_GRAPH, "output %d is missing", k);
        return NULL;
    }
    if (e->out[k] == NULL)
        e->out[k] = hn_tensor_new_uninit(dtype, ndim, dims, e->budget, &e->error);
    else if (!place_fits(e, k, dtype, ndim, dims))
        return NULL;
    return e->out[k] != NULL ? e->out[k]->data : NULL;
}

void *hn_eval_out_like(HnEval *e, int k, const HnTensor *t)
{
    return hn_eval_out(e, k, t->dtype, t->ndim, t->dims);
}

void hn_eval_view(HnEval *e, int k, const HnTensor *t, int ndim, const int64_t *dims)
{
    int64_t n;
    if (e->error != NULL)
        return;
    if (hn_tensor_is_list(t)) {
        e->out[k] = hn_tensor_ref((HnTensor *)t);
        return;
    }
    if (!hn_dims_count(ndim, dims, &n) || n != t->n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " elements cannot take the new shape", t->n);
        return;
    }
    if (e->out[k] == NULL) {
        e->out[k] = hn_tensor_reshaped((HnTensor *)t, ndim, dims);
    } else if (place_fits(e, k, t->dtype, ndim, dims)) {
        if (t->dtype == HN_STRING) {
            for (int64_t i = 0; i < t->n; i++)
                hn_tensor_set_string(e->out[k], i, hn_tensor_get_string(t, i));
        } else if (e->out[k]->data != t->data) {
            memcpy(e->out[k]->data, t->data, t->bytes);
        }
    }
}

HnTensor *hn_eval_out_list(HnEval *e, int k, HnDtype kind, int64_t n)
{
    if (e->error != NULL || k >= e->n_out || e->out[k] != NULL) {
        hn_eval_fail(e, HN_ERROR_GRAPH, "output %d is missing, or is no %s as inferred", k, hn_dtype_name(kind));
        return NULL;
    }
    return e->out[k] = hn_tensor_new_list(kind, n, e->budget, &e->error);
}

void *hn_eval_scratch(HnEval *e, int64_t n, size_t elem)
{
    size_t bytes;
    if (e->error != NULL)
        return NULL;
    if (n < 0 || __builtin_mul_overflow((size_t)n, elem, &bytes)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "scratch memory overflows");
        return NULL;
    }
    return hn_budget_alloc(e->budget, bytes, &e->error);
}

void hn_eval_scratch_free(HnEval *e, void *p)
{
    hn_budget_free(e->budget, p);
}

int hn_eval_axis(HnEval *e, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank) {
        hn_eval_fail(e, HN_ERROR_ATTRIBUTE, "axis %" PRId64 " is outside [-%d, %d)", axis, rank, rank);
        return -1;
    }
    return hn_axis(axis, rank);
}

int hn_eval_broadcast(HnEval *e, const HnTensor *a, const HnTensor *b, int64_t *dims)
{
    int rank = MAX(a->ndim, b->ndim);
    if (rank > HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", rank, HN_MAX_RANK);
        return -1;
    }
    for (int i = 0; i < rank; i++) {
        int64_t da = i < rank - a->ndim ? 1 : a->dims[i - (rank - a->ndim)];
        int64_t db = i < rank - b->ndim ? 1 : b->dims[i - (rank - b->ndim)];
        if (da != db && da != 1 && db != 1) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "sizes %" PRId64 " and %" PRId64 " do not broadcast", da, db);
            return -1;
        }
        dims[i] = da == 1 ? db : da;
    }
    return rank;
}

/* --- half types -------------------------------------------------------------------------------------------------- */

static gboolean is_half(const HnTensor *t)
{
    return t != NULL && hn_dtype_is_half(t->dtype);
}

static HnTensor *widen(const HnTensor *t, HnBudget *budget, GError **error)
{
    HnTensor *w = hn_tensor_new_uninit(HN_F32, t->ndim, t->dims, budget, error);
    if (w == NULL)
        return NULL;
    if (t->dtype == HN_F16)
        hn_f16_to_f32_n(w->data, t->data, (gsize)t->n);
    else
        hn_bf16_to_f32_n(w->data, t->data, (gsize)t->n);
    return w;
}

static void narrow(HnTensor *to, const HnTensor *from)
{
    if (to->dtype == HN_F16)
        hn_f16_from_f32_n(to->data, from->data, (gsize)from->n);
    else
        hn_bf16_from_f32_n(to->data, from->data, (gsize)from->n);
}

/* The half type that output k must have: that of the first half input under the same letter. */
static HnDtype half_of_output(const HnEval *e, int k)
{
    const HnOp *op = e->node->op;
    gboolean same;
    char letter = hn_op_letter(op->out, k, &same);
    for (int i = 0; i < e->n_in; i++)
        if (is_half(e->in[i]) && hn_op_letter(op->in, i, &same) == letter)
            return e->in[i]->dtype;
    return HN_UNDEFINED;
}

static void eval_widened(HnEval *e)
{
    HnEval w = *e;
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)e->n_in + 1);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)e->n_out + 1);
    w.in = in;
    w.out = out;
    for (int i = 0; i < e->n_in && w.error == NULL; i++)
        in[i] = is_half(e->in[i]) ? widen(e->in[i], e->budget, &w.error) : e->in[i] ? hn_tensor_ref(e->in[i]) : NULL;
    for (int k = 0; k < e->n_out; k++) /* places of outputs that are not narrowed below may be used as they are */
        if (e->out[k] != NULL && (!is_half(e->out[k]) || half_of_output(e, k) == HN_UNDEFINED))
            out[k] = hn_tensor_ref(e->out[k]);
    if (w.error == NULL)
        e->node->op->ref(&w);
    for (int k = 0; k < e->n_out && w.error == NULL; k++) {
        HnDtype half = half_of_output(e, k);
        if (out[k] == NULL)
            continue;
        if (half == HN_UNDEFINED || out[k]->dtype != HN_F32) {
            if (e->out[k] == NULL)
                e->out[k] = hn_tensor_ref(out[k]);
            continue;
        }
        w.out = e->out;
        if (hn_eval_out(&w, k, half, out[k]->ndim, out[k]->dims) != NULL)
            narrow(e->out[k], out[k]);
    }
    for (int i = 0; i < e->n_in; i++)
        hn_tensor_unref(in[i]);
    for (int k = 0; k < e->n_out; k++)
        hn_tensor_unref(out[k]);
    e->error = w.error;
}

gboolean hn_op_eval(HnEval *e, GError **error)
{
    const HnOp *op = e->node->op;
    gboolean half = FALSE;
    for (int i = 0; i < e->n_in; i++)
        if (e->in[i] != NULL && e->in[i]->ndim > HN_MAX_RANK)
            hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "input %d has %d dimensions, at most %d are supported", i,
                         e->in[i]->ndim, HN_MAX_RANK);
    for (int i = 0; (op->flags & HN_OP_HALF_VIA_F32) != 0 && i < e->n_in; i++)
        half = half || is_half(e->in[i]);
    if (op->ref == NULL)
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "the operator cannot be computed");
    else if (e->error == NULL && half)
        eval_widened(e);
    else if (e->error == NULL)
        op->ref(e);
    for (int k = 0; k < e->n_out && e->error == NULL; k++)
        if (e->out[k] == NULL && hn_eval_wants(e, k))
            hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "output %d cannot be computed", k);
    if (e->error != NULL) {
        hn_op_propagate(error, g_steal_pointer(&e->error), e->node);
        return FALSE;
    }
    return TRUE;
}
