#include "run/move_forms.h"

#include "op/dropout.h"
#include "op/index.h"
#include "op/pad.h"
#include "op/slice.h"

const char *hn_copy_reject(const HnTensor *t)
{
    return t->dtype == HN_STRING ? "strings" : hn_dtype_size(t->dtype) == 0 ? "elements below 8 bits" : NULL;
}

gboolean hn_copy_varies(const HnStep *s, int i)
{
    return hn_step_in(s, i) != NULL && !s->in[i].slot->constant;
}

void hn_copy_unread(HnStep *s)
{
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = TRUE;
}

int hn_copy_ints(const HnStep *s, int i, int64_t *v, int max)
{
    const HnTensor *t = hn_step_in(s, i);
    if (t == NULL || t->n > max)
        return -1;
    for (int64_t k = 0; k < t->n; k++)
        v[k] = hn_tensor_get_i64(t, k);
    return (int)t->n;
}

void hn_tile_axes(const HnTensor *x, const HnTensor *y, int64_t *dims, int64_t *strides)
{
    int64_t own[HN_MAX_RANK];
    hn_strides(x->ndim, x->dims, own);
    for (int a = 0; a < x->ndim; a++) {
        dims[2 * a] = x->dims[a] > 0 ? y->dims[a] / x->dims[a] : 0;
        dims[2 * a + 1] = x->dims[a];
        strides[2 * a] = 0;
        strides[2 * a + 1] = own[a];
    }
}

const char *hn_slice_bounds(const HnStep *s, int64_t *first, int64_t *step)
{
    const HnSlice *p = s->params;
    const HnTensor *x = hn_step_in(s, 0), *y = s->out[0].slot->tensor;
    int64_t starts[HN_MAX_RANK], ends[HN_MAX_RANK], axes[HN_MAX_RANK], steps[HN_MAX_RANK];
    int n = (int)p->n, n_ends = n, n_axes = n, n_steps = n;
    for (int a = 0; a < HN_MAX_RANK; a++) {
        axes[a] = a;
        steps[a] = 1;
        first[a] = 0;
        step[a] = 1;
    }
    for (int i = 0; !p->inputs && i < n; i++) {
        starts[i] = p->starts[i];
        ends[i] = p->ends[i];
        axes[i] = p->axes != NULL ? p->axes[i] : i;
        steps[i] = p->steps != NULL ? p->steps[i] : 1;
    }
    if (p->inputs) {
        n = hn_copy_ints(s, 1, starts, x->ndim);
        n_ends = hn_copy_ints(s, 2, ends, x->ndim);
        n_axes = hn_step_in(s, 3) != NULL ? hn_copy_ints(s, 3, axes, x->ndim) : n;
        n_steps = hn_step_in(s, 4) != NULL ? hn_copy_ints(s, 4, steps, x->ndim) : n;
    }
    if (n < 0 || n != n_ends || n != n_axes || n != n_steps || x->ndim != y->ndim)
        return "bounds that do not fit";
    for (int i = 0; i < n; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + x->ndim : axes[i];
        if (a < 0 || a >= x->ndim || steps[i] == 0)
            return "bounds that do not fit";
        first[a] = starts[i];
        step[a] = steps[i];
        if (hn_slice_axis(x->dims[a], &first[a], ends[i], steps[i]) != y->dims[a])
            return "bounds that do not fit";
    }
    return NULL;
}

const char *hn_slice_reject(const HnStep *s)
{
    int64_t first[HN_MAX_RANK], step[HN_MAX_RANK];
    for (int i = 1; i <= 4; i++)
        if (hn_copy_varies(s, i))
            return "bounds that are known only at run time";
    const char *reason = hn_copy_reject(hn_step_in(s, 0));
    return reason != NULL ? reason : hn_slice_bounds(s, first, step);
}

const char *hn_pad_borders(const HnStep *s, HnBorder *border)
{
    const HnPad *p = s->params;
    const HnTensor *x = hn_step_in(s, 0), *y = s->out[0].slot->tensor;
    int64_t pads[2 * HN_MAX_RANK], axes[HN_MAX_RANK];
    int n = (int)p->n, n_axes = x->ndim;
    for (int a = 0; a < x->ndim; a++) {
        axes[a] = a;
        border[a] = (HnBorder){ .kept = x->dims[a] };
    }
    for (int i = 0; !p->inputs && i < n; i++)
        pads[i] = p->pads[i];
    if (p->inputs) {
        n = hn_copy_ints(s, 1, pads, 2 * x->ndim);
        n_axes = hn_step_in(s, 3) != NULL ? hn_copy_ints(s, 3, axes, x->ndim) : n_axes;
    }
    if (n < 0 || n_axes < 0 || n != 2 * n_axes)
        return "amounts that do not fit";
    for (int i = 0; i < n_axes; i++) {
        const int64_t a = axes[i] < 0 ? axes[i] + x->ndim : axes[i];
        if (a < 0 || a >= x->ndim)
            return "amounts that do not fit";
        const int64_t before = pads[i], after = pads[n_axes + i];
        HnBorder *b = &border[a];
        if (before < -x->dims[a] || after < -x->dims[a] - MIN(before, 0))
            return "amounts that do not fit";
        b->first = MAX(-before, 0);
        b->kept = x->dims[a] - b->first - MAX(-after, 0);
        b->lead = MAX(before, 0);
        b->tail = MAX(after, 0);
        if (b->lead + b->kept + b->tail != y->dims[a])
            return "amounts that do not fit";
        if (p->mode != HN_PAD_CONSTANT && MAX(b->lead, b->tail) > 0) {
            const int64_t longest = p->mode == HN_PAD_REFLECT ? b->kept - 1 : b->kept;
            if (b->kept == 0 || (p->mode != HN_PAD_EDGE && MAX(b->lead, b->tail) > longest))
                return "borders longer than what they repeat";
        }
    }
    return NULL;
}

const char *hn_pad_reject(const HnStep *s)
{
    const HnPad *p = s->params;
    const HnTensor *x = hn_step_in(s, 0), *value = p->inputs ? hn_step_in(s, 2) : NULL;
    HnBorder border[HN_MAX_RANK];
    if (p->inputs && (hn_copy_varies(s, 1) || hn_copy_varies(s, 3)))
        return "amounts that are known only at run time";
    if (value != NULL && (value->n != 1 || value->dtype != x->dtype))
        return "a value of another type";
    if (!p->inputs && !hn_dtype_in(x->dtype, HN_BIT(HN_F16) | HN_BIT(HN_F32) | HN_BIT(HN_F64)))
        return "a type that this version does not pad";
    const char *reason = hn_copy_reject(x);
    return reason != NULL ? reason : hn_pad_borders(s, border);
}

const char *hn_dropout_trains(const HnStep *s)
{
    const HnDropout *p = s->params;
    const HnTensor *train = p->by_input ? hn_step_in(s, 2) : NULL;
    if (hn_copy_varies(s, 1) || hn_copy_varies(s, 2))
        return "ratio or training mode known only at run time";
    return p->train || (train != NULL && (train->n != 1 || hn_tensor_get_i64(train, 0) != 0)) ? "training" : NULL;
}

const char *hn_range_reject(const HnStep *s)
{
    const HnDtype d = hn_step_out(s, 0)->dtype;
    if (d != HN_F32 && d != HN_I32 && d != HN_I64)
        return "only f32, i32, i64";
    for (int i = 0; i < 3; i++)
        if (hn_step_in(s, i)->n != 1 || hn_step_in(s, i)->dtype != d)
            return "inputs that are not scalars of one type";
    return NULL;
}

const char *hn_few_bytes_reject(const HnStep *s, int i)
{
    const HnDtype d = hn_step_in(s, i)->dtype;
    const gsize size = d == HN_STRING ? 0 : hn_dtype_size(d);
    return size != 1 && size != 2 && size != 4 && size != 8 ? "elements that are not of 1, 2, 4 or 8 bytes" : NULL;
}
