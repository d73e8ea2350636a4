#include "cuda/elementwise/cuda_view.h"

#include <string.h>

#include "cuda/core/cuda_layout.h"

typedef enum { ALL, ONE, ALONG } How; /* of the result's shape; one number; repeated along some axes */

static How how_of(const HnTensor *x, const HnTensor *z)
{
    return hn_tensor_same_dims(x, z) ? ALL : x->n == 1 ? ONE : ALONG;
}

/* All operands can be read channels last; of those that have the result's shape, as many are so as are plain. */
static gboolean is_last(const HnStep *s)
{
    const HnTensor *z = hn_cuda_out(s, 0);
    int votes = 0;
    gboolean any = FALSE;
    if (!hn_cuda_has_last(z) || hn_cuda_padded(z) != z->dims[1]) /* what is behind channels has to stay 0 */
        return FALSE;
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = s->in[i].unread ? NULL : hn_cuda_in(s, i);
        if (x == NULL)
            continue;
        const How how = how_of(x, z);
        if (how == ALL && hn_dtype_size(x->dtype) != hn_dtype_size(z->dtype))
            return FALSE;
        any = any || (how == ALL && s->in[i].slot->layout != NULL);
        votes += how != ALL ? 0 : s->in[i].slot->layout != NULL ? 1 : -1;
    }
    return any && votes >= 0;
}

/* The axes of x, that has fewer than z perhaps, as they lie: channels behind all others. */
static HnTensor *turned(const HnTensor *x, int ndim)
{
    int64_t dims[HN_MAX_RANK], to[HN_MAX_RANK];
    const int more = ndim - x->ndim;
    for (int i = 0; i < ndim; i++)
        dims[i] = i < more ? 1 : x->dims[i - more];
    for (int i = 0; i < ndim; i++)
        to[i] = dims[i == 0 ? 0 : i < ndim - 1 ? i + 1 : 1];
    return hn_tensor_new_borrowed(x->dtype, ndim, to, NULL);
}

/* A row of all elements. */
static HnTensor *row(const HnTensor *x)
{
    return hn_tensor_new_borrowed(x->dtype, 1, &x->n, NULL);
}

static void look_last(HnStep *s, HnCudaView *v)
{
    const HnTensor *z = hn_cuda_out(s, 0);
    gboolean along = FALSE;
    for (int i = 0; i < s->n_in; i++)
        along = along || (!s->in[i].unread && hn_cuda_in(s, i) != NULL && how_of(hn_cuda_in(s, i), z) == ALONG);
    v->z = along ? turned(z, z->ndim) : row(z);
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = s->in[i].unread ? NULL : hn_cuda_in(s, i);
        if (x == NULL)
            continue;
        const How how = how_of(x, z);
        if (how == ALL)
            hn_cuda_want_last(s, i);
        v->x[i] = how == ONE ? hn_tensor_new_borrowed(x->dtype, 0, NULL, NULL) : along ? turned(x, z->ndim) : row(x);
    }
    hn_cuda_make_last(s);
}

HnCudaView *hn_cuda_view_new(HnStep *s)
{
    HnCudaView *v = g_malloc0(sizeof *v + (gsize)s->n_in * sizeof v->x[0]);
    v->n = s->n_in;
    if (is_last(s)) {
        look_last(s, v);
        return v;
    }
    v->z = hn_tensor_ref(s->out[0].slot->tensor);
    for (int i = 0; i < s->n_in; i++)
        if (!s->in[i].unread && s->in[i].slot != NULL)
            v->x[i] = hn_tensor_ref(s->in[i].slot->tensor);
    return v;
}

void hn_cuda_view_free(HnCudaView *v)
{
    hn_tensor_unref(v->z);
    for (int i = 0; i < v->n; i++)
        hn_tensor_unref(v->x[i]);
    g_free(v);
}
