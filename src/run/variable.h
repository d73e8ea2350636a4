/*
 * Variables: weights whose elements change while sessions of an engine live.
 *
 *     const HnVariable variables[] = { { "w", "w_next" }, { "b", NULL }, { NULL, NULL } };
 *     g_autoptr(HnEngine) e = hn_engine_new(m, device, &(HnEngineOptions){ .variables = variables }, &error);
 *
 * A variable is an initializer of the main graph that planning never computes with: the engine owns its elements, which
 * lie at one address. A run replaces them by an output of the graph ("w_next"), in place where nobody reads the old
 * ones any more, or somebody writes them between two runs and says so with hn_engine_wrote(). Either way the engine's
 * generation goes up by one, and what kernels made of the elements (packed or transformed weights) is made anew, into
 * the same memory, at the start of each session's next run, once and on all of its threads.
 *
 * On a device with memory of its own variables stay there (run/resident.h): runs read and replace them in place, and
 * nothing is copied. Who wants to read or write elements on the host calls hn_engine_fetch() first, and who wrote some
 * hn_engine_wrote(). What a run gives back for an output that replaces a variable is the variable on the host.
 *
 * Whoever writes a variable, a run included, does so while no other session of the engine runs. A run that fails may
 * leave variables that it replaces half written.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

typedef struct {
    const char *name; /* of the initializer; NULL ends a list */
    const char *next; /* the output that replaces it, of the same type and shape; NULL: a run leaves it alone */
    HnTensor
        *elements; /* where they lie, another engine's variable of that type and shape; NULL: in memory of its own */
} HnVariable;

typedef struct HnEngine HnEngine;

/* Its elements, to be read and written, plain and aligned, on the host; borrowed. NULL: no variable has that name. */
HnTensor *hn_engine_variable(HnEngine *e, const char *name);
/* What runs made of variables on a device is on the host, too; nothing is copied that did not change since. */
gboolean hn_engine_fetch(HnEngine *e, GError **error);
/* Elements of variables were written on the host: those there count from now on, of all of them. */
void hn_engine_wrote(HnEngine *e);
/* Runs of another engine replaced elements that this one has, too. */
void hn_engine_replaced(HnEngine *e);

typedef struct HnSession HnSession;

/* Variables as they are before a run of the session, in case that it is to be undone: on the device where they are. */
typedef struct HnSnapshot HnSnapshot;
/* names: n of them, of its engine's variables. Errors: BUDGET. */
HnSnapshot *hn_snapshot_new(HnSession *s, const char *const *names, guint n, HnBudget *budget, GError **error);
void hn_snapshot_free(HnSnapshot *x); /* before the session; NULL is fine */
gboolean hn_snapshot_take(HnSnapshot *x, GError **error);
gboolean hn_snapshot_restore(HnSnapshot *x, GError **error);

/* --- for kernels ------------------------------------------------------------------------------------------------- */

/* The slot's elements are there at prepare, and change only where hn_step_renews() is called for: a constant, or a
 * variable. */
static inline gboolean hn_slot_is_weight(const HnSlot *slot)
{
    return slot->constant || slot->variable;
}

/* Makes anew what prepare() made of variables; may be called by any thread, with that of other steps at the same time.
 */
typedef void (*HnRenewFn)(const HnStep *s, gpointer data);
/* In prepare: fn shall be called when variables have changed, until the step is gone. data: g_free()d with it. */
void hn_step_renews(HnStep *s, HnRenewFn fn, gpointer data);
/* For the planner. */
GArray *hn_renewals_new(void);
void hn_renewals_run(const GArray *renewals, int threads);
void hn_renewals_forget(GArray *renewals, const HnStep *s);

G_END_DECLS
