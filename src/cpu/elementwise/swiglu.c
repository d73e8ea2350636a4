/*
 * SwiGLU of f32 in one pass.
 */
#include "op/activation.h"

#include <math.h>

#include "cpu/core/cpu_kernel.h"

static const char *swiglu_reject(const HnStep *s)
{
    return hn_cpu_reject_f32(s);
}

static gboolean swiglu_prepare(HnStep *s, GError **error)
{
    (void)s; /* plain inputs are the default, and there is nothing to pack */
    (void)error;
    return TRUE;
}

static gboolean swiglu_run(HnStep *s, GError **error)
{
    (void)error;
    const HnActivation *p = s->params;
    const float alpha = (float)p->a, *a = hn_cpu_data(&s->in[0]), *b = hn_cpu_data(&s->in[1]);
    float *y = hn_cpu_data(&s->out[0]);
    int64_t n = s->out[0].slot->tensor->n;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] / (1 + expf(-alpha * a[i])) * b[i];
    return TRUE;
}

static const HnKernel swiglu_kernel = {
    .name = "cpu.swiglu",
    .reject = swiglu_reject,
    .prepare = swiglu_prepare,
    .run = swiglu_run,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_swiglu[] = { &swiglu_kernel, NULL };
