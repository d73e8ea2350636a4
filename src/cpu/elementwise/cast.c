/*
 * Cast and CastLike between all types with a number in them.
 */
#include "op/cast.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/core/half_rows.h"

static const char *cast_reject(const HnStep *s)
{
    return hn_convertible(hn_cpu_in(s, 0)->dtype) && hn_convertible(s->out[0].slot->tensor->dtype)
               ? NULL
               : "a type without numbers";
}

static gboolean cast_prepare(HnStep *s, GError **error)
{
    (void)error;
    if (s->n_in > 1)
        s->in[1].unread = s->in[1].slot != NULL; /* only its type counts */
    return TRUE;
}

static gboolean cast_run(HnStep *s, GError **error)
{
    (void)error;
    const HnCast *p = s->params;
    const HnTensor *x = s->in[0].slot->tensor, *y = s->out[0].slot->tensor;
    if (x->dtype == y->dtype) {
        if (x->n > 0)
            memmove(y->data, x->data, x->bytes);
    } else if (x->dtype == HN_F32 && hn_dtype_is_half(y->dtype)) {
        hn_cpu_half_from_f32(y->dtype, y->data, x->data, x->n);
    } else if (y->dtype == HN_F32 && hn_dtype_is_half(x->dtype)) {
        hn_cpu_half_to_f32(x->dtype, y->data, x->data, x->n);
    } else {
        hn_convert(y->dtype, y->data, x, &p->how);
    }
    return TRUE;
}

static const HnKernel cast = {
    .name = "cpu.cast",
    .reject = cast_reject,
    .prepare = cast_prepare,
    .run = cast_run,
};

const HnKernel *const hn_cpu_cast[] = { &cast, NULL };
const HnKernel *const hn_cpu_castlike[] = { &cast, NULL };
