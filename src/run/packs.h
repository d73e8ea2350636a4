/*
 * HnPacks: the packed weights of a device.
 *
 * A kernel that reads constant elements in an order of its own asks for a packed copy when it is prepared. All steps,
 * of all sessions on the device, that ask for the same elements in the same form share one copy, which lives as long as
 * a step uses it. The elements of a pack never change once a step has it: reading them takes no lock. A variable
 * (run/variable.h) is packed for each step alone, which writes its pack anew.
 *
 * All functions may be called from several threads at once. A pack is made outside of the lock, by the first who asks;
 * whoever asks for it meanwhile waits.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

/* Writes the elements of t, which may be misaligned, to `to`. */
typedef void (*HnPackFn)(void *to, const HnTensor *t, gconstpointer data);

/* How elements are arranged: packs of one weight are told apart by all of it. */
typedef struct {
    HnPackFn fn;           /* who arranges them; NULL: the layouts say how */
    int64_t variant;       /* of fn's arrangements */
    HnLayout *view, *want; /* how the elements are seen, and how they shall lie; NULL: plain */
} HnPackForm;

struct HnPack {
    void *data; /* the elements, on the device if that has memory; all else belongs to packs.c */
    int ref;    /* steps; under the cache's lock, like all of it */
    gboolean ready;
    gboolean alone; /* of a variable: one step has it, which writes it anew */
    HnPacks *cache;
    HnTensor *from; /* kept: its address is the key */
    HnPackForm form;
    HnBudget *budget;
    gsize bytes;
};

/* Fills `to`, memory of the host, by the form; called once for a pack. */
typedef gboolean (*HnPackFill)(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error);

HnPacks *hn_packs_new(const HnBackend *backend, gpointer device);
void hn_packs_free(HnPacks *c); /* nobody uses one any more */

/* The slot's elements, those of a weight, in that form, for step s: `bytes` bytes that `fill` writes where nobody has
 * packed it yet. fill NULL: they are copied to the device as they are. NULL: error. */
HnPack *hn_packs_get(const HnStep *s, const HnSlot *slot, const HnPackForm *form, gsize bytes, HnPackFill fill,
                     gconstpointer data, GError **error);
void hn_pack_unref(HnPack *pack); /* NULL is fine */

/* Bytes that all of them fill. */
gsize hn_packs_bytes(HnPacks *c);
/* Until as many releases, packs that no step uses any more wait for a step that wants them as they are, while somebody
 * else holds the weight and until it is packed in another way. */
void hn_packs_hold(HnPacks *c);
void hn_packs_release(HnPacks *c);
/* Of those that wait, the ones whose weight is gone go. */
void hn_packs_sweep(HnPacks *c);

G_END_DECLS
