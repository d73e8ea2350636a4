/*
 * Packed weights in the forms that the CPU's kernels want: arrangements of their own, and oneDNN's layouts.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/team.h"
#include "cpu/core/cpu_kernel.h"

/* Smaller weights are packed by one thread: a second one that has no core to itself costs milliseconds. */
#define PACK_BYTES ((gsize)4 << 20)

/* --- through oneDNN ---------------------------------------------------------------------------------------------- */

typedef struct {
    const_dnnl_memory_desc_t view, want;
    gsize bytes;
} Reorder;

static dnnl_status_t reorder(const HnStep *s, const Reorder *r, void *from, void *to)
{
    HnCpu *c = s->device;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    dnnl_primitive_t prim = NULL;
    dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, NULL }, { DNNL_ARG_TO, NULL } };
    dnnl_status_t status = hn_dnnl(reorder_primitive_desc_create)(&pd, r->view, c->engine, r->want, c->engine, NULL);
    if (status == dnnl_success)
        status = hn_dnnl(primitive_create)(&prim, pd);
    if (status == dnnl_success)
        status = hn_dnnl(memory_create)(&arg[0].memory, r->view, c->engine, from);
    if (status == dnnl_success)
        status = hn_dnnl(memory_create)(&arg[1].memory, r->want, c->engine, to);
    const int threads = hn_onednn()->max_threads(); /* of the step that is being prepared */
    if (r->bytes < PACK_BYTES)
        hn_onednn()->set_threads(1);
    gboolean before = hn_team_together(TRUE);
    if (status == dnnl_success)
        status = hn_dnnl(primitive_execute)(prim, ((HnCpuStream *)s->stream)->onednn, 2, arg);
    hn_team_together(before);
    hn_onednn()->set_threads(threads);
    for (int i = 0; i < 2; i++)
        if (arg[i].memory != NULL)
            hn_dnnl(memory_destroy)(arg[i].memory);
    if (prim != NULL)
        hn_dnnl(primitive_destroy)(prim);
    return status;
}

/* Elements of a mapped file may lie at any address: then they go through aligned memory that is freed at once. */
static gboolean fill_reordered(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    void *copy = NULL;
    if (t->misaligned) {
        if ((copy = hn_budget_alloc(s->budget, t->bytes, error)) == NULL)
            return FALSE;
        memcpy(copy, t->data, t->bytes);
    }
    gboolean ok = hn_cpu_check(reorder(s, data, copy != NULL ? copy : t->data, to), s, error);
    if (copy != NULL)
        hn_budget_free(s->budget, copy);
    return ok;
}

gboolean hn_pack(HnStep *s, int i, const_dnnl_memory_desc_t view, const_dnnl_memory_desc_t want, HnPack **pack,
                 GError **error)
{
    *pack = NULL;
    if (hn_dnnl(memory_desc_equal)(view, want) != 0)
        return TRUE;
    const Reorder r = { view, want, hn_dnnl(memory_desc_get_size)(want) };
    const HnPackForm form = { .view = hn_layout_new(view), .want = hn_layout_new(want) };
    *pack = hn_packs_get(s, s->in[i].slot, &form, r.bytes, fill_reordered, &r, error);
    s->in[i].unread = *pack != NULL;
    hn_layout_unref(form.view);
    hn_layout_unref(form.want);
    return *pack != NULL;
}

/* --- our own ------------------------------------------------------------------------------------------------------ */

typedef struct {
    HnPackFn fn;
    gsize bytes;
    gconstpointer data;
    gboolean normal;   /* fn leaves no denormal ones */
    const HnTensor *t; /* to be written anew: the elements, and where they go */
    void *to;
} Own;

/* Weights that training drove towards 0 end below the smallest normal number, where each product takes the processor a
 * hundred cycles; what they add to a sum is lost in any number above 1e-31. */
static void flush_denormals(float *w, gsize n)
{
    for (gsize i = 0; i < n; i++)
        w[i] = fabsf(w[i]) < FLT_MIN ? 0 : w[i]; /* NaN stays */
}

static gboolean fill_own(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    const Own *own = data;
    (void)s;
    (void)error;
    own->fn(to, t, own->data);
    if (t->dtype == HN_F32 && !own->normal)
        flush_denormals(to, own->bytes / sizeof(float));
    return TRUE;
}

static void write_anew(const HnStep *s, gpointer own)
{
    const Own *o = own;
    fill_own(s, o->to, o->t, own, NULL);
}

static gboolean pack_own(HnStep *s, int i, HnPackFn fn, int64_t variant, gsize bytes, gconstpointer data,
                         gboolean normal, HnPack **pack, GError **error)
{
    const HnSlot *slot = s->in[i].slot;
    const Own own = { fn, bytes, data, normal, slot->tensor, NULL };
    const HnPackForm form = { .fn = fn, .variant = variant };
    *pack = hn_packs_get(s, slot, &form, bytes, fill_own, &own, error);
    s->in[i].unread = *pack != NULL;
    if (*pack == NULL || !slot->variable)
        return *pack != NULL;
    Own *again = g_memdup2(&own, sizeof own);
    again->to = (*pack)->data;
    hn_step_renews(s, write_anew, again);
    return TRUE;
}

gboolean hn_pack_own(HnStep *s, int i, HnPackFn fn, int64_t variant, gsize bytes, gconstpointer data, HnPack **pack,
                     GError **error)
{
    return pack_own(s, i, fn, variant, bytes, data, FALSE, pack, error);
}

gboolean hn_pack_normal(HnStep *s, int i, HnPackFn fn, int64_t variant, gsize bytes, gconstpointer data, HnPack **pack,
                        GError **error)
{
    return pack_own(s, i, fn, variant, bytes, data, TRUE, pack, error);
}

guint64 hn_pack_mix(guint64 hash, const HnTensor *t)
{
    const char *bytes = t != NULL ? t->data : NULL;
    guint64 word;
    for (gsize i = 0; t != NULL && i < t->bytes; i += sizeof word) {
        word = 0;
        memcpy(&word, bytes + i, MIN(sizeof word, t->bytes - i));
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    return hash;
}

void *hn_pack_data(const HnPack *pack, const HnStep *s, int i)
{
    return pack != NULL ? pack->data : hn_cpu_data(&s->in[i]);
}
