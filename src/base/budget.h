/*
 * HnBudget: counted memory for everything whose size follows from a file: tensors, arenas, unpacked messages.
 *
 * A budget has a limit in bytes (0: none) and says no with an error where g_malloc would end the program. A NULL budget
 * is unlimited and counts nothing, but still returns errors. All functions may be called from several threads at once.
 *
 *   - blocks are aligned to 64 bytes; a block of size 0 is a valid pointer;
 *   - counted are the bytes asked for, without the 128 that each block costs besides: g_malloc is for small things;
 *   - a block goes back to the budget it came from, and keeps it alive until then.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_ALIGN 64 /* bytes: a cache line, and the widest vector */

typedef struct HnBudget HnBudget;

HnBudget *hn_budget_new(gsize limit);
HnBudget *hn_budget_ref(HnBudget *budget);
void hn_budget_unref(HnBudget *budget);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnBudget, hn_budget_unref)

/* Uninitialised, zeroed, and n * size bytes (checked); NULL with HN_ERROR_BUDGET where there is no room. */
gpointer hn_budget_alloc(HnBudget *budget, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
gpointer hn_budget_alloc0(HnBudget *budget, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
gpointer hn_budget_alloc_n(HnBudget *budget, gsize n, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void hn_budget_free(HnBudget *budget, gpointer block);

/* A GBytes over the first size bytes of a block of this budget; takes the block, gives it back when it is freed. */
GBytes *hn_budget_bytes(HnBudget *budget, gpointer block, gsize size);

/* Count memory that somebody else allocates (a library's packed weights, a mapping). */
gboolean hn_budget_charge(HnBudget *budget, gsize size, GError **error);
void hn_budget_uncharge(HnBudget *budget, gsize size);
/* The same where it is taken already and nobody can say no: beyond the limit, too. Then the next that asks is refused.
 */
void hn_budget_take(HnBudget *budget, gsize size);

gsize hn_budget_limit(HnBudget *budget); /* 0: none */
gsize hn_budget_used(HnBudget *budget);
gsize hn_budget_peak(HnBudget *budget);
guint64 hn_budget_count(HnBudget *budget); /* allocations and charges so far: a test expects none during a run */

/* Bytes of a device's own memory that who has this budget may take there; 0, as at first: any. It is only kept here,
 * for whoever opens a session. Before the budget is shared with other threads. */
void hn_budget_limit_device(HnBudget *budget, gsize limit);
gsize hn_budget_device_limit(const HnBudget *budget); /* of NULL 0 */

/* For tests: the k-th allocation or charge from now fails (1 is the next one), once; 0 takes that back. */
void hn_budget_fail_at(HnBudget *budget, guint64 k);
/* FALSE where the next one is to fail, which it does with that. A loop that allocates nothing asks, to end then, too.
 */
gboolean hn_budget_ask(HnBudget *budget, GError **error);

/* From now on *halt (an HnHalt, atomic; it has to stay) ends all work: where it is not HN_HALT_NOT every allocation,
 * charge and question fails with its error. Before the budget is shared with other threads. */
void hn_budget_watch(HnBudget *budget, const gint *halt);
/* That number, for a loop that cannot spare the call; NULL: none. */
const gint *hn_budget_halt(HnBudget *budget);

G_END_DECLS
