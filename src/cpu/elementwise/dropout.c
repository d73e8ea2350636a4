/*
 * Dropout that does not train hands its input on: mostly in place, which leaves nothing to do.
 */
#include "op/dropout.h"

#include <string.h>

#include "cpu/core/strided_copy.h"

static const char *dropout_reject(const HnStep *s)
{
    const char *reason = hn_dropout_trains(s);
    return reason != NULL ? reason : hn_copy_reject(hn_cpu_in(s, 0));
}

static gboolean dropout_prepare(HnStep *s, GError **error)
{
    (void)error;
    uint64_t *one = g_new0(uint64_t, 2); /* an element of the mask */
    s->state = one;
    if (s->n_out > 1 && s->out[1].slot != NULL) {
        HnTensor *t = hn_tensor_new_borrowed(s->out[1].slot->tensor->dtype, 0, NULL, one);
        hn_tensor_set_f64(t, 0, 1);
        hn_tensor_unref(t);
    }
    HnSlot *from = s->in[0].slot;
    s->in[0].any = from->layout != NULL && s->out[0].slot != NULL;
    if (s->in[0].any)
        s->out[0].slot->layout = hn_layout_ref(from->layout);
    hn_copy_unread(s);
    return TRUE;
}

static void dropout_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

static gboolean dropout_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    void *y = s->out[0].slot != NULL ? hn_cpu_data(&s->out[0]) : x->data;
    if (y != x->data)
        memcpy(y, x->data, s->in[0].slot->layout != NULL ? s->in[0].slot->layout->bytes : x->bytes);
    if (s->n_out > 1 && s->out[1].slot != NULL)
        hn_copy_fill(hn_cpu_data(&s->out[1]), s->state, hn_dtype_size(s->out[1].slot->tensor->dtype), x->n);
    return TRUE;
}

static const HnKernel dropout_inference = {
    .name = "cpu.dropout",
    .reject = dropout_reject,
    .prepare = dropout_prepare,
    .run = dropout_run,
    .release = dropout_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_dropout[] = { &dropout_inference, NULL };
