#include "cuda/conv/cuda_window.h"

#define MOST ((int64_t)1 << 29) /* sums of a few of these fit 32 bits */

const char *hn_cuda_reject_axes(int n, const HnWindowAxis *axis)
{
    if (n < 1 || n > HN_CUDA_SPATIAL)
        return "only 1 to 3 spatial axes";
    for (int i = 0; i < n; i++) {
        const HnWindowAxis *a = &axis[i];
        const int64_t size = MAX(MAX(a->in, a->out), MAX(a->kernel, MAX(a->stride, a->dilation)));
        const int64_t pad = MAX(MAX(a->pad, -a->pad), MAX(a->pad_end, -a->pad_end));
        if (MAX(size, pad) >= MOST || MAX((a->out - 1) * a->stride, 0) + (a->kernel - 1) * a->dilation >= MOST)
            return "an axis of 2^29 places or more";
    }
    return NULL;
}

void hn_cuda_axes(int n, const HnWindowAxis *axis, HnCudaWindowAxis *to)
{
    HnWindowAxis all[HN_CUDA_SPATIAL];
    hn_window_axes(n, axis, HN_CUDA_SPATIAL, all);
    for (int i = 0; i < HN_CUDA_SPATIAL; i++) {
        const HnWindowAxis *a = &all[i];
        to[i] = (HnCudaWindowAxis){ (int32_t)a->in,       (int32_t)a->out, (int32_t)a->kernel, (int32_t)a->stride,
                                    (int32_t)a->dilation, (int32_t)a->pad, (int32_t)a->pad_end };
    }
}

const char *hn_cuda_reject_values(const HnStep *s)
{
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnSlot *slot = i < s->n_in ? s->in[i].slot : s->out[i - s->n_in].slot;
        if (slot == NULL)
            continue;
        if (!hn_cuda_is_float(slot->tensor->dtype))
            return "only f32, f16, bf16";
        if (slot->tensor->n == 0)
            return "nothing to compute";
    }
    return NULL;
}
