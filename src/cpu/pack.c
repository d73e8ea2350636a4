#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/team.h"
#include "cpu/cpu.h"

/* Smaller weights are packed by one thread: a second one that has no core to itself costs milliseconds. */
#define PACK_BYTES ((gsize)4 << 20)

struct HnPack {
    int ref; /* under the device's lock, like all of it */
    HnCpu *cpu;
    HnTensor *from;              /* kept: its address is the key */
    dnnl_memory_desc_t view, md; /* of a pack through oneDNN */
    HnPackFn fn;                 /* of an own one ... */
    int64_t variant;
    HnBudget *budget;
    void *data;
    gsize bytes;
};

static void pack_free(HnPack *p)
{
    if (p->view != NULL)
        hn_dnnl(memory_desc_destroy)(p->view);
    if (p->md != NULL)
        hn_dnnl(memory_desc_destroy)(p->md);
    if (p->data != NULL)
        hn_budget_free(p->budget, p->data);
    if (p->budget != NULL)
        hn_budget_unref(p->budget);
    hn_tensor_unref(p->from);
    g_free(p);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnPack, pack_free)

/* p, which no step uses, goes. */
static void drop(HnCpu *c, HnPack *p)
{
    GPtrArray *list = g_hash_table_lookup(c->packs, p->from);
    g_ptr_array_remove_fast(list, p);
    if (list->len == 0)
        g_hash_table_remove(c->packs, p->from);
    c->packed_bytes -= p->bytes;
    pack_free(p);
}

/* Of the packs of one weight those that nobody uses go; `gone`: only where nobody else holds the weight. */
static void drop_idle(HnCpu *c, GPtrArray *list, gboolean gone)
{
    for (guint i = list->len; i-- > 0;) {
        HnPack *p = list->pdata[i];
        const gboolean last = list->len == 1; /* the list goes with it */
        if (p->ref == 0 && (!gone || g_atomic_int_get(&p->from->ref) == (int)list->len))
            drop(c, p);
        if (last)
            return;
    }
}

void hn_cpu_hold_packs(gpointer device, gboolean hold)
{
    HnCpu *c = device;
    g_mutex_lock(&c->lock);
    g_autoptr(GList) lists = g_hash_table_get_values(c->packs); /* each list goes with its own last pack only */
    c->hold_packs = hold;
    for (GList *l = lists; l != NULL; l = l->next)
        drop_idle(c, l->data, hold);
    g_mutex_unlock(&c->lock);
}

static HnPack *find(HnCpu *c, const HnTensor *t, const_dnnl_memory_desc_t view, const_dnnl_memory_desc_t md)
{
    const GPtrArray *list = g_hash_table_lookup(c->packs, t);
    for (guint i = 0; list != NULL && i < list->len; i++) {
        HnPack *p = list->pdata[i];
        if (p->fn == NULL && hn_dnnl(memory_desc_equal)(p->view, view) != 0 &&
            hn_dnnl(memory_desc_equal)(p->md, md) != 0)
            return p;
    }
    return NULL;
}

static dnnl_status_t reorder(HnCpu *c, const HnPack *p, void *from)
{
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    dnnl_primitive_t prim = NULL;
    dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, NULL }, { DNNL_ARG_TO, NULL } };
    dnnl_status_t status = hn_dnnl(reorder_primitive_desc_create)(&pd, p->view, c->engine, p->md, c->engine, NULL);
    if (status == dnnl_success)
        status = hn_dnnl(primitive_create)(&prim, pd);
    if (status == dnnl_success)
        status = hn_dnnl(memory_create)(&arg[0].memory, p->view, c->engine, from);
    if (status == dnnl_success)
        status = hn_dnnl(memory_create)(&arg[1].memory, p->md, c->engine, p->data);
    const int threads = omp_get_max_threads(); /* of the step that is being prepared */
    if (p->bytes < PACK_BYTES)
        omp_set_num_threads(1);
    gboolean before = hn_team_together(TRUE);
    if (status == dnnl_success)
        status = hn_dnnl(primitive_execute)(prim, c->stream, 2, arg);
    hn_team_together(before);
    omp_set_num_threads(threads);
    for (int i = 0; i < 2; i++)
        if (arg[i].memory != NULL)
            hn_dnnl(memory_destroy)(arg[i].memory);
    if (prim != NULL)
        hn_dnnl(primitive_destroy)(prim);
    return status;
}

/* Elements of a mapped file may lie at any address: then they go through aligned memory that is freed at once. */
static gboolean fill(HnCpu *c, const HnPack *p, const HnStep *s, const HnTensor *t, GError **error)
{
    void *copy = NULL;
    if (t->misaligned) {
        if ((copy = hn_budget_alloc(p->budget, t->bytes, error)) == NULL)
            return FALSE;
        memcpy(copy, t->data, t->bytes);
    }
    gboolean ok = hn_cpu_check(reorder(c, p, copy != NULL ? copy : t->data), s, error);
    if (copy != NULL)
        hn_budget_free(p->budget, copy);
    return ok;
}

/* The tensor that a pack is known by: of a half held in f32 the half, which stays. */
static HnTensor *key_of(const HnSlot *slot)
{
    return slot->origin != NULL ? slot->origin : slot->tensor;
}

static HnPack *pack_alloc(HnCpu *c, const HnStep *s, const HnSlot *slot, gsize bytes, GError **error)
{
    GPtrArray *old = g_hash_table_lookup(c->packs, key_of(slot));
    if (old != NULL)
        drop_idle(c, old, FALSE);
    g_autoptr(HnPack) p = g_new0(HnPack, 1);
    p->cpu = c;
    p->from = hn_tensor_ref(key_of(slot));
    p->budget = s->budget != NULL ? hn_budget_ref(s->budget) : NULL;
    p->bytes = bytes;
    p->data = hn_budget_alloc(p->budget, bytes, error);
    return p->data != NULL ? g_steal_pointer(&p) : NULL;
}

static void keep(HnCpu *c, HnPack *p)
{
    GPtrArray *list = g_hash_table_lookup(c->packs, p->from);
    if (list == NULL) {
        list = g_ptr_array_new();
        g_hash_table_insert(c->packs, p->from, list);
    }
    g_ptr_array_add(list, p);
    c->packed_bytes += p->bytes;
}

static HnPack *pack_new(HnCpu *c, const HnStep *s, const HnSlot *slot, const_dnnl_memory_desc_t view,
                        const_dnnl_memory_desc_t md, GError **error)
{
    g_autoptr(HnPack) p = pack_alloc(c, s, slot, hn_dnnl(memory_desc_get_size)(md), error);
    if (p == NULL || !hn_cpu_check(hn_dnnl(memory_desc_clone)(&p->view, view), s, error) ||
        !hn_cpu_check(hn_dnnl(memory_desc_clone)(&p->md, md), s, error) || !fill(c, p, s, slot->tensor, error))
        return NULL;
    keep(c, p);
    return g_steal_pointer(&p);
}

static HnPack *find_own(HnCpu *c, const HnTensor *t, HnPackFn fn, int64_t variant)
{
    const GPtrArray *list = g_hash_table_lookup(c->packs, t);
    for (guint i = 0; list != NULL && i < list->len; i++) {
        HnPack *p = list->pdata[i];
        if (p->fn == fn && p->variant == variant)
            return p;
    }
    return NULL;
}

/* Weights that training drove towards 0 end below the smallest normal number, where each product takes the processor a
 * hundred cycles; what they add to a sum is lost in any number above 1e-31. */
static void flush_denormals(float *w, gsize n)
{
    for (gsize i = 0; i < n; i++)
        w[i] = fabsf(w[i]) < FLT_MIN ? 0 : w[i]; /* NaN stays */
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

gboolean hn_pack_own(HnStep *s, int i, HnPackFn fn, int64_t variant, gsize bytes, gconstpointer data, HnPack **pack,
                     GError **error)
{
    const HnSlot *slot = s->in[i].slot;
    HnCpu *c = s->device;
    g_mutex_lock(&c->lock);
    HnPack *p = find_own(c, key_of(slot), fn, variant);
    if (p == NULL && (p = pack_alloc(c, s, slot, bytes, error)) != NULL) {
        p->fn = fn;
        p->variant = variant;
        fn(p->data, slot->tensor, data);
        if (slot->tensor->dtype == HN_F32)
            flush_denormals(p->data, bytes / sizeof(float));
        keep(c, p);
    }
    if (p != NULL)
        p->ref++;
    g_mutex_unlock(&c->lock);
    *pack = p;
    s->in[i].unread = p != NULL;
    return p != NULL;
}

gboolean hn_pack(HnStep *s, int i, const_dnnl_memory_desc_t view, const_dnnl_memory_desc_t want, HnPack **pack,
                 GError **error)
{
    const HnSlot *slot = s->in[i].slot;
    *pack = NULL;
    if (hn_dnnl(memory_desc_equal)(view, want) != 0)
        return TRUE;
    HnCpu *c = s->device;
    g_mutex_lock(&c->lock);
    HnPack *p = find(c, key_of(slot), view, want);
    if (p == NULL)
        p = pack_new(c, s, slot, view, want, error);
    if (p != NULL)
        p->ref++;
    g_mutex_unlock(&c->lock);
    *pack = p;
    s->in[i].unread = p != NULL;
    return p != NULL;
}

void *hn_pack_data(const HnPack *pack, const HnStep *s, int i)
{
    return pack != NULL ? pack->data : hn_cpu_data(&s->in[i]);
}

void hn_pack_unref(HnPack *p)
{
    if (p == NULL)
        return;
    HnCpu *c = p->cpu;
    g_mutex_lock(&c->lock);
    if (--p->ref == 0 && !c->hold_packs)
        drop(c, p);
    g_mutex_unlock(&c->lock);
}
