#include "run/index_forms.h"

#include "op/gather.h"
#include "op/scatter.h"
#include "run/move_forms.h"

static gboolean is_index(HnDtype d)
{
    return d == HN_I32 || d == HN_I64;
}

int hn_gather_axis(const HnStep *s)
{
    return hn_axis(((const HnGather *)s->params)->axis, hn_step_in(s, 0)->ndim);
}

const char *hn_gather_reject(const HnStep *s)
{
    return is_index(hn_step_in(s, 1)->dtype) ? hn_copy_reject(hn_step_in(s, 0)) : "indices of another type";
}

const char *hn_gather_tuples_reject(const HnStep *s)
{
    const HnGather *p = s->params;
    const HnTensor *x = hn_step_in(s, 0), *at = hn_step_in(s, 1);
    for (int a = 0; a < (int)p->batch_dims; a++)
        if (x->dims[a] != at->dims[a])
            return "shapes that do not fit";
    return hn_gather_reject(s);
}

/* at, of x's rank, is no longer than x but along the axis. */
static gboolean lies_in(const HnTensor *at, const HnTensor *x, int axis)
{
    gboolean fits = at->ndim == x->ndim;
    for (int a = 0; a < x->ndim && fits; a++)
        fits = a == axis || at->dims[a] <= x->dims[a];
    return fits;
}

const char *hn_gather_elements_reject(const HnStep *s, int axis)
{
    const HnTensor *x = hn_step_in(s, 0), *at = hn_step_in(s, 1);
    if (at->n == 0 || x->n == 0)
        return "nothing to compute";
    return lies_in(at, x, axis) ? hn_gather_reject(s) : "shapes that do not fit";
}

int hn_scatter_axis(const HnStep *s)
{
    return hn_axis(((const HnScatter *)s->params)->axis, hn_step_in(s, 0)->ndim);
}

const char *hn_scatter_reject(const HnStep *s)
{
    const HnScatter *p = s->params;
    const HnTensor *x = hn_step_in(s, 0), *at = hn_step_in(s, 1), *updates = hn_step_in(s, 2);
    if (!is_index(at->dtype))
        return "indices of another type";
    if (at->n == 0 || updates->n == 0 || x->n == 0)
        return "nothing to compute";
    if (x->dtype != updates->dtype)
        return "updates of another type";
    return p->reduction == HN_SCATTER_SET ? hn_copy_reject(x) : NULL;
}

const char *hn_scatter_tuples_reject(const HnStep *s)
{
    const HnTensor *x = hn_step_in(s, 0), *at = hn_step_in(s, 1), *updates = hn_step_in(s, 2);
    const int64_t depth = at->ndim > 0 ? at->dims[at->ndim - 1] : 0;
    if (depth < 1 || depth > x->ndim || updates->ndim != at->ndim - 1 + x->ndim - (int)depth)
        return "shapes that do not fit";
    for (int a = 0, q = at->ndim - 1; a < updates->ndim; a++)
        if (updates->dims[a] != (a < q ? at->dims[a] : x->dims[a - q + depth]))
            return "shapes that do not fit";
    return NULL;
}

const char *hn_scatter_elements_reject(const HnStep *s)
{
    const HnTensor *x = hn_step_in(s, 0), *at = hn_step_in(s, 1), *updates = hn_step_in(s, 2);
    return lies_in(at, x, hn_scatter_axis(s)) && hn_tensor_same_dims(at, updates) ? NULL : "shapes that do not fit";
}

const char *hn_onehot_reject(const HnStep *s)
{
    const HnTensor *at = hn_step_in(s, 0), *values = hn_step_in(s, 2), *y = hn_step_out(s, 0);
    if (!is_index(at->dtype) && at->dtype != HN_F32)
        return "indices of another type";
    if (values->n != 2 || values->dtype != y->dtype)
        return "values of another kind";
    return hn_copy_reject(values);
}
