#include "check/outputs.h"

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
