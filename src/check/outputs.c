#include "check/outputs.h"

#include <string.h>

#include "base/half.h"

HnTensor *hn_input_as(HnTensor *t, HnDtype dtype, HnBudget *budget, GError **error)
{
    if (t->dtype == dtype || !hn_dtype_in(t->dtype, HN_T_FLOATS) || !hn_dtype_in(dtype, HN_T_FLOATS))
        return hn_tensor_ref(t);
    HnTensor *c = hn_tensor_new_uninit(dtype, t->ndim, t->dims, budget, error);
    if (c == NULL)
        return NULL;
    if (t->dtype == HN_F16 && dtype == HN_F32)
        hn_f16_to_f32_n(c->data, t->data, (size_t)t->n);
    else if (t->dtype == HN_F32 && dtype == HN_F16)
        hn_f16_from_f32_n(c->data, t->data, (size_t)t->n);
    else
        for (int64_t i = 0; i < t->n; i++)
            hn_tensor_set_f64(c, i, hn_tensor_get_f64(t, i));
    return c;
}

HnTensor *hn_input_for(const HnValue *input, HnTensor *t, HnBudget *budget, GError **error)
{
    const HnType *type = input->type;
    return hn_input_as(t, hn_type_is_tensor(type) ? type->dtype : t->dtype, budget, error);
}

HnTensor **hn_outputs_run(HnSession *s, HnTensor *const *in, HnBudget *budget, GError **error)
{
    const int n = hn_session_n_outputs(s);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n + 1);
    if (!hn_session_run(s, in, out, error))
        return NULL;
    HnTensor **kept = g_new0(HnTensor *, (gsize)n + 1);
    gboolean ok = TRUE;
    for (int k = 0; k < n; k++) {
        if (out[k] != NULL && ok)
            ok = (kept[k] = hn_tensor_copy(out[k], budget, error)) != NULL;
        hn_tensor_unref(out[k]);
    }
    if (ok)
        return kept;
    hn_outputs_free(kept, n);
    return NULL;
}

/* --- lists and complex numbers ------------------------------------------------------------------------------------ */

static void collect(HnTensor *t, GPtrArray *parts)
{
    if (t == NULL)
        return;
    if (!hn_tensor_is_list(t)) {
        g_ptr_array_add(parts, t);
        return;
    }
    for (int64_t i = 0; i < t->n; i++)
        collect(hn_tensor_get_item(t, i), parts);
}

static gboolean any_of(const GPtrArray *parts, HnTypeMask types)
{
    for (guint i = 0; i < parts->len; i++)
        if (hn_dtype_in(((const HnTensor *)parts->pdata[i])->dtype, types))
            return TRUE;
    return FALSE;
}

/* Those of the types, one behind the other. */
static HnTensor *joined(const GPtrArray *parts, HnTypeMask types, HnDtype dtype, HnBudget *budget, GError **error)
{
    int64_t dims[2] = { 0, -1 }, n = 0, at = 0;
    for (guint i = 0; i < parts->len; i++) {
        const HnTensor *p = parts->pdata[i];
        if (!hn_dtype_in(p->dtype, types))
            continue;
        dims[1] = dims[0] == 0 || dims[1] == p->n ? p->n : -1;
        dims[0]++;
        n += p->n;
    }
    const gboolean even = dims[0] > 0 && dims[1] >= 0;
    HnTensor *t = hn_tensor_new(dtype, even ? 2 : 1, even ? dims : &n, budget, error);
    for (guint i = 0; t != NULL && i < parts->len; i++) {
        const HnTensor *p = parts->pdata[i];
        for (int64_t k = 0; hn_dtype_in(p->dtype, types) && k < p->n; k++, at++)
            if (dtype == HN_STRING)
                hn_tensor_set_string(t, at, hn_tensor_get_string(p, k));
            else if (dtype == HN_F64)
                hn_tensor_set_f64(t, at, hn_tensor_get_f64(p, k));
            else
                hn_tensor_set_i64(t, at, hn_tensor_get_i64(p, k));
    }
    return t;
}

HnTensor *hn_output_plain(HnTensor *t, HnBudget *budget, GError **error)
{
    if (t->dtype == HN_C64 || t->dtype == HN_C128) {
        g_autofree int64_t *dims = g_new(int64_t, (gsize)t->ndim + 1);
        memcpy(dims, t->dims, (gsize)t->ndim * sizeof *dims);
        dims[t->ndim] = 2;
        HnTensor *pairs = hn_tensor_new_uninit(t->dtype == HN_C64 ? HN_F32 : HN_F64, t->ndim + 1, dims, budget, error);
        if (pairs != NULL)
            memcpy(pairs->data, t->data, pairs->bytes);
        return pairs;
    }
    if (!hn_tensor_is_list(t))
        return hn_tensor_ref(t);
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    collect(t, parts);
    if (any_of(parts, HN_T_FLOATS))
        return joined(parts, HN_T_FLOATS, HN_F64, budget, error);
    if (any_of(parts, HN_BIT(HN_STRING)) && !any_of(parts, HN_T_INTS | HN_T_BOOL))
        return joined(parts, HN_BIT(HN_STRING), HN_STRING, budget, error);
    return joined(parts, HN_T_INTS | HN_T_BOOL, HN_I64, budget, error);
}

void hn_outputs_free(HnTensor **t, int n)
{
    for (int i = 0; t != NULL && i < n; i++)
        hn_tensor_unref(t[i]);
    g_free(t);
}

gboolean hn_outputs_plan(HnSession *s, HnTensor *const *in, GError **error)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        g_ptr_array_add(types, in[i] != NULL ? hn_type_fixed(in[i]->dtype, in[i]->ndim, in[i]->dims) : NULL);
    return hn_session_prepare(s, (HnType *const *)types->pdata, error);
}
