/*
 * ArgMax and ArgMin of f32. Of equal values the first counts, or the last; a NaN is more extreme than everything.
 */
#include "op/argmax.h"

#include "cpu/core/cpu_kernel.h"
#include "op/index.h"

typedef struct {
    int64_t outer, n, inner;
    gboolean min, last;
} Arg;

static const char *arg_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    return x->dtype != HN_F32 ? "only f32" : x->n == 0 ? "nothing to compute" : NULL;
}

static gboolean arg_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnArg *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    int axis = hn_axis(p->axis, x->ndim);
    Arg *a = g_new0(Arg, 1);
    s->state = a;
    a->outer = hn_span(x->dims, 0, axis);
    a->n = x->ndim > 0 ? x->dims[axis] : 1;
    a->inner = hn_span(x->dims, axis + 1, x->ndim);
    a->min = s->op == &hn_op_argmin;
    a->last = p->last;
    return TRUE;
}

static inline gboolean beats(const Arg *a, float v, float best)
{
    if (v == best || (v != v && best != best))
        return a->last;
    return best == best && (v != v || (a->min ? v < best : v > best));
}

static gboolean arg_run(HnStep *s, GError **error)
{
    (void)error;
    const Arg *a = s->state;
    const float *x = hn_cpu_data(&s->in[0]);
    int64_t *y = hn_cpu_data(&s->out[0]);
    for (int64_t o = 0; o < a->outer; o++, x += a->n * a->inner, y += a->inner) {
        for (int64_t i = 0; i < a->inner; i++)
            y[i] = 0;
        for (int64_t k = 1; k < a->n; k++)
            for (int64_t i = 0; i < a->inner; i++)
                if (beats(a, x[k * a->inner + i], x[y[i] * a->inner + i]))
                    y[i] = k;
    }
    return TRUE;
}

static const HnKernel arg = {
    .name = "cpu.argmax",
    .reject = arg_reject,
    .prepare = arg_prepare,
    .run = arg_run,
    .release = hn_cpu_release,
};

const HnKernel *const hn_cpu_argmax[] = { &arg, NULL };
const HnKernel *const hn_cpu_argmin[] = { &arg, NULL };
