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

static gboolean window_fits(const HnStep *s, HnConvKind kind, HnConvPlan *plan)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1);
    return kind == HN_CONV_TRANSPOSE ? hn_conv_transpose_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, NULL)
                                     : hn_conv_plan_of(s, kind == HN_CONV_TURNED, plan, NULL);
}

const char *hn_conv_reject(const HnStep *s, HnConvKind kind, int axes, HnConvPlan *plan)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    const HnTensor *b = hn_cpu_in(s, 2);
    if (!window_fits(s, kind, plan))
        return kind == HN_CONV_TURNED ? "the window does not fit, or strides" : "the window does not fit";
    if (plan->n > axes)
        return axes == 2 ? "only 1 or 2 spatial axes" : "only 1 to 3 spatial axes";
    if (b != NULL && (b->ndim != 1 || b->n != s->out[0].slot->tensor->dims[1]))
        return "a bias of another size than the output's channels";
    return NULL;
}
