#include "cuda/elementwise/cuda_end.h"

#include "cuda/core/cuda_layout.h"
#include "op/ops.h"
#include "run/element_program.h"

/* Functions of one number; those that take two are below. */
static const HnElementCode functions[] = { HN_DO_clip, HN_DO_hardsigmoid, HN_DO_hardswish, HN_DO_leakyrelu,
                                           HN_DO_relu, HN_DO_sigmoid,     HN_DO_swish };

static const struct {
    const HnOp *op;
    HnElementCode code;
    gboolean turned; /* the result so far may be the second of both */
} pairs[] = {
    { &hn_op_add, HN_DO_add, TRUE },      { &hn_op_mul, HN_DO_mul, TRUE },  { &hn_op_sub, HN_DO_sub, FALSE },
    { &hn_op_prelu, HN_DO_prelu, FALSE }, { &hn_op_div, HN_DO_div, FALSE },
};

/* The port of input i of fused node k, which is not the result so far. */
static int port_of(const HnStep *s, int k, int i)
{
    return s->fused_port[k] + (i < s->fused_at[k] ? i : i - 1);
}

static gboolean read_function(const HnStep *s, int k, HnCudaEndDo *d)
{
    const HnNode *u = s->fused[k];
    HnOperand in[HN_GROUP_INPUTS] = { { 0 } };
    HnElementFn f;
    const int n = (int)u->in->len;
    if (n > HN_GROUP_INPUTS || s->fused_at[k] != 0)
        return FALSE;
    in[0].present = TRUE;
    for (int i = 1; i < n; i++) {
        const HnSlot *c = s->in[port_of(s, k, i)].slot;
        in[i] = (HnOperand){ .known = c != NULL && c->constant ? c->tensor : NULL, .present = c != NULL };
        if (c != NULL && !c->constant)
            return FALSE;
    }
    if (hn_element_fn(u->op, u->params, in, n, &f) != NULL)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(functions); i++)
        if (functions[i] == f.code) {
            *d = (HnCudaEndDo){ .a = f.a, .b = f.b, .code = (int32_t)f.code, .of = HN_CUDA_END_NONE };
            return TRUE;
        }
    return FALSE;
}

/* How x lies under y: all of it, one number for each channel of that axis, or one; HN_CUDA_END_NONE: another way. */
static int32_t shape_of(const HnTensor *x, const HnTensor *y, int axis)
{
    const int skip = y->ndim - x->ndim;
    gboolean same = skip == 0, channel = TRUE;
    if (x->dtype != y->dtype || skip < 0)
        return HN_CUDA_END_NONE;
    for (int i = 0; i < x->ndim; i++) {
        same = same && x->dims[i] == y->dims[i];
        channel = channel && x->dims[i] == (i + skip == axis ? y->dims[axis] : 1);
    }
    if (x->n == 1)
        return HN_CUDA_END_ONE;
    return same ? HN_CUDA_END_ELEMENT : channel ? HN_CUDA_END_CHANNEL : HN_CUDA_END_NONE;
}

static gboolean read_pair(const HnStep *s, int k, int axis, HnCudaEndDo *d)
{
    const HnNode *u = s->fused[k];
    for (guint i = 0; u->in->len == 2 && i < G_N_ELEMENTS(pairs); i++) {
        if (pairs[i].op != u->op)
            continue;
        const HnSlot *x = s->in[port_of(s, k, 1 - s->fused_at[k])].slot;
        if (x == NULL || x->tensor == NULL || (s->fused_at[k] != 0 && !pairs[i].turned))
            return FALSE;
        *d = (HnCudaEndDo){ .code = (int32_t)pairs[i].code, .of = shape_of(x->tensor, hn_cuda_out(s, 0), axis) };
        return d->of != HN_CUDA_END_NONE;
    }
    return FALSE;
}

gboolean hn_cuda_end_fits_axis(const HnStep *s, int axis)
{
    HnCudaEndDo d;
    const HnTensor *y = hn_cuda_out(s, 0);
    if (s->n_fused > HN_CUDA_END_MAX || y == NULL || !hn_cuda_is_float(y->dtype) || axis >= y->ndim)
        return FALSE;
    for (int k = 0; k < s->n_fused; k++)
        if (!read_pair(s, k, axis, &d) && !read_function(s, k, &d))
            return FALSE;
    return TRUE;
}

gboolean hn_cuda_end_is_short(const HnStep *s)
{
    HnCudaEndDo d;
    for (int k = 0; k < s->n_fused; k++)
        if (read_function(s, k, &d) && (d.code == HN_DO_sigmoid || d.code == HN_DO_swish))
            return FALSE;
    return TRUE;
}

int32_t hn_cuda_end_adds(const HnStep *s, int k, int axis, int *port)
{
    HnCudaEndDo d;
    if (!read_pair(s, k, axis, &d) || d.code != HN_DO_add)
        return HN_CUDA_END_NONE;
    *port = port_of(s, k, 1 - s->fused_at[k]);
    return d.of;
}

gboolean hn_cuda_end_fits(const HnStep *s)
{
    return hn_cuda_end_fits_axis(s, 1);
}

void hn_cuda_end_init(HnStep *s, HnCudaEnd *e, int axis)
{
    e->n = s->n_fused;
    for (int k = 0; k < s->n_fused; k++) {
        if (read_pair(s, k, axis, &e->at[k]))
            continue;
        (void)read_function(s, k, &e->at[k]);
        for (int i = 1; i < (int)s->fused[k]->in->len; i++)
            s->in[port_of(s, k, i)].unread = TRUE;
    }
}

gboolean hn_cuda_end_beside(const HnStep *s, int i)
{
    const HnTensor *t = i >= s->n_in && s->in[i].slot != NULL ? s->in[i].slot->tensor : NULL;
    return t != NULL && t->n > 1 && hn_tensor_same_dims(t, hn_cuda_out(s, 0));
}

void hn_cuda_end_last(HnStep *s)
{
    for (int i = s->n_in; i < s->n_in + s->n_hidden; i++)
        if (hn_cuda_end_beside(s, i))
            hn_cuda_want_last(s, i);
}

void hn_cuda_end_place(const HnStep *s, HnCudaEnd *e)
{
    for (int k = 0; k < e->n; k++)
        if (e->at[k].of != HN_CUDA_END_NONE) {
            const int port = port_of(s, k, 1 - s->fused_at[k]);
            e->at[k].x = hn_cuda_in_address(s, port);
            e->at[k].pitch = e->at[k].of == HN_CUDA_END_ELEMENT ? hn_cuda_pitch(s->in[port].slot) : 0;
        }
}
