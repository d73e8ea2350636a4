#include "run/fourier_forms.h"

gboolean hn_fourier_number(const HnStep *s, int i, int64_t *v)
{
    const HnTensor *t = hn_step_in(s, i);
    if (t == NULL || !s->in[i].slot->constant || t->n != 1)
        return FALSE;
    *v = hn_tensor_get_i64(t, 0);
    return TRUE;
}

int hn_fourier_axis(const HnStep *s)
{
    const HnDft *p = s->params;
    int64_t axis = p->axis;
    if (p->by_input && hn_step_in(s, HN_DFT_AXIS) != NULL && !hn_fourier_number(s, HN_DFT_AXIS, &axis))
        return -1;
    return hn_axis(axis, hn_step_in(s, 0)->ndim);
}

int64_t hn_fourier_length(const HnStep *s)
{
    const HnDft *p = s->params;
    const int axis = hn_fourier_axis(s);
    int64_t n = 0;
    if (axis < 0 || hn_step_out(s, 0) == NULL)
        return 0;
    if (hn_step_in(s, HN_DFT_LENGTH) == NULL && !p->inverse)
        return hn_step_in(s, 0)->dims[axis];
    if (hn_step_in(s, HN_DFT_LENGTH) != NULL && hn_fourier_number(s, HN_DFT_LENGTH, &n))
        return n;
    return p->onesided && !p->inverse ? 0 : hn_step_out(s, 0)->dims[axis];
}

int64_t hn_fourier_frame(const HnStep *s)
{
    const HnDft *p = s->params;
    const HnTensor *window = hn_step_in(s, HN_STFT_WINDOW);
    int64_t n = 0;
    if (hn_step_out(s, 0) == NULL || !hn_fourier_number(s, HN_STFT_STEP, &n) || n < 1)
        return 0;
    if (window != NULL)
        return window->n;
    if (hn_step_in(s, HN_STFT_LENGTH) == NULL)
        return hn_step_in(s, 0)->dims[1];
    if (hn_fourier_number(s, HN_STFT_LENGTH, &n))
        return n;
    return p->onesided ? 0 : hn_step_out(s, 0)->dims[2];
}
