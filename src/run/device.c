#include "run/device.h"

static HnDevice *device_new(const HnBackend *backend, gpointer (*open)(int index, GError **error), GError **error)
{
    GError *failure = NULL;
    gpointer handle = open(backend->index, &failure);
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return NULL;
    }
    HnDevice *d = g_new0(HnDevice, 1);
    d->ref = 1;
    d->backend = backend;
    d->handle = handle;
    d->isa = HN_ISA_AMX;
    d->packs = hn_packs_new(backend, handle);
    if (backend->memory != NULL)
        d->residents = hn_residents_new(backend, handle);
    return d;
}

HnDevice *hn_device_new(const HnBackend *backend, GError **error)
{
    return device_new(backend, backend->open, error);
}

HnDevice *hn_device_new_apart(const HnBackend *backend, GError **error)
{
    if (backend->open_apart != NULL)
        return device_new(backend, backend->open_apart, error);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "device '%s' cannot be opened once more", backend->name);
    return NULL;
}

HnDevice *hn_device_ref(HnDevice *d)
{
    g_atomic_int_inc(&d->ref);
    return d;
}

void hn_device_unref(HnDevice *d)
{
    if (d == NULL || !g_atomic_int_dec_and_test(&d->ref))
        return;
    hn_packs_free(d->packs);
    hn_residents_free(d->residents);
    d->backend->close(d->handle);
    g_free(d);
}
