/*
 * HnResidents: variables on a device whose memory is not the host's.
 *
 * A variable's elements lie on the host and, from the first plan on that reads it, in one place on the device, which
 * all engines and sessions there share that have the tensor as a variable. One of the two may be newer: what the host
 * wrote goes to the device before the next run, what runs made comes to the host when somebody asks for it. In between
 * nothing is copied.
 *
 * All functions may be called from several threads at once; whoever writes elements does so as run/variable.h says.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

typedef struct HnResidents HnResidents;
typedef struct HnSlab HnSlab;

#define HN_RESIDENT_ALIGN ((gsize)256) /* of places on the device */

typedef enum { HN_NEITHER, HN_ON_HOST_NEWER, HN_ON_DEVICE_NEWER } HnNewer;

typedef struct {
    HnTensor *host;  /* its address is the key */
    HnTensor *there; /* of the same form; its data is an address on the device */
    HnSlab *slab;    /* all else belongs to resident.c */
    HnNewer newer;
    int ref;
} HnResident;

HnResidents *hn_residents_new(const HnBackend *backend, gpointer device);
void hn_residents_free(HnResidents *r); /* there are none any more */

/* Places for these n tensors, those that had none in one piece of memory; a new reference each. Of references (strings)
 * there is none: NULL. Error: BUDGET. */
gboolean hn_residents_get(HnResidents *r, HnTensor *const *host, guint n, HnResident **made, GError **error);
void hn_residents_unref(HnResidents *r, HnResident *const *list, guint n); /* NULL among them is fine */

/* Of n of them, NULL or not: what is newer on the host is on the device when it returns, ... */
gboolean hn_residents_upload(HnResidents *r, HnResident *const *list, guint n, gpointer stream, GError **error);
/* ... and back. */
gboolean hn_residents_fetch(HnResidents *r, HnResident *const *list, guint n, GError **error);
void hn_residents_note(HnResidents *r, HnResident *const *list, guint n, HnNewer newer);

G_END_DECLS
