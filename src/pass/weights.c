#include "pass/weights.h"

HnTensor *hn_weights_scaled(const HnTensor *w, int axis, const double *s, HnBudget *budget)
{
    HnTensor *t = hn_tensor_new_uninit(w->dtype, w->ndim, w->dims, budget, NULL);
    int64_t inner = 1, n = w->dims[axis];
    for (int i = axis + 1; i < w->ndim; i++)
        inner *= w->dims[i];
    if (t == NULL)
        return NULL;
    for (int64_t i = 0; i < w->n;)
        for (int64_t c = 0; c < n; c++)
            for (int64_t end = i + inner; i < end; i++)
                if (w->dtype == HN_F32)
                    ((float *)t->data)[i] = (float)((double)((const float *)w->data)[i] * s[c]);
                else
                    hn_tensor_set_f64(t, i, hn_tensor_get_f64(w, i) * s[c]);
    return t;
}

gboolean hn_weights_affine(HnRewrite *r, HnNode *n, int axis, const double *scale, const double *shift)
{
    HnValue *weight = hn_node_in(n, 1), *bias = hn_node_in(n, 2);
    const HnTensor *w = hn_rw_const(r, weight), *b = hn_rw_const(r, bias);
    const int64_t c = w->dims[axis];
    HnTensor *sum = hn_tensor_new(w->dtype, 1, &c, hn_rw_budget(r), NULL);
    for (int64_t i = 0; sum != NULL && i < c; i++)
        hn_tensor_set_f64(sum, i, (b != NULL ? hn_tensor_get_f64(b, b->n == 1 ? 0 : i) * scale[i] : 0) + shift[i]);
    HnTensor *scaled = hn_weights_scaled(w, axis, scale, hn_rw_budget(r));
    hn_rw_set_in(r, n, 1, hn_rw_weight(r, n->graph, weight->name, scaled));
    hn_rw_set_in(r, n, 2, hn_rw_weight(r, n->graph, bias != NULL ? bias->name : "bias", sum));
    return TRUE;
}
