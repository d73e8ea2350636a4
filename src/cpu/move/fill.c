/*
 * ConstantOfShape and Range of known length, beyond what planning folds.
 */
#include "cpu/core/cpu_kernel.h"
#include "op/constant.h"
#include "op/move.h"
#include "run/move_forms.h"

static const char *filled_reject(const HnStep *s)
{
    const HnTensor *z = s->out[0].slot->tensor;
    if (z->dtype == HN_STRING || hn_dtype_bits(z->dtype) < 8)
        return "elements without an address of their own";
    return NULL;
}

static gboolean filled_prepare(HnStep *s, GError **error)
{
    (void)error;
    s->in[0].unread = TRUE;
    return TRUE;
}

static gboolean filled_run(HnStep *s, GError **error)
{
    (void)error;
    const HnFilled *p = s->params;
    const HnTensor *z = s->out[0].slot->tensor;
    hn_move_fill(z->data, p->value != NULL ? p->value->data : NULL, hn_dtype_size(z->dtype), z->n);
    return TRUE;
}

static const HnKernel filled = {
    .name = "cpu.fill",
    .reject = filled_reject,
    .prepare = filled_prepare,
    .run = filled_run,
};

static gboolean no_prepare(HnStep *s, GError **error)
{
    (void)s;
    (void)error;
    return TRUE;
}

static gboolean range_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *z = s->out[0].slot->tensor, *start = hn_cpu_in(s, 0), *delta = hn_cpu_in(s, 2);
    if (z->dtype == HN_F32) { /* in double: steps do not add up errors */
        const double v = hn_tensor_get_f64(start, 0), step = hn_tensor_get_f64(delta, 0);
        float *y = z->data;
        for (int64_t i = 0; i < z->n; i++)
            y[i] = (float)(v + (double)i * step);
        return TRUE;
    }
    const uint64_t v = (uint64_t)hn_tensor_get_i64(start, 0), step = (uint64_t)hn_tensor_get_i64(delta, 0);
    for (int64_t i = 0; i < z->n; i++)
        if (z->dtype == HN_I32)
            ((int32_t *)z->data)[i] = (int32_t)(v + (uint64_t)i * step);
        else
            ((int64_t *)z->data)[i] = (int64_t)(v + (uint64_t)i * step);
    return TRUE;
}

static const HnKernel range = {
    .name = "cpu.range",
    .reject = hn_range_reject,
    .prepare = no_prepare,
    .run = range_run,
};

const HnKernel *const hn_cpu_constantofshape[] = { &filled, NULL };
const HnKernel *const hn_cpu_range[] = { &range, NULL };
