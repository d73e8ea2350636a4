#include "check/outputs.h"

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

void hn_outputs_free(HnTensor **t, int n)
{
    for (int i = 0; t != NULL && i < n; i++)
        hn_tensor_unref(t[i]);
    g_free(t);
}
