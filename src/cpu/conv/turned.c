#include "cpu/conv/turned.h"

gboolean hn_conv_plan_of(const HnStep *s, gboolean turned, HnConvPlan *plan, GError **error)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    if (!turned)
        return hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, error);
    if (!hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, error))
        return FALSE;
    for (int i = 0; i < plan->n; i++) {
        HnWindowAxis *a = &plan->axis[i];
        if (a->stride != 1)
            return FALSE;
        *a = (HnWindowAxis){ .in = a->out,
                             .out = a->in,
                             .kernel = a->kernel,
                             .stride = 1,
                             .dilation = a->dilation,
                             .pad = (a->kernel - 1) * a->dilation - a->pad };
        a->pad_end = hn_window_overhang(a);
    }
    return TRUE;
}
