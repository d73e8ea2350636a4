/*
 * OneHot: each element of the output looks whether its index is there.
 */
#include "op/onehot.h"

#include "cuda/move/cuda_strided.h"
#include "cuda/move/cuda_write_args.h"
#include "op/index.h"
#include "run/index_forms.h"

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaOneHotArgs args;
} OneHot;

static const char *onehot_reject(const HnStep *s)
{
    return hn_cuda_out(s, 0)->n >= HN_DIVIDE_LIMIT ? "2^31 elements or more" : hn_onehot_reject(s);
}

static gboolean onehot_prepare(HnStep *s, GError **error)
{
    const HnOneHot *p = s->params;
    const HnTensor *y = hn_cuda_out(s, 0);
    const int axis = hn_axis(p->axis, y->ndim);
    g_autofree char *prefix = g_strdup_printf("onehot_%s", hn_dtype_name(hn_cuda_in(s, 0)->dtype));
    OneHot *h = g_new0(OneHot, 1);
    s->state = h;
    s->in[1].unread = TRUE; /* the depth is in the output's dimensions */
    if (y->n == 0)
        return TRUE;
    h->args.n = (uint32_t)y->n;
    h->args.from_back = p->from_back;
    h->args.depth = hn_divisor(y->dims[axis]);
    h->args.inner = hn_divisor(hn_span(y->dims, axis + 1, y->ndim));
    h->f = hn_cuda_sized(s, "cuda_write", prefix, hn_dtype_size(y->dtype), error);
    return h->f != NULL;
}

static gboolean onehot_run(HnStep *s, GError **error)
{
    const OneHot *h = s->state;
    HnCudaOneHotArgs a = h->args;
    a.y = hn_cuda_out_address(s, 0);
    a.index = hn_cuda_in_address(s, 0);
    a.values = hn_cuda_in_address(s, 2);
    return a.n == 0 || hn_cuda_launch(s, h->f, hn_cuda_loop(s, a.n, THREADS), &a, error);
}

static const HnKernel onehot = {
    .name = "cuda.onehot",
    .reject = onehot_reject,
    .prepare = onehot_prepare,
    .run = onehot_run,
    .release = hn_cuda_release,
};
const HnKernel *const hn_cuda_onehot[] = { &onehot, NULL };
