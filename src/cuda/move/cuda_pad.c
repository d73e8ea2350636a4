/*
 * Pad with amounts that are known ahead: each element of the output finds its own.
 */
#include "op/pad.h"

#include <string.h>

#include "cuda/move/cuda_pad_args.h"
#include "cuda/move/cuda_strided.h"
#include "op/index.h"

#define THREADS 256

_Static_assert((int)HN_PAD_CONSTANT == HN_CUDA_PAD_VALUE && (int)HN_PAD_REFLECT == HN_CUDA_PAD_REFLECT &&
                   (int)HN_PAD_EDGE == HN_CUDA_PAD_EDGE && (int)HN_PAD_WRAP == HN_CUDA_PAD_WRAP,
               "modes have the same numbers on the device");

typedef struct {
    HnCuFunction f;
    HnCudaPadArgs args;
} Pad;

static const char *pad_reject(const HnStep *s)
{
    if (hn_cuda_out(s, 0)->n >= HN_DIVIDE_LIMIT)
        return "2^31 elements or more";
    return hn_pad_reject(s);
}

static gboolean is_plain(const HnBorder *b)
{
    return b->lead == 0 && b->tail == 0 && b->first == 0;
}

/* Axes; those without borders that follow each other are one. */
static void axes_of(const HnStep *s, HnCudaPadArgs *a)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    HnBorder border[HN_MAX_RANK];
    int64_t strides[HN_MAX_RANK], dims[HN_MAX_RANK];
    gboolean before = FALSE;
    int n = 0;
    (void)hn_pad_borders(s, border);
    hn_strides(x->ndim, x->dims, strides);
    for (int k = 0; k < x->ndim; k++) {
        const HnBorder *b = &border[k];
        const gboolean plain = is_plain(b) && b->kept == y->dims[k];
        n += plain && before ? 0 : 1;
        dims[n - 1] = plain && before ? dims[n - 1] * y->dims[k] : y->dims[k];
        a->first[n - 1] = b->first;
        a->lead[n - 1] = b->lead;
        a->kept[n - 1] = plain ? dims[n - 1] : b->kept;
        a->strides[n - 1] = strides[k];
        before = plain;
    }
    a->ndim = n;
    for (int k = 0; k < n && y->n > 0; k++)
        a->dims[k] = hn_divisor(dims[k]);
}

static gboolean pad_prepare(HnStep *s, GError **error)
{
    const HnPad *op = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    Pad *p = g_new0(Pad, 1);
    s->state = p;
    axes_of(s, &p->args);
    p->args.n = (uint32_t)hn_cuda_out(s, 0)->n;
    p->args.mode = (int32_t)op->mode;
    if (!op->inputs) {
        HnTensor *t = hn_tensor_new_borrowed(x->dtype, 0, NULL, p->args.value);
        hn_tensor_set_f64(t, 0, (double)op->value);
        hn_tensor_unref(t);
    }
    for (int i = 1; i < s->n_in; i += 2)
        s->in[i].unread = TRUE;
    p->f = hn_cuda_sized(s, "cuda_pad", "pad", hn_dtype_size(x->dtype), error);
    return p->f != NULL;
}

static gboolean pad_run(HnStep *s, GError **error)
{
    const Pad *p = s->state;
    HnCudaPadArgs a = p->args;
    if (a.n == 0)
        return TRUE;
    a.y = hn_cuda_out_address(s, 0);
    a.x = hn_cuda_in_address(s, 0);
    a.given = ((const HnPad *)s->params)->inputs ? hn_cuda_in_address(s, 2) : 0;
    return hn_cuda_launch(s, p->f, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static const HnKernel pad = {
    .name = "cuda.pad",
    .reject = pad_reject,
    .prepare = pad_prepare,
    .run = pad_run,
    .release = hn_cuda_release,
};
const HnKernel *const hn_cuda_pad[] = { &pad, NULL };
