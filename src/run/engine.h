/*
 * HnEngine: a model made ready to run on a device, for any number of sessions.
 *
 *     g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
 *     g_autoptr(HnEngine) engine = hn_engine_new(model, device, NULL, &error);
 *     HnSession *s[8]; each of them: hn_session_new_on(engine, &(HnSessionOptions){ .threads = 1 }, &error)
 *
 * What sessions have in common is here, once: the model, which nobody may edit from hn_engine_new() on, constants that
 * planning makes of its weights, and the device with the packed weights. A session has what a run writes to: plans,
 * with their memory, and results.
 *
 * Threads. An engine may be used by several at once: sessions may be made, run and freed in a thread each. Sessions of
 * one engine plan one after the other, and run at the same time, without a lock. What is shared is the engine's own: it
 * never depends on which session was there first.
 */
#pragma once

#include "run/device.h"
#include "run/variable.h"

G_BEGIN_DECLS

typedef struct {
    HnBudget *budget;         /* of constants and variables; NULL: unlimited */
    const char *const *feeds; /* NULL-ended names of initializers that are graph inputs and shall be fed; may be NULL */
    const HnVariable *variables; /* ended by one without a name; NULL: none */
} HnEngineOptions;

/* Makes the model ready for engines: calls of its own functions are inlined, all operators bound. One thread at a time;
 * of a model that is ready nothing is changed. Errors: UNSUPPORTED naming an operator that is not known, GRAPH (a model
 * without outputs, too), ATTRIBUTE. */
gboolean hn_model_prepare(HnModel *m, GError **error);

/* The model is prepared, if it is not yet, and has to outlive the engine; o may be NULL. Errors: those of
 * hn_model_prepare(), USAGE for a name that is no input, no weight, or no output, SHAPE, BUDGET. */
HnEngine *hn_engine_new(HnModel *m, HnDevice *device, const HnEngineOptions *o, GError **error);
HnDevice *hn_engine_device(const HnEngine *e); /* borrowed */
HnEngine *hn_engine_ref(HnEngine *e);
void hn_engine_unref(HnEngine *e); /* NULL is fine; its sessions hold it, too */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnEngine, hn_engine_unref)

G_END_DECLS
