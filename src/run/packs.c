#include "run/packs.h"

struct HnPacks {
    const HnBackend *backend;
    gpointer device;
    GMutex lock;       /* of all that follows */
    GCond made;        /* a pack became ready, or was given up */
    GHashTable *packs; /* HnTensor * -> GPtrArray of HnPack * */
    gsize bytes;
    guint holds;
};

HnPacks *hn_packs_new(const HnBackend *backend, gpointer device)
{
    HnPacks *c = g_new0(HnPacks, 1);
    c->backend = backend;
    c->device = device;
    c->packs = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    g_mutex_init(&c->lock);
    g_cond_init(&c->made);
    return c;
}

void hn_packs_free(HnPacks *c)
{
    if (c == NULL)
        return;
    g_hash_table_unref(c->packs);
    g_cond_clear(&c->made);
    g_mutex_clear(&c->lock);
    g_free(c);
}

static void pack_free(HnPack *p)
{
    hn_layout_unref(p->form.view);
    hn_layout_unref(p->form.want);
    if (p->data != NULL && p->cache->backend->memory != NULL)
        p->cache->backend->memory->free(p->cache->device, p->data);
    else if (p->data != NULL)
        hn_budget_free(p->budget, p->data);
    if (p->budget != NULL)
        hn_budget_unref(p->budget);
    hn_tensor_unref(p->from);
    g_free(p);
}

/* p, which no step uses, goes. */
static void drop(HnPacks *c, HnPack *p)
{
    GPtrArray *list = g_hash_table_lookup(c->packs, p->from);
    g_ptr_array_remove_fast(list, p);
    if (list->len == 0)
        g_hash_table_remove(c->packs, p->from);
    c->bytes -= p->bytes;
    pack_free(p);
}

/* Of the packs of one weight those that nobody uses go; `gone`: only where nobody else holds the weight. */
static void drop_idle(HnPacks *c, GPtrArray *list, gboolean gone)
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

static void drop_all_idle(HnPacks *c, gboolean gone)
{
    g_autoptr(GList) lists = g_hash_table_get_values(c->packs); /* each list goes with its own last pack only */
    for (GList *l = lists; l != NULL; l = l->next)
        drop_idle(c, l->data, gone);
}

void hn_packs_hold(HnPacks *c)
{
    g_mutex_lock(&c->lock);
    c->holds++;
    g_mutex_unlock(&c->lock);
}

void hn_packs_sweep(HnPacks *c)
{
    g_mutex_lock(&c->lock);
    drop_all_idle(c, TRUE);
    g_mutex_unlock(&c->lock);
}

void hn_packs_release(HnPacks *c)
{
    g_mutex_lock(&c->lock);
    if (--c->holds == 0)
        drop_all_idle(c, FALSE);
    g_mutex_unlock(&c->lock);
}

gsize hn_packs_bytes(HnPacks *c)
{
    g_mutex_lock(&c->lock);
    const gsize bytes = c->bytes;
    g_mutex_unlock(&c->lock);
    return bytes;
}

static gboolean same_layout(const HnPacks *c, const HnLayout *a, const HnLayout *b)
{
    return a == b || (a != NULL && b != NULL && c->backend->layout_equal(a, b));
}

static HnPack *find(const HnPacks *c, const HnTensor *key, const HnPackForm *f)
{
    const GPtrArray *list = g_hash_table_lookup(c->packs, key);
    for (guint i = 0; list != NULL && i < list->len; i++) {
        HnPack *p = list->pdata[i];
        if (!p->alone && p->form.fn == f->fn && p->form.variant == f->variant &&
            same_layout(c, p->form.view, f->view) && same_layout(c, p->form.want, f->want))
            return p;
    }
    return NULL;
}

/* A pack that is not ready yet, known to all. */
static HnPack *add(HnPacks *c, HnTensor *key, const HnPackForm *f, HnBudget *budget, gsize bytes, gboolean alone)
{
    GPtrArray *list = g_hash_table_lookup(c->packs, key);
    if (list != NULL)
        drop_idle(c, list, FALSE);
    if ((list = g_hash_table_lookup(c->packs, key)) == NULL)
        g_hash_table_insert(c->packs, key, list = g_ptr_array_new());
    HnPack *p = g_new0(HnPack, 1);
    p->cache = c;
    p->from = hn_tensor_ref(key);
    p->form = *f;
    if (f->view != NULL)
        hn_layout_ref(f->view);
    if (f->want != NULL)
        hn_layout_ref(f->want);
    p->budget = budget != NULL ? hn_budget_ref(budget) : NULL;
    p->bytes = bytes;
    p->alone = alone;
    c->bytes += bytes;
    g_ptr_array_add(list, p);
    return p;
}

/* One that is there, made or in the making; NULL: the caller has to make it. Those who wait hold no reference: a pack
 * that is given up goes, and the first of them makes the next one. */
static HnPack *wait_for(HnPacks *c, const HnTensor *key, const HnPackForm *f)
{
    HnPack *p;
    while ((p = find(c, key, f)) != NULL && !p->ready)
        g_cond_wait(&c->made, &c->lock);
    return p;
}

/* Elements that lie on the host, onto the device; behind it they may go. */
static gboolean upload(const HnPack *p, const HnStep *s, const void *from, GError **error)
{
    const HnMemory *m = p->cache->backend->memory;
    return m->upload(s->stream, p->data, from, p->bytes, error) && m->wait(s->stream, error);
}

static gboolean make(HnPack *p, const HnStep *s, const HnTensor *t, HnPackFill fill, gconstpointer data, GError **error)
{
    const HnMemory *m = p->cache->backend->memory;
    p->data = m != NULL ? m->alloc(p->cache->device, p->bytes, error) : hn_budget_alloc(p->budget, p->bytes, error);
    if (p->data == NULL || m == NULL)
        return p->data != NULL && fill(s, p->data, t, data, error);
    if (fill == NULL)
        return upload(p, s, t->data, error);
    void *packed = hn_budget_alloc(p->budget, p->bytes, error);
    const gboolean ok = packed != NULL && fill(s, packed, t, data, error) && upload(p, s, packed, error);
    hn_budget_free(p->budget, packed);
    return ok;
}

HnPack *hn_packs_get(const HnStep *s, const HnSlot *slot, const HnPackForm *form, gsize bytes, HnPackFill fill,
                     gconstpointer data, GError **error)
{
    HnTensor *key = slot->origin != NULL ? slot->origin : slot->tensor;
    HnPacks *c = s->packs;
    g_mutex_lock(&c->lock);
    HnPack *p = slot->variable ? NULL : wait_for(c, key, form);
    const gboolean first = p == NULL;
    if (first)
        p = add(c, key, form, s->budget, bytes, slot->variable);
    p->ref++;
    g_mutex_unlock(&c->lock);
    if (!first)
        return p;
    const gboolean ok = make(p, s, slot->tensor, fill, data, error);
    g_mutex_lock(&c->lock);
    p->ready = ok;
    if (!ok)
        drop(c, p);
    g_cond_broadcast(&c->made);
    g_mutex_unlock(&c->lock);
    return ok ? p : NULL;
}

void hn_pack_unref(HnPack *p)
{
    if (p == NULL)
        return;
    HnPacks *c = p->cache;
    g_mutex_lock(&c->lock);
    if (--p->ref == 0 && c->holds == 0)
        drop(c, p);
    g_mutex_unlock(&c->lock);
}
