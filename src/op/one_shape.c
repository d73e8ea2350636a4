#include "op/one_shape.h"

static gboolean differ(const HnInfer *x, int i)
{
    const int a = hn_infer_rank(x, 0), b = hn_infer_rank(x, i);
    gboolean d = a >= 0 && b >= 0 && a != b;
    for (int k = 0; k < a && b >= 0 && !d; k++)
        d = hn_dim_differ(hn_infer_dim(x, 0, k), hn_infer_dim(x, i, k));
    return d;
}

void hn_infer_one_shape(HnInfer *x, int n)
{
    for (int i = 1; i < n; i++)
        if (hn_infer_has(x, i) && differ(x, i))
            hn_infer_fail(x, HN_ERROR_SHAPE, "inputs 0 and %d have different shapes", i);
}

gboolean hn_eval_one_shape(HnEval *e, int n)
{
    const HnTensor *x = hn_eval_in(e, 0);
    for (int i = 1; i < n; i++) {
        const HnTensor *y = hn_eval_in(e, i);
        if (y == NULL || hn_tensor_same_dims(y, x))
            continue;
        hn_eval_fail(e, HN_ERROR_SHAPE, "inputs 0 and %d have different shapes", i);
        return FALSE;
    }
    return TRUE;
}
