/*
 * HnDevice: a device of a backend, opened: its handle, the packed weights and the variables on it, which all engines
 * and sessions that were given it share. It may be used by several threads at once.
 */
#pragma once

#include "base/cpu.h"
#include "run/packs.h"
#include "run/resident.h"

G_BEGIN_DECLS

typedef struct {
    gint ref;
    const HnBackend *backend;
    gpointer handle; /* what HnBackend.open returned */
    HnPacks *packs;
    HnResidents *residents; /* NULL: kernels work in the host's memory */
    HnIsa isa; /* sessions use no instructions above it; to be set before the first one: what is packed depends on it */
} HnDevice;

/* Errors: UNSUPPORTED where there is no such device. */
HnDevice *hn_device_new(const HnBackend *backend, GError **error);
/* By HnBackend.open_apart. Errors: UNSUPPORTED where it cannot be had. */
HnDevice *hn_device_new_apart(const HnBackend *backend, GError **error);
HnDevice *hn_device_ref(HnDevice *d);
void hn_device_unref(HnDevice *d); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnDevice, hn_device_unref)

G_END_DECLS
