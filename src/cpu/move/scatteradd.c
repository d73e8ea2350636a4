/*
 * ScatterAdd of f32, in the order of the elements, one after the other: the same sums each time.
 */
#include <string.h>

#include "cpu/core/cpu_kernel.h"

static const char *scatteradd_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    if (x->dtype != HN_F32)
        return "only f32";
    return x->n == hn_cpu_in(s, 1)->n ? NULL : "places for another number of elements";
}

static gboolean scatteradd_prepare(HnStep *s, GError **error)
{
    (void)error;
    s->in[2].unread = TRUE; /* its shape is known */
    return TRUE;
}

static gboolean scatteradd_run(HnStep *s, GError **error)
{
    const float *x = hn_cpu_data(&s->in[0]);
    const int64_t *at = hn_cpu_data(&s->in[1]), n = hn_cpu_in(s, 0)->n, most = s->out[0].slot->tensor->n;
    float *y = hn_cpu_data(&s->out[0]);
    memset(y, 0, s->out[0].slot->tensor->bytes);
    for (int64_t i = 0; i < n; i++) {
        if (at[i] < 0 || at[i] > most) {
            g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "node '%s': there is no place %" G_GINT64_FORMAT,
                        hn_node_label(s->node), at[i]);
            return FALSE;
        }
        if (at[i] > 0)
            y[at[i] - 1] += x[i];
    }
    return TRUE;
}

static const HnKernel scatteradd = {
    .name = "cpu.scatteradd",
    .reject = scatteradd_reject,
    .prepare = scatteradd_prepare,
    .run = scatteradd_run,
};

const HnKernel *const hn_cpu_scatteradd[] = { &scatteradd, NULL };
