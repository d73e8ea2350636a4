#include "run/resident.h"

/* A piece of the device's memory. */
struct HnSlab {
    int ref;
    void *data;
};

struct HnResidents {
    const HnBackend *backend;
    gpointer device;
    GMutex lock;     /* of all that follows */
    GHashTable *all; /* HnTensor * -> HnResident * */
    gpointer stream; /* that fetches; NULL until somebody does */
};

HnResidents *hn_residents_new(const HnBackend *backend, gpointer device)
{
    HnResidents *r = g_new0(HnResidents, 1);
    r->backend = backend;
    r->device = device;
    r->all = g_hash_table_new(NULL, NULL);
    g_mutex_init(&r->lock);
    return r;
}

void hn_residents_free(HnResidents *r)
{
    if (r == NULL)
        return;
    if (r->stream != NULL)
        r->backend->stream_free(r->stream);
    g_hash_table_unref(r->all);
    g_mutex_clear(&r->lock);
    g_free(r);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

static gsize bytes_in_slab(const HnTensor *t)
{
    return (t->bytes + HN_RESIDENT_ALIGN - 1) / HN_RESIDENT_ALIGN * HN_RESIDENT_ALIGN;
}

static HnResident *add(HnResidents *r, HnTensor *host, HnSlab *slab, gsize offset)
{
    HnResident *x = g_new0(HnResident, 1);
    x->host = hn_tensor_ref(host);
    x->there = hn_tensor_new_borrowed(host->dtype, host->ndim, host->dims, (char *)slab->data + offset);
    x->slab = slab;
    x->newer = HN_ON_HOST_NEWER;
    slab->ref++;
    g_hash_table_insert(r->all, host, x);
    return x;
}

static void drop(HnResidents *r, HnResident *x)
{
    g_hash_table_remove(r->all, x->host);
    if (--x->slab->ref == 0) {
        r->backend->memory->free(r->device, x->slab->data);
        g_free(x->slab);
    }
    hn_tensor_unref(x->host);
    hn_tensor_unref(x->there);
    g_free(x);
}

/* Of those that have none: how many bytes their places take. */
static gsize bytes_missing(const HnResidents *r, HnTensor *const *host, guint n)
{
    gsize bytes = 0;
    for (guint i = 0; i < n; i++)
        if (!hn_dtype_is_refs(host[i]->dtype) && g_hash_table_lookup(r->all, host[i]) == NULL)
            bytes += MAX(bytes_in_slab(host[i]), HN_RESIDENT_ALIGN); /* no two at one address */
    return bytes;
}

static gboolean get(HnResidents *r, HnTensor *const *host, guint n, HnResident **made, GError **error)
{
    const gsize bytes = bytes_missing(r, host, n);
    HnSlab *slab = NULL;
    if (bytes > 0) {
        void *data = r->backend->memory->alloc(r->device, bytes, error);
        if (data == NULL)
            return FALSE;
        slab = g_new0(HnSlab, 1);
        slab->data = data;
    }
    gsize offset = 0;
    for (guint i = 0; i < n; i++) {
        if (hn_dtype_is_refs(host[i]->dtype))
            continue;
        if ((made[i] = g_hash_table_lookup(r->all, host[i])) == NULL) {
            made[i] = add(r, host[i], slab, offset);
            offset += MAX(bytes_in_slab(host[i]), HN_RESIDENT_ALIGN);
        }
        made[i]->ref++;
    }
    return TRUE;
}

gboolean hn_residents_get(HnResidents *r, HnTensor *const *host, guint n, HnResident **made, GError **error)
{
    g_mutex_lock(&r->lock);
    const gboolean ok = get(r, host, n, made, error);
    g_mutex_unlock(&r->lock);
    return ok;
}

void hn_residents_unref(HnResidents *r, HnResident *const *list, guint n)
{
    g_mutex_lock(&r->lock);
    for (guint i = 0; i < n; i++)
        if (list[i] != NULL && --list[i]->ref == 0)
            drop(r, list[i]);
    g_mutex_unlock(&r->lock);
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

void hn_residents_note(HnResidents *r, HnResident *const *list, guint n, HnNewer newer)
{
    g_mutex_lock(&r->lock);
    for (guint i = 0; i < n; i++)
        if (list[i] != NULL)
            list[i]->newer = newer;
    g_mutex_unlock(&r->lock);
}

static gboolean copy(const HnResidents *r, const HnResident *x, HnNewer newer, gpointer stream, GError **error)
{
    const HnMemory *m = r->backend->memory;
    return newer == HN_ON_HOST_NEWER ? m->upload(stream, x->there->data, x->host->data, x->host->bytes, error)
                                     : m->download(stream, x->host->data, x->there->data, x->host->bytes, error);
}

/* From where it is newer to the other place; waits if anything was copied. Under the lock: nobody else begins before
 * the elements are there. */
static gboolean even_out(HnResidents *r, HnResident *const *list, guint n, HnNewer newer, gpointer stream,
                         GError **error)
{
    gboolean any = FALSE, ok = TRUE;
    for (guint i = 0; i < n && ok; i++)
        if (list[i] != NULL && list[i]->newer == newer) {
            any = TRUE;
            ok = copy(r, list[i], newer, stream, error);
        }
    if (any)
        ok = r->backend->memory->wait(stream, ok ? error : NULL) && ok;
    for (guint i = 0; i < n && ok; i++)
        if (list[i] != NULL && list[i]->newer == newer)
            list[i]->newer = HN_NEITHER;
    return ok;
}

gboolean hn_residents_upload(HnResidents *r, HnResident *const *list, guint n, gpointer stream, GError **error)
{
    g_mutex_lock(&r->lock);
    const gboolean ok = even_out(r, list, n, HN_ON_HOST_NEWER, stream, error);
    g_mutex_unlock(&r->lock);
    return ok;
}

static gboolean any_on_device(HnResident *const *list, guint n)
{
    for (guint i = 0; i < n; i++)
        if (list[i] != NULL && list[i]->newer == HN_ON_DEVICE_NEWER)
            return TRUE;
    return FALSE;
}

gboolean hn_residents_fetch(HnResidents *r, HnResident *const *list, guint n, GError **error)
{
    gboolean ok = TRUE;
    g_mutex_lock(&r->lock);
    if (any_on_device(list, n)) {
        if (r->stream == NULL)
            r->stream = r->backend->stream_new(r->device, error);
        ok = r->stream != NULL && even_out(r, list, n, HN_ON_DEVICE_NEWER, r->stream, error);
    }
    g_mutex_unlock(&r->lock);
    return ok;
}
