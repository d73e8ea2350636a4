/*
 * OneHot: the output filled with "off", then "on" written where the indices say.
 */
#include "op/onehot.h"

#include "cpu/core/strided_copy.h"
#include "op/index.h"
#include "op/types.h"
#include "run/index_forms.h"

static const char *onehot_reject(const HnStep *s)
{
    return hn_dtype_size(s->out[0].slot->tensor->dtype) > 8 ? "values of another kind" : hn_onehot_reject(s);
}

static gboolean onehot_prepare(HnStep *s, GError **error)
{
    (void)error;
    s->in[1].unread = TRUE; /* the depth is in the output's dimensions */
    return TRUE;
}

static gboolean onehot_run(HnStep *s, GError **error)
{
    (void)error;
    const HnOneHot *p = s->params;
    const HnTensor *at = hn_cpu_in(s, 0), *values = hn_cpu_in(s, 2), *t = s->out[0].slot->tensor;
    const int axis = hn_axis(p->axis, t->ndim);
    const int64_t depth = t->dims[axis], inner = hn_span(t->dims, axis + 1, t->ndim);
    const size_t size = hn_dtype_size(t->dtype);
    hn_copy_fill(t->data, values->data, size, t->n);
    for (int64_t i = 0; i < at->n && depth > 0; i++) {
        int64_t k = at->dtype == HN_I64   ? ((const int64_t *)at->data)[i]
                    : at->dtype == HN_I32 ? ((const int32_t *)at->data)[i]
                                          : hn_tensor_get_i64(at, i);
        k += k < 0 && p->from_back ? depth : 0;
        if (k < 0 || k >= depth)
            continue;
        const int64_t place = (i / inner * depth + k) * inner + i % inner;
#define SET(T) ((T *)t->data)[place] = ((const T *)values->data)[1];
        HN_FOR_SIZE(size, SET)
#undef SET
    }
    return TRUE;
}

static const HnKernel onehot_fill = {
    .name = "cpu.onehot",
    .reject = onehot_reject,
    .prepare = onehot_prepare,
    .run = onehot_run,
};

const HnKernel *const hn_cpu_onehot[] = { &onehot_fill, NULL };
