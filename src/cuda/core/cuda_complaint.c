/*
 * Elements that kernels cannot do with: the stream has one number on the device, and a list of steps that may write it.
 */
#include "cuda/core/cuda_kernel.h"

#define NOTHING UINT64_MAX /* bytes of 0xff */

typedef struct {
    const HnStep *step; /* NULL: it is gone */
    HnCudaSayFn say;
} Complainer;

static gboolean clear_place(HnCudaStream *t, GError **error)
{
    const HnCuda *c = t->device;
    t->work++;
    return hn_cuda_check(c, c->driver->fill(t->complaint, 0xff, sizeof NOTHING, t->stream), "clearing memory", error);
}

static gboolean make_place(HnCudaStream *t, GError **error)
{
    const HnCuda *c = t->device;
    if (t->complaint != 0)
        return TRUE;
    if (!hn_cuda_enter(c, error) ||
        (t->complained == NULL &&
         !hn_cuda_check(c, c->driver->host_alloc((void **)&t->complained, sizeof *t->complained, 0),
                        "allocating pinned memory", error)) ||
        !hn_cuda_check(c, c->driver->alloc(&t->complaint, sizeof NOTHING), "allocating memory", error))
        return FALSE;
    t->complainers = g_array_new(FALSE, TRUE, sizeof(Complainer));
    return clear_place(t, error);
}

gboolean hn_cuda_complains(const HnStep *s, HnCudaSayFn say, HnCudaComplaint *c, GError **error)
{
    HnCudaStream *t = s->stream;
    guint id = 0;
    if (!make_place(t, error))
        return FALSE;
    while (id < t->complainers->len && g_array_index(t->complainers, Complainer, id).step != NULL)
        id++;
    if (id == t->complainers->len)
        g_array_set_size(t->complainers, id + 1);
    g_array_index(t->complainers, Complainer, id) = (Complainer){ s, say };
    *c = (HnCudaComplaint){ t->complaint, (uint64_t)id << HN_COMPLAINT_BITS };
    return TRUE;
}

void hn_cuda_complains_no_more(const HnStep *s)
{
    const HnCudaStream *t = s->stream;
    for (guint i = 0; t->complainers != NULL && i < t->complainers->len; i++)
        if (g_array_index(t->complainers, Complainer, i).step == s)
            g_array_index(t->complainers, Complainer, i).step = NULL;
}

gboolean hn_cuda_ask_complaint(HnCudaStream *t, GError **error)
{
    const HnCuda *c = t->device;
    t->work += t->complaint != 0;
    return t->complaint == 0 ||
           hn_cuda_check(c, c->driver->download(t->complained, t->complaint, sizeof *t->complained, t->stream),
                         "copying from the device", error);
}

gboolean hn_cuda_hear_complaint(HnCudaStream *t, GError **error)
{
    if (t->complaint == 0 || *t->complained == NOTHING)
        return TRUE;
    const Complainer *who = &g_array_index(t->complainers, Complainer, (guint)(*t->complained >> HN_COMPLAINT_BITS));
    who->say(who->step, (int64_t)(*t->complained & ((UINT64_C(1) << HN_COMPLAINT_BITS) - 1)), error);
    g_prefix_error(error, "node '%s' (%s): ", hn_node_label(who->step->node), who->step->node->op_type);
    clear_place(t, NULL);
    return FALSE;
}

void hn_cuda_free_complaint(HnCudaStream *t)
{
    const HnCudaDriver *d = t->device->driver;
    if (t->complaint != 0)
        d->free(t->complaint);
    if (t->complained != NULL)
        d->host_free(t->complained);
    g_clear_pointer(&t->complainers, g_array_unref);
}
