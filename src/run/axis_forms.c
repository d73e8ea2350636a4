#include "run/axis_forms.h"

#include "op/reduce.h"
#include "run/move_forms.h"

const char *hn_reduced_axes(const HnStep *s, gboolean like, gboolean *mask)
{
    const HnTensor *x = hn_step_in(s, 0), *other = hn_step_in(s, 1);
    if (like) {
        hn_reduce_mask_like(x, other, mask);
        return NULL;
    }
    if (hn_copy_varies(s, 1))
        return "axes that are known only at run time";
    return hn_reduce_mask(s->params, x, other, mask) ? NULL : "an axis outside the rank";
}

const char *hn_cumulated_axis(const HnStep *s)
{
    const HnTensor *x = hn_step_in(s, 0), *axis = hn_step_in(s, 1);
    if (hn_copy_varies(s, 1) || axis->n != 1)
        return "an axis that is known only at run time";
    const int64_t a = hn_tensor_get_i64(axis, 0);
    return a < -x->ndim || a >= x->ndim ? "an axis outside the rank" : NULL;
}

const char *hn_channel_inputs(const HnStep *s, int x, int first, int last)
{
    const HnTensor *t = hn_step_in(s, x);
    if (t->ndim < 2)
        return "no axis of channels";
    for (int i = first; i <= last; i++)
        if (hn_step_in(s, i) != NULL && hn_step_in(s, i)->n != t->dims[1])
            return "an input of another size than the channels";
    return NULL;
}
